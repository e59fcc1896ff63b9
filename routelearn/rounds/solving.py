"""Solve a round: search, put times to what was found, have it refereed, and say why stops were left out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from routelearn.data.numbers import plain, shown
from routelearn.errors import Infeasible, InputError
from routelearn.rounds.answers import RoundSolution
from routelearn.rounds.between import PlansBetween
from routelearn.rounds.kept import check_kept, check_start
from routelearn.rounds.model import FOREVER, Round
from routelearn.rounds.plan import Drive, Plan
from routelearn.rounds.reasons import filled, missing, with_reasons
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import plan_of, rank
from routelearn.solving.arguments import LONGEST, effort
from routelearn.solving.board import Watch
from routelearn.solving.loading import Tell, compiling_told
from routelearn.solving.solution import Event

NAMED = 5  # stops that an error names
AT_ONCE, AT_MOST = 20, 2_000  # steps a stop of a search for places at 0 seconds, and of all stops
TURNS, FRUITLESS = 10, 4  # how many such searches there are, and how many in a row that find no place
MOST_ITERATIONS = 10**12
RESERVED, RESERVED_A_STOP = 5e-3, 8e-5  # seconds for timing and checking the plan
RESERVED_A_REASON, MOST_RESERVED = 2e-3, 0.1  # seconds for reasons, where stops may be left out; of all seconds
LATE, LATER = 0.04, 0.04  # a share of the seconds, and seconds, by which reasons may come late
FOR_REASONS = 0.02  # seconds that they get in any case: a busy machine must not leave all of them untold


def solve_round(
    round: Round,
    *,
    seconds: float = 1.0,
    iterations: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    start: Any = None,
    policy: bool = True,
    model: str | Path | None = None,
    watch: Watch | None = None,
    better: Callable[[RoundSolution], None] | None = None,
    tell: Tell | None = None,
    stop: threading.Event | None = None,
    read_with: Mapping[str, Any] | None = None,
) -> RoundSolution:
    """The best plan found in `seconds`, or after so many iterations.

    `start` is a plan to improve, in any form that `check_round` takes.

    With `iterations` the clock does not count, one thread searches unless more are asked for, and equal seeds give
    equal plans. What vehicles keep (`Vehicle.kept`) stays at the beginning of their routes. `watch` hears what every
    better plan costs; `better` gets such plans themselves, timed and refereed, a few a second (rounds/between.py);
    `tell` hears why nothing happens yet. `stop` ends the search early, with the best plan so far.

    At 0 seconds the `policy` of the shipped or the given `model` plans, too, and the better plan counts.
    """
    from routelearn.rounds.search import load_kernels, search_round

    refuse_no_round(round)
    check_kept(round)
    if start is not None:
        check_start(round, start := drives_of(round, start), round.source)
    with compiling_told(tell):  # start-up is not part of the search's time
        load_kernels()
    began, stop = time.perf_counter(), stop or threading.Event()
    seconds, seed, threads = effort(seconds, seed, threads)
    iterations = plain(iterations)
    if iterations is not None:
        if isinstance(iterations, bool) or not isinstance(iterations, int) or not 0 <= iterations <= MOST_ITERATIONS:
            raise InputError(f"iterations is {iterations!r}; a whole number from 0 to {MOST_ITERATIONS:,} is needed")
        seconds = LONGEST
    events: list[Event] = []

    def hear(after: float, cost: float, by: str = "search") -> None:
        events.append(Event(after, cost, by))
        if watch is not None:
            watch(events[-1])

    reserved = RESERVED + RESERVED_A_STOP * len(round.stops)
    if round.allow_unassigned or any(stop.penalty is not None for stop in round.stops):  # reasons take time, too
        reserved += min(RESERVED_A_REASON * len(round.stops), MOST_RESERVED * seconds)
    limit, between = max(0.0, seconds - reserved), None
    if better is not None:

        def hear_plan(one: RoundSolution) -> None:
            better(replace(one, events=tuple(events), read_with=read_with or {}))

        between = PlansBetween(round, hear_plan, expected=reserved, until=began + limit)
    drives = search_round(
        round, seconds=limit, iterations=iterations, seed=seed, start=start, watch=hear, between=between,
        threads=threads, stop=stop,
    )  # fmt: skip
    plan, notes = plan_of(round, drives), round.notes
    if start is not None:  # never worse than what was given
        before = plan_of(round, start)
        plan = before if not before.violations and rank(round, before) < rank(round, plan) else plan
    asked = time.perf_counter()
    if model is not None and seconds > 0:
        notes = (*notes, "the model is not used: policies plan rounds only without a search (--seconds 0)")
    if seconds == 0:
        plan = crowded_in(round, filled(round, plan), seed, stop)
    if start is None and policy and seconds == 0:
        other, more = by_policy(round, seed, model)
        notes += more
        if other is not None and rank(round, other) < rank(round, plan):
            plan = other
            hear(time.perf_counter() - began, plan.cost, "policy")
    plan = filled(round, plan)
    refuse_missing(round, plan)
    refuse_broken(round, plan)
    planned = time.perf_counter() - asked
    until = began + planned + (1 + LATE) * seconds + LATER - RESERVED_A_STOP * len(round.stops)  # then it is refereed
    until = max(until, time.perf_counter() + FOR_REASONS)
    plan = with_reasons(round, plan, until=until if iterations is None else FOREVER)
    verdict = judge(round, plan)
    if verdict.violations:
        raise Infeasible(0, f"{round.source}: {verdict.violations[0].words}")
    spent = time.perf_counter() - began
    if stop.is_set():
        notes = (*notes, f"interrupted after {spent:.1f} s")
    return RoundSolution(
        round, replace(plan, cost=verdict.cost, violations=()), seconds=spent, events=tuple(events), notes=notes,
        read_with=read_with or {}, interrupted=stop.is_set(),
    )  # fmt: skip


def by_policy(round_: Round, seed: int, model: str | Path | None) -> tuple[Plan | None, tuple[str, ...]]:
    """The policy's plan, with the stops inserted that it leaves out; or notes that say why there is none."""
    from routelearn.problems.vrp import VRP
    from routelearn.rounds.learned import policy_plan, unknown
    from routelearn.rounds.search import search_round
    from routelearn.solving.models import find_model

    if (strange := unknown(round_)) is not None:
        return None, (f"the policy does not know {strange}: stops are inserted where they cost least",)
    found, notes = find_model(VRP(), len(round_.stops), path=model)
    drives = policy_plan(round_, found) if found is not None else []
    if not drives:
        return None, notes
    plan = plan_of(round_, search_round(round_, seconds=0.0, seed=seed, start=drives, threads=1))
    return (None if plan.violations else plan), notes


