"""Milvus: a collection of identifiers and vectors, whose properties hold the record.

The index is ``AUTOINDEX`` unless another is asked for; ``index="FLAT"`` is exact. A collection is
written batch after batch: after an error those before it are there, and writing again replaces
them. Metadata are dynamic fields, and filters are Milvus' expressions: ``where="year >= 2020"``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError
from ._collection import Collection, synchronous
from ._rows import Batch, Items
from ._written import Found, StoreError, Written

# What Milvus takes at most in a vector of float32, in a text that is a key, and as k.
MOST_DIMENSIONS = 32_768
LONGEST_TEXT = 65_535
MOST_ANSWERS = 16_384

# Identifiers that one condition names.
_NAMED = 1000

_CALLED = {"l2": "L2", "ip": "IP", "cosine": "COSINE"}


def open(
    model: Any,
    client: Any,
    collection: str,
    *,
    distance: str | None = None,
    keep_items: bool = False,
    id_field: str = "id",
    vector_field: str = "vector",
    index: str = "AUTOINDEX",
) -> Collection:
    """A collection for a model; the first `Collection.write` makes it.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps: the model that wrote the collection, or that will.
    client : pymilvus.MilvusClient
        A client of a server.
    collection : str
        Name of the collection.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the collection compares by.
    keep_items : bool, default=False
        The collection, filled by others, holds the items as they are and only queries are mapped.
    id_field, vector_field : str
        The fields.
    index : str, default="AUTOINDEX"
        Index of a new collection, such as ``FLAT`` or ``HNSW``.

    Returns
    -------
    Collection
        What writes, searches, deletes and counts.
    """
    client = synchronous(client, "a pymilvus.MilvusClient")
    fields, shared = (id_field, vector_field), {"distance": distance, "keep_items": keep_items}
    return _Milvus(model, client, collection, fields, index, **shared).opened()


class _Milvus(Collection):
    _never_exact = 'whether Milvus searches exactly is decided by its index; index="FLAT" does'

    def __init__(
        self,
        model: Any,
        client: Any,
        collection: str,
        fields: tuple[str, str],
        index: str,
        **shared: Any,
    ) -> None:
        name = f'the field "{fields[1]}" of the collection "{collection}"'
        super().__init__(
            model, name, most_dimensions=MOST_DIMENSIONS, reserved=fields, **shared
        )
        self._client, self._collection, self._index = client, collection, index
        self._id, self._vector = fields

    def _check_items(self, items: Items) -> None:
        if items.kind == "int":
            return
        for row, name in enumerate(items.ids):
            size = len(str(name).encode("utf-8"))
            if size > LONGEST_TEXT:
                raise ParameterError(
                    f"ids must be at most {LONGEST_TEXT} bytes in Milvus, but row {row} has {size}"
                )

    def _found(self) -> Found | None:
        client, collection = self._client, self._collection
        if not client.has_collection(collection):
            return None
        said = client.describe_collection(collection)
        fields = {field["name"]: field for field in said["fields"]}
        if "dim" not in fields.get(self._vector, {}).get("params", {}):
            found = ", ".join(fields)
            raise StoreError(f"expected vectors in {self._name}, but it has the fields {found}")
        distance = None
        for index in client.list_indexes(collection):
            about = client.describe_index(collection, index)
            if about["field_name"] == self._vector:
                known = {value: key for key, value in _CALLED.items()}
                distance = known.get(about["metric_type"], about["metric_type"])
        if distance is None:
            # What has no index cannot be loaded, and only what was flushed is counted.
            rows = int(client.get_collection_stats(collection)["row_count"])
        else:
            client.load_collection(collection)
            rows = self._count(None)
        record = dict(said.get("properties") or {}).get("metra")
        dimension = int(fields[self._vector]["params"]["dim"])
        return Found(self._name, record, distance, dimension, rows)

    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        from pymilvus import DataType

        client, record = self._client, {"metra": written.to_text()}
        if found is not None:
            client.alter_collection_properties(self._collection, properties=record)
            return
        schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
        if written.ids == "int":
            schema.add_field(self._id, DataType.INT64, is_primary=True)
        else:
            schema.add_field(self._id, DataType.VARCHAR, is_primary=True, max_length=LONGEST_TEXT)
        schema.add_field(self._vector, DataType.FLOAT_VECTOR, dim=written.dimension)
        parameters = client.prepare_index_params()
        metric = _CALLED[written.distance]
        parameters.add_index(self._vector, index_type=self._index, metric_type=metric)
        client.create_collection(
            self._collection,
            schema=schema,
            index_params=parameters,
            properties=record,
            consistency_level="Strong",
        )

    def _put(self, items: Items, batches: Iterator[Batch]) -> None:
        for batch in batches:
            rows = [
                {**about, self._id: name, self._vector: vector}
                for name, vector, about in zip(batch.ids, batch.vectors, batch.documents())
            ]
            # Fields that are not named keep their values.
            self._client.upsert(self._collection, rows, partial_update=True)

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, where: Any, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        if k > MOST_ANSWERS:
            raise ParameterError(f"k must be at most {MOST_ANSWERS} in Milvus, but is {k}")
        found = self._client.search(
            self._collection,
            data=list(vectors),
            limit=k,
            filter=where or "",
            anns_field=self._vector,
            search_params={"metric_type": _CALLED[self.plan.distance]},
            # What was written before this call counts.
            consistency_level="Strong",
        )
        sign = 1.0 if self.plan.distance == "l2" else -1.0
        return [[(hit["id"], sign * hit["distance"]) for hit in hits] for hits in found]

    def _remove(self, ids: list[Any]) -> None:
        for first in range(0, len(ids), _NAMED):
            # The client's own `ids=` does not escape texts with quotes.
            named = json.dumps(ids[first : first + _NAMED], ensure_ascii=False)
            self._client.delete(self._collection, filter=f"{self._id} in {named}")

    def _count(self, where: Any) -> int:
        counted = self._client.query(
            self._collection,
            filter=where or "",
            output_fields=["count(*)"],
            consistency_level="Strong",
        )
        return int(counted[0]["count(*)"])
