"""One self-contained page of a plan: routes on a map, a time line for each vehicle, the itinerary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routelearn.plots.page import filled
from routelearn.plots.rounds import caption
from routelearn.plots.routes import colours

if TYPE_CHECKING:
    from routelearn.rounds.answers import RoundSolution


def page(solution: RoundSolution) -> str:
    """HTML that needs no network: data, style and script are all inside."""
    return filled("round_page.html", caption(solution), page_data(solution))


def page_data(solution: RoundSolution) -> dict[str, Any]:
    """What the script draws. Moments are seconds and, as `told`, what people read."""
    round_ = solution.round

    def moment(seconds: float) -> list[Any]:
        finite = abs(seconds) < float("inf")
        return [seconds if finite else None, solution.spoken(seconds) if finite else ""]

    routes = []
    for i, (route, colour) in enumerate(zip(solution.plan.routes, colours(len(solution.plan.routes)), strict=True)):
        told = {key: value for key, value in solution.route_document(route).items() if key not in ("visits", "stops")}
        visits = [
            solution.visit_document(route, visit)
            | {
                "stop": visit.stop,
                "place": visit.place,
                "arrival": moment(visit.arrival),
                "start": moment(visit.start),
                "departure": moment(visit.departure),
            }
            for visit in route.visits
        ]
        routes.append(told | {"label": solution.labels[i], "colour": colour, "visits": visits})
    return {
        "source": solution.source,
        "unit": round_.length_unit,
        "clock": round_.day is not None,
        "embedded": solution.embedded,
        "places": [[name, float(x), float(y)] for name, (x, y) in zip(round_.places, solution.layout, strict=True)],
        "latlon": None if round_.latlon is None else round_.latlon.tolist(),
        "ends": sorted({p for v in round_.vehicles for p in (v.start, v.end, *v.reloads) if p is not None}),
        "stops": [
            {
                "id": stop.id,
                "place": stop.place,
                "windows": [[*moment(low), *moment(high)] for low, high in stop.windows],
            }
            for stop in round_.stops
        ],
        "routes": routes,
        "unassigned": [[one.stop, one.reason] for one in solution.plan.unassigned],
        "violations": solution.violations_document(),
        "notes": list(solution.notes),
    }
