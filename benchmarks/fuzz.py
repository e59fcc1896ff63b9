"""Damaged files for every reader, and damaged requests for every route: all must be read or refused in one line.

    python benchmarks/fuzz.py [--inputs 100000] [--requests 10000] [--seed 0] [--readers csv,vrp] [--found FOLDER]

It starts from the files of tests/corpus, one folder a reader, and damages them: bits, stretches, numbers, words that
mean something to a reader, and pieces of other files. What is read as stops or a round is solved at 0 seconds, and a
referee checks the answer. It prints a table and exits with 1 if an input ended in anything but an answer or a refusal
of one line; those inputs are written to --found. Put them into tests/corpus when they are mended (as `odd...` if they
are refused): the tests read all of it.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import routelearn
from routelearn.data.convert import to_instance
from routelearn.data.matrix_file import read_matrix
from routelearn.data.npz import load as load_npz
from routelearn.data.reading import read_stops
from routelearn.errors import InputError
from routelearn.models.model_file import load as load_model
from routelearn.rounds.files import read_round
from routelearn.solving import solve_stops
from routelearn.solving.resume import read_routes, to_tour
from routelearn.solving.strict import check_strictly
from routelearn.training.checkpoint import load as load_checkpoint
from routelearn.training.train import read_config

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
LONGEST = 1000  # characters of a refusal: some list all that is known
FEW = 60  # stops up to which what was read is solved
LIMITS = {"capacity": 50, "max_length": 9.0}  # for stops that lack them
WORDS = (
    *(
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-1",
        "0",
        "9" * 30,
        "1" * 200,
        "1_0",
        "0x1",
        "\uff11",
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "\0",
    ),
    *(";", ",", ":", '"', "'", "[", "]", "{", "}", "null", "true", "[]", "{}", "=1+1", "08:00", "25:99", "24:00-23:00"),
    *(
        "x",
        "y",
        "lat",
        "lon",
        "id",
        "depot",
        "demand",
        "capacity",
        "prize",
        "penalty",
        "DIMENSION : 3",
        "EOF",
        "\ufeff",
    ),
    *("DEPOT_SECTION", "EDGE_WEIGHT_TYPE : GEO", "-1e-300", "1e308", "1,5", "1.5.5", "\ud800", "[[[[", "2026-13-45"),
)


def damage(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """A few changes to the bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(data) + 1)
        upto = min(len(data), at + rng.choice((0, 1, 2, 5, 20, 200)))
        kind = rng.randrange(7)
        if kind == 0:  # a bit
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if data else data
        elif kind == 1:  # nothing
            data = data[:at] + data[upto:]
        elif kind == 2:  # twice
            data = data[:upto] + data[at:upto] * rng.choice((1, 2, 50)) + data[upto:]
        elif kind == 3:  # of another file
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            data = data[:at] + other[start : start + rng.choice((1, 10, 100))] + data[upto:]
        elif kind == 4 and (digits := [i for i, one in enumerate(data) if 48 <= one <= 57]):
            at = rng.choice(digits)
            data = data[:at] + rng.choice(WORDS).encode("utf-8", "surrogatepass") + data[at + 1 :]
        elif kind == 5:  # its end
            data = data[: rng.choice((at, len(data) - 1))]
        else:
            data = data[:at] + rng.choice(WORDS).encode("utf-8", "surrogatepass") + data[upto:]
    return data


