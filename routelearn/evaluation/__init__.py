"""Judging: a policy on a set of instances, and the referee of every answer."""
