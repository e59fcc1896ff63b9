"""The paper's tables and figures, made again: rows, the runs behind them, and what they are written with."""
