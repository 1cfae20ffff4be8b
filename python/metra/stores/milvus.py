"""Milvus: a collection of identifiers and vectors, whose properties hold the record.

The index is ``AUTOINDEX`` unless another is asked for; ``index="FLAT"`` is exact. A collection is
written batch after batch: after an error those before it are there, and writing again replaces
them.
"""

from __future__ import annotations

from typing import Any

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

# What Milvus takes at most in a vector of float32, in a text that is a key, and as k.
MOST_DIMENSIONS = 32_768
LONGEST_TEXT = 65_535
MOST_ANSWERS = 16_384

_CALLED = {"l2": "L2", "ip": "IP", "cosine": "COSINE"}

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
    id_field: str = "id",
    vector_field: str = "vector",
    index: str = "AUTOINDEX",
    batch: int = BATCH,
) -> Plan:
    """Write items into a collection; one that the same model wrote is added to.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps.
    client : pymilvus.MilvusClient
        A client of a server, or of a file of Milvus Lite.
    collection : str
        Name of the collection; it is made, with its index, if it is absent.
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
    id_field, vector_field : str
        The fields.
    index : str, default="AUTOINDEX"
        Kind of a new collection's index; those with parameters are made by Milvus's own client.
    batch : int, default=1000
        Rows that are mapped and sent at once.

    Returns
    -------
    Plan
        What was stored and what will be asked.
    """
    model = learned(model)
    found = _found(client, collection, vector_field)
    if keep_items:
        checked_nothing(ids, X)
        kept = there(found, f'the collection "{collection}"')
        return plan_to_keep(model, kept, offered=DISTANCES, distance=distance)
    items = Items(ids, X, cameras, batch)
    if items.kind == "str":
        _check_texts(items.ids)
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
        _create(client, collection, written, id_field, vector_field, index)
    elif found.record is None:
        client.alter_collection_properties(collection, properties={"metra": written.to_text()})
    for names, vectors in items.mapped(plan):
        rows = [{id_field: name, vector_field: row} for name, row in zip(names, vectors)]
        client.upsert(collection, rows)
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
    vector_field: str = "vector",
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The nearest items of every query, as far as the collection's index finds them.

    Parameters
    ----------
    model : Model or fitted estimator
        The one that wrote the collection; with `keep_items`, any that leaves items as they are.
    client : pymilvus.MilvusClient
        As for `write`.
    collection : str
        Name of the collection.
    queries : array-like of shape (n_queries, n_features)
        The queries as they are.
    k : int, default=10
        How many, at most 16,384.
    cameras : array-like, optional
        Camera of every query, where the model needs it.
    keep_items : bool, default=False
        The collection holds the items as they are, and only queries are mapped.
    vector_field : str
        The field of vectors.

    Returns
    -------
    ids : ndarray of shape (n_queries, k)
        Identifiers as they were written, nearest first.
    scores : ndarray of shape (n_queries, k), float32
        Smaller is nearer: squared distances, minus inner products or minus cosines.
    """
    model = learned(model)
    found = there(_found(client, collection, vector_field), f'the collection "{collection}"')
    plan, _ = plan_to_search(model, found, keep_items, DISTANCES)
    vectors = asked(plan, queries, cameras, k)
    if k > MOST_ANSWERS:
        raise ParameterError(f"k must be at most {MOST_ANSWERS} in Milvus, but is {k}")
    sign = 1.0 if plan.distance == "l2" else -1.0
    rows: list[list[tuple[Any, float]]] = []
    for first in range(0, len(vectors), _QUERIES):
        found_rows = client.search(
            collection,
            data=list(vectors[first : first + _QUERIES]),
            limit=int(k),
            anns_field=vector_field,
            search_params={"metric_type": _CALLED[plan.distance]},
            # What was written before this call counts.
            consistency_level="Strong",
        )
        for hits in found_rows:
            rows.append([(hit["id"], sign * hit["distance"]) for hit in hits])
    return answers(rows)


def _found(client: Any, collection: str, vector_field: str) -> Found | None:
    if not client.has_collection(collection):
        return None
    name = f'the field "{vector_field}" of the collection "{collection}"'
    said = client.describe_collection(collection)
    fields = {field["name"]: field for field in said["fields"]}
    if vector_field not in fields or "dim" not in fields[vector_field].get("params", {}):
        raise StoreError(f"expected vectors in {name}, but it has the fields {', '.join(fields)}")
    distance = None
    for index in client.list_indexes(collection):
        about = client.describe_index(collection, index)
        if about["field_name"] == vector_field:
            known = {value: key for key, value in _CALLED.items()}
            distance = known.get(about["metric_type"], about["metric_type"])
    return Found(
        name,
        dict(said.get("properties") or {}).get("metra"),
        distance,
        int(fields[vector_field]["params"]["dim"]),
        _rows(client, collection, distance is not None),
    )


def _rows(client: Any, collection: str, has_index: bool) -> int:
    if not has_index:
        # What has no index cannot be loaded, and only what was flushed is counted.
        return int(client.get_collection_stats(collection)["row_count"])
    client.load_collection(collection)
    counted = client.query(
        collection, filter="", output_fields=["count(*)"], consistency_level="Strong"
    )
    return int(counted[0]["count(*)"])


def _create(
    client: Any, collection: str, written: Written, id_field: str, vector_field: str, index: str
) -> None:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    if written.ids == "int":
        schema.add_field(id_field, DataType.INT64, is_primary=True)
    else:
        schema.add_field(id_field, DataType.VARCHAR, is_primary=True, max_length=LONGEST_TEXT)
    schema.add_field(vector_field, DataType.FLOAT_VECTOR, dim=written.dimension)
    parameters = client.prepare_index_params()
    metric = _CALLED[written.distance]
    parameters.add_index(vector_field, index_type=index, metric_type=metric)
    client.create_collection(
        collection,
        schema=schema,
        index_params=parameters,
        properties={"metra": written.to_text()},
        consistency_level="Strong",
    )


def _check_texts(ids: list[Any]) -> None:
    for row, name in enumerate(ids):
        size = len(name.encode("utf-8"))
        if size > LONGEST_TEXT:
            raise ParameterError(
                f"ids must be at most {LONGEST_TEXT} bytes in Milvus, but row {row} has {size}"
            )
