"""Training again from an earlier model when classes were added: CLINC150 with 15 of its 150 intents new.

    python benches/warm_start.py METRA docs/results/data/warm_start.json

METRA is the command. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of the data.
The earlier model learns from the training rows of 135 intents, all others from those of all 150, or of the 15 new ones alone. They are
compared with a model that was trained anew with all steps, on the validation rows, of which none has learned: each asks for all others.
`cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from text_vectors import answer, arguments, measured_with, write_record

METHODS = ("warca", "supcon")
SEEDS = 5
NEW_INTENTS = 15
STEPS = 1000
FEWER = (333, 100, 33)
# About a third of the methods' defaults, settled on the first three draws, whose figures are among those shown.
LOWER_RATE = {"warca": "rate=0.003", "supcon": "rate=0.001"}
NEAR = ("regulariser=identity", "lambda=0.1")


class Study:
    """One method on one draw of the new intents."""

    def __init__(self, metra: str, table: pa.Table, folder: Path, method: str, seed: int) -> None:
        # Sentences out of scope are in splits of their own.
        intents = pc.unique(table.filter(pc.equal(table["split"], "train"))["label"]).to_pylist()
        new = set(np.random.default_rng(seed).choice(sorted(intents), NEW_INTENTS, replace=False).tolist())
        kinds = ["new" if label in new else "old" for label in table["label"].to_pylist()]
        table = table.append_column("kind", pa.array(kinds))
        self.metra, self.folder, self.method, self.seed = metra, folder, method, seed
        learned = table.filter(pc.equal(table["split"], "train"))
        self.rows = {
            "all": self.written("all", learned),
            **{kind: self.written(kind, learned.filter(pc.equal(learned["kind"], kind))) for kind in ("old", "new")},
        }
        self.validation = self.written("validation", table.filter(pc.equal(table["split"], "val")))

    def written(self, name: str, table: pa.Table) -> Path:
        path = self.folder / f"{name}.parquet"
        pq.write_table(table, path)
        return path

    def trained(self, name: str, rows: str, steps: int, settings: tuple[str, ...] = (), start: Path | None = None) -> Path:
        model = self.folder / f"{name}.safetensors"
        options = [option for setting in (f"steps={steps}", *settings) for option in ("--set", setting)]
        options += ["--holdout", "none", "--score", "cosine", "--seed", self.seed]
        if start is None:
            options += ["--method", self.method]
        else:
            options += ["--from", start]
        answer(self.metra, "train", self.rows[rows], "--label", "label", *options, "-o", model)
        return model

    def compared(self, base: Path, candidate: Path) -> dict[str, Any]:
        """The gain in mAP over another model, on all validation rows and on those of old and of new intents."""
        models = ("--base", base, "--candidate", candidate)
        found = answer(self.metra, "gate", *models, "--data", self.validation, "--label", "label", "--slice", "kind")
        slices = {part["value"]: part for part in found["slices"] if part["by"] == "kind"}
        return {"all": found["gain"], "old": slices["old"], "new": slices["new"]}

    def found(self) -> dict[str, dict[str, Any]]:
        earlier = self.trained("earlier", "old", STEPS)
        anew = self.trained("anew", "all", STEPS)
        candidates = {"the earlier model as it is": earlier}
        for steps in FEWER:
            candidates[f"anew, {steps} steps"] = self.trained(f"anew{steps}", "all", steps)
        for steps in FEWER:
            candidates[f"from the earlier model, {steps} steps"] = self.trained(f"warm{steps}", "all", steps, (), earlier)
        lower = (LOWER_RATE[self.method],)
        candidates[f"the same, {FEWER[0]} steps, a third of the rate"] = self.trained("slow", "all", FEWER[0], lower, earlier)
        steps = FEWER[1]
        candidates[f"from it on new intents alone, {steps} steps"] = self.trained("new", "new", steps, (), earlier)
        candidates["the same, held near it"] = self.trained("near", "new", steps, NEAR, earlier)
        return {name: self.compared(anew, model) for name, model in candidates.items()}


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the draws, and on how many of them the interval lies above or below 0."""

    def part(name: str) -> float:
        return round(mean(draw[name]["learned"] for draw in found), 6)

    gains = [draw["all"] for draw in found]
    return {
        "map": part("all"),
        "old": part("old"),
        "new": part("new"),
        "gain": round(mean(gain["difference"] for gain in gains), 6),
        "gains": [round(gain["difference"], 6) for gain in gains],
        "better": sum(gain["low"] > 0 for gain in gains),
        "worse": sum(gain["high"] < 0 for gain in gains),
    }


def main() -> None:
    metra, data, output = arguments(__doc__)
    table = pq.read_table(data / "clinc150_minilm.parquet")
    results = []
    for method in METHODS:
        draws = []
        for seed in range(1, SEEDS + 1):
            with tempfile.TemporaryDirectory() as scratch:
                draws.append(Study(metra, table, Path(scratch), method, seed).found())
        anew = [next(iter(draw.values()))["all"]["base"] for draw in draws]
        lines = [{"name": name, **summary([draw[name] for draw in draws])} for name in draws[0]]
        results.append({"name": method, "steps": STEPS, "anew": round(mean(anew), 6), "lines": lines})
        print(json.dumps(results[-1], indent=1), flush=True)
    record = {**measured_with(metra, "numpy"), "draws": SEEDS, "results": results}
    write_record(output, record)


if __name__ == "__main__":
    main()
