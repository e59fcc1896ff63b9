"""Instances as the text that LKH, Concorde and Compass read: TSPLIB, CVRPLIB and OPLIB, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from routelearn.solvers.tasks import Task, unit_scale, whole

FINE = 10**7  # OP, as the paper (D.3): a limit is kept in whole numbers, so rounding must be finer
LARGEST = 10**6  # of a coordinate or a leg: rounding is far below what a tour can tell, sums far below 2^31

Header = dict[str, object]
Sections = list[tuple[str, list[list[int]]]]


def _lines(header: Header, sections: Iterable[tuple[str, Iterable[Sequence[int]]]]) -> str:
    text = [f"{key} : {value}" for key, value in header.items()]
    for name, rows in sections:
        text.append(name)
        text += [" ".join(map(str, row)) for row in rows]
    return "\n".join((*text, "EOF", ""))


def _geometry(task: Task, largest: float = LARGEST, *, up: bool = False) -> tuple[Header, Sections, float]:
    """How distances are given, by coordinates (none of them negative) or by the instance's own matrix: to the nearest
    whole number, or `up` to the next one. And what they were multiplied by."""
    if task.distances is None:
        places = task.xy - task.xy.min(0)
        scale = unit_scale(places, largest)
        numbered = [[node, *point] for node, point in enumerate(whole(places, scale).tolist(), 1)]
        return {"EDGE_WEIGHT_TYPE": "CEIL_2D" if up else "EUC_2D"}, [("NODE_COORD_SECTION", numbered)], scale
    legs = task.legs()
    scale = unit_scale(legs, largest)
    rows = (np.ceil(legs * scale) if up else np.rint(legs * scale)).astype(np.int64).tolist()
    header: Header = {"EDGE_WEIGHT_TYPE": "EXPLICIT", "EDGE_WEIGHT_FORMAT": "FULL_MATRIX"}
    return header, [("EDGE_WEIGHT_SECTION", rows)], scale


def _numbered(values: np.ndarray) -> list[list[int]]:
    return [[node, int(value)] for node, value in enumerate(values, 1)]


def tsp_text(task: Task) -> str:
    """TSPLIB; of type ATSP where the matrix is not symmetric."""
    kind = "TSP" if task.symmetric() else "ATSP"
    header, sections, _ = _geometry(task)
    return _lines({"NAME": "instance", "TYPE": kind, "DIMENSION": task.nodes, **header}, sections)


def cvrp_text(task: Task) -> str:
    """CVRPLIB; of type ACVRP (LKH-3's name) where the matrix is not symmetric."""
    kind = "CVRP" if task.symmetric() else "ACVRP"
    header, sections, _ = _geometry(task)
    return _lines(
        {"NAME": "instance", "TYPE": kind, "DIMENSION": task.nodes, "CAPACITY": task.capacity, **header},
        [*sections, ("DEMAND_SECTION", _numbered(task.demand)), ("DEPOT_SECTION", [[1], [-1]])],
    )


def op_text(task: Task) -> str:
    """OPLIB. Legs are rounded up and the limit down, so that a tour within it is within the floats' limit too."""
    # rounded coordinates shorten a leg by sqrt(2) at most and by nothing on average, rounding up adds a half
    header, sections, scale = _geometry(task, FINE, up=True)
    prizes = whole(task.prize, unit_scale(task.prize, LARGEST))
    limit = int(task.max_length * scale)
    return _lines(  # no NAME, at which some builds of Compass crash
        {"TYPE": "OP", "DIMENSION": task.nodes, "COST_LIMIT": limit, **header},
        [*sections, ("NODE_SCORE_SECTION", _numbered(prizes)), ("DEPOT_SECTION", [[1], [-1]])],
    )
