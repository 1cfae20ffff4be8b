"""Holds what was built against the files that the experiments were run on, row by row."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .request import Failure
from .tables import read_vectors

LEAST_CORRELATION = 0.999


@dataclass(frozen=True)
class Agreement:
    """One table or file: what to print, and whether it will do."""

    line: str
    good: bool


def table_agreement(built: Path, stored: Path, first: int | None) -> Agreement:
    """With `first`, only so many rows of the stored table are compared."""
    ours, theirs = pq.read_table(built), pq.read_table(stored)
    if first is not None:
        theirs = theirs.slice(0, first)
    name = built.stem
    if len(ours) != len(theirs):
        return Agreement(f"{name}: {len(ours)} rows, but {len(theirs)} in {stored}", False)
    mine, other = read_vectors(ours), read_vectors(theirs)
    if mine.shape != other.shape:
        return Agreement(f"{name}: dimension {mine.shape[1]}, but {other.shape[1]} in {stored}", False)
    differing = [
        column
        for column in theirs.column_names
        if column != "vector" and (column not in ours.column_names or not equal(ours[column], theirs[column]))
    ]
    largest, least = differences(mine, other)
    labels = "labels differ" if "label" in differing else "labels equal"
    words = [f"{name}: {len(ours)} rows", labels, f"largest difference {largest:.1e}"]
    # Cut off, not rounded, so that only 1 reads as 1.
    words.append(f"smallest correlation {math.floor(least * 1e8) / 1e8:.8f}")
    others = [column for column in differing if column != "label"]
    words.append(f"columns that differ: {', '.join(others)}" if others else "other columns equal")
    return Agreement(", ".join(words), not differing and least >= LEAST_CORRELATION)


def file_agreement(built: Path, stored: Path) -> Agreement:
    """Splits by their parts, judgements by their lines; notes may differ."""
    texts = [path.read_text(encoding="utf-8") for path in (built, stored)]
    if built.suffix == ".json":
        same = parts(texts[0]) == parts(texts[1])
    else:
        same = texts[0].split() == texts[1].split()
    return Agreement(f"{built.name}: {'equal' if same else 'differs'}", same)


def parts(text: str) -> tuple[object, object]:
    value = json.loads(text)
    return value["by"], value["splits"]


def differences(mine: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The largest difference of two numbers, and the smallest correlation of two rows."""
    largest, least = 0.0, 1.0
    # In pieces: in float64 the larger sets would take some gigabytes.
    for begin in range(0, len(mine), 4_096):
        left, right = (rows[begin : begin + 4_096].astype(np.float64) for rows in (mine, other))
        largest = max(largest, float(np.abs(left - right).max(initial=0)))
        equal_rows = (left == right).all(axis=1)
        left, right = (rows - rows.mean(axis=1, keepdims=True) for rows in (left, right))
        scale = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        correlations = np.divide((left * right).sum(axis=1), scale, out=np.zeros(len(left)), where=scale > 0)
        # A product of equal rows can be 1 but for rounding; rows of one value have no correlation.
        correlations[equal_rows] = 1
        least = min(least, float(correlations.min(initial=1)))
    return largest, least


def equal(mine: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    # By values: types such as int8 and int32 may differ.
    return bool(mine.to_pylist() == other.to_pylist())


def present(path: Path) -> None:
    if not path.exists():
        raise Failure(f"{path} is missing: --check compares with it")
