"""A policy as a source of solutions for one instance: greedy, sampled, and parts rebuilt, within a time limit."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from routelearn.decoding.decode import augmented
from routelearn.decoding.insertion import tours_of, viewed
from routelearn.decoding.rollout import Live, begin, rollout
from routelearn.errors import Infeasible
from routelearn.models.model_file import Model
from routelearn.problems.base import Problem, repeat
from routelearn.solving.strict import check_strictly

REACH = 5  # a policy serves up to so many times the largest size it was trained on; beyond, heuristics are better
STEP_SECONDS = 3e-4  # a decoding step of a small instance takes at least this long on a CPU
SEGMENT = 16  # steps between two looks at the clock


class Guide:
    """The policy of a model on one instance: `seen` in the unit square, `x` in the user's units (batch axis 1)."""

    def __init__(self, problem: Problem, model: Model, seen: Any, x: Any):
        self.problem, self.policy, self.seen, self.x = problem, model.policy, seen, x
        self.caches: dict[int, Any] = {}  # by number of symmetries
        self.seconds_a_step = STEP_SECONDS  # of the latest construction

    def expected(self) -> float:
        """Expected seconds for one construction."""
        return self.seconds_a_step * self.seen.xy.shape[1]

    @torch.no_grad()
    def construct(
        self,
        *,
        solutions: int = 1,
        augment: int = 1,
        temperature: float = 0.0,
        prefix: Tensor | None = None,
        deadline: float = float("inf"),
    ) -> tuple[Tensor, float] | None:
        """(the best of augment * solutions tours [1, 1, T], its cost); None if the time is not enough.

        `prefix` [1, S, P] (-1 = choose) is continued. The answer is feasible for `x`, in double precision too.
        """
        begun = time.perf_counter()
        many = repeat(self.seen, augment)
        if augment not in self.caches:
            self.caches[augment] = self.policy.encode(augmented(self.problem.features(self.seen), augment, 0))
        cache = self.caches[augment]
        live = begin(self.problem, self.policy, cache, many, solutions)
        parts: list[Tensor] = []
        if prefix is not None and not live.carry:
            live, given, prefix = self._forward(many, live, prefix)
            parts.append(given)
        bound, taken = self.problem.max_steps(self.seen), sum(part.shape[2] for part in parts)
        # At least one step, where there is nothing to do, too: a finished solution stays where it is.
        while not parts or (taken < bound and not bool(self.problem.done(many, live.state).all())):
            if time.perf_counter() > deadline:
                return None
            steps = min(SEGMENT, bound - taken)
            ahead = None if prefix is None or prefix.shape[2] == 0 else prefix[:, :, :steps]
            rolled = rollout(
                self.problem, self.policy, cache, many, steps=steps, temperature=temperature, live=live, prefix=ahead
            )
            prefix = None if prefix is None else prefix[:, :, steps:]
            parts.append(rolled.tour)
            live, taken = rolled.live, taken + steps
            self.seconds_a_step = max(STEP_SECONDS, (time.perf_counter() - begun) / taken)
        return self.best_of(torch.cat(parts, 2).flatten(0, 1)[None])

    def _forward(self, x: Any, live: Live, prefix: Tensor) -> tuple[Live, Tensor, Tensor]:
        """Take the steps that every prefix fixes, without the policy: (live, steps taken, the rest)."""
        fixed = int((prefix >= 0).all(1).all(0).long().cumprod(0).sum())
        state, last = live.state, live.last
        for t in range(fixed):
            last = prefix[:, :, t]
            state = self.problem.step(x, state, last)
        return Live(state, live.carry, last), prefix[:, :, :fixed], prefix[:, :, fixed:]

    def best_of(self, tours: Tensor) -> tuple[Tensor, float] | None:
        """The cheapest feasible one of [1, S, T]; the policy built them in single precision, on other units."""
        tours = tours_of(viewed(self.policy, self.problem), self.x, tours)
        costs = self.problem.cost(self.x, tours)[0]
        for row in costs.argsort().tolist():
            tour = tours[:, row : row + 1].clone()
            try:
                check_strictly(self.problem, self.x, tour)
            except Infeasible:
                continue
            return tour, float(costs[row])
        return None

    def greedy(self, deadline: float = float("inf")) -> tuple[Tensor, float] | None:
        return self.construct(deadline=deadline)

    def augmented(self, deadline: float) -> tuple[Tensor, float] | None:
        """Greedy under the 8 symmetries of the square."""
        return self.construct(augment=8, deadline=deadline)

    def sampled(self, solutions: int, deadline: float) -> tuple[Tensor, float] | None:
        """`solutions` draws under each of the 8 symmetries."""
        return self.construct(augment=8, solutions=solutions, temperature=1.0, deadline=deadline)

    def rebuilt(self, prefix: Tensor, deadline: float) -> tuple[Tensor, float] | None:
        """The best of the partial solutions [1, S, P], completed by draws."""
        return self.construct(solutions=prefix.shape[1], temperature=1.0, prefix=prefix, deadline=deadline)


def usable(model: Model, size: int) -> bool:
    """Whether the size, in stops or visits, is within reach of what the model was trained on."""
    sizes = model.card.get("sizes")
    return not sizes or size <= REACH * max(sizes)
