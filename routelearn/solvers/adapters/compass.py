"""OP by the evolutionary algorithm EA4OP (Kobeaga et al. 2018), the program Compass at ROUTELEARN_COMPASS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from routelearn.solvers.adapters.base import Program
from routelearn.solvers.adapters.tsplib import op_text
from routelearn.solvers.tasks import OP, Answer, Task, feasible_cost, require_symmetric


def _by_hand(task: Task) -> Answer:
    require_symmetric(task, "compass")
    legs = task.legs()
    out_of_reach = (legs[0, 1:] + legs[1:, 0] > task.max_length).all()
    return [0] if out_of_reach else None  # it aborts where there is nowhere to go


def _command(task: Task, folder: Path, program: str, seconds: float, seed: int) -> Sequence[str]:
    """D.3: default parameters, and the options that choose the evolutionary algorithm."""
    (folder / "instance.oplib").write_text(op_text(task))
    options = ["--op", "--op-ea4op", "--seed", str(seed), "--tmlim", f"{seconds:.3f}"]
    return [program, *options, "instance.oplib", "-o", "tour.sol"]


def _read(task: Task, folder: Path) -> list[int]:
    """NODE_SEQUENCE_SECTION: the nodes from 1 with the depot among them, then -1."""
    section = (folder / "tour.sol").read_text().split("NODE_SEQUENCE_SECTION", 1)
    if len(section) < 2:
        raise ValueError("the solution file has no NODE_SEQUENCE_SECTION")
    order = [int(word) - 1 for word in section[1].split("-1", 1)[0].split()]
    if 0 not in order or len(set(order)) < len(order) or not set(order) <= set(range(task.nodes)):
        raise ValueError("the solution is not a tour from the depot")
    first = order.index(0)
    tour = [*order[first + 1 :], *order[:first], 0]
    if feasible_cost(task, task.legs(), tour) is None:
        raise ValueError("the tour is longer than allowed")
    return tour


SOLVERS = (
    Program(
        name="compass",
        problems=OP,
        licence="GPL-3.0, parts of it for academic use only",
        variable="ROUTELEARN_COMPASS",
        title="Compass (github.com/bcamath-ds/compass)",
        command=_command,
        read=_read,
        by_hand=_by_hand,
    ),
)
