"""Re-optimisation for the SPCTSP (appendix F): plan with expected prizes, carry out a part, plan again.

The planner is the iterated local search for the PCTSP, from the last node visited back to the depot through
the nodes not yet visited. `all` carries out the whole plan, `half` half of it, `first` its first visit.

The published figures come from code that differs from the paper's text in three ways, and so does this:
- it goes on planning after the prize is met, until a plan is empty: nodes whose penalty exceeds their detour
  are still worth a visit;
- `half` visits max(k // 2, 1) of k planned nodes;
- the prize still required is capped at the expected prize of the nodes that remain, so a plan exists.
Where plans end before the prize is met, because what remains promises nothing, the rest is visited: the rules
allow the return only with enough prize or with every node visited.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems.base import Problem
from routelearn.solvers.base import Solver, refuse_problem
from routelearn.solvers.own.common import Chunk, over_rows
from routelearn.solvers.own.pctsp_ils import plan
from routelearn.solvers.reveal import Reveal
from routelearn.solvers.tasks import tours_of

KICKS = 10  # of one planning, for every node that may be planned


@dataclass
class Reoptimise(Solver):
    """`share` of a plan is carried out before the next one: "all", "half" or "first"."""

    share: str
    problems: frozenset[str] = frozenset({"spctsp"})
    licence: str = "MIT"

    def __post_init__(self) -> None:
        self.name = f"reopt-{self.share}"

    def visits(self, planned: int) -> int:
        """How many of the planned nodes are visited before planning again."""
        return {"all": planned, "half": max(planned // 2, 1), "first": 1}[self.share]

    def plans(self, nodes: int) -> int:
        """About how many plans may follow while that many nodes remain: they share the time."""
        return {"all": 2, "half": 1 + nodes.bit_length(), "first": nodes}[self.share]

    def solve(self, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
        """Only for instances that carry their real prizes, which are then revealed one visit at a time."""
        refuse_problem(self, problem)
        if x.real_prize is None:
            raise InputError(
                f"{self.name} decides while real prizes are revealed and the instances hold none; "
                "use routelearn.solvers.reveal.run, or solve_online with a Reveal"
            )
        return self.solve_online(problem, x.public(), Reveal(x), seconds=seconds, seed=seed)

    def solve_online(self, problem: Problem, x: Any, reveal: Reveal, *, seconds: float, seed: int = 0) -> Tensor:
        """Tours [B, 1, T]; `seconds` are for all plans of an instance together."""
        refuse_problem(self, problem)

        def travel(chunk: Chunk) -> list[np.ndarray]:
            rows = enumerate(chunk.rows("prize", "penalty", "min_prize"), chunk.first)
            return [
                self._travel(d, prize, penalty, least, stream, reveal, row, chunk.seconds)
                for row, (d, prize, penalty, least, stream) in rows
            ]

        return tours_of(over_rows(travel, problem, x, seconds, seed, chunk_rows=1))

    def _travel(
        self, d: np.ndarray, prize: np.ndarray, penalty: np.ndarray, min_prize: float, stream: np.ndarray,
        reveal: Reveal, row: int, seconds: float,
    ) -> np.ndarray:  # fmt: skip
        """The nodes of one instance in the order in which they were visited."""
        end = time.perf_counter() + seconds
        tour: list[int] = []
        open_nodes = np.ones(len(d), np.bool_)
        open_nodes[0] = False
        owed = min_prize
        while open_nodes.any():
            count = int(open_nodes.sum())
            left = max(0.0, end - time.perf_counter())
            how: dict[str, Any] = {"stream": stream, "seconds": left / self.plans(count), "kicks": KICKS * count}
            how |= {"start": tour[-1] if tour else 0, "allowed": open_nodes}
            planned = plan(d, prize, penalty, min(max(owed, 0.0), float(prize[open_nodes].sum())), **how)
            if len(planned) == 0 and owed > 0:
                planned = plan(d, prize, penalty, np.inf, **how)
            if len(planned) == 0:
                break
            visits = self.visits(len(planned)) if left > 0 else len(planned)  # no time left to plan often
            for node in planned[:visits].tolist():
                owed -= reveal.visit(row, node)
                open_nodes[node] = False
                tour.append(node)
        return np.array(tour, np.int64)


SOLVERS = (Reoptimise("all"), Reoptimise("half"), Reoptimise("first"))
