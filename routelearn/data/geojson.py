"""Stops as GeoJSON (RFC 7946): a FeatureCollection of Points, numbers in their properties."""

from __future__ import annotations

from typing import Any

from routelearn.data.names import PLACES, spelled, table
from routelearn.data.numbers import shown
from routelearn.data.records import Row
from routelearn.data.rules import refusal, unsupported
from routelearn.errors import InputError

KEYS = ("type", "features", "name", "bbox", "crs", "id")  # of a collection; others are noted


def rows_of(data: dict[str, Any], source: str, problem: str | None = None) -> list[Row]:
    """The stops of a decoded FeatureCollection; positions are longitude, latitude."""
    features = data.get("features")
    if data.get("type") != "FeatureCollection" or not isinstance(features, list):
        raise InputError(f"{source}: GeoJSON of stops is a FeatureCollection with a list of features")
    for key in data:
        if key not in table(problem).limits and (wrong := unsupported(key, problem)) is not None:
            raise refusal(source, key, wrong)
    if isinstance(data.get("depot"), list | dict):
        raise InputError(f"{source}: 'depot' beside the features is the id or name of one; give its place as a feature")
    rows: list[Row] = []
    spellings: dict[str, str | None] = {}
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
        values = {"lon": position[0], "lat": position[1]}  # the geometry says where the stop is
        if feature.get("id") is not None:
            values["id"] = feature["id"]
        for key in properties:
            if key not in spellings:
                spellings[key] = spelled(key, problem)
        decided = {*PLACES, *values}
        own = {key: value for key, value in properties.items() if spellings[key] not in decided}
        rows.append((where, own | values))
    return rows


def feature(kind: str, coordinates: Any, properties: dict[str, Any]) -> dict[str, Any]:
    """As it is written: a Point, or a LineString."""
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}, "properties": properties}
