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

DIM, RANK, BATCH, ROUNDS = 384, 64, 256, 4


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
        found = {"server": server.command, "dim": [DIM, RANK], "ways": {}, "bare": {}}
        for name, path, body in [("empty body", "/v1/map", b""), ("healthz", "/healthz", None)]:
            status = 400 if body is not None else 200
            bare = load.capacity(server, given.cores, path, body=body, seconds=given.seconds, status=status)
            found["bare"][name] = bare
            print(
                f"{name:16} {bare['capacity']:10.0f} /s   cpu {bare['cpu']['server']:.2f} + {bare['cpu']['client']:.2f}"
            )
        for rows in (1, BATCH):
            for form in ("json", "binary"):
                way = f"{form} {rows}"
                found["ways"][way] = one_way(given, server, form, vectors[:rows])
                tell(way, found["ways"][way], found["bare"])
    return found


def one_way(given, server: Server, form: str, vectors: np.ndarray) -> dict:
    body = load.as_json(vectors) if form == "json" else vectors.tobytes()
    kind = load.JSON if form == "json" else load.BINARY
    check(server, body, kind, len(vectors))
    rounds, numpy_rates = [], []
    for _ in range(ROUNDS):
        settings = {"body": body, "kind": kind, "seconds": given.seconds / ROUNDS}
        rounds.append(load.capacity(server, given.cores, "/v1/map", **settings))
        numpy_rates.append(numpy_rate(given.cores, vectors, 1))
    rates = [one["capacity"] for one in rounds]
    middle = {"capacity": statistics.median(rates)}
    ratios = [rate * len(vectors) / numpy for rate, numpy in zip(rates, numpy_rates)]
    return {
        "body_bytes": len(body),
        "requests_per_second": middle["capacity"],
        "range": [min(rates), max(rates)],
        "vectors_per_second": middle["capacity"] * len(vectors),
        "numpy_vectors_per_second": statistics.median(numpy_rates),
        "to_numpy": statistics.median(ratios),
        "errors": [one["errors"] for one in rounds],
        "cpu": {who: statistics.median(one["cpu"][who] for one in rounds) for who in ("server", "client")},
        "at": load.at_shares(server, given.cores, "/v1/map", middle, body=body, kind=kind, seconds=given.seconds),
    }


def check(server: Server, body: bytes, kind: str, rows: int) -> None:
    answer = server.ask("POST", "/v1/map", body, {"Content-Type": kind})
    if answer.status != 200:
        raise SystemExit(f"/v1/map: expected status 200, but found {answer.status}: {answer.body[:300]!r}")
    size = len(answer.json()["vectors"]) if kind == load.JSON else len(answer.body) // (4 * RANK)
    if size != rows:
        raise SystemExit(f"/v1/map: expected {rows} vectors, but found {size}")


def tell(way: str, one: dict, bare: dict) -> None:
    one["to_empty_body"] = one["requests_per_second"] / bare["empty body"]["capacity"]
    one["to_healthz"] = one["requests_per_second"] / bare["healthz"]["capacity"]
    print(
        f"{way:16} {one['requests_per_second']:10.0f} /s  {one['vectors_per_second']:10.0f} vectors/s  "
        f"to numpy {one['to_numpy']:.3f}  to empty body {one['to_empty_body']:.2f}  "
        f"cpu {one['cpu']['server']:.2f} + {one['cpu']['client']:.2f}"
    )
    for share, loaded in one["at"].items():
        print(f"{'':11} {share:>4} {load.milliseconds(loaded)}  statuses {loaded['statuses']}", flush=True)
