"""Small problems and policies for the tests of decoding, and what every answer must keep to."""

from __future__ import annotations

import torch

from routelearn import policies
from routelearn.decoding.rollout import pad_tour
from routelearn.policies.base import shape_of
from routelearn.problems import PROBLEMS, NumpyRng, get
from routelearn.problems.base import to_single

BATCH, CUSTOMERS = 4, 7
CHOOSING = [name for name in PROBLEMS if not PROBLEMS[name].reveals_on_visit]  # where the best of many may be kept
LAYERS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}
SMALL = {"attention": LAYERS, "ean": LAYERS}
SMALL |= {kind: {"width": 16} for kind in ("pointer", "nazari", "nowak", "dai")}
OTHERS = [("tsp", "pointer"), ("tsp", "ean"), ("cvrp", "nazari"), ("sdvrp", "nazari"), ("tsp", "nowak"), ("tsp", "dai")]


def prepared(name, *, batch=BATCH, n=CUSTOMERS, kind="attention", double=False):
    """A problem, a small random policy in evaluation mode, and instances."""
    problem = get(name)
    policy = policies.build(kind, shape_of(problem), SMALL[kind]).eval()
    x = problem.sample(NumpyRng(9), batch, n)
    return (problem, policy.double(), x) if double else (problem, policy, to_single(x))


def judged(problem, x, decoded):
    """Every answer keeps the rules and costs what it says."""
    assert decoded.tour.shape[:2] == (x.xy.shape[0], 1)
    problem.check(x, decoded.tour)
    torch.testing.assert_close(decoded.cost, problem.cost(x, decoded.tour)[:, 0])
    return decoded


def same(problem, a, b):
    longest = max(a.tour.shape[2], b.tour.shape[2])
    return torch.equal(*(pad_tour(problem, part.tour, longest) for part in (a, b)))
