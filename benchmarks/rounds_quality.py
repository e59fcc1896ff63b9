"""What the search of rounds reaches in a given time, beside PyVRP and OR-Tools: same files, same seconds, one core.

    python benchmarks/rounds_quality.py FOLDER                            # .vrp and .txt files, 1 and 10 s each
    python benchmarks/rounds_quality.py FOLDER --seconds 1 --seeds 1 2 3 --only VRPTW --solvers ours pyvrp
    python benchmarks/rounds_quality.py FOLDER --out rounds_quality.json  # every run, rewritten after each
    python benchmarks/rounds_quality.py FOLDER --processor --solvers ours pyvrp  # seconds that the processor worked

Every answer becomes drives of the same `Round`, gets its times by `timing.plan_of` and is judged by the referee. One
that breaks a rule counts as infeasible, one that lacks stops as incomplete; neither is averaged. Gaps are to the best
known value by the file's own rounding: the cost of the routes in the `.sol` beside the file, timed and judged alike, or
BEST_KNOWN for files without one. Where vehicles come first (Li and Lim), the gap is between distances with as many
vehicles as the best known answer has; an answer with more is counted as such and not averaged.

Both others get their model from the `Round`, not from their own readers. It is in whole numbers: everything times 10
with DIMACS' rounding, 1 with the nearest integer and 1,000 otherwise, as `pyvrp.read` does; where legs are unrounded,
durations are rounded up, so that an answer is feasible in exact numbers, too. Where vehicles come first, each costs as
much as ten of the longest legs. The clock starts with the call, so it counts building a model, too. OR-Tools knows no
seed; it gets the stops in another order for each.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from routelearn.rounds.files import read_round
from routelearn.rounds.model import FOREVER, Round, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.referee import judge
from routelearn.rounds.search import load_kernels, search_round
from routelearn.rounds.timing import plan_of

BEST_KNOWN: dict[str, tuple[float, int | None]] = {  # cost, and vehicles where they come first
    "R105": (1355.3, None), "p01": (576.87, None), "p05": (750.03, None), "pr04": (2058.31, None),
    "lc101": (828.94, 10), "lr105": (1377.11, 14), "lrc201": (1406.94, 4),
}  # fmt: skip
SCALES = {"nearest": 1, "dimacs": 10}
FINEST = 1000
NEVER = 1 << 32  # a leg that PyVRP is not to drive; with its own MAX_VALUE (1 << 44), SDVRPTW never came back
LATEST = 1 << 40  # in whole numbers; no shift ends later
LONGEST_LEGS = 10  # what a vehicle costs where vehicles come first
CLOCK = [time.perf_counter]  # what the seconds of searches are told by; OR-Tools has a clock of its own
Row = dict[str, Any]


class Unsupported(Exception):
    """A solver cannot express the round."""


# Files


def class_of(x: Round) -> str:
    """What the literature calls the problem."""
    windows = any(stop.windows[0][1] < FOREVER for stop in x.stops)
    kind = "VRPTW" if windows else "VRP"
    if x.shipments:
        return "PDPTW" if windows else "PDP"
    if x.backhauls == "last":
        return "VRPB"
    if any(vehicle.reloads for vehicle in x.vehicles):
        return f"MT{kind}R" if any(stop.release > -FOREVER for stop in x.stops) else f"MT{kind}"
    if any(stop.penalty is not None for stop in x.stops):
        return f"PC{kind}"
    if any(stop.only is not None for stop in x.stops):
        return f"SD{kind}"
    if len({vehicle.start for vehicle in x.vehicles}) > 1:
        return f"MD{kind}"
    return f"HF{kind}" if len(x.vehicles) > 1 else kind


def best_known(path: Path, x: Round) -> tuple[float, int | None]:
    """Cost in the round's units, and the number of vehicles where they come first."""
    solution = path.with_suffix(".sol")
    if not solution.is_file():
        name = path.stem.rpartition("-")[2]
        if name not in BEST_KNOWN:
            raise ValueError(f"{path.name}: no {solution.name} beside it, and no best known value in this script")
        return BEST_KNOWN[name]
    text = solution.read_text()
    stop_at = {stop.place: i for i, stop in enumerate(x.stops)}
    # the k-th route is that of the k-th vehicle in the file; 0 is the depot, where it reloads
    owner = [k for k, vehicle in enumerate(x.vehicles) for _ in range(vehicle.number or len(x.stops))]
    routes = [[int(word) for word in line.split()] for line in re.findall(r"Route[^:]*:(.*)", text)]
    plan = plan_of(x, [Drive(owner[k], tuple(stop_at.get(i, ~i) for i in route)) for k, route in enumerate(routes)])
    broken = judge(x, plan).violations
    stated = float(re.search(r"Cost:?\s*(\S+)", text)[1])  # type: ignore[index]
    powers = math.log10(stated / plan.cost)
    if broken or abs(powers - round(powers)) > 1e-6:
        words = broken[0].words if broken else f"its routes cost {plan.cost:.10g}, not {stated:.10g} in any unit"
        raise ValueError(f"{solution.name}: {words}")
    return plan.cost, len(plan.routes) if x.objective == "vehicles" else None


