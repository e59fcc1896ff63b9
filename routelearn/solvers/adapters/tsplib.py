"""Instances as the text that LKH, Concorde and Compass read: TSPLIB, CVRPLIB and OPLIB, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from routelearn.solvers.tasks import Job, unit_scale, whole

FINE = 10**7  # OP, as the paper (D.3): a limit is kept in whole numbers, so rounding must be finer
LARGEST = 10**6  # of a coordinate or a leg: rounding is far below what a tour can tell, sums far below 2^31


def _lines(header: dict[str, object], sections: Iterable[tuple[str, Iterable[Sequence[int]]]]) -> str:
    text = [f"{key} : {value}" for key, value in header.items()]
    for name, rows in sections:
        text.append(name)
        text += [" ".join(map(str, row)) for row in rows]
    return "\n".join((*text, "EOF", ""))


def _places(job: Job, scale: float) -> list[list[int]]:
    """Numbered from 1; moved so that no coordinate is negative."""
    points = whole(job.xy - job.xy.min(0), scale).tolist()
    return [[node + 1, *point] for node, point in enumerate(points)]


def _geometry(job: Job) -> tuple[dict[str, object], list[tuple[str, list[list[int]]]]]:
    """How distances are given: by coordinates, or by the instance's own matrix."""
    if job.distances is None:
        scale = unit_scale(job.xy - job.xy.min(0), LARGEST)
        return {"EDGE_WEIGHT_TYPE": "EUC_2D"}, [("NODE_COORD_SECTION", _places(job, scale))]
    legs = job.legs()
    rows = whole(legs, unit_scale(legs, LARGEST)).tolist()
    header: dict[str, object] = {"EDGE_WEIGHT_TYPE": "EXPLICIT", "EDGE_WEIGHT_FORMAT": "FULL_MATRIX"}
    return header, [("EDGE_WEIGHT_SECTION", rows)]


def tsp_text(job: Job) -> str:
    """TSPLIB; of type ATSP where the matrix is not symmetric."""
    kind = "TSP" if job.symmetric() else "ATSP"
    header, sections = _geometry(job)
    return _lines({"NAME": "instance", "TYPE": kind, "DIMENSION": job.nodes, **header}, sections)


def cvrp_text(job: Job) -> str:
    """CVRPLIB; of type ACVRP (LKH-3's name) where the matrix is not symmetric."""
    assert job.demand is not None
    kind = "CVRP" if job.symmetric() else "ACVRP"
    header, sections = _geometry(job)
    demands = [[node + 1, int(demand)] for node, demand in enumerate(job.demand)]
    return _lines(
        {"NAME": "instance", "TYPE": kind, "DIMENSION": job.nodes, "CAPACITY": job.capacity, **header},
        [*sections, ("DEMAND_SECTION", demands), ("DEPOT_SECTION", [[1], [-1]])],
    )


def op_text(job: Job) -> str:
    """OPLIB. Legs are rounded up and the limit down, so that a tour within it is within the floats' limit too."""
    assert job.prize is not None
    header: dict[str, object]
    if job.distances is None:
        # rounded coordinates shorten a leg by sqrt(2) at most and by nothing on average, rounding up adds a half
        scale = unit_scale(job.xy - job.xy.min(0), FINE)
        header = {"EDGE_WEIGHT_TYPE": "CEIL_2D"}
        sections = [("NODE_COORD_SECTION", _places(job, scale))]
    else:
        legs = job.legs()
        scale = unit_scale(legs, FINE)
        header = {"EDGE_WEIGHT_TYPE": "EXPLICIT", "EDGE_WEIGHT_FORMAT": "FULL_MATRIX"}
        sections = [("EDGE_WEIGHT_SECTION", np.ceil(legs * scale).astype(np.int64).tolist())]
    prizes = whole(job.prize, unit_scale(job.prize, LARGEST))
    limit = int(job.max_length * scale)
    return _lines(
        {"NAME": "instance", "TYPE": "OP", "DIMENSION": job.nodes, "COST_LIMIT": limit, **header},
        [
            *sections,
            ("NODE_SCORE_SECTION", [[node + 1, int(prize)] for node, prize in enumerate(prizes)]),
            ("DEPOT_SECTION", [[1], [-1]]),
        ],
    )
