"""Virtual environments of the peers, and child processes in them, one at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

from methods import CURRENT, METRA, METRIC_LEARN

HERE = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class Environments:
    """Interpreters by the name of their environment."""

    def __init__(self, cache: Path, given: dict[str, str]) -> None:
        self.cache = cache
        self.python = {METRA: sys.executable, **given}

    def interpreter(self, name: str) -> str:
        """The interpreter of an environment, which is made when it is first asked for."""
        if name not in self.python:
            if name not in (METRIC_LEARN, CURRENT):
                raise SystemExit(f"expected {METRIC_LEARN} or {CURRENT}, but found {name!r}")
            folder = self.cache / f"environment-{name}"
            python = folder / "bin" / "python"
            if not (folder / "complete").exists():
                print(f"making {folder}", file=sys.stderr)
                venv.create(folder, with_pip=True, clear=True)
                wanted = HERE / f"requirements-{name}.txt"
                install = [str(python), "-m", "pip", "install", "--quiet", "-r", str(wanted)]
                subprocess.run(install, check=True, stdout=sys.stderr)
                (folder / "complete").touch()
            self.python[name] = str(python)
        return self.python[name]

    def run(
        self,
        name: str,
        script: str,
        arguments: list[str],
        order: dict[str, Any] | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """What a script of this folder answers, on one thread; killed after `seconds` by the clock.

        A child that says nothing (the system ended it, or it hung) counts as stopped.
        """
        environment = dict(os.environ, **{thread: "1" for thread in THREADS})
        # OpenBLAS takes some newer processors for older ones and is then several times slower.
        environment.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [self.interpreter(name), str(HERE / script), *arguments]
        start = time.monotonic()
        try:
            done = subprocess.run(
                command,
                env=environment,
                input=json.dumps(order or {}),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return {"stopped": "time", "cpu": None, "wall": time.monotonic() - start}
        lines = done.stdout.splitlines()
        if done.returncode < 0:
            return {"stopped": f"signal {-done.returncode}", "cpu": None}
        if done.returncode != 0 or not lines:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {"stopped": f"error: {last}", "cpu": None}
        return dict(json.loads(lines[-1]))