# Whole numbers for the other solvers


class Whole:
    """A round in whole numbers; what neither of the other solvers is told about is refused."""

    def __init__(self, x: Round) -> None:
        self.round, self.scale = x, SCALES.get(x.rounding, FINEST)
        legs = next(iter(x.legs.values()))
        self.distance = np.rint(legs.distance * self.scale).astype(np.int64)
        self.duration = np.ceil(legs.duration * self.scale - 1e-6).astype(np.int64)
        if reason := next(self._beyond(), None):
            raise Unsupported(reason)
        self.depots = sorted({p for v in x.vehicles for p in (v.start, v.end, *v.reloads) if p is not None})

    def _beyond(self) -> Iterator[str]:
        x = self.round
        for vehicle in x.vehicles:
            usual = Vehicle(id=vehicle.id)
            names = ("driving_cost", "time_cost", "max_distance", "max_driving", "max_stops", "overtime")
            yield from (
                name
                for name in (*names, "breaks", "kept", "reload_time")
                if getattr(vehicle, name) != getattr(usual, name)
            )
            if vehicle.start is None or vehicle.end is None:
                yield "open routes"
            if vehicle.distance_cost != int(vehicle.distance_cost):
                yield "distance_cost that is not whole"
        for stop in x.stops:
            yield from (name for name in ("setup", "skills", "forbidden") if getattr(stop, name))
            if stop.late_cost is not None:
                yield "late_cost"
            if len(stop.windows) > 1:
                yield "several windows"
        if len(x.legs) > 1 or min(x.most_stops_apart, x.most_time_apart) < FOREVER or x.allow_unassigned:
            yield "profiles, routes alike or stops left out"

    def least(self, value: float) -> int:
        """A beginning, or an amount."""
        return max(0, math.ceil(value * self.scale - 1e-6)) if value > -FOREVER else 0

    def most(self, value: float) -> int:
        """An end or a limit."""
        return min(LATEST, math.floor(value * self.scale + 1e-6)) if value < FOREVER else LATEST

    def amounts(self, values: Sequence[float]) -> list[int]:
        return [self.least(value) for value in (*values, *[0.0] * (self.round.size - len(values)))]

    def capacity(self, vehicle: Vehicle) -> list[int]:
        return list(map(self.most, vehicle.capacity or [FOREVER] * self.round.size))

    def number(self, vehicle: Vehicle) -> int:
        return len(self.round.stops) if vehicle.number is None else vehicle.number

    def fixed_cost(self, vehicle: Vehicle) -> int:
        first = LONGEST_LEGS * int(self.distance.max()) if self.round.objective == "vehicles" else 0
        return round(vehicle.fixed_cost * self.scale) + first


# Solvers: drives from a round, seconds and a seed; None: no answer


def ours(x: Round, seconds: float, seed: int) -> tuple[Drive, ...] | None:
    return search_round(x, seconds=seconds, seed=seed, threads=1, clock=CLOCK[0])


