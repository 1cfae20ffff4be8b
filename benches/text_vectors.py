"""What the measurements beside this file share: their arguments and calls of the command, texts of the data sets and
vectors of them, and what was measured with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import wordllama


def texts_of(table: Any) -> list[str]:
    """Title and text of every row."""
    columns = [table[name].to_pylist() for name in ("title", "text") if name in table.column_names]
    return [" ".join(part for part in row if part) for row in zip(*columns)]


def vectors_of(table: Any) -> np.ndarray:
    """The vectors that the data set has, in its own precision."""
    return np.stack(table["vector"].to_numpy(zero_copy_only=False))


def small_model() -> wordllama.WordLlama:
    """WordLlama of 256 dimensions, with the weights of its wheel."""
    return wordllama.WordLlama.load(
        "l2_supercat", dim=256, cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )


def arguments(usage: str | None) -> tuple[str, Path, Path]:
    """The command, the folder of the data sets and the file for the results."""
    if len(sys.argv) != 3:
        raise SystemExit(usage)
    if "METRA_DATA" not in os.environ:
        raise SystemExit("the data sets need the environment variable METRA_DATA")
    metra, output = sys.argv[1:]
    return metra, Path(os.environ["METRA_DATA"]), Path(output)


def answer(*command: object) -> dict[str, Any]:
    """What the command says as JSON, also where its exit code tells a decision, as the gate's does."""
    words = [*map(str, command), "--json"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout)


def write_record(path: Path, record: dict[str, Any]) -> None:
    """The file of results that `cargo xtask docs` reads."""
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def measured_with(metra: str, *packages: str) -> dict[str, Any]:
    """The command by its version and the digest of its sources, and the versions of packages."""
    found = answer(metra, "doctor")
    return {
        "metra": {"version": found["version"], "sources": found["code"]},
        "packages": {package: version(package) for package in packages},
    }
