"""`metra serve` as a process of its own: started, asked, watched and ended.

A server ends with whoever started it, whatever happens: at the end of a `with`, at Ctrl-C, and (on Linux) when this
process is killed.
"""

import ctypes
import http.client
import json
import os
import select
import signal
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
KILL_ME_TOO = 1  # PR_SET_PDEATHSIG
LIBC = ctypes.CDLL(None)


def with_parent() -> None:
    """Runs in the child: a server whose parent is gone would go on listening."""
    LIBC.prctl(KILL_ME_TOO, signal.SIGKILL)


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Server:
    """A running server. `core` is the one that it may use; its log goes to `log` or nowhere."""

    def __init__(self, metra, *arguments, core=None, threads=1, log=None, keys=None, wait=600, bind="127.0.0.1:0"):
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        # Without --json, which would leave out the lines of the log for requests, and what they cost.
        served = [metra, "serve", *map(str, arguments), "--bind", bind, "--threads", str(threads)]
        self.command = [*pinned, *map(str, served)]
        environment = {**os.environ, **({"METRA_KEYS": keys} if keys else {})}
        self.log_file = open(log, "ab") if log else open(os.devnull, "ab")
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=self.log_file, env=environment, preexec_fn=with_parent
        )
        try:
            self.address = self._listening(wait, log)
        except BaseException:
            self.stop(signal.SIGKILL)
            raise
        self.host, self.port = urlsplit(self.address).hostname, urlsplit(self.address).port

    def _listening(self, wait: float, log) -> str:
        ends, line = time.monotonic() + wait, b""
        out = self.process.stdout.fileno()
        while not line.endswith(b"\n"):
            left = ends - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                raise SystemExit(f"{' '.join(self.command)}: expected a line within {wait} s")
            byte = os.read(out, 1)
            if not byte:
                said = Path(log).read_text(errors="replace")[-2000:] if log else "its log was not kept"
                status = self.process.wait()
                raise SystemExit(f"{' '.join(self.command)}: ended with status {status} before it listened: {said}")
            line += byte
        return line.decode().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stop(self, with_signal=signal.SIGTERM, wait: float = 60) -> int:
        """End it and return its status; a second signal ends what does not end by itself."""
        if self.is_alive():
            self.process.send_signal(with_signal)
        try:
            return self.process.wait(wait)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process.stdout.close()
            self.log_file.close()

    def ask(self, method: str, path: str, body=None, headers=None, wait: float = 60) -> Answer:
        """One request by a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=wait)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def post(self, path: str, value, headers=None, wait: float = 60) -> Answer:
        kind = {"Content-Type": "application/json"}
        return self.ask("POST", path, json.dumps(value).encode(), {**kind, **(headers or {})}, wait)

    def counters(self, headers=None) -> dict[str, float]:
        """The lines of /metrics by name and labels."""
        lines = self.ask("GET", "/metrics", headers=headers).body.decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> dict[str, int]:
        """Resident bytes: all, and those that are no pages of files."""
        wanted = {"VmRSS": "rss", "RssAnon": "own", "VmHWM": "peak"}
        lines = (line.split() for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        return {wanted[line[0][:-1]]: int(line[1]) * 1024 for line in lines if line and line[0][:-1] in wanted}

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class Watch:
    """Memory and descriptors of a server every second (and what else is wanted), until the end of the `with`."""

    def __init__(self, server: Server, seconds: float = 1.0, more=lambda: {}) -> None:
        self.server, self.seconds, self.more = server, seconds, more
        self.samples: list[dict] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        began = time.perf_counter()
        while not self.stopped.is_set():
            try:
                sample = {**self.server.memory(), "descriptors": self.server.descriptors(), **self.more()}
            except (OSError, http.client.HTTPException):
                # The process has ended, or did not answer: the part that watches says so.
                sample = None
            if sample is not None:
                self.samples.append({"seconds": time.perf_counter() - began, **sample})
            self.stopped.wait(self.seconds)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def greatest(self, name: str):
        return max(sample[name] for sample in self.samples)

    def slope_per_hour(self, name: str, after: float = 0.0) -> float:
        """Of a line through the samples after so many seconds, by least squares."""
        points = [(s["seconds"], s[name]) for s in self.samples if s["seconds"] >= after]
        if len(points) < 3:
            return float("nan")
        middle_x = sum(x for x, _ in points) / len(points)
        middle_y = sum(y for _, y in points) / len(points)
        spread = sum((x - middle_x) ** 2 for x, _ in points)
        return 3600 * sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
