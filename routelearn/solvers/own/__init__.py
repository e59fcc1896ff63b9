"""Classical methods written here."""
