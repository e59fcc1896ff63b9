"""Stops into instances: which problem they are, the policy's view of them, and the referee's in the user's units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch

from routelearn.data import names
from routelearn.data.fields import LARGEST_WHOLE, attributes_of, template, unfilled
from routelearn.data.geometry import LANDMARKS, from_distances, great_circle, into_unit_square, project
from routelearn.data.guess import guess, plural, with_article
from routelearn.data.notes import on_places
from routelearn.data.numbers import column_of, filled, stand_in, value_of
from routelearn.data.rules import refusal, stated
from routelearn.data.stops import MATRIX_STOPS, Stops
from routelearn.errors import InputError, about
from routelearn.problems import Problem, get
from routelearn.problems.attributes import Attribute, found, of_unit
from routelearn.problems.base import ROUNDINGS, ChecksStops, MeasuresPrizes, Rounded

NARROW = 0.1  # of the unit square: places that lie closer together are scaled to fill it
DECIMALS = 10**6  # demands are told apart to this fraction


@dataclass(frozen=True)
class Scale:
    """How node numbers and the policy's units translate into the user's."""

    ids: tuple[str | int, ...]  # node number -> the user's id; the depot is node 0
    length: float  # the user's length of one unit of the policy
    prize: float  # the user's prize of one unit of the policy
    demand: int  # the instance's whole units in one unit of the user's demand
    unit: str  # "km" for places on the globe, otherwise ""


class Converted(NamedTuple):
    """Stops as an instance of a problem."""

    stops: Stops
    problem: Problem
    policy: Any  # Instance, B = 1, single precision, in the unit square
    referee: Any  # Instance, B = 1, double precision, in the user's units
    scale: Scale
    notes: tuple[str, ...] = ()  # what the user should know of the stops, one line each

    @property
    def nodes(self) -> int:
        return len(self.scale.ids)

    @property
    def size(self) -> int:
        """The stops, or more where demands of many vehicle loads need more visits: what a policy must reach."""
        return max(self.nodes, self.problem.max_steps(self.referee) // 2)


def to_instance(stops: Stops, problem: str | None = None, **given: Any) -> Converted:
    """The stops as instances of `problem`, or of the problem their fields imply (docs/reference/formats.md).

    `given` are attributes of the whole file, such as a capacity; they override its values. Lengths follow the matrix,
    else great circles, else straight lines; the policy sees places in the unit square, with every length, limit and
    penalty in that scale.
    """
    if len(stops.ids) < 2:
        raise InputError(f"{stops.source}: one stop; a route needs at least 2")
    options = {name: value for name, value in given.items() if value is not None}
    decisive = problem or stops.problem
    limits = _limits(stops, options, decisive)
    name = decisive or guess(stops.source, {*stops.columns, *limits})
    with about(stops.source):
        chosen = get(name)
    _check_used(stops.source, chosen, options)
    check_fillable(chosen, stops.source)
    _check_rules(stops, chosen)
    order = _order(stops, chosen.has_depot or stops.depot is not None)
    values, amount_unit = _values(stops, chosen, limits, order)
    xy, matrix = _geometry(stops, order)
    places: dict[str, Any] = {"xy": xy} if matrix is None else {"xy": xy, "distances": matrix}
    referee = _instance(chosen, places | values, torch.float64, stops)
    if matrix is None and stops.metric in ROUNDINGS:  # the policy, who is not asked for so many, sees straight lines
        referee = referee._replace(distances=Rounded(torch.tensor([ROUNDINGS.index(stops.metric)])))
    unit_xy, length_unit = _normalised(xy, matrix)
    prize_unit = float(_prize_unit(chosen, referee)[0]) or 1.0
    policy = places | values | {"xy": unit_xy}
    for fields, unit in zip(scaled(chosen), (length_unit, prize_unit), strict=True):
        policy |= {name: policy[name] / unit for name in fields if name in policy}
    scale = Scale(
        tuple(stops.ids[i] for i in order),
        length_unit,
        prize_unit,
        amount_unit,
        "km" if stops.metric in ("great-circle", "GEO") else "",
    )
    seen = _instance(chosen, policy, torch.float32, stops)
    return Converted(stops, chosen, seen, referee, scale, notes_on(stops, chosen))


def filled_by(problem: Problem) -> dict[str, Attribute]:
    """What stops can give an instance of the problem; what a visit reveals only where the problem keeps it hidden."""
    return {
        one.name: one
        for one in attributes_of(problem)
        if one.of_stops and (problem.reveals_on_visit or not one.revealed_on_visit)
    }


def notes_on(stops: Stops, problem: Problem) -> tuple[str, ...]:
    """What the user should know of the stops: how the file was read, what in it is not used, and odd places."""
    unused = (*(stops.said.get(name, name) for name in _idle(stops, problem)), *stops.unused)
    return (*stops.notes, *((names.not_used(unused),) if unused else ()), *on_places(stops), *_on_times(stops, problem))


def _on_times(stops: Stops, problem: Problem) -> tuple[str, ...]:
    """How long a kilometre takes: a problem that adds times to lengths knows no speed."""
    times = [one.called for one in filled_by(problem).values() if one.unit == "time"]
    if not times or stops.matrix is not None or stops.metric != "great-circle":
        return ()
    return (f"a kilometre takes one unit of time ({', '.join(times)}): with minutes, that is 60 km/h",)


def _idle(stops: Stops, problem: Problem) -> list[str]:
    """The attributes of the stops that the problem does not have."""
    return [name for name in (*stops.columns, *stops.limits) if name not in filled_by(problem)]


def _check_rules(stops: Stops, problem: Problem) -> None:
    """Refuse a rule that another problem has and this one does not."""
    for name in _idle(stops, problem):
        said = stops.said.get(name, name)
        if name in stops.columns and (wrong := stated(said)) is not None:
            raise refusal(stops.source, said, wrong)


def check_fillable(problem: Problem, source: str) -> None:
    if unknown := unfilled(problem):
        raise InputError(
            f"{source}: the problem {problem.name} needs {' and '.join(unknown)} for its instances, "
            "which stops cannot give; evaluate takes them from an .npz"
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
    if prizes and bool(((unit := _prize_unit(problem, x)) > 1).any()):
        changed |= _divided(x, prizes, unit.clamp(min=1))
    return x._replace(**changed)


def _prize_unit(problem: Problem, x: Any) -> torch.Tensor:
    """[B]: what prizes are measured by, 1 where there are none: the problem's own measure, or the largest."""
    if isinstance(problem, MeasuresPrizes):
        return problem.prize_unit(x)
    prize = found(attributes_of(problem), x, "stop", "prize")
    return x.xy.new_ones(len(x.xy)) if prize is None else prize.amax(1)


