"""Files of stops or rounds that come with a request, as the fields of a request."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from routelearn.errors import InputError
from routelearn.serve.answering import METRICS
from routelearn.serve.limits import Limits

UNREADABLE = "\ufffd"


def read_file(fields: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The stops of a file as the fields of a request, with the problem that they are."""
    from routelearn.data.guess import guess
    from routelearn.data.names import not_used
    from routelearn.data.reading import parse
    from routelearn.rounds.document import document_of
    from routelearn.rounds.files import parse_round

    name = fields["name"] or "stops"
    data = _bytes(fields, name)
    options = {one: fields.get(one) for one in ("vehicles", "capacity", "shift", "speed")}
    fleet = fields.get("vehicles_file")
    vehicles = None if fleet is None else (_bytes(fleet, fleet["name"]), fleet["name"])
    round_ = parse_round(data, name, vehicles=vehicles, options=options, problem=fields.get("problem"))
    if round_ is not None:  # else stops of another problem
        limits.check("nodes", len(round_.stops), f"{len(round_.stops)} stops", "text")
        told = {"round": document_of(round_), "unit": round_.length_unit or None}
        return told | ({"notes": list(round_.notes)} if round_.notes else {})
    found = parse(data, name, problem=fields.get("problem"))
    if len(found) != 1:
        raise InputError(f"{name}: {len(found)} sets of stops; one is read here")
    stops = found[0]
    limits.check("nodes", len(stops.ids), f"{len(stops.ids)} stops", "text")
    result: dict[str, Any] = {"ids": list(stops.ids)}
    for name, values in (("coords", stops.xy), ("latlon", stops.latlon), ("matrix", stops.matrix)):
        if values is not None:
            result[name] = values.tolist()
    if stops.metric in METRICS:
        result["metric"] = stops.metric
        if stops.xy is not None:
            result.pop("matrix", None)  # its name says as much, in far fewer letters
    for name, values in (*stops.columns.items(), *stops.limits.items()):
        result[name] = np.asarray(values, dtype=np.float64).tolist()
    problem = fields.get("problem") or stops.problem
    try:
        problem = problem or guess(stops.source, {*stops.columns, *stops.limits})
    except InputError as error:  # what is missing may come with the request
        result["unclear"] = str(error)
    for name, value in (("depot", stops.depot), ("problem", problem)):
        if value is not None:
            result[name] = value
    if notes := [*stops.notes, *([not_used(stops.unused)] if stops.unused else [])]:
        result["notes"] = notes
    return result


def _bytes(fields: dict[str, Any], name: str) -> bytes:
    """The file as it was: its bytes, or its text, in which a browser may have replaced what it could not read."""
    if (fields.get("text") is None) == (fields.get("base64") is None):
        raise InputError("give either text or base64, the content of a file")
    if fields.get("text") is None:
        try:
            return base64.b64decode(fields["base64"], validate=True)
        except ValueError:
            raise InputError("base64 holds something else than base64") from None
    text: str = fields["text"]
    if UNREADABLE in text:
        line = text[: text.index(UNREADABLE)].count("\n") + 1
        raise InputError(f"{name}, line {line}: not utf-8 text; save the file as UTF-8")
    return text.encode("utf-8", "surrogatepass")
