"""What service workers do: a request's fields in, the answer's fields out, by the library's own functions."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from routelearn.data.convert import Converted, to_instance
from routelearn.data.edge_weights import FROM_COORDINATES
from routelearn.data.fields import attributes_of
from routelearn.data.names import table
from routelearn.data.numbers import shown
from routelearn.data.stops import MATRIX_STOPS, Stops
from routelearn.errors import Infeasible, InputError
from routelearn.evaluation.referee import holding
from routelearn.models import shipped
from routelearn.problems.attributes import found
from routelearn.problems.base import Problem
from routelearn.serve import formats
from routelearn.serve.limits import Limits, Refused
from routelearn.solving import Solution, search, solve_many_stops, stops_of
from routelearn.solving.board import Board
from routelearn.solving.heuristic import first_solution
from routelearn.solving.models import find_model
from routelearn.solving.strict import check_strictly

if TYPE_CHECKING:
    from routelearn.rounds.answers import RoundSolution
    from routelearn.rounds.model import Round

PLACES = ("coords", "latlon", "matrix")
MEASURED = ("latlon", "matrix", "metric")  # with one of these, lengths are a matrix of all stops by all stops
METRICS = tuple(name for name in FROM_COORDINATES if name != "GEO")  # of places in the plane
SOURCE = "the request"

# How messages call the fields of a request; the first one that a message names is the field it is about.
_SPOKEN = {"decoding": "decode", "places": "coords", "latitude": "latlon", "id": "ids"}
_OTHERS = ("metric", *PLACES, "ids", "depot", "seconds", "solver", "problem", "decode", "speed")
_ROW = re.compile(r"instance (\d+)\b")
_SHARED = ("problem", "seconds", "solver", "decode")  # fields that a batch has once

MANY_SECONDS = 1.0  # of a batch between two looks whether somebody still waits for it
ALONE = 0.5  # seconds for an instance of a batch, from which it has a search of its own

Send = Callable[[dict[str, Any]], None]
Models = Mapping[str, str]  # model files that serve instead of the shipped ones, by problem
SHIPPED: Models = {}


def source_of(row: int) -> str:
    """What messages call an instance of a batch."""
    return f"instance {row}"


def located(source: str, name: str) -> str:
    """The path of a field in the request: `demand`, or `instances.3.demand` where the source is row 3 of a batch."""
    row = _ROW.match(source)
    return name if row is None or name in _SHARED else f"instances.{row[1]}.{name}"


def field_of(message: str) -> str | None:
    """The field of the request that an InputError is about."""
    row, names = _ROW.match(message), table()
    attributes = {
        word: one.name for one in (*names.columns.values(), *names.limits.values()) for word in (one.name, one.called)
    }
    spoken = {name: name for name in _OTHERS} | _SPOKEN | attributes
    words = "|".join(map(re.escape, sorted(spoken, key=len, reverse=True)))
    match = re.search(rf"\b({words})s?\b", message.removeprefix(SOURCE) if row is None else message[row.end() :])
    return None if match is None else located(message, spoken[match[1]])


def prepare(fields: dict[str, Any], limits: Limits) -> Converted:
    """Read and convert a request. `source`, which clients cannot set, is what messages call the stops.

    Raises InputError as the command line would.
    """
    source = fields.get("source") or SOURCE
    try:
        names = table(fields.get("problem"))
        columns = {name: fields.get(name) for name in (*PLACES, "ids", "depot", *names.columns)}
        stops = stops_of(source=source, problem=fields.get("problem"), **columns)
        if fields.get("metric") is not None:
            stops = measured(stops, fields["metric"])
        if fields.get("notes"):
            stops = replace(stops, notes=tuple(fields["notes"]))
        converted = to_instance(stops, fields.get("problem"), **{name: fields.get(name) for name in names.limits})
    except InputError as error:
        if source == SOURCE or str(error).startswith(source):
            raise
        raise InputError(f"{source}: {error}") from None  # a limit's message names no file; in a batch it must
    check_loads(converted, limits, source)
    formats.allow(form_of(fields), formats.OF_COLUMNS, on_globe=stops.latlon is not None)
    return converted


def form_of(fields: dict[str, Any]) -> str:
    """The format of the answer, which the service sets and clients cannot."""
    return str(fields.get("form", formats.JSON))


def measured(stops: Stops, metric: str) -> Stops:
    """The stops with the lengths that the metric gives, so that a request needs no matrix."""
    if metric not in METRICS:
        raise InputError(f"{stops.source}: metric is {shown(metric)}; the choices are {', '.join(METRICS)}")
    if stops.xy is None or stops.matrix is not None:
        raise InputError(f"{stops.source}: a metric is for coords, without latlon or matrix; leave it out")
    if len(stops.ids) > MATRIX_STOPS:
        raise InputError(f"{stops.source}: a metric for {len(stops.ids)} stops; at most {MATRIX_STOPS} are allowed")
    matrix = FROM_COORDINATES[metric](stops.xy)
    np.fill_diagonal(matrix, 0.0)
    return replace(stops, matrix=matrix, metric=metric)


def check_loads(converted: Converted, limits: Limits, source: str) -> None:
    """Refuse demands that fill too many vehicles: a delivery of a million loads would be a million routes."""
    attributes, x = attributes_of(converted.problem), converted.referee
    demand, capacity = found(attributes, x, "stop", "amount"), found(attributes, x, "vehicle", "amount")
    if demand is not None and capacity is not None:
        loads = -(-int(demand.sum()) // max(1, int(capacity[0])))
        limits.check("nodes", loads, f"{source}: the demands fill {loads} vehicles", located(source, "capacity"))


# ---------------------------------------------------------------------------------------------- answers


TOLD = (
    *("problem", "cost", "objective", "length", "unit", "depot", "routes", "returns", "unvisited", "prize", "limits"),
    *("layout", "seconds"),
)
OF_ROUTE = dict.fromkeys(("stops", "length", "load", "amounts"))


def answer(solution: Solution) -> dict[str, Any]:
    """The fields of schemas.Answer."""
    return {name: getattr(solution, name) for name in TOLD} | {
        "unit": solution.unit or None,
        "routes": [{**OF_ROUTE, "stops": route, **solution.of_route(i)} for i, route in enumerate(solution.routes)],
        "history": [{"seconds": e.seconds, "cost": e.cost, "by": e.by} for e in solution.events],
        "notes": solution.notes,
    }


def finished(query: Converted, board: Board, notes: tuple[str, ...], form: str = formats.JSON) -> Any:
    """The fields of schemas.Answer, or the format asked for."""
    solution = board.solution(query, notes, time.perf_counter() - board.began)
    return formats.formed(answer(solution), solution, form)


# ------------------------------------------------------------------------------------------ constructions


def construct(
    requests: Sequence[tuple[Any, dict[str, Any]]], limits: Limits, models: Models = SHIPPED
) -> Iterator[list[tuple[Any, Any]]]:
    """Lists of (key, answer or exception), for every (key, request) with `seconds: 0`; small instances first.

    Those of one problem, size and strategy are decoded together: one pass of the encoder, one step of the decoder
    for all of them. A list is handed out as soon as it is known, so nobody waits for a larger group.
    """
    refused: list[tuple[Any, Any]] = []
    groups: dict[Any, list[tuple[Any, Converted, dict[str, Any]]]] = {}
    for key, fields in requests:
        try:
            query = prepare(fields, limits)
        except Exception as error:
            refused.append((key, error))
            continue
        x = query.referee
        group = (query.nodes, query.problem.name, x.distances is None, fields["policy"], fields["decode"])
        groups.setdefault((*group, fields["seed"] if fields["decode"] else 0), []).append((key, query, fields))
    if refused:
        yield refused
    for _, members in sorted(groups.items(), key=lambda item: item[0][0]):
        yield _construct_group(members, models)


@torch.no_grad()
def _construct_group(members: list[tuple[Any, Converted, dict[str, Any]]], models: Models) -> list[tuple[Any, Any]]:
    from routelearn.decoding.decode import decode
    from routelearn.problems.base import concat

    key, first, fields = members[0]
    problem, boards = first.problem, [Board() for _ in members]
    size = max(query.size for _, query, _ in members)
    try:
        model, notes = find_model(problem, size, fields["policy"], models.get(problem.name))
        if model is None and fields["decode"] is not None:
            raise no_policy(problem, size, models)
        if model is not None:
            seen = concat([query.policy for _, query, _ in members])
            x = concat([query.referee for _, query, _ in members])
            tours = decode(problem, model.policy, seen, fields["decode"] or "greedy", seed=fields["seed"]).tour
            good = holding(partial(check_strictly, problem), x, tours)  # built in single precision, one may not hold
            _submit(problem, x, tours, boards, "policy", good.tolist())
            if fields["decode"] is None and not problem.reveals_on_visit:  # as `search`: the better of the two
                built = [first_solution(problem, query.referee)[0, 0] for _, query, _ in members]
                # Of different lengths only where 0 is the depot, and 0s at the end mean nothing.
                tours = torch.nn.utils.rnn.pad_sequence(built, batch_first=True)[:, None]
                _submit(problem, x, tours, boards, "heuristic", [True] * len(boards))
    except Exception as error:
        return [(key, error) for key, _, _ in members]
    results: list[tuple[Any, Any]] = []
    for (key, query, fields), board in zip(members, boards, strict=True):
        try:
            if board.tour is None:
                search(query, board, seconds=0.0, model=None, seed=fields["seed"], threads=1)
            results.append((key, finished(query, board, notes, form_of(fields))))
        except Exception as error:
            results.append((key, error))
    return results


def no_policy(problem: Problem, size: int, models: Models) -> InputError:
    """Why there is no policy that could decode so many stops or loads."""
    able = sorted({entry["problem"] for entry in shipped().values()} | set(models))
    if problem.name in able:
        return InputError(
            f"{size} stops or loads are far beyond what the model for {problem.name} was trained on, "
            "so no policy decodes them"
        )
    return InputError(
        f"no trained model ships for {problem.name} yet, so there is no policy that decodes; "
        f"the problem can be one of: {', '.join(able) or 'none'}"
    )


def _submit(problem: Problem, x: Any, tours: Tensor, boards: list[Board], by: str, good: list[bool]) -> None:
    """Submit each feasible tour of [B, 1, T] to its board."""
    costs = problem.cost(x, tours)[:, 0].tolist()
    for board, tour, cost, holds in zip(boards, tours.split(1), costs, good, strict=True):
        if holds:
            board.submit(tour, cost, by)


# ------------------------------------------------------------------------------------------------ searches


def solve(fields: dict[str, Any], limits: Limits, board: Board, send: Send | None, models: Models = SHIPPED) -> Any:
    """The best solution found in the request's seconds; `send` hears of better ones."""
    if "iterations" in fields:
        return _round(fields, board.stop, send)
    if fields["seconds"] == 0 and fields["solver"] is None:
        [[(_, result)]] = construct([(0, fields)], limits, models)
        if isinstance(result, Exception):
            raise result
        return result
    query = prepare(fields, limits)
    if fields["solver"] is not None:
        return _classical(query, fields, board)
    return _search(query, fields, board, send, models)


