"""Answers over all problems, by Python, by file and by HTTP, each judged by a referee that shares no code.

    python benchmarks/answers.py [--answers 1000000] [--minutes 30] [--seed 0] [--ways python,file,http] [--processes 2]

Instances have 1 to 200 stops (small ones more often), in units from thousandths to thousands. Half of the answers are
searched, the others are constructions at 0 seconds. Each process asks for one batch after the other. It prints answers
and faults by problem and by way, and exits with 1 if an answer breaks a rule, tells a wrong cost, or is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from itertools import pairwise
from multiprocessing import Queue, get_context
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

import torch

import routelearn
from routelearn.data.reading import read_stops

PROBLEMS = ("tsp", "cvrp", "sdvrp", "op-const", "op-unif", "op-dist", "pctsp", "spctsp")
MOST = 200
BATCH, TOGETHER = 250, 20_000  # instances asked for at once, and stops of all of them
EACH = 0.0005  # seconds of search for an answer, where it is searched
TOLERANCE = 1e-6  # of a cost or a limit, as a share
SAY = 10_000  # answers from one line of progress to the next
Fields = dict[str, Any]


class Tally(NamedTuple):
    """What came of one batch."""

    problem: str
    way: str
    searched: bool
    answers: int
    faults: list[tuple[str, str]]  # in words, and with the instance


def instance(problem: str, stops: int, rng: random.Random) -> Fields:
    """The arguments of a request, in a unit of its own; the depot comes first."""
    unit = 10.0 ** rng.randint(-3, 3)
    n = stops + (problem != "tsp")
    fields: Fields = {"coords": [(unit * rng.random(), unit * rng.random()) for _ in range(max(n, 2))]}
    customers = len(fields["coords"]) - 1
    across = max(math.dist(fields["coords"][0], place) for place in fields["coords"])
    if problem in ("cvrp", "sdvrp"):
        fields["capacity"] = rng.choice((9, 20, 50))
        most = fields["capacity"] if problem == "cvrp" else 3 * fields["capacity"]
        fields["demand"] = [0, *(rng.randint(0 if problem == "sdvrp" else 1, min(9, most)) for _ in range(customers))]
    elif problem != "tsp":
        fields["prize"] = [0.0, *(rng.choice((1.0, rng.random())) for _ in range(customers))]
        if problem.startswith("op"):
            fields["max_length"] = across * rng.choice((0.5, 2.0, 4.0))
        else:
            fields["penalty"] = [0.0, *(unit * rng.random() / math.sqrt(n) for _ in range(customers))]
            fields["min_prize"] = sum(fields["prize"]) * rng.choice((0.0, 0.3, 0.9))
        if problem == "spctsp":
            fields["real_prize"] = [2 * rng.random() * prize for prize in fields["prize"]]
    return fields


def wrong(problem: str, fields: Fields, answer: Fields) -> str | None:
    """What is wrong with an answer, in words; None if nothing is. Plain arithmetic on the request's own numbers."""
    at = fields["coords"]
    routes = [[int(stop) for stop in route["stops"]] for route in answer["routes"]]
    visits = Counter(stop for route in routes for stop in route)
    depot = problem != "tsp"
    closed = [[0, *route, 0] if depot else [*route, *route[:1]] for route in routes]
    length = sum(math.dist(at[a], at[b]) for route in closed for a, b in pairwise(route))
    everyone = set(range(depot, len(at)))
    cost = length
    if (depot and 0 in visits) or not set(visits) <= set(range(len(at))):
        return "a stop that is none"
    if problem != "sdvrp" and any(count > 1 for count in visits.values()):
        return "a stop twice"
    if problem in ("tsp", "cvrp") and set(visits) != everyone:
        return "a stop left out"
    if problem == "cvrp" and any(sum(fields["demand"][c] for c in route) > fields["capacity"] for route in routes):
        return "too much in a vehicle"
    if problem == "sdvrp":
        brought: Counter[int] = Counter()
        for route, told in zip(routes, answer["routes"], strict=True):
            if sum(told["amounts"]) > fields["capacity"] + 1e-9 or len(told["amounts"]) != len(route):
                return "too much in a vehicle"
            brought.update(dict.fromkeys(route, 0))
            for stop, amount in zip(route, told["amounts"], strict=True):
                brought[stop] += amount
        if any(abs(brought[c] - fields["demand"][c]) > 1e-9 for c in everyone):
            return "not what was demanded"
    if problem != "tsp" and problem not in ("cvrp", "sdvrp"):
        if len(routes) > 1:
            return "several routes"
        earned = sum(fields.get("real_prize", fields["prize"])[c] for c in visits)
        if problem.startswith("op"):
            cost = -earned
            if length > fields["max_length"] * (1 + TOLERANCE):
                return "too long"
        else:
            cost = length + sum(fields["penalty"][c] for c in everyone - set(visits))
            if earned < fields["min_prize"] * (1 - TOLERANCE) and set(visits) != everyone:
                return "too little prize"
    if not abs(cost - answer["cost"]) <= TOLERANCE * max(abs(cost), length, 1e-9):
        return f"the cost is {cost!r}, not {answer['cost']!r}"
    return None


def by_python(problem: str, batch: list[Fields], seconds: float, _: Any) -> list[Fields]:
    columns = {name: [one[name] for one in batch] for name in batch[0]}
    ids = [list(range(len(one["coords"]))) for one in batch]
    found = routelearn.solve_many(**columns, ids=ids, problem=problem, seconds=seconds)
    return [told(one) for one in found]


