"""Training: configuration, loop, step, state, and what judges a run."""
