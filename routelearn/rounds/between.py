"""Plans while the search runs: timed and refereed like the last one, seldom enough not to slow it down."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from routelearn.rounds.answers import RoundSolution
from routelearn.rounds.model import FOREVER, Round
from routelearn.rounds.plan import Drive
from routelearn.rounds.reasons import with_reasons
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import plan_of

PAUSE = 0.2  # seconds between two plans
SHARE = 0.03  # of the time, at most, goes into them
REASONS = 0.01  # seconds for the reasons of one


class PlansBetween:
    """Offered the best plan again and again, it hands one on when the last is old enough and the plan is another.

    A plan that breaks a rule, or leaves out a stop that must be visited, is not handed on. `expected` is what one takes
    in seconds at first; none is begun that would not be done by `until`.
    """

    def __init__(self, round_: Round, hear: Callable[[RoundSolution], None], *, expected: float, until: float):
        self.round, self.hear, self.until = round_, hear, until
        self.began = time.perf_counter()
        self.next, self.took, self.last = self.began, expected, FOREVER

    def __call__(self, price: float, drives: Callable[[], tuple[Drive, ...]]) -> None:
        now = time.perf_counter()
        if price >= self.last or now < self.next or now + 2 * self.took > self.until:
            return
        self.last = price
        plan = plan_of(self.round, drives())
        if not plan.violations:
            plan = with_reasons(self.round, plan, until=now + REASONS)
            verdict = judge(self.round, plan)
            if not verdict.violations:
                spent = time.perf_counter() - self.began
                found = replace(plan, cost=verdict.cost)
                self.hear(RoundSolution(self.round, found, seconds=spent, notes=self.round.notes))
        end = time.perf_counter()
        self.took = end - now
        self.next = end + max(PAUSE, self.took / SHARE)
