"""What `solve` reaches in a given time, beside PyVRP and OR-Tools: same machine, same instances, same seconds.

    python benchmarks/solve_quality.py                                    # n = 100, 0.1 and 1 s, 100 instances
    python benchmarks/solve_quality.py cvrp --seconds 10 --instances 20
    python benchmarks/solve_quality.py --libraries FOLDER                 # TSPLIB and CVRPLIB files, 10 s each
    python benchmarks/solve_quality.py --many 1000                        # solve_many on TSP100 in 15 s

Every solution is checked and measured by the problem. Gaps are to the best solution that any method of the run found
for the instance (for TSP also LKH by elkai, if installed). `search only` is the same search without the policy, so the
difference is what the policy adds. One method runs at a time; two processors are enough for all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch

from routelearn import problems, solvers
from routelearn.data import read_stops
from routelearn.problems import NumpyRng
from routelearn.problems.base import take
from routelearn.solvers.online import run
from routelearn.solving import solve, solve_many, solve_stops

BEST_KNOWN = {
    "berlin52": 7542, "eil51": 426, "kroA100": 21282, "ch150": 6528, "a280": 2579, "X-n101-k25": 27591,
    "X-n200-k36": 58578,
}  # fmt: skip
PROBLEMS = ("tsp", "cvrp", "op-dist", "pctsp")
FOREIGN = ("pyvrp", "ortools")


def arguments(name: str, x: Any) -> dict[str, Any]:
    """One instance (batch axis 1) as arguments of `solve`."""
    values = {field: value[0] for field, value in zip(x._fields, x, strict=True) if value is not None}
    values["coords"] = values.pop("xy")
    return {
        "problem": name,
        **{key: value.numpy() if value.dim() else value.item() for key, value in values.items()},
    }


def measure(name: str, x: Any, method: str, seconds: float) -> list[float]:
    """[B] costs of one method; infinite where it gave nothing feasible. Prints how long it really took."""
    problem, costs, took = problems.get(name), [], []
    for row in range(x.xy.shape[0]):
        one = take(x, slice(row, row + 1))
        began = time.perf_counter()
        try:
            if method in ("routelearn", "search only"):
                cost = solve(**arguments(name, one), seconds=seconds, seed=row, policy=method == "routelearn").cost
            else:
                tour = run(solvers.get(method), problem, one, seconds=seconds, seed=row)
                problem.check(one, tour)
                cost = float(problem.cost(one, tour))
        except (ValueError, RuntimeError):
            cost = math.inf
        took.append(time.perf_counter() - began)
        costs.append(cost)
    print(
        f"  {name} {seconds:g} s {method}: {sum(took) / len(took):.3f} s an instance, longest {max(took):.3f} s",
        flush=True,
    )
    return costs


def methods_for(name: str) -> list[str]:
    usable = [s.name for s in solvers.for_problem(name) if s.name in FOREIGN and s.unavailable() is None]
    return ["routelearn", "search only", *usable]


def table(names: list[str], n: int, instances: int, limits: list[float]) -> list[dict[str, Any]]:
    found: dict[tuple[str, float, str], torch.Tensor] = {}
    best: dict[str, torch.Tensor] = {}
    for name in names:
        problem = problems.get(name)
        x = problem.sample(NumpyRng(1234), instances, n)
        for seconds in limits:
            for method in methods_for(name):
                found[name, seconds, method] = torch.tensor(measure(name, x, method, seconds), dtype=torch.float64)
        if name == "tsp" and solvers.get("elkai").unavailable() is None:
            found[name, math.inf, "elkai"] = torch.tensor(measure(name, x, "elkai", 10.0), dtype=torch.float64)
        best[name] = torch.stack([costs for key, costs in found.items() if key[0] == name]).amin(0)
    rows = []
    print(f"\n| problem | n | seconds | method | mean cost | gap to best | infeasible |\n|{'---|' * 7}")
    for (name, seconds, method), costs in found.items():
        solved = costs.isfinite()
        gap = float(((costs - best[name]) / best[name].abs())[solved].mean())
        mean = float(costs[solved].mean())
        rows.append(
            {"problem": name, "n": n, "seconds": seconds, "method": method, "mean": mean, "gap": gap,
             "infeasible": int((~solved).sum())}
        )  # fmt: skip
        print(f"| {name} | {n} | {seconds:g} | {method} | {mean:.4f} | {gap:.3%} | {int((~solved).sum())} |")
    return rows


def libraries(folder: Path, seconds: float) -> list[dict[str, Any]]:
    rows = []
    print(f"\n| instance | best known | routelearn | gap | search only | gap | seconds |\n|{'---|' * 7}")
    for name, known in BEST_KNOWN.items():
        path = next((path for suffix in (".tsp", ".vrp") if (path := folder / (name + suffix)).is_file()), None)
        if path is None:
            print(f"| {name} | {known} | not in {folder} |")
            continue
        stops = read_stops(path)[0]
        mine, alone = (solve_stops(stops, seconds=seconds, policy=policy) for policy in (True, False))
        rows.append({"instance": name, "best": known, "cost": mine.cost, "search_only": alone.cost})
        print(
            f"| {name} | {known} | {mine.cost:g} | {mine.gap_to(known):.2%} "
            f"| {alone.cost:g} | {alone.gap_to(known):.2%} | {mine.seconds:.2f} |",
            flush=True,
        )
    return rows


def many(count: int, seconds: float) -> list[dict[str, Any]]:
    x = problems.get("tsp").sample(NumpyRng(1234), count, 100)
    solve_many(x.xy[:2].numpy(), seconds=0.1)  # start-up
    reference = solve_many(x.xy.numpy(), seconds=count * 0.1)
    print(f"\n| solve_many, {count} x TSP100 | wall clock | mean cost | gap to 0.1 s each |\n|{'---|' * 4}")
    rows = []
    for words, keywords in (
        (f"{seconds:g} s", {"seconds": seconds}),
        (f"{seconds:g} s, search only", {"seconds": seconds, "policy": False}),
        ("policy and local optimum", {}),
        ("policy alone", {"seconds": 0}),
    ):
        began = time.perf_counter()
        solutions = solve_many(x.xy.numpy(), **keywords)
        took = time.perf_counter() - began
        mean = sum(s.cost for s in solutions) / count
        gap = sum(s.gap_to(r) for s, r in zip(solutions, reference, strict=True)) / count
        rows.append({"what": words, "seconds": took, "mean": mean, "gap": gap})
        print(f"| {words} | {took:.2f} s | {mean:.4f} | {gap:.2%} |", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS), help="problem ids")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--seconds", type=float, nargs="+", help="0.1 and 1; 10 for library files, 15 for --many")
    parser.add_argument("--libraries", type=Path, help="folder with TSPLIB and CVRPLIB files")
    parser.add_argument("--many", type=int, help="instances of TSP100 for solve_many")
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args()
    for name in PROBLEMS:
        x = problems.get(name).sample(NumpyRng(0), 1, 10)
        solve(**arguments(name, x), seconds=0.01)  # start-up of compiled code and models
    if given.libraries is not None:
        rows = libraries(given.libraries, (given.seconds or [10.0])[0])
    elif given.many is not None:
        rows = many(given.many, (given.seconds or [15.0])[0])
    else:
        rows = table(given.problems, given.n, given.instances, given.seconds or [0.1, 1.0])
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
