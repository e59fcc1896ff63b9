"""Solve a round: search, put times to what was found, have it refereed, and say why stops were left out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from routelearn.errors import Infeasible, InputError
from routelearn.rounds.answers import RoundSolution
from routelearn.rounds.model import Round
from routelearn.rounds.plan import Drive, Plan, Unassigned
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import plan_of
from routelearn.solving.arguments import LONGEST, effort
from routelearn.solving.board import Watch
from routelearn.solving.solution import Event

NAMED = 5  # stops that an error names
MOST_ITERATIONS = 10**12


def solve_round(
    round: Round,
    *,
    seconds: float = 1.0,
    iterations: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    start: Sequence[Drive] | None = None,
    watch: Watch | None = None,
    read_with: Mapping[str, Any] | None = None,
) -> RoundSolution:
    """The best plan found in `seconds`, or after so many iterations; `start` is a plan to improve.

    With `iterations` the clock does not count, one thread searches unless more are asked for, and equal seeds give
    equal plans. What vehicles keep (`Vehicle.kept`) stays at the beginning of their routes. `watch` hears of every
    better plan.
    """
    from routelearn.rounds.search import search_round

    began = time.perf_counter()
    seconds, seed, threads = effort(seconds, seed, threads)
    if iterations is not None:
        if isinstance(iterations, bool) or not isinstance(iterations, int) or not 0 <= iterations <= MOST_ITERATIONS:
            raise InputError(f"iterations is {iterations!r}; a whole number from 0 to {MOST_ITERATIONS:,} is needed")
        seconds, threads = LONGEST, threads or 1
    events: list[Event] = []

    def hear(after: float, cost: float) -> None:
        events.append(Event(after, cost, "search"))
        if watch is not None:
            watch(events[-1])

    parallel: dict[str, Any] = {} if threads in (None, 1) else {"threads": threads}
    drives = search_round(round, seconds=seconds, iterations=iterations, seed=seed, start=start, watch=hear, **parallel)
    plan = plan_of(round, drives)
    if start is not None:  # never worse than what was given
        before = plan_of(round, start)
        plan = before if not before.violations and rank(round, before) < rank(round, plan) else plan
    plan = with_reasons(round, plan)
    refuse_missing(round, plan)
    verdict = judge(round, plan)
    if verdict.violations:
        raise Infeasible(0, f"{round.source}: {verdict.violations[0].words}")
    spent = time.perf_counter() - began
    return RoundSolution(
        round, replace(plan, cost=verdict.cost, violations=()), seconds=spent, events=tuple(events), notes=round.notes,
        read_with=read_with or {},
    )  # fmt: skip


def rank(round: Round, plan: Plan) -> tuple[int, int, float]:
    """What decides between two plans: stops that must be visited and are not, vehicles if they come first, the cost."""
    missing = sum(round.stops[one.stop].penalty is None for one in plan.unassigned)
    return missing, len(plan.routes) if round.objective == "vehicles" else 0, plan.cost


def check_round(
    round_: Round, drives: Sequence[Drive], *, notes: Sequence[str] = (), read_with: Mapping[str, Any] | None = None
) -> RoundSolution:
    """A plan as it was given, with times, cost and every rule that it breaks."""
    plan = with_reasons(round_, plan_of(round_, drives))
    verdict = judge(round_, plan)
    known = {(one.rule, one.route) for one in plan.violations}
    more = [one for one in verdict.violations if (one.rule, one.route) not in known]
    checked = replace(plan, cost=verdict.cost, violations=(*plan.violations, *more))
    return RoundSolution(round_, checked, notes=(*round_.notes, *notes), read_with=read_with or {})


def with_reasons(round_: Round, plan: Plan) -> Plan:
    """The plan, with a reason for every stop that is not in it."""
    served = {stop for route in plan.routes for stop in route.stops}
    left = [i for i in range(len(round_.stops)) if i not in served]
    if not left:
        return plan
    from routelearn.rounds.reasons import reason

    return replace(plan, unassigned=tuple(Unassigned(i, reason(round_, plan, i)) for i in left))


def refuse_missing(round_: Round, plan: Plan) -> None:
    """An error that names the stops that must be visited and are not, unless the user allows them to be left out."""
    missing = [one for one in plan.unassigned if round_.stops[one.stop].penalty is None]
    if round_.allow_unassigned or not missing:
        return
    named = "; ".join(f"{round_.stops[one.stop].id!r} {one.reason}" for one in missing[:NAMED])
    more = f"; and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    count = "1 stop" if len(missing) == 1 else f"{len(missing)} stops"
    raise InputError(
        f"{round_.source}: {count} of {len(round_.stops)} cannot be served: {named}{more}; "
        "allow unassigned stops (--allow-unassigned) to plan the others"
    )
