"""Milvus: a server, ``milvus-lite server``, and its client."""

from __future__ import annotations

import numpy as np
import pytest
from engines import beside_python, free_port, server
from law import DIM, ITEMS, K, assert_same_order
from metra.stores import StoreError, milvus
from suite import Store, StoreSuite

pymilvus = pytest.importorskip("pymilvus", reason="pymilvus is not installed: metra[milvus]")


class Collections(Store):
    """Collections of one server."""

    def __init__(self, client, address):
        self.client, self.address = client, address

    def open(self, model, name, **options):
        return milvus.open(model, self.client, name, **{"index": "FLAT", **options})

    def where(self, tenant, year):
        return f'tenant == "{tenant}" and year >= {year}'

    def here(self, code):
        return code.replace("http://127.0.0.1:19530", self.address)

    def elsewhere(self, name):
        return (
            "from metra.stores import milvus\nfrom pymilvus import MilvusClient\n"
            f"docs = milvus.open(model, MilvusClient(uri={self.address!r}), {name!r})"
        )

    def raw(self, name, X, distance):
        self.client.create_collection(
            name, dimension=DIM, metric_type=distance.upper(), consistency_level="Strong"
        )
        rows = [{"id": row, "vector": vector, "text": "x"} for row, vector in enumerate(X)]
        if rows:
            self.client.insert(name, rows)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("milvus"), free_port()
    address = f"http://127.0.0.1:{port}"
    command = [beside_python("milvus-lite"), "server", "--host", "127.0.0.1", "--port", str(port)]

    def ready():
        client = pymilvus.MilvusClient(uri=address, timeout=10)
        client.list_collections()
        return client

    command += ["--data-dir", str(folder / "data")]
    with server(command, folder / "log", ready) as client:
        yield client, address
        client.close()


@pytest.fixture
def store(client):
    found = Collections(*client)
    yield found
    for collection in found.client.list_collections():
        found.client.drop_collection(collection)


class TestMilvus(StoreSuite):
    section = "Milvus"

    def test_its_own_index(self, store, models, made):
        store.write(models["cosine"], "usual", np.arange(ITEMS), made.items, index="AUTOINDEX")
        ids, scores = store.search(models["cosine"], "usual", made.queries, k=K)
        assert_same_order(models["cosine"], made, ids, scores, least=0.9)

    def test_a_distance_of_others_is_refused(self, store, models, made):
        store.client.create_collection("others", dimension=5, metric_type="COSINE")
        with pytest.raises(StoreError, match="compares by cosine, but the plan .* needs l2"):
            store.write(models["warca"], "others", [0], made.items[:1])
        store.raw("raw", made.items[:5], "cosine")
        with pytest.raises(ValueError, match="no exact plan"):
            store.open(models["adapter"], "raw", keep_items=True)

    def test_an_empty_collection_is_taken(self, store, models, made):
        store.client.create_collection("empty", dimension=5, metric_type="L2")
        store.write(models["warca"], "empty", np.arange(ITEMS), made.items)
        assert "metra" in store.client.describe_collection("empty")["properties"]
        ids, scores = store.search(models["warca"], "empty", made.queries, k=K)
        assert_same_order(models["warca"], made, ids, scores, least=0.9)

    def test_fields_and_limits_are_named(self, store, models, made):
        store.write(models["warca"], "docs", [1], made.items[:1])
        with pytest.raises(StoreError, match="it has the fields id, vector"):
            store.search(models["warca"], "docs", made.queries, vector_field="place")
        with pytest.raises(ValueError, match="k must be at most 16384"):
            store.search(models["warca"], "docs", made.queries, k=20_000)
        with pytest.raises(ValueError, match="row 1 has 70000"):
            store.write(models["warca"], "long", ["a", "b" * 70_000], made.items[:2])
