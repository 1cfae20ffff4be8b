"""Qdrant: its engine in process (Qdrant Edge), and its client in local mode.

The engine of a server is the one of Qdrant Edge; the client's local mode is an imitation of it in
Python that answers as a server does, metadata of collections included.
"""

from __future__ import annotations

import numpy as np
import pytest
from law import DIM, ITEMS, K, assert_same_order
from metra.stores import StoreError, qdrant
from suite import Store, StoreSuite


class Collections(Store):
    """Collections of one client, or shards of one folder."""

    def __init__(self, client):
        self.client = client

    def open(self, model, name, **options):
        return qdrant.open(model, self.client, name, **options)

    def where(self, tenant, year):
        models = self.conditions()
        match = models.MatchValue(value=tenant)
        return models.Filter(
            must=[
                models.FieldCondition(key="tenant", match=match),
                models.FieldCondition(key="year", range=self.from_year(year)),
            ]
        )


class ClientCollections(Collections):
    def conditions(self):
        from qdrant_client import models

        return models

    def from_year(self, year):
        return self.conditions().Range(gte=year)

    def elsewhere(self, name):
        raise NotImplementedError

    def raw(self, name, X, distance):
        from qdrant_client import models

        about = models.VectorParams(size=DIM, distance=qdrant.CALLED[distance])
        self.client.create_collection(name, vectors_config=about)
        points = models.Batch(ids=list(range(len(X))), vectors=X.tolist())
        if len(X):
            self.client.upsert(name, points=points)


class EdgeShards(Collections):
    def conditions(self):
        import qdrant_edge

        return qdrant_edge

    def from_year(self, year):
        return self.conditions().RangeFloat(gte=year)

    def elsewhere(self, name):
        return (
            "from pathlib import Path\nfrom metra.stores import qdrant\n"
            f"docs = qdrant.open(model, Path({str(self.client)!r}), {name!r})"
        )

    def raw(self, name, X, distance):
        import qdrant_edge as edge

        (self.client / name).mkdir(parents=True)
        about = edge.EdgeVectorParams(
            size=DIM, distance=getattr(edge.Distance, qdrant.CALLED[distance])
        )
        shard = edge.EdgeShard.create(str(self.client / name), edge.EdgeConfig(vectors=about))
        points = [edge.Point(row, vector.tolist(), {"text": "x"}) for row, vector in enumerate(X)]
        shard.update(edge.UpdateOperation.upsert_points(points))
        shard.flush()
        shard.close()


class QdrantSuite(StoreSuite):
    section = "Qdrant"

    def test_a_distance_of_others_is_refused(self, store, models, made):
        store.raw("others", made.items[:5], "cosine")
        with pytest.raises(StoreError, match="compares by cosine, but the plan .* needs ip"):
            store.write(models["adapter"], "others", [0], made.items[:1])
        with pytest.raises(ValueError, match="no exact plan"):
            store.open(models["adapter"], "others", keep_items=True)

    def test_an_empty_collection_is_taken(self, store, models, made):
        store.raw("empty", made.items[:0], "ip")
        assert store.write(models["adapter"], "empty", np.arange(ITEMS), made.items).items_stay
        ids, scores = store.search(models["adapter"], "empty", made.queries, k=K)
        assert_same_order(models["adapter"], made, ids, scores)

    def test_named_vectors(self, store, models, made):
        named = {"vector_name": "learned"}
        store.write(models["warca"], "named", np.arange(ITEMS), made.items, **named)
        ids, scores = store.search(models["warca"], "named", made.queries, k=K, exact=True, **named)
        assert_same_order(models["warca"], made, ids, scores)
        with pytest.raises(StoreError, match="expected the vector None"):
            store.search(models["warca"], "named", made.queries)

    def test_an_address_is_no_client(self, store, models, made):
        del store
        with pytest.raises(ValueError, match="must be a QdrantClient"):
            qdrant.open(models["warca"], "http://127.0.0.1:6333", "docs")

    def test_numbers_below_zero_are_refused(self, store, models, made):
        with pytest.raises(ValueError, match="row 1 has -1"):
            store.write(models["warca"], "docs", [0, -1], made.items[:2])


@pytest.mark.filterwarnings("ignore:Local mode")
class TestQdrantClient(QdrantSuite):
    # What is in memory is not seen by another process.
    test_another_process_asks_by_the_same_plan = None

    @pytest.fixture
    def store(self):
        reason = "qdrant-client is not installed: metra[qdrant]"
        client = pytest.importorskip("qdrant_client", reason=reason).QdrantClient(":memory:")
        yield ClientCollections(client)
        client.close()


class TestQdrantEdge(QdrantSuite):
    @pytest.fixture
    def store(self, tmp_path):
        pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed")
        return EdgeShards(tmp_path / "shards")

    def test_the_index_of_the_engine(self, store, models, made):
        import qdrant_edge as edge

        store.write(models["warca"], "docs", np.arange(ITEMS), made.items)
        settings = edge.EdgeConfig(
            vectors=edge.EdgeVectorParams(size=5, distance=edge.Distance.Euclid),
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=1),
        )
        shard = edge.EdgeShard.load(str(store.client / "docs"), settings)
        shard.optimize()
        indexed = shard.info().indexed_vectors_count
        shard.close()
        ids, scores = store.search(models["warca"], "docs", made.queries, k=K)
        assert_same_order(models["warca"], made, ids, scores, least=0.9)
        ids, scores = store.search(models["warca"], "docs", made.queries, k=K, exact=True)
        assert_same_order(models["warca"], made, ids, scores)
        assert indexed == ITEMS

    def test_names_are_folders(self, store, models, made):
        with pytest.raises(ValueError, match="name of a folder"):
            store.write(models["warca"], "../docs", [0], made.items[:1])
