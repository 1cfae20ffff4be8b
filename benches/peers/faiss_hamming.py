"""Exact top-10 search by Hamming distance: this library against FAISS IndexBinaryFlat, both on one thread.

Needs numpy and faiss-cpu; installs nothing. Run from the repository root:

    python benches/peers/faiss_hamming.py [FILE]

Runs are interleaved and medians compared. Distances must be the same; ids may differ where they tie. With FILE
(docs/results/data/codes_hamming.json) the ratios are written there, with that to exact search of floats, which the bench
`hamming` measures by itself.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import faiss
import numpy as np
from measured import say

NEIGHBOURS = 10
QUERIES, ITEMS, BYTES = 1_000, 1_000_000, 16
REPEATS = 5


def search_with_faiss(queries, items):
    """Seconds of the search alone, and the distances."""
    index = faiss.IndexBinaryFlat(8 * BYTES)
    index.add(items)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        distances, _ = index.search(queries, NEIGHBOURS)
        times.append(time.perf_counter() - start)
    return statistics.median(times), distances


def bench(**files):
    command = ["cargo", "bench", "--quiet", "-p", "metra", "--bench", "hamming"]
    environment = {**os.environ, **files}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()


def run_ours(folder):
    files = dict(
        METRA_QUERIES=f"{folder}/queries",
        METRA_ITEMS=f"{folder}/items",
        METRA_DISTANCES=f"{folder}/distances",
    )
    line = next(line for line in bench(**files) if line.startswith("seconds "))
    return float(line.split()[1])


def main():
    faiss.omp_set_num_threads(1)
    generator = np.random.default_rng(1)
    queries = generator.integers(0, 256, (QUERIES, BYTES), dtype=np.uint8)
    items = generator.integers(0, 256, (ITEMS, BYTES), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        queries.tofile(f"{folder}/queries")
        items.tofile(f"{folder}/items")
        run_ours(folder)  # builds
        ratios = []
        for _ in range(REPEATS):
            ours = run_ours(folder)
            theirs, distances = search_with_faiss(queries, items)
            ratios.append(ours / theirs)
        found = np.fromfile(f"{folder}/distances", dtype="<f4").reshape(-1, NEIGHBOURS)
        assert (found == distances).all(), "distances differ"
    name = f"top-{NEIGHBOURS} by Hamming distance, {QUERIES:,} queries × {ITEMS:,} codes of {8 * BYTES} bits"
    say(name, "× FAISS IndexBinaryFlat", ratios)
    if len(sys.argv) > 1:
        line = next(line for line in bench() if line.startswith("measured\t"))
        floats = [float(number) for number in line.split("\t")[3:]]
        found = {
            "faiss": faiss.__version__,
            "what": name,
            "of_faiss": [statistics.median(ratios), min(ratios), max(ratios)],
            "faster_than_floats": floats,
        }
        with open(sys.argv[1], "w") as file:
            file.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
