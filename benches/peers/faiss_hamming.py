"""Exact top-10 search by Hamming distance: this library against FAISS IndexBinaryFlat, both on one thread.

Needs numpy and faiss-cpu; installs nothing. Run from the repository root:

    python benches/peers/faiss_hamming.py

Runs are interleaved and medians compared. Distances must be the same; ids may differ where they tie.
"""

import os
import statistics
import subprocess
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


def run_ours(folder):
    environment = dict(
        os.environ,
        METRA_QUERIES=f"{folder}/queries",
        METRA_ITEMS=f"{folder}/items",
        METRA_DISTANCES=f"{folder}/distances",
    )
    command = ["cargo", "bench", "--quiet", "-p", "metra", "--bench", "hamming"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    line = next(line for line in output.stdout.splitlines() if line.startswith("seconds "))
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


if __name__ == "__main__":
    main()
