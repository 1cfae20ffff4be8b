"""Chroma: a server, ``chroma run``, and its HTTP client."""

from __future__ import annotations

import numpy as np
import pytest
from engines import beside_python, free_port, server
from law import ITEMS, K, assert_same_order
from metra.stores import StoreError, chroma
from suite import Store, StoreSuite

chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed: metra[chroma]")

# The tests are about order, not about recall: the index shall find almost all there is.
THOROUGH = {"ef_search": ITEMS, "ef_construction": 400, "max_neighbors": 100}


class Collections(Store):
    """Collections of one server."""

    def __init__(self, client, port):
        self.client, self.port = client, port

    def open(self, model, name, **options):
        return chroma.open(model, self.client, name, **{"hnsw": THOROUGH, **options})

    def where(self, tenant, year):
        return {"$and": [{"tenant": tenant}, {"year": {"$gte": year}}]}

    def here(self, code):
        return code.replace("port=8000", f"port={self.port}")

    def elsewhere(self, name):
        return (
            "import chromadb\nfrom metra.stores import chroma\n"
            f"client = chromadb.HttpClient(host='127.0.0.1', port={self.port})\n"
            f"docs = chroma.open(model, client, {name!r})"
        )

    def raw(self, name, X, distance):
        # With the function for texts that Chroma takes by itself, as people's collections have it.
        made = self.client.create_collection(
            name, configuration={"hnsw": {**THOROUGH, "space": distance}}
        )
        if len(X):
            made.add(ids=[str(row) for row in range(len(X))], embeddings=X)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("chroma"), free_port()
    command = [beside_python("chroma"), "run", "--host", "127.0.0.1", "--port", str(port)]

    def ready():
        client = chromadb.HttpClient(host="127.0.0.1", port=port)
        client.heartbeat()
        return client

    with server([*command, "--path", str(folder / "data")], folder / "log", ready) as client:
        yield client, port


@pytest.fixture
def store(client):
    found = Collections(*client)
    yield found
    for collection in found.client.list_collections():
        found.client.delete_collection(collection.name)


class TestChroma(StoreSuite):
    section = "Chroma"
    raw_ids_are_texts = True
    # HNSW misses some by inner product whatever its settings, and not the same ones in every run:
    # there, only what is found and how it is ordered is the plan's.
    least = 0.5

    @pytest.mark.parametrize("name", ["warca", "cosine", "kernel", "prepared"])
    def test_distances_and_cosines_are_all_found(self, store, name, models, made):
        store.write(models[name], "thorough", np.arange(ITEMS), made.items)
        ids, scores = store.search(models[name], "thorough", made.queries, k=K)
        assert_same_order(models[name], made, ids, scores)

    def test_a_distance_of_others_is_refused(self, store, models, made):
        store.raw("others", made.items[:0], "cosine")
        with pytest.raises(StoreError, match="compares by cosine, but the plan .* needs l2"):
            store.write(models["warca"], "others", [0], made.items[:1])
        store.raw("raw", made.items[:5], "cosine")
        with pytest.raises(ValueError, match="no exact plan"):
            store.open(models["adapter"], "raw", keep_items=True)

    def test_an_empty_collection_is_taken(self, store, models, made):
        store.client.create_collection(
            "empty", metadata={"hnsw:space": "l2", "hnsw:search_ef": ITEMS, "mine": "kept"}
        )
        store.write(models["warca"], "empty", np.arange(ITEMS), made.items)
        metadata = store.client.get_collection("empty").metadata
        assert metadata["mine"] == "kept" and '"method": "warca"' in metadata["metra"]
        ids, scores = store.search(models["warca"], "empty", made.queries, k=K)
        assert_same_order(models["warca"], made, ids, scores)

    @pytest.mark.parametrize("name", ["warca", "cosine"])
    def test_recall_of_its_own_settings(self, store, name, models, made):
        store.write(models[name], "usual", np.arange(ITEMS), made.items, hnsw=None)
        ids, _ = store.search(models[name], "usual", made.queries, k=K)
        exact, _ = models[name].search(made.queries, made.items, K)
        found = [len({*a} & {*b}) for a, b in zip(ids.tolist(), exact.tolist())]
        assert np.mean(found) > 0.9 * K

    def test_more_rows_than_the_server_takes_at_once(self, store, models, made):
        many = np.tile(made.items, (4, 1))
        assert len(many) > store.client.get_max_batch_size()
        store.write(models["warca"], "many", np.arange(len(many)), many, batch=len(many))
        assert store.client.get_collection("many").count() == len(many)

    def test_in_process(self, models, made, tmp_path):
        client = chromadb.PersistentClient(path=str(tmp_path))
        docs = chroma.open(models["cosine"], client, "docs", hnsw=THOROUGH)
        docs.write(np.arange(ITEMS), made.items)
        ids, scores = docs.search(made.queries, k=K)
        assert_same_order(models["cosine"], made, ids, scores)
