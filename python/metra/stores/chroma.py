"""Chroma: a collection, whose metadata holds the record.

Chroma always searches an approximate index (HNSW): the order is the plan's among what the index
finds, and ``hnsw={"ef_search": ...}`` makes it find more. Identifiers are texts in Chroma; whole
numbers are written as their digits and come back as numbers. A collection is written batch after
batch: after an error those before it are there, and writing again replaces them. Filters are
Chroma's own: ``where={"year": {"$gte": 2020}}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._collection import Collection, synchronous
from ._rows import Batch, Items
from ._written import Found, Written

# Chroma's distances are squared distances, 1 - product and 1 - cosine.
_MORE = {"l2": 0.0, "ip": 1.0, "cosine": 1.0}


def open(
    model: Any,
    client: Any,
    collection: str,
    *,
    distance: str | None = None,
    keep_items: bool = False,
    hnsw: Mapping[str, Any] | None = None,
) -> Collection:
    """A collection for a model; the first `Collection.write` makes it.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps: the model that wrote the collection, or that will.
    client : chromadb client
        ``chromadb.HttpClient``, ``PersistentClient`` or ``EphemeralClient``.
    collection : str
        Name of the collection.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the collection compares by.
    keep_items : bool, default=False
        The collection, filled by others, holds the items as they are and only queries are mapped.
        Identifiers are Chroma's texts then.
    hnsw : mapping, optional
        Other settings of a new collection's index, such as ``ef_search`` and ``max_neighbors``.

    Returns
    -------
    Collection
        What writes, searches, deletes and counts.

    Examples
    --------
    >>> import chromadb, metra, numpy as np
    >>> from metra.stores import chroma
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> docs = chroma.open(model, chromadb.EphemeralClient(), "docs")
    >>> docs.write(range(60), X, metadata={"half": [row // 30 for row in range(60)]})
    Plan(way="mapped", distance="l2", dimension=2)
    >>> ids, scores = docs.search(X[:2], k=3, where={"half": 0})
    >>> ids[:, 0].tolist(), docs.count({"half": 0})
    ([0, 1], 30)
    """
    client = synchronous(client, "a client of chromadb such as chromadb.HttpClient")
    shared = {"distance": distance, "keep_items": keep_items}
    return _Chroma(model, client, collection, hnsw, **shared).opened()


class _Chroma(Collection):
    _never_exact = "Chroma has approximate search alone; hnsw={'ef_search': ...} finds more"

    def __init__(
        self,
        model: Any,
        client: Any,
        collection: str,
        hnsw: Mapping[str, Any] | None,
        **shared: Any,
    ) -> None:
        super().__init__(model, f'the collection "{collection}"', **shared)
        self._client, self._collection, self._hnsw = client, collection, dict(hnsw or {})
        self._chroma: Any = None

    def _most_rows(self) -> int:
        return int(self._client.get_max_batch_size())

    def _found(self) -> Found | None:
        from chromadb.errors import NotFoundError

        try:
            # Vectors come from the model: no function that embeds texts is wanted.
            found = self._client.get_collection(self._collection, embedding_function=None)
        except NotFoundError:
            return None
        self._chroma = found
        metadata = found.metadata or {}
        settings = found.configuration.get("hnsw") or found.configuration.get("spann") or {}
        distance = settings.get("space") or metadata.get("hnsw:space", "l2")
        one = found.get(limit=1, include=["embeddings"])["embeddings"]
        dimension = len(one[0]) if one is not None and len(one) else None
        return Found(self._name, metadata.get("metra"), distance, dimension, found.count())

    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        record = {"metra": written.to_text()}
        if found is None:
            self._chroma = self._client.create_collection(
                self._collection,
                metadata=record,
                configuration={"hnsw": {**self._hnsw, "space": written.distance}},
                embedding_function=None,
            )
            return
        # The distance is fixed by now, and Chroma refuses metadata that name it again.
        there = (self._chroma.metadata or {}).items()
        kept = {key: value for key, value in there if not key.startswith("hnsw:")}
        self._chroma.modify(metadata={**kept, **record})

    def _put(self, items: Items, batches: Iterator[Batch]) -> None:
        for batch in batches:
            self._chroma.upsert(
                ids=[str(name) for name in batch.ids],
                embeddings=batch.vectors,
                metadatas=batch.documents() if items.columns else None,
            )

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, where: Any, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        answer = self._chroma.query(
            query_embeddings=vectors, n_results=k, where=where, include=["distances"]
        )
        more = _MORE[self.plan.distance]
        return [
            [(name, value - more) for name, value in zip(names, away)]
            for names, away in zip(answer["ids"], answer["distances"])
        ]

    def _remove(self, ids: list[Any]) -> None:
        most = self._most_rows()
        for first in range(0, len(ids), most):
            self._chroma.delete(ids=[str(name) for name in ids[first : first + most]])

    def _count(self, where: Any) -> int:
        if where is None:
            return int(self._chroma.count())
        return len(self._chroma.get(where=where, include=[])["ids"])
