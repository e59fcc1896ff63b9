"""The solution that users get: cost and routes in their own ids and units, how it was found, pictures and files."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from routelearn.data import solutions
from routelearn.data.convert import Converted
from routelearn.data.stops import Stops
from routelearn.problems import get

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# What may find a solution: the policy alone, a constructive heuristic, local search and metaheuristic, or the
# policy rebuilding a part of the best one. "given": the solution that `improve` starts from.
SOURCES = ("policy", "heuristic", "search", "rebuild", "given")


@dataclass(frozen=True)
class Event:
    """A new best solution."""

    seconds: float  # since the search began
    cost: float
    by: str  # one of SOURCES


@dataclass(frozen=True)
class Solution(solutions.Solution):
    """A checked solution. `routes` leave the depot out; they begin and end there."""

    seconds: float = 0.0  # from the call to the answer; start-up of compiled code and model not counted
    events: tuple[Event, ...] = ()  # every new best solution of the search, in order
    notes: tuple[str, ...] = ()  # what the user should know, one line each
    layout: tuple[tuple[str | int, float, float], ...] = ()  # id and position on a drawing, by node number
    embedded: bool = False  # the layout was made from distances alone
    interrupted: bool = False  # the search was ended before its time

    @property
    def objective(self) -> float:
        """The cost as people state it: the prize of an orienteering tour is positive."""
        return -self.cost if get(self.problem).maximise else self.cost

    def gap_to(self, reference: float | solutions.Solution) -> float:
        """How much worse than the reference (0.01: 1 %); negative if better. A positive number is a prize for OP."""
        maximise = get(self.problem).maximise
        other = reference.cost if isinstance(reference, solutions.Solution) else float(reference)
        if maximise and other > 0:
            other = -other
        if other == 0:
            return 0.0 if self.cost == 0 else float("inf") if self.cost > 0 else float("-inf")
        return (self.cost - other) / abs(other)

    def found_by(self) -> dict[str, float]:
        """How much each part of the search reduced the cost of the first solution (0 for the part that built it)."""
        gains: dict[str, float] = {}
        before: float | None = None
        for event in self.events:
            gains[event.by] = gains.get(event.by, 0.0) + (0.0 if before is None else before - event.cost)
            before = event.cost
        return gains

    def document(self) -> dict[str, Any]:
        history = [[round(e.seconds, 6), e.cost, e.by] for e in self.events]
        more = {"limits": self.limits, "seconds": self.seconds, "history": history, "notes": list(self.notes)}
        return super().document() | more

    def to_json(self) -> str:
        return solutions.to_json(self)

    def to_geojson(self) -> str:
        return solutions.to_geojson(self)

    def to_csv(self) -> str:
        return solutions.to_csv(self)

    def to_sol(self) -> str:
        return solutions.to_sol(self)

    def to_html(self) -> str:
        """One self-contained interactive page."""
        from routelearn.plots.page import page

        return page(self)

    def plot(self, path: str | Path | None = None) -> Figure | None:
        """A matplotlib figure of the routes; with a path, a file instead: .png, .svg, .pdf, or an interactive .html."""
        from routelearn.plots.routes import draw
        from routelearn.plots.saving import save_drawing

        if path is None:
            return draw(self)
        save_drawing(path, lambda: draw(self), self.to_html)
        return None

    def write(self, path: str | Path, kind: str | None = None) -> None:
        """The format that the suffix (or `kind`) names: json, geojson, csv, sol; `-` is standard output."""
        solutions.write_solution(path, self, kind)


def make_solution(
    converted: Converted,
    stops: Stops,
    tour: Tensor,
    *,
    seconds: float,
    events: tuple[Event, ...] = (),
    notes: tuple[str, ...] = (),
) -> Solution:
    """The tour [T] as a Solution; the problem itself checks and measures it, and raises Infeasible if it must."""
    plain = solutions.solution_of(converted, stops, tour)
    x, scale = converted.referee, converted.scale
    positions = x.xy[0].tolist()
    values: dict[str, Any] = {f.name: getattr(plain, f.name) for f in dataclasses.fields(plain)}
    return Solution(
        **values,
        seconds=seconds,
        events=events,
        notes=(*converted.notes, *notes),
        layout=tuple((name, a, b) for name, (a, b) in zip(scale.ids, positions, strict=True)),
        embedded=stops.xy is None and stops.latlon is None,
    )
