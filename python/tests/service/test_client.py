"""What `metra.Client` gets from a real server is what the model gives in this process, bit for bit."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import metra
import numpy as np
import pytest
from conftest import CAMERAS
from processes import Metra, Process


@pytest.fixture()
def client(served: Process) -> Any:
    with metra.Client(served.address, model="plain") as client:
        yield client


def of(served: Process, model: str, **options: Any) -> metra.Client:
    return metra.Client(served.address, model=model, **options)


def same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("name", ["plain", "sides", "bytes", "calibrated"])
def test_mapped_vectors_are_those_of_the_model(name: str, served: Process, models: Any, nuisance: Any) -> None:
    X, _ = nuisance
    with of(served, name) as client:
        same(client.map(X, side="query"), models[name].transform_queries(X))
        same(client.map(X, side="item"), models[name].transform_items(X))
        # Other types and orders, and what is no array.
        same(client.map(np.asfortranarray(X[:7]), side="item"), models[name].transform_items(X[:7]))
        same(client.map(X[:3].astype(np.float64), side="item"), models[name].transform_items(X[:3]))
        same(client.map(X[:2].tolist(), side="item"), models[name].transform_items(X[:2]))


def test_both_sides_must_be_told_apart(served: Process, nuisance: Any) -> None:
    with of(served, "sides") as client, pytest.raises(metra.ServerError, match='expected "side"') as caught:
        client.map(nuisance[0])
    assert (caught.value.status, caught.value.code) == (400, "bad_request")


def test_double_precision_is_kept_for_a_model_that_needs_it(served: Process, models: Any, nuisance: Any) -> None:
    X, y = nuisance
    far = X.astype(np.float64) + 1e9
    with of(served, "far") as client:
        found = client.map(far)
    same(found, models["far"].transform(far))
    # Rounded to f32 at first, as bytes would have been, all rows are nearly the same.
    assert np.abs(found - models["far"].transform(far.astype(np.float32))).max() > 0.1


def test_a_model_with_groups_gets_the_group_of_each_row(served: Process, models: Any, nuisance: Any) -> None:
    X, _ = nuisance
    cameras = [CAMERAS[row % 3] for row in range(len(X))]
    with of(served, "groups", batch=50) as client:
        same(client.map(X, groups=cameras), models["groups"].transform(X, cameras))
        found, _ = client.similar(X[:100], X[100:200], query_groups=cameras[:100], item_groups=cameras[100:200])
        expected = models["groups"].pair_dissimilarity(X[:100], X[100:200], cameras[:100], cameras[100:200])
        assert (found == expected).all()
        with pytest.raises(metra.ServerError, match="one of .*north"):
            client.map(X)
        with pytest.raises(metra.DataError, match="expected one name for each of 360 rows in groups, but found 2"):
            client.map(X, groups=["north", "south"])


@pytest.mark.parametrize("name", ["bits", "bytes"])
def test_codes_are_those_of_the_model(name: str, served: Process, models: Any, nuisance: Any) -> None:
    X, _ = nuisance
    with of(served, name, batch=100) as client:
        same(client.encode(X), models[name].encode_items(X))
        assert client.models()[0]["object"] == "model"
    with of(served, "plain") as client, pytest.raises(metra.ServerError, match="code"):
        client.encode(X)


@pytest.mark.parametrize("name", ["plain", "sides", "bits"])
def test_what_is_found_is_what_the_model_finds(name: str, served: Process, models: Any, nuisance: Any) -> None:
    X, y = nuisance
    queries = X[::5]
    items, scores = models[name].search(queries, X, 7)
    # 72 queries in parts of 9. Codes find candidates, which are no more than near, unless all items are compared.
    with of(served, name, batch=10) as client:
        found = client.search(queries, 7, exact=name == "bits")
    assert [[hit.id for hit in hits] for hits in found] == [[f"item-{item}" for item in row] for row in items]
    assert [[hit.label for hit in hits] for hits in found] == [[str(y[item]) for item in row] for row in items]
    same(np.array([[hit.dissimilarity for hit in hits] for hits in found], dtype=np.float32), scores)


def test_a_search_keeps_to_labels(client: metra.Client, nuisance: Any) -> None:
    X, _ = nuisance
    one = client.search(X[:2], 12, label="4")
    assert all([hit.label for hit in hits] == ["4"] * 12 for hits in one)
    both = client.search(X[:2], 24, label=["4", "9"])
    assert all({hit.label for hit in hits} == {"4", "9"} for hits in both)
    assert client.search(X[:2], 3, label="none") == [[], []]
    with pytest.raises(metra.ServerError, match="effort"):
        client.search(X[:2], effort=10)
    with pytest.raises(metra.ServerError, match='"k" from 1 to'):
        client.search(X[:2], 0)


def test_pairs(served: Process, models: Any, nuisance: Any) -> None:
    X, y = nuisance
    others = np.roll(X, 1, axis=0)
    expected = models["calibrated"].pair_dissimilarity(X, others)
    with of(served, "calibrated", batch=100) as client:
        found, decided = client.similar(X, others)
    assert (found == expected).all() and decided is not None
    assert (decided == (expected <= models["calibrated"].decision["threshold"])).all()
    assert decided[1:12].mean() > decided[::12].mean()
    with of(served, "plain") as client:
        assert client.similar(X[:3], others[:3])[1] is None
        with pytest.raises(metra.DataError, match=r"\(3, 16\) and \(2, 16\)"):
            client.similar(X[:3], others[:2])


def test_feedback_is_written_as_it_was(served: Any) -> None:
    with metra.Client(served.address) as client:
        assert client.feedback("q17", ["d4", "d9"], ["d9"]) is True
        with pytest.raises(metra.ServerError, match="among"):
            client.feedback("q17", ["d4"], ["d5"])
    lines = [json.loads(line) for line in (served.folder / "clicks.jsonl").read_text().splitlines()]
    written = {"query": "q17", "shown": ["d4", "d9"], "clicked": ["d9"]}
    assert [line for line in lines if written.items() <= line.items()] != []


@pytest.mark.parametrize("batch", [7, 359, 1000])
def test_parts_are_put_together_without_a_trace(batch: int, served: Process, models: Any, nuisance: Any) -> None:
    X, _ = nuisance
    with of(served, "plain", batch=batch) as client:
        same(client.map(X), models["plain"].transform(X))
        assert client.search(X, 3) == of(served, "plain").search(X, 3)
        assert (client.similar(X, X[::-1])[0] == models["plain"].pair_dissimilarity(X, X[::-1])).all()


def test_models_say_what_they_take(served: Process, models: Any) -> None:
    with metra.Client(served.address) as client:
        listed = {model["name"]: model for model in client.models()}
        assert set(listed) == set(models)
        for name, model in models.items():
            facts = listed[name]
            assert (facts["input_dim"], facts["output_dim"]) == (model.input_dim, model.output_dim)
            assert facts["has_two_sides"] == model.two_sided and facts.get("code") == model.code
        with pytest.raises(metra.ServerError, match="plain@1") as caught:
            client.map(np.zeros((1, 16), np.float32))
        assert caught.value.status == 400
    with of(served, "nobody") as client, pytest.raises(metra.ServerError) as caught:
        client.map(np.zeros((1, 16), np.float32))
    assert (caught.value.status, caught.value.code) == (404, "not_found")


def test_what_is_no_vector_is_refused_before_it_is_sent(client: metra.Client) -> None:
    for method in (client.map, client.encode, client.search):
        with pytest.raises(metra.DataError, match="expected at least one vector, but found none"):
            method(np.zeros((0, 16)))
        with pytest.raises(metra.DataError, match="row 1, column 3: expected a finite number, but found nan"):
            broken = np.zeros((3, 16))
            broken[1, 3] = np.nan
            method(broken)
        with pytest.raises(ValueError, match="one vector alone"):
            method(np.zeros(16))
    with pytest.raises(metra.ServerError, match="row 0, column 0: expected a value within"):
        client.map(np.full((1, 16), 1e39))
    with pytest.raises(metra.ServerError) as caught:
        client.search(np.zeros((2, 15)))
    assert "expected vectors of 16 dimensions" in str(caught.value)


def test_many_threads_share_a_client(client: metra.Client, models: Any, nuisance: Any) -> None:
    X, _ = nuisance

    def ask(number: int) -> bool:
        rows = slice(number % 90, number % 90 + 1 + number % 7)
        if number % 3:
            return client.map(X[rows]).tobytes() == models["plain"].transform(X[rows]).tobytes()
        return [hits[0].id for hits in client.search(X[rows], 1)] == [f"item-{row}" for row in range(360)[rows]]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(800)))


def test_a_client_goes_to_other_processes(served: Process, models: Any, nuisance: Any) -> None:
    X, _ = nuisance
    client = of(served, "plain")
    expected = client.map(X[:3])
    for again in (pickle.loads(pickle.dumps(client)), copy.deepcopy(client)):
        same(again.map(X[:3]), expected)
    error = metra.ServerError(503, "overloaded", "later")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.status, again.code) == (str(error), 503, "overloaded")
    assert isinstance(again, metra.MetraError)


def test_keys(program: Metra, served: Any, nuisance: Any) -> None:
    X, _ = nuisance
    file = served.folder / "plain.safetensors"
    with program.serve(file, METRA_KEYS="read 0123456789abcdef-right") as server:
        with metra.Client(server.address, key="0123456789abcdef-right") as client:
            assert client.map(X[:1]).shape == (1, 5)
            assert "right" not in repr(client)
        for key in (None, "0123456789abcdef-wrong"):
            with metra.Client(server.address, key=key) as client, pytest.raises(metra.ServerError) as caught:
                client.map(X[:1])
            assert (caught.value.status, caught.value.code) == (401, "unauthorized")


def test_version_6_addresses(program: Metra, served: Any, nuisance: Any) -> None:
    with program.serve(served.folder / "plain.safetensors", bind="[::1]:0") as server:
        assert server.address.startswith("http://[::1]:")
        # As OpenAI's clients are given it.
        for address in (server.address, server.address + "/", server.address + "/v1"):
            with metra.Client(address) as client:
                assert client.map(nuisance[0][:1]).shape == (1, 5)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://host:99999", "http://me:secret@host", "http://host/?a=b"],
)
def test_addresses_are_checked(address: str) -> None:
    with pytest.raises(metra.ParameterError, match="address must") as caught:
        metra.Client(address)
    assert address.startswith("http://me") is ("secret" not in str(caught.value) and "name and password" in str(caught.value))


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"batch": 0}, {"timeout": 0}, {"key": "a\nb"}, {"key": ""}, {"key": "schlüssel"}])
def test_settings_are_checked(wrong: Any) -> None:
    with pytest.raises(metra.ParameterError, match=next(iter(wrong))):
        metra.Client("http://127.0.0.1:8080", **wrong)
