"""The search for a plan of a round: `search_round`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from routelearn.rounds.model import ANY, Legs, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.search import annealing
from routelearn.rounds.search.arrays import Data, Ints, data_of
from routelearn.rounds.search.desk import BEST, BEST_ABOVE, COST, new_desk
from routelearn.rounds.search.recombining import RoundRecombining
from routelearn.rounds.search.routes import new_routes
from routelearn.rounds.search.walking import carries
from routelearn.runtime.processors import usable_processors
from routelearn.search.graph import random_state
from routelearn.search.recombining import forget

__all__ = ["Engine", "load_kernels", "search_round"]

HOT, COLD = 1.5, 0.05  # temperature: at first in mean costs of a stop, at last in those of a leg to a near one
LEAST = 0.05  # of the mean cost of a stop: no less is taken for a leg, where many stops are at one place
SLICE = 0.004  # seconds between two looks at the clock
SLICES = 64  # of a run that is limited by iterations
MOST_THREADS = 4  # more searches of one round find little more
JOIN = 0.6  # share of the time after which all threads go on from the best plan of all
RUNS, AMPLE = 3, 3000  # how often each begins anew until then, if there is time for so many steps a stop; else once
UNEQUAL = 1e9  # what routes that are not alike cost, in stops left out, when plans are compared
NEAR = 0.01  # the routes of plans that cost so much more than the best are remembered; a share
ANEW, PART = 0.9, 0.06  # shares of the time: after which routes are put together anew, and how long it may take
LONGEST = 4.0  # seconds of that
SEEDS = 7919  # between the seeds of two threads

Watch = Callable[[float, float], None]  # (seconds, cost) of a new best plan
Between = Callable[[float, Callable[[], tuple[Drive, ...]]], None]  # the search's price of the best plan, and that plan


class Engine:
    """The search on one round; one thread, the GIL released."""

    def __init__(self, x: Round, seed: int = 0, data: Data | None = None):
        self.round, self.data = x, data_of(x) if data is None else data
        self.routes, self.desk = new_routes(self.data), new_desk(self.data)
        self.random = random_state(seed)
        self.must = np.array([stop.penalty is None for stop in x.stops], dtype=np.bool_)
        self.recombining, self.other = RoundRecombining(self.data), new_routes(self.data)
        self.extra = self.data.vehicle["fixed"] - [v.fixed_cost for v in x.vehicles]  # where vehicles come first

    def take_up(self, plan: Ints) -> None:
        """Go on from another engine's best plan of the same round."""
        above, real = annealing.load(self.data, self.routes, self.desk, plan), self.desk.real
        if (above, real[COST]) < (real[BEST_ABOVE], real[BEST]):
            real[BEST_ABOVE], real[BEST] = above, real[COST]
            self.desk.best[:] = plan

    def construct(self, start: Sequence[Drive] = ()) -> None:
        """Take up drives, and insert all other stops where they cost least; the best plan so far is still known."""
        d, x, desk = self.data, self.routes, self.desk
        annealing.load(d, x, desk, self._written(start))
        annealing.anneal(d, x, desk, 0.0, 1, True, self.random)

    def _written(self, drives: Sequence[Drive]) -> Ints:
        """Drives as the kernels have them; vehicles with kept stops drive in any case."""
        d = self.data
        node = {int(place): n for n, place in enumerate(d.place) if n >= len(d.stop)}
        free = d.vehicle["slot_from"].tolist()
        plan: list[int] = []
        missing = {k for k, v in enumerate(self.round.vehicles) if v.kept}
        for k, order in [*drives, *((k, self._kept(k)) for k in missing - {k for k, _ in drives})]:
            plan += [free[k], *(at if at >= 0 else -2 - node[~at] for at in order), -1]
            free[k] += 1
        return np.array([*plan, -1], dtype=np.int64)

    def _kept(self, k: int) -> tuple[int, ...]:
        """The stops that a vehicle begins with, and a reload on the quickest way wherever the next one is too much."""
        order: list[int] = []
        trip: list[int] = []
        v, places = self.round.vehicles[k], [stop.place for stop in self.round.stops]
        time = self.round.legs_of(v).duration
        for i in v.kept:
            if v.reloads and trip and not carries(self.data, k, np.array([*trip, i], dtype=np.int64), len(trip) + 1):
                a, b = places[trip[-1]], places[i]
                order.append(~min(v.reloads, key=lambda at: time[a, at] + time[at, b]))
                trip = []
            order.append(i)
            trip.append(i)
        return tuple(order)

    def explore(self, cooled: float, work: int) -> None:
        """Ruin and recreate so many times, at a share of the cooling."""
        d, x = self.data, self.routes
        used = x.route["used"][: x.size[0]]
        driven = x.route["cost"][used] - d.vehicle["fixed"][d.slot["kind"][used]]
        mean = driven.sum() / max(1, len(d.stop) - x.size[1])
        hot, cold = HOT * mean, COLD * max(d.near_leg, LEAST * mean)
        temperature = hot ** (1.0 - cooled) * cold**cooled
        annealing.anneal(self.data, self.routes, self.desk, temperature, work, False, self.random)
        if self.desk.real[COST] <= (1.0 + NEAR) * self.desk.real[BEST] and self.recombining.pays(x):
            self.recombining.remember(x)

    def recombine(self, seconds: float) -> bool:
        """Put a cheaper plan together from routes that were met, and go on from it; whether there is one."""
        real, best = self.desk.real, self.desk.best
        cost, least = real[COST], real[BEST]
        annealing.load(self.data, self.other, self.desk, best)
        real[COST] = cost
        found = self.recombining.cheaper(self.other, least, seconds) if self.recombining.pays(self.other) else None
        if found is None:
            return False
        plan = np.full_like(best, -1)
        plan[: len(found)] = found
        self.take_up(plan)
        if real[BEST] == least:  # it breaks a rule that binds routes to one another
            self.take_up(best)
        return bool(real[BEST] < least)

    @property
    def cost(self) -> float:
        """Of the best plan; more than that of any whose routes are alike, if its are not."""
        return float(self.desk.real[BEST] + UNEQUAL * self.data.much * self.desk.real[BEST_ABOVE])

    @property
    def told(self) -> float:
        """What the best plan costs its user: without the search's prices of stops left out and of vehicles."""
        d, best = self.data, self.desk.best
        ends = best == -1
        plan = best[: int(np.argmax(ends[1:] & ends[:-1])) + 1] if best[0] >= 0 else best[:0]
        heads = np.append(True, plan[:-1] == -1)[: len(plan)]  # the slots of the vehicles
        missing = self.must.copy()
        missing[plan[~heads & (plan >= 0)]] = False
        more = self.extra[d.slot["kind"][plan[heads]]].sum() + d.stop["unserved"][missing].sum()
        return float(self.desk.real[BEST] - more)

    def drives(self, best: Ints | None = None) -> tuple[Drive, ...]:
        """The best plan, or one that another engine of the round found."""
        d, found, at = self.data, [], 0
        best = self.desk.best if best is None else best
        while best[at] >= 0:
            kind = int(d.slot["kind"][best[at]])
            at += 1
            order = []
            while best[at] != -1:
                order.append(int(best[at]) if best[at] >= 0 else ~int(d.place[-2 - best[at]]))
                at += 1
            at += 1
            found.append(Drive(kind, tuple(order)))
        return tuple(sorted(found))


