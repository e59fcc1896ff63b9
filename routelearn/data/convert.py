"""Stops into instances: which problem they are, the policy's view of them, and the referee's in the user's units."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch

from routelearn.data import names
from routelearn.data.fields import LARGEST_WHOLE, attributes_of, needed, template
from routelearn.data.geometry import LANDMARKS, from_distances, great_circle, into_unit_square, project
from routelearn.data.notes import on_places
from routelearn.data.numbers import exact, real
from routelearn.data.stops import MATRIX_STOPS, Stops
from routelearn.errors import InputError
from routelearn.problems import Problem, get
from routelearn.problems.attributes import OWN, of_unit

COLUMNS = ("xy", "distances", *(one.name for one in OWN))  # the fields that stops can fill
NARROW = 0.1  # of the unit square: places that lie closer together are scaled to fill it
DECIMALS = 10**6  # demands are told apart to this fraction


@dataclass(frozen=True)
class Scale:
    """How node numbers and the policy's units translate into the user's."""

    stop: tuple[int, ...]  # node number -> index of the stop in the file; the depot is node 0
    ids: tuple[str | int, ...]  # node number -> the user's id
    length: float  # the user's length of one unit of the policy
    prize: float  # the user's prize of one unit of the policy
    demand: int  # the instance's whole units in one unit of the user's demand
    unit: str  # "km" for places on the globe, otherwise ""


class Converted(NamedTuple):
    problem: Problem
    policy: Any  # Instance, B = 1, single precision, in the unit square
    referee: Any  # Instance, B = 1, double precision, in the user's units
    scale: Scale
    notes: tuple[str, ...] = ()  # what the user should know of the stops, one line each


def to_instance(
    stops: Stops,
    problem: str | None = None,
    capacity: float | str | Fraction | None = None,
    max_length: float | None = None,
    min_prize: float | None = None,
) -> Converted:
    """The stops as instances of `problem`, or of the problem their fields imply (docs/formats.md).

    Arguments override the values of the file. Lengths follow the matrix, else great circles, else straight
    lines; the policy sees places in the unit square, with every length, limit and penalty in that scale.
    """
    if len(stops.ids) < 2:
        raise InputError(f"{stops.source}: one stop; a route needs at least 2")
    limits = _Limits(stops, capacity, max_length, min_prize)
    chosen = _problem(stops, problem or stops.problem or _infer(stops, limits))
    limits.check_used(chosen)
    fields = template(chosen)._fields
    check_columns(chosen, stops.source)
    order = _order(stops, chosen.has_depot or stops.depot is not None)
    xy, matrix = _geometry(stops, order)
    referee: dict[str, Any] = {"xy": xy}
    if matrix is not None:
        referee["distances"] = matrix
    demand_unit, prize_unit = 1, 1.0
    if "demand" in fields:
        referee["demand"], referee["capacity"], demand_unit = _whole_demand(stops, chosen, limits.capacity, order)
    if "prize" in fields:
        referee["prize"] = _column(stops, chosen, "prize", order, _usual_prize(chosen, limits))
        prize_unit = float(referee["prize"].max()) or 1.0
    if "max_length" in fields:
        referee["max_length"] = _required(limits.max_length, stops, chosen, "maximum length", "max_length")
    if "penalty" in fields:
        referee["penalty"] = _column(stops, chosen, "penalty", order)
        least = limits.min_prize if stops.prize is not None else limits.min_prize or 0.0
        referee["min_prize"] = _required(least, stops, chosen, "minimum prize", "min_prize (0 for none)")
        total = float(referee["prize"].sum())
        if total < referee["min_prize"] * (1 - 1e-9):
            raise InputError(
                f"{stops.source}: the minimum prize {referee['min_prize']:g} is out of reach; "
                f"all prizes together are {total:g}"
            )
        prize_unit = float(referee["min_prize"]) or total / 2 or 1.0
        if chosen.reveals_on_visit:
            referee["real_prize"] = _column(stops, chosen, "real_prize", order)
    unit_xy, length_unit = _normalised(xy, matrix)
    policy = dict(referee, xy=unit_xy)
    lengths, prizes = scaled(chosen)
    policy |= {name: policy[name] / length_unit for name in lengths if name in policy}
    policy |= {name: policy[name] / prize_unit for name in prizes if name in policy}
    kilometres = stops.metric in ("great-circle", "GEO")
    scale = Scale(
        tuple(order),
        tuple(stops.ids[i] for i in order),
        length_unit,
        prize_unit,
        demand_unit,
        "km" if kilometres else "",
    )
    return Converted(
        chosen,
        _instance(chosen, policy, torch.float32, stops),
        _instance(chosen, referee, torch.float64, stops),
        scale,
        notes_on(stops, chosen),
    )


def notes_on(stops: Stops, problem: Problem) -> tuple[str, ...]:
    """What the user should know of the stops: how the file was read, what in it is not used, and odd places."""
    fields = template(problem)._fields
    idle = [name for name in (*names.COLUMNS, *names.LIMITS) if getattr(stops, name) is not None]
    idle = [name for name in idle if name not in fields or (name == "real_prize" and not problem.reveals_on_visit)]
    unused = (*(stops.said.get(name, name) for name in idle), *stops.unused)
    return (*stops.notes, *((names.not_used(unused),) if unused else ()), *on_places(stops))


def unfilled(problem: Problem) -> list[str]:
    """Fields of the problem's instances that stops cannot fill; a user's own problem may have some."""
    return [name for name in needed(problem) if name not in COLUMNS]


def check_columns(problem: Problem, source: str) -> None:
    if unknown := unfilled(problem):
        raise InputError(
            f"{source}: {problem.name} needs {' and '.join(unknown)} for its instances, which stops cannot give; "
            "evaluate takes them from an .npz"
        )


def scaled(problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields that change with the unit of length (times do, too), and those that change with the unit of prizes."""
    attributes = attributes_of(problem)
    return ("distances", *of_unit(attributes, "length", "time")), of_unit(attributes, "prize")


