"""Several labels per row: CLINC150 with the intent and the domain of every sentence as its two labels, and yeast's genes with their functions.

    python benches/label_sets.py METRA docs/results/data/label_sets.json
    python benches/label_sets.py METRA docs/results/data/label_sets.json YEAST

METRA is the command. The first line measures CLINC150, the second the genes: YEAST is the folder in which
`experiments/data/build.py yeast` has put its files. Each keeps what the file has of the other. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of the data.
Each method learns from the training rows by intents alone, by domains alone and by both. The validation rows choose nothing and are left
alone; the test rows ask for each other, and a sentence of the same intent (and so domain) counts 2, one of the same domain 1.
Of yeast each method learns from the functions of the genes in four of five folds, or from every combination of functions as one class; the
genes of the fifth ask for each other, and one with N functions in common counts N.
`cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from text_vectors import answer, arguments, measured_with, write_record

METHODS = ("warca", "supcon", "multi-similarity", "slr")
SEEDS = 3
LABELS = {"intents": "intent", "domains": "domain", "both": "intent,domain"}
MEASURES = ("ndcg@10", "ndcg@100", "map", "p@1")
TAXONOMY = Path(__file__).parent.parent / "examples" / "taxonomies" / "clinc150.tsv"


def parts(data: Path, folder: Path) -> dict[str, Path]:
    """The training and the test rows with a column of intents and one of domains."""
    table = pq.read_table(data / "clinc150_minilm.parquet")
    lines = TAXONOMY.read_text(encoding="utf-8").splitlines()
    domains = dict(line.split("\t") for line in lines if line and not line.startswith("#"))
    paths = {}
    for name in ("train", "test"):
        part = table.filter(pc.equal(table["split"], name))
        intents = [str(label) for label in part["label"].to_pylist()]
        part = part.append_column("intent", pa.array(intents))
        part = part.append_column("domain", pa.array([domains[intent] for intent in intents]))
        paths[name] = folder / f"{name}.parquet"
        pq.write_table(part, paths[name])
    return paths


def genes(metra: str, source: Path, folder: Path) -> dict[str, Any]:
    """Each method on the five folds of yeast."""
    table = pq.read_table(source / "yeast.parquet")
    sets = ["+".join(map(str, labels)) for labels in table["label"].to_pylist()]
    table = table.append_column("set", pa.array(sets))
    splits = json.loads((source / "yeast.splits.json").read_text(encoding="utf-8"))["splits"]
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for number, split in enumerate(splits):
        rows = {part: folder / f"yeast{number}.{part}.parquet" for part in ("train", "test")}
        for part, path in rows.items():
            pq.write_table(table.take(pa.array(split[part])), path)
        found.setdefault(("", "euclid of the vectors as they are"), []).append(judged(metra, Path("euclid"), rows["test"], "label"))
        for method in METHODS:
            for name, labels in (("functions", "label"), ("combinations as classes", "set")):
                model = folder / "yeast.safetensors"
                options = ["--holdout", "none", "--score", "cosine", "--seed", 1]
                answer(metra, "train", rows["train"], "--label", labels, "--method", method, *options, "-o", model)
                found.setdefault((method, name), []).append(judged(metra, model, rows["test"], "label"))
    lines = [
        {"method": method, "name": name, **{measure: round(mean(f[measure] for f in folds), 6) for measure in MEASURES}}
        for (method, name), folds in found.items()
    ]
    print(json.dumps(lines, indent=1), flush=True)
    return {"rows": table.num_rows, "folds": len(splits), "lines": lines}


def judged(metra: str, model: Path, rows: Path, labels: str) -> dict[str, float]:
    measures = ",".join(MEASURES)
    found = answer(metra, "eval", model, rows, "--label", labels, "--measures", measures)
    return {measure: found["measures"][measure] for measure in MEASURES}


def sentences(metra: str, data: Path, folder: Path) -> dict[str, Any]:
    """Each method on CLINC150."""
    rows = parts(data, folder)
    plain = {"name": "cosine of the vectors as they are", **judged(metra, Path("cosine"), rows["test"], LABELS["both"])}
    results = []
    for method in METHODS:
        lines = []
        for name, labels in LABELS.items():
            found = []
            for seed in range(1, SEEDS + 1):
                model = folder / "model.safetensors"
                options = ["--holdout", "none", "--score", "cosine", "--seed", seed]
                answer(metra, "train", rows["train"], "--label", labels, "--method", method, *options, "-o", model)
                found.append(judged(metra, model, rows["test"], LABELS["both"]))
            lines.append({"name": name, **{measure: round(mean(f[measure] for f in found), 6) for measure in MEASURES}})
        results.append({"name": method, "lines": lines})
        print(json.dumps(results[-1], indent=1), flush=True)
    return {**measured_with(metra, "numpy"), "seeds": SEEDS, "plain": plain, "results": results}


def main() -> None:
    yeast = [Path(folder) for folder in sys.argv[3:4]]
    del sys.argv[3:]
    metra, data, output = arguments(__doc__)
    record = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if yeast:
            record["yeast"] = {**measured_with(metra, "numpy"), **genes(metra, yeast[0], folder)}
        else:
            record.update(sentences(metra, data, folder))
    write_record(output, record)


if __name__ == "__main__":
    main()
