"""Searches through the service beside the library alone, on the same core with one thread.

The library alone is the command over two large files of queries: the difference of their times is that of the queries between,
without start and loading. That is one call with all queries, which exact search answers 128 at a time by one matrix product:
the service is held against it with requests of 128 queries. A lone query has no such product in the library either; its own
yardstick is a program named by --direct (README.md), or else numpy, one product of all items with one query and a choice of
the ten nearest. A graph is walked for each query alone, so that there all sizes have the same yardstick.
"""

import json
import os
import statistics
import subprocess
import time

import numpy as np

import load
from data import clustered
from server import Server

DIM, K, COMPARED, REPEATS = 64, 10, 200, 3
# Queries in a request, and connections that ask for as many as the server can do. More would wait longer than it allows
# (`--queue-time`), so that it refused some.
ROWS = {1: 16, 32: 8, 128: 4}
# The lesser and the greater number of queries whose times are subtracted.
SIZES = {"exact": (500, 4_500), "graph": (10_000, 60_000)}
SINGLE_QUERIES = 300


def measure(given) -> dict:
    model = given.prepared.model(DIM, DIM)
    found = {"indexes": {}}
    for kind, items in [("exact", given.items), ("graph", given.graph_items)]:
        if items:
            began = time.perf_counter()
            index = given.prepared.index(model, items, DIM, kind)
            print(f"{kind} {items} x {DIM}: index ready after {time.perf_counter() - began:.0f} s", flush=True)
            found["indexes"][kind] = of_index(given, model, index, kind, items)
    return found


def of_index(given, model, index, kind: str, items: int) -> dict:
    queries = clustered(4_096, DIM, 9)
    with Server(given.metra, model, "--index", index, core=given.cores.server) as server:
        one = {"items": items, "server": server.command, "ways": {}}
        one["compared"] = compared(given, server, model, index, queries[:COMPARED])
        print(f"{kind} {items}: {one['compared']}", flush=True)
        bodies = {rows: load.as_json(queries[:rows], k=K) for rows in ROWS}
        # In turns: what other guests take of a shared machine changes within minutes.
        rounds = [one_round(given, server, model, index, kind, items, bodies) for _ in range(REPEATS)]
        libraries = [library for library, _ in rounds]
        one["library_queries_per_second"] = {
            name: statistics.median(library[name] for library in libraries) for name in libraries[0]
        }
        for rows, body in bodies.items():
            served = [loads[rows] for _, loads in rounds]
            requests = [each["capacity"] for each in served]
            ratios = {
                name: statistics.median(rate * rows / library[name] for rate, library in zip(requests, libraries))
                for name in libraries[0]
                if not name.startswith("direct") or name == f"direct {rows}"
            }
            way = {
                "requests_per_second": statistics.median(requests),
                "range": [min(requests), max(requests)],
                "queries_per_second": statistics.median(requests) * rows,
                "cpu": served[-1]["cpu"],
                "errors": [each["errors"] for each in served],
                "ratio": ratios,
                "at": load.at_shares(
                    server, given.cores, "/v1/search", body=body, seconds=given.seconds, asking=ROWS[rows]
                ),
            }
            one["ways"][str(rows)] = way
            told = "  ".join(f"to {name} {ratio:.2f}" for name, ratio in ratios.items())
            print(
                f"{kind} {rows:4} a request {way['queries_per_second']:9.0f} queries/s  {told}  cpu {way['cpu']['server']:.2f} + {way['cpu']['client']:.2f}"
            )
            for share, loaded in way["at"].items():
                print(f"{'':11} {share:>4} {load.milliseconds(loaded)}  statuses {loaded['statuses']}", flush=True)
    return one


def one_round(given, server, model, index, kind: str, items: int, bodies: dict[int, bytes]) -> tuple[dict, dict]:
    """Queries a second of the library alone, by each yardstick, and loads by the number of queries in a request."""
    library = {"command": by_command(given, model, index, kind)}
    if kind == "exact":
        library["numpy, one query"] = by_numpy(given, items)
    if given.direct:
        library |= {f"direct {rows}": by_program(given, model, index, rows) for rows in bodies}
    loads = {
        rows: load.capacity(
            server, given.cores, "/v1/search", body=body, seconds=given.seconds, connections=ROWS[rows]
        )
        for rows, body in bodies.items()
    }
    return library, loads


def compared(given, server, model, index, queries: np.ndarray) -> dict:
    """Whether the service finds what the command finds, and how much of what exact search finds."""
    path = given.scratch / "compared.npy"
    np.save(path, queries)
    own = given.prepared.run("search", model, index, "--query", path, "-k", K, "--trusted")
    own = [[hit["item"] for hit in answer["items"]] for answer in own]
    ids = {}
    for name, more in [("usual", {}), ("exact", {"exact": True})]:
        answer = server.ask("POST", "/v1/search", load.as_json(queries, k=K, **more), {"Content-Type": load.JSON})
        if answer.status != 200:
            raise SystemExit(f"/v1/search: expected status 200, but found {answer.status}: {answer.body[:300]!r}")
        ids[name] = [[hit["id"] for hit in result] for result in answer.json()["results"]]
    alone = []
    for query in queries[:20]:
        answer = server.ask("POST", "/v1/search", load.as_json(query[None], k=K), {"Content-Type": load.JSON})
        alone.append([hit["id"] for hit in answer.json()["results"][0]])
    shared = [len(set(a) & set(b)) / K for a, b in zip(ids["usual"], ids["exact"])]
    return {
        "queries": len(queries),
        "same_ids_as_command": ids["usual"] == own,
        "same_ids_one_by_one": alone == ids["usual"][: len(alone)],
        "recall_at_10": float(np.mean(shared)),
        "command_recall_at_10": float(np.mean([len(set(a) & set(b)) / K for a, b in zip(own, ids["exact"])])),
    }


def by_command(given, model, index, kind: str) -> float:
    """Queries a second."""
    times = []
    for size in SIZES[kind]:
        path = given.prepared.vectors(size, DIM, 9)
        words = [given.metra, "search", model, index, "--query", path, "-k", K, "--run", given.scratch / "run.trec"]
        words += ["--threads", 1, "--trusted", "--quiet"]
        pinned = ["taskset", "-c", given.cores.server] if given.cores.server is not None else []
        began = time.perf_counter()
        subprocess.run([*map(str, pinned), *map(str, words)], check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    small, large = SIZES[kind]
    return (large - small) / (times[1] - times[0])


def by_numpy(given, items: int) -> float:
    """Queries a second, one by one: squared distances by one product, and the ten least."""
    rows = np.load(given.prepared.vectors(items, DIM, 7))
    lengths = (rows * rows).sum(axis=1)
    with given.cores.on_server():
        began = time.perf_counter()
        for query in clustered(SINGLE_QUERIES, DIM, 9):
            distances = lengths - 2 * (rows @ query)
            nearest = np.argpartition(distances, K)[:K]
            nearest[np.argsort(distances[nearest])]
        return SINGLE_QUERIES / (time.perf_counter() - began)


def by_program(given, model, index, rows: int) -> float:
    """Queries a second, as a program that calls the library says."""
    path = given.prepared.vectors(4_096, DIM, 9)
    words = [*given.direct.split(), model, index, path, K, rows, given.seconds]
    pinned = ["taskset", "-c", given.cores.server] if given.cores.server is not None else []
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(
        [*map(str, pinned), *map(str, words)], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout)["queries_per_second"]