def _search(query: Converted, fields: dict[str, Any], board: Board, send: Send | None, models: Models) -> Any:
    """Policy and search together."""
    from routelearn.search.search import load_kernels

    problem = query.problem
    model, notes = find_model(problem, query.size, fields["policy"], models.get(problem.name))
    load_kernels(problem, query.referee)  # before the clock runs
    board.began = time.perf_counter()
    if send is not None:
        board.watch = lambda event: send(finished(query, board, notes))
    search(query, board, seconds=fields["seconds"], model=model, seed=fields["seed"], threads=1)
    return finished(query, board, notes, form_of(fields))


# Fields of a request that are not part of the round's document.
NOT_DOCUMENT = ("seconds", "iterations", "seed", "drawing", "routes", "source", "form")


def round_of(fields: dict[str, Any]) -> Round:
    """The round of a request; raises InputError as the command line would."""
    from routelearn.rounds.files import round_from_document

    document = {name: value for name, value in fields.items() if name not in NOT_DOCUMENT and value is not None}
    round_ = round_from_document(document, SOURCE)
    formats.allow(form_of(fields), formats.OF_ROUND, on_globe=round_.latlon is not None)
    return round_


def _round(fields: dict[str, Any], stop: threading.Event, send: Send | None) -> Any:
    from routelearn.rounds.solving import solve_round

    found = solve_round(
        round_of(fields), seconds=fields["seconds"], iterations=fields["iterations"], seed=fields["seed"], threads=1,
        better=None if send is None else lambda one: send(_document(one, fields)), stop=stop,
    )  # fmt: skip
    return _told(found, fields)