def for_policy(problem: Problem, x: Any) -> Any:
    """Instances as policies are trained to see them: places in the unit square, lengths in its scale, prizes up to 1.

    Those that are so already, as every set of the paper, stay as they are to the last bit.
    """
    lengths, prizes = scaled(problem)
    places = x.xy.double().cpu().numpy().copy()
    low, high = places.min((1, 2)), places.max((1, 2))
    narrow = (places.max(1) - places.min(1)).max(1) < NARROW
    foreign = (low < 0) | (high > 1) | narrow | (x.distances is not None)
    units = np.ones(len(places))
    for row in foreign.nonzero()[0]:
        matrix = None if x.distances is None else x.distances[row].double().cpu().numpy()
        places[row], units[row] = _normalised(places[row], matrix)
    changed = {}
    if foreign.any():
        changed["xy"] = torch.as_tensor(places).to(x.xy)
        changed |= _divided(x, lengths, torch.as_tensor(units))
    limits = [one for one in attributes_of(problem) if one.of in ("instance", "vehicle")]
    if of_unit(limits, "length", "time") and "prize" in prizes and x.prize.max() > 1:
        changed |= _divided(x, prizes, x.prize.amax(1).clamp(min=1))
    return x._replace(**changed)


def _divided(x: Any, names: tuple[str, ...], units: torch.Tensor) -> dict[str, torch.Tensor]:
    """Those fields of x that are there, each instance's in its own unit [B]."""
    found = {name: getattr(x, name, None) for name in names}
    return {
        name: (field / units.to(field).view(-1, *(1 for _ in field.shape[1:])))
        for name, field in found.items()
        if field is not None
    }


def _instance(problem: Problem, values: dict[str, Any], dtype: torch.dtype, stops: Stops) -> Any:
    """An Instance with B = 1, validated by the problem."""

    def tensor(value: Any) -> torch.Tensor:
        array = torch.as_tensor(value)[None]
        return array.to(dtype) if array.is_floating_point() else array

    x = type(template(problem))(**{name: tensor(value) for name, value in values.items()})
    try:
        problem.validate(x)
    except InputError as error:
        raise InputError(f"{stops.source}: {str(error).replace(' (instance 0)', '')}") from None
    return x


# --------------------------------------------------------------------------------- which problem it is


