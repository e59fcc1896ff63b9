"""Exact TSP by Concorde (Applegate, Bixby, Chvatal and Cook), a program that ROUTELEARN_CONCORDE points to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from routelearn.solvers.adapters.base import Program
from routelearn.solvers.adapters.tsplib import tsp_text
from routelearn.solvers.tasks import Answer, Task, best_order, require_symmetric

SMALLEST = 10  # nodes: its neighbour graphs and heuristics want more than a handful


def _by_hand(task: Task) -> Answer:
    require_symmetric(task, "concorde")
    return best_order(task.legs()) if task.nodes < SMALLEST else None


def _command(task: Task, folder: Path, program: str, seconds: float, seed: int) -> Sequence[str]:
    """It knows no time limit; its scratch files go to the folder it is started in."""
    (folder / "instance.tsp").write_text(tsp_text(task))
    return [program, "-s", str(1 + seed), "-x", "-o", "tour.sol", "instance.tsp"]


def _read(task: Task, folder: Path) -> list[int]:
    """The number of nodes, then the nodes from 0, in lines of any length."""
    count, *tour = [int(word) for word in (folder / "tour.sol").read_text().split()] or [0]
    if count != task.nodes or sorted(tour) != list(range(task.nodes)):
        raise ValueError(f"the solution file does not list {task.nodes} nodes once each")
    return tour


SOLVERS = (
    Program(
        name="concorde",
        problems=frozenset({"tsp"}),
        licence="free for academic use only",
        exact=True,
        variable="ROUTELEARN_CONCORDE",
        title="Concorde (math.uwaterloo.ca/tsp/concorde)",
        command=_command,
        read=_read,
        by_hand=_by_hand,
        shares=(0.5, 0.5),  # it writes nothing before it is done, and another seed may be done sooner
    ),
)
