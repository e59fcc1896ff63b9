"""Reproduce the paper's tables and figures: the rows, the runs behind them, and their layout."""
