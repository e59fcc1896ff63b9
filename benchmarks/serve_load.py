"""Load on the service from a process of its own: clients that ask for TSP constructions, with long searches beside.

    python benchmarks/serve_load.py [--seconds 60] [--clients 64] [--nodes 50] [--long 8] [--url http://...]

Without --url it starts a server on a free port. It prints a table: answers a second, failures, latency percentiles,
and the memory of all processes of the service at the begin, in the middle and at the end of the run; once alone,
once beside the long searches. It exits with 1 where the service falls short: fewer than --least answers a second, a
failed request, a 99th percentile of a second or more, or memory that grew by more than a tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

LONG_SECONDS = 5.0
READY = 600  # seconds, on a busy machine
START = "import sys; from routelearn.cli import command; command('serve').main(args=sys.argv[1:])"


@dataclass
class Tally:
    latencies: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)

    def fail(self, what: str) -> None:
        self.failed[what] = self.failed.get(what, 0) + 1


def request(nodes: int, seconds: float, rng: random.Random) -> bytes:
    """The bytes of a whole HTTP request: the client must cost as little as possible on the machine it measures."""
    coords = [[round(rng.random(), 6), round(rng.random(), 6)] for _ in range(nodes)]
    body = json.dumps({"coords": coords, "seconds": seconds}).encode()
    head = (
        f"POST /solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    return head.encode() + b"\r\n" + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    return status, await reader.readexactly(length)


async def client(where: tuple[str, int], nodes: int, seconds: float, until: float, seed: int, tally: Tally) -> None:
    """One connection that asks, waits for the answer, and asks again."""
    rng = random.Random(seed)
    reader, writer = await asyncio.open_connection(*where)
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(request(nodes, seconds, rng))
        try:
            status, body = await asyncio.wait_for(answer(reader), 120)
        except (OSError, EOFError, TimeoutError) as error:
            tally.fail(type(error).__name__)
            reader, writer = await asyncio.open_connection(*where)
            continue
        tally.latencies.append(time.perf_counter() - began)
        if status != 200 or len(json.loads(body)["routes"][0]["stops"]) != nodes:
            tally.fail(str(status))
    writer.close()


async def load(
    where: tuple[str, int], options: argparse.Namespace, seconds: float, long: int, pid: int | None = None
) -> tuple[Tally, Tally, list[float]]:
    """Small requests, long ones, and the memory (MB) at the begin, in the middle and at the end."""
    small, large = Tally(), Tally()
    until = time.perf_counter() + seconds
    tasks = [client(where, options.nodes, 0, until, i, small) for i in range(options.clients)]
    # Several of them ask at once and there are few processors: their answers take turns, so they are kept waiting.
    tasks += [client(where, 500, LONG_SECONDS, until - LONG_SECONDS, 10_000 + i, large) for i in range(long)]

    async def watch() -> list[float]:
        sizes = []
        for pause in (0.0, seconds / 2, seconds / 2):
            await asyncio.sleep(pause)
            sizes.append(memory(pid) if pid else float("nan"))
        return sizes

    sizes, *_ = await asyncio.gather(watch(), *tasks)
    return small, large, sizes


def family(pid: int) -> list[int]:
    """A process, its children, and theirs."""
    rows = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
    found = [pid]
    for one in found:
        found += [int(child) for child, parent in zip(rows[::2], rows[1::2], strict=True) if int(parent) == one]
    return found


def memory(pid: int) -> float:
    """Megabytes of a process and all that it started; what some of them share is counted once."""
    total = 0.0
    for one in family(pid):
        with contextlib.suppress(OSError):  # it has just ended
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return total


def service_workers(pid: int) -> list[int]:
    """The workers of a server: they are forked from a process of its own."""
    arguments = {}
    for one in family(pid):
        with contextlib.suppress(OSError):
            arguments[one] = Path(f"/proc/{one}/cmdline").read_text()
    servers = [one for one in arguments if "multiprocessing.forkserver" in arguments[one]]
    return servers[1:]  # the first is what they are forked from


def start(*flags: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server on a free port, when it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", START, "--port", str(port), *flags], env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(5 * READY):
        try:
            with urllib.request.urlopen(f"{url}/healthz") as response:
                if json.load(response)["status"] == "ok":
                    return process, url
        except OSError:
            pass
        try:
            time.sleep(0.2)
        except BaseException:  # an interrupt must not leave it behind
            process.kill()
            raise
    process.kill()
    raise SystemExit(f"the server was not ready within {READY} seconds")


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="length of each of the two runs")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--long", type=int, default=8, help="requests of 5 seconds and 500 stops at a time, second run")
    parser.add_argument("--least", type=float, default=200, help="answers a second that are enough")
    parser.add_argument("--url", help="a server that runs already")
    options = parser.parse_args()
    process, url = (None, options.url) if options.url else start()
    where = (urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 80)
    pid = process.pid if process else None
    short = []
    try:
        asyncio.run(load(where, options, 7, options.long))  # not counted: every worker has met its work once
        print(f"{options.clients} clients, tsp{options.nodes}, {options.seconds:g} s each, {os.cpu_count()} cores")
        print("beside               answers/s  failed   p50 s   p99 s   max s   memory MB")
        for long in (0, options.long):
            small, large, sizes = asyncio.run(load(where, options, options.seconds, long, pid))
            rate = len(small.latencies) / options.seconds
            p50, p99, most = (percentile(small.latencies, share) for share in (0.5, 0.99, 1.0))
            name = f"{long} x 5 s, n = 500" if long else "nothing"
            failures = sum(small.failed.values()) + sum(large.failed.values())
            flat = " -> ".join(f"{size:.0f}" for size in sizes)
            print(f"{name:20} {rate:9.1f} {failures:7d} {p50:7.3f} {p99:7.3f} {most:7.3f}   {flat}", flush=True)
            if failures:
                print("  failures:", small.failed, large.failed)
            if long:
                print(f"  of the long ones {len(large.latencies)} were answered")
            faults = {
                "too few answers": rate < options.least and not long,
                "failed requests": failures > 0,
                "slow answers": not p99 < 1.0,
                "memory grew": sizes[-1] > 1.1 * sizes[0],
            }
            short += [f"{name}: {fault}" for fault, met in faults.items() if met]
    finally:
        if process:
            process.terminate()
            process.wait(30)
    if short:
        raise SystemExit("falls short: " + "; ".join(short))


if __name__ == "__main__":
    main()
