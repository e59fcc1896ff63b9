"""The commands, one per file; cli.py puts them together."""
