"""FAISS: index files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from metra.stores import StoreError, faiss
from suite import StoreSuite

engine = pytest.importorskip("faiss", reason="faiss-cpu is not installed: metra[faiss]")


class Files:
    """Indexes in one folder."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return self.folder / f"{name}.faiss"

    def write(self, model, name, *items, **keywords):
        return faiss.write(model, self.path(name), *items, **keywords)

    def search(self, model, name, queries, **keywords):
        return faiss.search(model, str(self.path(name)), queries, **keywords)

    def raw(self, name, X, distance):
        index = {"ip": engine.IndexFlatIP, "l2": engine.IndexFlatL2}[distance](X.shape[1])
        index.add(X)
        engine.write_index(index, str(self.path(name)))


@pytest.fixture
def store(tmp_path):
    return Files(tmp_path)


class TestFaiss(StoreSuite):
    distances = {**StoreSuite.distances, "cosine": "ip"}

    def test_nothing_is_left_of_a_failed_write(self, store, models, made):
        broken = made.items[:1500].copy()
        broken[1200, 3] = np.nan
        with pytest.raises(ValueError, match="rows 1000"):
            store.write(models["warca"], "broken", np.arange(1500), broken)
        assert not list(store.folder.glob("*.faiss*"))

    def test_files_of_others_are_left_alone(self, store, models, made):
        store.raw("raw", made.items, "ip")
        before = store.path("raw").read_bytes()
        store.write(models["slr"], "raw", keep_items=True)
        opened = faiss.read(store.path("raw"))
        faiss.search(models["slr"], opened, made.queries, keep_items=True)
        assert store.path("raw").read_bytes() == before

    def test_a_distance_of_others_is_refused(self, store, models, made):
        store.raw("raw", made.items[:5], "l2")
        with pytest.raises(StoreError, match="compares by l2, but the plan .* needs ip"):
            store.write(models["adapter"], "raw", [0], made.items[:1])

    def test_files_that_do_not_belong_together(self, store, models, made):
        store.write(models["warca"], "docs", np.arange(50), made.items[:50])
        beside = store.folder / "docs.faiss.metra.json"
        side = json.loads(beside.read_text())
        assert side["record"]["way"] == "mapped" and len(side["record"]["model"]) == 64
        beside.write_text(json.dumps({**side, "rows": 49}))
        with pytest.raises(StoreError, match="50 vectors, but its record is of 49"):
            store.search(models["warca"], "docs", made.queries)
        beside.write_text(json.dumps({**side, "record": {**side["record"], "metra": 2}}))
        with pytest.raises(StoreError, match="version 2, but expected 1"):
            store.search(models["warca"], "docs", made.queries)
        beside.write_text("{")
        with pytest.raises(StoreError, match="cannot be read"):
            store.search(models["warca"], "docs", made.queries)

    def test_replaced_texts_are_not_doubled(self, store, models, made):
        for _ in range(2):
            store.write(models["warca"], "docs", ["a", "b"], made.items[:2])
        opened = faiss.read(store.path("docs"))
        assert opened.index.ntotal == 2 and opened.names == ["a", "b"]

    def test_minus_one_is_an_id(self, store, models, made):
        store.write(models["warca"], "docs", [-1, 4], made.items[:2])
        ids, _ = store.search(models["warca"], "docs", made.items[:1], k=5)
        assert ids.tolist() == [[-1, 4]]
