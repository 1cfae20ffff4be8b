"""Attacks by size, number and slowness: bodies, answers and connections that cost the server more than the client."""

import random
import resource
import socket
import threading
import time

import fuzzing
import load
from data import clustered
from fuzzing import DIM, exchange, one_answer, request, statuses
from tried import good, tried

# Seconds that the server gives slow clients (--client-timeout) here.
CLIENT_TIME = 3
SLOW, MIB = 1_000, 1 << 20
# Descriptors of a server whose clients have gone, at most.
MOST_HELD = 40


def together(count: int, work) -> list:
    """What `work(number)` returns in each of so many threads."""
    results: list = [None] * count

    def run(number: int) -> None:
        try:
            results[number] = work(number)
        except OSError as error:
            results[number] = repr(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def large_bodies(server) -> dict:
    """Above --max-body, announced and not; then as many whole ones as the memory for bodies lets in."""
    over = b" " * (17 * MIB)
    cases = {
        "announced": request("POST", "/v1/map", over),
        "announced only": request("POST", "/v1/map", over)[:400],
        "in chunks": fuzzing.chunked("/v1/map", over, load.JSON),
        "1 TiB announced": request("POST", "/v1/map").replace(b"Content-Length: 0", b"Content-Length: 1099511627776"),
    }
    return tried(server, cases, {413, 408}, 10)


def many_numbers(server) -> dict:
    """Bodies just below the limit, two bytes a number, 64 at once."""
    row = "[" + ",".join(["0"] * DIM) + "]"
    cases = {
        "one long vector": '{"vectors": [[' + "0," * (8 * MIB - 100) + "0]]}",
        "many vectors": '{"vectors": [' + (row + ",") * (16 * MIB // (len(row) + 1) - 10) + row + "]}",
        "many ids": '{"query": "q", "shown": [' + '"a",' * (4 * MIB - 100) + '"a"]}',
        "many texts": '{"input": [' + '"",' * (5 * MIB - 100) + '""]}',
    }
    paths_of = {"many ids": "/v1/feedback", "many texts": "/v1/embeddings"}
    answers, problems = {}, []
    for name, text in cases.items():
        data = request("POST", paths_of.get(name, "/v1/map"), text.encode())
        found = together(64, lambda _: str(exchange(server.port, data, 60)[0]))
        answers[name] = {one: found.count(one) for one in set(found)}
        if any("5" == one[1:2] and "503" not in one for one in found):
            problems.append(f"{name}: {answers[name]}")
        if not server.is_alive():
            problems.append(f"{name}: the server ended with status {server.process.poll()}")
            break
    return {"answers": answers, "counts": answers, "problems": problems}


def many_answers(server) -> dict:
    """The greatest number of queries with the greatest k: a small body with a large answer, four at once."""
    limits = {"queries": 10_000, "k": 1_000}
    row = "[" + ",".join(["0"] * (DIM - 1)) + ",{}]"
    rows = ",".join(row.format(n / 7) for n in range(limits["queries"]))
    body = f'{{"k": {limits["k"]}, "vectors": [{rows}]}}'.encode()
    data = request("POST", "/v1/search", body)

    def one(_: int) -> tuple[list[int], int]:
        with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
            connection.settimeout(90)
            connection.sendall(data)
            size, start = 0, b""
            while part := connection.recv(1 << 20):
                start = start or part
                size += len(part)
            return statuses(start.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"), size

    began = time.perf_counter()
    found = together(4, one)
    problems = [] if server.is_alive() else [f"the server ended with status {server.process.poll()}"]
    return {
        **limits,
        "body_bytes": len(body),
        "seconds": time.perf_counter() - began,
        "found": [str(f) for f in found],
        "problems": problems,
    }


def opened(server, count: int, first: bytes) -> list[socket.socket]:
    """Connections that have sent so much."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    connections = []
    for _ in range(count):
        try:
            connection = socket.create_connection(("127.0.0.1", server.port), 1)
        except TimeoutError:
            # The system lets no more wait for the server.
            break
        connection.sendall(first)
        connections.append(connection)
    return connections


def served_beside(server, seconds: float, each=lambda: None) -> dict:
    """Valid requests beside an attack: how many were answered with which status, and how long they took."""
    times, counts, messages = [], {}, set()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.perf_counter()
        try:
            found, came, _ = exchange(server.port, good(server), 5)
        except OSError as error:
            found, came = [repr(error)], b""
        times.append(time.perf_counter() - began)
        status = str(found[0]) if found else "no answer"
        counts[status] = counts.get(status, 0) + 1
        if status != "200":
            messages.add(came.rpartition(b"\r\n\r\n")[2][:160].decode(errors="replace"))
        each()
        time.sleep(0.05)
    return {"statuses": counts, "longest_milliseconds": 1e3 * max(times), "messages": sorted(messages)}


def ended(connections: list[socket.socket]) -> int:
    """How many of them the server has closed."""
    count = 0
    for connection in connections:
        connection.setblocking(False)
        try:
            while part := connection.recv(1 << 16):
                pass
            count += part == b""
        except BlockingIOError:
            pass
        except OSError:
            count += 1
        connection.close()
    return count


def slow_clients(server) -> dict:
    """A thousand connections that send a byte now and then: half of them in the head, half in the body."""
    head = opened(server, SLOW // 2, b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nX: ")
    body = opened(
        server,
        SLOW // 2,
        b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{",
    )

    def drip() -> None:
        for connection in random.sample(head + body, 200):
            try:
                connection.send(b"a")
            except OSError:
                # The server has closed it, which is what is wanted.
                pass

    before = server.descriptors()
    beside = served_beside(server, CLIENT_TIME + 3, drip)
    held = server.descriptors()
    # Connections that the system took for the server and that it never saw: its queue of connections was full.
    unseen = SLOW - ended(head + body)
    problems = []
    if held > MOST_HELD:
        problems.append(f"{held} descriptors are open {CLIENT_TIME + 3} s later; the limit is {CLIENT_TIME} s")
    if set(beside["statuses"]) != {"200"}:
        problems.append(f"valid requests beside it: {beside}")
    if unseen:
        problems.append(f"{unseen} of {SLOW} connections, opened at once, were never accepted: the backlog was full")
    descriptors = {"before": before, "after": held}
    return {"connections": SLOW, "descriptors": descriptors, "unseen": unseen, "beside": beside, "problems": problems}


def announced_bodies(server) -> dict:
    """Connections that announce a large body and send nothing of it: cheap for them, and must be for the server."""
    first = (
        b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % (16 * MIB)
    )
    connections = opened(server, 100, first)
    beside = served_beside(server, CLIENT_TIME - 1)
    ended(connections)
    chunked = b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    connections = opened(server, 100, chunked)
    beside_chunked = served_beside(server, CLIENT_TIME - 1)
    ended(connections)
    problems = []
    for name, one in [("announced", beside), ("in chunks", beside_chunked)]:
        if set(one["statuses"]) != {"200"}:
            problems.append(f"100 bodies {name} of which nothing comes: valid requests beside them: {one}")
    return {"connections": 100, "announced": beside, "chunked": beside_chunked, "problems": problems}


def deaf_clients(server) -> dict:
    """Large answers that nobody takes: the memory of them must be given back."""
    body = clustered(10_000, DIM, 3).tobytes()
    data = request("POST", "/v1/search", load.as_json(clustered(1_000, DIM, 3), k=500))
    connections = []
    for _ in range(12):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(5)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(data)
        connections.append(connection)
    beside = served_beside(server, 4 * CLIENT_TIME)
    held = server.memory()["own"]
    descriptors = server.descriptors()
    for connection in connections:
        connection.close()
    time.sleep(1)
    problems = []
    if set(beside["statuses"]) != {"200"}:
        problems.append(f"valid requests beside it: {beside}")
    if descriptors - server.descriptors() > 4:
        problems.append(f"{descriptors - server.descriptors()} connections were open until their clients closed them")
    return {
        "connections": len(connections),
        "beside": beside,
        "own_memory": held,
        "binary_body_bytes": len(body),
        "problems": problems,
    }


def no_descriptors(server) -> dict:
    """More connections than the system lets the server have: who is connected is still served, and the others later."""
    most = 512
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (most, before[1]))
    early = socket.create_connection(("127.0.0.1", server.port), 5)
    early.settimeout(10)
    data = good(server).replace(b"Connection: close", b"Connection: keep-alive")
    connections = opened(server, 2 * most, b"")
    counts: dict[str, int] = {}
    ends = time.monotonic() + CLIENT_TIME - 1
    with early:
        while time.monotonic() < ends:
            try:
                early.sendall(data)
                status = one_answer(early)[:12].decode()
            except OSError as error:
                status = repr(error)
            counts[status] = counts.get(status, 0) + 1
            time.sleep(0.05)
    reload = "no connection"
    try:
        reload = str(server.post("/v1/admin/reload", {}, wait=3 * CLIENT_TIME).status)
    except OSError as error:
        reload = repr(error)
    time.sleep(2 * CLIENT_TIME)
    closed = ended(connections)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
    problems = []
    if set(counts) != {"HTTP/1.1 200"}:
        problems.append(f"requests of a connection that was there before: {counts}")
    if closed < len(connections):
        problems.append(f"{len(connections) - closed} of {len(connections)} idle connections are still open")
    return {
        "descriptors": most,
        "connections": len(connections),
        "closed": closed,
        "connected": counts,
        "reload": reload,
        "problems": problems,
    }
