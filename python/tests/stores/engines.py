"""Servers of the tests, started on free ports and stopped at the end of a block."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from children import stop


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def server(
    command: list[str], log: Path, ready: Callable[[], Any], **options: Any
) -> Iterator[Any]:
    """Run a server until the block ends; gives what `ready` gave once it answered."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, **options)
        try:
            yield _wait(process, log, ready)
        finally:
            stop(process)


def _wait(process: subprocess.Popen[bytes], log: Path, ready: Callable[[], Any]) -> Any:
    end = time.monotonic() + 120
    problem: Exception | None = None
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            return ready()
        except Exception as error:  # whatever a client says while its server starts
            problem = error
            time.sleep(0.2)
    said = log.read_text(errors="replace")[-2000:]
    raise RuntimeError(f"{process.args} does not answer ({problem!r}); it said:\n{said}")


def beside_python(name: str) -> str:
    """A command that was installed into the environment of this interpreter."""
    command = Path(sys.executable).parent / name
    if not command.exists():
        pytest.skip(f"the command {name} is not installed beside {sys.executable}")
    return str(command)
