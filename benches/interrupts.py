"""How long Ctrl-C waits: every public function that can take long, on made data of 60,000 × 784.

    python benches/interrupts.py [NAME...]

Each function runs in a process of its own, which gets SIGINT two seconds after the call began. Printed
are the seconds until KeyboardInterrupt was raised; "done" means that the call ended before. Exits with 1
where one took longer than a second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import metra
import numpy as np
from metra._names import class_name

ROWS, COLUMNS, CLASSES, AFTER = 60_000, 784, 600, 2.0


def calls() -> dict[str, Callable[[], Any]]:
    """Every call by its name."""
    random = np.random.default_rng(1)
    y = np.arange(ROWS) % CLASSES
    X = random.normal(size=(CLASSES, COLUMNS)).astype(np.float32)[y]
    X += random.normal(size=X.shape).astype(np.float32)
    pairs = random.integers(0, ROWS, size=(100_000, 2)), random.integers(0, 2, size=100_000)
    triplets = random.integers(0, ROWS, size=(2_000_000, 3))
    order = "<".join(map(str, range(8))) + "".join(f"~{name}" for name in range(8, CLASSES))
    folder = tempfile.mkdtemp()
    narrow = metra.Pca(n_components=64).fit(X[:5000])
    wide = metra.Euclid().fit(X[:1000]).model_
    found: dict[str, Callable[[], Any]] = {
        "evaluate": lambda: metra.evaluate("euclid", X, y),
        "evaluate, cosine": lambda: metra.evaluate("cosine", X, y),
        "evaluate, gallery": lambda: metra.evaluate("euclid", X, y, gallery=(X, y)),
        "evaluate, rerank": lambda: metra.evaluate("euclid", X, y, rerank=True),
        "agreement": lambda: metra.agreement("euclid", X, pairs=pairs, triplets=triplets),
        "gate": lambda: metra.gate("cosine", "euclid", X, y),
        "verification": lambda: metra.verification("euclid", X, y),
        "budget": lambda: metra.budget(metra.Lda(), X, y),
        "export, faiss": lambda: [
            metra.export(narrow, f"{folder}/{n}.faiss", items=X) for n in range(100)
        ],
        "bootstrap": lambda: metra.bootstrap(random.random(ROWS), random.random(ROWS)),
        "compare": lambda: metra.compare(X, y, methods=["lda", "warca", "nca"]),
        "search": lambda: wide.search(X, X, 10),
        "dissimilarity": lambda: wide.dissimilarity(X[:20_000], X),
        "pair_dissimilarity": lambda: [wide.pair_dissimilarity(X, X) for _ in range(100)],
        "transform": lambda: [narrow.transform(X) for _ in range(100)],
        "map_items": lambda: [metra.plan(narrow).map_items(X) for _ in range(100)],
        "calibrate_threshold": lambda: narrow.calibrate_threshold(X, y),
    }
    for entry in metra.methods():
        learner = getattr(metra, class_name(entry["name"]))
        given = {"orderings": {"size": order}} if "ordering" in entry["needs"] else {}
        # As many steps as it takes to be interrupted.
        long = {"steps": 10**9} if "steps" in learner().get_params() else {}

        def fit(learner: Any = learner, long: Any = long, given: Any = given) -> Any:
            # Kernels of histograms take no negative numbers.
            return learner(**long).fit(np.abs(X), y, **given)

        found[entry["name"]] = fit
    return found


def one(name: str) -> None:
    """Run one call and interrupt it."""
    call, sent = calls()[name], [0.0]

    def interrupt() -> None:
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(AFTER, interrupt)
    timer.daemon = True
    timer.start()
    try:
        call()
        timer.cancel()
        print("done")
    except KeyboardInterrupt:
        print(f"{time.perf_counter() - sent[0]:.2f}")


def main() -> None:
    """All of them, one after the other."""
    late = []
    for name in sys.argv[1:] or list(calls()):
        line = [sys.executable, __file__, "--one", name]
        ran = subprocess.run(line, capture_output=True, text=True, timeout=600)
        said = ran.stdout.strip() or ran.stderr.strip().splitlines()[-1][:100]
        print(f"{name:24}{said}", flush=True)
        if ran.returncode != 0 or (said != "done" and float(said) > 1.0):
            late.append(name)
    if late:
        sys.exit(f"more than a second, or failed: {', '.join(late)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2])
    else:
        main()
