"""Exact top-10 search: this library against FAISS IndexFlatL2, both on one thread.

Needs numpy and faiss-cpu; installs nothing. Run from the repository root:

    python benches/peers/faiss_search.py

OpenBLAS, which FAISS multiplies with, can mistake newer processors for older ones and then runs
several times slower, so FAISS is timed both as it comes and with OPENBLAS_CORETYPE=SkylakeX; the
latter is the fair comparison on machines with AVX-512. Runs are interleaved and medians compared.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from measured import say

NEIGHBOURS = 10
# Queries, items, dimension, and how often each is repeated.
SHAPES = [(10_000, 10_000, 64, 5), (1_000, 1_000_000, 128, 3)]


def vectors(folder, name, dim):
    import numpy as np

    return np.fromfile(f"{folder}/{name}", dtype="<f4").reshape(-1, dim)


def search_with_faiss(folder, dim):
    """Child process: print the median of a few searches, leave the ids in the folder."""
    import faiss

    faiss.omp_set_num_threads(1)
    queries, items = (vectors(folder, name, dim) for name in ("queries", "items"))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        index = faiss.IndexFlatL2(dim)
        index.add(items)
        _, ids = index.search(queries, NEIGHBOURS)
        times.append(time.perf_counter() - start)
    ids.astype("<u8").tofile(f"{folder}/faiss_ids")
    print(statistics.median(times))


def run_faiss(folder, dim, core):
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    environment.pop("OPENBLAS_CORETYPE", None)
    if core:
        environment["OPENBLAS_CORETYPE"] = core
    command = [sys.executable, __file__, "--child", folder, str(dim)]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(output.stdout)


def run_ours(folder, dim):
    environment = dict(
        os.environ,
        METRA_QUERIES=f"{folder}/queries",
        METRA_ITEMS=f"{folder}/items",
        METRA_IDS=f"{folder}/our_ids",
        METRA_DIM=str(dim),
    )
    command = ["cargo", "bench", "--quiet", "-p", "metra", "--bench", "search"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    line = next(line for line in output.stdout.splitlines() if line.startswith("seconds "))
    return float(line.split()[1])


def disagreements(folder, dim):
    """Places where the ids differ although the f64 distances do not tie."""
    import numpy as np

    queries, items = (vectors(folder, name, dim) for name in ("queries", "items"))
    ours = np.fromfile(f"{folder}/our_ids", dtype="<u8").reshape(-1, NEIGHBOURS)
    theirs = np.fromfile(f"{folder}/faiss_ids", dtype="<u8").reshape(-1, NEIGHBOURS)
    rows, columns = np.nonzero(ours != theirs)
    apart = [queries[rows].astype("f8") - items[ids[rows, columns]] for ids in (ours, theirs)]
    first, second = ((difference**2).sum(axis=1) for difference in apart)
    return len(rows), int((np.abs(first - second) > 1e-5 * second).sum())


def compare(count, size, dim, repeats):
    import numpy as np

    generator = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("queries", count), ("items", size)):
            generator.standard_normal((rows, dim), dtype=np.float32).tofile(f"{folder}/{name}")
        run_ours(folder, dim)  # builds
        fair, plain = [], []
        for _ in range(repeats):
            ours = run_ours(folder, dim)
            fair.append(ours / run_faiss(folder, dim, "SkylakeX"))
            plain.append(ours / run_faiss(folder, dim, None))
        name = f"exact top-{NEIGHBOURS}, {count:,} queries × {size:,} items × {dim}"
        say(name, "× FAISS IndexFlatL2 (SkylakeX)", fair)
        say(name, "× FAISS IndexFlatL2, core as detected", plain)
        differ, wrong = disagreements(folder, dim)
        print(f"ids differ in {differ} of {count * NEIGHBOURS} places, {wrong} of them not ties")


def main():
    for shape in SHAPES:
        compare(*shape)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        search_with_faiss(sys.argv[2], int(sys.argv[3]))
    else:
        main()
