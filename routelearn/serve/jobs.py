"""What worker processes do: a request's fields in, the answer's fields out, by the library's own functions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from routelearn.data.convert import Converted, to_instance
from routelearn.data.stops import Stops
from routelearn.errors import Infeasible, InputError
from routelearn.problems.base import Problem, take
from routelearn.serve.limits import Limits, over
from routelearn.solving import Solution, make_solution, search, solve_many_stops, stops_of
from routelearn.solving.board import Board
from routelearn.solving.models import find_model
from routelearn.solving.start import construct as heuristic
from routelearn.solving.strict import check_strictly

PLACES = ("coords", "latlon", "matrix")
COLUMNS = (*PLACES, "demand", "prize", "penalty", "real_prize", "ids", "depot")
LIMITS = ("capacity", "max_length", "min_prize")
SOURCE = "the request"

# How messages call the fields of a request; the first one that a message names is the field it is about.
_SPOKEN = {"maximum length": "max_length", "minimum prize": "min_prize", "decoding": "decode", "places": "coords"}
_FIELD = re.compile(
    r"\b(real_prize|max_length|min_prize|coords|latlon|matrix|demand|capacity|penalty|prize|ids?|depot|seconds|"
    r"solver|problem|decode|maximum length|minimum prize|decoding|places)s?\b"
)

_ROW = re.compile(r"instance (\d+)\b")
_SHARED = ("problem", "seconds", "solver", "decode")  # fields that a batch has once

Send = Callable[[dict[str, Any]], None]


def source_of(row: int) -> str:
    """What messages call an instance of a batch."""
    return f"instance {row}"


def located(source: str, name: str) -> str:
    """The path of a field in the request: `demand`, or `instances.3.demand` where the source is row 3 of a batch."""
    row = _ROW.match(source)
    return name if row is None or name in _SHARED else f"instances.{row[1]}.{name}"


def field_of(message: str) -> str | None:
    """The field of the request that an InputError is about."""
    row = _ROW.match(message)
    match = _FIELD.search(message.removeprefix(SOURCE) if row is None else message[row.end() :])
    if match is None:
        return None
    word = match[1]
    return located(message, "ids" if word == "id" else _SPOKEN.get(word, word))


@dataclass
class Task:
    """One set of stops, read and converted; raises InputError as the command line would."""

    stops: Stops
    converted: Converted

    @property
    def nodes(self) -> int:
        return len(self.converted.scale.ids)


def prepare(fields: dict[str, Any], limits: Limits) -> Task:
    """`source` among the fields is what messages call the stops; it is not a client's to give."""
    source = fields.get("source") or SOURCE
    try:
        stops = stops_of(source=source, **{name: fields.get(name) for name in COLUMNS})
        converted = to_instance(stops, fields.get("problem"), *(fields.get(name) for name in LIMITS))
    except InputError as error:
        if source == SOURCE or str(error).startswith(source):
            raise
        raise InputError(f"{source}: {error}") from None  # a limit's message names no file; in a batch it must
    check_loads(converted, limits, source)
    return Task(stops, converted)


