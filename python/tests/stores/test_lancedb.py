"""LanceDB, in process."""

from __future__ import annotations

import numpy as np
import pytest
from law import DIM, ITEMS, K, assert_same_order
from metra.stores import StoreError, lancedb
from suite import Store, StoreSuite

client = pytest.importorskip("lancedb", reason="lancedb is not installed: metra[lancedb]")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: metra[lancedb]")


class Database(Store):
    """Tables of one folder."""

    def __init__(self, folder):
        self.folder, self.connection = folder, client.connect(folder)

    def open(self, model, name, **options):
        return lancedb.open(model, self.connection, name, **options)

    def where(self, tenant, year):
        return f"tenant = '{tenant}' AND year >= {year}"

    def elsewhere(self, name):
        return (
            "import lancedb\nfrom metra.stores import lancedb as stores\n"
            f"docs = stores.open(model, lancedb.connect({str(self.folder)!r}), {name!r})"
        )

    def raw(self, name, X, distance):
        del distance  # chosen by every search
        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.reshape(-1)), X.shape[1])
        self.connection.create_table(
            name, pyarrow.table({"id": np.arange(len(X)), "text": ["x"] * len(X), "vector": column})
        )


@pytest.fixture
def store(tmp_path):
    return Database(tmp_path / "lance")


class TestLancedb(StoreSuite):
    section = "LanceDB"

    def test_one_write_is_one_commit(self, store, models, made):
        store.write(models["warca"], "docs", np.arange(ITEMS), made.items)
        table = store.connection.open_table("docs")
        version = table.version
        broken = made.items[:1500].copy()
        broken[1200, 3] = np.nan
        with pytest.raises(ValueError, match="rows 1000"):
            store.write(models["warca"], "docs", np.arange(1500), broken)
        table.checkout_latest()
        assert (table.version, table.count_rows()) == (version, ITEMS)

    def test_an_index_of_another_distance_is_refused(self, store, models, made):
        store.write(models["warca"], "docs", np.arange(ITEMS), made.items)
        table = store.connection.open_table("docs")
        from lancedb.index import IvfFlat

        table.create_index("vector", config=IvfFlat(distance_type="l2", num_partitions=2))
        ids, scores = store.search(models["warca"], "docs", made.queries, k=K, exact=True)
        assert_same_order(models["warca"], made, ids, scores)
        table.create_index("vector", config=IvfFlat(distance_type="dot", num_partitions=2))
        with pytest.raises(StoreError, match="compares by ip, but the plan .* needs l2"):
            store.search(models["warca"], "docs", made.queries)

    def test_an_empty_table_is_taken(self, store, models, made):
        schema = pyarrow.schema(
            [
                pyarrow.field("name", pyarrow.int64()),
                pyarrow.field("place", pyarrow.list_(pyarrow.float32(), 5)),
            ]
        )
        store.connection.create_table("empty", schema=schema)
        columns = {"id_column": "name", "vector_column": "place"}
        store.write(models["warca"], "empty", np.arange(ITEMS), made.items, **columns)
        ids, scores = store.search(models["warca"], "empty", made.queries, k=K, **columns)
        assert_same_order(models["warca"], made, ids, scores)

    def test_columns_are_named(self, store, models, made):
        store.raw("raw", made.items, "ip")
        with pytest.raises(StoreError, match="columns id, text, vector"):
            store.search(models["slr"], "raw", made.queries, vector_column="place", keep_items=True)
        with pytest.raises(StoreError, match="vectors of one size"):
            store.search(models["slr"], "raw", made.queries, vector_column="text", keep_items=True)

    def test_one_query_and_many(self, store, models, made):
        store.write(models["warca"], "docs", np.arange(ITEMS), made.items)
        many = np.repeat(made.queries, 50, axis=0)
        ids, _ = store.search(models["warca"], "docs", many, k=3)
        one, _ = store.search(models["warca"], "docs", made.queries[2:3], k=3)
        assert ids.shape == (350, 3) and many.shape[1] == DIM
        assert np.array_equal(ids[::50][2], one[0])
