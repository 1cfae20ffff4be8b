"""Pages of documentation whose blocks of Python are run, and whose shown output is compared."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

# A block of code and, if it follows at once, the block that shows what it prints.
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")

# Results are the same bytes on one kind of processor; on another the last digits move.
TOLERANCE = 0.02


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """Line, code and shown output of every block of Python."""
    text = page.read_text(encoding="utf-8")
    return [
        (text[: found.start(1)].count("\n"), found[1], found[2]) for found in BLOCK.finditer(text)
    ]


def same_output(shown: str, printed: str) -> bool:
    """Whether words agree and numbers nearly do."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed))
    return all(_near(*(float(number.replace(",", "")) for number in pair)) for pair in pairs)


def _near(shown: float, printed: float) -> bool:
    return abs(shown - printed) <= TOLERANCE * max(1.0, abs(shown))


def run_page(page: Path, here: Callable[[str], str] = str) -> dict[str, Any]:
    """Run all blocks of a page, as `here` changes them, and compare what they print; the names they made."""
    names: dict[str, Any] = {"__name__": "__page__"}
    ran = 0
    for line, code, shown in blocks(page):
        wanted = re.match(r"# needs (\w+)", code)
        if wanted:
            try:
                __import__(wanted[1])
            except ImportError:
                continue
        printed = io.StringIO()
        # The lines are counted as on the page, so that a traceback points there.
        compiled = compile("\n" * line + here(code), str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(compiled, names)
        ran += 1
        if shown is not None:
            assert same_output(shown, printed.getvalue()), (
                f"{page.name}, line {line + 1} shows\n{shown}\nbut prints\n{printed.getvalue()}"
            )
    assert ran > 0, f"{page.name} has no block of Python"
    return names
