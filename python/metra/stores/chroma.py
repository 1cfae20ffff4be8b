"""Chroma: a collection, whose metadata holds the record.

Chroma always searches an approximate index (HNSW): the order is the plan's among what the index
finds, and ``hnsw={"ef_search": ...}`` makes it find more. Identifiers are texts in Chroma; whole
numbers are written as their digits and come back as numbers. A collection is written batch after
batch: after an error those before it are there, and writing again replaces them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import Plan
from ._rows import BATCH, Items, answers, asked, checked_nothing
from ._written import (
    Found,
    Written,
    learned,
    plan_to_keep,
    plan_to_search,
    plan_to_write,
    there,
)

DISTANCES = ("l2", "ip", "cosine")

# Chroma's distances are squared distances, 1 - product and 1 - cosine.
_MORE = {"l2": 0.0, "ip": 1.0, "cosine": 1.0}

# Queries that are asked at once.
_QUERIES = 256


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
    hnsw: Mapping[str, Any] | None = None,
    batch: int = BATCH,
) -> Plan:
    """Write items into a collection; one that the same model wrote is added to.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps.
    client : chromadb client
        ``chromadb.HttpClient``, ``PersistentClient`` or ``EphemeralClient``.
    collection : str
        Name of the collection; it is made if it is absent.
    ids : array-like of int or str
        One identifier a row. One that is there already gets the new vector.
    X : array-like of shape (n_items, n_features)
        The items as they are.
    cameras : array-like, optional
        Camera of every row, where the model needs it.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the collection compares by.
    keep_items : bool, default=False
        Write nothing: only see whether the collection, filled by others, serves this model as it
        is.
    hnsw : mapping, optional
        Other settings of a new collection's index, such as ``ef_search`` and ``max_neighbors``.
    batch : int, default=1000
        Rows that are mapped and sent at once, as far as the server takes so many.

    Returns
    -------
    Plan
        What was stored and what will be asked.

    Examples
    --------
    >>> import chromadb, metra, numpy as np
    >>> from metra.stores import chroma
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> client = chromadb.EphemeralClient()
    >>> chroma.write(model, client, "docs", range(60), X)
    Plan(way="mapped", distance="l2", dimension=2)
    >>> ids, scores = chroma.search(model, client, "docs", X[:2], k=3)
    >>> ids[:, 0].tolist()
    [0, 1]
    """
    model, opened = learned(model), _opened(client, collection)
    found = None if opened is None else _found(opened)
    if keep_items:
        checked_nothing(ids, X)
        kept = there(found, f'the collection "{collection}"')
        return plan_to_keep(model, kept, offered=DISTANCES, distance=distance)
    items = Items(ids, X, cameras, min(batch, client.get_max_batch_size()))
    plan, written = plan_to_write(
        model,
        found,
        items.first,
        ids=items.kind,
        offered=DISTANCES,
        distance=distance,
        most_dimensions=None,
    )
    if opened is None:
        opened = client.create_collection(
            collection,
            metadata={"metra": written.to_text()},
            configuration={"hnsw": {**(hnsw or {}), "space": plan.distance}},
            embedding_function=None,
        )
    elif found is not None and found.record is None:
        _mark(opened, written)
    for names, vectors in items.mapped(plan):
        opened.upsert(ids=[str(name) for name in names], embeddings=vectors)
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
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The nearest items of every query, as far as the index finds them.

    Parameters
    ----------
    model : Model or fitted estimator
        The one that wrote the collection; with `keep_items`, any that leaves items as they are.
    client : chromadb client
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
        Chroma's texts then.

    Returns
    -------
    ids : ndarray of shape (n_queries, k)
        Identifiers as they were written, nearest first.
    scores : ndarray of shape (n_queries, k), float32
        Smaller is nearer: squared distances, minus inner products or minus cosines.
    """
    model, opened = learned(model), _opened(client, collection)
    found = there(None if opened is None else _found(opened), f'the collection "{collection}"')
    plan, written = plan_to_search(model, found, keep_items, DISTANCES)
    vectors = asked(plan, queries, cameras, k)
    read: type[int] | type[str] = int if written is not None and written.ids == "int" else str
    more = _MORE[plan.distance]
    rows: list[list[tuple[Any, float]]] = []
    for first in range(0, len(vectors), _QUERIES):
        answer = opened.query(
            query_embeddings=vectors[first : first + _QUERIES],
            n_results=int(k),
            include=["distances"],
        )
        for names, away in zip(answer["ids"], answer["distances"]):
            rows.append([(read(name), value - more) for name, value in zip(names, away)])
    return answers(rows)


def _opened(client: Any, collection: str) -> Any:
    from chromadb.errors import NotFoundError

    try:
        # Vectors come from the model: no function that embeds texts is wanted.
        return client.get_collection(collection, embedding_function=None)
    except NotFoundError:
        return None


def _found(opened: Any) -> Found:
    metadata = opened.metadata or {}
    settings = opened.configuration.get("hnsw") or opened.configuration.get("spann") or {}
    distance = settings.get("space") or metadata.get("hnsw:space", "l2")
    one = opened.get(limit=1, include=["embeddings"])["embeddings"]
    dimension = len(one[0]) if one is not None and len(one) else None
    name = f'the collection "{opened.name}"'
    return Found(name, metadata.get("metra"), distance, dimension, opened.count())


def _mark(opened: Any, written: Written) -> None:
    """Put the record on a collection that was there, empty."""
    # The distance is fixed by now, and Chroma refuses metadata that name it again.
    kept = {
        key: value for key, value in (opened.metadata or {}).items() if not key.startswith("hnsw:")
    }
    opened.modify(metadata={**kept, "metra": written.to_text()})
