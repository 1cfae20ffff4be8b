"""Qdrant: a collection, whose metadata hold the record; or a shard of Qdrant Edge in a folder.

Points of Qdrant are called by whole numbers from 0 or by UUIDs. Texts therefore become the UUID of
their name (version 5, in a namespace of metra's own), and the text itself is the point's payload
``id``. Metadata of collections came with Qdrant 1.16; a server that drops them is refused. A
collection is written batch after batch: after an error those before it are there, and writing again
replaces them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError, Plan
from ._rows import BATCH, Items, answers, asked, checked_nothing
from ._written import (
    Found,
    StoreError,
    Written,
    learned,
    plan_to_keep,
    plan_to_search,
    plan_to_write,
    there,
)

DISTANCES = ("l2", "ip", "cosine")

# What Qdrant takes at most in a vector.
MOST_DIMENSIONS = 65_536

CALLED = {"l2": "Euclid", "ip": "Dot", "cosine": "Cosine"}

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "metra:stores:qdrant")

# Queries that are asked at once.
_QUERIES = 256

# Identifier of the point, its payload and its score, as Qdrant has them.
Hit = tuple[Any, dict[str, Any], float]


class Door(Protocol):
    """One collection, whoever keeps it."""

    def found(self) -> Found | None:
        """What is there."""

    def create(self, written: Written) -> None:
        """Make the collection with its record."""

    def mark(self, written: Written) -> None:
        """Put the record on a collection that was there, empty."""

    def upsert(self, ids: list[Any], vectors: NDArray[np.float32], names: list[str] | None) -> None:
        """Write points; `names` are their payloads."""

    def query(self, vectors: NDArray[np.float32], k: int, exact: bool) -> list[list[Hit]]:
        """The nearest points of every vector."""

    def close(self) -> None:
        """Let go of it."""


def write(
    model: Any,
    client: Any,
    collection: str,
    ids: Any = None,
    X: Any = None,
    *,
    cameras: Any = None,
    distance: str | None = None,
    keep_items: bool = False,
    vector_name: str | None = None,
    batch: int = BATCH,
) -> Plan:
    """Write items into a collection; one that the same model wrote is added to.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps.
    client : qdrant_client.QdrantClient or pathlib.Path
        A client of a server or of its local mode; or a folder of shards of Qdrant Edge.
    collection : str
        Name of the collection, or of the shard's folder; it is made if it is absent.
    ids : array-like of int or str
        One identifier a row; whole numbers from 0. One that is there already gets the new vector.
    X : array-like of shape (n_items, n_features)
        The items as they are.
    cameras : array-like, optional
        Camera of every row, where the model needs it.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the collection compares by.
    keep_items : bool, default=False
        Write nothing: only see whether the collection, filled by others, serves this model as it
        is.
    vector_name : str, optional
        Name of the vector among those of a point; without it the one that has no name.
    batch : int, default=1000
        Rows that are mapped and sent at once.

    Returns
    -------
    Plan
        What was stored and what will be asked.

    Examples
    --------
    >>> import metra, numpy as np
    >>> from metra.stores import qdrant
    >>> from qdrant_client import QdrantClient
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> client = QdrantClient(":memory:")
    >>> qdrant.write(model, client, "docs", range(60), X)
    Plan(way="mapped", distance="l2", dimension=2)
    >>> ids, scores = qdrant.search(model, client, "docs", X[:2], k=3)
    >>> ids[:, 0].tolist()
    [0, 1]
    """
    model = learned(model)
    with _door(client, collection, vector_name) as door:
        found = door.found()
        if keep_items:
            checked_nothing(ids, X)
            kept = there(found, f'the collection "{collection}"')
            return plan_to_keep(model, kept, offered=DISTANCES, distance=distance)
        items = Items(ids, X, cameras, batch)
        points = _points(items)
        plan, written = plan_to_write(
            model,
            found,
            items.first,
            ids=items.kind,
            offered=DISTANCES,
            distance=distance,
            most_dimensions=MOST_DIMENSIONS,
        )
        if found is None:
            door.create(written)
        elif found.record is None:
            door.mark(written)
        first = 0
        for part, vectors in items.mapped(plan, points):
            names = [str(name) for name in items.ids[first : first + len(part)]]
            door.upsert(part, vectors, names if items.kind == "str" else None)
            first += len(part)
        return plan


def search(
    model: Any,
    client: Any,
    collection: str,
    queries: Any,
    k: int = 10,
    *,
    cameras: Any = None,
    keep_items: bool = False,
    vector_name: str | None = None,
    exact: bool = False,
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The nearest items of every query.

    Parameters
    ----------
    model : Model or fitted estimator
        The one that wrote the collection; with `keep_items`, any that leaves items as they are.
    client : qdrant_client.QdrantClient or pathlib.Path
        As for `write`.
    collection : str
        Name of the collection.
    queries : array-like of shape (n_queries, n_features)
        The queries as they are.
    k : int, default=10
        How many.
    cameras : array-like, optional
        Camera of every query, where the model needs it.
    keep_items : bool, default=False
        The collection holds the items as they are, and only queries are mapped. Identifiers are
        those of Qdrant's points then.
    vector_name : str, optional
        Name of the vector among those of a point.
    exact : bool, default=False
        Go past the index, which Qdrant makes once a collection is large.

    Returns
    -------
    ids : ndarray of shape (n_queries, k)
        Identifiers as they were written, nearest first.
    scores : ndarray of shape (n_queries, k), float32
        Smaller is nearer: squared distances, minus inner products or minus cosines.
    """
    model = learned(model)
    with _door(client, collection, vector_name) as door:
        found = there(door.found(), f'the collection "{collection}"')
        plan, written = plan_to_search(model, found, keep_items, DISTANCES)
        vectors = asked(plan, queries, cameras, k)
        hits: list[list[Hit]] = []
        for first in range(0, len(vectors), _QUERIES):
            hits += door.query(vectors[first : first + _QUERIES], int(k), exact)
    texts = written is not None and written.ids == "str"
    return answers([[_read(hit, plan.distance, texts) for hit in row] for row in hits])


