"""A client beside servers that are busy, slow, gone or about to stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import metra
import pytest
from processes import Metra, Upstream


def hold_memory(port: int, size: int) -> socket.socket:
    """A connection whose body takes all memory for bodies, and whose last byte does not come."""
    connection = socket.create_connection(("127.0.0.1", port))
    head = f"POST /v1/map HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    connection.sendall(head.encode() + b" " * (size - 1))
    return connection


def wait_for(holds: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_an_overloaded_server_is_asked_again(program: Metra, served: Any, models: Any, nuisance: Any) -> None:
    X, _ = nuisance
    limits = ("--max-body", "64K", "--max-memory", "64K")
    with program.serve(served.folder / "plain.safetensors", *limits) as server:
        once = metra.Client(server.address, tries=1)
        holders: list[socket.socket] = []

        def is_refused() -> bool:
            # A holder that came in between two requests of ours was refused itself, and another one is needed.
            for holder in holders:
                holder.close()
            holders[:] = [hold_memory(server.port, 65536)]
            time.sleep(0.2)
            try:
                once.map(X)
            except metra.ServerError as error:
                assert (error.status, error.code) == (503, "overloaded")
                return True
            return False

        wait_for(is_refused)
        refused = server.metric("metra_refusals_total", reason="overloaded")

        def let_go() -> None:
            wait_for(lambda: server.metric("metra_refusals_total", reason="overloaded") > refused)
            holders[0].close()

        release = threading.Thread(target=let_go)
        release.start()
        began = time.monotonic()
        with metra.Client(server.address, tries=5) as client:
            found = client.map(X)
        release.join()
        # Retry-After is a second, which is waited for.
        assert time.monotonic() - began >= 1.0
        assert found.tobytes() == models["plain"].transform(X).tobytes()


def test_a_stopped_server_is_found_again(program: Metra, served: Any, models: Any, nuisance: Any) -> None:
    X, _ = nuisance
    file = served.folder / "plain.safetensors"
    with program.serve(file) as server:
        port, client = server.port, metra.Client(server.address, tries=1)
        expected = client.map(X[:2])
    with pytest.raises(metra.ServerError, match="expected an answer of http://127.0.0.1") as caught:
        client.map(X[:2])
    assert (caught.value.status, caught.value.code) == (None, "unreachable")
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
    # The connection of the first server is closed; nobody need know.
    with program.serve(file, bind=f"127.0.0.1:{port}"):
        assert client.map(X[:2]).tobytes() == expected.tobytes()


def test_idle_connections_that_the_server_closed_cost_no_try(program: Metra, served: Any, nuisance: Any) -> None:
    X, _ = nuisance
    with program.serve(served.folder / "plain.safetensors", "--client-timeout", "0.3") as server:
        client = metra.Client(server.address, tries=1)
        for _ in range(3):
            client.map(X[:2])
            wait_for(lambda: server.metric("metra_connections") <= 1)


def test_requests_outlive_a_restart(program: Metra, served: Any, nuisance: Any) -> None:
    X, _ = nuisance
    file = served.folder / "plain.safetensors"
    with program.serve(file) as server:
        port, address = server.port, server.address
    client = metra.Client(address, tries=8)
    found: list[Any] = []
    asking = threading.Thread(target=lambda: found.append(client.map(X)))
    asking.start()
    with program.serve(file, bind=f"127.0.0.1:{port}"):
        asking.join(timeout=60)
    assert found and found[0].shape == (360, 5)


def test_a_silent_server_is_given_up(nuisance: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = metra.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.3)
        began = time.monotonic()
        with pytest.raises(metra.ServerError, match="found none within 0.3 s") as caught:
            client.map(nuisance[0])
    assert (caught.value.status, caught.value.code) == (None, "timeout")
    # It may be at work still, and is not given the same work again.
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("failure", [{"close": True}, {"half": True}, {"status": 503}, {"status": 429, "retry_after": 0}])
def test_what_passes_is_tried_again(failure: Any, source: Upstream, words: Any) -> None:
    source.control(failures=[failure, failure])
    texts = words.questions[:3]
    client = metra.Client(source.address)
    assert client.embed(texts).tobytes() == words.embed(texts).tobytes()
    assert len(source.control()["requests"]) == 3


@pytest.mark.parametrize("failure", [{"close": True}, {"status": 503, "retry_after": 0}])
def test_what_lasts_is_an_error_after_all_tries(failure: Any, source: Upstream) -> None:
    source.control(lasting=failure)
    with pytest.raises(metra.ServerError):
        metra.Client(source.address, tries=2).embed("a text")
    assert len(source.control()["requests"]) == 2


def test_the_server_says_how_long_to_wait(source: Upstream) -> None:
    source.control(failures=[{"status": 429, "retry_after": 1}])
    metra.Client(source.address).embed("a text")
    first, second = source.control()["requests"]
    assert 1.0 <= second["time"] - first["time"] < 3.0
    # A date, which is past.
    source.control(failures=[{"status": 429, "retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}])
    metra.Client(source.address).embed("a text")
    assert len(source.control()["requests"]) == 2
    # Longer than anybody waits for an answer.
    source.control(lasting={"status": 503, "retry_after": 3600})
    with pytest.raises(metra.ServerError, match="a failure of the test") as caught:
        metra.Client(source.address).embed("a text")
    assert caught.value.status == 503 and len(source.control()["requests"]) == 1


@pytest.mark.parametrize("failure", [{"status": 500}, {"status": 400}, {"status": 504}])
def test_other_errors_are_not_tried_again(failure: Any, source: Upstream) -> None:
    source.control(lasting=failure)
    with pytest.raises(metra.ServerError, match="asked_for") as caught:
        metra.Client(source.address).embed("a text")
    assert caught.value.status == failure["status"] and len(source.control()["requests"]) == 1


def test_what_is_no_server_of_metra_is_told(source: Upstream) -> None:
    source.control(lasting={"text": "<html>"})
    with pytest.raises(metra.ServerError, match="expected JSON, but found b'<html>'"):
        metra.Client(source.address).embed("a text")
    with pytest.raises(metra.ServerError) as caught:
        metra.Client(source.address).models()
    assert caught.value.status in (404, 501) and caught.value.code == "unknown"


def test_feedback_is_not_written_twice(source: Upstream) -> None:
    # The address of feedback is unknown there; that it is asked once is what counts.
    with pytest.raises(metra.ServerError) as caught:
        metra.Client(source.address).feedback("q", ["a"], [])
    assert caught.value.status == 404
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = metra.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", tries=3, timeout=5)
        taken: list[bytes] = []

        def hang_up() -> None:
            listener.settimeout(1.5)
            try:
                while True:
                    connection, _ = listener.accept()
                    taken.append(connection.recv(65536))
                    connection.close()
            except TimeoutError:
                pass

        gone = threading.Thread(target=hang_up)
        gone.start()
        with pytest.raises(metra.ServerError, match="unreachable"):
            client.feedback("q", ["a"], [])
        gone.join()
        assert len(taken) == 1


def test_a_forked_process_uses_connections_of_its_own(served: Any, nuisance: Any) -> None:
    # In a process without threads, in which a fork is safe.
    code = """
import os, sys
import numpy as np, metra
client = metra.Client(sys.argv[1], model="plain")
rows = np.arange(64, dtype=np.float32).reshape(4, 16)
expected = client.map(rows).tobytes()
child = os.fork()
if child == 0:
    os._exit(0 if all(client.map(rows).tobytes() == expected for _ in range(50)) else 3)
right = all(client.map(rows).tobytes() == expected for _ in range(50))
sys.exit(0 if right and os.waitpid(child, 0)[1] == 0 else 4)
"""
    done = subprocess.run([sys.executable, "-c", code, served.address], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_server_that_is_about_to_stop_says_so(program: Metra, served: Any, nuisance: Any) -> None:
    X, _ = nuisance
    with program.serve(served.folder / "plain.safetensors", drain_delay=1.5) as server:
        client = metra.Client(server.address)
        expected = client.map(X[:1])
        assert client._transport._idle
        os.kill(server.process.pid, signal.SIGTERM)
        # Requests are taken until the delay is over; their connections are closed, which the client sees. The signal
        # may come after the first of them.
        asked_until = time.monotonic() + 1
        while client._transport._idle:
            assert time.monotonic() < asked_until, "the connection was kept"
            assert client.map(X[:1]).tobytes() == expected.tobytes()
