"""Tests that every store has to pass; a store's own test file says how it is reached.

A subclass of `StoreSuite` has a fixture ``store`` that gives a `Store`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import metra
import numpy as np
import pytest
from law import DIM, ITEMS, K, MODELS, Made, assert_own_scores, assert_same_order, reloaded
from metra.stores import Collection, StoreError


def numbers(ids: np.ndarray) -> np.ndarray:
    """Row numbers of identifiers that are row numbers, or texts that end in them."""
    read = [[int(str(name).rpartition("-")[2]) for name in row] for row in ids.tolist()]
    return np.asarray(read, dtype=np.int64)


class Store(ABC):
    """How a store is reached."""

    @abstractmethod
    def open(self, model: Any, name: str, **options: Any) -> Collection:
        """The store's own ``open`` on a collection."""

    @abstractmethod
    def raw(self, name: str, X: np.ndarray, distance: str) -> None:
        """Make a collection of vectors as they are, by the store's own client, with row numbers."""

    @abstractmethod
    def where(self, tenant: str, year: int) -> Any:
        """The store's own filter: of this tenant, and of this year or later."""

    def here(self, code: str) -> str:
        """Lines of the guide, with the address of the test's own server in place of the guide's."""
        return code

    @abstractmethod
    def elsewhere(self, name: str) -> str:
        """Lines of a program that opens a collection for ``model`` as ``docs``."""

    def write(self, model: Any, name: str, ids: Any, X: Any, **keywords: Any) -> Any:
        """Open and write."""
        mine = {key: keywords.pop(key) for key in _OF_WRITE if key in keywords}
        return self.open(model, name, **keywords).write(ids, X, **mine)

    def search(self, model: Any, name: str, queries: Any, **keywords: Any) -> Any:
        """Open and search."""
        mine = {key: keywords.pop(key) for key in _OF_SEARCH if key in keywords}
        return self.open(model, name, **keywords).search(queries, **mine)


GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "python-stores.md"

_OF_WRITE = ("metadata", "cameras", "batch")
_OF_SEARCH = ("k", "where", "cameras", "exact")


