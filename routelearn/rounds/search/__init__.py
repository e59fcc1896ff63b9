"""The search for a plan of a round: `search_round`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from routelearn.rounds.model import Round
from routelearn.rounds.plan import Drive
from routelearn.rounds.search import ruin
from routelearn.rounds.search.arrays import Data, data_of
from routelearn.rounds.search.routes import new_routes
from routelearn.rounds.search.walking import carries
from routelearn.search.graph import random_state

__all__ = ["Engine", "search_round"]

HOT, COLD = 2.0, 0.05  # temperature, in mean costs of a stop
SLICE = 0.004  # seconds between two looks at the clock
SLICES = 64  # of a run that is limited by iterations

Watch = Callable[[float, float], None]  # (seconds, cost) of a new best plan


class Engine:
    """The search on one round; one thread, the GIL released."""

    def __init__(self, x: Round, seed: int = 0):
        self.round, self.data = x, data_of(x)
        d = self.data
        self.routes, self.desk = new_routes(d), new_desk(d)
        self.random = random_state(seed)

    def construct(self, start: Sequence[Drive] = ()) -> None:
        """Take up drives, and insert all other stops where they cost least."""
        d, x, desk = self.data, self.routes, self.desk
        ruin.load(d, x, desk, self._written(start))
        desk.real[ruin.BEST] = np.inf
        ruin.fill(d, x, desk, self.random)

    def _written(self, drives: Sequence[Drive]) -> np.ndarray:
        """Drives as the kernels have them; vehicles with kept stops drive in any case."""
        d = self.data
        node = {int(place): n for n, place in enumerate(d.place) if n >= len(d.service)}
        free = d.slots[:-1].tolist()
        plan: list[int] = []
        missing = {k for k, v in enumerate(self.round.vehicles) if v.kept}
        for k, order in [*drives, *((k, self._kept(k)) for k in missing - {k for k, _ in drives})]:
            plan += [free[k], *(at if at >= 0 else -2 - node[~at] for at in order), -1]
            free[k] += 1
        return np.array([*plan, -1], dtype=np.int32)

    def _kept(self, k: int) -> tuple[int, ...]:
        """The stops that a vehicle begins with, and a reload wherever the next one would be too much."""
        order: list[int] = []
        trip: list[int] = []
        v = self.round.vehicles[k]
        for i in v.kept:
            if v.reloads and trip and not carries(self.data, k, np.array([*trip, i], dtype=np.int32), len(trip) + 1):
                order.append(~v.reloads[0])
                trip = []
            order.append(i)
            trip.append(i)
        return tuple(order)

    def explore(self, cooled: float, work: int) -> None:
        """Ruin and recreate so many times, at a share of the cooling."""
        d, x = self.data, self.routes
        used = x.used[: x.size[0]]
        mean = (x.cost[used] - d.fixed[d.kind[used]]).sum() / max(1, len(d.service) - x.size[1])
        temperature = HOT * (COLD / HOT) ** cooled * mean
        ruin.anneal(self.data, self.routes, self.desk, temperature, work, self.random)

    @property
    def cost(self) -> float:
        return float(self.desk.real[ruin.BEST])

    def drives(self) -> tuple[Drive, ...]:
        """The best plan."""
        d, found, at, best = self.data, [], 0, self.desk.best
        while best[at] >= 0:
            kind = int(d.kind[best[at]])
            at += 1
            order = []
            while best[at] != -1:
                order.append(int(best[at]) if best[at] >= 0 else ~int(d.place[-2 - best[at]]))
                at += 1
            at += 1
            found.append(Drive(kind, tuple(order)))
        return tuple(sorted(found))


def new_desk(d: Data) -> ruin.Desk:
    n, slots = len(d.service), len(d.kind)
    ids = n + 2 * slots + int(d.reload_from[-1])
    whole = np.int32
    return ruin.Desk(
        np.zeros(2 * n + 1, whole), np.zeros(2 * n + 1), np.zeros(slots, whole), np.zeros(slots, np.bool_),
        np.zeros(ids + slots, whole), np.zeros(slots + 1, whole), np.zeros((slots, 2)), np.zeros(2 * ids, whole),
        np.zeros(ruin.TOP), np.zeros(ruin.TOP, whole), np.zeros(ruin.TOP, whole), np.zeros(ids + 1, whole),
        np.zeros(d.break_service.shape[1], whole), np.full(ids + 2 * slots + 1, -1, whole), np.full(2, np.inf),
    )  # fmt: skip


def search_round(
    x: Round,
    *,
    seconds: float = 1.0,
    iterations: int | None = None,
    seed: int = 0,
    start: Sequence[Drive] | None = None,
    watch: Watch | None = None,
) -> tuple[Drive, ...]:
    """The best plan found in `seconds`, or in `iterations` of the search, which then repeats exactly."""
    began = time.perf_counter()
    engine = Engine(x, seed)
    engine.construct(start or ())
    done, rate, now = 0, 0.0, time.perf_counter()
    while done < iterations if iterations is not None else now < began + seconds:
        if iterations is not None:
            cooled, work = done / iterations, min(max(1, iterations // SLICES), iterations - done)
        else:
            cooled = (now - began) / seconds
            work = max(1, int(rate * min(SLICE, began + seconds - now)))
        before = engine.cost
        engine.explore(cooled, work)
        done += work
        then, now = now, time.perf_counter()
        rate = work / max(now - then, 1e-9)
        if watch is not None and engine.cost < before:
            watch(now - began, engine.cost)
    return engine.drives()
