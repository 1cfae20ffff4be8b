"""Half an hour at 70 % of what the server can do: memory, descriptors and latency must stay as they are.

Searches and batches of vectors as bytes share the load. Latency is given for each third, memory as the slope of a line through
all seconds after the first third.
"""

import time

import load
from data import clustered
from mapping import BATCH
from searching import DIM, K
from server import Server, Watch

SHARE = 0.7


def measure(given) -> dict:
    model = given.prepared.model(DIM, DIM)
    index = given.prepared.index(model, given.items, DIM, "exact")
    kinds = {
        "search": ("/v1/search", load.as_json(clustered(1, DIM, 9), k=K), load.JSON),
        "map": ("/v1/map", clustered(BATCH, DIM, 5).tobytes(), load.BINARY),
    }
    third = 60 * given.soak_minutes / 3
    with Server(given.metra, model, "--index", index, core=given.cores.server) as server:
        rates = {}
        for name, (path, body, kind) in kinds.items():
            full = load.capacity(server, given.cores, path, body=body, kind=kind, seconds=min(20, third))
            rates[name] = full["capacity"] * SHARE / len(kinds)
        thirds = []
        with Watch(server) as watch:
            for number in range(3):
                loads = {}
                for name, (path, body, kind) in kinds.items():
                    settings = {"body": body, "kind": kind, "seconds": third, "connections": 32, "rate": rates[name]}
                    loads[name] = load.Load(server, given.cores, path, **settings)
                thirds.append({name: one.end() for name, one in loads.items()})
                for name, one in thirds[-1].items():
                    print(
                        f"third {number + 1} {name:7} {load.milliseconds(one)}  {one['statuses']} {one['errors']}",
                        flush=True,
                    )
        # Connections of the client end a moment after it.
        time.sleep(2)
        found = {
            "server": server.command,
            "minutes": given.soak_minutes,
            "rates": rates,
            "thirds": thirds,
            "mebibytes_per_hour": {n: watch.slope_per_hour(n, third) / 2**20 for n in ("rss", "own")},
            "descriptors_per_hour": watch.slope_per_hour("descriptors", third),
            "descriptors": {"greatest": watch.greatest("descriptors"), "after": server.descriptors()},
            "p99_last_to_first": {
                name: thirds[2][name]["milliseconds"]["p99"] / thirds[0][name]["milliseconds"]["p99"] for name in kinds
            },
            "is_alive": server.is_alive(),
        }
    print(
        f"memory {found['mebibytes_per_hour']['own']:+.1f} MiB an hour, descriptors {found['descriptors_per_hour']:+.1f} an hour "
        f"({found['descriptors']}), p99 of the last third to the first {found['p99_last_to_first']}"
    )
    return found
