"""Compiled implementations of what policies define; the policies' own methods are the reference."""
