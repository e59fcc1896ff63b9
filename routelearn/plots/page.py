"""One self-contained interactive page of a solution: routes to zoom, hover and switch off, and the cost over time."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from routelearn.plots.routes import caption, colours, with_ends

if TYPE_CHECKING:
    from routelearn.solving.solution import Solution


def page(solution: Solution) -> str:
    """HTML that needs no network: data, style and script are all inside."""
    return filled("page.html", caption(solution), page_data(solution))


def filled(template: str, title: str, data: dict[str, Any]) -> str:
    """The page of that name with its title and its data."""
    text = resources.files("routelearn.plots").joinpath(template).read_text(encoding="utf-8")
    # "<" inside a script element could end it, and the two separators end a line of JavaScript.
    inside = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        inside = inside.replace(character, f"\\u{ord(character):04x}")
    return text.replace("{{title}}", html.escape(title)).replace("{{data}}", inside)


def page_data(solution: Solution) -> dict[str, Any]:
    """What the script draws: stops by node number, routes as lists of them, the events of the search."""
    routes = []
    for i, (nodes, colour) in enumerate(zip(solution.node_routes, colours(len(solution.node_routes)), strict=True)):
        routes.append(
            {
                "line": with_ends(solution, nodes),
                "stops": nodes,
                "length": solution.lengths[i],
                "load": None if solution.loads is None else solution.loads[i],
                "colour": colour,
            }
        )
    sign = -1 if solution.maximise else 1
    return {
        "problem": solution.problem,
        "source": solution.source,
        "unit": solution.unit,
        "cost": solution.objective,
        "length": solution.length,
        "prize": solution.prize,
        "seconds": solution.seconds,
        "capacity": solution.limits.get("capacity"),
        "depot": solution.depot is not None,
        "embedded": solution.embedded,
        "stops": [[str(name), x, y] for name, x, y in solution.layout],
        "routes": routes,
        "events": [[event.seconds, event.cost * sign, event.by] for event in solution.events],
        "notes": list(solution.notes),
    }
