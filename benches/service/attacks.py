"""Requests of somebody who means harm: the server must go on serving others, within its memory, and say no more than it should.

Each attack is a function that returns its figures with a list `problems`, which is empty where all is well. Between attacks a
valid request must be answered as before. Limits of time are shorter than by default, so that waiting for them takes seconds.
"""

import gzip
import json
import re

import numpy as np

import fuzzing
import load
import pressure
from data import clustered
from fuzzing import DIM, request
from keys import keys
from pressure import CLIENT_TIME, MIB
from server import Server, Watch
from tried import still_serves, tried

ITEMS = 3_000
# What may stay beside the bodies that are held (--max-memory, 512 MiB): numbers that were read from them.
MOST_OWN = 2_048 * MIB


def measure(given) -> dict:
    found = {}
    model = given.prepared.model(DIM, 4)
    index = given.prepared.index(model, ITEMS, DIM, "graph", labels=True)
    log, feedback = given.scratch / "attacks.log", given.scratch / "clicks.jsonl"
    limits = ["--client-timeout", CLIENT_TIME, "--feedback-size", "1M"]
    arguments = [model, "--index", index, "--feedback", feedback, *limits]
    attacks = {
        "fuzzed": lambda server: fuzzing.Fuzz(server.port, given.fuzzed, given.seed).run(),
        "paths": paths,
        "heads": heads,
        "bodies": bodies,
        "zip bombs": zip_bombs,
        "large bodies": pressure.large_bodies,
        "many numbers": pressure.many_numbers,
        "many answers": pressure.many_answers,
        "slow clients": pressure.slow_clients,
        "announced bodies": pressure.announced_bodies,
        "deaf clients": pressure.deaf_clients,
        "no descriptors": pressure.no_descriptors,
        "other pages": other_pages,
    }
    for name, attack in attacks.items():
        with Server(given.metra, *arguments, core=given.cores.server, log=log) as server:
            before = server.memory()
            with Watch(server, 0.1) as watch:
                one = attack(server)
            problems = one.setdefault("problems", [])
            if "odd" in one and one["odd"]:
                problems.append(f"{len(one['odd'])} answers that nobody expects, the first: {one['odd'][0]}")
            one["memory"] = {
                "before": before["own"],
                "greatest": watch.greatest("own"),
                "after": server.memory()["own"] if server.is_alive() else None,
            }
            if one["memory"]["greatest"] > MOST_OWN:
                problems.append(f"memory of {load.memory_text(one['memory']['greatest'])}")
            still_serves(server, problems)
            one["server"] = server.command
            counted = server.counters() if server.is_alive() else {}
            one["errors_of_server"] = {n: v for n, v in counted.items() if "requests_total" in n and 'status="5' in n}
            unnamed = {n: v for n, v in one["errors_of_server"].items() if 'status="503"' not in n}
            if unnamed:
                problems.append(f"errors of the server: {unnamed}")
        found[name] = one
        tell(name, one)
    found["feedback_bytes"] = sum(p.stat().st_size for p in feedback.parent.glob("clicks.jsonl*"))
    found["panics"] = len(re.findall(r"panicked", log.read_text(errors="replace")))
    found["log_bytes"] = log.stat().st_size
    print(f"panics in the log: {found['panics']}")
    found["keys"] = keys(given, model)
    tell("keys", found["keys"])
    return found


def tell(name: str, one: dict) -> None:
    shown = {
        k: v
        for k, v in one.items()
        if k not in ("problems", "memory", "server", "odd", "seed", "errors_of_server", "answers")
    }
    memory = one.get("memory")
    print(
        f"{name:17} {'PROBLEMS' if one['problems'] else 'ok':8} {shown} "
        + (f"memory to {load.memory_text(memory['greatest'])}" if memory else "")
    )
    for problem in one["problems"]:
        print(f"{'':17} {problem[:1500]}")
    print(end="", flush=True)


