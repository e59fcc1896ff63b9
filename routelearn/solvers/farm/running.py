"""The farm: a solver run over many instances on all cores or a cluster, judged by the problem, stored as results come.

Instances are cut into blocks, always in the same way, and every block has a seed of its own. An answer depends
on the seed and the place of the instance, never on the number of cores or machines, or on how often the
evaluation was stopped and resumed (unless the clock ends the solver's search).
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

from routelearn.data.fields import fingerprint
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import Evaluation
from routelearn.evaluation.referee import judge
from routelearn.problems.base import Problem, take
from routelearn.runtime.locking import locked
from routelearn.solvers import reveal
from routelearn.solvers.adapters import runner
from routelearn.solvers.adapters.base import Library, Program
from routelearn.solvers.adapters.runner import worker_count
from routelearn.solvers.base import Solver, refuse_problem
from routelearn.solvers.own.common import CELLS
from routelearn.solvers.tasks import tours_of

FORMAT = 1
HEADER = b'{"settings":'  # how a store begins; a file that begins otherwise is somebody else's
PLACES = ("local", "ray")
Progress = Callable[[int], None]  # hears of instances done


class Block(NamedTuple):
    """The answers for rows first to first + len(tours)."""

    first: int
    tours: list[list[int] | None]
    seconds: float


def solve_block(solver: Solver, problem: Problem, x: Any, first: int, seconds: float, seed: int) -> Block:
    """One block; what a solver may not see (SPCTSP's real prizes) is told only as nodes are visited."""
    runner.first_row.set(first)
    started = time.perf_counter()
    own_seed = (seed * 1_000_003 + first) % 2**31
    tours = reveal.run(solver, problem, x, seconds=seconds, seed=own_seed)
    taken = time.perf_counter() - started
    return Block(first, [None if row[0] < 0 else row for row in tours[:, 0].tolist()], taken)


class Store:
    """Results in one file of JSON lines: the settings, then a line per block as it is done.

    A line counts only when it is whole, so a file cut off at any byte is a valid one with fewer blocks.
    """

    def __init__(self, path: Path, settings: dict[str, Any]):
        self.path = path
        self.blocks: dict[int, Block] = {}
        self.seconds = 0.0  # wall clock of the sittings before
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(path, "a+b")  # noqa: SIM115 (closed in __exit__)
        try:
            if not locked(self.file):
                raise InputError(f"{path}: another evaluation is writing there; wait for it or use another")
            self._read(settings)
        except BaseException:
            self.file.close()
            raise

    def _read(self, settings: dict[str, Any]) -> None:
        self.file.seek(0)
        content = self.file.read()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines:
            if not HEADER.startswith(content[: len(HEADER)]):
                raise InputError(f"{self.path}: not a file of stored results; name another")
            self.file.truncate(0)
            self._write({"settings": settings})
            return
        try:
            made_with = json.loads(lines[0])["settings"]
            if made_with == settings:
                for line in lines[1:]:
                    record = json.loads(line)
                    self.seconds = record.pop("wall")
                    block = Block(**record)
                    self.blocks[block.first] = block
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.path}: not a file of stored results ({error}); name another") from error
        if made_with != settings:
            keys = [key for key in settings if made_with.get(key) != settings[key]] or ["format"]
            was = ", ".join(f"{key} {made_with.get(key)}" for key in keys)
            now = ", ".join(f"{key} {settings.get(key)}" for key in keys)
            raise InputError(f"{self.path}: holds results of {was}, not of {now}; name another file or remove it")
        self.file.truncate(len(whole))

    def add(self, block: Block, wall: float) -> None:
        self.blocks[block.first] = block
        self._write({**block._asdict(), "wall": wall})

    def _write(self, record: dict[str, Any]) -> None:
        self.file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        self.file.flush()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


def stored_blocks(path: Path) -> int:
    """How many blocks a store holds; 0 where there is none."""
    return max(0, path.read_bytes().count(b"\n") - 1) if path.is_file() else 0