class _Limits:
    """The three numbers that belong to the whole problem: from the arguments, else from the file."""

    def __init__(self, stops: Stops, capacity: Any, max_length: Any, min_prize: Any):
        def pick(given: Any, from_file: Any, parse: Callable[[Any, str, str], Any], what: str, zero: bool) -> Any:
            value = from_file if given is None else parse(given, stops.source, f"the {what} given")
            if value is not None and (value < 0 or (value == 0 and not zero)):
                rule = "cannot be negative" if zero else "must be above 0"
                raise InputError(f"{stops.source}: the {what} is {float(value):g}; it {rule}")
            return value

        self.source = stops.source
        self.given = {
            name
            for name, value in (("capacity", capacity), ("max_length", max_length), ("min_prize", min_prize))
            if value is not None
        }
        self.capacity: Fraction | None = pick(capacity, stops.capacity, exact, "capacity", zero=False)
        self.max_length: float | None = pick(max_length, stops.max_length, real, "maximum length", zero=False)
        self.min_prize: float | None = pick(min_prize, stops.min_prize, real, "minimum prize", zero=True)

    def check_used(self, problem: Problem) -> None:
        """Refuse a limit that the problem does not have, instead of ignoring it."""
        unused = self.given - set(template(problem)._fields)
        if unused:
            words = {"max_length": "maximum length", "min_prize": "minimum prize"}
            name = min(unused)
            raise InputError(
                f"{self.source}: {problem.name} has no {words.get(name, name)}; leave it out or name another problem"
            )


def _problem(stops: Stops, name: str) -> Problem:
    try:
        return get(name)
    except InputError as error:
        raise InputError(f"{stops.source}: {error}") from None


def implied_problem(given: Set[str]) -> str | None:
    """The problem that follows from which columns and limits there are; None where that is none, or could be two."""
    collects = given & {"prize", "penalty", "real_prize"}
    if "demand" in given:
        return None if collects else "cvrp"
    if given & {"penalty", "min_prize"}:
        return "spctsp" if "real_prize" in given else "pctsp"
    if "max_length" in given:
        return "op-unif" if "prize" in given else "op-const"
    return None if collects or "capacity" in given else "tsp"


def _infer(stops: Stops, limits: _Limits) -> str:
    """The problem whose fields the stops have. If two problems fit, raise instead of guessing."""
    columns = {name for name in ("demand", "prize", "penalty", "real_prize") if getattr(stops, name) is not None}
    values = {name for name in ("capacity", "max_length", "min_prize") if getattr(limits, name) is not None}
    implied = implied_problem(columns | values)
    if implied is not None:
        return implied
    if "demand" in columns:
        raise InputError(f"{stops.source}: both demands and prizes or penalties; name the problem")
    if columns:
        raise InputError(
            f"{stops.source}: prizes, but neither a maximum length (orienteering) "
            "nor penalties and a minimum prize (prize collecting); add one, or name the problem"
        )
    raise InputError(f"{stops.source}: a capacity, but no demand; give every stop its demand")


# ---------------------------------------------------------------------------------------- the fields


def _required(value: float | None, stops: Stops, problem: Problem, words: str, name: str) -> np.float64:
    if value is None:
        raise InputError(f"{stops.source}: {problem.name} needs a {words}; give {name}")
    return np.float64(value)


def _order(stops: Stops, depot_first: bool) -> list[int]:
    """Stop indices by node number: the depot, then the others as in the file."""
    order = list(range(len(stops.ids)))
    if depot_first and stops.depot:
        order.remove(stops.depot)
        order.insert(0, stops.depot)
    return order


def _usual_prize(problem: Problem, limits: _Limits) -> float | None:
    """Of every stop, where the file has no prizes: 1 if their number counts, 0 if none has to be collected."""
    if problem.name == "op-const":
        return 1.0
    return 0.0 if "penalty" in template(problem)._fields and not limits.min_prize else None


def _column(stops: Stops, problem: Problem, name: str, order: list[int], usual: float | None = None) -> np.ndarray:
    """[N] in node order, checked stop by stop; where the file has none, `usual` for every stop but the depot."""
    values: np.ndarray | None = getattr(stops, name)
    if values is None and usual is not None:
        values = np.full(len(order), usual)
        values[order[0]] = 0.0
    if values is None:
        raise InputError(f"{stops.source}: {problem.name} needs a {name} for every stop; there is no such column")
    _check_amounts(stops, name, values, order[0])
    return values[order]


