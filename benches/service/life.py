"""What becomes of requests while the server takes other models, stops, starts, and is killed.

Clients ask without a pause, each by a connection that it keeps. Every answer with status 200 is compared with what the model
that it names must answer: a mixture of two models would show. A client does what a good one does: it closes its connection
when the answer asks for that, and waits when nobody listens. Everything else that a request comes back without is counted:

    refused            nobody listened; nothing was accepted
    fresh, no answer   the system accepted a new connection, which ended without a byte: nothing of it was answered
    kept, no answer    the same by a connection that had answered before without asking to be closed: must be 0
    partial            an answer that ended in the middle: must be 0
    late               no answer within the time of the client: must be 0
    wrong              not what the model answers: must be 0
"""

import collections
import http.client
import json
import os
import random
import shutil
import signal
import socket
import statistics
import threading
import time

import numpy as np

import load
from data import clustered
from server import Server, Watch

DIM, RANK, CLIENTS, KILLS = 32, 8, 6, 3
BROKEN_EVERY, ANSWER_WITHIN = 50, 30
# A vector alone and in a batch differ by rounding; two models differ by far more.
NEAR = 1e-4
MUST_BE_ZERO = ("kept, no answer", "partial", "late", "wrong")


def measure(given) -> dict:
    models = [given.prepared.model(DIM, RANK, seed) for seed in (1, 2)]
    found = {"reloads": reloads(given, models), "stops": stops(given, models[0])}
    if given.large_items:
        found["kills"] = kills(given)
        found["reloads of a large index"] = large_reloads(given)
    return found


class Clients:
    """Threads that ask one server, until the end of the `with`."""

    def __init__(self, port: int, expected: dict[str, np.ndarray], vectors: np.ndarray) -> None:
        self.port, self.expected, self.vectors = port, expected, vectors
        self.counts, self.examples, self.times = collections.Counter(), {}, []
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def count(self, what: str, example: str = "") -> None:
        with self.lock:
            self.counts[what] += 1
            if example:
                self.examples.setdefault(what, f"{time.strftime('%H:%M:%S')} {example}")

    def _run(self, number: int) -> None:
        draw, connection, used = random.Random(number), None, 0
        while not self.stopped.is_set():
            if connection is None:
                connection, used = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_WITHIN), 0
                try:
                    connection.connect()
                except OSError:
                    self.count("refused")
                    connection = None
                    time.sleep(0.02)
                    continue
            keep = self._ask(connection, draw, used)
            used += 1
            if not keep:
                connection.close()
                connection = None
        if connection:
            connection.close()

    def _ask(self, connection, draw: random.Random, used: int) -> bool:
        """One request; whether the connection can be used again."""
        first = draw.randrange(len(self.vectors) - 8)
        rows = slice(first, first + draw.randrange(1, 9))
        body = load.as_json(self.vectors[rows])
        began = time.perf_counter()
        try:
            connection.request("POST", "/v1/map", body, {"Content-Type": load.JSON})
            answer = connection.getresponse()
        except TimeoutError as error:
            self.count("late", repr(error))
            return False
        except (OSError, http.client.HTTPException) as error:
            self.count("kept, no answer" if used else "fresh, no answer", f"{error!r} after {used} answers")
            return False
        try:
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.count("partial", repr(error))
            return False
        self.times.append(time.perf_counter() - began)
        self.count(f"status {answer.status}", text[:200].decode(errors="replace") if answer.status != 200 else "")
        if answer.status == 200:
            told = json.loads(text)
            expected = self.expected.get(told["model"].rpartition("@")[2])
            if expected is None or not np.allclose(told["vectors"], expected[rows], atol=NEAR):
                self.count("wrong", f"model {told['model']}")
        return answer.getheader("Connection", "").lower() != "close"

    def facts(self) -> dict:
        times = sorted(self.times)
        return {
            "counts": dict(self.counts),
            "examples": self.examples,
            "broken": sum(self.counts[what] for what in MUST_BE_ZERO),
            "milliseconds": {
                f"p{q:g}": 1e3 * times[min(len(times) - 1, int(q / 100 * len(times)))] for q in (50, 99, 99.9)
            },
        }


def digest_of(server: Server) -> str:
    return server.ask("GET", "/v1/models").json()["data"][0]["id"].rpartition("@")[2]


def mapped(server: Server, vectors: np.ndarray) -> np.ndarray:
    return np.float32(
        server.ask("POST", "/v1/map", load.as_json(vectors), {"Content-Type": load.JSON}).json()["vectors"]
    )