def told(found: Any) -> Fields:
    amounts = found.amounts or [None] * len(found.routes)
    routes = [{"stops": stops, "amounts": each} for stops, each in zip(found.routes, amounts, strict=True)]
    return {"cost": found.cost, "routes": routes}


def by_file(problem: str, batch: list[Fields], seconds: float, folder: Path) -> list[Fields]:
    """A JSON file each, as people write them."""
    stops = []
    for row, one in enumerate(batch):
        columns = [name for name, value in one.items() if isinstance(value, list) and name != "coords"]
        listed = [
            {"id": str(i), "x": x, "y": y, **{name: one[name][i] for name in columns}}
            for i, (x, y) in enumerate(one["coords"])
        ]
        limits = {name: value for name, value in one.items() if not isinstance(value, list)}
        path = folder / f"{row}.json"
        path.write_text(json.dumps({"stops": listed, "problem": problem, **limits}))
        stops += read_stops(path)
    from routelearn.solving import solve_many_stops

    return [told(one) for one in solve_many_stops(stops, problem=problem, seconds=seconds)]


def by_http(problem: str, batch: list[Fields], seconds: float, url: str) -> list[Fields]:
    instances = [{**one, "ids": list(range(len(one["coords"])))} for one in batch]
    body = json.dumps({"instances": instances, "problem": problem, "seconds": seconds}).encode()
    request = urllib.request.Request(f"{url}/solve/batch", body, {"content-type": "application/json"})
    for patience in (*range(1, 5), None):
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                answers: list[Fields] = json.load(response)["answers"]
                return answers
        except urllib.error.HTTPError as refusal:
            words = refusal.read()[:500]
            if refusal.code != 503 or patience is None:  # which says: try again later
                raise RuntimeError(f"{refusal.code}: {words!r}") from None
            print(f"asked again after {words!r}", flush=True)
            time.sleep(patience)
    raise AssertionError


WAYS = {"python": by_python, "file": by_file, "http": by_http}


def ask(number: int, options: argparse.Namespace, url: str, until: float, tallies: Queue[Tally]) -> None:
    """Ask for batches until the time is up, as one of several processes; tell what came of each."""
    torch.set_num_threads(1)
    rng, ways = random.Random(f"{options.seed} {number}"), options.ways.split(",")
    searched = answered = 0
    with tempfile.TemporaryDirectory() as folder:
        places = {"python": None, "file": Path(folder), "http": url}
        while time.time() < until:
            problem, way = rng.choice(PROBLEMS), rng.choice(ways)
            search = 2 * searched <= answered
            stops = round(MOST ** rng.random() ** 1.5)
            batch = [instance(problem, stops, rng) for _ in range(min(BATCH, TOGETHER // stops))]
            answers = WAYS[way](problem, batch, EACH * len(batch) if search else 0.0, places[way])
            tally = Tally(problem, way, search, len(batch), [])
            for fields, answer in zip(batch, answers, strict=True):
                if (words := wrong(problem, fields, answer)) is not None:
                    told = f"{words}: {json.dumps(fields)} {json.dumps(answer['routes'])}"
                    tally.faults.append((f"{problem} by {way}: {words}", told))
            answered, searched = answered + len(batch), searched + search * len(batch)
            tallies.put(tally)


def gathered(options: argparse.Namespace, url: str) -> tuple[Counter[tuple[str, str, bool]], Counter[str]]:
    """Answers by problem, way and whether they were searched, and the faults, of all processes."""
    context = get_context("spawn")
    tallies: Queue[Tally] = context.Queue()
    until = time.time() + 60 * options.minutes
    processes = [
        context.Process(target=ask, args=(number, options, url, until, tallies), daemon=True)
        for number in range(options.processes)
    ]
    for process in processes:
        process.start()
    counts: Counter[tuple[str, str, bool]] = Counter()
    faults: Counter[str] = Counter()
    told = 0
    while counts.total() < options.answers:
        try:
            tally = tallies.get(timeout=1.0)
        except Empty:
            if any(process.exitcode for process in processes):  # its own words are above
                faults["a process that died"] += 1
                break
            if not any(process.is_alive() for process in processes):
                break
            continue
        counts[tally.problem, tally.way, tally.searched] += tally.answers
        for words, example in tally.faults:
            faults[words] += 1
            if faults.total() < 5:
                print(example, file=sys.stderr)
        if counts.total() >= told + SAY:
            told = counts.total()
            print(f"{told} answers, {faults.total()} wrong", flush=True)
    for process in processes:
        process.terminate()
    return counts, faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=30, help="end after so many, whatever is missing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    ways, server, url = options.ways.split(","), None, ""
    if "http" in ways:
        from serve_load import start

        server, url = start()
    began = time.perf_counter()
    try:
        counts, faults = gathered(options, url)
    finally:
        if server is not None:
            server.terminate()
            server.wait(30)
    print(f"{'problem':10} " + " ".join(f"{way:>9} {'at 0 s':>9}" for way in ways))
    for problem in PROBLEMS:
        cells = [f"{counts[problem, way, True]:9d} {counts[problem, way, False]:9d}" for way in ways]
        print(f"{problem:10} " + " ".join(cells))
    zero = sum(n for (*_, by), n in counts.items() if not by)
    rate = counts.total() / (time.perf_counter() - began)
    print(f"{counts.total()} answers, {zero} of them at 0 s; {faults.total()} wrong; {rate:.0f} a second")
    for words, count in faults.most_common():
        print(f"  {count} {words}")
    if faults:
        sys.exit(1)


if __name__ == "__main__":
    main()
