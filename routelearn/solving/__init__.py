"""Solve a user's own stops within a time limit: `solve`, and `solve_many` for a batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from routelearn.data.convert import Converted, to_instance
from routelearn.data.stops import MATRIX_STOPS, Stops
from routelearn.errors import InputError
from routelearn.models.model_file import Model
from routelearn.problems.base import Problem, is_large
from routelearn.runtime.garbage import collected_later
from routelearn.solving.anytime import anytime, in_threads, one_torch_thread
from routelearn.solving.arguments import effort, name_of, sorted_out, stops_of
from routelearn.solving.board import Board, Event, Watch
from routelearn.solving.guide import Guide
from routelearn.solving.heuristic import first_solution
from routelearn.solving.loading import Tell, load_search
from routelearn.solving.many import solve_many, solve_many_stops
from routelearn.solving.models import find_model
from routelearn.solving.solution import Solution, make_solution
from routelearn.solving.travelling import policy_travels_better, travel

__all__ = [
    "Board",
    "Event",
    "Solution",
    "find_model",
    "make_solution",
    "search",
    "solve",
    "solve_many",
    "solve_many_stops",
    "solve_stops",
    "stops_of",
]

MOST_NODES = 15_000
TAIL = 2.0  # making the answer takes about so many times as long as reading the stops, however busy the machine is
LONGEST_TAIL = 0.4  # of the seconds given
LONG_LOADING = 8.0  # seconds beyond which compiled code was not loaded, but compiled


def solve(
    coords: Any = None,
    *,
    latlon: Any = None,
    matrix: Any = None,
    ids: Sequence[str | int] | None = None,
    depot: int | None = None,
    problem: str | Problem | None = None,
    seconds: float = 1.0,
    seed: int = 0,
    policy: bool = True,
    model: str | Path | Model | None = None,
    threads: int | None = None,
    watch: Watch | None = None,
    **attributes: Any,
) -> Solution:
    """The best solution found in `seconds` for one set of stops; 0 seconds: the policy's or a heuristic's construction.

    `coords` [N, 2] in any unit, or `latlon` [N, 2] in degrees, or `matrix` [N, N] (with places or without), from row
    to column. `attributes` are those that the problems declare, by name: of the stops (`demand`, `prize`, `penalty`,
    `real_prize`) as [N] with 0 for the depot, which is row 0 unless `depot` names another, and of the whole
    (`capacity`, `max_length`, `min_prize`) as one number. The problem follows from what is given, or is named
    (docs/reference/formats.md). `policy=False` searches from a constructive heuristic; `model` is a model, its file or
    the name of a shipped one, instead of the shipped one that fits. `watch` hears of every new best. The search ends by
    the clock, so equal seeds may give different solutions, but for 0 seconds.
    """
    problem = name_of(problem)
    columns, limits = sorted_out(attributes, problem)
    stops = stops_of(coords=coords, latlon=latlon, matrix=matrix, ids=ids, depot=depot, problem=problem, **columns)
    return solve_stops(
        stops, problem=problem, seconds=seconds, seed=seed, policy=policy, model=model, threads=threads, watch=watch,
        **limits,
    )  # fmt: skip


def solve_stops(
    stops: Stops,
    *,
    problem: str | None = None,
    seconds: float = 1.0,
    seed: int = 0,
    policy: bool = True,
    model: str | Path | Model | None = None,
    threads: int | None = None,
    watch: Watch | None = None,
    given: Tensor | None = None,
    tell: Tell | None = None,
    **limits: Any,
) -> Solution:
    """As `solve`, for stops that a reader made. `given` [1, 1, T] is a solution to improve.

    `tell` hears why nothing happens yet, one line each; by default a terminal's standard error does.
    """
    began = time.perf_counter()
    seconds, seed, threads = effort(seconds, seed, threads)
    with collected_later():
        converted = to_instance(stops, problem, **limits)
    large = is_large(converted.problem, converted.referee)
    most = MOST_NODES if large else MATRIX_STOPS
    if converted.nodes > most:
        raise InputError(f"{stops.source}: {converted.nodes} stops; at most {most} are allowed")
    loading = time.perf_counter()
    tail = min(TAIL * (loading - began), LONGEST_TAIL * seconds)
    found, notes = find_model(converted.problem, converted.size, policy, model)
    if seconds > 0 or large:
        load_search([converted], tell)
    loaded = time.perf_counter() - loading
    began += loaded  # start-up is not part of the search's time
    if loaded > LONG_LOADING:
        notes = (
            *notes,
            f"compiling the search took {loaded:.0f} s, once; "
            f"python -m routelearn.commands.warm_up{' --large' if large else ''} does it ahead",
        )
    board = Board(watch)
    board.began = began
    search(converted, board, seconds=seconds, model=found, given=given, seed=seed, threads=threads, tail=tail)
    if interrupted := board.stop.is_set():
        notes = (*notes, f"interrupted after {time.perf_counter() - began:.1f} of {seconds:g} s")
    with collected_later():
        solution = board.solution(converted, notes)
    return replace(solution, seconds=time.perf_counter() - began, interrupted=interrupted)


def search(
    converted: Converted,
    board: Board,
    *,
    seconds: float,
    model: Model | None,
    given: Tensor | None = None,
    seed: int = 0,
    threads: int | None = None,
    tail: float = 0.0,
) -> None:
    """Leave the best solution found in `seconds` on the board. An interrupt (or `board.stop`) ends the search early.

    It ends `tail` seconds before its time at the latest, so that the answer can be made of it.
    """
    problem, x = converted.problem, converted.referee
    end = board.began + seconds - max(reserve(converted), tail)
    guide = None if model is None else Guide(problem, model, converted.policy, x)
    if given is not None:
        board.submit(given, float(problem.cost(x, given)), "given")
    if problem.reveals_on_visit and seconds > 0:

        def journey() -> None:
            stop = board.stop
            better = guide is not None and policy_travels_better(
                problem, x, guide, seconds=seconds, seed=seed, stop=stop
            )
            built = guide.greedy(end) if guide is not None and better else None
            if built is not None:
                board.submit(*built, "policy")
            else:
                tour = travel(problem, x, deadline=end, seed=seed, stop=stop)
                board.submit(tour, float(problem.cost(x, tour)), "search")

        in_threads(board, [journey])
    elif seconds > 0:
        anytime(problem, x, board, deadline=end, guide=guide, given=given, seed=seed, threads=threads)
    else:
        built = None
        if guide is not None:
            with one_torch_thread():  # tensors so small that threads only wait for each other
                built = guide.greedy()
        if built is not None:
            board.submit(*built, "policy")
        if built is None or not problem.reveals_on_visit:  # of two journeys only the first is without hindsight
            tour = first_solution(problem, x)
            if problem.reveals_on_visit:
                tour = travel(problem, x, deadline=board.began, planned=tour[0, 0, :-1].tolist())
            board.submit(tour, float(problem.cost(x, tour)), "heuristic")


def reserve(converted: Converted) -> float:
    """Seconds reserved for checking the solution and converting it to the user's units."""
    return 3e-3 + 2e-5 * converted.size
