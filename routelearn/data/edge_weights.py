"""TSPLIB's edge weights: distances with the library's own rounding, and matrices written as triangles.

The functions are those of Reinelt's TSPLIB 95 description; published optima hold for exactly these numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from routelearn.errors import InputError

_PI, _EARTH = 3.141592, 6378.388  # the library's own constants; better ones change the optima


def _differences(xy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return xy[:, None, 0] - xy[None, :, 0], xy[:, None, 1] - xy[None, :, 1]


def _nearest(values: np.ndarray) -> np.ndarray:
    """The library's nint: halves up."""
    return np.floor(values + 0.5)


def euclidean(xy: np.ndarray) -> np.ndarray:
    dx, dy = _differences(xy)
    return np.sqrt(dx * dx + dy * dy)


def _manhattan(xy: np.ndarray) -> np.ndarray:
    dx, dy = _differences(xy)
    return _nearest(np.abs(dx) + np.abs(dy))


def _maximum(xy: np.ndarray) -> np.ndarray:
    dx, dy = _differences(xy)
    return np.maximum(_nearest(np.abs(dx)), _nearest(np.abs(dy)))


def _pseudo_euclidean(xy: np.ndarray) -> np.ndarray:
    """ATT: the root of a tenth of the squared distance, rounded up."""
    dx, dy = _differences(xy)
    real = np.sqrt((dx * dx + dy * dy) / 10.0)
    nearest = _nearest(real)
    return np.where(nearest < real, nearest + 1, nearest)


def degrees(values: np.ndarray) -> np.ndarray:
    """GEO's DDD.MM (degrees and minutes) as decimal degrees."""
    whole = np.trunc(values)
    return whole + 5.0 * (values - whole) / 3.0


def _geographical(xy: np.ndarray) -> np.ndarray:
    """GEO: whole kilometres on the library's sphere; the first coordinate is the latitude."""
    latitude, longitude = (_PI * degrees(xy) / 180.0).T
    q1 = np.cos(longitude[:, None] - longitude)
    q2 = np.cos(latitude[:, None] - latitude)
    q3 = np.cos(latitude[:, None] + latitude)
    cosine = np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0)
    return np.floor(_EARTH * np.arccos(cosine) + 1.0)


FROM_COORDINATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "EUC_2D": lambda xy: _nearest(euclidean(xy)),
    "CEIL_2D": lambda xy: np.ceil(euclidean(xy)),
    "FLOOR_2D": lambda xy: np.floor(euclidean(xy)),
    "EXACT_2D": lambda xy: _nearest(1000.0 * euclidean(xy)),
    "MAN_2D": _manhattan,
    "MAX_2D": _maximum,
    "ATT": _pseudo_euclidean,
    "GEO": _geographical,
}

# A triangle read by rows is the other one read by columns.
_TRIANGLES = {
    "LOWER_ROW": ("lower", -1),
    "UPPER_COL": ("lower", -1),
    "LOWER_DIAG_ROW": ("lower", 0),
    "UPPER_DIAG_COL": ("lower", 0),
    "UPPER_ROW": ("upper", 1),
    "LOWER_COL": ("upper", 1),
    "UPPER_DIAG_ROW": ("upper", 0),
    "LOWER_DIAG_COL": ("upper", 0),
}
FORMATS = ("FULL_MATRIX", *_TRIANGLES)


def explicit(values: np.ndarray, layout: str, count: int, source: str) -> np.ndarray:
    """[count, count] from the stream of numbers of an EDGE_WEIGHT_SECTION."""
    if layout not in FORMATS:
        raise InputError(f"{source}: EDGE_WEIGHT_FORMAT {layout[:40]!r}; the choices are {', '.join(FORMATS)}")
    triangle, offset = _TRIANGLES.get(layout, ("full", 0))
    wanted = count * count if triangle == "full" else count * (count + 1 - 2 * abs(offset)) // 2
    if len(values) != wanted:
        raise InputError(f"{source}: {len(values)} edge weights; {layout} of {count} nodes has {wanted}")
    if triangle == "full":
        return values.reshape(count, count).copy()
    matrix = np.zeros((count, count))
    indices = np.tril_indices(count, offset) if triangle == "lower" else np.triu_indices(count, offset)
    matrix[indices] = values
    return matrix + matrix.T - np.diag(matrix.diagonal())
