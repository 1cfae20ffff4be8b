"""What the measurements beside this file share: texts of the data sets, vectors of them, and what was measured with."""

from __future__ import annotations

import json
import subprocess
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


def measured_with(metra: str, *packages: str) -> dict[str, Any]:
    """The command by its version and the digest of its sources, and the versions of packages."""
    found = json.loads(subprocess.run([metra, "doctor", "--json"], check=True, capture_output=True, text=True).stdout)
    return {
        "metra": {"version": found["version"], "sources": found["code"]},
        "packages": {package: version(package) for package in packages},
    }
