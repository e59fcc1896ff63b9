"""Rounds of 500 stops with windows and a tenth more vehicles than PyVRP's plan needs: is there a plan after a second?

    python benchmarks/rounds_fleet.py                        # random rounds
    python benchmarks/rounds_fleet.py FOLDER --stops 500     # and the first stops of the VRPTW files with at least 500

The number of vehicles is that of PyVRP's best plan after 10 s without a limit, times 1.1, rounded up. With this limit
both search for 1 and 10 s, with one thread each; every plan is judged by the referee. Seconds are those that the
processor worked.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from rounds_quality import CLOCK, by_pyvrp, class_of, measure

from routelearn.rounds.files import read_round
from routelearn.rounds.model import ANY, Legs, Round, Stop, Vehicle
from routelearn.rounds.search import load_kernels

SPARE = 1.1
DAY = 1000.0


def random_round(stops: int, seed: int, wide: float, clusters: int) -> Round:
    """Stops anywhere, or around so many places; windows as wide as a share of the day; lengths cut to a tenth."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 200, (stops + 1, 2))
    if clusters:
        xy[1:] = rng.uniform(20, 180, (clusters, 2))[rng.integers(clusters, size=stops)] + rng.normal(0, 8, (stops, 2))
    legs = np.floor(10 * np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))) / 10
    opens = rng.uniform(legs[0, 1:], DAY - 10 - legs[1:, 0] - wide * DAY).clip(legs[0, 1:])
    shuts = np.minimum(opens + wide * DAY, DAY - 10 - legs[1:, 0])
    own = [
        Stop(id=str(i + 1), place=i + 1, delivery=(float(rng.integers(5, 40)),), service=10.0,
             windows=((round(float(opens[i]), 1), round(float(shuts[i]), 1) + 0.1),))
        for i in range(stops)
    ]  # fmt: skip
    van = Vehicle(id="van", number=None, capacity=(200.0,), start=0, end=0, shift=(0.0, DAY))
    name = f"{stops} stops, windows of {wide:.0%} of the day, {clusters or 'no'} clusters"
    places = tuple(map(str, range(stops + 1)))
    return Round(
        source=name, stops=tuple(own), vehicles=(van,), legs={ANY: Legs(legs, legs)}, places=places, rounding="dimacs"
    )


def rounds(folder: Path | None, stops: int) -> Iterator[Round]:
    for seed, (wide, clusters) in enumerate([(0.1, 0), (0.3, 0), (0.1, 20), (0.3, 20)]):
        yield random_round(stops, seed, wide, clusters)
    for path in sorted(folder.glob("*.vrp")) if folder is not None else ():
        x = read_round(path, problem="vrp")
        if x is not None and class_of(x) == "VRPTW" and len(x.stops) >= stops:
            yield replace(x, source=f"{path.name}, {stops} stops", stops=x.stops[:stops])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--stops", type=int, default=500)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    given = parser.parse_args()
    load_kernels()
    CLOCK[0] = time.process_time
    print("| round | vehicles | seed | 1 s: ours | PyVRP | 10 s: ours | PyVRP |\n|---|---|---|---|---|---|---|")
    for x in rounds(given.folder, given.stops):
        used = len(by_pyvrp(replace(x, vehicles=(replace(x.vehicles[0], number=None),)), 10.0, 1) or ())
        limited = replace(x, vehicles=(replace(x.vehicles[0], number=math.ceil(SPARE * used)),))
        for seed in given.seeds:
            cells = []
            for seconds in (1.0, 10.0):
                for solver in ("ours", "pyvrp"):
                    row = measure(limited, (1.0, None), solver, seconds, seed)
                    cells.append(f"{row['cost']:.1f}" if row["status"] == "ok" else row["status"])
            print(f"| {x.source} | {limited.vehicles[0].number} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
