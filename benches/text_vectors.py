"""Texts of the data sets and vectors of them, for the measurements beside this file."""

from __future__ import annotations

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
