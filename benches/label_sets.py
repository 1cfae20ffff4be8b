"""Several labels per row: CLINC150 with the intent and the domain of every sentence as its two labels.

    python benches/label_sets.py METRA docs/results/data/label_sets.json

METRA is the command. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of the data.
Each method learns from the training rows by intents alone, by domains alone and by both. The validation rows choose nothing and are left
alone; the test rows ask for each other, and a sentence of the same intent (and so domain) counts 2, one of the same domain 1.
`cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import mean

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


def judged(metra: str, model: Path, rows: Path, labels: str) -> dict[str, float]:
    measures = ",".join(MEASURES)
    found = answer(metra, "eval", model, rows, "--label", labels, "--measures", measures)
    return {measure: found["measures"][measure] for measure in MEASURES}


def main() -> None:
    metra, data, output = arguments(__doc__)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows = parts(data, folder)
        plain = {"name": "cosine of the vectors as they are", **judged(metra, Path("cosine"), rows["test"], LABELS["both"])}
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
    record = {**measured_with(metra, "numpy"), "seeds": SEEDS, "plain": plain, "results": results}
    write_record(output, record)


if __name__ == "__main__":
    main()
