"""Mapping of vectors: 384 numbers become 64, alone and 256 together, as JSON and as bytes.

The yardstick is numpy's product of the same batch with a matrix of the model's size, on the server's core, in turns with
the loads. What the service itself costs shows in the same address with an empty body, which is refused before any work, and in
/healthz.
"""

import statistics
import time

import numpy as np

import load
from data import clustered
from server import Server

DIM, RANK, BATCH = 384, 64, 256
# Name, address, body and the status of the answer.
BARE = [("empty body", "/v1/map", b"", 400), ("healthz", "/healthz", None, 200)]


def numpy_rate(cores: load.Cores, batch: np.ndarray, seconds: float) -> float:
    """Vectors a second."""
    matrix = np.random.default_rng(1).standard_normal((DIM, RANK), dtype=np.float32)
    out = np.empty((len(batch), RANK), np.float32)
    with cores.on_server():
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            for _ in range(20):
                np.matmul(batch, matrix, out=out)
            count += 20
    return count * len(batch) / passed


def measure(given) -> dict:
    model = given.prepared.model(DIM, RANK)
    vectors = clustered(BATCH, DIM, 5)
    with Server(given.metra, model, core=given.cores.server) as server:
        found = {"server": server.command, "dim": [DIM, RANK], "ways": {}}
        for rows in (1, BATCH):
            for form in ("json", "binary"):
                way = f"{form} {rows}"
                found["ways"][way] = one_way(given, server, form, vectors[:rows])
                tell(way, found["ways"][way])
    for name, *_ in BARE:
        rates = [rate for way in found["ways"].values() for rate in way["bare"][name]]
        found[name] = {"requests_per_second": statistics.median(rates), "range": [min(rates), max(rates)]}
        print(f"{name}: {found[name]}")
    return found


def one_way(given, server: Server, form: str, vectors: np.ndarray) -> dict:
    body = load.as_json(vectors) if form == "json" else vectors.tobytes()
    kind = load.JSON if form == "json" else load.BINARY
    check(server, body, kind, len(vectors))
    rounds, numpy_rates = [], []
    bare = {name: [] for name, *_ in BARE}
    for _ in range(load.ROUNDS):
        settings = {"body": body, "kind": kind, "seconds": given.seconds / load.ROUNDS}
        rounds.append(load.capacity(server, given.cores, "/v1/map", **settings))
        numpy_rates.append(numpy_rate(given.cores, vectors, 1))
        for name, path, nothing, status in BARE:
            settings = {"body": nothing, "status": status, "seconds": given.seconds / 10}
            bare[name].append(load.capacity(server, given.cores, path, **settings)["capacity"])
    rates = [one["capacity"] for one in rounds]

    def ratio(others: list[float], each: int = 1) -> float:
        return statistics.median(rate * each / other for rate, other in zip(rates, others))

    return {
        "body_bytes": len(body),
        "requests_per_second": statistics.median(rates),
        "range": [min(rates), max(rates)],
        "vectors_per_second": statistics.median(rates) * len(vectors),
        "numpy_vectors_per_second": statistics.median(numpy_rates),
        "to_numpy": ratio(numpy_rates, len(vectors)),
        "to_empty_body": ratio(bare["empty body"]),
        "to_healthz": ratio(bare["healthz"]),
        "bare": bare,
        "errors": [one["errors"] for one in rounds],
        "cpu": {who: statistics.median(one["cpu"][who] for one in rounds) for who in ("server", "client")},
        "at": load.at_shares(server, given.cores, "/v1/map", body=body, kind=kind, seconds=given.seconds),
    }


def check(server: Server, body: bytes, kind: str, rows: int) -> None:
    answer = server.ask("POST", "/v1/map", body, {"Content-Type": kind})
    if answer.status != 200:
        raise SystemExit(f"/v1/map: expected status 200, but found {answer.status}: {answer.body[:300]!r}")
    size = len(answer.json()["vectors"]) if kind == load.JSON else len(answer.body) // (4 * RANK)
    if size != rows:
        raise SystemExit(f"/v1/map: expected {rows} vectors, but found {size}")


def tell(way: str, one: dict) -> None:
    print(
        f"{way:16} {one['requests_per_second']:10.0f} /s  {one['vectors_per_second']:10.0f} vectors/s  "
        f"to numpy {one['to_numpy']:.3f}  to empty body {one['to_empty_body']:.2f}  "
        f"cpu {one['cpu']['server']:.2f} + {one['cpu']['client']:.2f}"
    )
    for share, loaded in one["at"].items():
        print(f"{'':11} {share:>4} {load.milliseconds(loaded)}  statuses {loaded['statuses']}", flush=True)
