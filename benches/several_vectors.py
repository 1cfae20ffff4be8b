"""Rows of several vectors: weights learned from judgements, against each vector alone, one vector of the whole text, and equal weights.

    python benches/several_vectors.py METRA docs/results/data/several_vectors.json

METRA is the command. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of the data.
Titles and texts of SciFact's abstracts are embedded apart by WordLlama (256 dimensions, with the weights of its wheel); the two models are
MiniLM (384, the data set's own) and WordLlama, of title and text together; of VIPeR the stripes and the published features of one image are
two vectors. Queries are dealt into five folds; `cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from text_vectors import answer, arguments, measured_with, small_model, texts_of, vectors_of, write_record

FOLDS = 5
# The vectors by the cosine of their concatenation, each of length 1: equal weights.
EQUAL = "cosine after l2-each"
LEARNED = "vector-weights"


class Task(NamedTuple):
    """Files with a column a vector, and how they are compared."""

    queries: Path
    items: Path
    qrels: Path
    # The vectors of items, and those of queries that ask for them.
    vectors: dict[str, str]
    # One vector that stands for the whole, where there is one.
    whole: str | None
    options: tuple[str, ...]
    measures: tuple[str, ...]


def write(path: Path, ids: list[str], columns: dict[str, np.ndarray]) -> Path:
    def lists(vectors: np.ndarray) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), vectors.shape[1])

    pq.write_table(pa.table({"id": ids, **{name: lists(vectors) for name, vectors in columns.items()}}), path)
    return path


def written(folder: Path, sides: tuple[tuple[list[str], dict[str, np.ndarray]], ...]) -> list[Path]:
    """Files of queries and of items, without rows of zeros alone."""
    paths = []
    for name, (ids, columns) in zip(("queries", "items"), sides):
        kept = np.flatnonzero(np.any([vectors.any(axis=1) for vectors in columns.values()], axis=0))
        part = {column: vectors[kept] for column, vectors in columns.items()}
        paths.append(write(folder / f"{name}.parquet", [ids[row] for row in kept], part))
    return paths


def titles(data: Path, folder: Path) -> Task:
    """Claims ask for abstracts by the vectors of their titles and of their texts."""
    queries, items = (pq.read_table(data / f"scifact_minilm_{part}.parquet") for part in ("queries", "docs"))
    ids = [[str(label) for label in table["label"].to_pylist()] for table in (queries, items)]
    llama = small_model()
    of_items = {name: llama.embed([text or "" for text in items[name].to_pylist()]) for name in ("title", "text")}
    of_items["both"] = llama.embed(texts_of(items))
    sides = ((ids[0], {"claim": llama.embed(texts_of(queries))}), (ids[1], of_items))
    files = written(folder, sides)
    vectors = {"title": "claim", "text": "claim"}
    return Task(files[0], files[1], data / "scifact_qrels.tsv", vectors, "both", (), ("ndcg@10", "mrr", "r@10"))


def models(data: Path, folder: Path) -> Task:
    """Claims ask for abstracts by the vectors of two models."""
    tables = [pq.read_table(data / f"scifact_minilm_{part}.parquet") for part in ("queries", "docs")]
    llama = small_model()
    sides = tuple(
        (
            [str(label) for label in table["label"].to_pylist()],
            {"minilm": vectors_of(table), "wordllama": llama.embed(texts_of(table))},
        )
        for table in tables
    )
    files = written(folder, sides)
    vectors = {"minilm": "minilm", "wordllama": "wordllama"}
    return Task(files[0], files[1], data / "scifact_qrels.tsv", vectors, None, (), ("ndcg@10", "mrr", "r@10"))


def images(data: Path, folder: Path) -> Task:
    """A person in camera a asks for the same person in camera b by two kinds of features."""
    names = {"stripes": "viper_stripes2580", "mdf": "viper_mdf76"}
    tables = {name: pq.read_table(data / f"{file}.parquet") for name, file in names.items()}
    sides = []
    for camera in (0, 1):
        parts = {name: table.filter(pc.equal(table["camera"], camera)).sort_by("label") for name, table in tables.items()}
        ids = [str(label) for label in parts["stripes"]["label"].to_pylist()]
        # Square roots of histograms, as everywhere with stripes.
        columns = {"stripes": np.sqrt(vectors_of(parts["stripes"])), "mdf": vectors_of(parts["mdf"])}
        sides.append((ids, columns))
    files = written(folder, tuple(sides))
    qrels = folder / "qrels.tsv"
    qrels.write_text("".join(f"{person} 0 {person} 1\n" for person in sides[0][0]), encoding="utf-8")
    vectors = {"stripes": "stripes", "mdf": "mdf"}
    options = ("--criterion", "mrr", "--new-items", "all")
    return Task(files[0], files[1], qrels, vectors, None, options, ("mrr", "cmc@1", "cmc@10"))


TASKS = {"scifact, title and text": titles, "scifact, two models": models, "viper, two features": images}


def compared(metra: str, task: Task, folder: Path) -> dict[str, Any]:
    sides = ("--queries", task.queries, "--items", task.items, "--qrels", task.qrels, "--id", "id")
    measures = ("--measures", ",".join(task.measures))
    columns = ("--vector", ",".join(task.vectors), "--query-vector", ",".join(task.vectors.values()))
    methods = ("--methods", LEARNED, "--prepare", "l2-each", "--base", EQUAL)
    options = (*task.options, "--folds", FOLDS, "--no-cost")
    found = answer(metra, "compare", *sides, *columns, *measures, *methods, *options, "-o", folder / "comparison")["results"]
    by_name = {line["name"]: line for line in found["lines"]}
    lines = {}
    alone = {**task.vectors, **({task.whole: next(iter(task.vectors.values()))} if task.whole else {})}
    for item, query in alone.items():
        one = answer(metra, "eval", "cosine", *sides, "--vector", item, "--query-vector", query, *measures)
        lines[f"{item} alone"] = {name: round(one["measures"][name], 6) for name in task.measures}
    for shown, name in (("equal weights", EQUAL), ("learned weights", LEARNED)):
        lines[shown] = {one["measure"]: round(one["mean"], 6) for one in by_name[name]["measures"]}
    criterion = found["protocol"]["criterion"]
    gains = {gain["measure"]: gain for gain in by_name[LEARNED]["against_base"]}
    gain = {key: round(gains[criterion][key], 6) for key in ("difference", "low", "high")}
    model = folder / "model.safetensors"
    learned = ("--method", LEARNED, "--prepare", "l2-each", "--holdout", "none", "-o", model)
    answer(metra, "train", *sides, *columns, *learned)
    facts = answer(metra, "inspect", model)["origin"]["facts"]
    weights = {name: round(facts[f"weight_{number}"], 4) for number, name in enumerate(task.vectors, 1)}
    rows = {name: pq.read_metadata(path).num_rows for name, path in (("queries", task.queries), ("items", task.items))}
    return {**rows, "criterion": criterion, "measures": list(task.measures), "lines": lines, "gain": gain, "weights": weights}


def main() -> None:
    metra, data, output = arguments(__doc__)
    results = {}
    for name, task in TASKS.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            results[name] = compared(metra, task(data, folder), folder)
            print(name, json.dumps(results[name], indent=1), flush=True)
    write_record(output, {**measured_with(metra, "numpy", "wordllama"), "folds": FOLDS, "tasks": results})


if __name__ == "__main__":
    main()
