"""Small random rounds with random combinations of all attributes: is every plan feasible, is one found, do costs agree?

    python benchmarks/rounds_random.py --count 100000              # half an hour on one core
    python benchmarks/rounds_random.py --count 1000 --first 500    # rounds 500 to 1,499

Rounds are those of the tests (tests/rounds/random_rounds.py): each is drawn around a plan that is known to be feasible,
so that none has to be refused. Every plan is judged by the referee, which shares no code with the search. Prints how
many were refused, infeasible or told another cost, how often each attribute occurred, and the rarest pair of them; and
of every tenth round (`--binding`), in how many each attribute binds: without it the plan that is found is another.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import combinations
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "rounds"))

from random_rounds import ATTRIBUTES, attributes_in, random_round, without

from routelearn.errors import InputError
from routelearn.rounds.model import Round
from routelearn.rounds.plan import Plan
from routelearn.rounds.referee import judge
from routelearn.rounds.search import load_kernels
from routelearn.rounds.solving import solve_round
from routelearn.rounds.timing import plan_of, rank

AGREE = 1e-6  # how far the cost by the times of the search may be from the referee's


def binds(x: Round, plan: Plan, name: str, iterations: int, seed: int) -> bool:
    """Whether the plan found without an attribute is another: other times or rules, a lower cost, more stops served."""
    free = without(x, name)
    same = plan_of(free, plan.drives)
    if same.violations or [route.visits for route in same.routes] != [route.visits for route in plan.routes]:
        return True
    try:
        other = solve_round(free, iterations=iterations, seed=seed, start=plan.drives, policy=False).plan
    except InputError:  # it is needed
        return True
    if abs(same.cost - plan.cost) > AGREE * max(1.0, abs(plan.cost)):
        return True
    ranks = zip(rank(free, other), rank(free, same), strict=True)
    first = next((a - b for a, b in ranks if abs(a - b) > AGREE * max(1.0, abs(b))), 0.0)  # the first that differs
    return first < 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="rounds [1000]")
    parser.add_argument("--first", type=int, default=0, help="number of the first one [0]")
    parser.add_argument("--binding", type=int, default=10, help="look for what binds in one round of so many [10]")
    parser.add_argument("--iterations", type=int, default=1000, help="of the search on each [1000]")
    options = parser.parse_args()
    load_kernels()
    tally: Counter[str] = Counter()
    single: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    bound: Counter[str] = Counter()
    looked: Counter[str] = Counter()
    began = time.perf_counter()
    for done, seed in enumerate(range(options.first, options.first + options.count), 1):
        x = random_round(seed)
        names = sorted(attributes_in(x))
        single.update(names)
        pairs.update(combinations(names, 2))
        try:
            plan = solve_round(x, iterations=options.iterations, seed=seed, policy=False).plan
        except InputError as refusal:
            tally["refused"] += 1
            print(f"round {seed}: {refusal}", flush=True)
            continue
        found, timed = judge(x, plan), plan_of(x, plan.drives)
        tally["infeasible"] += bool(found.violations)
        tally["another cost"] += abs(found.cost - timed.cost) > AGREE * max(1.0, abs(found.cost))
        if done % options.binding == 0:
            looked.update(names)
            bound.update(name for name in names if binds(x, plan, name, options.iterations, seed))
        if done % 1000 == 0:
            print(f"{done:,} rounds, {dict(tally)}, {time.perf_counter() - began:.0f} s", flush=True)
    rarest = min(combinations(sorted(ATTRIBUTES), 2), key=lambda pair: pairs[pair])
    print(
        f"{options.count:,} rounds: " + ", ".join(f"{tally[k]} {k}" for k in ("refused", "infeasible", "another cost"))
    )
    print("attributes: " + ", ".join(f"{name} {single[name]:,}" for name in sorted(ATTRIBUTES)))
    print(f"rarest pair: {' and '.join(rarest)}, {pairs[rarest]:,} rounds")
    shares = {name: bound[name] / looked[name] for name in looked}
    order = sorted(shares, key=shares.__getitem__)
    print("binds: " + ", ".join(f"{name} in {bound[name]} of {looked[name]} ({shares[name]:.0%})" for name in order))
    return int(tally["infeasible"] + tally["another cost"] > 0)


if __name__ == "__main__":
    sys.exit(main())
