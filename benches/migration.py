"""Changing the embedding model: what `metra migrate` advises from a sample, against what the whole collection says.

    python benches/migration.py METRA docs/results/data/migration.json

METRA is the command. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of the data.
MiniLM's vectors are the data sets', WordLlama's (256 dimensions) are computed here with the weights of its wheel. The sample is a quarter
of the items, drawn once.
`cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from text_vectors import answer, arguments, measured_with, small_model, texts_of, vectors_of, write_record

SAMPLE = 0.25


class Pair(NamedTuple):
    """Files of the same things in two spaces, by the space's name, and the options that say what is right."""

    name: str
    items: dict[str, Path]
    queries: dict[str, Path]
    options: list[str]


def write(path: Path, vectors: np.ndarray, **columns: list[str]) -> Path:
    rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), vectors.shape[1])
    pq.write_table(pa.table({**columns, "vector": rows}), path)
    return path


def text_pairs(data: Path, folder: Path) -> list[Pair]:
    llama = small_model()
    pairs = []
    for name in ("scifact", "cranfield"):
        files: dict[str, dict[str, Path]] = {}
        for part in ("queries", "docs"):
            table = pq.read_table(data / f"{name}_minilm_{part}.parquet")
            ids = [str(label) for label in table["label"].to_pylist()]
            spaces = {"minilm": vectors_of(table), "wordllama": llama.embed(texts_of(table))}
            # Documents without a text have no direction.
            kept = np.flatnonzero(np.all([vectors.any(axis=1) for vectors in spaces.values()], axis=0))
            files[part] = {
                space: write(folder / f"{name}_{space}_{part}.parquet", vectors[kept], id=[ids[row] for row in kept])
                for space, vectors in spaces.items()
            }
        options = ["--id", "id", "--qrels", str(data / f"{name}_qrels.tsv")]
        pairs.append(Pair(name, files["docs"], files["queries"], options))
    table = pq.read_table(data / "clinc150_minilm.parquet")
    labels = np.array([str(label) for label in table["label"].to_pylist()])
    # Sentences out of scope are no class, and in splits of their own.
    kept = np.flatnonzero([not split.startswith("oos") for split in table["split"].to_pylist()])
    all_texts = texts_of(table)
    texts = [all_texts[row] for row in kept]
    spaces = {"minilm": vectors_of(table)[kept], "wordllama": llama.embed(texts)}
    columns = {"id": [str(row) for row in kept], "label": labels[kept].tolist()}
    files_of = {
        space: write(folder / f"clinc150_{space}.parquet", vectors, **columns) for space, vectors in spaces.items()
    }
    pairs.append(Pair("clinc150", files_of, {}, ["--id", "id", "--label", "label"]))
    return pairs


def sampled(path: Path, folder: Path, keep: np.ndarray) -> Path:
    """The file with these rows alone."""
    target = folder / path.name
    pq.write_table(pq.read_table(path).take(pa.array(keep)), target)
    return target


def migrate(metra: str, pair: Pair, old: str, new: str, items: dict[str, Path]) -> dict[str, Any]:
    queries = ["--old-queries", pair.queries[old], "--new-queries", pair.queries[new]] if pair.queries else []
    return answer(metra, "migrate", items[old], items[new], *pair.options, *queries)


def summary(found: dict[str, Any]) -> dict[str, Any]:
    criterion = "ndcg@10" if "ndcg@10" in found["lines"][0]["measures"] else "map"
    return {
        "items": found["items"],
        "queries": found["queries"],
        "measure": criterion,
        "means": {line["name"]: round(line["measures"][criterion], 6) for line in found["lines"]},
        "gains": {
            row["measure"]: {key: round(row[key], 6) for key in ("difference", "low", "high")} for row in found["gains"]
        },
        "choice": found["choice"],
        "advice": found["advice"],
    }


def main() -> None:
    metra, data, output = arguments(__doc__)
    records = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "sample").mkdir()
        for pair in text_pairs(data, folder):
            first, second = pair.items
            rows = pq.read_metadata(pair.items[first]).num_rows
            draw = np.random.default_rng(1)
            keep = np.sort(draw.choice(rows, round(rows * SAMPLE), replace=False))
            few = {space: sampled(path, folder / "sample", keep) for space, path in pair.items.items()}
            for old, new in ((first, second), (second, first)):
                whole = summary(migrate(metra, pair, old, new, pair.items))
                part = summary(migrate(metra, pair, old, new, few))
                records.append({"name": f"{pair.name} {old} to {new}", "whole": whole, "sample": part})
                print(records[-1]["name"], whole["means"], whole["choice"], part["choice"], flush=True)
    record = {**measured_with(metra, "wordllama"), "results": records}
    write_record(output, record)


if __name__ == "__main__":
    main()