def check(fields: dict[str, Any]) -> Any:
    """A plan of a round, with every rule that it breaks."""
    from routelearn.rounds.given import given_plan, keeping, routes_of
    from routelearn.rounds.solving import check_round

    round_ = round_of(fields)
    given = given_plan(round_, routes_of(fields, SOURCE), SOURCE)
    return _told(check_round(*keeping(round_, given.drives, given.kept)), fields)


def _document(found: RoundSolution, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of schemas.RoundAnswer."""
    from routelearn.plots.round_page import page_data

    return found.document() | ({"drawing": page_data(found)} if fields.get("drawing") else {})


def _told(found: RoundSolution, fields: dict[str, Any]) -> Any:
    """The plan as JSON, or in the format asked for."""
    return formats.formed(_document(found, fields), found, form_of(fields))


def _classical(query: Converted, fields: dict[str, Any], board: Board) -> Any:
    """Solve with a solver of the registry and check its answer. Hidden prizes are revealed visit by visit."""
    from routelearn import solvers
    from routelearn.solvers import reveal

    problem, x = query.problem, query.referee
    solver = solvers.get(fields["solver"])
    if problem.name not in solver.problems:
        able = ", ".join(other.name for other in solvers.for_problem(problem.name))
        raise InputError(f"the solver {solver.name} cannot solve {problem.name}; those that can: {able}")
    if (reason := solver.unavailable()) is not None:
        raise InputError(f"the solver {solver.name} is not usable here: {reason}")
    if solver.anytime and fields["seconds"] == 0:
        raise InputError(f"the solver {solver.name} needs time; give seconds above 0")
    board.began = time.perf_counter()
    tour = reveal.run(solver, problem, x, seconds=fields["seconds"], seed=fields["seed"])
    try:
        problem.check(x, tour)
    except (Infeasible, InputError):
        raise InputError(f"the solver {solver.name} found no solution in {fields['seconds']:g} seconds") from None
    board.submit(tour, float(problem.cost(x, tour)), solver.name)
    return finished(query, board, (), form_of(fields))


def solve_batch(
    fields: dict[str, Any], limits: Limits, stop: threading.Event, models: Models = SHIPPED
) -> dict[str, Any]:
    """Searches of many instances, the seconds being for all of them together; `stop` ends them early.

    Where there is time enough each has a search of its own. Else they are solved in parts of about a second, which
    share the decoder's passes.
    """
    from routelearn.search.search import load_kernels

    instances = fields["instances"]
    queries = [
        prepare({**one, "problem": fields["problem"], "source": source_of(row)}, limits)
        for row, one in enumerate(instances)
    ]
    for query in queries:
        load_kernels(query.problem, query.referee)  # before the clock runs
    end, share = time.perf_counter() + fields["seconds"], fields["seconds"] / len(queries)
    answers: dict[int, dict[str, Any]] = {}
    for rows in _parts(queries, 1 if share >= ALONE else max(1, int(MANY_SECONDS / share))):
        if stop.is_set():
            raise Refused(499, "the client went away")
        left = max(1e-9, (end - time.perf_counter()) * len(rows) / (len(queries) - len(answers)))
        if share >= ALONE:
            board = Board()
            board.stop = stop
            answers[rows[0]] = _search(queries[rows[0]], {**fields, "seconds": left}, board, None, models)
            continue
        solutions = solve_many_stops(
            [queries[row].stops for row in rows],
            problem=fields["problem"],
            **{name: [instances[row].get(name) for row in rows] for name in table(fields["problem"]).limits},
            seconds=left,
            seed=fields["seed"],
            policy=fields["policy"],
            model=models.get(queries[rows[0]].problem.name),
            decode="greedy",
            device="cpu",
            threads=1,
            told=None,
        )
        answers.update(zip(rows, map(answer, solutions), strict=True))
    return {"answers": [answers[row] for row in range(len(queries))]}


def _parts(queries: Sequence[Converted], most: int) -> Iterator[list[int]]:
    """Rows of up to `most` queries of one problem, those of a size together."""
    groups: dict[str, list[int]] = {}
    for row in sorted(range(len(queries)), key=lambda row: queries[row].nodes):
        groups.setdefault(queries[row].problem.name, []).append(row)
    for rows in groups.values():
        yield from (rows[low : low + most] for low in range(0, len(rows), most))