def _read(hit: Hit, distance: str, texts: bool) -> tuple[Any, float]:
    point, payload, score = hit
    name = payload["id"] if texts else point if isinstance(point, int) else str(point)
    # Qdrant gives the root of the squared distance.
    return name, score * score if distance == "l2" else -score


def _points(items: Items) -> list[Any]:
    """What the points are called."""
    if items.kind == "str":
        return [str(uuid.uuid5(_NAMESPACE, str(name))) for name in items.ids]
    for row, number in enumerate(items.ids):
        if int(number) < 0:
            raise ParameterError(
                f"ids must be whole numbers from 0, or texts, in Qdrant, but row {row} has {number}"
            )
    return list(items.ids)


@contextmanager
def _door(client: Any, collection: str, vector_name: str | None) -> Iterator[Door]:
    door: Door
    if isinstance(client, str):
        # An address of a server would become a folder of that name.
        raise ParameterError(
            f"client must be a QdrantClient or a pathlib.Path of shards, but is the text {client!r}"
        )
    if isinstance(client, Path):
        from ._qdrant_edge import Edge

        door = Edge(client, collection, vector_name)
    else:
        door = _Client(client, collection, vector_name)
    try:
        yield door
    finally:
        door.close()


class _Client:
    """A collection behind ``qdrant_client.QdrantClient``."""

    def __init__(self, client: Any, collection: str, vector_name: str | None) -> None:
        self.client, self.collection, self.vector_name = client, collection, vector_name
        self.name = f'the collection "{collection}"'

    def found(self) -> Found | None:
        if not self.client.collection_exists(self.collection):
            return None
        said = self.client.get_collection(self.collection).config
        vectors = said.params.vectors
        named = vectors if isinstance(vectors, dict) else {None: vectors}
        if self.vector_name not in named:
            names = ", ".join("one without a name" if n is None else n for n in named)
            raise StoreError(
                f"expected the vector {self.vector_name!r} in {self.name}, but found {names}"
            )
        about = named[self.vector_name]
        known = {value: key for key, value in CALLED.items()}
        called = str(getattr(about.distance, "value", about.distance))
        record = (getattr(said, "metadata", None) or {}).get("metra")
        rows = self.client.count(self.collection, exact=True).count
        return Found(self.name, record, known.get(called, called), int(about.size), rows)

    def create(self, written: Written) -> None:
        from qdrant_client import models

        distance = models.Distance(CALLED[written.distance])
        about = models.VectorParams(size=written.dimension, distance=distance)
        self.client.create_collection(
            self.collection,
            vectors_config=about if self.vector_name is None else {self.vector_name: about},
            metadata={"metra": written.to_text()},
        )
        self._check(written)

    def mark(self, written: Written) -> None:
        self.client.update_collection(self.collection, metadata={"metra": written.to_text()})
        self._check(written)

    def _check(self, written: Written) -> None:
        found = self.found()
        if found is None or found.record != written.to_text():
            raise StoreError(
                f"the server dropped the metadata of {self.name}: expected Qdrant 1.16 or newer"
            )

    def upsert(self, ids: list[Any], vectors: NDArray[np.float32], names: list[str] | None) -> None:
        from qdrant_client import models

        rows: Any = vectors.tolist()
        self.client.upsert(
            self.collection,
            points=models.Batch(
                ids=ids,
                vectors=rows if self.vector_name is None else {self.vector_name: rows},
                payloads=None if names is None else [{"id": name} for name in names],
            ),
            wait=True,
        )

    def query(self, vectors: NDArray[np.float32], k: int, exact: bool) -> list[list[Hit]]:
        from qdrant_client import models

        parameters = models.SearchParams(exact=True) if exact else None
        requests = [
            models.QueryRequest(
                query=vector,
                limit=k,
                using=self.vector_name,
                params=parameters,
                with_payload=["id"],
            )
            for vector in vectors.tolist()
        ]
        found = self.client.query_batch_points(self.collection, requests=requests)
        return [[(hit.id, hit.payload or {}, hit.score) for hit in row.points] for row in found]

    def close(self) -> None:
        """The client is the caller's."""
