"""Random instances from a seed; with the defaults, the very test sets of the paper and of RouteFinder's variants."""

from __future__ import annotations

from typing import Any, cast

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, NumpyRng, Problem, get
from routelearn.problems.base import Varies, to_single

TEST_SEED = 1234  # the authors' generate_data.py, name "test"
VALIDATION_SEED = 4321  # name "validation"
PAPER = "paper"  # what the collection of the paper's own sets is called
INSTANCES = 10_000  # in each of them
MAX_NODES_DRAWN = 2 * 10**8  # count times n: beyond it the draws alone need gigabytes


def of_set(name: str, collection: str | None = None) -> Problem:
    """What a name draws from: a problem by its id, or the variant of that name of a family.

    `collection` (`paper`, or a family's public one) decides where a name means both.
    """
    families = [problem for problem in PROBLEMS.values() if isinstance(problem, Varies)]
    choices = (PAPER, *(family.test_set for family in families))
    if collection not in (None, *choices):
        raise InputError(f"unknown set {collection!r}; the choices are {', '.join(choices)}")
    if collection in (None, PAPER) and name in PROBLEMS:
        return get(name)
    for family in families:
        if collection == family.test_set or (collection is None and name.lower() in family.variant_names):
            return cast(Problem, family.with_variants(name))  # an unknown variant raises and lists the choices
    try:
        return get(name)  # of a plugin that is installed
    except InputError as error:
        variants = [one for family in families for one in family.variant_names]
        if name.lower() in variants:
            raise InputError(f"the set {collection!r} has no {name}; leave the set out") from None
        raise InputError(f"{error}; and, for variants, {', '.join(variants)}") from None


def set_size(problem: Problem) -> int:
    """How many instances the public sets of a problem have."""
    return problem.test_instances if isinstance(problem, Varies) else INSTANCES


def generate(problem: str | Problem, n: int, count: int | None = None, seed: int = TEST_SEED) -> Any:
    """`count` instances with n customers (TSP: n nodes) from numpy's RandomState(seed), in single precision.

    The usual number (10,000; 1,000 of a variant) with seed 1234 is the public test set of that problem and size, with
    4321 the validation set. The whole set is drawn at once, field after field, so a smaller count is another set and
    not its beginning.
    """
    chosen = of_set(problem) if isinstance(problem, str) else problem
    count = set_size(chosen) if count is None else count
    if n < 1 or count < 1:
        raise InputError(f"{count} instances of {n} nodes; both must be at least 1")
    if n * count > MAX_NODES_DRAWN:
        raise InputError(f"{count} instances of {n} nodes are too many for one draw; generate several files")
    if not 0 <= seed < 2**32:
        raise InputError(f"seed {seed}; a seed is a whole number from 0 to {2**32 - 1}")
    x = to_single(chosen.sample(NumpyRng(seed), count, n))
    chosen.validate(x)
    return x
