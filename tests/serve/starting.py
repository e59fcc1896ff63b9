"""How the tests start the command `serve` in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

START = "import sys; from routelearn.cli import main; main(['serve', *sys.argv[1:]])"
READY_SECONDS = 300


class Server:
    """A server on a free port."""

    def __init__(self, *flags, token=None):
        from routelearn.rounds.search import load_kernels

        load_kernels()  # onto the disk, so that no server compiles them beside the tests
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {name: value for name, value in os.environ.items() if name != "ROUTELEARN_TOKEN"}
        environment |= {"OMP_NUM_THREADS": "1"} | ({} if token is None else {"ROUTELEARN_TOKEN": token})
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "--port", str(self.port), *map(str, flags)],
            env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait(self):
        import httpx

        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                if httpx.get(f"{self.url}/healthz", timeout=5).json()["status"] == "ok":
                    return self
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"the server was not ready within {READY_SECONDS} s")

    def alive(self):
        """When it answers, whatever its workers do."""
        import httpx

        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                httpx.get(f"{self.url}/livez", timeout=5)
                return self
            except httpx.HTTPError:
                time.sleep(0.2)
        raise AssertionError(f"the server did not answer within {READY_SECONDS} s")

    def metric(self, name):
        """The sum over all labels."""
        import httpx

        lines = httpx.get(f"{self.url}/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def worker_pids(self):
        def children(pid):
            command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()

        [forks] = [line for line in children(self.process.pid) if "multiprocessing.forkserver" in line]
        pids = [int(line.split()[0]) for line in children(forks.split()[0])]
        assert len(pids) >= 3, "one for each lane at least"
        return pids

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.process.stderr.close()


QUOTAS = {
    "many": {},
    "other": {},
    "two_requests": {"requests_per_minute": 2},
    "little_search": {"search_seconds_per_hour": 1.5},
    "one_job": {"jobs": 1},
}


class Guarded(Server):
    """A server with tokens of several names and quotas, an access log, and one origin whose pages may ask."""

    unlimited = "that of the environment"

    def __init__(self, folder):
        self.log, file = folder / "access.log", folder / "tokens.json"
        entries = [{"name": name, "token": self.token(name), **quota} for name, quota in QUOTAS.items()]
        file.write_text(json.dumps({"token": entries}))
        flags = ("--tokens", file, "--access-log", self.log, "--keep-jobs", 40, "--cors", "https://example.org")
        super().__init__("--long-workers", 1, "--constructors", 1, *flags, token=self.unlimited)

    @property
    def names(self):
        return list(QUOTAS)

    def token(self, name):
        return f"the token of {name}, which is long"

    def digest(self, name):
        return hashlib.sha256(self.token(name).encode()).hexdigest()

    def ask(self, method, path, token="", **named):
        import httpx

        headers = ({"authorization": f"Bearer {token}"} if token else {}) | named.pop("headers", {})
        return httpx.request(method, self.url + path, headers=headers, timeout=120, **named)

    def job(self, body, token=None, until=("done", "failed", "cancelled"), **named):
        """A new job, when it is in one of these states."""
        token = token or self.token("many")
        made = self.ask("POST", "/v1/jobs", token, json=body, **named)
        assert made.status_code == 202, made.text
        return self.wait_for(made.json()["id"], until, token)

    def wait_for(self, name, until=("done", "failed", "cancelled"), token=None):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            told = self.ask("GET", f"/v1/jobs/{name}", token or self.token("many")).json()
            if told["state"] in until:
                return told
            time.sleep(0.05)
        raise AssertionError(f"the job is {told['state']}")