def paths(server) -> dict:
    tricks = [
        "/../../etc/passwd", "/v1/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/%2e%2e%2fadmin/reload", "//v1/models", "/v1//models",
        "/v1/models/", "/v1/models/../admin", "/v1/models%00", "/v1/models;a=b", "/V1/MODELS", "/v1/admin", "/.git/config", "/metrics/../healthz",
        "http://127.0.0.1:9/v1/models", "http://user@evil.example/healthz", "*", "/" + "a" * 8_000, "/" + "a" * 70_000, "/v1/map?" + "a=b&" * 5_000,
        "/v1/map?model=../../../etc/passwd", "/v1/map?model=m%0d%0aX-Evil:%201", "/v1/map?model=a&model=b", "/v1/map?side=neither", "/\xe4\xf6", "/%ff%fe",
    ]  # fmt: skip
    cases = {
        f"{method} {path[:60]} ({len(path)})": request(method, path, b"{}")
        for path in tricks
        for method in ("GET", "POST")
    }
    for method in ("PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "M" * 300):
        cases[f"{method[:20]} /v1/models"] = request(method, "/v1/models")
        cases[f"{method[:20]} /v1/admin/reload"] = request(method, "/v1/admin/reload")
    # What is not an address of the server must not be answered as if it were; OPTIONS and HEAD may have an empty answer.
    found = tried(server, cases, {200, 400, 404, 405, 413, 414, 431})
    for name, (first, *_) in found["answers"].items():
        if first == 200 and not any(fine in name for fine in ("HEAD", "OPTIONS", "http://")):
            found["problems"].append(f"{name}: answered with status 200")
    return found


def heads(server) -> dict:
    start = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    body = load.as_json(clustered(1, DIM, 3))
    length = b"Content-Length: %d\r\n" % len(body)
    post = b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    cases = {
        "a header of 1 MiB": start + b"X: " + b"a" * MIB + b"\r\n\r\n",
        "10,000 headers": start + b"".join(b"X-%d: 1\r\n" % n for n in range(10_000)) + b"\r\n",
        "1,000 pipelined": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000 + start + b"\r\n",
        "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
        "length and chunks": post + length + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two lengths": post + length + b"Content-Length: 1\r\n\r\n" + body,
        "length below 0": post + b"Content-Length: -5\r\n\r\n" + body,
        "length above u64": post + b"Content-Length: 99999999999999999999999\r\n\r\n" + body,
        "endless size of a chunk": post + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 100_000,
        "large extension of a chunk": post + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"a" * MIB,
        "many chunks of one byte": post
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + b"1\r\n \r\n" * 200_000
        + b"0\r\n\r\n",
        "large trailers": post + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n" + b"X: a\r\n" * 100_000 + b"\r\n",
        "smuggled by a space": post + b"Transfer-Encoding : chunked\r\n" + length + b"\r\n" + body,
        "smuggled by a line feed": post.replace(b"\r\n", b"\n") + length.replace(b"\r\n", b"\n") + b"\n" + body,
        "no host": b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n",
        "TLS": bytes.fromhex("16030100c5010000c10303") + bytes(200),
        "nothing but line feeds": b"\r\n" * 100_000,
        "id with line feed": start + b"X-Request-Id: a\nb\r\n\r\n",
        "upgrade": start.replace(b"close", b"Upgrade")
        + b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\n\r\n",
        "continue, and nothing": post + length + b"Expect: 100-continue\r\n\r\n",
    }
    return tried(server, cases, {100, 200, 400, 404, 405, 408, 413, 414, 431}, CLIENT_TIME + 2)


def bodies(server) -> dict:
    deep = 200_000
    rows = json.dumps(clustered(1, DIM, 3).tolist())
    texts = {
        "nested arrays": "[" * deep,
        "nested vectors": '{"vectors": ' + "[" * deep + "]" * deep + "}",
        "nested objects": '{"model": ' + '{"a":' * deep + "1" + "}" * deep + "}",
        "nested unknown field": '{"input": ["a"], "x": ' + "[" * deep + "]" * deep + "}",
        "a field a million times": '{"model": "m"' + ', "model": "m"' * 300_000 + "}",
        "a field of a million letters": '{"' + "a" * MIB + '": 1}',
        "a number of a million digits": '{"vectors": [[' + "1" * MIB + "]]}",
        "a fraction of a million digits": '{"vectors": [[0.' + "1" * MIB + "]]}",
        "empty vectors": '{"vectors": [' + "[]," * 400_000 + "[]]}",
        "k 0": f'{{"vectors": {rows}, "k": 0}}',
        "k of all bits": f'{{"vectors": {rows}, "k": 18446744073709551615}}',
        "effort of all bits": f'{{"vectors": {rows}, "effort": 18446744073709551615}}',
        "large effort": f'{{"vectors": {rows}, "effort": 1000000000}}',
        "effort just below all items": f'{{"vectors": {rows}, "effort": {ITEMS // 2 - 1}}}',
        "numbers out of range": '{"vectors": [[' + ",".join(["1e39"] * DIM) + "]]}",
        "large numbers": '{"vectors": [[' + ",".join(["3e38"] * DIM) + "]]}",
        "100,000 labels": f'{{"vectors": {rows}, "filter": {{"label": {json.dumps([str(n) for n in range(100_000)])}}}}}',
        "surrogates": '{"vectors": [[1]], "model": "\\ud800"}',
        "not UTF-8": b'{"model": "\xff\xfe"}',
        "UTF-16": '{"vectors": [[1]]}'.encode("utf-16"),
    }
    cases = {}
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        for path in ("/v1/map", "/v1/search", "/v1/similar", "/v1/embeddings", "/v1/feedback"):
            cases[f"{path} {name}"] = request("POST", path, data)
    floats = np.full(DIM, np.nan, np.float32).tobytes()
    cases["binary NaN"] = request("POST", "/v1/map?side=item", floats, load.BINARY)
    cases["binary infinity"] = request(
        "POST", "/v1/map?side=item", np.full(DIM, np.inf, np.float32).tobytes(), load.BINARY
    )
    cases["binary 3 bytes"] = request("POST", "/v1/map?side=item", b"abc", load.BINARY)
    cases["binary nothing"] = request("POST", "/v1/map?side=item", b"", load.BINARY)
    return tried(server, cases, {200, 400, 404, 413, 415}, 20)


def zip_bombs(server) -> dict:
    bomb = gzip.compress(bytes(200 * MIB), 9)
    cases = {}
    for encoding in ("gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "GZIP", "x-gzip"):
        cases[encoding] = request("POST", "/v1/map", bomb, more=f"Content-Encoding: {encoding}\r\n")
    cases["gzip twice in two headers"] = request(
        "POST", "/v1/map", bomb, more="Content-Encoding: identity\r\nContent-Encoding: gzip\r\n"
    )
    cases["Transfer-Encoding: gzip, chunked"] = request(
        "POST", "/v1/map", bomb, more="Transfer-Encoding: gzip, chunked\r\n"
    )
    # Arrow has compression of its own inside a stream.
    cases["a bomb as Arrow"] = request("POST", "/v1/map", bomb, "application/vnd.apache.arrow.stream")
    cases["a bomb as JSON"] = request("POST", "/v1/map", bomb)
    return {"bomb_bytes": len(bomb), **tried(server, cases, {400, 413, 415}, 10)}


def other_pages(server) -> dict:
    """What a web page of somebody else could send from a browser on this machine, without leave (no preflight)."""
    page = "Origin: http://evil.example\r\n"
    feedback = json.dumps({"query": "q", "shown": ["a"], "clicked": ["a"]}).encode()
    cases = {
        "feedback as text/plain": request("POST", "/v1/feedback", feedback, "text/plain", page),
        "search as text/plain": request("POST", "/v1/search", load.as_json(clustered(1, DIM, 3)), "text/plain", page),
        "reload": request("POST", "/v1/admin/reload", b"", "text/plain", page),
        "models by another host": request("GET", "/v1/models").replace(b"Host: localhost", b"Host: evil.example"),
    }
    return tried(server, cases, {200, 202, 400, 403, 415, 421})
