"""LMNN on MNIST: this library against metric-learn, by objective, CPU time and memory.

Needs what benches/peers/lmnn.requirements.txt lists; installs nothing. Run from the repository
root with the command of this library, and the folder of data in METRA_DATA:

    METRA_DATA=... python benches/peers/lmnn.py path/to/metra [--rows 5000] [--limit 900]

The first rows of mnist.parquet, pixels divided by 255, are mapped to their 100 principal
components; both get the same float32 numbers. At this scale a row is at a mean squared distance of
21 from its targets, so that a margin of 1 counts; with pixels of 0 to 255 it would be 1 beside a
million. Every fit runs in a process of its own on one thread, one after another. Both ends are
judged by the same code in float64, from the vectors as they are mapped.

metric-learn takes the gradient's direction with a rate that grows by 1 % a step and is halved where
the objective rises. So that it is not judged by a badly chosen rate, it runs with its own and with
three more. Above MOST rows it is left out: a step compares all pairs of rows anew.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COLUMNS, TARGETS, MARGIN, PULL = 100, 3, 1.0, 0.5
OWN_RATE, RATES = 1e-7, (1e-6, 1e-5, 1e-4)
MOST = 10_000
# No child may hold more, lest one that goes wrong takes the machine with it.
BYTES = 8 << 30
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class OutOfTime(Exception):
    """The fit has used the CPU seconds it may use."""


def prepare(folder: Path, count: int) -> None:
    """Child process: rows and labels, as Parquet and as npy files with the same numbers."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(Path(os.environ["METRA_DATA"]) / "mnist.parquet")
    pixels, labels = [], []
    for batch in file.iter_batches(5_000, columns=["vector", "label"]):
        pixels.append(batch["vector"].flatten().to_numpy().reshape(len(batch), -1))
        labels.append(batch["label"].to_numpy())
        if sum(map(len, labels)) >= count:
            break
    pixels = np.concatenate(pixels)[:count].astype(np.float32) / 255
    labels = np.concatenate(labels)[:count].astype(np.int32)
    if len(labels) < count:
        raise SystemExit(f"expected {count} rows, but mnist.parquet has {len(labels)}")
    mean = pixels.mean(axis=0, dtype=np.float64)
    blocks = [pixels[at : at + 5_000] - mean for at in range(0, count, 5_000)]
    _, axes = np.linalg.eigh(sum(block.T @ block for block in blocks))
    axes = axes[:, ::-1][:, :COLUMNS]
    rows = np.concatenate([block @ axes for block in blocks]).astype(np.float32)
    np.save(folder / "rows.npy", rows)
    np.save(folder / "labels.npy", labels)
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), COLUMNS)
    table = pyarrow.table({"vector": vectors, "label": pyarrow.array(labels)})
    pyarrow.parquet.write_table(table, folder / "rows.parquet")


def fit_peer(folder: Path, rate: float, limit: float) -> dict[str, Any]:
    """Child process: metric-learn's fit; what it prints on the way goes to standard output."""
    import numpy as np
    from metric_learn import LMNN

    course: list[tuple[float, float]] = []
    best: dict[str, Any] = {"objective": np.inf}

    class Watched(LMNN):
        """The same, but the best map stays when the fit is stopped."""

        def _loss_grad(self, X, L, *rest):  # type: ignore[no-untyped-def]
            found = super()._loss_grad(X, L, *rest)
            course.append((time.process_time() - start, float(found[1])))
            if found[1] < best["objective"]:
                best.update(objective=float(found[1]), map=L)
            return found

    def stop(*_: Any) -> None:
        raise OutOfTime

    # scikit-learn's loaders give float64, and metric-learn computes in it.
    rows = np.load(folder / "rows.npy").astype(np.float64)
    labels = np.load(folder / "labels.npy")
    learner = Watched(n_neighbors=TARGETS, regularization=PULL, learn_rate=rate, verbose=True)
    signal.signal(signal.SIGPROF, stop)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        learner.fit(rows, labels)
        ended = "converged" if learner.n_iter_ + 1 < learner.max_iter else "its most steps"
    except OutOfTime:
        ended = f"stopped after {limit:.0f} s"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start
    np.save(folder / "mapped.npy", rows @ best["map"].T)
    return {"fit": seconds, "ended": ended, "course": course}


