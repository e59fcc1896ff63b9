"""Attacks on the service, beside clients that mean well: who is answered, who waits, and what memory it takes.

    python benchmarks/attack.py [--minutes 30] [--warm 20] [--kill 20] [--livez 0.1] [--growth 0.05]

It starts a server on a free port. Honest clients construct, search, stream, send large batches, and fetch jobs. Others
leave early, send endless or half a head, no HTTP at all, tables of 20,000 columns or batches that would fill the
memory, read nothing of their streams, make jobs and never fetch them, ask for a job without a pause, delete jobs of
others, try tokens, or spend a quota; and every --kill seconds a service worker is killed. It prints a table of requests
and answers by status, memory, and the time of /livez. It exits with 1 if an honest request is lost, a 5xx is answered,
somebody else's job or token is of use, or the limits on /livez (99th percentile, seconds) and on the growth of memory
are exceeded.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from serve_load import memory, percentile, service_workers, start

PATIENCE = 60.0  # seconds in which an answer must be there
HONEST_TOKEN, HARMFUL, LIMITED = "of clients that mean well", "of clients that mean harm", "of one with a quota"
TOKENS = [
    {"name": "honest", "token": HONEST_TOKEN},
    {"name": "harmful", "token": HARMFUL},
    {"name": "limited", "token": LIMITED, "requests_per_minute": 60},
]
KEPT = ("--keep-jobs", "100", "--keep-megabytes", "16")  # so that the store is full before memory is measured


@dataclass
class Row:
    """What became of the requests of one kind of client."""

    asked: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    lost: int = 0


@dataclass
class Attack:
    where: tuple[str, int]
    until: float
    rows: dict[str, Row] = field(default_factory=dict)
    livez: list[float] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)  # of honest clients
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self) -> None:
        """Large requests are made once: making them would delay the clients, and with them what is measured."""
        instances = [{"coords": self.places(100)} for _ in range(200)]
        self.large_batch = self.post("/solve/batch", {"instances": instances, "seconds": 0})
        instances = [{"coords": self.places(1999), "metric": "EUC_2D"}] * 100
        self.many_matrices = self.post("/solve/batch", {"instances": instances, "seconds": 1}, HARMFUL)
        names, cells = ",".join(f"c{i}" for i in range(20_000)), ",1" * 20_000
        table = f"x,y,{names}\n1,2{cells}\n3,4{cells}\n"
        self.many_columns = self.post("/stops", {"name": "wide.csv", "text": table}, HARMFUL)
        ids = [f"{i:0>190}" for i in range(1000)]  # every solution of the stream repeats them
        self.long_names = self.post("/solve/stream", {"coords": self.places(1000), "ids": ids, "seconds": 2}, HARMFUL)

    def places(self, count: int) -> list[list[float]]:
        return [[round(self.rng.random(), 4), round(self.rng.random(), 4)] for _ in range(count)]

    def post(self, path: str, body: object, token: str = HONEST_TOKEN) -> bytes:
        data = json.dumps(body).encode()
        length = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        return self.head("POST", f"/v1{path}", token, length) + data

    def head(self, method: str, path: str, token: str, more: str = "") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n"
        return f"{head}{more}\r\n".encode()

    async def exchange(self, row: Row, sent: bytes, *, limit: float = PATIENCE) -> bytes:
        """Send, and read until the server closes; count what came."""
        row.asked += 1
        received = b""
        try:
            async with asyncio.timeout(limit):
                reader, writer = await asyncio.open_connection(*self.where)
                with contextlib.suppress(OSError):  # refused while it is sent: the answer is there already
                    writer.write(sent)
                    await writer.drain()
                with contextlib.suppress(OSError):
                    received = await reader.read(-1)
                writer.close()
        except (OSError, TimeoutError):
            pass
        if received.startswith(b"HTTP/1.1 "):
            row.answers[received[9:12].decode()] += 1
        else:
            row.lost += 1
        return received

    # ---------------------------------------------------------------------------------------------- honest

    async def construct(self, row: Row) -> None:
        await self.exchange(row, self.post("/solve", {"coords": self.places(50), "seconds": 0}))

    async def search(self, row: Row) -> None:
        await self.exchange(row, self.post("/solve", {"coords": self.places(100), "seconds": 0.5}))

    async def stream(self, row: Row) -> None:
        received = await self.exchange(row, self.post("/solve/stream", {"coords": self.places(200), "seconds": 1}))
        if received.startswith(b"HTTP/1.1 200") and b"event: done" not in received:
            row.lost += 1

    async def batch(self, row: Row) -> None:
        await self.exchange(row, self.large_batch)
        await asyncio.sleep(2)

    async def job(self, row: Row) -> None:
        """Make a job, leave, and come back for it; it must be done, whatever became of its worker."""
        made = await self.exchange(row, self.post("/jobs", {"coords": self.places(100), "seconds": 0.5}))
        if not made.startswith(b"HTTP/1.1 202"):
            return
        name = json.loads(made.partition(b"\r\n\r\n")[2])["id"]
        self.jobs.append(name)
        state, end = "queued", time.perf_counter() + PATIENCE
        while state in ("queued", "running") and time.perf_counter() < end:
            await asyncio.sleep(0.2)
            told = await self.exchange(row, self.head("GET", f"/v1/jobs/{name}", HONEST_TOKEN))
            if told.startswith(b"HTTP/1.1 200"):
                state = json.loads(told.partition(b"\r\n\r\n")[2])["state"]
        if state != "done":
            row.lost += 1
        await self.exchange(row, self.head("DELETE", f"/v1/jobs/{name}", HONEST_TOKEN))

    async def alive(self, row: Row) -> None:
        began = time.perf_counter()
        await self.exchange(row, b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.livez.append(time.perf_counter() - began)
        await asyncio.sleep(0.05)

    # ------------------------------------------------------------------------------------------- attackers

    async def abort(self, row: Row) -> None:
        row.asked += 1
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(*self.where)
            writer.write(self.post("/solve", {"coords": self.places(300), "seconds": 10}, HARMFUL))
            await asyncio.sleep(0.5)
            writer.transport.abort()

    async def endless_head(self, row: Row) -> None:
        await self.exchange(row, b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 2**22)
        await asyncio.sleep(0.2)

    async def half_head(self, row: Row) -> None:
        await self.exchange(row, b"GET /livez HTTP/1.1\r\nHost: x\r\nX-")

    async def no_http(self, row: Row) -> None:
        await self.exchange(row, b"NONSENSE\r\n\r\n")
        await asyncio.sleep(0.2)

    async def wide_table(self, row: Row) -> None:
        await self.exchange(row, self.many_columns)
        await asyncio.sleep(1)

    async def heavy_batch(self, row: Row) -> None:
        await self.exchange(row, self.many_matrices)
        await asyncio.sleep(2)

    async def unfetched(self, row: Row) -> None:
        """Make jobs whose answers are large, and never ask for them."""
        body = {"coords": self.places(500), "seconds": self.rng.choice((0, 0, 0.2))}
        await self.exchange(row, self.post("/jobs", body, HARMFUL))
        await asyncio.sleep(0.5)

    async def poll(self, row: Row) -> None:
        """Ask for a job without a pause."""
        name = self.jobs[-1] if self.jobs else "none"
        await self.exchange(row, self.head("GET", f"/v1/jobs/{name}", HARMFUL))

    async def delete_others(self, row: Row) -> None:
        name = self.jobs[-1] if self.jobs and self.rng.random() < 0.5 else f"{self.rng.getrandbits(128):032x}"
        await self.exchange(row, self.head("DELETE", f"/v1/jobs/{name}", HARMFUL))
        await asyncio.sleep(0.02)

    async def try_tokens(self, row: Row) -> None:
        token = f"{self.rng.getrandbits(8 * self.rng.choice((1, 16, 8000))):x}"
        await self.exchange(row, self.head("GET", "/v1/jobs", token))

    async def over_quota(self, row: Row) -> None:
        await self.exchange(row, self.post("/solve", {"coords": self.places(10), "seconds": 0}, LIMITED))
        await asyncio.sleep(0.05)

    async def unread(self, row: Row) -> None:
        """Read nothing of a stream, longer than the server lets one."""
        row.asked += 1
        _, writer = await asyncio.open_connection(*self.where)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(self.long_names)
        await asyncio.sleep(max(0.0, min(PATIENCE / 2, self.until - time.perf_counter())))
        writer.transport.abort()


HONEST = {"construct": 4, "search": 2, "stream": 1, "batch": 1, "job": 1, "alive": 1}
ATTACKERS = {"abort": 1, "endless_head": 2, "half_head": 20, "no_http": 1, "wide_table": 1, "heavy_batch": 1}
ATTACKERS |= {"unread": 4, "unfetched": 2, "poll": 1, "delete_others": 1, "try_tokens": 2, "over_quota": 1}
# What these may be answered, and nothing else.
ALLOWED = {"poll": {"404"}, "delete_others": {"404"}, "try_tokens": {"401"}, "over_quota": {"200", "429"}}


async def soak(attack: Attack, pid: int, minutes: float, kill: float) -> list[float]:
    """Run all clients; memory in MB at the begin, after a third of the time and at the end."""

    async def again(name: str, work: Callable[[Row], Awaitable[None]]) -> None:
        row = attack.rows.setdefault(name, Row())
        while time.perf_counter() < attack.until:
            await work(row)

    async def watch() -> list[float]:
        sizes = [memory(pid)]
        for share in (1 / 3, 2 / 3):
            await asyncio.sleep(60 * minutes * share)
            sizes.append(await asyncio.to_thread(memory, pid))
        return sizes

    async def killing() -> None:
        while kill and time.perf_counter() + kill < attack.until:
            await asyncio.sleep(kill)
            pids = await asyncio.to_thread(service_workers, pid)
            if pids:
                os.kill(attack.rng.choice(pids), signal.SIGKILL)

    counts = HONEST | ATTACKERS
    clients = [again(name, getattr(attack, name)) for name, count in counts.items() for _ in range(count)]
    sizes, *_ = await asyncio.gather(watch(), killing(), *clients)
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--warm", type=float, default=20, help="seconds before that which are not counted")
    parser.add_argument("--kill", type=float, default=20, help="seconds between two kills of a worker; 0: none")
    parser.add_argument("--livez", type=float, default=0.1, help="most seconds of /livez, 99th percentile")
    parser.add_argument("--growth", type=float, default=0.05, help="most growth of memory, as a share")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.json"
        tokens.write_text(json.dumps({"token": TOKENS}))
        process, url = start("--tokens", str(tokens), *KEPT)
    where = (urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 80)
    try:
        warm = Attack(where, time.perf_counter() + options.warm)
        asyncio.run(soak(warm, process.pid, options.warm / 60, 0))  # every worker has met its work once
        attack = Attack(where, time.perf_counter() + 60 * options.minutes)
        sizes = asyncio.run(soak(attack, process.pid, options.minutes, options.kill))
    finally:
        process.terminate()
        process.wait(30)
    print(f"{'client':15} {'requests':>8} {'lost':>5}  answers by status")
    for name, row in attack.rows.items():
        told = ", ".join(f"{status}: {count}" for status, count in sorted(row.answers.items()))
        print(f"{name:15} {row.asked:8d} {row.lost:5d}  {told}")
    p50, p99, most = (percentile(attack.livez, share) for share in (0.5, 0.99, 1.0))
    print(f"/livez: {p50:.3f} s in the middle, {p99:.3f} s 99th percentile, {most:.3f} s at most")
    print(f"memory: {' -> '.join(f'{size:.0f}' for size in sizes)} MB")
    faults = {
        "lost requests": any(attack.rows[name].lost for name in HONEST),
        "answers 5xx": any(status[0] == "5" for row in attack.rows.values() for status in row.answers),
        "somebody else's job or token was of use": any(
            set(attack.rows[name].answers) - allowed for name, allowed in ALLOWED.items()
        ),
        "slow /livez": not p99 < options.livez,
        "memory grew": sizes[-1] > (1 + options.growth) * sizes[0],
    }
    if met := [fault for fault, there in faults.items() if there]:
        raise SystemExit("falls short: " + "; ".join(met))


if __name__ == "__main__":
    main()
