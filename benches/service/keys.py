"""Keys: what each may do, whether the log has them, and whether the time of a refusal says how much of a key is right."""

import math
import random
import socket
import time

import numpy as np

import load
from data import clustered
from fuzzing import DIM, one_answer
from server import Server

READ, ADMIN = "3f9c2a7e51d84b06-reading-key", "a81d57c3e9f24b60-operations-key"


def keys(given, model) -> dict:
    file, log = given.scratch / "keys", given.scratch / "keys.log"
    file.write_text(f"read {READ}\nadmin {ADMIN}\n")
    file.chmod(0o600)
    problems = []
    bearer = lambda key: {"Authorization": f"Bearer {key}"}  # noqa: E731
    wrong = READ[:-1] + "X"
    with Server(given.metra, model, "--keys", file, core=given.cores.server, log=log) as server:
        rows = load.as_json(clustered(1, DIM, 3))
        for path, method, key, expected in [
            ("/healthz", "GET", None, 200), ("/readyz", "GET", None, 200), ("/v1/models", "GET", None, 401), ("/metrics", "GET", None, 401),
            ("/openapi.json", "GET", None, 401), ("/v1/map", "POST", None, 401), ("/v1/map", "POST", wrong, 401), ("/v1/map", "POST", READ, 200),
            ("/v1/map", "POST", ADMIN, 200), ("/v1/admin/reload", "POST", None, 401), ("/v1/admin/reload", "POST", READ, 403),
            ("/v1/admin/reload", "POST", ADMIN, 200), ("/absent", "GET", None, 401), (f"/v1/models?key={READ}", "GET", None, 401),
            ("/v1/map", "POST", READ.upper(), 401), ("/v1/map", "POST", READ + " ", 200), ("/v1/map", "POST", READ * 1000, 401),
        ]:  # fmt: skip
            headers = {"Content-Type": load.JSON, **(bearer(key) if key else {})}
            answer = server.ask(method, path, rows if method == "POST" else None, headers)
            if answer.status != expected:
                problems.append(
                    f"{method} {path} with {key and key[:40]!r}: expected status {expected}, but found {answer.status}"
                )
            if answer.status == 401 and answer.headers.get("www-authenticate") != "Bearer":
                problems.append(f"{method} {path}: status 401 without WWW-Authenticate")
        for scheme in ("bearer ", "Basic ", "Bearer  ", "", "Bearer\t"):
            status = server.ask("GET", "/v1/models", headers={"Authorization": scheme + READ}).status
            if status not in (200, 401):
                problems.append(f"Authorization {scheme!r}: status {status}")
        tests = key_times(server, given.comparisons)
        status = server.stop()
    text = log.read_text(errors="replace")
    leaked = [key[:8] for key in (READ, ADMIN, wrong) if key in text or key[:12] in text]
    if "/v1/models" not in text:
        problems.append("the log has no lines for requests, so that nothing was looked at")
    if leaked:
        problems.append(f"the log has keys: {leaked}")
    command_line = " ".join(server.command)
    if READ in command_line:
        problems.append("the command line has a key")
    problems += [f"{name}: t = {t:.1f}, times tell keys apart" for name, t in tests["t"].items() if abs(t) > 4.5]
    return {"timing": tests, "exit_status": status, "log_bytes": len(text), "problems": problems}


def key_times(server, count: int) -> dict:
    """Welch's t of the times of refusals, in turns over one connection; the slowest tenth is left out. Above 4.5 is a leak."""
    random_key = lambda draw: "".join(draw.choice("0123456789abcdef") for _ in READ)  # noqa: E731
    draw = random.Random(1)
    ways = {
        "right prefix": lambda: READ[:-1] + draw.choice("XYZ"),
        "wrong prefix": lambda: draw.choice("XYZ") + READ[1:],
        "random": lambda: random_key(draw),
    }
    times: dict[str, list[int]] = {way: [] for way in ways}
    connection = socket.create_connection(("127.0.0.1", server.port), 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    order = list(ways)
    with connection:
        for _ in range(count):
            draw.shuffle(order)
            # All are made before one is timed: what this process does between requests shows in the times.
            made = [
                f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ways[way]()}\r\n\r\n".encode()
                for way in order
            ]
            for way, data in zip(order, made):
                began = time.perf_counter_ns()
                connection.sendall(data)
                came = one_answer(connection)
                times[way].append(time.perf_counter_ns() - began)
                if not came.startswith(b"HTTP/1.1 401"):
                    raise SystemExit(f"expected status 401, but found {came[:100]!r}")
    kept = {way: np.sort(np.array(values))[: int(0.9 * len(values))] for way, values in times.items()}
    t = {}
    for one, other in [("right prefix", "wrong prefix"), ("right prefix", "random")]:
        a, b = kept[one], kept[other]
        t[f"{one} and {other}"] = float((a.mean() - b.mean()) / math.sqrt(a.var() / len(a) + b.var() / len(b)))
    return {
        "repeats": count,
        "microseconds": {way: float(np.median(values)) / 1e3 for way, values in kept.items()},
        "t": t,
    }