def by_pyvrp(x: Round, seconds: float, seed: int) -> tuple[Drive, ...] | None:
    import pyvrp

    end = CLOCK[0]() + seconds
    data, stops_of_clients, whole = pyvrp_data(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of penalties at their bounds
        best = pyvrp.solve(data, lambda _: CLOCK[0]() > end, seed=seed, collect_stats=False).best
    drives = []
    for route in best.routes():
        order: list[int] = []
        for activity in list(route)[1:-1]:
            if activity.is_depot():
                order.append(~whole.depots[activity.idx])
            elif activity.is_client():
                order.append(stops_of_clients[activity.idx])
            else:
                order.append(x.shipments[activity.idx][activity.is_delivery()])
        kept = [at for k, at in enumerate(order) if at >= 0 or (0 < k < len(order) - 1 and order[k - 1] >= 0)]
        drives.append(Drive(route.vehicle_type(), tuple(kept)))
    return tuple(drives)


def pyvrp_data(x: Round) -> tuple[Any, list[int], Whole]:
    """PyVRP's model, and which stop each of its clients is; the others are shipments."""
    import pyvrp

    w = Whole(x)
    xy = np.zeros((len(x.places), 2)) if x.xy is None else np.rint(x.xy * w.scale)
    clients, numbers = [], []
    for i, stop in enumerate(x.stops):
        if i in x.shipment_of:
            continue
        numbers.append(i)
        clients.append(
            pyvrp.Client(
                stop.place,
                w.amounts(stop.delivery),
                w.amounts(stop.pickup),
                w.least(stop.service),
                w.least(stop.windows[0][0]),
                w.most(stop.windows[0][1]),
                w.least(stop.release),
                prize=round((stop.penalty or 0.0) * w.scale),
                required=stop.penalty is None,
            )
        )
    shipments = []
    for a, b in ((x.stops[pickup], x.stops[delivery]) for pickup, delivery in x.shipments):
        step = [(s.place, w.least(s.windows[0][0]), w.most(s.windows[0][1]), w.least(s.service)) for s in (a, b)]
        shipments.append(pyvrp.Shipment(step[0][0], step[1][0], *step[0][1:], *step[1][1:], w.amounts(a.pickup)))
    matrices, types = [], []
    for profile, vehicle in enumerate(x.vehicles):
        never = np.zeros_like(w.distance, dtype=bool)
        banned = [stop.place for stop in x.stops if not x.serves(vehicle, stop)]
        never[banned] = never[:, banned] = True
        if x.backhauls == "last":
            back = [stop.place for stop in x.stops if any(stop.pickup)]
            never[np.ix_(back, [stop.place for stop in x.stops if any(stop.delivery)])] = True
        np.fill_diagonal(never, False)
        matrices.append([np.where(never, NEVER, matrix) for matrix in (w.distance, w.duration)])
        types.append(
            pyvrp.VehicleType(
                w.number(vehicle),
                w.capacity(vehicle),
                w.depots.index(vehicle.start),
                w.depots.index(vehicle.end),
                w.fixed_cost(vehicle),
                w.least(vehicle.shift[0]),
                w.most(vehicle.shift[1]),
                w.most(vehicle.max_duration),
                unit_distance_cost=int(vehicle.distance_cost),
                profile=profile,
                reload_depots=[w.depots.index(place) for place in vehicle.reloads],
                max_reloads=vehicle.trips - 1,
            )
        )
    data = pyvrp.ProblemData(
        [pyvrp.Location(*point) for point in xy.tolist()],
        clients,
        [pyvrp.Depot(place) for place in w.depots],
        types,
        [distance for distance, _ in matrices],
        [duration for _, duration in matrices],
        shipments=shipments,
    )
    return data, numbers, w


def by_ortools(x: Round, seconds: float, seed: int) -> tuple[Drive, ...] | None:
    """Nodes are the stops, in an order by the seed, then the depots."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    end = time.perf_counter() + seconds
    w = Whole(x)
    if any(vehicle.reloads for vehicle in x.vehicles) or any(stop.release > -FOREVER for stop in x.stops):
        raise Unsupported("several trips, release times")
    brings, takes = (any(any(getattr(stop, side)) for stop in x.stops) for side in ("delivery", "pickup"))
    if brings and takes and len(x.shipment_of) < len(x.stops):
        raise Unsupported("deliveries beside pickups")
    order = np.random.default_rng(seed).permutation(len(x.stops)).tolist()
    stops = [x.stops[i] for i in order]
    fleet = [k for k, vehicle in enumerate(x.vehicles) for _ in range(w.number(vehicle))]
    node_of = {place: len(stops) + k for k, place in enumerate(w.depots)}
    starts, ends = ([node_of[getattr(x.vehicles[k], at)] for k in fleet] for at in ("start", "end"))
    places = [*(stop.place for stop in stops), *w.depots]
    manager = pywrapcp.RoutingIndexManager(len(places), len(fleet), starts, ends)
    routing = pywrapcp.RoutingModel(manager)
    index = [manager.NodeToIndex(node) for node in range(len(stops))]
    distance = w.distance[np.ix_(places, places)]
    costs = {
        p: routing.RegisterTransitMatrix((distance * p).tolist()) for p in {int(v.distance_cost) for v in x.vehicles}
    }
    for number, k in enumerate(fleet):
        routing.SetArcCostEvaluatorOfVehicle(costs[int(x.vehicles[k].distance_cost)], number)
        routing.SetFixedCostOfVehicle(w.fixed_cost(x.vehicles[k]), number)
    capacities = [w.capacity(vehicle) for vehicle in x.vehicles]
    for d in range(x.size):
        sign = -1 if x.shipments else 1
        change = [w.amounts(stop.pickup)[d] + sign * w.amounts(stop.delivery)[d] for stop in stops]
        load = routing.RegisterUnaryTransitVector([*change, *[0] * len(w.depots)])
        routing.AddDimensionWithVehicleCapacity(load, 0, [capacities[k][d] for k in fleet], True, f"load {d}")
    service = np.array([*(w.least(stop.service) for stop in stops), *[0] * len(w.depots)])
    driving = routing.RegisterTransitMatrix((w.duration[np.ix_(places, places)] + service[:, None]).tolist())
    routing.AddDimension(driving, LATEST, LATEST, False, "time")
    clock = routing.GetDimensionOrDie("time")
    for node, stop in enumerate(stops):
        clock.CumulVar(index[node]).SetRange(w.least(stop.windows[0][0]), w.most(stop.windows[0][1]))
        allowed = [number for number, k in enumerate(fleet) if x.serves(x.vehicles[k], stop)]
        if len(allowed) < len(fleet):
            routing.VehicleVar(index[node]).SetValues([-1, *allowed])
        if stop.penalty is not None:
            routing.AddDisjunction([index[node]], round(stop.penalty * w.scale))
    for number, k in enumerate(fleet):
        low, high = x.vehicles[k].shift
        for at in (routing.Start(number), routing.End(number)):
            clock.CumulVar(at).SetRange(w.least(low), w.most(high))
        if x.vehicles[k].max_duration < FOREVER:
            clock.SetSpanUpperBoundForVehicle(w.most(x.vehicles[k].max_duration), number)
    node_of_stop = {i: node for node, i in enumerate(order)}
    for halves in x.shipments:
        pickup, delivery = (index[node_of_stop[i]] for i in halves)
        routing.AddPickupAndDelivery(pickup, delivery)
        routing.solver().Add(routing.VehicleVar(pickup) == routing.VehicleVar(delivery))
        routing.solver().Add(clock.CumulVar(pickup) <= clock.CumulVar(delivery))
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PARALLEL_CHEAPEST_INSERTION
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    parameters.time_limit.FromMilliseconds(max(1, int(1000 * (end - time.perf_counter()))))
    solution = routing.SolveWithParameters(parameters)
    if solution is None:
        return None
    drives = []
    for number, k in enumerate(fleet):
        at, visited = solution.Value(routing.NextVar(routing.Start(number))), []
        while not routing.IsEnd(at):
            visited.append(order[manager.IndexToNode(at)])
            at = solution.Value(routing.NextVar(at))
        if visited:
            drives.append(Drive(k, tuple(visited)))
    return tuple(drives)


SOLVERS: dict[str, Callable[[Round, float, int], tuple[Drive, ...] | None]] = {
    "ours": ours,
    "pyvrp": by_pyvrp,
    "ortools": by_ortools,
}


# Measuring


def measure(x: Round, best: tuple[float, int | None], solver: str, seconds: float, seed: int) -> Row:
    """One run: `status` is ok, more vehicles, incomplete, infeasible, none (no answer) or unsupported."""
    row: Row = {"solver": solver, "seconds": seconds, "seed": seed, "cost": None, "gap": None}
    began, worked, told = time.perf_counter(), time.process_time(), CLOCK[0]()
    try:
        drives = SOLVERS[solver](x, seconds, seed)
    except Unsupported as error:
        return row | {"status": "unsupported", "why": str(error), "took": None, "core": None}
    row["took"] = CLOCK[0]() - told
    row["core"] = (time.process_time() - worked) / (time.perf_counter() - began)
    if drives is None:
        return row | {"status": "none"}
    plan = plan_of(x, drives)
    verdict = judge(x, plan)
    row |= {"cost": verdict.cost, "vehicles": len(plan.routes)}
    if verdict.violations:
        broken = Counter(violation.rule for violation in verdict.violations)
        status = "incomplete" if set(broken) == {"unassigned"} else "infeasible"
        return row | {"status": status, "why": verdict.violations[0].words, "broken": dict(broken)}
    if best[1] is not None and len(plan.routes) > best[1]:
        return row | {"status": "more vehicles"}
    return row | {"status": "ok", "gap": verdict.cost / best[0] - 1}


def cell(rows: Sequence[Row]) -> str:
    """Mean gap of the answers that count, and how many do not."""
    rows = [row for row in rows if row["status"] != "unsupported"]
    gaps = [row["gap"] for row in rows if row["status"] == "ok"]
    others = Counter(row["status"] for row in rows if row["status"] != "ok")
    words = [f"{round(sum(gaps) / len(gaps), 4) + 0.0:.2%}"] if gaps else []  # + 0.0: no "-0.00%"
    return "; ".join([*words, *(f"{count} {status}" for status, count in others.items())])


def show(rows: Sequence[Row], solvers: Sequence[str]) -> None:
    """A table of files and one of classes for each time limit, with the longest call of each solver.

    The share of a core that a call got tells whether the machine was idle enough for it.
    """
    for seconds in sorted({row["seconds"] for row in rows}):
        timed = [row for row in rows if row["seconds"] == seconds]
        print(f"\n| {seconds:g} s: file | class | stops | best known | {' | '.join(solvers)} |")
        print(f"|{'---|' * (4 + len(solvers))}")
        for name, group in groupby(timed, key=lambda row: row["file"]):
            runs = list(group)
            cells = [cell([row for row in runs if row["solver"] == solver]) for solver in solvers]
            first = runs[0]
            print(f"| {name} | {first['class']} | {first['stops']} | {first['best']:.10g} | {' | '.join(cells)} |")
        print(f"\n| {seconds:g} s: class | files | {' | '.join(solvers)} |")
        print(f"|{'---|' * (2 + len(solvers))}")
        for kind in dict.fromkeys(row["class"] for row in timed):
            runs = [row for row in timed if row["class"] == kind]
            cells = [cell([row for row in runs if row["solver"] == solver]) for solver in solvers]
            print(f"| {kind} | {len({row['file'] for row in runs})} | {' | '.join(cells)} |")
        longest = [max((row["took"] or 0.0 for row in timed if row["solver"] == s), default=0.0) for s in solvers]
        print(f"| longest call | | {' | '.join(f'{took:.2f} s' for took in longest)} |")
        least = [
            min((row["core"] for row in timed if row["solver"] == s and row["core"]), default=0.0) for s in solvers
        ]
        print(f"| least share of a core | | {' | '.join(f'{share:.0%}' for share in least)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with .vrp (and .sol) and .txt files of the libraries")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", metavar="CLASS", help="classes as in the table: VRPTW, PDPTW, ...")
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), default=list(SOLVERS))
    parser.add_argument(
        "--processor", action="store_true", help="count the processor's seconds, on a machine that others use, too"
    )
    parser.add_argument("--out", type=Path, help="write every run there as JSON")
    given = parser.parse_args()
    if given.processor and "ortools" in given.solvers:
        parser.error("OR-Tools goes by the wall's seconds; leave it out (--solvers ours pyvrp) with --processor")
    CLOCK[0] = time.process_time if given.processor else time.perf_counter
    if not given.folder.is_dir():
        parser.error(
            f"there is no folder {given.folder}; the library files are no part of routelearn, give their folder"
        )
    paths = sorted(path for path in given.folder.iterdir() if path.suffix in (".vrp", ".txt"))
    if not paths:
        parser.error(f"{given.folder} has neither .vrp nor .txt files")
    load_kernels()
    rows: list[Row] = []
    for path in paths:
        try:
            x = read_round(path, problem="vrp")
            assert x is not None
            kind, best = class_of(x), best_known(path, x)
        except ValueError as error:
            print(f"left out: {error}", flush=True)
            continue
        if given.only and kind not in given.only:
            continue
        about = {"file": path.name, "class": kind, "stops": len(x.stops), "best": best[0], "best_vehicles": best[1]}
        for seconds in given.seconds:
            for solver in given.solvers:
                for seed in given.seeds:
                    row = about | measure(x, best, solver, seconds, seed)
                    rows.append(row)
                    words = row.get("why", "") if row["gap"] is None else f"{row['gap']:.3%}"
                    took = "" if row["took"] is None else f"{row['took']:.2f} s"
                    print(path.name, solver, f"{seconds:g} s", f"seed {seed}", row["status"], words, took, flush=True)
                    if given.out is not None:
                        given.out.write_text(json.dumps(rows, indent=1) + "\n")
    show(rows, given.solvers)


if __name__ == "__main__":
    main()
