"""Load on a server by oha (https://github.com/hatoo/oha), and what the machine can do beside it.

A load without a rate asks again as soon as it is answered: what comes out is the capacity. A load with a rate sends
when it is time to, and oha counts latency from then on and not from when a connection was free (`--latency-correction`),
so that a server that stands still shows in the percentiles (coordinated omission).
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

JSON, BINARY = "application/json", "application/octet-stream"
# Of measurements that are repeated in turns.
ROUNDS = 4


class Cores:
    """Which core serves and which one asks."""

    def __init__(self, server: int | None, client: int | None) -> None:
        self.server, self.client = server, client

    def facts(self) -> dict:
        return {"server": self.server, "client": self.client, "all": os.cpu_count(), "server_threads": 1}

    def on_server(self):
        return Pinned(self.server)


class Pinned:
    """Work of this process on one core, until the end of the `with`."""

    def __init__(self, core: int | None) -> None:
        self.core = core

    def __enter__(self):
        self.before = os.sched_getaffinity(0)
        if self.core is not None:
            os.sched_setaffinity(0, {self.core})

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.before)


def product_seconds(cores: Cores, repeats: int = 3) -> float:
    """The least time of a 2048 x 2048 x 2048 product of f32 on the server's core, by which machines are compared."""
    left, right = (np.random.default_rng(n).standard_normal((2048, 2048), dtype=np.float32) for n in (1, 2))
    times = []
    with cores.on_server():
        for _ in range(repeats):
            began = time.perf_counter()
            left @ right
            times.append(time.perf_counter() - began)
    return min(times)


def tool() -> str:
    found = os.environ.get("OHA") or shutil.which("oha")
    if not found:
        raise SystemExit("expected oha on PATH or named by OHA: cargo install oha --version 1.16.0 --locked")
    return found


def version() -> str | None:
    """None where there is no oha, which not every part needs."""
    found = os.environ.get("OHA") or shutil.which("oha")
    return found and subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()


class Load:
    """A load that runs; `end` waits for it."""

    def __init__(self, server, cores: Cores, path: str, *, body: bytes | None, kind: str = JSON, seconds: float, connections: int, rate: float | None = None):  # fmt: skip
        self.server, self.seconds, self.rate, self.body = server, seconds, rate, None
        pinned = ["taskset", "-c", str(cores.client)] if cores.client is not None else []
        command = [
            *pinned,
            tool(),
            "--no-tui",
            "--output-format",
            "json",
            "-z",
            f"{round(1000 * seconds)}ms",
            "-c",
            str(connections),
        ]
        if rate is not None:
            # oha takes whole requests a second, or one request in so much time.
            command += ["-q", str(max(1, round(rate))), "--latency-correction"]
        if body is not None:
            self.body = tempfile.NamedTemporaryFile(prefix="metra-body-")
            self.body.write(body)
            self.body.flush()
            command += ["-m", "POST", "-D", self.body.name, "-T", kind]
        self.command = [*command, server.address + path]
        self.before = server.cpu_seconds()
        self.own_before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self) -> dict:
        try:
            out, problem = self.process.communicate(timeout=self.seconds + 120)
        except BaseException:
            self.process.kill()
            raise
        finally:
            if self.body:
                self.body.close()
        if self.process.returncode:
            raise SystemExit(f"{' '.join(self.command)}: {problem.decode()[-2000:]}")
        told = json.loads(out)
        total = told["summary"]["total"]
        statuses = {int(status): count for status, count in told["statusCodeDistribution"].items()}
        # Requests that were under way at the end of the time are no failures of the server.
        errors = {why: count for why, count in told["errorDistribution"].items() if "deadline" not in why}
        percentiles = {name: told["latencyPercentiles"].get(name) for name in ("p50", "p99", "p99.9")}
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        client = own.ru_utime + own.ru_stime - self.own_before.ru_utime - self.own_before.ru_stime
        return {
            "seconds": total,
            "asked_per_second": self.rate,
            "answers_per_second": sum(statuses.values()) / total,
            "statuses": statuses,
            "per_second": {status: count / total for status, count in statuses.items()},
            "errors": errors,
            "milliseconds": {name: value and 1e3 * value for name, value in percentiles.items()},
            # The one that is near 1 is what limits the figures.
            "cpu": {"server": (self.server.cpu_seconds() - self.before) / total, "client": client / total},
        }


def run(server, cores, path, **settings) -> dict:
    return Load(server, cores, path, **settings).end()


def capacity(server, cores, path, *, body, kind=JSON, seconds, connections=16, status=200) -> dict:
    """Answers with this status in a second, where each connection asks again at once."""
    found = run(server, cores, path, body=body, kind=kind, seconds=seconds, connections=connections)
    found["capacity"] = found["per_second"].get(status, 0.0)
    if not found["capacity"]:
        raise SystemExit(
            f"{path}: expected answers with status {status}, but found {found['statuses']} {found['errors']}"
        )
    return found


def at_shares(server, cores, path, *, body, kind=JSON, seconds, asking=16, shares=(0.5, 0.9)) -> dict:
    """Latency at shares of the capacity, as medians of rounds. Each round measures the capacity anew, with `asking` connections: what other
    guests take of a shared machine changes within a minute, and nine tenths of what it once could do may be more than it can."""
    each = {"body": body, "kind": kind, "seconds": seconds / ROUNDS}
    rounds = {f"{share:.0%}": [] for share in shares}
    for _ in range(ROUNDS):
        full = capacity(server, cores, path, **each, connections=asking)["capacity"]
        for share, loads in zip(shares, rounds.values()):
            loads.append(run(server, cores, path, **each, connections=64, rate=share * full))
    return {name: middle(loads) for name, loads in rounds.items()}


def middle(loads: list[dict]) -> dict:
    """Several loads of one kind as one: medians, and the least and the greatest percentiles."""

    def values(group: str, name: str) -> list[float]:
        return [load[group][name] for load in loads if load[group][name] is not None]

    percentiles = {name: values("milliseconds", name) for name in loads[0]["milliseconds"]}
    return {
        "seconds": sum(load["seconds"] for load in loads),
        "asked_per_second": statistics.median(load["asked_per_second"] for load in loads),
        "answers_per_second": statistics.median(load["answers_per_second"] for load in loads),
        "statuses": dict(sum((Counter(load["statuses"]) for load in loads), Counter())),
        "errors": dict(sum((Counter(load["errors"]) for load in loads), Counter())),
        "milliseconds": {name: statistics.median(found) if found else None for name, found in percentiles.items()},
        "range": {name: [min(found), max(found)] if found else None for name, found in percentiles.items()},
        "cpu": {who: statistics.median(values("cpu", who)) for who in ("server", "client")},
    }


def milliseconds(found: dict) -> str:
    return "  ".join(f"{name} {value:9.2f} ms" for name, value in found["milliseconds"].items() if value is not None)


def as_json(vectors: np.ndarray, **more) -> bytes:
    """A body; numbers as short as f32 allows, as a client would write them."""
    rows = ",".join("[" + ",".join(map(str, row)) + "]" for row in vectors.astype(np.float32))
    start = json.dumps(more)[:-1] + (", " if more else "")
    return f'{start}"vectors": [{rows}]}}'.encode()


def memory_text(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"


def cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