def check_loads(converted: Converted, limits: Limits, source: str) -> None:
    """A split delivery of a million loads would be a million routes."""
    x = converted.referee
    if hasattr(x, "demand"):
        loads = -(-int(x.demand.sum()) // int(x.capacity[0]))
        if loads > limits.nodes:
            what = f"{source}: the demands fill {loads} vehicles"
            raise over(422, "nodes", limits.nodes, what, located(source, "capacity"))


# ---------------------------------------------------------------------------------------------- answers


def answer(solution: Solution) -> dict[str, Any]:
    """The fields of schemas.Answer."""
    none = [None] * len(solution.routes)
    loads: Sequence[float | None] = solution.loads or none
    amounts: Sequence[list[float] | None] = solution.amounts or none
    return {
        "problem": solution.problem,
        "cost": solution.cost,
        "objective": solution.objective,
        "length": solution.length,
        "unit": solution.unit or None,
        "depot": solution.depot,
        "routes": [
            {"stops": route, "length": length, "load": load, "amounts": brought}
            for route, length, load, brought in zip(solution.routes, solution.lengths, loads, amounts, strict=True)
        ],
        "unvisited": solution.unvisited,
        "prize": solution.prize,
        "limits": solution.limits,
        "layout": solution.layout,
        "seconds": solution.seconds,
        "history": [{"seconds": e.seconds, "cost": e.cost, "by": e.by} for e in solution.events],
        "notes": solution.notes,
    }


def finished(task: Task, board: Board, notes: tuple[str, ...]) -> dict[str, Any]:
    assert board.tour is not None
    spent = time.perf_counter() - board.began
    events = tuple(board.events)
    return answer(
        make_solution(task.converted, task.stops, board.tour[0, 0], seconds=spent, events=events, notes=notes)
    )


# ------------------------------------------------------------------------------------------ constructions


def construct(tasks: Sequence[tuple[Any, dict[str, Any]]], limits: Limits) -> Iterator[list[tuple[Any, Any]]]:
    """Lists of (key, answer or exception), for every (key, request) with `seconds: 0`; small instances first.

    Those of one problem, size and strategy are decoded together: one pass of the encoder, one step of the decoder
    for all of them. A list is handed out as soon as it is known, so nobody waits for a larger group.
    """
    refused: list[tuple[Any, Any]] = []
    groups: dict[Any, list[tuple[Any, Task, dict[str, Any]]]] = {}
    for key, fields in tasks:
        try:
            task = prepare(fields, limits)
        except Exception as error:
            refused.append((key, error))
            continue
        x = task.converted.referee
        group = (task.nodes, task.converted.problem.name, x.distances is None, fields["policy"], fields["decode"])
        groups.setdefault((*group, fields["seed"] if fields["decode"] else 0), []).append((key, task, fields))
    if refused:
        yield refused
    for _, members in sorted(groups.items(), key=lambda item: item[0][0]):
        yield _construct_group(members)


@torch.no_grad()
def _construct_group(members: list[tuple[Any, Task, dict[str, Any]]]) -> list[tuple[Any, Any]]:
    from routelearn.decode import decode
    from routelearn.problems.base import concat

    key, first, fields = members[0]
    problem, boards = first.converted.problem, [Board() for _ in members]
    try:
        model, notes = find_model(problem, first.nodes, fields["policy"])
        if model is not None:
            seen = concat([task.converted.policy for _, task, _ in members])
            x = concat([task.converted.referee for _, task, _ in members])
            tours = decode(problem, model.policy, seen, fields["decode"] or "greedy", seed=fields["seed"]).tour
            _submit(problem, x, tours, boards, "policy", _feasible(problem, x, tours))
            if fields["decode"] is None and not problem.reveals_on_visit:  # as `search`: the better of the two
                built = [heuristic(task.converted.referee)[0, 0] for _, task, _ in members]
                # Of different lengths only where 0 is the depot, and 0s at the end mean nothing.
                tours = torch.nn.utils.rnn.pad_sequence(built, batch_first=True)[:, None]
                _submit(problem, x, tours, boards, "heuristic", [True] * len(boards))
    except Exception as error:
        return [(key, error) for key, _, _ in members]
    results: list[tuple[Any, Any]] = []
    for (key, task, fields), board in zip(members, boards, strict=True):
        try:
            if board.tour is None:
                search(task.converted, board, seconds=0.0, model=None, seed=fields["seed"], threads=1)
            results.append((key, finished(task, board, notes)))
        except Exception as error:
            results.append((key, error))
    return results


def _submit(problem: Problem, x: Any, tours: Tensor, boards: list[Board], by: str, good: list[bool]) -> None:
    """Each of the tours [B, 1, T] that is good to its board."""
    costs = problem.cost(x, tours)[:, 0].tolist()
    for board, tour, cost, holds in zip(boards, tours.split(1), costs, good, strict=True):
        if holds:
            board.submit(tour, cost, by)


def _feasible(problem: Problem, x: Any, tours: Tensor) -> list[bool]:
    """Which of the tours [B, 1, T] hold. One that was built in single precision may not, by rounding."""
    try:
        check_strictly(problem, x, tours)
    except Infeasible:
        return [
            len(tours) > 1 and _feasible(problem, take(x, slice(i, i + 1)), tour)[0]
            for i, tour in enumerate(tours.split(1))
        ]
    return [True] * len(tours)


# ------------------------------------------------------------------------------------------------ searches


def solve(fields: dict[str, Any], limits: Limits, board: Board, send: Send | None) -> dict[str, Any]:
    """The best solution found in the request's seconds; `send` hears of every better one."""
    if fields["seconds"] == 0 and fields["solver"] is None:
        [[(_, result)]] = construct([(0, fields)], limits)
        if isinstance(result, Exception):
            raise result
        return result
    task = prepare(fields, limits)
    if fields["solver"] is not None:
        return _classical(task, fields, board)
    from routelearn.improve.search import load_kernels

    problem = task.converted.problem
    model, notes = find_model(problem, task.nodes, fields["policy"])
    load_kernels(problem)  # before the clock runs
    board.began = time.perf_counter()
    if send is not None:
        board.watch = lambda event: send(finished(task, board, notes))
    search(task.converted, board, seconds=fields["seconds"], model=model, seed=fields["seed"], threads=1)
    return finished(task, board, notes)


def _classical(task: Task, fields: dict[str, Any], board: Board) -> dict[str, Any]:
    """A solver of the registry, held against the problem's own rules."""
    from routelearn import solvers

    problem, x = task.converted.problem, task.converted.referee
    solver = solvers.get(fields["solver"])
    if problem.name not in solver.problems:
        able = ", ".join(other.name for other in solvers.for_problem(problem.name))
        raise InputError(f"the solver {solver.name} cannot solve {problem.name}; those that can: {able}")
    if (reason := solver.unavailable()) is not None:
        raise InputError(f"the solver {solver.name} is not usable here: {reason}")
    if solver.anytime and fields["seconds"] == 0:
        raise InputError(f"the solver {solver.name} needs time; give seconds above 0")
    board.began = time.perf_counter()
    tour = solver.solve(problem, x.public(), seconds=fields["seconds"], seed=fields["seed"])
    try:
        problem.check(x, tour)
    except (Infeasible, InputError):
        raise InputError(f"the solver {solver.name} found no solution in {fields['seconds']:g} seconds") from None
    board.submit(tour, float(problem.cost(x, tour)), solver.name)
    return finished(task, board, ())


def solve_batch(fields: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Searches of many instances, the seconds being for all of them together."""
    instances = fields["instances"]
    tasks = [
        prepare({**one, "problem": fields["problem"], "source": source_of(row)}, limits)
        for row, one in enumerate(instances)
    ]
    solutions = solve_many_stops(
        [task.stops for task in tasks],
        problem=fields["problem"],
        capacity=[one.get("capacity") for one in instances],
        max_length=[one.get("max_length") for one in instances],
        min_prize=[one.get("min_prize") for one in instances],
        seconds=fields["seconds"],
        seed=fields["seed"],
        policy=fields["policy"],
        device="cpu",
        threads=1,
    )
    return {"answers": [answer(solution) for solution in solutions]}


# --------------------------------------------------------------------------------------------------- files


def read_file(fields: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The stops of a file's text as the fields of a request."""
    from pathlib import PurePath

    from routelearn.data import csv_file, cvrplib, json_file, tsplib
    from routelearn.data.files import decode
    from routelearn.data.reading import FORMATS, sniff

    name = fields["name"] or "stops"
    text = decode(fields["text"].encode("utf-8", "surrogatepass"), name)
    kind = FORMATS.get(PurePath(name).suffix.lower()) or sniff(text)
    parsers: dict[str, Callable[[str, str], Stops]] = {
        "json": json_file.parse,
        "tsplib": tsplib.parse,
        "cvrplib": cvrplib.parse,
    }
    stops = parsers.get(kind, csv_file.parse)(text, name)
    if len(stops.ids) > limits.nodes:
        raise over(422, "nodes", limits.nodes, f"{len(stops.ids)} stops", "text")
    columns = {
        "coords": stops.xy,
        "latlon": stops.latlon,
        "matrix": stops.matrix,
        "prize": stops.prize,
        "penalty": stops.penalty,
        "real_prize": stops.real_prize,
    }
    result: dict[str, Any] = {name: value.tolist() for name, value in columns.items() if value is not None}
    if stops.demand is not None:
        result["demand"] = [float(value) for value in stops.demand]
    result["ids"] = list(stops.ids)
    for name in ("depot", "problem", "max_length", "min_prize"):
        if getattr(stops, name) is not None:
            result[name] = getattr(stops, name)
    if stops.capacity is not None:
        result["capacity"] = float(stops.capacity)
    return result