def _check_amounts(stops: Stops, name: str, values: Any, depot: int) -> None:
    for i, value in enumerate(values):
        if value < 0:
            raise InputError(f"{stops.at(i, name)}: the {name} is {float(value):g}; it cannot be negative")
    if values[depot] != 0:
        first = "" if stops.depot is not None else ", being the first stop (mark another one as depot if it is not)"
        raise InputError(
            f"{stops.at(depot, name)}: the depot{first} has a {name} of {float(values[depot]):g}; it must be 0"
        )


def _whole_demand(
    stops: Stops, problem: Problem, capacity: Fraction | None, order: list[int]
) -> tuple[np.ndarray, np.int64, int]:
    """(demand [N], capacity, unit): whole numbers in exact proportion to what was written."""
    if stops.demand is None:
        raise InputError(f"{stops.source}: {problem.name} needs a demand for every stop; there is no such column")
    if capacity is None:
        raise InputError(f"{stops.source}: {problem.name} needs the vehicle's capacity; give capacity")
    _check_amounts(stops, "demand", stops.demand, order[0])
    demand = [_to_decimals(value, f"{stops.at(i, 'demand')}: the demand") for i, value in enumerate(stops.demand)]
    capacity = _to_decimals(capacity, f"{stops.source}: the capacity")
    if problem.name == "cvrp":
        for i, value in enumerate(demand):
            if value > capacity:
                raise InputError(
                    f"{stops.at(i, 'demand')}: stop {str(stops.ids[i])[:40]!r} demands {float(value):g}, "
                    f"more than the capacity {float(capacity):g}; sdvrp may split a delivery"
                )
    unit = math.lcm(capacity.denominator, *(value.denominator for value in demand))
    if max(sum(demand, Fraction(0)), capacity) * unit > LARGEST_WHOLE:
        raise InputError(f"{stops.source}: demands too large or too fine to count exactly; use another unit")
    whole = np.array([int(demand[i] * unit) for i in order], dtype=np.int64)
    return whole, np.int64(capacity * unit), unit


def _to_decimals(value: Fraction, what: str) -> Fraction:
    """The value to six decimals. Binary rounding (0.30000000000000004) is removed; more decimals are refused."""
    if value.denominator == 1:  # nearly always, and fractions are slow
        return value
    decimal = Fraction(round(value * DECIMALS), DECIMALS)
    if abs(decimal - value) * 10**9 > max(abs(value), Fraction(1)):
        raise InputError(f"{what} {float(value):g} has more than 6 decimals; round it, or use another unit")
    return decimal


# -------------------------------------------------------------------------------------- places and lengths


def _geometry(stops: Stops, order: list[int]) -> tuple[np.ndarray, np.ndarray | None]:
    """(xy [N, 2], distances [N, N] or None) in node order and in the user's units."""
    matrix = stops.matrix
    if matrix is not None and order != list(range(len(order))):
        matrix = matrix[np.ix_(order, order)]
    if stops.xy is not None:
        return stops.xy[order], matrix
    if stops.latlon is not None:
        if matrix is None and len(order) > MATRIX_STOPS:
            raise InputError(f"{stops.source}: {len(order)} stops on the globe; at most {MATRIX_STOPS} are allowed")
        places = stops.latlon[order]
        return project(places), great_circle(places) if matrix is None else matrix
    if matrix is not None:
        return from_distances(matrix), matrix
    raise InputError(f"{stops.source}: neither coordinates nor a matrix")


def _normalised(xy: np.ndarray, matrix: np.ndarray | None) -> tuple[np.ndarray, float]:
    """(xy in the unit square, the user's length of one unit).

    With a matrix the unit is the one in which its mean equals the mean distance in the square, so that
    minutes or rounded kilometres fit the places the policy sees. Of many stops, some hundred rows tell.
    """
    square, unit = into_unit_square(xy)
    if matrix is not None:
        rows = slice(None, None, -(-len(xy) // LANDMARKS))
        dx, dy = (square[rows, None, axis] - square[None, :, axis] for axis in (0, 1))
        apart = float(np.sqrt(dx * dx + dy * dy).sum())
        unit = float(matrix[rows].sum()) / apart if apart > 0 else 1.0
    return square, unit if unit > 1e-12 else 1.0
