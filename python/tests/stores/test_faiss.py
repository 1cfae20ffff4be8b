"""FAISS: index files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from metra.stores import StoreError, faiss
from suite import Store, StoreSuite

engine = pytest.importorskip("faiss", reason="faiss-cpu is not installed: metra[faiss]")


class Files(Store):
    """Indexes in one folder."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return self.folder / f"{name}.faiss"

    def open(self, model, name, **options):
        return faiss.open(model, self.path(name), **options)

    def where(self, tenant, year):
        raise NotImplementedError

    def elsewhere(self, name):
        path = str(self.path(name))
        return f"from metra.stores import faiss\ndocs = faiss.open(model, {path!r})"

    def raw(self, name, X, distance):
        index = {"ip": engine.IndexFlatIP, "l2": engine.IndexFlatL2}[distance](X.shape[1])
        index.add(X)
        engine.write_index(index, str(self.path(name)))


@pytest.fixture
def store(tmp_path):
    return Files(tmp_path)


class TestFaiss(StoreSuite):
    section = "FAISS"
    distances = {**StoreSuite.distances, "cosine": "ip"}
    has_metadata = False

    def test_nothing_is_left_of_a_failed_write(self, store, models, made):
        broken = made.items[:1500].copy()
        broken[1200, 3] = np.nan
        with pytest.raises(ValueError, match="rows 1000"):
            store.write(models["warca"], "broken", np.arange(1500), broken)
        assert not list(store.folder.glob("*.faiss*"))

    def test_files_of_others_are_left_alone(self, store, models, made):
        store.raw("raw", made.items, "ip")
        before = store.path("raw").read_bytes()
        store.search(models["slr"], "raw", made.queries, keep_items=True)
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
        assert engine.read_index(str(store.path("docs"))).ntotal == 2
        side = json.loads((store.folder / "docs.faiss.metra.json").read_text())
        assert side["names"] == ["a", "b"]

    def test_minus_one_is_an_id(self, store, models, made):
        store.write(models["warca"], "docs", [-1, 4], made.items[:2])
        ids, _ = store.search(models["warca"], "docs", made.items[:1], k=5)
        assert ids.tolist() == [[-1, 4]]

    def test_a_failed_write_leaves_what_is_in_memory(self, store, models, made):
        docs = store.open(models["warca"], "docs")
        docs.write(np.arange(1500), made.items[:1500])
        broken = made.items[:1500].copy()
        broken[1200, 3] = np.nan
        with pytest.raises(ValueError, match="rows 1000"):
            docs.write(np.arange(1500), broken)
        assert docs.count() == 1500
        assert docs.search(made.items[:1], k=1)[0].tolist() == [[0]]

    @pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
    def test_filters_in_indexes_of_others(self, store, models, made, kind):
        flat = engine.IndexFlatIP(made.items.shape[1])
        index = {
            "flat": lambda: flat,
            "ivf": lambda: engine.IndexIVFFlat(flat, flat.d, 4, engine.METRIC_INNER_PRODUCT),
            "hnsw": lambda: engine.IndexHNSWFlat(flat.d, 16, engine.METRIC_INNER_PRODUCT),
        }[kind]()
        index.train(made.items)
        index.add(made.items)
        if kind == "ivf":
            index.nprobe = 4
        engine.write_index(index, str(store.path("raw")))
        docs = store.open(models["adapter"], "raw", keep_items=True)
        few = np.arange(0, len(made.items), 40)
        for where in (few, engine.IDSelectorRange(0, 400)):
            ids, _ = docs.search(made.queries, k=5, where=where)
            allowed = few if where is few else np.arange(400)
            # An approximate index may find fewer.
            assert np.isin(ids[ids >= 0], allowed).all() and (ids[:, 0] >= 0).all()
            near = models["adapter"].dissimilarity(made.queries, made.items[allowed])
            if kind != "hnsw":
                assert np.array_equal(allowed[near.argmin(axis=1)], ids[:, 0])
            assert docs.count(where) == len(allowed)
        with pytest.raises(ValueError, match="no metadata to filter by"):
            docs.search(made.queries, where="year > 2000")
