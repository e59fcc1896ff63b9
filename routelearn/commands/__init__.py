"""The commands, one a file; cli.py puts them together."""