def _divided(x: Any, names: tuple[str, ...], units: torch.Tensor) -> dict[str, torch.Tensor]:
    """Those fields of x that are there, each instance's in its own unit [B]."""
    fields = {name: getattr(x, name) for name in names}
    return {
        name: (field / units.to(field).view(-1, *(1 for _ in field.shape[1:])))
        for name, field in fields.items()
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


# ---------------------------------------------------------------------------------------- the fields


def _limits(stops: Stops, options: Mapping[str, Any], problem: str | None) -> dict[str, Any]:
    """The numbers that belong to the whole file: the options, else the file's own; checked."""
    known = names.table(problem).limits
    limits: dict[str, Any] = dict(stops.limits)
    for name, value in options.items():
        if name not in known:
            raise InputError(f"{name!r} is not an attribute of any problem; there are {', '.join(known)}")
        limits[name] = value_of(known[name], value, stops.source, f"the {known[name].called} given")
    for name, value in limits.items():
        _check_sign(stops, known[name], value)
    return limits


def _check_used(source: str, problem: Problem, options: Mapping[str, Any]) -> None:
    """Refuse a limit that the problem does not have, instead of ignoring it."""
    has, known = filled_by(problem), names.table().limits
    if unused := sorted(name for name in options if name not in has):
        called = known[unused[0]].called
        raise InputError(f"{source}: {problem.name} has no {called}; leave it out or name another problem")


def _check_sign(stops: Stops, one: Attribute, value: Any, row: int | None = None) -> None:
    """`row` is the stop's, None where the value is of the whole file."""
    if isinstance(value, tuple):
        for part in value:
            _check_sign(stops, one, part, row)
    elif one.sign != "any" and (value < 0 or (value == 0 and one.sign == "positive")):
        rule = "cannot be negative" if one.sign == "not negative" else "must be above 0"
        what = f"{stops.source}: the {one.called}" if row is None else f"{stops.at(row, one.name)}: the {one.name}"
        raise InputError(f"{what} is {float(value):g}; it {rule}")


def _order(stops: Stops, depot_first: bool) -> list[int]:
    """Stop indices by node number: the depot, then the others as in the file."""
    order = list(range(len(stops.ids)))
    if depot_first and stops.depot:
        order.remove(stops.depot)
        order.insert(0, stops.depot)
    return order


def _values(
    stops: Stops, problem: Problem, limits: Mapping[str, Any], order: list[int]
) -> tuple[dict[str, np.ndarray], int]:
    """(the fields of the instance by name, in node order; the whole units in one unit of the user's amounts)."""
    attributes, missing = filled_by(problem), set()
    columns: dict[str, Any] = {}
    of_file: dict[str, Any] = {}
    for name, one in attributes.items():
        value = limits.get(name) if one.of_file else stops.columns.get(name)
        if value is None:
            missing.add(name)
            value = _default(stops, problem, one, order[0])
        if value is None:
            continue
        if one.of_file:
            of_file[name] = _to_decimals(one, value, f"{stops.source}: the {name}")
            continue
        for i, each in enumerate(_listed(value)):
            if one.at_depot or i != order[0]:
                _check_sign(stops, one, each, i)
        _check_depot(stops, one, value[order[0]], order[0])
        columns[name] = value
        if one.whole:
            columns[name] = [
                each if isinstance(each, int) else _to_decimals(one, each, f"{stops.at(i, name)}: the {name}")
                for i, each in enumerate(value)
            ]
    if isinstance(problem, ChecksStops):
        problem.check_stops(replace(stops, columns=columns, limits=of_file, defaults=frozenset(missing)))
    columns = {
        name: [value[i] for i in order] if attributes[name].whole else value[order] for name, value in columns.items()
    }
    return _whole(stops, attributes, columns | of_file)


def _default(stops: Stops, problem: Problem, one: Attribute, depot: int) -> Any:
    """What an attribute is that nobody gave; InputError where it must be given, None where it may be missing."""
    if one.default is not None:
        if one.of_file:
            return filled(one, one.default)
        return column_of(one, [stand_in(one, i == depot) for i in range(len(stops.ids))])
    if not one.required:
        return None
    if one.of == "stop":
        what = f" ({one.help})" if one.revealed_on_visit and one.help else ""
        needs = f"{problem.name} needs {with_article(one.name)} for every stop{what}"
        unread = f" ({names.not_used(stops.unused)})" if stops.unused else ""
        raise InputError(f"{stops.source}: {needs}; there is no such column{unread}")
    what = f"the vehicle's {one.called}" if one.of == "vehicle" else with_article(one.called)
    raise InputError(f"{stops.source}: {problem.name} needs {what}; give {one.name}")


def _listed(values: Any) -> Any:
    """Python's own numbers, in tuples where there are several."""
    if isinstance(values, np.ndarray):
        return values.tolist() if values.ndim == 1 else [tuple(np.ravel(row).tolist()) for row in values]
    return values


def _check_depot(stops: Stops, one: Attribute, value: Any, depot: int) -> None:
    if not one.at_depot and np.any(np.asarray(value, dtype=np.float64) != 0):
        first = "" if stops.depot is not None else ", being the first stop (mark another one as depot if it is not)"
        raise InputError(
            f"{stops.at(depot, one.name)}: the depot{first} has {with_article(one.name)} of {float(np.max(value)):g}; "
            "it must be 0"
        )


def _whole(
    stops: Stops, attributes: Mapping[str, Attribute], values: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], int]:
    """The values as arrays. Exact amounts become whole numbers in exact proportion: (arrays, whole units in one)."""
    exact = {name: np.array(value, dtype=object) for name, value in values.items() if attributes[name].whole}
    amounts = {name for name in exact if attributes[name].unit == "amount"}
    unit = math.lcm(*(int(each.denominator) for name in amounts for each in exact[name].flat))
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items() if name not in exact}
    for name, array in exact.items():
        scaled_up = np.asarray(array * unit if name in amounts else array, dtype=object)
        if sum(abs(each) for each in scaled_up.flat) > LARGEST_WHOLE:
            raise InputError(f"{stops.source}: {plural(name)} too large or too fine to count exactly; use another unit")
        arrays[name] = scaled_up.astype(np.int64)
    return arrays, unit


def _to_decimals(one: Attribute, value: Any, what: str) -> Any:
    """An exact amount to six decimals. Binary rounding (0.30000000000000004) is removed; more decimals are refused.

    What is no amount is counted in ones, and any fraction is refused.
    """
    if isinstance(value, tuple):
        return tuple(_to_decimals(one, part, what) for part in value)
    if not one.whole or value.denominator == 1:
        return value
    if one.unit != "amount":
        raise InputError(f"{what} {float(value):g} has a fraction; whole numbers are needed")
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
