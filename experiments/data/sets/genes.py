"""Genes of yeast: 2,417 rows of 103 measurements, each with several of 14 functions, from a package of R."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from .request import Request
from .sources import Source, run
from .tables import write_splits, write_table

MLR = Source(
    "debian",
    "r-cran-mlr",
    "2.19.1+dfsg-1",
    "59aa58ce5e4e74244a2c2eb28b25757a7aa1707de02e9442d49f5927e05a1916",
)
SEED, FOLDS = 2001, 5
# Packages of R keep their data in one store of serialized objects, of which an environment is one: only R reads that.
STORE = "usr/lib/R/site-library/mlr/data"
PRINT = 'invisible(lazyLoad(file.path(commandArgs(TRUE), "Rdata"))); write.csv(yeast.task$env$data, row.names = FALSE)'


def build(request: Request) -> None:
    """All columns as they are; the functions of a gene as a list of numbers from 1."""
    store = MLR.path(request.sources, STORE)
    text = run(["Rscript", "--vanilla", "-e", PRINT, str(store)])
    table = csv.read_csv(io.BytesIO(text.encode()))
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    vectors = np.stack([column for name, column in columns.items() if name.startswith("x")], axis=1)
    has = np.stack([column for name, column in columns.items() if name.startswith("label")], axis=1)
    functions = pa.array([(np.flatnonzero(row) + 1).tolist() for row in has], pa.list_(pa.int32()))
    write_table(request.output / "yeast.parquet", vectors.astype(np.float32), functions)
    fold = np.random.default_rng(SEED).permutation(len(vectors)) % FOLDS
    splits = [
        {"train": np.flatnonzero(fold != number).tolist(), "test": np.flatnonzero(fold == number).tolist()}
        for number in range(FOLDS)
    ]
    write_splits(request.output / "yeast.splits.json", "row", "five folds of random rows", splits)
