"""Progress for people: a bar where asked for, in terminals and notebooks alike."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

_WIDTH = 30


@contextlib.contextmanager
def watcher(name: str, verbose: bool, callback: Any) -> Iterator[Callable[..., None] | None]:
    """What the library calls with progress: the caller's callback, a bar, or nothing."""
    if not verbose:
        yield callback
        return
    bar = _Bar(name)

    def tell(*news: Any) -> None:
        bar.draw(*news)
        if callback is not None:
            callback(*news)

    try:
        yield tell
    finally:
        bar.close()


class _Bar:
    """One line that is written anew: a carriage return works in terminals and notebooks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.began = time.monotonic()
        self.length = 0

    def draw(
        self,
        phase: str,
        step: int,
        steps: int,
        loss: float | None,
        validation: float | None,
    ) -> None:
        filled = _WIDTH * step // max(steps, 1)
        parts = [f"{self.name} {phase}".strip(), "█" * filled + "░" * (_WIDTH - filled)]
        parts.append(f"{step}/{steps}")
        if loss is not None:
            parts.append(f"loss {loss:.4g}")
        if validation is not None:
            parts.append(f"validation {validation:.4f}")
        parts.append(f"{time.monotonic() - self.began:.0f} s")
        line = "  ".join(parts)
        sys.stderr.write("\r" + line.ljust(self.length))
        sys.stderr.flush()
        self.length = len(line)

    def close(self) -> None:
        if self.length:
            sys.stderr.write("\n")
            sys.stderr.flush()