def judge(folder: Path) -> dict[str, Any]:
    """Child process: the objective by its definition, over all triplets, in float64."""
    import numpy as np

    labels = np.load(folder / "labels.npy")
    rows = np.load(folder / "rows.npy").astype(np.float64)
    mapped = np.load(folder / "mapped.npy").astype(np.float64)
    targets = np.empty((len(rows), TARGETS), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        for part in np.array_split(np.arange(len(members)), 1 + len(members) // 1_000):
            apart = squared(rows[members[part]], rows[members])
            apart[np.arange(len(part)), part] = np.inf
            near = np.argpartition(apart, TARGETS, axis=1)[:, :TARGETS]
            targets[members[part]] = members[near]
    pulled = pushed = 0.0
    violated = 0
    for part in np.array_split(np.arange(len(rows)), 1 + len(rows) // 500):
        own = ((mapped[part, None] - mapped[targets[part]]) ** 2).sum(axis=2)
        pulled += own.sum()
        others = squared(mapped[part], mapped)
        others[labels[part, None] == labels] = np.inf
        # Few pairs are near enough to matter; the others would only cost time.
        row, other = np.nonzero(others < MARGIN + own.max(axis=1, keepdims=True))
        over = MARGIN + own[row] - others[row, other, None]
        pushed += np.maximum(over, 0).sum()
        violated += int((over > 0).sum())
    return {"objective": PULL * pulled + (1 - PULL) * pushed, "violated": violated}


def squared(left: Any, right: Any) -> Any:
    """Squared distances of all pairs."""
    products = left @ right.T
    return (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * products


def product() -> dict[str, Any]:
    """Child process: seconds of a 2048 x 2048 x 2048 product in float32, the least of five."""
    import numpy as np

    square = np.random.default_rng(1).random((2048, 2048), dtype=np.float32)
    times = []
    for _ in range(5):
        start = time.process_time()
        square @ square
        times.append(time.process_time() - start)
    return {"seconds": min(times)}


def spawn(command: list[str]) -> tuple[str, resource.struct_rusage]:
    """Run a child process on one thread; what it prints, and what it used.

    ru_maxrss counts what the parent held when it started the child, so this process stays small:
    everything with numbers is a child's.
    """
    environment = dict(os.environ, **{name: "1" for name in THREADS})
    # OpenBLAS takes some newer processors for older ones and is then several times slower.
    flags = Path("/proc/cpuinfo")
    if flags.exists() and "avx512f" in flags.read_text():
        environment.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
    with tempfile.TemporaryFile("w+") as output:
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))  # noqa: E731
        child = subprocess.Popen(command, env=environment, stdout=output, preexec_fn=limit)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
        output.seek(0)
        return output.read(), usage


def own_child(*arguments: Any) -> tuple[str, resource.struct_rusage]:
    return spawn([sys.executable, __file__, "--child", *map(str, arguments)])


def last_line(text: str) -> dict[str, Any]:
    return dict(json.loads(text.splitlines()[-1]))


def judged(folder: Path) -> float:
    return float(last_line(own_child("judge", folder)[0])["objective"])


def used(usage: resource.struct_rusage) -> dict[str, float]:
    """CPU seconds and megabytes; Linux counts ru_maxrss in units of 1,024 bytes."""
    return {"process": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024 / 1e6}


def measure_peer(folder: Path, rate: float, limit: float) -> dict[str, Any]:
    text, usage = own_child("fit", folder, rate, limit)
    steps = [line.split() for line in text.splitlines() if line[:1].isdigit()]
    found = last_line(text)
    own = " (its own)" if rate == OWN_RATE else ""
    return {
        **found,
        **used(usage),
        "name": f"metric-learn, rate {rate:g}{own}",
        "objective": judged(folder),
        "said": float(steps[-1][1]),
        "steps": int(steps[-1][0]),
        "evaluations": len(found["course"]),
    }


def measure_ours(folder: Path, command: str, settings: dict[str, Any]) -> dict[str, Any]:
    data, model = str(folder / "rows.parquet"), str(folder / "model")
    train = [command, "train", data, "--label", "label", "--method", "lmnn", "--holdout", "none"]
    train += ["--score", "euclid", "--threads", "1", "--timing", "--json", "-o", model]
    for name, value in settings.items():
        train += ["--set", f"{name}={value}"]
    text, usage = spawn(train)
    timing = json.loads(text)["splits"][0]["timing"]
    facts = json.loads(spawn([command, "inspect", model, "--json"])[0])["origin"]["facts"]
    spawn([command, "embed", model, data, "-o", str(folder / "mapped.npy"), "--json"])
    ended = "converged" if facts["steps"] < settings["steps"] else "its most steps"
    if facts["left_out"] > 0:
        ended += f", {facts['left_out']:.0f} impostors left out"
    return {
        **used(usage),
        "name": "metra",
        "fit": timing["fit_cpu_seconds"],
        "objective": judged(folder),
        "said": facts["objective"],
        "steps": int(facts["steps"]),
        "ended": ended,
    }


def print_table(found: list[dict[str, Any]]) -> None:
    heads = ("objective", "own word", "steps", "CPU: fit", "process", "memory")
    columns = zip(heads, (11, 11, 6, 9, 9, 8))
    print(" " * 35, *(f"{head:>{width}}" for head, width in columns), " ended")
    for one in found:
        print(
            f"{one['name']:35} {one['objective']:11.1f} {one['said']:11.1f} {one['steps']:6} "
            f"{one['fit']:7.1f} s {one['process']:7.1f} s {one['peak']:5.0f} MB  {one['ended']}"
        )


def compare(ours: dict[str, Any], peers: list[dict[str, Any]]) -> None:
    """What ours is beside metric-learn as it comes, and beside its best rate."""
    best = min(peers, key=lambda one: (round(one["objective"], 1), one["fit"]))
    for one in {id(one): one for one in (peers[0], best)}.values():
        print(
            f"{one['name']}: objective {one['objective'] / ours['objective']:.4f} x, CPU of the "
            f"fit {one['fit'] / ours['fit']:.1f} x that of metra"
        )
        # The last hundredth costs metric-learn most of its time.
        for share, words in ((1.01, "1 % above metra's"), (1.0, "metra's")):
            below = [cpu for cpu, value in one["course"] if value <= share * ours["objective"]]
            when = f"after {below[0]:.1f} s" if below else "never"
            print(f"    down to {words}: {when}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metra", help="the command of this library")
    parser.add_argument("--rows", type=int, default=5_000, help="first rows of MNIST")
    parser.add_argument("--limit", type=float, default=900, help="CPU seconds of a peer's fit")
    parser.add_argument("--steps", type=int, default=1_000, help="most steps of metra")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="where metra stops")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="another parameter of metra's, such as refresh=5")
    arguments = parser.parse_args()
    settings = {
        "rank": COLUMNS, "neighbours": TARGETS, "pull": PULL, "margin": MARGIN, "scaled": "false",
        "start": "pca", "steps": arguments.steps, "tolerance": arguments.tolerance,
        **dict(pair.split("=", 1) for pair in arguments.set),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own_child("prepare", folder, arguments.rows)
        before = last_line(own_child("product")[0])["seconds"]
        ours = measure_ours(folder, arguments.metra, settings)
        peers = []
        if arguments.rows <= MOST:
            rates = (OWN_RATE, *RATES)
            peers = [measure_peer(folder, rate, arguments.limit) for rate in rates]
        after = last_line(own_child("product")[0])["seconds"]
    print(f"LMNN, {arguments.rows} rows of MNIST, pixels / 255, PCA to {COLUMNS}, one thread")
    print_table([ours, *peers])
    if peers:
        compare(ours, peers)
    print(f"a product of 2048^3 in float32: {before:.3f} s before, {after:.3f} s after")


def child(what: str, *rest: str) -> None:
    if what == "prepare":
        prepare(Path(rest[0]), int(rest[1]))
    elif what == "product":
        print(json.dumps(product()))
    elif what == "judge":
        print(json.dumps(judge(Path(rest[0]))))
    else:
        print(json.dumps(fit_peer(Path(rest[0]), float(rest[1]), float(rest[2]))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
