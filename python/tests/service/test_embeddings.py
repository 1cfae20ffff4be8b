"""`/v1/embeddings` in front of a real server of embeddings: what comes is the model applied to its vectors."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import metra
import numpy as np
import pytest
from processes import Metra, Process, Upstream

KEY = "0123456789abcdef-of-the-upstream"


@pytest.fixture(scope="module")
def one(program: Metra, embeddings: Upstream, words: Any) -> Iterator[Process]:
    """A server of a model with one map."""
    options = ("--upstream", embeddings.address + "/v1", "--upstream-model", "small", "--upstream-batch", "50")
    with program.serve(words.one_file, *options, METRA_UPSTREAM_KEY=KEY) as server:
        yield server


@pytest.fixture(scope="module")
def two(program: Metra, embeddings: Upstream, words: Any) -> Iterator[Process]:
    """A server of a model with a map for each side."""
    with program.serve(words.two_file, "--upstream", embeddings.address + "/v1") as server:
        yield server


def ask(server: Process, **request: Any) -> tuple[int, Any]:
    """Status and answer of a request in OpenAI's form."""
    sent = urllib.request.Request(
        f"{server.address}/v1/embeddings", json.dumps(request).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_embeddings_are_mapped_vectors_of_the_upstream(one: Process, source: Upstream, words: Any) -> None:
    expected = words.one.transform(words.embed(words.documents))
    with metra.Client(one.address) as client:
        found = client.embed(words.documents)
        assert found.dtype == np.float32 and found.tobytes() == expected.tobytes()
        alone = words.one.transform(words.embed(words.documents[3:4]))
        assert client.embed(words.documents[3]).tobytes() == alone.tobytes()
    # 120 texts in parts of 50, then one; the key is the upstream's.
    asked = source.control()["requests"]
    assert [request["texts"] for request in asked] == [50, 50, 20, 1]
    assert {request["authorization"] for request in asked} == {f"Bearer {KEY}"}
    assert {request["model"] for request in asked} == {"small"}


def test_neither_keys_nor_texts_are_logged(program: Metra, source: Upstream, words: Any) -> None:
    own = "0123456789abcdef-of-the-server"
    options = ("--upstream", source.address + "/v1", "--verbose")
    variables = {"METRA_UPSTREAM_KEY": KEY, "METRA_KEYS": f"read {own}"}
    with program.serve(words.one_file, *options, **variables) as server:
        client = metra.Client(server.address, key=own)
        client.embed("a text that nobody may read")
        # What the upstream server answers wrongly is not repeated, either.
        source.control(failures=[{"text": "a text that nobody may read"}, {"status": 400}])
        for _ in range(2):
            with pytest.raises(metra.ServerError) as caught:
                client.embed("a text that nobody may read")
            assert KEY not in str(caught.value) and "nobody" not in str(caught.value)
        log = server.log()
    assert "/v1/embeddings" in log
    for secret in (KEY, own, "nobody may read"):
        assert secret not in log
    # The client's own key stays here.
    assert {request["authorization"] for request in source.control()["requests"]} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("form", ["float", "base64", None])
@pytest.mark.parametrize("several", [False, True])
def test_forms_of_openai(form: str | None, several: bool, one: Process, source: Upstream, words: Any) -> None:
    texts = words.questions[:4] if several else words.questions[:1]
    request: dict[str, Any] = {"input": texts if several else texts[0], "model": "one", "dimensions": 5, "user": "somebody"}
    if form is not None:
        request["encoding_format"] = form
    status, answer = ask(one, **request)
    assert status == 200 and answer["object"] == "list" and answer["model"].startswith("one@")
    assert [item["index"] for item in answer["data"]] == list(range(len(texts)))
    assert answer["usage"] == {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    found = [item["embedding"] for item in answer["data"]]
    if form == "base64":
        found = [np.frombuffer(base64.b64decode(text), dtype="<f4") for text in found]
    expected = words.one.transform(words.embed(texts))
    assert np.array(found, dtype=np.float32).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"input": []}, "at least one text"),
        ({"input": "a", "dimensions": 256}, "to be 5, which the model has, but found 256"),
        ({"input": "a", "encoding_format": "int8"}, "int8"),
        ({"input": [[1, 2], [3]]}, "the body"),
        ({"input": 7}, "the body"),
        ({}, "input"),
        ({"input": "a", "model": "other"}, "expected a model among one@"),
    ],
)
def test_requests_that_cannot_be_served(wrong: Any, problem: str, one: Process, source: Upstream) -> None:
    status, answer = ask(one, **wrong)
    assert status == (404 if "model" in wrong else 400)
    assert problem in answer["error"]["message"] and answer["error"]["type"] == "invalid_request_error"
    assert source.control()["requests"] == []


def test_queries_and_items_by_side_or_name(two: Process, source: Upstream, words: Any) -> None:
    text = words.questions[0]
    query = words.two.transform_queries(words.embed([text]))
    item = words.two.transform_items(words.embed([text]))
    assert query.tobytes() != item.tobytes()
    with metra.Client(two.address) as client:
        assert client.embed(text, side="query").tobytes() == query.tobytes()
        assert client.embed(text, side="item").tobytes() == item.tobytes()
        with pytest.raises(metra.ServerError, match='expected "side"'):
            client.embed(text)
    for name, expected in (("two:query", query), ("two:item", item)):
        with metra.Client(two.address, model=name) as client:
            assert client.embed(text).tobytes() == expected.tobytes()
    # A second side beside that of the name must be the same.
    status, answer = ask(two, input=text, model="two:query", side="item")
    assert status == 400, answer


def test_a_server_without_upstream_says_so(served: Process) -> None:
    with metra.Client(served.address, model="plain") as client, pytest.raises(metra.ServerError) as caught:
        client.embed("a text")
    assert caught.value.status == 404 and "--upstream" in str(caught.value)


def test_the_client_of_openai(program: Metra, source: Upstream, words: Any) -> None:
    openai = pytest.importorskip("openai")
    key = "0123456789abcdef-search"
    options = ("--upstream", source.address + "/v1")
    with program.serve(words.two_file, *options, METRA_KEYS=f"read {key}") as server:
        client = openai.OpenAI(base_url=f"{server.address}/v1", api_key=key, max_retries=0)
        texts = words.documents[:5]
        expected = words.two.transform_items(words.embed(texts))
        # By default it asks for base64 and decodes it.
        answer = client.embeddings.create(model="two:item", input=texts, dimensions=8)
        assert np.array([one.embedding for one in answer.data], dtype=np.float32).tobytes() == expected.tobytes()
        answer = client.embeddings.create(
            model="two", input=texts[0], encoding_format="float", extra_body={"side": "item"}
        )
        alone = words.two.transform_items(words.embed(texts[:1]))
        assert np.array([answer.data[0].embedding], dtype=np.float32).tobytes() == alone.tobytes()
        assert answer.usage.total_tokens == 1
        assert [model.id.partition("@")[0] for model in client.models.list()] == ["two"]
        with pytest.raises(openai.BadRequestError, match="side"):
            client.embeddings.create(model="two", input=texts)
        with pytest.raises(openai.NotFoundError, match="expected a model among"):
            client.embeddings.create(model="three", input=texts)
        with pytest.raises(openai.BadRequestError):
            # Tokens instead of texts, which this server has no words for.
            client.embeddings.create(model="two:item", input=[[1, 2, 3]])
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{server.address}/v1", api_key="other", max_retries=0).models.list()
        source.control(lasting={"status": 404})
        with pytest.raises(openai.InternalServerError, match="upstream server of embeddings failed"):
            client.embeddings.create(model="two:item", input=texts)
