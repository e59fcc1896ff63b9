"""Decoding: the one loop that builds solutions, and strategies on top of it."""
