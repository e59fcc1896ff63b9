"""Random feasible tours, asymmetric matrices and optima by brute force for the tests of local search."""

from __future__ import annotations

from typing import Any

import brute_force
import torch
from paper_problems import PAPER
from torch import Tensor

from routelearn.problems import PROBLEMS
from routelearn.problems.base import distance_matrix, take

IMPROVABLE = [name for name in PAPER if not PROBLEMS[name].reveals_on_visit]


def random_tours(problem: Any, x: Any, solutions: int = 1) -> Tensor:
    """Feasible tours [B, S, T] that choose evenly among what is allowed."""
    state, actions = problem.initial(x, solutions), []
    for _ in range(problem.max_steps(x)):
        allowed = problem.feasible(x, state)
        action = torch.where(allowed, torch.rand(allowed.shape), -1.0).argmax(-1)
        actions.append(action)
        state = problem.step(x, state, action)
        if bool(problem.done(x, state).all()):
            break
    return torch.stack(actions, 2)


def asymmetric(x: Any) -> Any:
    """The instance with a matrix in which the two directions differ by up to half; the triangle inequality holds."""
    legs = torch.cdist(x.xy.double(), x.xy.double())
    legs = legs * (1 + 0.5 * torch.rand(legs.shape))
    for via in range(legs.shape[-1]):
        legs = torch.minimum(legs, legs[:, :, via, None] + legs[:, None, via])
    return x._replace(distances=legs.to(x.xy.dtype))


def optimum(name: str, x: Any) -> list[float]:
    """The least cost of each instance."""
    costs = []
    for row in range(x.xy.shape[0]):
        one = take(x, slice(row, row + 1))
        legs = distance_matrix(one)[0].tolist()
        if name == "tsp":
            costs.append(brute_force.tsp(legs))
        elif name in ("cvrp", "sdvrp"):
            costs.append(getattr(brute_force, name)(legs, one.demand[0].tolist(), int(one.capacity[0])))
        elif name == "pctsp":
            prize, penalty = one.prize[0].tolist(), one.penalty[0].tolist()
            costs.append(brute_force.pctsp(legs, prize, penalty, float(one.min_prize[0])))
        else:
            costs.append(brute_force.op(legs, one.prize[0].tolist(), float(one.max_length[0])))
    return costs
