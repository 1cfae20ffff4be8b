"""The χ² Gram matrix of 2,000 rows with 2,580 numbers: this library against scikit-learn.

Needs numpy and scikit-learn; installs nothing. Run from the repository root:

    python benches/peers/chi_square.py [repeats]

Both run on one thread (scikit-learn's additive_chi2_kernel and chi2_kernel have no more) on rows made by the same
rule; runs are interleaved, and the median of the ratios is printed.
"""

import os
import re
import subprocess
import sys
import time

from measured import say

ROWS, DIM = 2_000, 2_580


def library_seconds():
    command = ["cargo", "bench", "-q", "-p", "metra", "--bench", "kernel", "--", "gram"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"([0-9.]+) s on one thread", text).group(1))


def sklearn_seconds():
    import numpy as np
    from sklearn.metrics.pairwise import chi2_kernel

    rows = (np.random.default_rng(1).random((ROWS, DIM)) / DIM).astype(np.float32)
    start = time.perf_counter()
    chi2_kernel(rows, gamma=1.0)
    return time.perf_counter() - start


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    library_seconds()  # builds
    ratios = []
    for _ in range(repeats):
        ours = library_seconds()
        ratios.append(sklearn_seconds() / ours)
    say(f"χ² Gram matrix, {ROWS:,} × {DIM:,}", "× the speed of scikit-learn", ratios)


if __name__ == "__main__":
    main()
