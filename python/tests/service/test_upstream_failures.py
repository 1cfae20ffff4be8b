"""A server of embeddings that fails in every way: passing failures do not show, lasting ones are said, and it is not asked ever more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import metra
import pytest
from processes import Metra, Process, Upstream

TIME = 0.5


@pytest.fixture()
def front(program: Metra, source: Upstream, words: Any) -> Iterator[Process]:
    """A server with a whole budget of repeats."""
    with program.serve(words.one_file, "--upstream", source.address + "/v1", "--upstream-timeout", TIME) as server:
        yield server


def failed(front: Process, text: str = "a text", error: Any = (502, "upstream_failed")) -> str:
    """The message of a request that fails by the upstream."""
    with metra.Client(front.address, tries=1) as client, pytest.raises(metra.ServerError) as caught:
        client.embed(text)
    assert (caught.value.status, caught.value.code) == error
    return caught.value.message


PASSING = [
    {"slow": 4 * TIME},
    {"status": 500},
    {"status": 503},
    {"status": 429},
    {"status": 429, "retry_after": 1},
    {"close": True},
    {"half": True},
]


@pytest.mark.parametrize("failure", PASSING, ids=str)
def test_passing_failures_do_not_show(failure: Any, front: Process, source: Upstream, words: Any) -> None:
    source.control(failures=[failure, failure])
    texts = words.questions[:3]
    began = time.monotonic()
    with metra.Client(front.address, tries=1) as client:
        assert client.embed(texts).tobytes() == words.one.transform(words.embed(texts)).tobytes()
    asked = source.control()["requests"]
    assert len(asked) == 3
    if "retry_after" in failure:
        assert time.monotonic() - began >= 2.0
        assert all(later["time"] - first["time"] >= 1.0 for first, later in zip(asked, asked[1:]))
    assert front.metric("metra_upstream_requests_total", outcome="failure") == 2
    assert front.metric("metra_upstream_requests_total", outcome="success") == 1


LASTING = [
    ({"slow": 4 * TIME}, 3, "it did not answer in time"),
    ({"status": 500}, 3, "it answered 500"),
    ({"status": 429}, 3, "it answered 429"),
    ({"close": True}, 3, "the connection broke off"),
    ({"half": True}, 3, "the connection broke off"),
    # What asking again cannot mend is not asked again.
    ({"status": 401}, 1, "it answered 401"),
    ({"status": 404}, 1, "it answered 404"),
    ({"status": 307}, 1, "it answered 307"),
    ({"status": 429, "retry_after": 60}, 1, "it answered 429"),
    ({"text": "<html>out of order</html>"}, 1, "not a list of embeddings in OpenAI's form"),
    ({"dimension": 128}, 1, "vectors of 128 dimensions, but the model takes 256"),
    ({"missing": 1}, 1, "0 vectors for 1 texts"),
]


@pytest.mark.parametrize(("failure", "tries", "problem"), LASTING, ids=str)
def test_lasting_failures_are_said(failure: Any, tries: int, problem: str, front: Process, source: Upstream) -> None:
    source.control(lasting=failure)
    message = failed(front)
    assert problem in message and "upstream server of embeddings" in message
    # Where it is, is nobody's business who asks.
    assert str(source.port) not in message and "127.0.0.1" not in message
    assert len(source.control()["requests"]) == tries
    # What serves without it goes on, and so does this when the failure is over.
    with metra.Client(front.address, tries=1) as client:
        assert client.map([[0.0] * 256]).shape == (1, 5)
        assert client.embed("a text").shape == (1, 5)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_texts_that_the_upstream_refuses_are_the_mistake_of_who_sent_them(
    status: int, front: Process, source: Upstream
) -> None:
    source.control(lasting={"status": status})
    assert f"it answered {status}" in failed(front, error=(400, "bad_request"))
    assert len(source.control()["requests"]) == 1


def test_an_upstream_that_cannot_be_reached(program: Metra, words: Any) -> None:
    with program.serve(words.one_file, "--upstream", "http://127.0.0.1:9/v1") as server:
        assert "it cannot be reached" in failed(server)
        assert server.metric("metra_upstream_requests_total", outcome="failure") == 3


def test_answers_are_right_while_every_third_fails(front: Process, source: Upstream, words: Any) -> None:
    client = metra.Client(front.address, tries=1)
    for number, text in enumerate(words.documents[:20]):
        if number % 3 == 2:
            source.control(failures=[{"status": 502}])
        assert client.embed(text).tobytes() == words.one.transform(words.embed([text])).tobytes()


@pytest.mark.parametrize("threads", [1, 16])
def test_repeats_are_a_tenth_of_requests(threads: int, front: Process, source: Upstream) -> None:
    source.control(lasting={"status": 500})
    count = 200
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda number: failed(front, f"text {number}"), range(count)))
    repeats = len(source.control()["requests"]) - count
    # What a quiet time has saved are ten; after that a tenth of all.
    assert 10 <= repeats <= 10 + count // 10 + threads
    # It recovers at once.
    with metra.Client(front.address, tries=1) as client:
        assert client.embed("a text").shape == (1, 5)


def test_many_at_once_with_a_slow_upstream(program: Metra, source: Upstream, words: Any) -> None:
    texts = words.documents[:8]
    # More requests than are worked on at once: whoever waits for the upstream takes no turn.
    limits = ("--concurrency", "1", "--queue", "8")
    with program.serve(words.one_file, "--upstream", source.address + "/v1", *limits) as server:
        source.control(lasting={"slow": 0.5})
        began = time.monotonic()
        with metra.Client(server.address) as client, ThreadPoolExecutor(8) as pool:
            found = list(pool.map(client.embed, texts))
        assert time.monotonic() - began < 3
    for text, row in zip(texts, found):
        assert row.tobytes() == words.one.transform(words.embed([text])).tobytes()
