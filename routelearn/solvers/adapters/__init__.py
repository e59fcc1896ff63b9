"""Solvers of others behind the same interface: Python packages and programs."""
