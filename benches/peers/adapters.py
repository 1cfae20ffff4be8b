"""Adapters of text embeddings beside this library's: five draws of queries, one judge for all.

    python benches/peers/adapters.py METRA docs/results/data/adapters.json

METRA is the command. Run from the repository root by an interpreter that has what
`adapters.requirements.txt` names; `METRA_DATA` names the folder of SciFact and Cranfield. Every method is given the same
queries of a draw, a fifth of which it may choose by (its rate, its ridge, its strength); `metra train` draws that fifth
itself, and its CPU seconds are with choosing, those of the others without. Rankings are judged by `metra eval --run`, nDCG@10 over the test queries of the draw.

- Linear adapter: LlamaIndex's layer, a map of the queries that starts at the identity, trained as its fine-tuning package
  did, which is no longer kept up and does not import: multiple negatives ranking loss (cosine times 20), batches of 10,
  AdamW, a rate that falls to 0.
- NUDGE-M and NUDGE-N: the authors' package, which moves the vectors of items.
- Ridge regression: of a query to the mean of its relevant items.
- `adapter` and `slr-adapter`: `metra train`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pyarrow.parquet as pq

SEEDS = (1, 2, 3, 4, 5)
SETS = ("scifact", "cranfield")
FIRST = 100
Qrels = dict[str, dict[str, float]]


class Collection:
    """Queries, items and judgements."""

    def __init__(self, name: str) -> None:
        if "METRA_DATA" not in os.environ:
            raise SystemExit(f"{name} needs the environment variable METRA_DATA")
        folder = Path(os.environ["METRA_DATA"])
        self.name = name
        self.files = {
            "queries": folder / f"{name}_minilm_queries.parquet",
            "items": folder / f"{name}_minilm_docs.parquet",
            "qrels": folder / f"{name}_qrels.tsv",
        }
        self.query_ids, self.queries = rows(self.files["queries"])
        self.item_ids, self.items = rows(self.files["items"])
        self.qrels: Qrels = {}
        places = {item: place for place, item in enumerate(self.item_ids)}
        for line in self.files["qrels"].read_text().splitlines():
            query, _, item, grade = line.split()
            if float(grade) > 0 and item in places:
                self.qrels.setdefault(query, {})[item] = float(grade)
        self.answers = {query: [places[item] for item in found] for query, found in self.qrels.items()}
        self.places = {query: place for place, query in enumerate(self.query_ids)}

    def draw(self, seed: int) -> tuple[list[str], list[str], list[str]]:
        """Queries to learn from, to choose by and to judge: 58, 15 and 27 % of them."""
        known = sorted(self.qrels)
        order = np.random.default_rng(seed).permutation(len(known))
        drawn = [known[place] for place in order]
        test, rest = drawn[: round(0.27 * len(drawn))], drawn[round(0.27 * len(drawn)) :]
        share = round(0.2 * len(rest))
        return rest[share:], rest[:share], test

    def vectors(self, queries: list[str]) -> np.ndarray:
        return self.queries[[self.places[query] for query in queries]]


def rows(path: Path) -> tuple[list[str], np.ndarray]:
    table = pq.read_table(path)
    vectors = np.stack(table["vector"].to_numpy()).astype(np.float32)
    return [str(label) for label in table["label"].to_pylist()], vectors


def unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12)


def judge(metra: str, data: Collection, queries: list[str], scores: np.ndarray) -> float:
    """Mean nDCG@10, by the command."""
    with tempfile.TemporaryDirectory() as folder:
        run, qrels = Path(folder) / "run.trec", Path(folder) / "qrels.tsv"
        first = np.argsort(-scores, axis=1, kind="stable")[:, :FIRST]
        with run.open("w") as out:
            for query, row, places in zip(queries, scores, first):
                for rank, place in enumerate(places):
                    out.write(f"{query} Q0 {data.item_ids[place]} {rank + 1} {row[place]:.9g} run\n")
        qrels.write_text("".join(
            f"{query} 0 {item} {grade:g}\n" for query in queries for item, grade in data.qrels[query].items()
        ))
        out = subprocess.check_output(
            [metra, "eval", "--run", run, "--qrels", qrels, "--measures", "ndcg@10", "--json"]
        )
    return float(json.loads(out)["measures"]["ndcg@10"])


# A setting, a map of queries and the vectors of items, for each setting that was tried.
Tried = list[tuple[Any, Callable[[np.ndarray], np.ndarray], np.ndarray]]
Learner = Callable[[Collection, list[str], list[str]], Tried]


def cosine(data: Collection, train: list[str], validation: list[str]) -> Tried:
    return [(None, unit, unit(data.items))]


def ridge_regression(data: Collection, train: list[str], validation: list[str]) -> Tried:
    queries, items = unit(data.vectors(train)), unit(data.items)
    targets = np.stack([items[data.answers[query]].mean(axis=0) for query in train])
    covariance, cross = queries.T @ queries, queries.T @ targets
    spread = np.trace(covariance) / len(covariance)
    tried = []
    for ridge in (0.1, 1.0, 10.0, 100.0):
        # Towards the identity, so that without evidence nothing changes.
        strength = ridge * spread * np.eye(len(covariance))
        matrix = np.linalg.solve(covariance + strength, cross + strength)
        tried.append((ridge, lambda rows, m=matrix: unit(unit(rows) @ m), items))
    return tried


def linear_adapter(data: Collection, train: list[str], validation: list[str]) -> Tried:
    import torch
    from llama_index.embeddings.adapter.utils import LinearLayer

    pairs = [(query, item) for query in train for item in data.answers[query]]
    queries = torch.from_numpy(data.vectors([query for query, _ in pairs]))
    items = torch.nn.functional.normalize(torch.from_numpy(data.items[[item for _, item in pairs]]))
    tried: Tried = []
    for rate, epochs in ((2e-5, 4), (1e-4, 10), (1e-3, 4), (1e-3, 10)):
        torch.manual_seed(1)
        layer = LinearLayer(data.items.shape[1], data.items.shape[1])
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(queries, items), batch_size=10, shuffle=True
        )
        steps = epochs * len(loader)
        adam = torch.optim.AdamW(layer.parameters(), lr=rate)
        falling = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / steps)
        for _ in range(epochs):
            for asked, relevant in loader:
                scores = 20 * torch.nn.functional.normalize(layer(asked)) @ relevant.T
                loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(asked)))
                adam.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(layer.parameters(), 1)
                adam.step()
                falling.step()

        def mapped(rows: np.ndarray, layer: Any = layer) -> np.ndarray:
            with torch.no_grad():
                return unit(layer(torch.from_numpy(rows)).numpy())

        tried.append(((rate, epochs), mapped, unit(data.items)))
    return tried


def nudge(kind: str) -> Learner:
    def learn(data: Collection, train: list[str], validation: list[str]) -> Tried:
        import torch
        from nudge import NUDGEM, NUDGEN

        made = {"NUDGE-M": NUDGEM, "NUDGE-N": NUDGEN}[kind](torch.device("cpu"))
        sets = [
            {"q_embs": unit(data.vectors(part)), "q_ans_indx": [data.answers[query] for query in part]}
            for part in (train, validation)
        ]
        # It chooses its strength on the validation queries itself.
        return [(None, unit, made.finetune_embeddings(unit(data.items), *sets))]

    return learn


def of_metra(metra: str, method: str, arguments: list[str]) -> Learner:
    def learn(data: Collection, train: list[str], validation: list[str]) -> Tried:
        holder = tempfile.TemporaryDirectory()
        folder = Path(holder.name)
        # Training and validation queries are one part to it, in which it holds some out itself.
        known, others = train + validation, sorted(set(data.qrels) - set(train) - set(validation))
        splits = {"by": "query", "splits": [{"train": known, "test": others}]}
        (folder / "splits.json").write_text(json.dumps(splits))
        files = [word for name, path in data.files.items() for word in (f"--{name}", str(path))]
        model = folder / "model.safetensors"
        subprocess.run(
            [metra, "train", *files, "--id", "label", "--splits", str(folder / "splits.json"), "--split", "0",
             "--method", method, "--holdout", "queries", "--criterion", "ndcg@10", "--measures", "ndcg@10",
             *arguments, "--threads", "1", "-o", str(model)],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

        def embedded(side: str, path: Path) -> np.ndarray:
            out = folder / f"{side}.npy"
            subprocess.run([metra, "embed", str(model), str(path), "--side", side, "-o", str(out)],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return unit(np.load(out))

        places = embedded("query", data.files["queries"])
        table = {row.tobytes(): place for row, place in zip(data.queries, places)}
        mapped = lambda rows: np.stack([table[row.tobytes()] for row in rows])  # noqa: E731
        return [(None, mapped, embedded("item", data.files["items"]))]

    return learn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metra", help="the command")
    parser.add_argument("output", type=Path, help="file of results")
    arguments = parser.parse_args()
    metra = arguments.metra
    methods: dict[str, tuple[str, Learner]] = {
        "cosine": ("as they are", cosine),
        "ridge regression": ("numpy", ridge_regression),
        "linear adapter": ("LlamaIndex", linear_adapter),
        "NUDGE-M": ("nudge-ft", nudge("NUDGE-M")),
        "NUDGE-N": ("nudge-ft", nudge("NUDGE-N")),
        "adapter": ("metra", of_metra(metra, "adapter", ["--tune", "lambda=0.01,0.02,0.05,0.1"])),
        "slr-adapter": ("metra", of_metra(metra, "slr-adapter",
                                          ["--prepare", "l2", "--tune", "ridge=0.1,0.3,1,3"])),
    }
    found: dict[str, Any] = {
        "versions": {name: version(name) for name in
                     ("llama-index-embeddings-adapter", "nudge-ft", "torch", "numpy")},
        "seeds": len(SEEDS),
        "sets": {},
    }
    for name in SETS:
        data = Collection(name)
        lines: dict[str, dict[str, Any]] = {
            method: {"library": library, "ndcg@10": [], "unseen": [], "cpu": [], "chosen": []}
            for method, (library, _) in methods.items()
        }
        for seed in SEEDS:
            train, validation, test = data.draw(seed)
            seen = {item for query in train + validation for item in data.answers[query]}
            unseen = [query for query in test if not seen & set(data.answers[query])]
            for method, (_, learner) in methods.items():
                began = os.times()
                with contextlib.redirect_stdout(io.StringIO()):
                    tried = learner(data, train, validation)
                ended = os.times()
                spent = sum(ended[:4]) - sum(began[:4])

                def quality(queries: list[str], one: Any) -> float:
                    _, mapped, items = one
                    return judge(metra, data, queries, mapped(data.vectors(queries)) @ items.T)

                best = tried[0] if len(tried) == 1 else max(tried, key=lambda one: quality(validation, one))
                line = lines[method]
                line["ndcg@10"].append(quality(test, best))
                line["unseen"].append(quality(unseen, best) if unseen else None)
                line["cpu"].append(spent)
                line["chosen"].append(best[0])
                print(name, seed, method, line["ndcg@10"][-1], line["unseen"][-1], round(spent, 2), file=sys.stderr)
        found["sets"][name] = {"queries": len(data.qrels), "items": len(data.item_ids), "lines": lines}
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
