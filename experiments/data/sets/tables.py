"""Writing tables, splits and judgements in the forms that experiments read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Split = dict[str, list[int]]


def write_table(path: Path, vectors: np.ndarray, label: Iterable[int] | pa.Array, **columns: pa.Array) -> None:
    """Vectors as a column of lists of one length, in the number type that they have, and labels as int32 or as they are."""
    count, width = vectors.shape
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    table = pa.table({
        "vector": pa.FixedSizeListArray.from_arrays(flat, width),
        "label": label if isinstance(label, pa.Array) else pa.array(np.asarray(label), pa.int32()),
        **columns,
    })
    assert len(table) == count
    part = path.with_name(path.name + ".part")
    pq.write_table(table, part, compression="zstd")
    # Renamed at the end, so that a file under its own name is whole.
    os.replace(part, path)


def read_vectors(table: pa.Table) -> np.ndarray:
    lists = table["vector"].combine_chunks()
    flat: np.ndarray = lists.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(lists), -1)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False), encoding="utf-8")


def write_splits(path: Path, by: str, note: str, splits: Sequence[Split]) -> None:
    write_json(path, {"by": by, "note": note, "splits": splits})


def write_qrels(path: Path, lines: Iterable[tuple[int, int, int]]) -> None:
    """TREC's form: query, iteration (always 0), item, grade."""
    text = "".join(f"{query}\t0\t{item}\t{grade}\n" for query, item, grade in lines)
    path.write_text(text, encoding="utf-8")


def few_a_class(labels: np.ndarray, count: int, draws: int) -> list[Split]:
    """`count` training rows of every class, the others for test; draw i by the seed i."""
    splits = []
    for seed in range(draws):
        random = np.random.default_rng(seed)
        train = np.concatenate(
            [random.permutation(np.flatnonzero(labels == label))[:count] for label in np.unique(labels)]
        )
        test = np.setdiff1d(np.arange(len(labels)), train)
        splits.append({"train": sorted(train.tolist()), "test": test.tolist()})
    return splits