class StoreSuite:
    """What all stores must do."""

    # Its part of the guide.
    section = ""
    # Whether items have metadata to filter by.
    has_metadata = True

    # What a store without one of the distances serves a model by instead.
    distances = {
        "warca": "l2",
        "kernel": "l2",
        "prepared": "l2",
        "slr": "ip",
        "adapter": "ip",
        "cosine": "cosine",
    }
    # Stores that know texts alone give back row numbers of vectors that others wrote as texts.
    raw_ids_are_texts = False
    # The share of true answers that a store without exact search has to find.
    least = 1.0

    def assert_order(self, model: Any, made: Made, ids: np.ndarray, scores: np.ndarray) -> None:
        """The law, as far as the store can be held to it."""
        assert_same_order(model, made, ids, scores, least=self.least)

    @pytest.mark.parametrize("name", MODELS)
    def test_order_is_the_models(self, store, name, models, made: Made, tmp_path) -> None:
        model = models[name]
        plan = store.write(model, f"order_{name}", np.arange(ITEMS), made.items)
        assert (plan.way, plan.distance) == ("mapped", self.distances[name])
        again = reloaded(model, tmp_path)
        ids, scores = store.search(again, f"order_{name}", made.queries, k=K)
        assert ids.dtype == np.int64
        self.assert_order(model, made, ids, scores)
        assert_own_scores(model, made, ids, scores)

    def test_euclid_by_inner_product(self, store, models, made: Made) -> None:
        model = models["warca"]
        plan = store.write(model, "by_ip", np.arange(ITEMS), made.items, distance="ip")
        assert (plan.way, plan.distance, plan.dimension) == ("extra-coordinate", "ip", 6)
        ids, scores = store.search(model, "by_ip", made.queries, k=K)
        self.assert_order(model, made, ids, scores)

    def test_far_from_the_origin(self, store, models, made: Made) -> None:
        """Without a centre, squares of mapped vectors drown what differs between them."""
        far = Made(made.items + 300, made.queries + 300, made.y, made.query_y)
        model = models["warca"]
        plan = store.write(model, "far", np.arange(ITEMS), far.items)
        assert plan.centre is not None
        ids, scores = store.search(model, "far", far.queries, k=K)
        self.assert_order(model, far, ids, scores)

    @pytest.mark.parametrize("name", ["slr", "adapter"])
    def test_items_stay(self, store, name, models, made: Made) -> None:
        model, table = models[name], f"raw_{name}"
        store.raw(table, made.items, "ip")
        plan = store.open(model, table, keep_items=True).plan
        assert (plan.items_stay, plan.dimension) == (True, DIM)
        ids, scores = store.search(model, table, made.queries, k=K, keep_items=True)
        assert (ids.dtype == object) == self.raw_ids_are_texts
        self.assert_order(model, made, numbers(ids), scores)
        with pytest.raises(StoreError, match="that metra did not write|has numbers"):
            store.search(models["adapter"], table, made.queries)
        with pytest.raises(metra.PlanError, match="with items kept as they are"):
            store.search(models["warca"], table, made.queries, keep_items=True)
        with pytest.raises(metra.ParameterError, match="opened without it"):
            store.write(model, table, [1], made.items[:1], keep_items=True)
        with pytest.raises(metra.ParameterError, match="opened without it"):
            store.open(model, table, keep_items=True).delete([1])
        assert store.open(model, table, keep_items=True).count() == ITEMS

    def test_raw_items_that_metra_wrote_serve_another_model(
        self, store, models, made: Made
    ) -> None:
        assert store.write(models["adapter"], "raw_own", np.arange(ITEMS), made.items).items_stay
        ids, scores = store.search(models["slr"], "raw_own", made.queries, k=K, keep_items=True)
        self.assert_order(models["slr"], made, ids, scores)

    def test_texts_in_batches_and_new_vectors(self, store, models, made: Made) -> None:
        model = models["warca"]
        names = [f"é'\"-{row}" for row in range(ITEMS)]
        # The first are written with wrong vectors and, with all others, again.
        wrong = np.roll(made.items[:1200], 1, axis=0)
        first = store.write(model, "texts", names[:1200], wrong, batch=500)
        second = store.write(model, "texts", np.asarray(names), made.items.astype(np.float64))
        assert np.array_equal(first.centre, second.centre)
        ids, scores = store.search(model, "texts", made.queries, k=K)
        assert ids.dtype == object and set(ids.ravel().tolist()) <= set(names)
        self.assert_order(model, made, numbers(ids), scores)
        with pytest.raises(StoreError, match="ids of str, but these are int"):
            store.write(model, "texts", [1], made.items[:1])

    def test_memory_mapped_halves(self, store, models, made: Made, tmp_path) -> None:
        halves = made.items.astype(np.float16)
        np.save(tmp_path / "halves.npy", halves)
        mapped = np.load(tmp_path / "halves.npy", mmap_mode="r")
        store.write(models["warca"], "halves", np.arange(ITEMS), mapped)
        narrow = Made(halves.astype(np.float32), made.queries, made.y, made.query_y)
        ids, scores = store.search(models["warca"], "halves", narrow.queries, k=K)
        self.assert_order(models["warca"], narrow, ids, scores)

    def test_another_model_is_refused(self, store, models, made: Made) -> None:
        few = np.arange(50), made.items[:50]
        store.write(models["warca"], "mine", *few)
        with pytest.raises(StoreError, match=r"by the model \w+ \(warca\), but this is .*kissme"):
            store.search(models["prepared"], "mine", made.queries)
        with pytest.raises(StoreError, match="write to a new one"):
            store.write(models["prepared"], "mine", *few)
        with pytest.raises(StoreError, match="compares by l2, but distance is 'ip'"):
            store.write(models["warca"], "mine", *few, distance="ip")
        with pytest.raises(StoreError, match="keep_items expects them as they were"):
            store.search(models["slr"], "mine", made.queries, keep_items=True)

    def test_no_exact_plan_is_refused(self, store, models, made: Made) -> None:
        few = np.arange(50), made.items[:50]
        with pytest.raises(metra.PlanError, match="cosine drops the lengths"):
            store.write(models["warca"], "never", *few, distance="cosine")
        with pytest.raises(metra.PlanError, match="bound on the lengths"):
            store.write(models["slr"], "never", *few, distance="l2")
        with pytest.raises(metra.MetraError):
            store.write(models["warca"], "never", *few, distance="manhattan")

    def test_mistakes_are_named(self, store, models, made: Made) -> None:
        model, X = models["warca"], made.items
        with pytest.raises(metra.DataError, match="12"):
            store.write(model, "wrong", np.arange(50), X[:50, :5])
        with pytest.raises(metra.ParameterError, match="expected 50, but found 49"):
            store.write(model, "wrong", np.arange(49), X[:50])
        with pytest.raises(metra.ParameterError, match="7 is in the rows 3 and 5"):
            store.write(model, "wrong", [0, 1, 2, 7, 4, 7], X[:6])
        with pytest.raises(metra.ParameterError, match="all int or all str"):
            store.write(model, "wrong", [0, "1"], X[:2])
        with pytest.raises(metra.ParameterError, match="at least one row"):
            store.write(model, "wrong", [], X[:0])
        with pytest.raises(metra.ParameterError, match="fitted estimator"):
            store.write("model", "wrong", [0, 1], X[:2])
        with pytest.raises(ValueError, match="not fitted"):
            store.write(metra.Warca(), "wrong", [0, 1], X[:2])
        with pytest.raises(StoreError, match="absent"):
            store.search(model, "absent", made.queries)
        with pytest.raises(StoreError, match="absent"):
            store.open(model, "absent", keep_items=True)
        assert store.open(model, "absent").count() == 0
        store.write(model, "right", np.arange(50), X[:50])
        with pytest.raises(metra.ParameterError, match="k must be"):
            store.search(model, "right", made.queries, k=0)
        with pytest.raises(metra.DataError, match="12"):
            store.search(model, "right", made.queries[:, :5])

    def test_broken_rows_are_named_where_they_are(self, store, models, made: Made) -> None:
        broken = made.items[:1500].copy()
        broken[1200, 3] = np.nan
        with pytest.raises(metra.DataError, match="rows 1000 to 1499"):
            store.write(models["warca"], "broken", np.arange(1500), broken)
        # What was written before is not in the way of trying again, with the same object or anew.
        docs = store.open(models["warca"], "again")
        with pytest.raises(metra.DataError, match="rows 1000 to 1499"):
            docs.write(np.arange(1500), broken)
        assert docs.count() in (0, 1000)
        docs.write(np.arange(50), made.items[:50])
        assert docs.count() in (50, 1000)
        store.write(models["warca"], "broken", np.arange(ITEMS), made.items)
        ids, scores = store.search(models["warca"], "broken", made.queries, k=K)
        self.assert_order(models["warca"], made, ids, scores)

    def test_collections_of_others_are_refused(self, store, models, made: Made) -> None:
        few: tuple[Any, Any] = [0], made.items[:1]
        store.raw("others", made.items[:30], "ip")
        with pytest.raises(StoreError, match="of dimension 12, but the plan .* has"):
            store.write(models["warca"], "others", *few)
        with pytest.raises(StoreError, match="30 vectors that metra did not write"):
            store.write(models["adapter"], "others", *few)

    def test_cameras(self, store, made: Made) -> None:
        cameras = np.where(np.arange(ITEMS) % 3 == 0, "a", "b")
        learned = metra.Warca(n_components=5, steps=20, prepare="centre-groups")
        learned.fit(made.items[:400], made.y[:400], cameras=cameras[:400])
        store.write(learned, "cameras", np.arange(ITEMS), made.items, cameras=cameras)
        asked_from = ["a", "b"] * 3 + ["a"]
        ids, _ = store.search(learned, "cameras", made.queries, k=K, cameras=asked_from)
        exact, _ = learned.model_.search(made.queries, made.items, K, asked_from, cameras.tolist())
        assert np.mean(ids == exact.astype(np.int64)) > 0.95
        with pytest.raises(metra.ParameterError, match="cameras"):
            store.search(learned, "cameras", made.queries, k=K)
        with pytest.raises(metra.ParameterError, match="cameras must be one a row"):
            store.write(learned, "cameras", [0], made.items[:1], cameras=["a", "b"])

    def test_fewer_than_k(self, store, models, made: Made) -> None:
        store.write(models["warca"], "two", [5, 7], made.items[:2])
        ids, scores = store.search(models["warca"], "two", made.queries, k=K)
        assert ids.shape == (len(made.queries), 2) and {5, 7} == set(ids[0].tolist())
        assert np.isfinite(scores).all()

    def test_filtered_search_is_that_of_the_filtered_rows(self, store, models, made: Made) -> None:
        model, tenants, years = models["warca"], np.arange(ITEMS) % 3, 2000 + np.arange(ITEMS) % 40
        metadata = {"tenant": [f"t{t}" for t in tenants], "year": years, "none": [None] * ITEMS}
        docs = store.open(model, "docs")
        docs.write(np.arange(ITEMS), made.items, metadata=metadata if self.has_metadata else None)
        # By rows that pass: a third, few, fewer than k.
        for year in (2000, 2035, 2039):
            passes = np.flatnonzero((tenants == 1) & (years >= year))
            where = store.where("t1", year) if self.has_metadata else passes
            ids, scores = docs.search(made.queries, k=K, where=where)
            near = model.dissimilarity(made.queries, made.items[passes])
            best = np.sort(near, axis=1)[:, :K]
            assert ids.shape == best.shape and np.isin(ids, passes).all()
            own = np.take_along_axis(
                model.dissimilarity(made.queries, made.items), ids, axis=1
            )
            np.testing.assert_allclose(own, best, atol=1e-5 * np.ptp(near))
            np.testing.assert_allclose(scores, best, atol=2e-5 * np.ptp(near))
            assert docs.count(where) == len(passes)
        assert docs.count() == len(docs) == ITEMS

    def test_metadata_outlive_new_vectors(self, store, models, made: Made) -> None:
        if not self.has_metadata:
            with pytest.raises(metra.ParameterError, match="cannot hold metadata"):
                store.write(models["warca"], "docs", [1], made.items[:1], metadata={"a": [1]})
            return
        docs = store.open(models["warca"], "docs")
        names = [f"d{row}" for row in range(50)]
        metadata = [{"tenant": "a" if row < 20 else "b", "year": row} for row in range(50)]
        docs.write(names, made.items[:50], metadata=metadata)
        docs.write(names, made.items[50:100])
        assert docs.count(store.where("a", 0)) == 20
        # One of two names is written again; the other stays.
        docs.write(names[:5], made.items[:5], metadata={"tenant": ["b"] * 5})
        assert docs.count(store.where("a", 0)) == 15 and docs.count(store.where("b", 3)) == 32
        # A new name for some, beside rows that are new.
        more = {"tenant": ["c", "c"], "year": [7, None], "price": [1.5, 2.5]}
        docs.write(["d49", "new"], made.items[:2], metadata=more)
        assert docs.count(store.where("c", 0)) == 1 and docs.count() == 51

    def test_delete(self, store, models, made: Made) -> None:
        docs = store.open(models["warca"], "docs")
        names = [f'it\'s "é" {row}' for row in range(ITEMS)]
        docs.write(names, made.items)
        gone = names[::2]
        docs.delete(gone)
        docs.delete(["never there"])
        docs.delete([])
        assert docs.count() == ITEMS // 2
        ids, scores = docs.search(made.queries, k=K)
        rest = np.arange(1, ITEMS, 2)
        found = np.asarray([[names.index(name) for name in row] for row in ids.tolist()])
        near = models["warca"].dissimilarity(made.queries, made.items[rest])
        assert np.isin(found, rest).all()
        np.testing.assert_allclose(
            scores, np.sort(near, axis=1)[:, :K], atol=2e-5 * np.ptp(near)
        )
        with pytest.raises(StoreError, match="ids of str, but these are int"):
            docs.delete([1])
        docs.write(gone, made.items[::2])
        assert docs.count() == ITEMS

    def test_another_process_asks_by_the_same_plan(
        self, store, models, made: Made, tmp_path
    ) -> None:
        """Far from the origin, so that a plan without the centre would find other items."""
        far, model = Made(made.items + 300, made.queries + 300, made.y, made.query_y), models["warca"]
        docs = store.open(model, "docs")
        plan = docs.write(np.arange(ITEMS), far.items)
        model.save(tmp_path / "model.safetensors")
        np.save(tmp_path / "queries.npy", far.queries)
        script = f"""
import metra, numpy as np
model = metra.load({str(tmp_path / "model.safetensors")!r})
{store.elsewhere("docs")}
queries = np.load({str(tmp_path / "queries.npy")!r})
np.save({str(tmp_path / "mapped.npy")!r}, docs.plan.map_queries(queries))
np.save({str(tmp_path / "ids.npy")!r}, docs.search(queries, k={K})[0])
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert np.array_equal(np.load(tmp_path / "mapped.npy"), plan.map_queries(far.queries))
        assert np.array_equal(np.load(tmp_path / "ids.npy"), docs.search(far.queries, k=K)[0])
        assert not np.array_equal(plan.map_queries(far.queries), metra.plan(model).map_queries(far.queries))

    @pytest.mark.parametrize(
        ("metadata", "message"),
        [
            ({"a": [1]}, "expected 2, but found 1"),
            ({"a": 1}, "one value a row, but is 1"),
            ({"a": "xy"}, "one value a row, but is 'xy'"),
            ([{"a": 1}], "expected 2, but found 1"),
            ([1, 2], "row 0 has int"),
            ({1: [1, 2]}, "named by texts"),
            (7, "but is int"),
        ],
    )
    def test_wrong_metadata_is_named(self, store, models, made: Made, metadata, message) -> None:
        message = message if self.has_metadata else "cannot hold metadata"
        with pytest.raises(metra.ParameterError, match=message):
            store.write(models["warca"], "wrong", [0, 1], made.items[:2], metadata=metadata)

    def test_the_guide_runs(self, store, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "stores").mkdir()
        if not GUIDE.exists():
            pytest.skip("the guide is not beside an installed package")
        first, *sections = GUIDE.read_text(encoding="utf-8").split("\n## ")
        mine = next(part for part in sections if part.startswith(self.section + "\n"))
        names: dict[str, Any] = {}
        for part in (first, mine):
            blocks = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
            assert blocks
            for block in blocks:
                exec(store.here(block), names)
        # The last search of each section is of three queries.
        assert names["found"].shape == names["scores"].shape == (3, 10)
        assert np.isfinite(names["scores"]).all()
