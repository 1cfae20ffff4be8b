"""What a builder is asked for, and how it says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class Failure(Exception):
    """Bad input. The text says what to do; it is printed without a traceback."""


@dataclass(frozen=True)
class Request:
    """Where sources lie and where tables go; `rows`: embed no more than the first so many texts of a table."""

    sources: Path
    output: Path
    rows: int | None = None