def damage_member(data: bytes, rng: random.Random) -> bytes:
    """One file of an archive damaged and all packed again, so that the checksums hold."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        contents = {name: old.read(name) for name in old.namelist()}
        chosen = rng.choice([*contents])
        for name, content in contents.items():
            new.writestr(name, damage(content, [*contents.values()], rng) if name == chosen else content)
    return packed.getvalue()


def _stops(path: Path) -> None:
    for stops in read_stops(path)[:2]:
        lacking = {name: value for name, value in LIMITS.items() if name not in stops.limits}
        given = {"capacity": lacking["capacity"]} if "demand" in stops.columns and "capacity" in lacking else {}
        given |= (
            {"max_length": 9.0} if "prize" in stops.columns and not {"penalty", "demand"} & {*stops.columns} else {}
        )
        given = {name: value for name, value in given.items() if name in lacking}
        converted = to_instance(stops, **given)
        if len(stops.ids) <= FEW and converted.size <= 500:
            found = solve_stops(stops, seconds=0, policy=False, **given)
            tour = to_tour([list(map(str, route)) for route in found.routes], converted, "the answer")
            check_strictly(converted.problem, converted.referee, tour)


def _round(path: Path) -> None:
    table = path.suffix in (".csv", ".xlsx")
    round_ = read_round(path, options={"capacity": "100", "speed": "30"} if table else None)
    if round_ is not None and len(round_.stops) <= FEW:
        answer = routelearn.solve_round(round_, seconds=0, threads=1)
        assert not answer.plan.violations, answer.plan.violations


READERS: dict[str, Callable[[Path], Any]] = {
    "stops": _stops,
    "npz": load_npz,
    "matrix": read_matrix,
    "rounds": _round,
    "solutions": read_routes,
    "models": load_model,
    "checkpoints": load_checkpoint,
    "configs": lambda path: read_config(path, "no such file"),
}


def outcome(read: Callable[[Path], Any], path: Path) -> str:
    """ "read", "refused", or the error that neither is."""
    try:
        read(path)
    except InputError as error:
        return (
            "refused"
            if "\n" not in str(error) and len(str(error)) <= LONGEST
            else f"a long refusal: {str(error)[:300]!r}"
        )
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {str(error)[:200]}"
    return "read"


def corpus(reader: str) -> list[Path]:
    return sorted(path for path in (CORPUS / reader).iterdir() if path.is_file())


def run(reader: str, inputs: int, seed: int, folder: Path) -> tuple[Counter[str], dict[str, bytes]]:
    """(how many ended how, the first input of each fault)."""
    rng = random.Random(f"{reader} {seed}")
    files = corpus(reader)
    contents = [path.read_bytes() for path in files]
    counts: Counter[str] = Counter()
    faults: dict[str, bytes] = {}
    for _ in range(inputs):
        k = rng.randrange(len(files))
        inside = contents[k].startswith(b"PK") and rng.random() < 0.8
        data = damage_member(contents[k], rng) if inside else damage(contents[k], contents, rng)
        path = folder / f"input{files[k].suffix}"
        path.write_bytes(data)
        ended = outcome(READERS[reader], path)
        if ended not in ("read", "refused"):
            faults.setdefault(f"{ended} ({files[k].name})", data)
            ended = "faults"
        counts[ended] += 1
    return counts, faults


ROUTES = ("/solve", "/solve/batch", "/solve/stream", "/check", "/think", "/stops", "/jobs")


def requests(count: int, seed: int) -> tuple[Counter[str], dict[str, bytes]]:
    """The same for bodies of requests, to a server of its own: every answer must be 2xx or 4xx with a reason."""
    import http.client
    from concurrent.futures import ThreadPoolExecutor
    from urllib.parse import quote, urlsplit

    from serve_load import start

    process, url = start()
    bodies = [json.loads(path.read_text()) for path in corpus("requests")]
    contents = [json.dumps(body["body"]).encode() for body in bodies]
    counts: Counter[str] = Counter()
    faults: dict[str, bytes] = {}

    def ask(number: int) -> None:
        rng = random.Random(f"request {seed} {number}")
        k = rng.randrange(len(bodies))
        data = damage(contents[k], contents, rng)
        path = "/v1" + (bodies[k]["path"] if rng.random() < 0.8 else rng.choice(ROUTES))
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        try:
            if rng.random() < 0.05:
                text = quote(damage(b"problem=cvrp&n=20&seed=1", [b"n=9999999&problem=tsp"], rng), safe="&=")
                connection.request("GET", f"/v1/random?{text}")
            else:
                connection.request("POST", path, data, {"content-type": "application/json"})
            answer = connection.getresponse()
            text, status = answer.read().decode(), answer.status
            refused = 400 <= status < 500 and bool(json.loads(text)["error"])
            ended = "read" if 200 <= status < 300 else "refused" if refused else f"status {status}: {text[:200]}"
        except Exception as error:
            ended = f"{type(error).__name__}: {str(error)[:200]}"
        finally:
            connection.close()
        if ended not in ("read", "refused"):
            faults.setdefault(f"{ended} ({path})", data)
            ended = "faults"
        counts[ended] += 1

    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(count)))
    finally:
        process.terminate()
        process.wait(30)
    return counts, faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="files, over all readers")
    parser.add_argument("--requests", type=int, default=0, help="requests to a server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", default=",".join(READERS))
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="where inputs go that ended otherwise")
    options = parser.parse_args()
    torch.set_num_threads(1)
    readers = [name for name in options.readers.split(",") if name]
    met = 0
    print(f"{'reader':12} {'inputs':>8} {'read':>8} {'refused':>8} {'faults':>7} {'seconds':>8}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        jobs: list[tuple[str, Callable[[], tuple[Counter[str], dict[str, bytes]]]]] = [
            (name, lambda name=name: run(name, options.inputs // len(readers), options.seed, Path(folder)))  # type: ignore[misc]
            for name in readers
        ]
        if options.requests:
            jobs.append(("requests", lambda: requests(options.requests, options.seed)))
        for name, job in jobs:
            began = time.perf_counter()
            counts, faults = job()
            spent = time.perf_counter() - began
            numbers = [sum(counts.values()), counts["read"], counts["refused"], counts["faults"]]
            print(f"{name:12} {numbers[0]:8d} {numbers[1]:8d} {numbers[2]:8d} {numbers[3]:7d} {spent:8.0f}", flush=True)
            for i, (words, data) in enumerate(faults.items()):
                options.found.mkdir(parents=True, exist_ok=True)
                (options.found / f"{name}-{i}").write_bytes(data)
                print(f"  {words} -> {options.found / f'{name}-{i}'}", flush=True)
            met += counts["faults"]
    if met:
        sys.exit(1)


if __name__ == "__main__":
    main()
