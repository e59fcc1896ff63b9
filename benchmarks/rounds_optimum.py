"""Small random rounds with all attributes beside their optimum: is a plan found, and is it the best there is?

    python benchmarks/rounds_optimum.py --minutes 20               # rounds of 6 and 7 stops, one after the other
    python benchmarks/rounds_optimum.py --stops 4,5 --minutes 2

All orders of all sets of stops are enumerated, with all reloads (tests/rounds/brute_force_rounds.py), which takes from
a second to minutes a round; those with more than --most orders are passed over. Prints how many plans are as good as
the optimum, how far the others are above it, and how many would be below it, which none may be: exits with 1 if one is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import combinations, count, permutations
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "rounds"))

from brute_force_rounds import optimum, reloaded
from random_rounds import random_round

from routelearn.errors import InputError
from routelearn.rounds.model import Round
from routelearn.rounds.search import load_kernels
from routelearn.rounds.solving import solve_round
from routelearn.rounds.timing import rank

NEAR = 1e-6


def orders(x: Round) -> int:
    """How many drives the enumeration looks at."""
    total = 0
    for vehicle in x.vehicles:
        may = sum(x.serves(vehicle, stop) for stop in x.stops)
        for size in range(1, may + 1):
            sample = tuple(range(size))
            each = sum(1 for _ in permutations(sample)) * sum(1 for _ in reloaded(vehicle, sample))
            total += each * sum(1 for _ in combinations(range(may), size))
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", default="6,7", help="numbers of stops [6,7]")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first round [0]")
    parser.add_argument("--most", type=int, default=200_000, help="orders to enumerate for one round [200000]")
    parser.add_argument("--iterations", type=int, default=20_000, help="of the search on each [20000]")
    options = parser.parse_args()
    sizes = {int(size) for size in options.stops.split(",")}
    load_kernels()
    tally: Counter[str] = Counter()
    end = time.perf_counter() + 60 * options.minutes
    for seed in count(options.first):
        if time.perf_counter() > end:
            break
        x = random_round(seed, most_stops=max(sizes))
        if len(x.stops) not in sizes:
            continue
        if orders(x) > options.most:
            tally["passed over"] += 1
            continue
        best = optimum(x)
        assert best is not None, "the plan that the round was made around is one"
        tally[f"{len(x.stops)} stops"] += 1
        try:
            found = solve_round(x, iterations=options.iterations, seed=seed, policy=False).plan
        except InputError as refusal:
            tally["refused"] += 1
            print(f"round {seed}: {refusal}", flush=True)
            continue
        ours, least = rank(x, found), rank(x, best)
        pairs = [(a, b) for a, b in zip(ours, least, strict=True) if abs(a - b) > NEAR * max(1.0, abs(b))]
        if not pairs:
            tally["optimal"] += 1
        elif pairs[0][0] < pairs[0][1]:
            tally["below the optimum"] += 1
            print(f"round {seed}: {ours} below {least}", flush=True)
        else:
            tally["above the optimum"] += 1
            print(f"round {seed}: {ours} above {least}", flush=True)
    print(", ".join(f"{number} {name}" for name, number in tally.items()))
    return int(tally["below the optimum"] > 0)


if __name__ == "__main__":
    sys.exit(main())
