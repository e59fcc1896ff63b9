"""What `solve` reaches in a given time, beside PyVRP and OR-Tools: same machine, same instances, same seconds.

    python benchmarks/solve_quality.py                                    # n = 100, 0.1 and 1 s, 100 instances: 15 min
    python benchmarks/solve_quality.py cvrp --seconds 10 --instances 20
    python benchmarks/solve_quality.py --libraries FOLDER                 # TSPLIB and CVRPLIB files, 10 s each
    python benchmarks/solve_quality.py --many 1000                        # solve_many on TSP100 in 15 s

Every solution is checked and measured by the problem. Gaps are to the best solution that any method of the run found
for the instance (for TSP also LKH by elkai, if installed). `search only` is the same search without the policy, so the
difference is what the policy adds.

PyVRP and OR-Tools search with one thread, so everyone does: each method has one processor for itself, and as many
instances run at once as there are processors (`--at-once`), in processes that have loaded everything before. What is
measured goes to a file line by line (`--results`); the same command again goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from routelearn import problems, solvers
from routelearn.data import read_stops
from routelearn.problems import NumpyRng
from routelearn.solvers.reveal import run
from routelearn.solving import solve, solve_many, solve_stops

BEST_KNOWN = {
    "berlin52": 7542, "eil51": 426, "kroA100": 21282, "ch150": 6528, "a280": 2579, "X-n101-k25": 27591,
    "X-n200-k36": 58578,
}  # fmt: skip
PROBLEMS = ("tsp", "cvrp", "op-dist", "pctsp")
FOREIGN = ("pyvrp", "ortools")
OWN = ("routelearn", "search only")
SEED = 1234
REFERENCE = 10.0  # seconds for elkai, which stops by itself long before
Task = tuple[str, int, int, float, str]  # problem, n, instance, seconds, method


def arguments(name: str, x: Any) -> dict[str, Any]:
    """One instance (batch axis 1) as arguments of `solve`."""
    values = {field: value[0] for field, value in zip(x._fields, x, strict=True) if value is not None}
    values["coords"] = values.pop("xy")
    return {
        "problem": name,
        **{key: value.numpy() if value.dim() else value.item() for key, value in values.items()},
    }


def instance(name: str, n: int, row: int) -> Any:
    """One of the random instances, whatever their number."""
    return problems.get(name).sample(NumpyRng(SEED + row), 1, n)


def measure(task: Task) -> dict[str, Any]:
    """Cost (null where there is nothing feasible) and the seconds it really took."""
    name, n, row, seconds, method = task
    problem, x = problems.get(name), instance(name, n, row)
    began = time.perf_counter()
    try:
        if method in OWN:
            cost = solve(**arguments(name, x), seconds=seconds, seed=row, policy=method == "routelearn", threads=1).cost
        else:
            tour = run(solvers.get(method), problem, x, seconds=seconds, seed=row)
            problem.check(x, tour)
            cost = float(problem.cost(x, tour))
    except (ValueError, RuntimeError):
        cost = None
    took = time.perf_counter() - began
    return {"problem": name, "n": n, "instance": row, "seconds": seconds, "method": method, "cost": cost, "took": took}


def methods_for(name: str) -> list[str]:
    usable = [s.name for s in solvers.for_problem(name) if s.name in FOREIGN and s.unavailable() is None]
    return [*OWN, *usable]


def warm_up(names: list[str]) -> None:
    """Load models and compiled code, and let every method run once, before anything is measured."""
    torch.set_num_threads(1)
    for name in names:
        for method in methods_for(name):
            measure((name, 10, 0, 0.05, method))


def tasks_of(names: list[str], n: int, instances: int, limits: list[float]) -> list[Task]:
    """Instance by instance, so that a part of them is a fair comparison too."""
    tasks: list[Task] = []
    for row in range(instances):
        for name in names:
            tasks += [(name, n, row, seconds, method) for seconds in limits for method in methods_for(name)]
            if name == "tsp" and solvers.get("elkai").unavailable() is None:
                tasks.append((name, n, row, REFERENCE, "elkai"))
    return tasks


def key(row: dict[str, Any]) -> Task:
    return row["problem"], row["n"], row["instance"], row["seconds"], row["method"]


def table(
    names: list[str], n: int, instances: int, limits: list[float], results: Path, at_once: int
) -> list[dict[str, Any]]:
    wanted = tasks_of(names, n, instances, limits)
    done = {key(row): row for row in map(json.loads, results.read_text().splitlines())} if results.exists() else {}
    todo = [task for task in wanted if task not in done]
    print(f"{len(wanted) - len(todo)} of {len(wanted)} runs are in {results}; {at_once} at once", flush=True)
    if todo:
        began = told = time.perf_counter()
        spawned = multiprocessing.get_context("spawn")
        with spawned.Pool(at_once, warm_up, (names,)) as pool, results.open("a") as file:
            for count, row in enumerate(pool.imap_unordered(measure, todo), 1):
                file.write(json.dumps(row) + "\n")
                file.flush()
                done[key(row)] = row
                if (now := time.perf_counter()) - told > 15 or count == len(todo):
                    told = now
                    left = (now - began) / count * (len(todo) - count)
                    print(f"  {count} of {len(todo)} runs, {left:.0f} s left", flush=True)
    return summary([done[task] for task in wanted])


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean cost, mean gap to the best of all methods, and time taken, for each problem, time limit and method."""
    best: dict[tuple[str, int], float] = defaultdict(lambda: math.inf)
    groups: dict[tuple[str, float, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["problem"], row["seconds"], row["method"]].append(row)
        if row["cost"] is not None:
            place = row["problem"], row["instance"]
            best[place] = min(best[place], row["cost"])
    heads = ("problem", "seconds", "method", "mean cost", "gap to best", "standard error", "took", "longest", "failed")
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    figures = []
    for (name, seconds, method), group in groups.items():
        solved = [row for row in group if row["cost"] is not None]
        if not solved:
            print(f"| {name} | {seconds:g} | {method} | | | | | | {len(group)} |")
            continue
        reference = [best[name, row["instance"]] for row in solved]
        gaps = torch.tensor([(row["cost"] - b) / abs(b) for row, b in zip(solved, reference, strict=True)])
        took = [row["took"] for row in group]
        figure = {
            "problem": name, "seconds": seconds, "method": method, "instances": len(group),
            "mean": sum(row["cost"] for row in solved) / len(solved), "gap": float(gaps.mean()),
            "error": float(gaps.std()) / len(solved) ** 0.5 if len(solved) > 1 else 0.0,
            "took": sum(took) / len(took), "longest": max(took), "failed": len(group) - len(solved),
        }  # fmt: skip
        figures.append(figure)
        print(
            f"| {name} | {seconds:g} | {method} | {figure['mean']:.4f} | {figure['gap']:.3%} | {figure['error']:.3%} "
            f"| {figure['took']:.3f} s | {figure['longest']:.3f} s | {figure['failed']} |"
        )
    return figures


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
    parser.add_argument(
        "--results", type=Path, default=Path("solve_quality.jsonl"), help="one line a run, to go on from"
    )
    parser.add_argument("--at-once", type=int, default=min(2, os.cpu_count() or 1), help="instances at once")
    parser.add_argument("--json", type=Path, help="write the figures of the table there")
    given = parser.parse_args()
    if given.libraries is not None or given.many is not None:
        solve(**arguments("tsp", instance("tsp", 10, 0)), seconds=0.01)  # start-up of compiled code and models
    if given.libraries is not None:
        rows = libraries(given.libraries, (given.seconds or [10.0])[0])
    elif given.many is not None:
        rows = many(given.many, (given.seconds or [15.0])[0])
    else:
        limits = given.seconds or [0.1, 1.0]
        rows = table(given.problems, given.n, given.instances, limits, given.results, given.at_once)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