def crowded_in(round_: Round, plan: Plan, seed: int, stop: threading.Event) -> Plan:
    """Where vehicles are just enough, inserting leaves stops without a place: short searches find them one.

    It ends when all have one, when it has found none for any more a few times, and in any case after some turns.
    """
    from routelearn.rounds.search import search_round

    steps, fruitless = min(AT_ONCE * len(round_.stops), AT_MOST), 0
    for turn in range(TURNS):
        if not missing(round_, plan) or fruitless == FRUITLESS or stop.is_set():
            break
        drives = search_round(round_, iterations=steps, seed=seed + turn, start=plan.drives, threads=1, stop=stop)
        other = plan_of(round_, drives)
        fruitless = 0 if len(missing(round_, other)) < len(missing(round_, plan)) else fruitless + 1
        plan = other if rank(round_, other) < rank(round_, plan) else plan
    return plan


def check_round(
    round_: Round,
    routes: Any,
    *,
    notes: Sequence[str] = (),
    read_with: Mapping[str, Any] | None = None,
) -> RoundSolution:
    """A plan as it was given, with times, cost and every rule that it breaks.

    `routes` are drives, lists of ids of stops (each for the first vehicle that is free), what the JSON of a plan has,
    or an answer.
    """
    refuse_no_round(round_)
    plan = with_reasons(round_, plan_of(round_, drives_of(round_, routes)))
    verdict = judge(round_, plan)
    known = {(one.rule, one.route) for one in plan.violations}
    more = [one for one in verdict.violations if (one.rule, one.route) not in known]
    checked = replace(plan, cost=verdict.cost, violations=(*plan.violations, *more))
    return RoundSolution(round_, checked, notes=(*round_.notes, *notes), read_with=read_with or {})


def drives_of(round_: Round, routes: Any) -> tuple[Drive, ...]:
    """The drives of a plan that a Python caller gives in any of the forms that `check_round` takes."""
    from routelearn.rounds.given import given_plan, routes_of

    if isinstance(routes, RoundSolution):
        routes = routes.plan if routes.round is round_ else routes.document()
    if isinstance(routes, Plan):
        return routes.drives
    if isinstance(routes, Mapping):
        routes = routes_of(routes, "the plan")
    if isinstance(routes, str) or not isinstance(routes, Iterable):
        raise InputError(f"the plan is {shown(routes)}; a list of routes is needed, each a list of ids of stops")
    given = list(routes)
    if all(isinstance(one, Drive) for one in given):
        return tuple(given)
    told = [
        {**one, "stops": _ids(one.get("stops"))} if isinstance(one, Mapping) else {"stops": _ids(one)} for one in given
    ]
    return given_plan(round_, told, "the plan").drives


def _ids(stops: Any) -> Any:
    """The ids in any container as a list; of numpy's, plain numbers and words."""
    if stops is None or isinstance(stops, str | Mapping) or not isinstance(stops, Iterable):
        return stops
    return [one.item() if isinstance(one, np.generic) else one for one in stops]


def refuse_no_round(given: Any) -> None:
    if not isinstance(given, Round):
        raise InputError(f"{shown(given)} is no round; read one with routelearn.read_round")


def refuse_broken(round_: Round, plan: Plan) -> None:
    """An error where the search knows that it did not come to a plan: routes alike, or kept stops, ask for too much."""
    if broken := [one for one in plan.violations if one.rule != "unassigned"]:
        raise InputError(
            f"{round_.source}: no plan was found that keeps all rules ({broken[0].words}); relax that one, or search "
            "for longer"
        )


def refuse_missing(round_: Round, plan: Plan) -> None:
    """An error that names the stops that must be visited and are not, unless the user allows them to be left out."""
    left = missing(round_, plan)
    if round_.allow_unassigned or not left:
        return
    told = with_reasons(round_, replace(plan, unassigned=tuple(left[:NAMED]))).unassigned
    named = "; ".join(f"{round_.stops[one.stop].id!r}: {one.reason}" for one in told)
    more = f"; and {len(left) - NAMED} more" if len(left) > NAMED else ""
    count = "1 stop" if len(left) == 1 else f"{len(left)} stops"
    raise InputError(
        f"{round_.source}: {count} of {len(round_.stops)} cannot be served: {named}{more}; "
        "allow unassigned stops (--allow-unassigned) to plan the others, or search for longer"
    )
