"""Planning the rest of a prize collecting route from where the vehicle stands, on public information alone."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from routelearn.improve.engines import SelectiveEngine
from routelearn.problems.base import Problem, distance_matrix
from routelearn.problems.pctsp import Instance


def plan(
    problem: Problem, x: Any, start: int, visited: Tensor, required: float, *, seconds: float = 0.05, seed: int = 0
) -> list[int]:
    """The nodes to visit next, in order, on the way from `start` to the depot (PCTSP, SPCTSP; batch axis 1).

    Least length plus penalties of what is left out, with at least `required` of expected prize still to come (all
    open nodes if they bring less). `visited` [N] marks what is out of reach now; real prizes are never read.
    """
    x = x.public()
    open_nodes = [node for node in range(1, x.xy.shape[1]) if node != start and not bool(visited[node])]
    if not open_nodes:
        return []
    # Node 0 stands for both ends: its way out starts at `start`, the way into it ends at the depot.
    nodes = torch.tensor([start, *open_nodes])
    legs = distance_matrix(x)[0].double()
    between = legs[nodes][:, nodes].clone()
    between[:, 0] = legs[nodes, 0]
    prize, penalty = (column[0].double()[nodes].clone() for column in (x.prize, x.penalty))
    prize[0] = penalty[0] = 0
    least = torch.tensor([max(required, 0.0)], dtype=torch.float64)
    rest = Instance(x.xy[:, nodes], prize[None], penalty[None], least, None, between[None])
    engine = SelectiveEngine(rest, seed)
    begun = time.perf_counter()
    engine.start()
    while (gone := time.perf_counter() - begun) < seconds:
        engine.explore(gone / seconds, 32)
    return [open_nodes[node - 1] for node in engine.best() if node > 0]
