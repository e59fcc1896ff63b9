"""Many instances at once: the policy decodes them in batches, and all processors improve what it has found.

On a GPU the search begins with the first batch while the others are decoded; on a CPU, where both need the same
processors, after the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch

from routelearn.data.convert import Converted, to_instance
from routelearn.data.numbers import from_torch, shown
from routelearn.data.stops import Stops
from routelearn.decoding.decode import Decoded
from routelearn.decoding.decode import decode as decode_instances
from routelearn.decoding.strategy import Strategy, parse, refuse_hindsight
from routelearn.errors import Infeasible, InputError
from routelearn.models.model_file import Model
from routelearn.problems.base import Problem, concat, is_large, to_device
from routelearn.runtime.compiling import best_device
from routelearn.runtime.processors import usable_processors
from routelearn.solving.anytime import one_torch_thread
from routelearn.solving.arguments import effort, name_of, sorted_out, stops_of
from routelearn.solving.board import Board
from routelearn.solving.heuristic import first_solution
from routelearn.solving.loading import load_search
from routelearn.solving.models import find_model
from routelearn.solving.solution import Solution
from routelearn.solving.strict import check_strictly
from routelearn.solving.travelling import travel

POLICY_SHARE = 0.1  # of the time that the policy may take on processors that the search needs, too
TAIL = 1.5  # making solutions takes about so many times as long as making instances
CHUNK = 64  # instances between two looks at the clock; the first chunk is an eighth of it

Told = Callable[[int, Solution], None]  # hears the row of an instance and its solution


def solve_many(
    coords: Any = None,
    *,
    latlon: Any = None,
    matrix: Any = None,
    ids: Any = None,
    depot: Any = None,
    problem: str | Problem | None = None,
    seconds: float | None = None,
    seed: int = 0,
    policy: bool = True,
    model: str | Path | Model | None = None,
    decode: str = "greedy",
    device: str = "auto",
    threads: int | None = None,
    told: Told | None = None,
    **attributes: Any,
) -> list[Solution]:
    """A solution for every instance: arguments as for `solve`, each with one entry per instance ([B, N, 2], or a list).

    Sizes may differ; limits and `depot` may be one number for all. `seconds` is for all of them together; without it
    every solution of the policy (or of a heuristic) is taken to its local optimum. The policy decodes by the strategy
    `decode`, on a GPU if there is one, where the search goes on with what it has found while it decodes the rest.
    `told` hears (row, solution) of every instance as soon as it is solved.
    """
    began = time.perf_counter()
    effort(0 if seconds is None else seconds, seed, threads)  # before any of them is used
    problem = name_of(problem)
    columns, limits = sorted_out(attributes, problem)
    arguments = {"coords": coords, "latlon": latlon, "matrix": matrix, **columns, "ids": ids}
    given = {name: _entries(value, name) for name, value in arguments.items() if value is not None}
    if not given:
        raise InputError("no places; give coords, latlon or matrix, one entry per instance")
    counts = {name: len(entries) for name, entries in given.items()}
    batch = next(iter(counts.values()))
    odd = next((name for name, count in counts.items() if count != batch), None)
    if odd is not None:
        raise InputError(f"{odd} has {counts[odd]} entries, but there are {batch} instances")
    if batch == 0:
        return []
    for row, names in enumerate(given.get("ids", [])):
        if isinstance(names, str):  # whose letters would be taken for ids
            raise InputError(f"instance {row}: ids is {shown(names)}; a list with one entry per stop is needed")
    depots = _per_instance(depot, batch, "depot")
    stops = [
        stops_of(
            source=f"instance {row}",
            depot=depots[row],
            problem=problem,
            **{name: value[row] for name, value in given.items()},
        )
        for row in range(batch)
    ]
    if seconds is not None and seconds > 0:  # reading the arguments is part of the time
        seconds = max(1e-9, seconds - (time.perf_counter() - began))
    return solve_many_stops(
        stops, problem=problem, seconds=seconds, seed=seed, policy=policy, model=model, decode=decode, device=device,
        threads=threads, told=told, **limits,
    )  # fmt: skip


def solve_many_stops(
    stops: Sequence[Stops],
    *,
    problem: str | None = None,
    seconds: float | None = None,
    seed: int = 0,
    policy: bool = True,
    model: str | Path | Model | None = None,
    decode: str = "greedy",
    device: str = "auto",
    threads: int | None = None,
    told: Told | None = None,
    **limits: Any,
) -> list[Solution]:
    """As `solve_many`, for stops that a reader made."""
    began = time.perf_counter()
    strategy = parse(decode)
    time_for_all, seed, threads = effort(0 if seconds is None else seconds, seed, threads)
    seconds = None if seconds is None else time_for_all
    each = {name: _per_instance(value, len(stops), name) for name, value in limits.items()}
    converted = [
        to_instance(one, problem, **{name: values[row] for name, values in each.items()})
        for row, one in enumerate(stops)
    ]
    groups: dict[Any, list[int]] = {}
    for row, one in enumerate(converted):
        more_loads = one.size > 2 * one.nodes  # far more than stops
        kind = (one.problem.name, one.nodes, one.referee.distances is None, more_loads)
        groups.setdefault(kind, []).append(row)
    loading = time.perf_counter()
    if seconds != 0 or any(is_large(one.problem, one.referee) for one in converted):
        load_search(converted)
    threads = threads or usable_processors()
    # Solutions are made as they come; only those of the last searches are made after the end.
    tail = TAIL * (loading - began) * min(1.0, threads / max(1, len(stops)))
    began += time.perf_counter() - loading
    solved: dict[int, Solution] = {}
    for rows in groups.values():
        now = time.perf_counter()
        share = len(rows) / (len(stops) - len(solved))
        end = None if seconds is None else now + share * max(0.0, began + seconds - tail - now)

        def solved_one(place: int, board: Board, notes: tuple[str, ...], rows: list[int] = rows) -> None:
            row = rows[place]
            solved[row] = board.solution(converted[row], notes, board.events[-1].seconds)
            if told is not None:
                told(row, solved[row])

        members, where = [converted[row] for row in rows], best_device(device)
        _solve_group(members, end, seed, policy, model, strategy, where, threads, solved_one)
    return [solved[row] for row in range(len(stops))]


def _entries(value: Any, name: str) -> Any:
    """What an argument has for each instance, whatever the container calls its rows."""
    value = from_torch(value)
    if isinstance(value, Mapping) or not isinstance(value, Iterable) or getattr(value, "shape", None) == ():
        raise InputError(f"{name} is a {type(value).__name__}; one entry per instance is needed")
    return value if isinstance(value, np.ndarray | list | tuple) else list(value)


def _per_instance(value: Any, count: int, name: str) -> list[Any]:
    """One limit for each instance: the number given for all, or the numbers given."""
    if value is None or isinstance(value, int | float | str) or getattr(value, "shape", None) == ():
        return [value] * count
    values = list(from_torch(value))
    if len(values) != count:
        raise InputError(f"{name} has {len(values)} entries, but there are {count} instances")
    return values


def _solve_group(
    group: list[Converted],
    end: float | None,
    seed: int,
    policy: bool,
    model: str | Path | Model | None,
    strategy: Strategy,
    device: torch.device,
    threads: int,
    solved: Callable[[int, Board, tuple[str, ...]], None],
) -> None:
    """`solved` hears the board with a solution for every instance of one problem and one size."""
    problem = group[0].problem
    refuse_hindsight(problem, strategy)
    boards = [Board() for _ in group]
    found, notes = find_model(problem, max(one.size for one in group), policy, model, str(device))
    nothing_but_policy = end is not None and end <= time.perf_counter()
    if problem.reveals_on_visit or nothing_but_policy:
        if found is not None:
            _decode(problem, group, boards, found, strategy, device, seed, None if nothing_but_policy else end)
        _complete(problem, group, boards, end, seed)
        for row, board in enumerate(boards):
            solved(row, board, notes)
        return
    ready: SimpleQueue[int | None] = SimpleQueue()
    remaining = len(group)
    made: list[Future[None]] = []

    def build() -> None:
        """What the policy finds, and then the instances that it did not come to; None ends a search thread."""
        announced: set[int] = set()

        def announce(rows: range) -> None:
            announced.update(rows)
            for row in rows:
                ready.put(row)

        try:
            if found is not None:
                _decode(problem, group, boards, found, strategy, device, seed, end, announce)
        finally:
            for row in range(len(group)):
                if row not in announced:
                    ready.put(row)
            for _ in range(threads):
                ready.put(None)

    def improve() -> None:
        nonlocal remaining
        from routelearn.search import Search

        while (row := ready.get()) is not None:
            one, board = group[row], boards[row]
            seconds = None
            if end is not None:
                seconds = max(0.0, (end - time.perf_counter()) * threads / max(remaining, threads))
            remaining -= 1
            search = Search(problem, one.referee, seed + row, horizon=seconds)
            if board.tour is not None:
                search.offer(board.tour)
            else:
                search.run(0.0)
                board.submit(search.best_tour, search.best_cost, "heuristic")
            search.run(seconds)
            board.submit(search.best_tour, search.best_cost, "search")
            made.append(making.submit(solved, row, board, notes))

    meanwhile = device.type == "cuda"
    if not meanwhile:
        build()
    # Solutions are made in a thread of their own, so that no search waits for it.
    with one_torch_thread(), ThreadPoolExecutor(1) as making, ThreadPoolExecutor(threads + 1) as pool:
        works = [pool.submit(work) for work in ([build] if meanwhile else []) + [improve] * threads]
        for work in works:
            work.result()
        for work in made:
            work.result()


def _decode(
    problem: Problem,
    group: list[Converted],
    boards: list[Board],
    model: Model,
    strategy: Strategy,
    device: torch.device,
    seed: int,
    end: float | None,
    announce: Callable[[range], None] = lambda rows: None,
) -> None:
    """Put the policy's solutions on the boards in batches; on a CPU only while time is left for the search."""
    began, low = time.perf_counter(), 0
    whole = device.type == "cuda" or end is None

    def submit(first: int, decoded: Decoded) -> None:
        tours = decoded.tour.cpu()
        rows = range(low + first, low + first + len(tours))
        for row, tour in zip(rows, tours.split(1), strict=True):
            one = group[row]
            try:
                check_strictly(problem, one.referee, tour)
            except Infeasible:  # by rounding: built in single precision, on other units
                continue
            boards[row].submit(tour, float(problem.cost(one.referee, tour)), "policy")
        announce(rows)

    while low < len(group):
        if low and not whole and end is not None:
            expected = (time.perf_counter() - began) / low * len(group)
            if expected > POLICY_SHARE * (end - began):
                return  # too slow here: a heuristic starts the others
        part = group[low : len(group) if whole else low + (CHUNK if low else CHUNK // 8)]
        seen = to_device(concat([one.policy for one in part]), device)
        decode_instances(problem, model.policy, seen, strategy, seed=seed, found=submit)
        low += len(part)


def _complete(problem: Problem, group: list[Converted], boards: list[Board], end: float | None, seed: int) -> None:
    """A constructed solution where the policy gave none."""
    missing = [row for row, board in enumerate(boards) if board.tour is None]
    for done, row in enumerate(missing):
        x = group[row].referee
        if problem.reveals_on_visit:
            now = time.perf_counter()
            deadline = now if end is None else now + max(0.0, end - now) / (len(missing) - done)
            tour = travel(problem, x, deadline=deadline, seed=seed)
        else:
            tour = first_solution(problem, x)
        boards[row].submit(tour, float(problem.cost(x, tour)), "heuristic")
