"""Qdrant: a collection, whose metadata hold the record; or a shard of Qdrant Edge in a folder.

Points of Qdrant are called by whole numbers from 0 or by UUIDs. Texts therefore become the UUID of
their name (version 5, in a namespace of metra's own), and the text itself is the point's payload
``id``. Metadata of collections came with Qdrant 1.16; a server that drops them is refused. A
collection is written batch after batch: after an error those before it are there, and writing again
replaces them. Metadata of items are payload, and filters are Qdrant's own:
``where=models.Filter(must=[...])``.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError
from ._collection import Collection, synchronous
from ._rows import Batch, Items
from ._written import Found, StoreError, Written

# What Qdrant takes at most in a vector.
MOST_DIMENSIONS = 65_536

CALLED = {"l2": "Euclid", "ip": "Dot", "cosine": "Cosine"}

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "metra:stores:qdrant")

# Identifier of the point, its payload and its score, as Qdrant has them.
Hit = tuple[Any, dict[str, Any], float]


def open(
    model: Any,
    client: Any,
    collection: str,
    *,
    distance: str | None = None,
    keep_items: bool = False,
    vector_name: str | None = None,
) -> Collection:
    """A collection for a model; the first `Collection.write` makes it.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps: the model that wrote the collection, or that will.
    client : qdrant_client.QdrantClient or pathlib.Path
        A client of a server or of its local mode; or a folder of shards of Qdrant Edge, each of
        which is opened for the time of one call.
    collection : str
        Name of the collection, or of the shard's folder.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the collection compares by.
    keep_items : bool, default=False
        The collection, filled by others, holds the items as they are and only queries are mapped.
        Identifiers are those of Qdrant's points then.
    vector_name : str, optional
        Name of the vector among those of a point; without it the one that has no name.

    Returns
    -------
    Collection
        What writes, searches, deletes and counts. Its identifiers are texts or whole numbers from 0.

    Examples
    --------
    >>> import metra, numpy as np
    >>> from metra.stores import qdrant
    >>> from qdrant_client import QdrantClient, models
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> docs = qdrant.open(model, QdrantClient(":memory:"), "docs")
    >>> docs.write(range(60), X, metadata={"half": [row // 30 for row in range(60)]})
    Plan(way="mapped", distance="l2", dimension=2)
    >>> first = models.FieldCondition(key="half", match=models.MatchValue(value=0))
    >>> ids, scores = docs.search(X[:2], k=3, where=models.Filter(must=[first]))
    >>> ids[:, 0].tolist(), docs.count(models.Filter(must=[first]))
    ([0, 1], 30)
    """
    if isinstance(client, str):
        # An address of a server would become a folder of that name.
        raise ParameterError(
            f"client must be a QdrantClient or a pathlib.Path of shards, but is the text {client!r}"
        )
    options = {"distance": distance, "keep_items": keep_items, "vector_name": vector_name}
    if isinstance(client, Path):
        from ._qdrant_edge import Edge

        return Edge(model, client, collection, **options).opened()
    client = synchronous(client, "a qdrant_client.QdrantClient")
    return _Client(model, client, collection, **options).opened()


class Points(Collection):
    """Points of Qdrant, whoever keeps them."""

    def __init__(self, model: Any, name: str, vector_name: str | None, **options: Any) -> None:
        # Texts are kept in the payload under this name.
        super().__init__(model, name, most_dimensions=MOST_DIMENSIONS, reserved=["id"], **options)
        self._vector_name = vector_name

    def _check_items(self, items: Items) -> None:
        for row, number in enumerate(items.ids):
            if isinstance(number, int) and number < 0:
                raise ParameterError(
                    "ids must be whole numbers from 0, or texts, in Qdrant, but row "
                    f"{row} has {number}"
                )

    def _put(self, items: Items, batches: Iterator[Batch]) -> None:
        for batch in batches:
            points, documents = _points(batch.ids), batch.documents()
            if items.kind == "str":
                for name, payload in zip(batch.ids, documents):
                    payload["id"] = name
            # To upsert a point would take away the payload that others gave it.
            known = self._known(points)
            there = [row for row, point in enumerate(points) if point in known]
            new = [row for row, point in enumerate(points) if point not in known]
            for rows, write in ((there, self._update), (new, self._insert)):
                if rows:
                    vectors = [batch.vectors[row].tolist() for row in rows]
                    write([points[r] for r in rows], vectors, [documents[r] for r in rows])

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, where: Any, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        # Qdrant gives the root of the squared distance.
        is_root = self.plan.distance == "l2"
        texts = self._written is not None and self._written.ids == "str"
        return [
            [
                (payload["id"] if texts else point, score * score if is_root else -score)
                for point, payload, score in row
            ]
            for row in self._hits(vectors.tolist(), k, where, exact)
        ]

    def _remove(self, ids: list[Any]) -> None:
        self._delete(_points(ids))

    def _named(self, vector: Any) -> Any:
        """A vector, or vectors, as points have them."""
        return vector if self._vector_name is None else {self._vector_name: vector}

    @abstractmethod
    def _known(self, points: list[Any]) -> set[Any]:
        """Those points that are there."""

    @abstractmethod
    def _update(self, points: list[Any], vectors: list[Any], payloads: list[Any]) -> None:
        """Give points a new vector and add to their payload."""

    @abstractmethod
    def _insert(self, points: list[Any], vectors: list[Any], payloads: list[Any]) -> None:
        """Write new points."""

    @abstractmethod
    def _hits(self, vectors: list[Any], k: int, where: Any, exact: bool) -> list[list[Hit]]:
        """The nearest points of every vector."""

    @abstractmethod
    def _delete(self, points: list[Any]) -> None:
        """Take points out."""


def _points(ids: list[Any]) -> list[Any]:
    """What the points are called."""
    return [name if isinstance(name, int) else str(uuid.uuid5(_NAMESPACE, name)) for name in ids]


class _Client(Points):
    """A collection behind ``qdrant_client.QdrantClient``."""

    def __init__(self, model: Any, client: Any, collection: str, **options: Any) -> None:
        super().__init__(model, f'the collection "{collection}"', **options)
        self._client, self._collection = client, collection

    def _found(self) -> Found | None:
        if not self._client.collection_exists(self._collection):
            return None
        said = self._client.get_collection(self._collection).config
        vectors = said.params.vectors
        named = vectors if isinstance(vectors, dict) else {None: vectors}
        if self._vector_name not in named:
            names = ", ".join("one without a name" if n is None else n for n in named)
            raise StoreError(
                f"expected the vector {self._vector_name!r} in {self._name}, but found {names}"
            )
        about = named[self._vector_name]
        known = {value: key for key, value in CALLED.items()}
        called = str(getattr(about.distance, "value", about.distance))
        record = (getattr(said, "metadata", None) or {}).get("metra")
        rows = self._count(None)
        return Found(self._name, record, known.get(called, called), int(about.size), rows)

    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        from qdrant_client import models

        record = {"metra": written.to_text()}
        if found is not None:
            self._client.update_collection(self._collection, metadata=record)
        else:
            distance = models.Distance(CALLED[written.distance])
            about = models.VectorParams(size=written.dimension, distance=distance)
            vectors = self._named(about)
            self._client.create_collection(
                self._collection, vectors_config=vectors, metadata=record
            )
        kept = self._found()
        if kept is None or kept.record != written.to_text():
            raise StoreError(
                f"the server dropped the metadata of {self._name}: expected Qdrant 1.16 or newer"
            )

    def _known(self, points: list[Any]) -> set[Any]:
        found = self._client.retrieve(
            self._collection, points, with_payload=False, with_vectors=False
        )
        return {record.id for record in found}

    def _update(self, points: list[Any], vectors: list[Any], payloads: list[Any]) -> None:
        from qdrant_client import models

        moved = [
            models.PointVectors(id=point, vector=self._named(vector))
            for point, vector in zip(points, vectors)
        ]
        operations: list[Any] = [
            models.UpdateVectorsOperation(update_vectors=models.UpdateVectors(points=moved))
        ]
        operations += [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload=payload, points=[point])
            )
            for point, payload in zip(points, payloads)
            if payload
        ]
        self._client.batch_update_points(self._collection, operations, wait=True)

    def _insert(self, points: list[Any], vectors: list[Any], payloads: list[Any]) -> None:
        from qdrant_client import models

        batch = models.Batch(ids=points, vectors=self._named(vectors), payloads=payloads)
        self._client.upsert(self._collection, points=batch, wait=True)

    def _hits(self, vectors: list[Any], k: int, where: Any, exact: bool) -> list[list[Hit]]:
        from qdrant_client import models

        requests = [
            models.QueryRequest(
                query=vector,
                limit=k,
                filter=where,
                using=self._vector_name,
                params=models.SearchParams(exact=True) if exact else None,
                with_payload=["id"],
            )
            for vector in vectors
        ]
        found = self._client.query_batch_points(self._collection, requests=requests)
        return [[(hit.id, hit.payload or {}, hit.score) for hit in row.points] for row in found]

    def _delete(self, points: list[Any]) -> None:
        self._client.delete(self._collection, points_selector=points, wait=True)

    def _count(self, where: Any) -> int:
        return int(self._client.count(self._collection, count_filter=where, exact=True).count)