def settings_of(problem: Problem, x: Any, method: str, seconds: float, seed: int, block: int) -> dict[str, Any]:
    """What decides the results: a store made with anything else is refused."""
    return {
        "format": FORMAT,
        "problem": problem.name,
        "method": method,
        "seconds": seconds,
        "seed": seed,
        "block": block,
        "instances": x.xy.shape[0],
        "nodes": x.xy.shape[1],
        "data": fingerprint(x),
    }


def local_blocks(
    solver: Solver, problem: Problem, x: Any, firsts: list[int], size: int, seconds: float, seed: int
) -> Iterator[Block]:
    """Blocks in the order in which they are done, as many at a time as there are cores."""
    waiting, workers = iter(firsts), worker_count()
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[Block]] = set()
        try:
            while True:
                for first in waiting:
                    part = take(x, slice(first, first + size))
                    running.add(pool.submit(solve_block, solver, problem, part, first, seconds, seed))
                    if len(running) >= 2 * workers:
                        break
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def warm_up(solver: Solver, problem: Problem, x: Any) -> None:
    """Compile what is written here, once, outside the time of any instance; foreign solvers need no such thing."""
    if not isinstance(solver, Library | Program):
        reveal.run(solver, problem, take(x, slice(0, 1)), seconds=1e-3, seed=0)


def collect(problem: Problem, x: Any, blocks: dict[int, Block], seconds: float, method: str, device: str) -> Evaluation:
    """All blocks together, judged. The seconds are wall clock, summed over all sittings."""
    rows = [tour for first in sorted(blocks) for tour in blocks[first].tours]
    if len(rows) != len(x.xy):
        raise RuntimeError(f"{len(rows)} answers for {len(x.xy)} instances")
    tours = tours_of(rows)
    costs = judge(problem, x, tours)
    infeasible = int(costs.isnan().sum())
    return Evaluation(tours, costs, infeasible, seconds, method, device, problem.name, x.xy.shape[1])


def solve_instances(
    problem: Problem,
    x: Any,
    solver: Solver,
    *,
    seconds: float,
    seed: int = 0,
    store: Path | None = None,
    on: str = "local",
    progress: Progress | None = None,
) -> Evaluation:
    """Every instance of x (full instances, on the CPU), `seconds` at most each, judged on the floats.

    With `store`, blocks are written as they are done, and what is there already is not solved again.
    """
    if on not in PLACES:
        raise InputError(f"unknown place {on!r} to run on; the choices are {', '.join(PLACES)}")
    refuse_problem(solver, problem)
    if not seconds > 0:
        raise InputError(f"{seconds:g} seconds for each instance; it must be more than 0")
    if on == "local" and (reason := solver.unavailable()):
        raise InputError(reason)
    if on == "local" and isinstance(solver, Program) and (reason := solver.impostor()):
        raise InputError(reason)
    # Rows that a solver takes at once: many where an instance takes microseconds, else one.
    size = max(1, min(getattr(solver, "chunk_rows", 1), CELLS // x.xy.shape[1] ** 2))
    with contextlib.ExitStack() as stack:
        blocks: dict[int, Block] = {}
        before, kept = 0.0, None
        if store is not None:
            kept = stack.enter_context(Store(store, settings_of(problem, x, solver.name, seconds, seed, size)))
            blocks, before = dict(kept.blocks), kept.seconds
        if progress is not None and blocks:
            progress(sum(len(block.tours) for block in blocks.values()))
        firsts = [first for first in range(0, x.xy.shape[0], size) if first not in blocks]
        if firsts and on == "local":
            warm_up(solver, problem, x)
        run_blocks = local_blocks
        if on == "ray":
            from routelearn.solvers.farm.cluster import ray_blocks as run_blocks
        started = time.perf_counter()
        wall = before
        for block in run_blocks(solver, problem, x, firsts, size, seconds, seed):
            blocks[block.first] = block
            wall = before + time.perf_counter() - started
            if kept is not None:
                kept.add(block, wall)
            if progress is not None:
                progress(len(block.tours))
        return collect(problem, x, blocks, wall, solver.name, f"{platform.processor() or platform.machine()} CPU")
