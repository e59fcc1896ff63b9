"""Checks that a problem keeps its contract: `check_problem`."""
