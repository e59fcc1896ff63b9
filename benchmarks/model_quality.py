"""Quality of every shipped model on the paper's test sets, beside the paper's own figures.

    python benchmarks/model_quality.py --limit 1000                  # minutes on a CPU
    python benchmarks/model_quality.py                               # all 10,000, on a GPU
    python benchmarks/model_quality.py tsp                           # one model only, at the sizes of its card
    python benchmarks/model_quality.py --ship runs/tsp/best.safetensors --name tsp
    python benchmarks/model_quality.py --validate tsp tsp-50         # what load_model chooses by, anew

Prints a table and fails where a cell is behind the paper: a cell is a problem and a size, with the model that
`load_model` takes for it. The second column uses the strategy that the model's card names for the size.

Greedy is always measured on all instances. With --limit the second column decodes only the first ones, and its mean
over all is estimated by how much better than greedy it is on these: the first 1,000 are not as hard as all 10,000, and
the paper's figures are for all. Where that estimate cannot tell, the table says so, and nothing fails.

With --ship a trained model is measured and put into the package in half precision with its card, unless the one of that
name that ships already is better somewhere.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import time
from pathlib import Path

import torch

from routelearn import models, problems
from routelearn.data.generate import VALIDATION_SEED, generate
from routelearn.evaluation.evaluate import evaluate
from routelearn.models import model_file
from routelearn.problems.base import take
from routelearn.runtime.compiling import best_device

# The paper's AM, greedy and sampling 1,280, at n = 20, 50, 100 (table 1; OP constant and uniform: table 3). For
# TSP with more digits from the reported gaps over the optimal means 3.83571 and 5.69614; n = 100 by its gap.
PAPER = {
    "tsp": ((3.8487, 5.796, 8.112), (3.8388, 5.726, 7.936)),
    "cvrp": ((6.40, 10.98, 16.80), (6.25, 10.62, 16.23)),
    "sdvrp": ((6.39, 10.92, 16.83), (6.25, 10.59, 16.27)),
    "op-const": ((-10.27, -28.31, -55.81), (-10.49, -29.36, -58.33)),
    "op-unif": ((-5.60, -15.62, -31.03), (-5.76, -16.25, -32.41)),
    "op-dist": ((-5.19, -15.64, -31.62), (-5.30, -16.07, -32.68)),
    "pctsp": ((3.18, 4.60, 6.25), (3.15, 4.52, 6.08)),
    "spctsp": ((3.26, 4.65, 6.32), None),
}
SIZES = (20, 50, 100)
# Greedy means at these sizes go into the card: load_model chooses by them.
VALIDATED = (10, 15, 20, 25, 30, 40, 50, 70, 85, 100, 150, 200, 300)
REACH = 3  # times the largest size that it was trained on: beyond, a model is not considered
VALIDATION_INSTANCES = 2_000  # of the validation set
HALF = 1e-4  # what half precision on disk may change a mean cost by
DOUBT = 3  # standard errors of an estimate from a part of the instances
MARGIN = 0.005  # the paper prints two digits: better means by this much (TSP: under the figure with more digits)


def measure(
    model: model_file.Model, n: int, best: str, limit: int | None, device: torch.device, precision: str
) -> dict:
    """Means on the paper's test instances: greedy, and the strategy `best`, if given from the first `limit` only."""
    problem = problems.get(model.problem)
    x = generate(problem, n)
    started = time.perf_counter()
    # Uncompiled: compiling for one pass over a set takes longer than the pass.
    options = {"device": device, "precision": precision, "compile": None if device.type == "cpu" else False}
    greedy = evaluate(problem, model.policy, x, "greedy", **options)
    row = {"greedy": greedy.mean, "infeasible": greedy.infeasible, "instances": x.xy.shape[0]}
    row["first_200"] = float(greedy.costs[:200].mean())  # what a test compares with
    if not problem.reveals_on_visit:
        found = evaluate(problem, model.policy, take(x, slice(0, limit)), best, **options)
        gain = found.costs - greedy.costs[: len(found.costs)]
        row |= {"best": greedy.mean + float(gain.mean()), "strategy": best}
        row["infeasible"] += found.infeasible
        if len(gain) < row["instances"]:
            row["error"] = float(gain.std()) / len(gain) ** 0.5  # of that estimate
    return row | {"seconds": round(time.perf_counter() - started, 1)}


def validate(model: model_file.Model, device: torch.device, precision: str) -> dict[str, float]:
    """Greedy means by size on the first instances of the validation set."""
    problem, found = problems.get(model.problem), {}
    for n in (n for n in VALIDATED if n <= REACH * max(model.card["sizes"])):
        x = take(generate(problem, n, seed=VALIDATION_SEED), slice(0, VALIDATION_INSTANCES))
        compile = None if device.type == "cpu" else False
        found[str(n)] = evaluate(
            problem, model.policy, x, "greedy", device=device, precision=precision, compile=compile
        ).mean
    return found


def half_precision_change(whole: model_file.Model, half: model_file.Model, n: int, device: torch.device) -> float:
    """Relative change of the greedy mean over the test instances when the weights are rounded."""
    problem = problems.get(whole.problem)
    x = generate(problem, n)
    before, after = (
        evaluate(problem, model.policy, x, "greedy", device=device, precision="float32", compile=False).mean
        for model in (whole, half)
    )
    return abs(after / before - 1)


