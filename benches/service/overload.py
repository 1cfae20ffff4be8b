"""Five times as much as the server can do, asked for at a constant rate whatever it answers.

Two kinds of requests: searches, whose bodies are small and whose work is large, and batches to be mapped, whose bodies are
large, since a server that refuses before it reads a body still has to get rid of it. Goodput is counted by both sides: the
client's answers with status 200, and the server's own counter each second. Before, many connections that ask again as soon as they are
refused show whether refusals leave time for work. Afterwards single requests say when latency is what
it was before.
"""

import statistics
import time

import load
from data import clustered
from mapping import BATCH, RANK
from mapping import DIM as MAP_DIM
from searching import DIM, K
from server import Server, Watch

TIMES, CONNECTIONS, PROBES, IMPATIENT = 5, 512, 40, 256


def measure(given) -> dict:
    model = given.prepared.model(DIM, DIM)
    index = given.prepared.index(model, given.items, DIM, "exact")
    search = load.as_json(clustered(1, DIM, 9), k=K)
    batch = load.as_json(clustered(BATCH, MAP_DIM, 5))
    found = {"times": TIMES, "connections": CONNECTIONS, "impatient": IMPATIENT, "kinds": {}}
    kinds = {
        "search, small bodies": ([model, "--index", index], "/v1/search", search),
        "map 256, large bodies": ([given.prepared.model(MAP_DIM, RANK)], "/v1/map", batch),
    }
    for name, (arguments, path, body) in kinds.items():
        with Server(given.metra, *arguments, core=given.cores.server) as server:
            found["kinds"][name] = one = overloaded(given, server, path, body)
            one["server"] = server.command
        print(
            f"{name}: capacity {one['capacity']:.0f}/s, asked {one['asked_per_second']:.0f}/s, reached {one['reached_per_second']:.0f}/s\n"
            f"  asked again at once {one['goodput_of_impatient']:.2f} of capacity\n"
            f"  goodput {one['goodput']:.2f} of capacity (least second {one['least_second']:.2f}), statuses {one['statuses']}, "
            f"no answer {one['without_answer']:.1%} {one['errors']}\n"
            f"  {load.milliseconds(one)}  memory {one['memory']}  recovered after {one['recovery_seconds']:.1f} s",
            flush=True,
        )
    return found


def latencies(server, path: str, body: bytes, count: int) -> list[float]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        answer = server.ask("POST", path, body, {"Content-Type": load.JSON})
        # A refusal is quick and is no recovery.
        times.append(time.perf_counter() - began if answer.status == 200 else float("inf"))
    return times


def served(server, path: str) -> float:
    """Answers with status 200 by the server's counter."""
    counters = server.counters()
    return next((v for name, v in counters.items() if f'route="{path}"' in name and 'status="200"' in name and "requests_total" in name), 0.0)  # fmt: skip


def overloaded(given, server: Server, path: str, body: bytes) -> dict:
    settings = {"body": body, "seconds": min(30, given.overload_seconds)}
    capacity = load.capacity(server, given.cores, path, **settings)
    impatient = load.capacity(server, given.cores, path, **settings, connections=IMPATIENT)
    before = statistics.median(latencies(server, path, body, PROBES))
    rate = TIMES * capacity["capacity"]
    with Watch(server, more=lambda: {"served": served(server, path)}) as watch:
        found = load.run(
            server, given.cores, path, body=body, seconds=given.overload_seconds, connections=CONNECTIONS, rate=rate
        )
        ended = time.perf_counter()
        recovery = recovered(server, path, body, before, ended)
    samples = watch.samples
    during = [s for s in samples if s["seconds"] < found["seconds"]]
    rates = [(b["served"] - a["served"]) / (b["seconds"] - a["seconds"]) for a, b in zip(during, during[1:])]
    answered = sum(found["statuses"].values())
    failed = sum(found["errors"].values())
    return {
        **found,
        "capacity": capacity["capacity"],
        "capacity_cpu": capacity["cpu"],
        "goodput_of_impatient": impatient["capacity"] / capacity["capacity"],
        "reached_per_second": (answered + failed) / found["seconds"],
        "goodput": found["per_second"].get(200, 0.0) / capacity["capacity"],
        "goodput_by_server": statistics.mean(rates) / capacity["capacity"] if rates else None,
        # The first second begins before the load does.
        "least_second": min(rates[1:], default=0.0) / capacity["capacity"],
        "refused": {status: count / max(answered, 1) for status, count in found["statuses"].items() if status != 200},
        "without_answer": failed / max(answered + failed, 1),
        "memory": {
            "greatest": watch.greatest("rss"),
            "own_first": samples[0]["own"],
            "own_greatest": watch.greatest("own"),
            "own_mebibytes_per_hour": watch.slope_per_hour("own", found["seconds"] / 3) / 2**20,
        },
        "descriptors": watch.greatest("descriptors"),
        "latency_before": before,
        "recovery_seconds": recovery,
        "is_alive": server.is_alive(),
    }


def recovered(server, path: str, body: bytes, before: float, ended: float, within: float = 30) -> float:
    """Seconds after the end of the load until the median of ten requests is at most twice what it was."""
    while time.perf_counter() - ended < within:
        began = time.perf_counter()
        if statistics.median(latencies(server, path, body, 10)) <= 2 * before:
            return began - ended
    return float("inf")
