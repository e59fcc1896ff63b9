"""A model, or the search, on the public sets of the 48 variants: mean gaps to given costs, as tables in Markdown.

    python benchmarks/variants_quality.py --costs COSTS.npz [--model vrp] [--sizes 50,100] [--limit 1000]
                                          [--decode greedy --decode augment:8 --decode augment:8+sample:{n}]
    python benchmarks/variants_quality.py --costs COSTS.npz --search 1,2 --limit 10 [--only vrptw,ovrp]
    python benchmarks/variants_quality.py --beyond 200,500 --search 10,10 --limit 5

COSTS.npz holds an array of costs, one an instance, for each variant and size, under names such as `ovrptw100`. Variants
without get their mean cost. In a strategy, `{n}` is the size. With `--search` the search works on one thread instead,
for so many seconds of the processor at each size, from the better of the policy's and its own first plan. `--beyond`
measures the model and, behind it, the search on places in clusters at sizes that the model has not met; gaps are to the
search. Every solution is checked; the exit status is 1 if one breaks a rule.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import routelearn
from routelearn.data.generate import generate, of_set
from routelearn.models import load_model
from routelearn.problems import NumpyRng
from routelearn.problems.base import take, to_single
from routelearn.problems.variants import RULES
from routelearn.rounds.files.variants import round_of
from routelearn.rounds.learned import policy_plan
from routelearn.rounds.referee import judge
from routelearn.rounds.search import load_kernels, search_round
from routelearn.rounds.timing import plan_of

BEYOND = ("cvrp", "vrptw", "ovrp", "vrpbl", "mdvrptw")
CLUSTERS, SPREAD = 6, 0.07  # of places beyond the training distribution


class Clustered(NumpyRng):
    """Draws places around a few centres; everything else as ever."""

    def uniform(self, *shape):
        drawn = super().uniform(*shape)
        if len(shape) < 3:
            return drawn
        batch, nodes, _ = shape
        centres = np.random.RandomState(7).uniform(0.1, 0.9, (batch, CLUSTERS, 2))
        which = np.arange(nodes) % CLUSTERS
        around = np.random.RandomState(8).normal(0, SPREAD, (batch, nodes, 2))
        return drawn.new_tensor(np.clip(centres[:, which] + around, 0, 1))


def decoded(options, x, strategy, n):
    """Costs [B], broken rules, seconds."""
    found = routelearn.evaluate(options.model, x, strategy, problem="vrp", precision=options.precision)
    return found.costs.numpy(), found.infeasible, found.seconds


def searched(options, x, seconds, n):
    model, costs, broken = load_model(path=options.model), [], 0
    for i in range(len(x.xy)):
        round_ = round_of(take(x, slice(i, i + 1)), f"instance {i}")
        began = time.process_time()
        start = policy_plan(round_, model)
        own = search_round(round_, seconds=0.0, threads=1)
        start = min((plan for plan in (start, own) if plan), key=lambda plan: cost_of(round_, plan))
        left = seconds - (time.process_time() - began)
        best = search_round(round_, seconds=left, threads=1, start=start, clock=time.process_time)
        verdict = judge(round_, plan_of(round_, best))
        broken += bool(verdict.violations)
        costs.append(verdict.cost)
    return np.array(costs), broken, seconds * len(costs)


def cost_of(round_, drives):
    plan = plan_of(round_, drives)
    return np.inf if plan.violations else plan.cost


def mean(values: list[float]) -> str:
    return f"{np.mean(values):.2f} %" if values else ""


def table(options, columns, names) -> int:
    """Print the table of these columns (size, what, function); how many solutions break a rule."""
    gaps: dict[tuple[bool, int], list[float]] = {}
    seconds: list[list[float]] = [[] for _ in columns]
    broken, not_above = 0, [0] * len(columns)
    print("| variant | " + " | ".join(f"{n}: {what}" for n, what, _ in columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    with np.load(options.costs) as given:
        for name in names:
            cells = []
            for k, (n, what, function) in enumerate(columns):
                x = take(generate(of_set(name, "routefinder"), n), slice(options.limit))
                costs, faults, took = function(options, x, what, n)
                seconds[k].append(took)
                broken += faults
                known = given.get(f"{name}{n}")
                if known is None:
                    cells.append(f"{costs.mean():.3f}")
                    continue
                gap = 100 * float((costs / known[: options.limit] - 1).mean())
                not_above[k] += gap < 0.005  # 0.00 % as it is printed
                gaps.setdefault((RULES[name].several, k), []).append(gap)
                cells.append(f"{gap:.2f} %")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    places = range(len(columns))
    for several, words in ((False, "one depot"), (True, "several")):
        print(f"| mean, {words} | " + " | ".join(mean(gaps.get((several, k), [])) for k in places) + " |")
    print("| mean | " + " | ".join(mean(gaps.get((False, k), []) + gaps.get((True, k), [])) for k in places) + " |")
    print("| variants not above | " + " | ".join(map(str, not_above)) + " |")
    print("| median seconds a set | " + " | ".join(f"{np.median(one):.2f}" for one in seconds) + " |")
    return broken


def beyond(options, sizes, limits) -> int:
    broken = 0
    print("| variant | n | greedy | 8 symmetries | the search's mean cost |\n|---|---|---|---|---|")
    for n, seconds in zip(sizes, limits, strict=True):
        for name in options.only or BEYOND:
            x = to_single(of_set(name, "routefinder").sample(Clustered(1234), options.limit, n))
            best, faults, _ = searched(options, x, seconds, n)
            broken += faults
            cells = []
            for strategy in ("greedy", "augment:8"):
                costs, faults, _ = decoded(options, x, strategy, n)
                broken += faults
                cells.append(f"{100 * float((costs / best - 1).mean()):.2f} %")
            print(f"| {name} | {n} | " + " | ".join(cells) + f" | {best.mean():.3f} |", flush=True)
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="vrp")
    parser.add_argument("--costs")
    parser.add_argument("--sizes", default="50,100")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--decode", action="append")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--search", help="seconds at each size")
    parser.add_argument("--beyond", help="sizes")
    options = parser.parse_args()
    sizes = [int(size) for size in (options.beyond or options.sizes).split(",")]
    limits = [float(one) for one in options.search.split(",")] if options.search else []
    if limits:
        load_kernels()
    if options.beyond:
        broken = beyond(options, sizes, limits)
    else:
        strategies = options.decode or ["greedy", "augment:8", "augment:8+sample:{n}"]
        columns = (
            [(n, seconds, searched) for n, seconds in zip(sizes, limits, strict=True)]
            if limits
            else [(n, strategy.format(n=n), decoded) for n in sizes for strategy in strategies]
        )
        broken = table(options, columns, options.only or list(RULES))
    if broken:
        print(f"{broken} solutions break a rule")
    return int(broken > 0)


if __name__ == "__main__":
    raise SystemExit(main())
