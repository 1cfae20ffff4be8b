"""How much CPU time a method needs to rank as well as pytorch-metric-learning's Multi-Similarity.

Every method has its three settings, and those that take steps from 30 to 1,000 of them, over which the
rate falls to 0: each is a fit that somebody could ask for, judged by cosine on validation rows. There are
two marks: the highest mAP of the peer's fits of 1,000 steps, and the highest of all its fits, less .002.
The peer's time and ours are those of the cheapest fit that is not below the mark. These fits are repeated
in turn, and the median counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from methods import METHODS, inputs

Record = dict[str, Any]

STEPS = (30, 60, 125, 250, 500, 1000)
PEER = ("MultiSimilarityLoss", "pytorch-metric-learning")
OURS = ("Warca", "MultiSimilarity", "SupCon", "Lda", "Xqda")
CLOSED = ("Lda", "Xqda")
NEAR = 0.002
REPEATS = 3


def runners(data: str) -> Iterable[tuple[tuple[str, str, str, str], str]]:
    """The peer and our methods, with the inputs they are measured on."""
    for method in METHODS:
        if (method[0], method[1]) == PEER or (method[0] in OURS and method[1] == "metra"):
            for kind in inputs(data, method[0], method[1]):
                yield method, kind


def quality(record: Record) -> float:
    """Validation mAP of a fit."""
    values = [found["map"] for found in record.get("quality", {}).values()]
    return max(values, default=-1.0)


Runner = tuple[str, str, str, int, int]  # library, name, input, number of the setting, steps


class Mark:
    """A validation mAP to reach."""

    def __init__(self, words: str, quality: float) -> None:
        self.words, self.quality = words, quality


class Race:
    """Fits of different length on one set, from the records alone."""

    def __init__(self, data: str, found: dict[str, Record]) -> None:
        self.fits: dict[Runner, list[Record]] = {}
        for key, record in found.items():
            parts = key.split("/")
            is_fit = record.get("cpu") is not None and "quality" in record
            if is_fit and parts[0] == data and parts[-1].startswith("race"):
                _, kind, library, name, what = parts
                setting, steps, _ = what.removeprefix("race").split("-")
                runner = (library, name, kind, int(setting), int(steps))
                self.fits.setdefault(runner, []).append(record)

    def marks(self) -> list[Mark]:
        points = {runner: self.quality(runner) for runner in self.fits if runner[0] == PEER[1]}
        if not points:
            return []
        longest = max(map for runner, map in points.items() if runner[4] == STEPS[-1])
        return [Mark("1,000 steps", longest), Mark("its highest, less .002", max(points.values()) - NEAR)]

    def cheapest(self, library: str, name: str, mark: Mark) -> Runner | None:
        """The method's cheapest fit that is not below the mark, by the first measurement of each."""
        reached = [runner for runner in self.fits if runner[:2] == (library, name)
                   and self.quality(runner) >= mark.quality]
        return min(reached, key=lambda runner: self.fits[runner][0]["cpu"], default=None)

    def highest(self, name: str) -> float:
        """Our method's highest mAP of any fit."""
        return max((self.quality(runner) for runner in self.fits
                    if runner[:2] == ("metra", name)), default=-1.0)

    def quality(self, runner: Runner) -> float:
        return quality(self.fits[runner][0])

    def seconds(self, runner: Runner) -> float:
        return statistics.median(record["cpu"] for record in self.fits[runner])

    def spread(self, runner: Runner) -> tuple[float, float]:
        times = [record["cpu"] for record in self.fits[runner]]
        return min(times), max(times)


def run(bench: Any) -> None:
    """Measure what has not been measured of one set."""
    methods = {}
    for method, kind in runners(bench.name):
        name, library, _, _ = method
        methods[(library, name, kind)] = method
        for setting, _ in enumerate(bench.settings(method, kind)):
            for steps in (0,) if name in CLOSED else STEPS:
                once(bench, method, kind, setting, steps, 0)
    race = Race(bench.name, bench.results.found)
    compared = [(PEER[1], PEER[0]), *(("metra", name) for name in OURS)]
    again = {
        runner
        for mark in race.marks()
        for library, name in compared
        if (runner := race.cheapest(library, name, mark)) is not None
    }
    for number in range(1, REPEATS):
        for library, name, kind, setting, steps in sorted(again):
            once(bench, methods[(library, name, kind)], kind, setting, steps, number)


def once(bench: Any, method: tuple[str, str, str, str], kind: str, setting: int, steps: int,
         number: int) -> None:
    name, library, _, _ = method
    chosen = dict(bench.settings(method, kind)[setting])
    if steps:
        chosen["steps"] = steps
    bench.results.once(
        f"{bench.name}/{kind}/{library}/{name}/race{setting}-{steps}-{number}",
        lambda: {"settings": chosen, **bench.fit(method, kind, chosen, "trial", ("cosine",))},
        chosen,
    )
