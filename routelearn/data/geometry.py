"""Lengths and maps: great circles, a local projection, and places from distances alone."""

from __future__ import annotations

import numpy as np

EARTH_KM = 6371.0088  # mean radius
ROWS = 32  # of a matrix at a time
LANDMARKS = 500  # stops whose full eigenvalue problem is solved at most


def great_circle(latlon: np.ndarray) -> np.ndarray:
    """[N, N] kilometres from degrees [N, 2]: the haversine formula, whose sum is a quarter of the squared chord.

    By blocks of rows that stay in the processor's cache.
    """
    latitude, longitude = np.radians(latlon).T
    level = np.cos(latitude)
    places = np.stack((level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude))) / 2
    count = len(latlon)
    found, spare = np.zeros((count, count)), np.empty((ROWS, count))
    for low in range(0, count, ROWS):
        rows = slice(low, min(low + ROWS, count))
        block, part = found[rows], spare[: rows.stop - low]
        for axis in places:
            np.subtract(axis[rows, None], axis, out=part)
            np.multiply(part, part, out=part)
            block += part
        np.minimum(np.sqrt(block, out=block), 1.0, out=block)
        np.multiply(np.arcsin(block, out=block), 2 * EARTH_KM, out=block)
    return found


def project(latlon: np.ndarray) -> np.ndarray:
    """[N, 2] kilometres east and north of the middle: the equirectangular projection around it.

    Longitudes are taken relative to their circular mean, so the date line does not tear stops apart.
    """
    latitude, longitude = np.radians(latlon).T
    middle = np.arctan2(np.sin(longitude).sum(), np.cos(longitude).sum())
    east = (longitude - middle + np.pi) % (2 * np.pi) - np.pi
    level = (latitude.min() + latitude.max()) / 2
    return EARTH_KM * np.stack((east * np.cos(level), latitude - level), 1)


def from_distances(matrix: np.ndarray) -> np.ndarray:
    """[N, 2] places whose distances resemble the matrix (made symmetric): classical scaling (Torgerson 1952).

    Beyond `LANDMARKS` stops, evenly spaced landmarks are placed and the others located from them
    (de Silva and Tenenbaum 2004).
    """
    squared = ((matrix + matrix.T) / 2) ** 2
    count = len(squared)
    chosen = np.unique(np.linspace(0, count - 1, min(count, LANDMARKS)).astype(int))
    among = squared[np.ix_(chosen, chosen)]
    mean = among.mean(0)
    values, vectors = np.linalg.eigh(-0.5 * (among - mean - mean[:, None] + among.mean()))
    values, vectors = values[::-1][:2], vectors[:, ::-1][:, :2]
    # An axis without positive variance carries no distance at all.
    inverse = np.where(values > 1e-12 * max(values.max(), 1e-300), 1 / np.sqrt(np.maximum(values, 1e-300)), 0.0)
    places = -0.5 * (squared[:, chosen] - mean) @ (vectors * inverse)
    return np.pad(places, ((0, 0), (0, 2 - places.shape[1])))


def into_unit_square(xy: np.ndarray) -> tuple[np.ndarray, float]:
    """(xy shifted and scaled into the unit square, aspect kept; what one unit of it was before)."""
    low = xy.min(0)
    spread = float((xy.max(0) - low).max())
    if spread < 1e-12:  # all in one place
        return np.full_like(xy, 0.5), 1.0
    return (xy - low) / spread, spread