def cooling(share: float, runs: int) -> tuple[int, float]:
    """In which run a search is at a share of its time, and how far it has cooled: `runs` to JOIN, each to the end."""
    if share >= JOIN:
        return runs, share
    at = share / JOIN * runs
    return (int(at), at - int(at)) if runs > 1 else (0, share)


def search_round(
    x: Round,
    *,
    seconds: float = 1.0,
    iterations: int | None = None,
    seed: int = 0,
    start: Sequence[Drive] | None = None,
    watch: Watch | None = None,
    between: Between | None = None,
    threads: int | None = None,
    stop: threading.Event | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Drive, ...]:
    """The best plan found in `seconds`, or in `iterations` of the search on every thread, which then repeats exactly.

    `watch` hears what each better plan costs; `between` is offered the best plan again and again, by one thread, which
    searches on when it returns. `stop`, or an interrupt, ends the search early with what it has; an interrupt sets it.
    Without `threads` there are as many as processors, up to MOST_THREADS; one where iterations count. `clock` tells
    the seconds.
    """
    began, stop = clock(), stop or threading.Event()
    if threads is None:
        threads = 1 if iterations is not None else min(MOST_THREADS, usable_processors())
    data = data_of(x)
    engines = [Engine(x, seed + SEEDS * k, data) for k in range(threads)]
    lock = threading.Lock()
    best, best_plan = float("inf"), engines[0].desk.best.copy()

    def tell(engine: Engine) -> None:
        """The engine's best plan is copied by its own thread: its kernels write it without the GIL."""
        nonlocal best
        with lock:
            if engine.cost < best:
                best, best_plan[:] = engine.cost, engine.desk.best
                if watch is not None and engine.desk.real[BEST_ABOVE] == 0:
                    watch(clock() - began, engine.told)

    def best_drives() -> tuple[Drive, ...]:
        with lock:
            plan = best_plan.copy()
        return engines[0].drives(plan)

    def search(engine: Engine) -> None:
        engine.construct(start or ())
        tell(engine)
        done, rate, now, runs, phase = 0, 0.0, clock(), 1, 0
        limit, due = min(PART * seconds, LONGEST) if iterations is None else np.inf, ANEW
        while not stop.is_set() and (done < iterations if iterations is not None else now < began + seconds):
            if iterations is not None:
                share, work = done / iterations, min(max(1, iterations // SLICES), iterations - done)
            else:
                share = (now - began) / seconds
                work = max(1, int(rate * min(SLICE, began + seconds - now)))
            steps = iterations if iterations is not None else rate * seconds
            if phase == 0:  # later it is settled how often to begin
                runs = RUNS if steps >= AMPLE * len(x.stops) else 1
                due = JOIN if runs > 1 else ANEW
            before, (now_in, cooled) = engine.cost, cooling(share, runs)
            if now_in != phase:
                phase = now_in
                if phase < runs:
                    engine.construct(start or ())
                elif runs > 1 or threads > 1:
                    with lock:  # where iterations count, no other thread does: which are ahead is chance
                        plan = (best_plan if iterations is None else engine.desk.best).copy()
                    engine.take_up(plan)
            if share >= due:
                engine.recombine(limit)
                due, now = 1.0 if share >= ANEW else ANEW, clock()
            engine.explore(cooled, work)
            done += work
            then, now = now, clock()
            rate = work / max(now - then, 1e-9)
            if engine.cost < before:
                tell(engine)
            if between is not None and engine is engines[0]:
                between(best, best_drives)
                now = clock()

    with ThreadPoolExecutor(max(1, threads - 1)) as pool:
        others = [pool.submit(search, engine) for engine in engines[1:]]
        try:
            search(engines[0])
            for other in others:
                other.result()
        except KeyboardInterrupt:
            stop.set()
        except BaseException:
            stop.set()
            raise
    return min(engines, key=lambda engine: engine.cost).drives()


@cache
def load_kernels() -> None:
    """Compile the search, or load it from the cache on disk, before timing starts."""
    place = Stop(id="a", place=1)
    legs = {ANY: Legs(np.zeros((2, 2)), np.zeros((2, 2)))}
    vehicle = Vehicle(id="v", start=0, end=0)
    x = Round(source="", stops=(place,), vehicles=(vehicle,), legs=legs, places=("", "a"))
    search_round(x, iterations=1)
    engine = Engine(x)
    engine.construct()
    engine.recombining.remember(engine.routes)
    forget(engine.recombining.recombining.met)