def verdicts(problem: str, n: int, row: dict) -> list[tuple[str, float, float, bool]]:
    """(column, paper, ours, ahead) for greedy and, where the paper has one, sampling; none for other problems."""
    if problem not in PAPER:
        return []
    margin = 0.0 if problem == "tsp" else MARGIN
    greedy, sampling = PAPER[problem]
    place = SIZES.index(n)
    cells = [("greedy", greedy[place], row["greedy"], row["greedy"] <= greedy[place] - margin)]
    if sampling is not None and "best" in row:
        cells.append(("sampling", sampling[place], row["best"], row["best"] <= sampling[place] - margin))
    return cells


def show(name: str, problem: str, n: int, row: dict, limit: int | None) -> int:
    """Print a cell's lines; how many of them are behind the paper."""
    behind = 0
    for column, paper, ours, ahead in verdicts(problem, n, row):
        sampled = column == "sampling"
        count = min(limit or row["instances"], row["instances"]) if sampled else row["instances"]
        close = sampled and abs(ours - paper) < DOUBT * row.get("error", 0.0)
        verdict = "ahead" if ahead else "too few to tell" if close else "BEHIND"
        verdict = verdict if row["infeasible"] == 0 else "INFEASIBLE"
        behind += verdict in ("BEHIND", "INFEASIBLE")
        print(
            f"{name:12}{n:5}{count:10}  {column:10}{paper:10.4f}{ours:11.4f}   {verdict}   "
            f"{row['strategy'] if sampled else ''}",
            flush=True,
        )
    return behind


def half_of(model: model_file.Model) -> model_file.Model:
    """What comes back from a file in half precision."""
    with tempfile.TemporaryDirectory() as folder:
        model_file.save(Path(folder) / "half.safetensors", model, half=True)
        return model_file.load(Path(folder) / "half.safetensors")


def ship(path: Path, name: str | None, best: str, device: torch.device, precision: str, force: bool) -> int:
    """Measure a trained model and put it into the package; how many of its cells are behind the paper."""
    trained = model_file.load(path)
    name = name or trained.problem
    half = half_of(trained)
    card = half.card | {"date": datetime.date.today().isoformat(), "measured": {}}
    behind = 0
    for n in (n for n in SIZES if n in card["sizes"]):
        if (change := half_precision_change(trained, half, n, device)) > HALF:
            sys.exit(f"{path}: half precision changes the mean at n = {n} by {change:.3%}, over {HALF:.2%}")
        card["measured"][str(n)] = measure(half, n, best, None, device, precision)
        behind += show(name, trained.problem, n, card["measured"][str(n)], None)
    old = models.shipped().get(name, {"card": {}})["card"].get("measured", {})
    worse = [n for n, row in card["measured"].items() if n in old and row["greedy"] > old[n]["greedy"]]
    if worse and not force:
        sys.exit(f"{name} that ships is better at n = {', '.join(worse)}: nothing replaced (--force replaces it)")
    card["validated"] = validate(half, device, precision)
    whole = model_file.Model(trained.policy.cpu(), trained.problem, trained.kind, trained.options, card)
    model_file.save(models.FOLDER / f"{name}.safetensors", whole, half=True)
    return behind


def validate_again(name: str, device: torch.device, precision: str) -> None:
    """Write the card of a shipped model anew, with what `load_model` chooses by."""
    model = models.load_model(path=name, device=device)
    model.card["validated"] = validate(model, device, precision)
    print(name, " ".join(f"{n}: {cost:.4f}" for n, cost in model.card["validated"].items()), flush=True)
    model.policy.cpu()
    model_file.save(models.FOLDER / f"{name}.safetensors", model, half=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="shipped models; without any, all cells of the paper's table")
    parser.add_argument("--limit", type=int, help="only the first instances of each set for the second column")
    parser.add_argument("--best", help="strategy of the second column, at most 1,280 rollouts [the card's]")
    parser.add_argument("--sizes", help="only these, such as 20,50")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--ship", type=Path, help="a trained model file to measure and put into the package")
    parser.add_argument("--name", help="its name there")
    parser.add_argument("--force", action="store_true", help="ship it even where the model of that name is better")
    parser.add_argument("--validate", nargs="+", metavar="NAME", help="shipped models whose cards to write anew")
    options = parser.parse_args()
    device = best_device(options.device)
    if options.validate:
        for name in options.validate:
            validate_again(name, device, options.precision)
        return
    chosen = {int(n) for n in options.sizes.split(",")} if options.sizes else set(SIZES)
    print(f"{'model':12}{'n':>5}{'instances':>10}  {'column':10}{'paper':>10}{'ours':>11}   verdict", flush=True)
    if options.ship:
        if options.limit or options.sizes or options.names:
            parser.error("--ship measures all instances of all sizes of one model: leave out --limit, --sizes, names")
        best = options.best or "augment:8+sample:16"
        behind = ship(options.ship, options.name, best, device, options.precision, options.force)
    else:
        if options.names:
            cells = [(name, n) for name in options.names for n in SIZES if n in models.shipped()[name]["card"]["sizes"]]
        else:
            cells = [(models.which(problem, n), n) for problem in PAPER for n in SIZES]
        behind = 0
        for name, n in ((name, n) for name, n in cells if n in chosen):
            model = models.load_model(path=name, device=device)
            best = options.best or model.card["measured"].get(str(n), {}).get("strategy", "augment:8+sample:16")
            row = measure(model, n, best, options.limit, device, options.precision)
            behind += show(name, model.problem, n, row, options.limit)
    if behind:
        print(f"{behind} cells behind the paper")
        sys.exit(1)


if __name__ == "__main__":
    main()
