"""Tours to learn from: solutions of random instances, which a seed draws again, so that only orders are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from routelearn.data.fields import fingerprint
from routelearn.data.files import read_bytes
from routelearn.data.generate import TEST_SEED, VALIDATION_SEED, generate
from routelearn.data.npz import arrays_of
from routelearn.decoding.rollout import follow
from routelearn.errors import Infeasible, InputError
from routelearn.problems.base import Problem, declared_search, take, to_device
from routelearn.runtime.atomic import replace_file

FORMAT = "routelearn-tours-1"
CHECKED = 10_000  # tours at once


class Lessons(NamedTuple):
    """M instances with a tour of each, on the device that trains."""

    x: Any
    tours: Tensor  # [M, T] int16

    def draw(self, batch: int) -> tuple[Any, Tensor]:
        """Instances at random, and their tours [B, 1, T]."""
        rows = torch.randint(len(self.tours), (batch,), device=self.tours.device)
        return take(self.x, rows), self.tours[rows][:, None].long()


def instances(problem: Problem, n: int, count: int, seed: int) -> Any:
    """Those that tours are made for; never the test set or the validation set."""
    if seed in (TEST_SEED, VALIDATION_SEED):
        raise InputError(f"seed {seed} draws the test set or the validation set; choose another to learn from")
    return generate(problem, n, count, seed)


def write(path: Path, problem: Problem, n: int, seed: int, x: Any, tours: Tensor) -> None:
    """Store the tours [M, 1, T] of the instances that `instances` gave."""
    orders = from_first(x, tours[:, 0]) if declared_search(problem) == "tour" else tours[:, 0]
    short, of = orders.numpy().astype(np.int16), fingerprint(x)
    replace_file(
        path,
        lambda file: np.savez_compressed(
            file, format=FORMAT, problem=problem.name, n=n, seed=seed, instances=of, orders=short
        ),
    )


def from_first(x: Any, tours: Tensor) -> Tensor:
    """Closed tours [M, N] from node 0 and anticlockwise: a tour has 2 N orders, and who learns needs one."""
    start = (tours == 0).int().argmax(1, keepdim=True)
    steps = torch.arange(tours.shape[1])
    forwards, backwards = (tours.gather(1, (start + way * steps) % tours.shape[1]) for way in (1, -1))
    here = x.xy.gather(1, forwards[..., None].expand(-1, -1, 2)).double()
    following = here.roll(-1, 1)
    area = (here[..., 0] * following[..., 1] - here[..., 1] * following[..., 0]).sum(1, keepdim=True)
    return torch.where(area >= 0, forwards, backwards)


def read(path: Path, problem: Problem, n: int, device: torch.device) -> Lessons:
    """The instances and tours of a file; another problem's, another set's or a tour that breaks a rule is refused."""
    arrays = arrays_of(read_bytes(path), str(path))
    if str(arrays.get("format")) != FORMAT:
        raise InputError(f"{path}: not a file of tours (`routelearn tours` writes one)")
    try:
        of, size, seed, orders = str(arrays["problem"]), int(arrays["n"]), int(arrays["seed"]), arrays["orders"]
        if orders.ndim != 2 or orders.dtype != np.int16:
            raise ValueError("its orders are no table of short whole numbers")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error})") from error
    if (of, size) != (problem.name, n):
        raise InputError(f"{path}: tours of {of}, n = {size}; this run needs those of {problem.name}, n = {n}")
    x, tours = instances(problem, n, len(orders), seed), torch.from_numpy(orders)
    if str(arrays.get("instances")) != fingerprint(x):
        raise InputError(f"{path}: tours of another set than seed {seed} draws here; make them anew")
    for low in range(0, len(tours), CHECKED):
        rows = slice(low, low + CHECKED)
        refuse_broken(path, problem, take(x, rows), tours[rows, None].long(), low)
    return Lessons(to_device(x, device), tours.to(device))


def refuse_broken(path: Path, problem: Problem, x: Any, tours: Tensor, low: int) -> None:
    """Every node must be allowed when its turn comes, and nothing be left to do after the last one."""
    try:
        problem.check(x, tours)
    except Infeasible as broken:
        raise InputError(f"{path}: the tour of instance {low + broken.row} breaks a rule ({broken.reason})") from None
    rolled = follow(problem, x, tours)
    assert rolled.trajectory is not None
    allowed = rolled.trajectory.seen.feasible.gather(-1, tours[..., None])[:, 0, :, 0]
    wrong = ~(allowed.all(1) & rolled.done[:, 0])
    if wrong.any():
        row = int(wrong.int().argmax())
        step = int((~allowed[row]).int().argmax())
        why = "is not finished" if allowed[row].all() else f"goes to node {tours[row, 0, step]}, which is masked"
        raise InputError(f"{path}: the tour of instance {low + row} {why} (step {step})")
