"""Lexical and dense rankings added up: learned weights against equal ones, reciprocal ranks and each ranking alone.

    python benches/fusion.py METRA docs/results/data/fusion.json

METRA is the command. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of
SciFact and Cranfield. BM25 (bm25s, its defaults, English stop words) ranks title and text; MiniLM's vectors are the data
set's, WordLlama's (256 dimensions) are computed here with the weights of its wheel; both are compared by cosine. A ranking has 1,000
documents of every query. `metra fuse` deals the judged queries into five folds, three times with another seed.
`cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pyarrow.parquet as pq
from text_vectors import answer, arguments, measured_with, small_model, texts_of, vectors_of, write_record

SETS = ("scifact", "cranfield")
SUMS = (("minilm", "bm25"), ("minilm", "wordllama"), ("minilm", "wordllama", "bm25"))
SEEDS = (1, 2, 3)
DEPTH = 1000


def unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def lexical(queries: list[str], items: list[str]) -> np.ndarray:
    """BM25 of every item for every query."""
    index = bm25s.BM25()
    index.index(bm25s.tokenize(items, stopwords="en", show_progress=False), show_progress=False)
    words = bm25s.tokenize(queries, stopwords="en", return_ids=False, show_progress=False)
    return np.stack([index.get_scores(query) if query else np.zeros(len(items)) for query in words])


def write_run(path: Path, scores: np.ndarray, queries: list[str], items: list[str], least: float) -> None:
    """The best items of every query with a score above `least`, as a TREC run."""
    with path.open("w") as run:
        for query, row in zip(queries, scores):
            best = np.argsort(-row, kind="stable")[:DEPTH]
            for rank, item in enumerate(best, 1):
                if row[item] > least:
                    run.write(f"{query} Q0 {items[item]} {rank} {row[item]:.9g} {path.stem}\n")


def runs_of(data: Path, name: str, folder: Path) -> Path:
    """The runs of a set, and its judgements."""
    queries, items = (pq.read_table(data / f"{name}_minilm_{part}.parquet") for part in ("queries", "docs"))
    ids = [[str(label) for label in table["label"].to_pylist()] for table in (queries, items)]
    texts = [texts_of(table) for table in (queries, items)]
    folder.mkdir()
    write_run(folder / "bm25.run", lexical(*texts), *ids, 0.0)
    llama = small_model()
    vectors = {
        "minilm": [vectors_of(table) for table in (queries, items)],
        "wordllama": [llama.embed(part) for part in texts],
    }
    for model, (asking, asked) in vectors.items():
        write_run(folder / f"{model}.run", unit(asking) @ unit(asked).T, *ids, -np.inf)
    return data / f"{name}_qrels.tsv"


def gains(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each line that learned weights are compared with: the difference and its interval."""
    return {row["measure"]: {key: round(row[key], 6) for key in ("difference", "low", "high")} for row in rows}


def summary(name: str, parts: tuple[str, ...], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, intervals of the first."""
    first = found[0]
    means = {
        line["name"]: round(float(np.mean([one["lines"][place]["measures"]["ndcg@10"] for one in found])), 6)
        for place, line in enumerate(first["lines"])
    }
    return {
        "name": f"{name} {' + '.join(parts)}",
        "queries": first["queries"],
        "ndcg@10": means,
        "scale": first["scale"],
        "weights": {part: round(weight, 6) for part, weight in first["weights"].items()},
        "gains": gains(first["gains"]),
        "new_items": {
            "queries": first["gains_on_new_items"][0]["queries"],
            "gains": gains(first["gains_on_new_items"]),
        },
        "advice": [one["advice"] for one in found],
    }


def main() -> None:
    metra, data, output = arguments(__doc__)
    records = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in SETS:
            folder = Path(scratch) / name
            qrels = runs_of(data, name, folder)
            for parts in SUMS:
                found = []
                for seed in SEEDS:
                    runs = [folder / f"{part}.run" for part in parts]
                    found.append(answer(metra, "fuse", *runs, "--qrels", qrels, "--seed", seed))
                records.append(summary(name, parts, found))
                print(records[-1]["name"], records[-1]["ndcg@10"], flush=True)
    record = {**measured_with(metra, "bm25s", "wordllama"), "results": records}
    write_record(output, record)


if __name__ == "__main__":
    main()
