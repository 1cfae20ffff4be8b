"""A real Prometheus scrapes a real server, and the rules in `deploy/prometheus` raise their alarms when they should."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import metra
import numpy as np
import pytest
from conftest import write_items
from processes import Metra, Process

RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "metra-alerts.yml"
KEY = "0123456789abcdef-prometheus"


def program_of(name: str) -> str:
    """A program of Prometheus."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: it is in Debian's package prometheus")
    return found


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Prometheus:
    """A Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.address}/{path}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]

    def value(self, expression: str) -> float | None:
        """The value of an expression, of several the largest."""
        found = self.ask("query", query=expression)["result"]
        return max((float(one["value"][1]) for one in found), default=None)

    def firing(self) -> set[str]:
        """The alarms that are raised."""
        alerts = self.ask("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def evaluated(self) -> None:
        """Wait until all rules have been evaluated twice from now on, so that what is pending fires."""
        for _ in range(2):
            before = self.ask("rules")["groups"][0]["lastEvaluation"]
            until(lambda: self.ask("rules")["groups"][0]["lastEvaluation"] != before)


def until(holds: Callable[[], Any], seconds: float = 60) -> None:
    """Look again and again until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.2)


@contextlib.contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Prometheus]:
    """Prometheus with the rules, which here need not wait, scraping a server every second."""
    program = program_of("prometheus")
    rules = re.sub(r"for: \w+", "for: 1s", RULES.read_text(encoding="utf-8"))
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    (folder / "key").write_text(KEY)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
        "rule_files: [rules.yml]\n"
        "scrape_configs:\n"
        "  - job_name: metra\n"
        "    authorization: {credentials_file: key}\n"
        f"    static_configs: [{{targets: ['{target}']}}]\n"
    )
    port = free_port()
    command = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    log = folder / "prometheus.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        found = Prometheus(port)

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                return found.value("count(up)") is not None
            except OSError:
                return False

        try:
            until(answers)
            yield found
        finally:
            process.terminate()
            process.wait(timeout=30)


def test_the_rules_are_sound() -> None:
    done = subprocess.run([program_of("promtool"), "check", "rules", RULES], capture_output=True, text=True)
    assert done.returncode == 0 and "9 rules found" in done.stdout, done.stdout + done.stderr


def test_the_rules_say_what_they_should_of_made_series() -> None:
    cases = Path(__file__).parent / "metra-alerts.test.yml"
    done = subprocess.run([program_of("promtool"), "test", "rules", cases], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_server_has_what_the_rules_ask_for(
    program: Metra, served: Any, models: Any, nuisance: Any, tmp_path: Path
) -> None:
    X, y = nuisance
    asked = set(re.findall(r"metra_[a-z_]+", RULES.read_text(encoding="utf-8").split("groups:")[1]))
    write_items(tmp_path / "queries.parquet", X[::3], y[::3])
    options = ["--index", served.folder / "plain.index", "--reference", tmp_path / "queries.parquet"]
    options += ["--canary", tmp_path / "queries.parquet", "--canary-label", "label", "--vector", "vector"]
    with program.serve(served.folder / "plain.safetensors", *options) as server:
        with metra.Client(server.address) as client:
            client.map(X, side="query")
        # Counters are not there before they count: other tests refuse requests and reload.
        named = asked - {"metra_refusals_total", "metra_reloads_total"}
        until(lambda: all(f"\n{name}{{" in server.get("/metrics") for name in named))
        # Twelve items are relevant for each query, of which ten answers can hold ten.
        found, _ = models["plain"].search(X[::3], X, 10)
        assert server.metric("metra_canary_recall") == pytest.approx((y[found] == y[::3, None]).mean(), abs=1e-9)


@pytest.fixture()
def watched(program: Metra, nuisance: Any, tmp_path: Path) -> Iterator[Process]:
    """A server that knows what its queries should be like; every second row of the set is its reference."""
    X, y = nuisance
    model = metra.Warca(n_components=4, steps=60).fit(X, y).model_
    model.save(tmp_path / "m.safetensors")
    np.save(tmp_path / "reference.npy", X[::2])
    options = ("--reference", tmp_path / "reference.npy", "--reload-interval", "0.2")
    with program.serve(tmp_path / "m.safetensors", *options, METRA_KEYS=f"read {KEY}") as server:
        server.model = tmp_path / "m.safetensors"
        yield server


def test_alarms(watched: Any, nuisance: Any, tmp_path: Path) -> None:
    X, _ = nuisance
    ordinary = X[1::2]
    shifted = ordinary + np.float32(30)

    def send(rows: np.ndarray, count: int) -> None:
        # Of a long request a part is looked at, so that many short ones are sent.
        with metra.Client(watched.address, key=KEY, batch=10) as client:
            for _ in range(-(-count // len(rows))):
                client.map(rows, side="query")

    with prometheus(tmp_path, watched.address.removeprefix("http://")) as found:
        until(lambda: found.value('up{job="metra"}') == 1)
        send(ordinary, 1500)
        until(lambda: (found.value("metra_drift_rows") or 0) >= 200)
        found.evaluated()
        assert found.firing() == set()
        assert (found.value("metra_drift_share_outside") or 0) < 0.2
        assert 0.9 < (found.value("metra_drift_norm_ratio") or 0) < 1.1

        # Vectors that lie elsewhere are longer, too.
        of_drift = {"MetraDrift", "MetraMeanShift", "MetraLengths"}
        send(shifted, 500)
        until(lambda: of_drift <= found.firing())
        assert (found.value("metra_drift_share_outside") or 0) > 0.2
        assert (found.value("metra_drift_mean_shift") or 0) > 1
        assert found.firing() == of_drift
        assert (found.value("metra_drift_norm_ratio") or 0) > 1.25
        # What was unusual is forgotten.
        send(ordinary, 1500)
        until(lambda: found.firing() == set())

        # A file that is no model, in one step, as it should be written.
        (tmp_path / "new").write_bytes(b"no model")
        (tmp_path / "new").rename(watched.model)
        until(lambda: found.firing() == {"MetraReloadFailed"})
        with metra.Client(watched.address, key=KEY) as client:
            assert client.map(ordinary, side="query").shape == (len(ordinary), 4)

        watched.process.terminate()
        until(lambda: "MetraDown" in found.firing())
