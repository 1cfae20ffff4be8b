"""What calling from Python adds to a fit: `Warca().fit` against the library's own call inside it.

    python benches/python_overhead.py [rows] [columns] [repeats]

The share is stated for each repeat and as the median, since other programs disturb single ones. The
library's own call is timed in Rust around what the command runs, too (choose, fit, judge, make the
model with its digests); checking and reading the array and what goes back to Python are the rest. It
is float32 and is not copied: the growth of the peak of resident memory is stated beside its size.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time

import metra
import numpy as np


def main(rows: int = 60_000, columns: int = 784, repeats: int = 3) -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((rows, columns), dtype=np.float32)
    classes = np.arange(rows) % 10
    vectors[:, :10] += 3 * np.eye(10, dtype=np.float32)[classes]
    # The first use of an estimator imports scikit-learn.
    metra.Warca(steps=1).fit(vectors[:100], classes[:100])
    shares = []
    for number in range(repeats):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        learned = metra.Warca().fit(vectors, classes)
        whole = time.perf_counter() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        shares.append(whole / learned.seconds_ - 1)
        print(
            f"{number + 1}: {whole:.2f} s, of which {learned.seconds_:.2f} s in the library: "
            f"{100 * shares[-1]:.2f} % more; memory +{grown / 1024:.0f} MiB beside "
            f"{vectors.nbytes / 2**20:.0f} MiB of vectors"
        )
    print(f"median: {100 * statistics.median(shares):.2f} % more")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
