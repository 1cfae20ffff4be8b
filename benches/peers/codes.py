"""FAISS's own product codes on CLINC150: mAP and P@1 of test queries against the training part, items as codes.

    python benches/peers/codes.py DATA_FOLDER [OUTPUT.json]

Needs faiss-cpu, numpy and pyarrow. Vectors are divided by their length, queries stay floats, and items are compared as
their codes stand for them, as in `metra compress`.
"""

import json
import sys

import faiss
import numpy as np
import pyarrow.parquet as parquet

FACTORIES = ["PQ8", "PQ16", "PQ32", "OPQ8,PQ8", "OPQ16,PQ16", "OPQ32,PQ32"]


def load(folder):
    table = parquet.read_table(f"{folder}/clinc150_minilm.parquet")
    vectors = np.stack(table["vector"].to_numpy(zero_copy_only=False)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    split, labels = np.array(table["split"].to_pylist()), table["label"].to_numpy()
    train, test = split == "train", split == "test"
    return vectors[train], labels[train], vectors[test], labels[test]


def measures(queries, query_labels, items, item_labels):
    """Mean average precision and precision at 1 by cosine."""
    items = items / np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1e-30)
    precisions, firsts = [], []
    for query, label in zip(queries, query_labels):
        order = np.argsort(-(items @ query), kind="stable")
        relevant = item_labels[order] == label
        ranks = np.flatnonzero(relevant) + 1
        precisions.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
        firsts.append(relevant[0])
    return float(np.mean(precisions)), float(np.mean(firsts))


def main():
    items, item_labels, queries, query_labels = load(sys.argv[1])
    found = {"faiss": faiss.__version__, "base": measures(queries, query_labels, items, item_labels), "codes": []}
    for factory in FACTORIES:
        index = faiss.index_factory(items.shape[1], factory)
        index.train(items)
        decoded = index.sa_decode(index.sa_encode(items))
        value, first = measures(queries, query_labels, decoded, item_labels)
        found["codes"].append({"factory": factory, "bytes": index.sa_code_size(), "map": value, "p@1": first})
        print(factory, index.sa_code_size(), round(value, 4), round(first, 4), flush=True)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            json.dump(found, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
