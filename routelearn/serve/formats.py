"""Answers in other formats than the service's JSON, by the request's header `accept`, with the writers of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from routelearn.serve.limits import Refused

if TYPE_CHECKING:
    from routelearn.rounds.answers import RoundSolution
    from routelearn.solving import Solution

JSON, GEOJSON, VROOM, CSV = "json", "geojson", "vroom.json", "csv"  # as the writers call them
COST = "cost"  # beside them, for whoever would have to read the JSON to know it
EVERY = "every"  # all that are possible, for a job: which one will be asked for is not known yet
MEDIA = {
    JSON: "application/json",
    GEOJSON: "application/geo+json",
    VROOM: "application/vnd.vroom+json",
    CSV: "text/csv",
}
OF_COLUMNS, OF_ROUND = (JSON, GEOJSON, CSV), (JSON, GEOJSON, VROOM, CSV)


class Forms(dict[str, bytes]):
    """An answer in one or several formats, ready to be sent."""


def chosen(accept: str | None, possible: Sequence[str]) -> str:
    """The format that a header asks for, the first of several it likes equally; 406 with all that are possible."""
    if not accept or not accept.strip():
        return possible[0]
    ranges = [_range(one) for one in accept.split(",")[:100]]
    liked = {form: _quality(MEDIA[form], ranges) for form in possible}
    best = max(possible, key=lambda form: liked[form])
    if liked[best] <= 0:
        raise not_possible(possible, f"accept is {accept.strip()[:100]}")
    return best


def not_possible(possible: Sequence[str], why: str) -> Refused:
    return Refused(406, f"{why}; the types possible here are {', '.join(MEDIA[form] for form in possible)}")


def _range(text: str) -> tuple[str, float]:
    """(media range, quality) of one element of the header; an unreadable quality is 0."""
    media, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((one[2:] for one in parameters if one.startswith("q=")), "1")
    try:
        return media, min(1.0, float(quality)) if quality[:1].isdigit() else 0.0
    except ValueError:
        return media, 0.0


def _quality(media: str, ranges: Sequence[tuple[str, float]]) -> float:
    """That of the closest range."""
    for pattern in (media, f"{media.partition('/')[0]}/*", "*/*"):
        found = [quality for one, quality in ranges if one == pattern]
        if found:
            return max(found)
    return 0.0


# ------------------------------------------------------------------------------------------ in the worker


def allow(form: str, possible: Sequence[str], *, on_globe: bool) -> None:
    """Refuse a format that the places cannot have, before time is spent on them."""
    if form == GEOJSON and not on_globe:
        left = [one for one in possible if one != GEOJSON]
        raise not_possible(left, "GeoJSON needs places on the globe, and these stops have no lat and lon")


def formed(document: dict[str, Any], solution: Solution | RoundSolution, form: str) -> dict[str, Any] | Forms:
    """The document as it is, or the solution in the format asked for, or all of it."""
    from routelearn.rounds import writing as of_rounds
    from routelearn.rounds.answers import RoundSolution
    from routelearn.serve.worker import encode
    from routelearn.solving import writing

    if form == JSON:
        return document
    of_round = isinstance(solution, RoundSolution)
    writers: dict[str, Any] = of_rounds.WRITERS if of_round else writing.WRITERS
    on_globe = solution.round.latlon is not None if isinstance(solution, RoundSolution) else solution.on_globe
    possible = [one for one in (OF_ROUND if of_round else OF_COLUMNS) if one != JSON and (one != GEOJSON or on_globe)]

    def written(one: str) -> bytes:  # half a surrogate pair becomes an escape, which JSON reads back
        return writers[one](solution).encode("utf-8", "backslashreplace")

    if form == EVERY:
        return Forms({COST: encode(document["cost"]), JSON: encode(document)} | {one: written(one) for one in possible})
    return Forms({form: written(form)})
