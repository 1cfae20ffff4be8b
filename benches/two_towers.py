"""Queries and items that are vectors of two models: what a map for each side reaches, against canonical correlations and a rotation.

    python benches/two_towers.py METRA docs/results/data/two_towers.json [SET ...]

METRA is the command. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of the data.
SET is clinc150, scifact or viper; others in the file stay as they are. Queries of the texts are WordLlama's (256 dimensions, computed here
with the weights of its wheel), items are MiniLM's (384, the data sets' own). Of VIPeR the stripes of camera a (2,580) ask for the published
features of camera b (76). Queries are dealt into five folds; settings are chosen on a fifth of the others.
`cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from text_vectors import answer, arguments, measured_with, small_model, texts_of, vectors_of, write_record

METHODS = ("procrustes", "cca", "slr", "supcon", "warca")
FOLDS = 5


class TwoTowers(NamedTuple):
    """Files of queries and items with judgements, and how they are compared."""

    queries: Path
    items: Path
    qrels: Path
    options: tuple[str, ...]
    measures: tuple[str, ...]
    # Settings per method and fold, and methods beside the usual ones: the small set has time for more.
    trials: int
    more_methods: tuple[str, ...]
    # The same task with vectors of one model on both sides, as they are, by the model's name.
    alone: dict[str, tuple[Path, Path]]


def write(path: Path, ids: list[str], vectors: np.ndarray) -> Path:
    rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), vectors.shape[1])
    pq.write_table(pa.table({"id": ids, "vector": rows}), path)
    return path


def texts(folder: Path, tables: tuple[Any, Any], ids: tuple[list[str], list[str]], qrels: Path, measures: tuple[str, ...]) -> TwoTowers:
    llama = small_model()
    files: dict[str, list[Path]] = {"minilm": [], "wordllama": []}
    for side, table, names in zip(("queries", "items"), tables, ids):
        spaces = {"minilm": vectors_of(table), "wordllama": llama.embed(texts_of(table))}
        # A text without words has no direction.
        kept = np.flatnonzero(np.all([vectors.any(axis=1) for vectors in spaces.values()], axis=0))
        for name, vectors in spaces.items():
            files[name].append(write(folder / f"{name}_{side}.parquet", [names[row] for row in kept], vectors[kept]))
    alone = {name: (paths[0], paths[1]) for name, paths in files.items()}
    return TwoTowers(files["wordllama"][0], files["minilm"][1], qrels, (), measures, 2, (), alone)


def clinc150(data: Path, folder: Path) -> TwoTowers:
    """Test sentences ask for training sentences of their intent."""
    table = pq.read_table(data / "clinc150_minilm.parquet")
    queries, items = (table.filter(pc.equal(table["split"], split)) for split in ("test", "train"))
    intents = [part["label"].to_pylist() for part in (queries, items)]
    ids = ([f"q{row}" for row in range(queries.num_rows)], [f"d{row}" for row in range(items.num_rows)])
    of_intent: dict[int, list[str]] = {}
    for name, intent in zip(ids[1], intents[1]):
        of_intent.setdefault(intent, []).append(name)
    qrels = folder / "qrels.tsv"
    with qrels.open("w", encoding="utf-8") as file:
        for name, intent in zip(ids[0], intents[0]):
            file.writelines(f"{name} 0 {item} 1\n" for item in of_intent[intent])
    return texts(folder, (queries, items), ids, qrels, ("ndcg@10", "map", "p@1"))


def scifact(data: Path, folder: Path) -> TwoTowers:
    tables = tuple(pq.read_table(data / f"scifact_minilm_{part}.parquet") for part in ("queries", "docs"))
    ids = tuple([str(label) for label in table["label"].to_pylist()] for table in tables)
    measures = ("ndcg@10", "mrr", "r@10")
    towers = texts(folder, (tables[0], tables[1]), (ids[0], ids[1]), data / "scifact_qrels.tsv", measures)
    return towers._replace(trials=4, more_methods=("multi-similarity",))


def viper(data: Path, folder: Path) -> TwoTowers:
    """A person in camera a, by stripes, asks for the same person in camera b, by published features."""
    sides = {}
    for camera, features in ((0, "viper_stripes2580"), (1, "viper_mdf76")):
        table = pq.read_table(data / f"{features}.parquet")
        table = table.filter(pc.equal(table["camera"], camera))
        sides[camera] = write(folder / f"{features}.parquet", [str(label) for label in table["label"].to_pylist()], vectors_of(table))
    people = pq.read_table(sides[0])["id"].to_pylist()
    qrels = folder / "qrels.tsv"
    qrels.write_text("".join(f"{person} 0 {person} 1\n" for person in people), encoding="utf-8")
    # No person of a test fold is in training, so that all of its items are new.
    options = ("--prepare", "pca:70", "--criterion", "mrr", "--new-items", "all")
    return TwoTowers(sides[0], sides[1], qrels, options, ("mrr", "cmc@1", "cmc@10"), 2, (), {})


SETS = {"clinc150": clinc150, "scifact": scifact, "viper": viper}


def compared(metra: str, towers: TwoTowers, folder: Path) -> dict[str, Any]:
    sides = ("--queries", towers.queries, "--items", towers.items, "--qrels", towers.qrels, "--id", "id")
    options = (*towers.options, "--measures", ",".join(towers.measures), "--folds", FOLDS, "--trials", towers.trials, "--no-cost")
    methods = ("--methods", ",".join((*METHODS, *towers.more_methods)), "--base", "procrustes")
    found = answer(metra, "compare", *sides, *options, *methods, "-o", folder / "comparison")["results"]
    lines = []
    for line in found["lines"]:
        against = {gain["measure"]: gain for gain in line["against_base"]}
        lines.append(
            {
                "name": line["name"],
                "measures": {one["measure"]: round(one["mean"], 6) for one in line["measures"]},
                "gains": {
                    name: {key: round(gain[key], 6) for key in ("difference", "low", "high")} for name, gain in against.items()
                },
                "parts": {part["part"]: {"queries": part["queries"], "mean": round(part["mean"], 6)} for part in line["parts"]},
            }
        )
    alone = {}
    for name, (queries, items) in towers.alone.items():
        sides = ("--queries", queries, "--items", items, "--qrels", towers.qrels, "--id", "id")
        alone[name] = answer(metra, "eval", "cosine", *sides, "--measures", ",".join(towers.measures))["measures"]
    shapes = {side: list(vectors_of(pq.read_table(path)).shape) for side, path in (("queries", towers.queries), ("items", towers.items))}
    tried = {"folds": FOLDS, "trials": towers.trials}
    return {**shapes, **tried, "criterion": found["protocol"]["criterion"], "measures": list(towers.measures), "lines": lines, "alone": alone}


def main() -> None:
    sets = sys.argv[3:] or list(SETS)
    del sys.argv[3:]
    metra, data, output = arguments(__doc__)
    known = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {"sets": {}}
    results = known["sets"]
    for name in sets:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            results[name] = {**measured_with(metra, "numpy", "wordllama"), **compared(metra, SETS[name](data, folder), folder)}
            print(json.dumps(results[name], indent=1), flush=True)
        write_record(output, {"sets": {name: results[name] for name in SETS if name in results}})


if __name__ == "__main__":
    main()
