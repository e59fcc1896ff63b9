"""CVRP and TSP by LKH-3 (Helsgaun 2017), a program that ROUTELEARN_LKH3 points to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from routelearn.solvers.adapters.base import Program
from routelearn.solvers.adapters.tsplib import cvrp_text, tsp_text
from routelearn.solvers.tasks import Task, join, split

MAX_TRIALS = 10_000  # appendix C.3: one run of at most 10,000 trials
START_UP = 0.03  # seconds to read and write files, which TIME_LIMIT does not count


def parameters(task: Task, problem_file: str, tour_file: str, seconds: float, seed: int) -> dict[str, object]:
    """The contents of the parameter file; a value of None is a keyword alone."""
    settings: dict[str, object] = {
        "PROBLEM_FILE": problem_file,
        "OUTPUT_TOUR_FILE": tour_file,
        "RUNS": 1,
        "SEED": 1 + seed,
        "TIME_LIMIT": f"{max(0.01, 0.97 * seconds - START_UP):.3f}",  # counts per run; a last trial may overrun it
        "TRACE_LEVEL": 0,
    }
    if task.family == "cvrp":
        # LKH-3 alone plans with the fewest that total demand allows; demands may not pack so well
        vehicles = max(1, task.vehicles())
        settings |= {"SPECIAL": None, "MAX_TRIALS": MAX_TRIALS, "VEHICLES": vehicles, "MTSP_MIN_SIZE": 0}
    return settings


def _command(task: Task, folder: Path, program: str, seconds: float, seed: int) -> Sequence[str]:
    (folder / "instance.txt").write_text(cvrp_text(task) if task.family == "cvrp" else tsp_text(task))
    # It puts the cost in place of $: one file for every better tour, and the last may be half written when time is up
    settings = parameters(task, "instance.txt", "tour.$.txt", seconds, seed)
    lines = (key if value is None else f"{key} = {value}" for key, value in settings.items())
    (folder / "settings.par").write_text("".join(f"{line}\n" for line in lines))
    return [program, "settings.par"]


def read_tour(text: str, nodes: int) -> list[int]:
    """The numbers of a TOUR_SECTION, from 0. Beyond the nodes stand copies of the depot: 0 as well."""
    section = text.split("TOUR_SECTION", 1)
    if len(section) < 2:
        raise ValueError("the tour file has no TOUR_SECTION")
    listed, end, _ = section[1].partition("-1")
    if not end:
        raise ValueError("the tour file is cut short")
    numbers = [int(word) for word in listed.split()]
    return [number - 1 if number <= nodes else 0 for number in numbers]


def _read(task: Task, folder: Path) -> list[int]:
    """The cheapest tour that is whole."""
    files = sorted(folder.glob("tour.*.txt"), key=lambda file: int(file.name.split(".")[1]))
    if not files:
        raise FileNotFoundError("no tour file")
    for file in files:
        try:
            return _checked(task, read_tour(file.read_text(), task.nodes))
        except ValueError as error:
            fault = error
    raise fault


def _checked(task: Task, tour: list[int]) -> list[int]:
    if task.family == "tsp":
        if sorted(tour) != list(range(task.nodes)):
            raise ValueError(f"the tour does not visit {task.nodes} nodes once each")
        return tour
    first = tour.index(0)
    routes = split(tour[first:] + tour[:first])
    if sorted(node for route in routes for node in route) != list(range(1, task.nodes)):
        raise ValueError("the tour does not visit every customer once")
    # LKH minimises excess load before length and may end with some left
    if any(task.demand[route].sum() > task.capacity for route in routes):
        raise ValueError("a route exceeds the capacity")
    return join(routes)


SOLVERS = (
    Program(
        name="lkh3",
        problems=frozenset({"cvrp", "tsp"}),
        licence="LKH: free for academic and non-commercial use only",
        variable="ROUTELEARN_LKH3",
        title="LKH-3 (webhotel4.ruc.dk/~keld/research/LKH-3)",
        command=_command,
        read=_read,
    ),
)