def expected_answers(given, models, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """By the version of each model; the command's own mapping, so that the service is not compared with itself."""
    expected = {}
    queries = given.scratch / "life.npy"
    np.save(queries, vectors)
    for number, model in enumerate(models):
        out = given.scratch / f"life-mapped-{number}.npy"
        given.prepared.run("embed", model, queries, "--side", "query", "-o", out)
        with Server(given.metra, model, core=given.cores.server) as server:
            expected[digest_of(server)] = np.load(out)
            server.stop()
    return expected


def reloads(given, models) -> dict:
    vectors = clustered(64, DIM, 11)
    expected = expected_answers(given, models, vectors)
    digests = list(expected)
    served, log = given.scratch / "served.safetensors", given.scratch / "reloads.log"
    shutil.copy(models[0], served)
    whole = [model.read_bytes() for model in models]
    ways, failures, waited = collections.Counter(), [], collections.defaultdict(list)
    arguments = [served, "--reload-interval", 0.1]
    with Server(given.metra, *arguments, core=given.cores.server, log=log) as server, Watch(server) as watch:
        with Clients(server.port, expected, vectors) as clients:
            for number in range(given.reloads):
                turn = (number + 1) % 2
                way = ("rename", "SIGHUP", "POST")[number % 3]
                if number % BROKEN_EVERY == BROKEN_EVERY - 1:
                    broken(server, served, whole[turn], failures)
                    # Some content must be new again, or nothing would show that it was loaded.
                part = served.with_suffix(".part")
                part.write_bytes(whole[turn])
                os.replace(part, served)
                began = time.perf_counter()
                if way == "SIGHUP":
                    os.kill(server.pid, signal.SIGHUP)
                elif way == "POST":
                    answer = server.post("/v1/admin/reload", {})
                    if answer.status != 200:
                        failures.append(f"reload {number}: status {answer.status}: {answer.body[:200]!r}")
                ends = time.monotonic() + 10
                while digest_of(server) != digests[turn]:
                    if time.monotonic() > ends:
                        failures.append(f"reload {number} by {way}: not served after 10 s")
                        break
                    time.sleep(0.005)
                ways[way] += 1
                waited[way].append(time.perf_counter() - began)
        counters = {name: value for name, value in server.counters().items() if "reloads_total" in name}
        alive, descriptors = server.is_alive(), server.descriptors()
        status = server.stop()
    found = {
        **clients.facts(),
        "server": server.command,
        "reloads": dict(ways),
        "seconds_until_served": {way: [statistics.median(times), max(times)] for way, times in waited.items()},
        "failures": failures,
        "counters": counters,
        "alive": alive,
        "descriptors": {"first": watch.samples[0]["descriptors"], "last": descriptors},
        "own_memory": {
            "first": watch.samples[0]["own"],
            "last": watch.samples[-1]["own"],
            "slope_mebibytes_per_hour": watch.slope_per_hour("own", 5) / 2**20,
        },
        "exit_status": status,
    }
    print(
        f"reloads {found['reloads']}: {found['counts']}, broken {found['broken']}, failures {failures[:3]}, exit {status}"
    )
    print(
        f"  own memory {found['own_memory']}, descriptors {found['descriptors']}, {counters}, seconds {found['seconds_until_served']}",
        flush=True,
    )
    return found


def broken(server: Server, served, whole: bytes, failures: list[str]) -> None:
    """A file that is cut off must never be served, and the one before must."""
    before = digest_of(server)
    part = served.with_suffix(".part")
    part.write_bytes(whole[: len(whole) // 2])
    os.replace(part, served)
    answer = server.post("/v1/admin/reload", {})
    if answer.status != 500 or b"stays as it was before" not in answer.body:
        failures.append(f"half a model: expected status 500, but found {answer.status}: {answer.body[:200]!r}")
    if digest_of(server) != before:
        failures.append("half a model: the one before is not served any more")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def stops(given, model) -> dict:
    vectors = clustered(64, DIM, 11)
    expected = expected_answers(given, [model], vectors)
    port, log = free_port(), given.scratch / "stops.log"
    arguments = [model, "--drain-delay", 0.5]
    settings = {"core": given.cores.server, "log": log, "bind": f"127.0.0.1:{port}"}
    times, statuses, unready = [], [], 0
    server = Server(given.metra, *arguments, **settings)
    try:
        with Clients(port, expected, vectors) as clients:
            for _ in range(given.stops):
                time.sleep(1)
                began = time.perf_counter()
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
                unready += server.ask("GET", "/readyz").status == 503
                statuses.append(server.stop())
                times.append(time.perf_counter() - began)
                server = Server(given.metra, *arguments, **settings)
            time.sleep(1)
    finally:
        server.stop(signal.SIGKILL)
    found = {
        **clients.facts(),
        "server": server.command,
        "stops": given.stops,
        "said_not_ready": unready,
        "exit_statuses": dict(collections.Counter(statuses)),
        "seconds_to_end": [min(times), statistics.median(times), max(times)] if times else None,
    }
    print(
        f"stops {given.stops}: {found['counts']}, broken {found['broken']}, not ready {unready}, exit {found['exit_statuses']}, seconds {found['seconds_to_end']}",
        flush=True,
    )
    for what, example in clients.examples.items():
        print(f"  {what}: {example}", flush=True)
    return found


def forget(folder) -> None:
    """Drop the pages of files, so that they are read from disk again."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def kills(given) -> dict:
    dim = 64
    model = given.prepared.model(dim, dim)
    index = given.prepared.index(model, given.large_items, dim, "exact")
    query = load.as_json(clustered(1, dim, 9), k=10)
    found = {
        "index_bytes": sum(path.stat().st_size for path in index.iterdir()),
        "items": given.large_items,
        "ways": {},
    }
    for name, more in [("digests", []), ("trusted", ["--trusted"])]:
        for cache in ("cold", "warm"):
            times, answers = [], []
            for _ in range(KILLS):
                if cache == "cold":
                    forget(index)
                with Server(given.metra, model, "--index", index, *more, core=given.cores.server) as server:
                    while server.ask("GET", "/readyz").status != 200:
                        time.sleep(0.002)
                    times.append(time.perf_counter() - server.began)
                    answer = server.ask("POST", "/v1/search", query, {"Content-Type": load.JSON})
                    answers.append([hit["id"] for hit in answer.json()["results"][0]])
                    server.process.kill()
                    server.process.wait()
            same = all(one == answers[0] for one in answers)
            found["ways"][f"{name}, {cache}"] = {
                "seconds_to_ready": times,
                "same_answers": same,
                "server": server.command,
            }
            print(
                f"kill -9, {name:8} {cache}: ready after {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f}), same answers {same}",
                flush=True,
            )
    return found


def large_reloads(given) -> dict:
    """Searches of a small index while a large one is read again: whoever reloads must not hold up the others."""
    dim = 64
    model = given.prepared.model(dim, dim)
    sizes = {"small": given.items, "large": given.large_items}
    listed = given.scratch / "models.toml"
    listed.write_text(
        "".join(
            f'[[model]]\nname = "{name}"\nfile = "{model}"\nindex = "{given.prepared.index(model, size, dim, "exact")}"\n'
            for name, size in sizes.items()
        )
    )
    large = given.prepared.index(model, given.large_items, dim, "exact")
    query = load.as_json(clustered(1, dim, 9), model="small", k=10)
    times, counts, stopped = [], collections.Counter(), threading.Event()

    def search(server: Server) -> None:
        while not stopped.is_set():
            began = time.perf_counter()
            answer = server.ask("POST", "/v1/search", query, {"Content-Type": load.JSON})
            times.append((began, time.perf_counter() - began))
            counts[answer.status] += 1

    with Server(given.metra, "--models", listed, core=given.cores.server) as server:
        thread = threading.Thread(target=search, args=(server,), daemon=True)
        thread.start()
        time.sleep(3)
        first = time.perf_counter()
        reloading = []
        for _ in range(KILLS):
            # The same content in a new file, since what has not changed is not read again.
            manifest = large / "index.json"
            shutil.copy(manifest, manifest.with_suffix(".part"))
            os.replace(manifest.with_suffix(".part"), manifest)
            began = time.perf_counter()
            status = server.post("/v1/admin/reload", {}, wait=300).status
            reloading.append({"seconds": time.perf_counter() - began, "status": status})
        stopped.set()
        thread.join()
    before = [took for began, took in times if began < first]
    during = [took for began, took in times if began >= first]
    found = {
        "server": server.command,
        "reloads": reloading,
        "statuses": dict(counts),
        "milliseconds_before": 1e3 * statistics.median(before),
        "longest_before": 1e3 * max(before),
        "longest_during": 1e3 * max(during, default=0.0),
    }
    print(
        f"reloads of a large index: {reloading}, searches beside them {found['statuses']}, longest "
        f"{found['longest_during']:.0f} ms, before {found['longest_before']:.0f} ms",
        flush=True,
    )
    return found
