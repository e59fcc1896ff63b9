"""Instances as the text that LKH, Concorde and Compass read: TSPLIB, CVRPLIB and OPLIB, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from routelearn.solvers.tasks import Task, unit_scale, whole

FINE = 10**7  # OP, as the paper (D.3): a limit is kept in whole numbers, so rounding must be finer
LARGEST = 10**6  # of a coordinate or a leg: rounding is far below what a tour can tell, sums far below 2^31


def _lines(header: dict[str, object], sections: Iterable[tuple[str, Iterable[Sequence[int]]]]) -> str:
    text = [f"{key} : {value}" for key, value in header.items()]
    for name, rows in sections:
        text.append(name)
        text += [" ".join(map(str, row)) for row in rows]
    return "\n".join((*text, "EOF", ""))


def _places(task: Task, scale: float) -> list[list[int]]:
    """Numbered from 1; moved so that no coordinate is negative."""
    points = whole(task.xy - task.xy.min(0), scale).tolist()
    return [[node + 1, *point] for node, point in enumerate(points)]


def _geometry(task: Task) -> tuple[dict[str, object], list[tuple[str, list[list[int]]]]]:
    """How distances are given: by coordinates, or by the instance's own matrix."""
    if task.distances is None:
        scale = unit_scale(task.xy - task.xy.min(0), LARGEST)
        return {"EDGE_WEIGHT_TYPE": "EUC_2D"}, [("NODE_COORD_SECTION", _places(task, scale))]
    legs = task.legs()
    rows = whole(legs, unit_scale(legs, LARGEST)).tolist()
    header: dict[str, object] = {"EDGE_WEIGHT_TYPE": "EXPLICIT", "EDGE_WEIGHT_FORMAT": "FULL_MATRIX"}
    return header, [("EDGE_WEIGHT_SECTION", rows)]


def tsp_text(task: Task) -> str:
    """TSPLIB; of type ATSP where the matrix is not symmetric."""
    kind = "TSP" if task.symmetric() else "ATSP"
    header, sections = _geometry(task)
    return _lines({"NAME": "instance", "TYPE": kind, "DIMENSION": task.nodes, **header}, sections)


def cvrp_text(task: Task) -> str:
    """CVRPLIB; of type ACVRP (LKH-3's name) where the matrix is not symmetric."""
    assert task.demand is not None
    kind = "CVRP" if task.symmetric() else "ACVRP"
    header, sections = _geometry(task)
    demands = [[node + 1, int(demand)] for node, demand in enumerate(task.demand)]
    return _lines(
        {"NAME": "instance", "TYPE": kind, "DIMENSION": task.nodes, "CAPACITY": task.capacity, **header},
        [*sections, ("DEMAND_SECTION", demands), ("DEPOT_SECTION", [[1], [-1]])],
    )


def op_text(task: Task) -> str:
    """OPLIB. Legs are rounded up and the limit down, so that a tour within it is within the floats' limit too."""
    assert task.prize is not None
    header: dict[str, object]
    if task.distances is None:
        # rounded coordinates shorten a leg by sqrt(2) at most and by nothing on average, rounding up adds a half
        scale = unit_scale(task.xy - task.xy.min(0), FINE)
        header = {"EDGE_WEIGHT_TYPE": "CEIL_2D"}
        sections = [("NODE_COORD_SECTION", _places(task, scale))]
    else:
        legs = task.legs()
        scale = unit_scale(legs, FINE)
        header = {"EDGE_WEIGHT_TYPE": "EXPLICIT", "EDGE_WEIGHT_FORMAT": "FULL_MATRIX"}
        sections = [("EDGE_WEIGHT_SECTION", np.ceil(legs * scale).astype(np.int64).tolist())]
    prizes = whole(task.prize, unit_scale(task.prize, LARGEST))
    limit = int(task.max_length * scale)
    return _lines(
        {"NAME": "instance", "TYPE": "OP", "DIMENSION": task.nodes, "COST_LIMIT": limit, **header},
        [
            *sections,
            ("NODE_SCORE_SECTION", [[node + 1, int(prize)] for node, prize in enumerate(prizes)]),
            ("DEPOT_SECTION", [[1], [-1]]),
        ],
    )
