"""Stops as GeoJSON (RFC 7946): a FeatureCollection of Points, numbers in their properties."""

from __future__ import annotations

from typing import Any

from routelearn.data.numbers import shown
from routelearn.data.records import Row, file_values, named, to_stops
from routelearn.data.stops import Stops
from routelearn.errors import InputError


def parse(data: dict[str, Any], source: str) -> Stops:
    """The stops of a decoded FeatureCollection; positions are longitude, latitude."""
    features = data.get("features")
    if data.get("type") != "FeatureCollection" or not isinstance(features, list):
        raise InputError(f"{source}: GeoJSON of stops is a FeatureCollection with a list of features")
    rows: list[Row] = []
    for i, feature in enumerate(features, 1):
        where = f"feature {i}"
        geometry = feature.get("geometry") if isinstance(feature, dict) else None
        if not isinstance(geometry, dict) or geometry.get("type") != "Point":
            kind = shown(geometry.get("type")) if isinstance(geometry, dict) else "no geometry"
            raise InputError(f"{source}, {where}: {kind}; every feature must be a Point")
        position = geometry.get("coordinates")
        if not isinstance(position, list) or len(position) not in (2, 3):
            raise InputError(f"{source}, {where}: a Point needs the coordinates [longitude, latitude]")
        properties = feature.get("properties") or {}
        if not isinstance(properties, dict):
            raise InputError(f"{source}, {where}: the properties are {shown(properties)}; an object is needed")
        values = named(properties, f"{source}, {where}")
        for name in ("x", "y", "lat", "lon"):  # the geometry says where the stop is
            values.pop(name, None)
        if feature.get("id") is not None:
            values["id"] = feature["id"]
        rows.append((where, {**values, "lon": position[0], "lat": position[1]}))
    return to_stops(rows, source, **file_values(data, source))
