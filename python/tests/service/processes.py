"""Real servers on free ports of loopback: `metra serve`, and a server of embeddings that can fail."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from children import stop

HERE = Path(__file__).parent


class Process:
    """A server that runs; `address` is what it printed when it took requests."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process, self.address, self._log = process, address, log

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.address.rpartition(":")[2])

    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str) -> str:
        """The body of a page."""
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return answer.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric, 0 where it is not there yet; of several series with these labels their sum."""
        total = 0.0
        for line in self.get("/metrics").splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found and found[1] == name:
                own = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
                if labels.items() <= own.items():
                    total += float(found[3])
        return total


@contextlib.contextmanager
def running(command: list[str], log: Path, **variables: str) -> Iterator[Process]:
    """Run a server until the block ends; its first line says where it listens."""
    # Proxies and keys of whoever runs the tests are no part of them.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("METRA_") and not name.lower().endswith("_proxy")
    }
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**environment, **variables},
        )
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            if not first:
                raise RuntimeError(f"{command} did not start:\n{log.read_text()}")
            yield Process(process, json.loads(first)["listening"], log)
        finally:
            stop(process)
            process.stdout.close()


class Metra:
    """The command `metra`, with a folder for logs."""

    def __init__(self, command: str, folder: Path) -> None:
        self.command, self.folder, self._count = command, folder, 0

    def run(self, *arguments: Any) -> str:
        """What a verb prints."""
        done = subprocess.run([self.command, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"metra {arguments}: {done.stderr}"
        return done.stdout

    def serve(self, *arguments: Any, bind: str = "127.0.0.1:0", drain_delay: float = 0.05, **variables: str) -> Any:
        """Run `metra serve` until the block ends."""
        self._count += 1
        line = [self.command, "serve", *map(str, arguments), "--bind", bind, "--json"]
        line += ["--drain-delay", str(drain_delay), "--drain-time", "2", "--log-format", "json"]
        return running(line, self.folder / f"serve-{self._count}.log", **variables)


class Upstream(Process):
    """The server of embeddings in `upstream.py`."""

    def control(self, **said: Any) -> dict[str, Any]:
        """Say how it fails from now on; gives what it was asked since the last time."""
        body = json.dumps(said).encode()
        with urllib.request.urlopen(f"{self.address}/control", data=body, timeout=30) as answer:
            return json.load(answer)


@contextlib.contextmanager
def upstream(log: Path) -> Iterator[Upstream]:
    """Run the server of embeddings until the block ends."""
    with running([sys.executable, str(HERE / "upstream.py")], log) as process:
        yield Upstream(process.process, process.address, log)
