"""Random instances from a seed; with the defaults, the very test sets of the paper."""

from __future__ import annotations

from typing import Any

from routelearn.errors import InputError
from routelearn.problems import NumpyRng, Problem, get
from routelearn.problems.base import to_single

TEST_SEED = 1234  # the authors' generate_data.py, name "test"
VALIDATION_SEED = 4321  # name "validation"
MAX_NODES_DRAWN = 2 * 10**8  # count times n: beyond it the draws alone need gigabytes


def generate(problem: str | Problem, n: int, count: int = 10_000, seed: int = TEST_SEED) -> Any:
    """`count` instances with n customers (TSP: n nodes) from numpy's RandomState(seed), in single precision.

    10,000 instances with seed 1234 are the paper's test set of that problem and size, with 4321 its
    validation set. The whole set is drawn at once, field after field, so a smaller count is another set
    and not its beginning.
    """
    chosen = get(problem) if isinstance(problem, str) else problem
    if n < 1 or count < 1:
        raise InputError(f"{count} instances of {n} nodes; both must be at least 1")
    if n * count > MAX_NODES_DRAWN:
        raise InputError(f"{count} instances of {n} nodes are too many for one draw; generate several files")
    if not 0 <= seed < 2**32:
        raise InputError(f"seed {seed}; a seed is a whole number from 0 to {2**32 - 1}")
    x = to_single(chosen.sample(NumpyRng(seed), count, n))
    chosen.validate(x)
    return x
