"""The farm on a Ray cluster: blocks go wherever a core is free, and come back whatever node dies.

`routelearn` and the solver must be installed on every node; a plugin's file must be there too, under the same path.
The cluster is the one RAY_ADDRESS names, one that runs on this machine, or a new one of this machine alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from routelearn import plugins
from routelearn.errors import InputError
from routelearn.problems.base import Problem, take
from routelearn.solvers.base import Solver

if TYPE_CHECKING:
    from routelearn.solvers.farm.running import Block

ATTEMPTS = 5  # of a block whose farm worker or node was lost although Ray itself had tried again


def load_ray() -> Any:
    """The ray module, connected to a cluster."""
    try:
        import ray
    except ImportError:
        raise InputError('Ray is not installed: pip install "routelearn[cluster]"') from None
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    return ray


def solve_remote(
    needed: list[str], things: bytes, fields: list[Any], first: int, seconds: float, seed: int
) -> tuple[Any, ...]:
    """One block on some node, from and to plain arrays: one core was asked for, so one is used.

    `things` are solver, problem and class of the instances, pickled: they can be read once the plugins that are
    `needed` are loaded there.
    """
    import os
    import pickle

    import torch

    from routelearn.solvers.farm.running import solve_block

    os.environ["ROUTELEARN_WORKERS"] = "1"
    torch.set_num_threads(1)
    try:
        for plugin in needed:
            plugins.load(plugin)
    except InputError as error:
        raise InputError(f"on node {os.uname().nodename}: {error}") from None
    solver, problem, instance = pickle.loads(things)
    if reason := solver.unavailable():
        raise InputError(f"on node {os.uname().nodename}: {reason}")
    # arrays that Ray hands out are read-only
    x = instance(*(None if field is None else torch.from_numpy(field.copy()) for field in fields))
    return tuple(solve_block(solver, problem, x, first, seconds, seed))


def ray_blocks(
    solver: Solver, problem: Problem, x: Any, firsts: list[int], size: int, seconds: float, seed: int
) -> Iterator[Block]:
    """Blocks in the order in which they are done. Ray runs a task again if its node dies; so do we, if Ray gives up."""
    from routelearn.solvers.farm.running import Block

    ray = load_ray()
    remote = ray.remote(num_cpus=1, max_retries=-1)(solve_remote)
    things = ray.put(ray.cloudpickle.dumps((solver, problem, type(x))))
    needed = plugins.paths()
    attempts = dict.fromkeys(firsts, 0)
    running: dict[Any, int] = {}
    waiting = list(reversed(firsts))

    def submit(first: int) -> None:
        attempts[first] += 1
        fields = [None if field is None else field.numpy() for field in take(x, slice(first, first + size))]
        running[remote.remote(needed, things, fields, first, seconds, seed)] = first

    try:
        while waiting or running:
            # A few blocks ahead for every core that the cluster has now, so that nodes that join get work too.
            ahead = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
            while waiting and len(running) < ahead:
                submit(waiting.pop())
            done, _ = ray.wait(list(running), num_returns=1, timeout=10.0)
            for reference in done:
                first = running.pop(reference)
                try:
                    yield Block(*ray.get(reference))
                except ray.exceptions.RayTaskError as error:
                    raise (error.cause if isinstance(error.cause, InputError) else error) from None
                except ray.exceptions.RayError:
                    if attempts[first] >= ATTEMPTS:
                        raise
                    waiting.append(first)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
