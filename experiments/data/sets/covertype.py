"""Forest cover types: 15,120 rows of UCI's covertype, 2,160 of each class, from an R file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .request import Request
from .sources import Source
from .tables import write_splits, write_table

FOREST = Source("github", "iandurbach/ml-for-ecology", "d464f6d0b4b2c13c1e7998f022f27f3ded74b2a7")
SEED, FOLDS, CHOSEN = 2014, 5, 10_000


def build(request: Request) -> None:
    """All columns but the row's number, as they are; labels from 0."""
    import pyreadr

    frame = pyreadr.read_r(str(FOREST.path(request.sources, "data/forest.RData")))["forest"]
    vectors = frame.drop(columns=["Id", "Cover_Type"]).to_numpy().astype(np.int16)
    # As many rows as the paper draws, in five folds; the others have none.
    order = np.random.default_rng(SEED).permutation(len(frame))[:CHOSEN]
    fold = np.full(len(frame), -1, dtype=np.int8)
    fold[order] = np.arange(CHOSEN) % FOLDS
    write_table(
        request.output / "covertype15k.parquet", vectors, frame["Cover_Type"].to_numpy() - 1, fold=pa.array(fold)
    )
    splits = [
        {
            "train": np.flatnonzero((fold >= 0) & (fold != number)).tolist(),
            "test": np.flatnonzero(fold == number).tolist(),
        }
        for number in range(FOLDS)
    ]
    note = "five folds of 10,000 random rows (column fold)"
    write_splits(request.output / "covertype15k.splits.json", "row", note, splits)
