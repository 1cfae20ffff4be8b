"""Exact top-10 search: this library against FAISS IndexFlatL2, both on one thread.

Needs numpy and faiss-cpu; installs nothing. Run from the repository root:

    python benches/peers/faiss_search.py [repeats]

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

ROWS, DIM, NEIGHBOURS = 10_000, 64, 10


def search_with_faiss(folder):
    """Child process: print the median of a few searches, leave the ids in the folder."""
    import faiss
    import numpy as np

    faiss.omp_set_num_threads(1)
    queries = np.fromfile(f"{folder}/queries", dtype="<f4").reshape(-1, DIM)
    items = np.fromfile(f"{folder}/items", dtype="<f4").reshape(-1, DIM)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        index = faiss.IndexFlatL2(DIM)
        index.add(items)
        _, ids = index.search(queries, NEIGHBOURS)
        times.append(time.perf_counter() - start)
    ids.astype("<u8").tofile(f"{folder}/faiss_ids")
    print(statistics.median(times))


def run_faiss(folder, core):
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    environment.pop("OPENBLAS_CORETYPE", None)
    if core:
        environment["OPENBLAS_CORETYPE"] = core
    command = [sys.executable, __file__, "--child", folder]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(output.stdout)


def run_ours(folder):
    environment = dict(
        os.environ,
        METRA_QUERIES=f"{folder}/queries",
        METRA_ITEMS=f"{folder}/items",
        METRA_IDS=f"{folder}/our_ids",
    )
    command = ["cargo", "bench", "--quiet", "-p", "metra", "--bench", "search"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    line = next(line for line in output.stdout.splitlines() if line.startswith("seconds "))
    return float(line.split()[1])


def disagreements(folder):
    """Places where the ids differ although the f64 distances do not tie."""
    import numpy as np

    queries = np.fromfile(f"{folder}/queries", dtype="<f4").reshape(-1, DIM).astype("f8")
    items = np.fromfile(f"{folder}/items", dtype="<f4").reshape(-1, DIM).astype("f8")
    ours = np.fromfile(f"{folder}/our_ids", dtype="<u8").reshape(-1, NEIGHBOURS)
    theirs = np.fromfile(f"{folder}/faiss_ids", dtype="<u8").reshape(-1, NEIGHBOURS)
    rows, columns = np.nonzero(ours != theirs)
    first = ((queries[rows] - items[ours[rows, columns]]) ** 2).sum(axis=1)
    second = ((queries[rows] - items[theirs[rows, columns]]) ** 2).sum(axis=1)
    return len(rows), int((np.abs(first - second) > 1e-5 * second).sum())


def main():
    import numpy as np

    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    generator = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("queries", "items"):
            values = generator.standard_normal((ROWS, DIM), dtype=np.float32)
            values.tofile(f"{folder}/{name}")
        run_ours(folder)  # builds
        ours, fair, plain = [], [], []
        for _ in range(repeats):
            ours.append(run_ours(folder))
            fair.append(run_faiss(folder, "SkylakeX"))
            plain.append(run_faiss(folder, None))
        ours, fair, plain = (statistics.median(times) for times in (ours, fair, plain))
        print(f"ours                        {ours:.3f} s")
        print(f"faiss, coretype SkylakeX    {fair:.3f} s   ours / faiss {ours / fair:.2f}")
        print(f"faiss, coretype as detected {plain:.3f} s   ours / faiss {ours / plain:.2f}")
        differ, wrong = disagreements(folder)
        print(f"ids differ in {differ} of {ROWS * NEIGHBOURS} places, {wrong} of them not ties")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--child":
        search_with_faiss(sys.argv[2])
    else:
        main()
