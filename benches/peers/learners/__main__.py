"""Learners of this library beside metric-learn, scikit-learn and pytorch-metric-learning.

Digits, MNIST 5,000, CLINC150 and Fashion-MNIST; the same splits, settings chosen on the same validation rows, the
same measures by the same code; one fit at a time, each in a process of its own on one thread. Run
from the repository root by an interpreter that has metra:

    python benches/peers/learners --output target/peers/results.jsonl --data docs/results/data/peers.json
    python benches/peers/learners/page.py

What has been measured is kept in the file of `--output`, line by line, so that a run that was
interrupted goes on. Environments of the peers are made beside it from the files of requirements
here, unless `--peer-python NAME=PATH` gives interpreters that have them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import race
from environments import Environments
from methods import CURRENT, METHODS, inputs, settings

SETS = ("digits", "mnist5000", "clinc150", "fashion_mnist")
SCORES = ("euclid", "cosine")
MEASURES = ["map", "p@1"]


class Results:
    """What has been measured, by key, in a file that grows by a line a result."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                record = json.loads(line)
                self.found[record["key"]] = record

    def forget_stopped(self, prefix: str) -> None:
        """Have a method measured anew if something of it was stopped; new lines replace old ones."""
        mine = [key for key in self.found if key.startswith(prefix + "/")]
        if any(self.found[key].get("stopped") for key in mine):
            for key in mine:
                del self.found[key]

    def once(
        self, key: str, measure: Any, settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The record of a key; measured and kept if there is none yet, or none of these settings."""
        kept = self.found.get(key, {}).get("settings")
        if key not in self.found or (settings is not None and kept != settings):
            record = {"key": key, **measure()}
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            self.found[key] = record
            print(json.dumps(record), file=sys.stderr)
        return self.found[key]


class Bench:
    """One set: its files, its trials and its final fits."""

    def __init__(self, name: str, work: Path, results: Results, environments: Environments,
                 limits: dict[str, float], seed: int = 1) -> None:
        self.name, self.work, self.results, self.seed = name, work, results, seed
        self.files = f"{name}.{seed}"
        self.environments, self.limits = environments, limits

    def prepare(self) -> dict[str, Any]:
        """Write the rows of the set, and measure the product that times are to be read beside."""

        def measure() -> dict[str, Any]:
            made = self.environments.run(CURRENT, "sets.py", [self.name, str(self.work), str(self.seed)])
            if "rows" not in made:
                raise SystemExit(f"{self.name} could not be prepared: {made['stopped']}")
            order = {"product": True, "library": ""}
            return {**made, **self.environments.run(CURRENT, "fit.py", [], order)}

        key = f"{self.name}/data" if self.seed == 1 else f"{self.name}/data{self.seed}"
        if not (self.work / f"{self.files}.parts.npy").exists():
            self.results.found.pop(key, None)
        about = self.results.once(key, measure)
        self.rows = np.load(self.work / f"{self.files}.vectors.npy")
        self.labels = np.load(self.work / f"{self.files}.labels.npy").astype(np.int64)
        self.parts = np.load(self.work / f"{self.files}.parts.npy")
        return about

    def part(self, kind: str, stage: str) -> dict[str, Path]:
        """Files of the rows to learn from and to judge, mapped by PCA if the input says so.

        PCA is fitted on the rows to learn from; its time is nobody's.
        """
        learn = self.parts == 0 if stage == "trial" else self.parts < 2
        judge = self.parts == (1 if stage == "trial" else 2)
        files = {
            what: self.work / f"{self.files}.{kind}.{stage}.{what}.npy"
            for what in ("learn", "judge", "learn_labels", "judge_labels")
        }
        if not all(path.exists() for path in files.values()):
            rows = self.rows
            if kind != "all":
                from sklearn.decomposition import PCA

                components = int(kind.removeprefix("pca"))
                fitted = PCA(components, svd_solver="covariance_eigh").fit(rows[learn])
                rows = fitted.transform(rows).astype(np.float32)
            np.save(files["learn"], np.ascontiguousarray(rows[learn]))
            np.save(files["judge"], np.ascontiguousarray(rows[judge]))
            np.save(files["learn_labels"], self.labels[learn])
            np.save(files["judge_labels"], self.labels[judge])
        return files

    def judge(self, mapped: dict[str, Path], files: dict[str, Path], scores: tuple[str, ...],
              keep: Path | None) -> dict[str, dict[str, float]]:
        """mAP and P@1 by each score; leave-one-out, or against the rows learned from."""
        import metra

        labels = np.load(files["judge_labels"])
        rows = np.load(mapped["judge"])
        gallery = None
        if self.name == "clinc150":
            gallery = (np.load(mapped["learn"]), np.load(files["learn_labels"]))
        out = {}
        for score in scores:
            found = metra.evaluate(
                score, rows, labels, gallery=gallery, measures=MEASURES, n_jobs=1
            )
            out[score] = {measure: found[measure] for measure in MEASURES}
            if keep is not None:
                np.save(keep, np.stack([found.per_query("map"), labels[found.queries]]))
        return out

    def fit(self, method: tuple[str, str, str, str], kind: str, chosen: dict[str, Any],
            stage: str, scores: tuple[str, ...]) -> dict[str, Any]:
        """One fit in a process of its own, and how good its ranking is."""
        name, library, environment, made = method
        files = self.part(kind, stage)
        mapped = {what: self.work / f"mapped.{what}.npy" for what in ("learn", "judge")}
        keep = self.work / f"{self.name}.{kind}.{library}.{name}.ap.npy" if stage == "fit" and self.seed == 1 else None
        if not made:
            return {"quality": self.judge(files, files, scores, keep), "cpu": 0.0}
        for path in mapped.values():
            path.unlink(missing_ok=True)
        order = {
            "library": library,
            "class": made,
            "settings": chosen,
            "seed": self.seed,
            "vectors": str(files["learn"]),
            "labels": str(files["learn_labels"]),
            "map": [[str(files[what]), str(path)] for what, path in mapped.items()],
            "seconds": self.limits[stage],
            "megabytes": self.limits["megabytes"],
        }
        found = self.environments.run(
            environment, "fit.py", [], order, seconds=60 + 4 * self.limits[stage]
        )
        if found.get("mapped"):
            found["quality"] = self.judge(mapped, files, scores, keep)
        return found

    def settings(self, method: tuple[str, str, str, str], kind: str) -> list[dict[str, Any]]:
        """The settings that a method is tried with."""
        dim = self.rows.shape[1] if kind == "all" else int(kind.removeprefix("pca"))
        return settings(method[0], int(self.labels.max()) + 1, dim)

    def measure(self, method: tuple[str, str, str, str], kind: str) -> None:
        """Choose the setting and the score on validation, then fit once on the training part."""
        name, library, _, made = method
        prefix = f"{self.name}/{kind}/{library}/{name}"
        tried = self.settings(method, kind)
        scores = SCORES if made else (name.lower(),)
        best: tuple[float, dict[str, Any], str] = (-1.0, tried[0], scores[0])
        if made:
            for number, one in enumerate(tried):
                trial = self.results.once(
                    f"{prefix}/trial{number}",
                    lambda: {"settings": one, **self.fit(method, kind, one, "trial", scores)},
                    one,
                )
                for score, quality in trial.get("quality", {}).items():
                    if quality["map"] > best[0]:
                        best = (quality["map"], one, score)
                if number == 0 and trial["stopped"] in ("time", "memory"):
                    break  # The others cost about as much, or more.
        self.results.once(
            f"{prefix}/fit",
            lambda: {
                "settings": best[1],
                "score": best[2],
                "validation": best[0] if made else None,
                "limits": self.limits,
                **self.fit(method, kind, best[1], "fit", (best[2],)),
            },
            best[1],
        )

    def repeat(self, method: tuple[str, str, str, str], kind: str, longest: float) -> None:
        """The fit of the first seed once more on the parts and with the draws of this one."""
        name, library, _, _ = method
        prefix = f"{self.name}/{kind}/{library}/{name}"
        first = self.results.found[f"{prefix}/fit"]
        if not first.get("quality") or first["cpu"] > longest:
            return
        chosen, score = first["settings"], first["score"]
        self.results.once(
            f"{prefix}/seed{self.seed}",
            lambda: {"settings": chosen, "score": score,
                     **self.fit(method, kind, chosen, "fit", (score,))},
            chosen,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="file of results, JSON lines")
    parser.add_argument("--data", type=Path, help="write what has been measured, for page.py")
    parser.add_argument("--sets", default=",".join(SETS), help="some of " + ", ".join(SETS))
    parser.add_argument("--methods", help="only these, such as Warca,LMNN")
    parser.add_argument("--peer-python", action="append", default=[], metavar="NAME=PATH",
                        help="interpreter of the environment metric-learn or current")
    parser.add_argument("--seeds", type=int, default=5,
                        help="fits of the settings that were chosen with the first seed")
    parser.add_argument("--repeat-seconds", type=float, default=40,
                        help="fits that took longer have one seed")
    parser.add_argument("--trial-seconds", type=float, default=45, help="CPU limit of a trial")
    parser.add_argument("--fit-seconds", type=float, default=120, help="CPU limit of the fit")
    parser.add_argument("--megabytes", type=int, default=10_000, help="memory limit of a fit")
    parser.add_argument("--again", action="store_true",
                        help="measure anew what was stopped, such as with other limits")
    arguments = parser.parse_args()
    work = arguments.output.parent / "work"
    work.mkdir(parents=True, exist_ok=True)
    results = Results(arguments.output)
    given = dict(pair.split("=", 1) for pair in arguments.peer_python)
    environments = Environments(arguments.output.parent.resolve(), given)
    limits = {"trial": arguments.trial_seconds, "fit": arguments.fit_seconds,
              "megabytes": arguments.megabytes}
    wanted = arguments.methods.split(",") if arguments.methods else None
    for name in arguments.sets.split(","):
        bench = Bench(name, work, results, environments, limits)
        bench.prepare()
        for method in METHODS:
            if wanted is None or method[0] in wanted:
                for kind in inputs(name, method[0], method[1]):
                    if arguments.again:
                        results.forget_stopped(f"{name}/{kind}/{method[1]}/{method[0]}")
                    bench.measure(method, kind)
        for seed in range(2, arguments.seeds + 1):
            again = Bench(name, work, results, environments, limits, seed)
            again.prepare()
            for method in METHODS:
                if wanted is None or method[0] in wanted:
                    for kind in inputs(name, method[0], method[1]):
                        again.repeat(method, kind, arguments.repeat_seconds)
        if wanted is None:
            race.run(bench)
    if arguments.data is not None:
        compare_with_best(results.found, work)
        records = ",\n".join(json.dumps(record) for record in results.found.values())
        arguments.data.write_text(f"[\n{records}\n]\n")


def compare_with_best(found: dict[str, dict[str, Any]], work: Path) -> None:
    """Give each first fit its mAP less that of the set's best, with the ends of the interval."""
    import metra

    def precisions(key: str) -> Any:
        name, kind, library, method, _ = key.split("/")
        path = work / f"{name}.{kind}.{library}.{method}.ap.npy"
        return np.load(path) if path.exists() else None

    def quality(key: str) -> float:
        seeds = [record["quality"][record["score"]]["map"] for other, record in found.items()
                 if other == key or other.startswith(key.removesuffix("fit") + "seed")
                 if record.get("quality")]
        return float(np.mean(seeds))

    for name in SETS:
        fits = [key for key, record in found.items()
                if key.startswith(f"{name}/") and key.endswith("/fit") and record.get("quality")]
        if not fits:
            continue
        best = precisions(max(fits, key=quality))
        for key in fits:
            own = precisions(key)
            if own is not None and best is not None:
                less = metra.bootstrap(best[0], own[0], clusters=best[1].astype(int))
                found[key]["less_best"] = [less["difference"], less["low"], less["high"]]


if __name__ == "__main__":
    main()
