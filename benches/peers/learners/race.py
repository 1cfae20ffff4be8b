"""How much CPU time a method needs to rank as well as pytorch-metric-learning's Multi-Similarity.

Every method has the settings that were chosen for it, and from 30 to 1,000 steps, over which its rate
falls to 0: each is a fit that somebody could ask for. The mAP to reach is the highest that the peer has
on validation rows with any number of steps; its own time is that of its shortest fit within .002 of it,
and ours that of the shortest fit that is not below it. Those fits are repeated, one after the other in
turn, and the median counts.
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


class Race:
    """Fits of different length on one set, from the records alone."""

    def __init__(self, data: str, found: dict[str, Record]) -> None:
        self.fits: dict[tuple[str, str, str], dict[int, list[Record]]] = {}
        for key, record in found.items():
            parts = key.split("/")
            if parts[0] == data and parts[-1].startswith("race"):
                _, kind, library, name, what = parts
                steps = int(what.removeprefix("race").split("again")[0])
                one = self.fits.setdefault((library, name, kind), {})
                one.setdefault(steps, []).append(record)

    def peer(self) -> tuple[float, tuple[str, str, str], int] | None:
        """The mAP to reach, and the peer's shortest fit near it."""
        points = [
            (quality(records[0]), runner, steps)
            for runner, fits in self.fits.items()
            if runner[0] == PEER[1]
            for steps, records in fits.items()
        ]
        if not points:
            return None
        best = max(points)[0]
        near = [point for point in points if point[0] >= best - NEAR]
        _, runner, steps = min(near, key=lambda point: self.seconds(point[1], point[2]))
        return best, runner, steps

    def shortest(self, name: str, wanted: float) -> tuple[tuple[str, str, str], int] | None:
        """Our method's cheapest fit that is not below the wanted mAP."""
        points = [
            (runner, steps)
            for runner, fits in self.fits.items()
            if runner[:2] == ("metra", name)
            for steps, records in fits.items()
            if quality(records[0]) >= wanted
        ]
        return min(points, key=lambda point: self.seconds(*point), default=None)

    def highest(self, name: str) -> float:
        """Our method's highest mAP with any number of steps."""
        return max((quality(records[0]) for runner, fits in self.fits.items()
                    if runner[:2] == ("metra", name) for records in fits.values()), default=-1.0)

    def seconds(self, runner: tuple[str, str, str], steps: int) -> float:
        return statistics.median(record["cpu"] for record in self.fits[runner][steps])

    def spread(self, runner: tuple[str, str, str], steps: int) -> tuple[float, float]:
        times = [record["cpu"] for record in self.fits[runner][steps]]
        return min(times), max(times)


def run(bench: Any) -> None:
    """Measure what has not been measured of one set."""
    methods = {}
    for method, kind in runners(bench.name):
        name, library, _, _ = method
        prefix = f"{bench.name}/{kind}/{library}/{name}"
        chosen = bench.results.found[f"{prefix}/fit"]
        methods[(library, name, kind)] = (method, kind, prefix, chosen)
        for steps in (0,) if name in CLOSED else STEPS:
            once(bench, methods[(library, name, kind)], steps, "")
    race = Race(bench.name, bench.results.found)
    found = race.peer()
    if found is None:
        return
    wanted, runner, steps = found
    again = [(runner, steps)]
    again += [point for name in OURS if (point := race.shortest(name, wanted)) is not None]
    for number in range(1, REPEATS):
        for runner, steps in again:
            once(bench, methods[runner], steps, f"again{number}")


def once(bench: Any, known: tuple[Any, str, str, Record], steps: int, suffix: str) -> None:
    method, kind, prefix, chosen = known
    settings = {**chosen["settings"], **({"steps": steps} if steps else {})}
    bench.results.once(
        f"{prefix}/race{steps}{suffix}",
        lambda: {"settings": settings,
                 **bench.fit(method, kind, settings, "trial", (chosen["score"],))},
    )
