"""On a CPU, by numba."""
