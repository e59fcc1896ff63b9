"""Pictures: one kind, one file."""
