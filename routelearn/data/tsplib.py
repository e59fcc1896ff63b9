"""TSPLIB files (`.tsp`, `.atsp`, and the extensions `.vrp` and `.oplib`): text into sections, sections into Stops.

Written for these files rather than through vrplib, which keeps neither node numbers nor lines and reads
neither GEO, ATT nor triangles with a diagonal.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from routelearn.data.edge_weights import FROM_COORDINATES, degrees, explicit
from routelearn.data.names import Table, table
from routelearn.data.numbers import column_of, filled, real, shown, value_of
from routelearn.data.stops import MATRIX_STOPS, Stops, checked_matrix
from routelearn.errors import InputError
from routelearn.problems.base import ROUNDINGS

TYPES = ("TSP", "ATSP", "CVRP", "OP")
SECTIONS = ("NODE_COORD", "DISPLAY_DATA", "EDGE_WEIGHT", "DEPOT")  # before _SECTION, beside those of attributes
_KEYWORD = re.compile(r"[A-Za-z][A-Za-z_0-9]*")

Lines = list[tuple[int, list[str]]]  # line number and its words


@dataclass
class Document:
    """A file of the TSPLIB family, taken apart."""

    source: str
    values: dict[str, tuple[int, str]]  # keyword -> line, text
    sections: dict[str, Lines]

    def value(self, keyword: str) -> str | None:
        return self.values[keyword][1] if keyword in self.values else None

    def at(self, line: int) -> str:
        return f"{self.source}, line {line}"

    def by_node(self, section: str, numbers: dict[int, int], width: int) -> list[tuple[int, list[str]]]:
        """(line, words after the node's number) for every node, in node order; one line per node."""
        found: dict[int, tuple[int, list[str]]] = {}
        for line, words in self.sections[section]:
            if len(words) != width + 1:
                raise InputError(f"{self.at(line)}: {len(words)} words; {section} has {width + 1} per line")
            node = node_number(words[0], self.at(line))
            if node not in numbers:
                raise InputError(f"{self.at(line)}: node {node} has no coordinates or lies outside DIMENSION")
            if node in found:
                raise InputError(f"{self.at(line)}: node {node} is given twice, first in line {found[node][0]}")
            found[node] = (line, words[1:])
        missing = next((node for node in numbers if node not in found), None)
        if missing is not None:
            raise InputError(f"{self.source}: {section} has no line for node {missing}")
        return [found[node] for node in numbers]


def node_number(word: str, where: str) -> int:
    if not re.fullmatch(r"\d{1,9}", word, re.ASCII):
        raise InputError(f"{where}: {shown(word)} is not the number of a node")
    return int(word)


def count_of(parts: Document, keyword: str) -> int:
    """The whole number that a keyword gives."""
    line, word = parts.values[keyword]
    if not re.fullmatch(r"\d{1,9}", word, re.ASCII):
        raise InputError(f"{parts.at(line)}: {keyword} is {shown(word)}; a whole number is needed")
    return int(word)


def document(text: str, source: str, problem: str | None = None, more: tuple[str, ...] = ()) -> Document:
    """Keywords with their values, and sections with their lines, up to EOF; `more` sections than usual may be there."""
    known = (
        *SECTIONS,
        *more,
        *(one.library.removesuffix("_SECTION") for one in table(problem).columns.values() if one.library),
    )
    parts = Document(source, {}, {})
    section: Lines | None = None
    for line, content in enumerate(text.splitlines(), 1):
        head, colon, value = content.partition(":")
        keyword = head.strip().upper()
        if not content.strip():
            continue
        if not _KEYWORD.fullmatch(keyword):
            if section is None:
                raise InputError(f"{source}, line {line}: {shown(content.strip())}; a KEYWORD : value is needed here")
            section.append((line, content.split()))
        elif keyword == "EOF":
            break
        elif keyword.endswith("_SECTION"):
            if keyword.removesuffix("_SECTION") not in known:
                raise InputError(
                    f"{source}, line {line}: {shown(keyword)} is not supported; the choices are "
                    f"{', '.join(dict.fromkeys(known))}"
                )
            if keyword in parts.sections:
                raise InputError(f"{source}, line {line}: a second {keyword}")
            section = parts.sections[keyword] = []
        elif not colon:
            raise InputError(f"{source}, line {line}: {shown(content.strip())}; a value after a colon is needed")
        else:
            section = None
            parts.values.setdefault(keyword, (line, value.strip().strip('"').strip()))
    if not parts.sections:
        raise InputError(f"{source}: no section; a TSPLIB file has NODE_COORD_SECTION or EDGE_WEIGHT_SECTION")
    return parts


def parse(text: str, source: str, rounded: bool = True, problem: str | None = None) -> Stops:
    """The nodes of a TSPLIB text, with its own rounded lengths (`rounded=False`: plain Euclidean for EUC_2D)."""
    parts = document(text, source, problem)
    if "DEMAND_SECTION" in parts.sections:
        raise InputError(f"{source}: a DEMAND_SECTION; a file with demands must end in .vrp")
    return places(parts, rounded, problem)


def parse_vrp(text: str, source: str, rounded: bool = True, problem: str | None = None) -> Stops:
    """The customers of a CVRPLIB text (`.vrp`), which has a depot, a capacity and demands; lengths as in `parse`."""
    parts = document(text, source, problem)
    if "DEMAND_SECTION" not in parts.sections:
        raise InputError(f"{source}: no DEMAND_SECTION; a .vrp file gives every node's demand")
    if "CAPACITY" not in parts.values:
        raise InputError(f"{source}: no CAPACITY")
    stops = places(parts, rounded, problem)
    return replace(stops, depot=stops.depot or 0)  # without a DEPOT_SECTION the first node, as in every library


def places(parts: Document, rounded: bool = True, problem: str | None = None) -> Stops:
    """Node numbers, coordinates and lengths, and the attributes that have a section or a keyword."""
    source = parts.source
    kind = (parts.value("TYPE") or "TSP").split()[0].upper()  # some files name an author after it
    if kind not in TYPES:
        raise InputError(f"{source}: TYPE {shown(kind)}; the choices are {', '.join(TYPES)}")
    numbers, where = nodes_of(parts)
    coordinates = coordinates_of(parts, numbers)
    metric = metric_of(parts, coordinates)
    matrix: np.ndarray | None
    if metric == "EXPLICIT" or coordinates is None:
        matrix = lengths_of(parts, len(numbers))
    elif metric == "EUC_2D" and not rounded:
        matrix, metric = None, "euclidean"
    elif len(numbers) > MATRIX_STOPS:
        if metric not in ROUNDINGS:
            raise InputError(
                f"{source}: {len(numbers)} nodes; {metric} needs a matrix, at most {MATRIX_STOPS} are allowed"
            )
        matrix = None
    else:
        matrix = FROM_COORDINATES[metric](coordinates)
        np.fill_diagonal(matrix, 0.0)
    _check_limits(parts, coordinates, matrix, table(problem))
    latlon = np.stack([degrees(c) for c in coordinates.T], 1) if metric == "GEO" and coordinates is not None else None
    depot = _depot(parts, numbers)
    columns, limits, field_where = {}, {}, {}
    for name, one in table(problem).columns.items():
        if one.library in parts.sections:
            rows = parts.by_node(one.library, numbers, math.prod(one.shape))
            values = [
                value_of(one, words if one.shape else words[0], parts.at(at), f"the {name}") for at, words in rows
            ]
            if one.unit == "prize" and not one.at_depot:
                values[depot or 0] = filled(one, 0)  # the depot is visited anyway
            columns[name] = column_of(one, values)
            field_where[name] = tuple(f"line {at}" for at, _ in rows)
    for name, one in table(problem).limits.items():
        if one.library in parts.values:
            line, word = parts.values[one.library]
            limits[name] = value_of(one, word, parts.at(line), one.library)
    return Stops(
        source,
        tuple(numbers),
        where,
        xy=None if metric == "GEO" else coordinates,
        latlon=latlon,
        matrix=matrix,
        columns=columns,
        limits=limits,
        depot=depot,
        field_where=field_where,
        rounded=rounded or metric != "euclidean",
        metric=metric,
    )


def nodes_of(parts: Document) -> tuple[dict[int, int], tuple[str, ...]]:
    """{number: index} of the nodes in the order of the file, and the line of each."""
    count = None
    if "DIMENSION" in parts.values:
        line, _ = parts.values["DIMENSION"]
        count = count_of(parts, "DIMENSION")
    lines = parts.sections.get("NODE_COORD_SECTION") or parts.sections.get("DISPLAY_DATA_SECTION")
    if lines is None:
        if not count:
            raise InputError(f"{parts.source}: no DIMENSION and no NODE_COORD_SECTION; how many nodes are there?")
        if count > MATRIX_STOPS:
            raise InputError(f"{parts.source}: a matrix of {count} nodes; at most {MATRIX_STOPS} are allowed")
        return {i + 1: i for i in range(count)}, tuple(f"node {i + 1}" for i in range(count))
    numbers: dict[int, int] = {}
    for line, words in lines:
        node = node_number(words[0], parts.at(line))
        if node in numbers:
            raise InputError(f"{parts.at(line)}: node {node} is given twice")
        numbers[node] = len(numbers)
    if count is not None and count != len(numbers):
        raise InputError(f"{parts.source}: DIMENSION is {count}, but {len(numbers)} nodes have coordinates")
    return numbers, tuple(f"line {line}" for line, _ in lines)


def coordinates_of(parts: Document, numbers: dict[int, int]) -> np.ndarray | None:
    """[N, 2]; a display position serves where the lengths are given."""
    section = next((s for s in ("NODE_COORD_SECTION", "DISPLAY_DATA_SECTION") if parts.sections.get(s)), None)
    if section is None:
        return None
    rows = parts.by_node(section, numbers, 2)
    return np.array([[real(word, parts.at(line), "a coordinate") for word in words] for line, words in rows])


def metric_of(parts: Document, coordinates: np.ndarray | None) -> str:
    """How lengths arise; EXPLICIT wherever there are no coordinates."""
    metric = (parts.value("EDGE_WEIGHT_TYPE") or ("EXPLICIT" if coordinates is None else "EUC_2D")).upper()
    if metric != "EXPLICIT" and metric not in FROM_COORDINATES:
        raise InputError(
            f"{parts.source}: EDGE_WEIGHT_TYPE {shown(metric)}; the choices are EXPLICIT, {', '.join(FROM_COORDINATES)}"
        )
    if metric != "EXPLICIT" and coordinates is None:
        raise InputError(f"{parts.source}: {metric} needs a NODE_COORD_SECTION")
    return metric


def lengths_of(parts: Document, count: int) -> np.ndarray:
    lines = parts.sections.get("EDGE_WEIGHT_SECTION")
    if lines is None:
        raise InputError(f"{parts.source}: EDGE_WEIGHT_TYPE EXPLICIT needs an EDGE_WEIGHT_SECTION")
    layout = parts.value("EDGE_WEIGHT_FORMAT")
    if layout is None:
        raise InputError(f"{parts.source}: EDGE_WEIGHT_TYPE EXPLICIT needs an EDGE_WEIGHT_FORMAT")
    values = [real(word, parts.at(line), "an edge weight") for line, words in lines for word in words]
    matrix = explicit(np.array(values), layout.upper(), count, parts.source)
    return checked_matrix(matrix, parts.source)


def _check_limits(parts: Document, coordinates: np.ndarray | None, matrix: np.ndarray | None, names: Table) -> None:
    """Refuse a route limit that a route could reach (libraries write 999999 for none), and nonzero service times."""
    if matrix is not None:
        reach = float(matrix.max()) * len(matrix)
    else:
        assert coordinates is not None
        reach = float(np.hypot(*np.ptp(coordinates, 0))) * len(coordinates)
    for keyword in ("DISTANCE", "SERVICE_TIME"):
        line, word = parts.values.get(keyword, (0, ""))
        if not word or any(one.library == keyword for one in names.limits.values()):
            continue
        value = real(word, parts.at(line), keyword)
        if value < reach if keyword == "DISTANCE" else value != 0:
            raise InputError(f"{parts.at(line)}: {keyword} {word[:20]} limits routes; that rule is not supported")


def _depot(parts: Document, numbers: dict[int, int]) -> int | None:
    """The one node of DEPOT_SECTION."""
    depots = depots_of(parts, numbers)
    if len(depots) > 1:
        raise InputError(f"{parts.at(depots[1][0])}: a second depot; one is supported")
    return depots[0][1] if depots else None


def depots_of(parts: Document, numbers: dict[int, int]) -> list[tuple[int, int]]:
    """(line, index) of each node in DEPOT_SECTION."""
    depots = []
    for line, word in [(line, word) for line, words in parts.sections.get("DEPOT_SECTION", []) for word in words]:
        if word == "-1":
            break
        node = node_number(word, parts.at(line))
        if node not in numbers:
            raise InputError(f"{parts.at(line)}: the depot {node} is not a node of the file")
        depots.append((line, numbers[node]))
    return depots
