"""Child process: one fit of one method; the order comes as JSON, and so does what was measured.

Imports and loading are over before the clock starts. CPU seconds are those of the process with all
its threads. Peak memory is VmHWM: ru_maxrss also counts what the parent process held when it
started this one.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

SEED = 1  # unless the order says another


class OutOfTime(Exception):
    """The fit has used the CPU seconds it may use."""


class Progress:
    """The best map that an iterative method had when it was stopped."""

    matrix: np.ndarray | None = None
    loss = np.inf
    evaluations = 0

    def keep(self, matrix: np.ndarray, loss: float) -> None:
        self.evaluations += 1
        if loss < self.loss:
            self.loss, self.matrix = float(loss), np.array(matrix)


def peak_megabytes() -> float:
    try:
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def metric_learn_estimator(name: str, settings: dict[str, Any], progress: Progress) -> Any:
    """An estimator of metric-learn; NCA and LMNN also keep the map of every evaluation."""
    import metric_learn

    if name == "LFDA":
        return metric_learn.LFDA(**settings)
    if name == "ITML_Supervised":
        return metric_learn.ITML_Supervised(random_state=SEED, **settings)

    class KeptNca(metric_learn.NCA):
        def _loss_grad_lbfgs(self, A, X, mask, sign=1.0):  # type: ignore[no-untyped-def]
            found = super()._loss_grad_lbfgs(A, X, mask, sign)
            progress.keep(A.reshape(-1, X.shape[1]), found[0])
            return found

    class KeptLmnn(metric_learn.LMNN):
        def _loss_grad(self, X, L, *rest):  # type: ignore[no-untyped-def]
            found = super()._loss_grad(X, L, *rest)
            progress.keep(L, found[1])
            return found

    kept = {"NCA": KeptNca, "LMNN": KeptLmnn}[name]
    return kept(random_state=SEED, **settings)


def scikit_learn_estimator(settings: dict[str, Any], progress: Progress) -> Any:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    def callback(matrix: np.ndarray, step: int) -> None:
        # Called after each accepted step, so the last map is the best.
        progress.keep(matrix.reshape(settings["n_components"], -1), -step)

    return NeighborhoodComponentsAnalysis(random_state=SEED, callback=callback, **settings)


class TorchMultiSimilarity:
    """A linear layer under pytorch-metric-learning's loss and miner.

    The number of steps and the fall of Adam's rate to 0 are those of metra's MultiSimilarity.
    """

    def __init__(self, n_components: int, rate: float, beta: float = 50,
                 epsilon: float = 0.1, batch: int = 128, steps: int = 1000):
        from pytorch_metric_learning import losses, miners

        self.rank, self.rate, self.batch, self.steps = n_components, rate, batch, steps
        self.loss = losses.MultiSimilarityLoss(alpha=2, beta=beta, base=0.5)
        self.miner = miners.MultiSimilarityMiner(epsilon=epsilon)

    def warm_up(self, X: np.ndarray, y: np.ndarray) -> None:
        """A fit of two steps: torch imports more of itself with the first one."""
        steps, self.steps = self.steps, 2
        self.fit(X, y)
        self.steps = steps

    def fit(self, X: np.ndarray, y: np.ndarray) -> TorchMultiSimilarity:
        import torch
        from pytorch_metric_learning.samplers import MPerClassSampler

        torch.manual_seed(SEED)
        np.random.seed(SEED)  # the sampler draws from numpy
        rows, labels = torch.from_numpy(X), torch.from_numpy(y)
        batch = min(self.batch, len(X))
        classes = len(np.unique(y))
        each = max(4, batch // classes)
        batch = min(each * classes, batch - batch % each)
        sampler = MPerClassSampler(y, each, batch_size=batch, length_before_new_iter=self.steps * batch)
        layer = torch.nn.Linear(X.shape[1], self.rank)
        adam = torch.optim.Adam(layer.parameters(), lr=self.rate)
        falling = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / self.steps)
        drawn = np.fromiter(sampler, dtype=np.int64)
        for step in range(len(drawn) // batch):
            ids = torch.from_numpy(drawn[step * batch : (step + 1) * batch])
            mapped, known = layer(rows[ids]), labels[ids]
            loss = self.loss(mapped, known, self.miner(mapped, known))
            adam.zero_grad()
            loss.backward()
            adam.step()
            falling.step()
        self.layer = layer
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            return self.layer(torch.from_numpy(X)).numpy()


def estimator(library: str, name: str, settings: dict[str, Any], progress: Progress) -> Any:
    if library == "metra":
        import metra

        return getattr(metra, name)(n_jobs=1, random_state=SEED, **settings)
    if library == "metric-learn":
        return metric_learn_estimator(name, settings, progress)
    if library == "scikit-learn":
        return scikit_learn_estimator(settings, progress)
    import torch

    torch.set_num_threads(1)
    return TorchMultiSimilarity(**settings)


def product_seconds() -> float:
    """CPU seconds of a 2048 x 2048 x 2048 product in float32, the least of five."""
    square = np.random.default_rng(SEED).random((2048, 2048), dtype=np.float32)
    times = []
    for _ in range(5):
        start = time.process_time()
        square @ square
        times.append(time.process_time() - start)
    return min(times)


def stop(*_: Any) -> None:
    raise OutOfTime


def measured_fit(order: dict[str, Any]) -> dict[str, Any]:
    """Fit, map the rows of every file named, and say what it took."""
    progress = Progress()
    library = order["library"]
    vectors, labels = np.load(order["vectors"]), np.load(order["labels"])
    # The types that users of these libraries have: scikit-learn's own loaders give float64.
    wide = library in ("metric-learn", "scikit-learn")
    vectors = np.ascontiguousarray(vectors, dtype=np.float64 if wide else np.float32)
    learner = estimator(library, order["class"], order["settings"], progress)
    megabytes = order["megabytes"] * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (megabytes, megabytes))
    signal.signal(signal.SIGPROF, stop)
    found: dict[str, Any] = {"stopped": None, "peak_before": peak_megabytes()}
    if library == "pytorch-metric-learning":
        learner.warm_up(vectors, labels)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, order["seconds"])
    try:
        learner.fit(vectors, labels)
    except OutOfTime:
        found["stopped"] = "time"
    except MemoryError:
        found["stopped"] = "memory"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    found["cpu"] = time.process_time() - start
    found["peak"] = peak_megabytes()
    found["evaluations"] = progress.evaluations
    found["steps"] = int(getattr(learner, "n_iter_", 0) or 0)
    for source, target in order["map"]:
        rows = np.load(source).astype(vectors.dtype)
        if found["stopped"] is None:
            mapped = learner.transform(rows)
        elif progress.matrix is not None:
            mapped = rows @ progress.matrix.T
        else:
            return found
        np.save(target, np.ascontiguousarray(mapped, dtype=np.float32))
    return {**found, "mapped": True}


def main() -> None:
    global SEED
    order = json.load(sys.stdin)
    SEED = order.get("seed", SEED)
    warnings.simplefilter("ignore")
    if order.get("product"):
        found: dict[str, Any] = {"product": product_seconds()}
    else:
        found = measured_fit(order)
    packages = {"metric-learn": ["metric-learn", "scikit-learn"], "scikit-learn": ["scikit-learn"],
                "pytorch-metric-learning": ["pytorch-metric-learning", "torch"]}
    named = ["numpy", *packages.get(order["library"], [])]
    found["versions"] = {name: version(name) for name in named}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
