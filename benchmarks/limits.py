"""How long `solve` takes for thousands of stops, by the clock and by the processor, beside the limit it was given.

    python benchmarks/limits.py [--stops 5000,10000] [--seconds 0,1] [--problems tsp,...] [--threads 1]

Each problem is solved as sampled and, where that is more work, with limits that want many stops: half of a whole tour's
length, nine tenths of the prizes, or a full load more for every other stop. Kernels are loaded before. It exits with
1 if an answer takes more than 5 % and 50 ms beyond a limit that is not 0, by the clock, or is refused.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import Any

import numpy as np
from solve_quality import arguments

import routelearn
from routelearn import problems
from routelearn.problems import NumpyRng

PROBLEMS = ("tsp", "cvrp", "sdvrp", "op-const", "op-unif", "op-dist", "pctsp", "spctsp")
SHARE, MORE = 0.05, 0.05  # what an answer may take beyond the limit: so much of it, and so many seconds
TOUR = 0.7124  # length of a shortest tour of many places in a square, over the root of area and number


def wanted(name: str, stops: int) -> dict[str, dict[str, Any]]:
    """Requests by what they ask for."""
    sampled = arguments(name, problems.get(name).sample(NumpyRng(1), 1, stops))
    requests = {"as sampled": sampled}
    if "max_length" in sampled:
        requests["half a tour"] = sampled | {"max_length": TOUR * math.sqrt(stops) / 2}
    if "min_prize" in sampled:
        requests["most prizes"] = sampled | {"min_prize": 0.9 * float(sampled["prize"].sum())}
    if name == "sdvrp":
        whole = sampled["capacity"] * (np.arange(stops + 1) % 2)
        requests["full loads"] = sampled | {"demand": sampled["demand"] + whole}
    return requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", default="5000,10000")
    parser.add_argument("--seconds", default="0,1")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    limits = [float(seconds) for seconds in options.seconds.split(",")]
    late = 0
    heads = " ".join(f"{f'{limit:g} s: clock':>13} {'processor':>9} {'cost':>12}" for limit in limits)
    print(f"{'problem':10} {'':12} {'stops':>6} {heads}", flush=True)
    for name in options.problems.split(","):
        for stops in map(int, options.stops.split(",")):
            for asked, request in wanted(name, stops).items():
                routelearn.solve(**request, seconds=0.0, threads=options.threads)  # loads the kernels
                cells = []
                for limit in limits:
                    began, used = time.perf_counter(), time.process_time()
                    found = routelearn.solve(**request, seconds=limit, threads=options.threads)
                    took, used = time.perf_counter() - began, time.process_time() - used
                    over = 0 < limit < (took - MORE) / (1 + SHARE)
                    late += over
                    cells.append(f"{took:12.2f}{'!' if over else ' '} {used:9.2f} {found.cost:12.4f}")
                print(f"{name:10} {asked:12} {stops:6d} {' '.join(cells)}", flush=True)
    print(f"{late} beyond {SHARE:.0%} and {MORE:g} s of their limit")
    sys.exit(late > 0)


if __name__ == "__main__":
    main()
