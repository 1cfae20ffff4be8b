"""Processes that tests start and must not leave behind."""

from __future__ import annotations

import subprocess
from typing import Any


def stop(process: subprocess.Popen[Any]) -> None:
    """End a process: gently, and otherwise after a while."""
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
