"""Shards of Qdrant Edge: Qdrant's engine in process, one folder a collection.

A shard has no place for metadata: the record is the file ``metra.json`` in its folder, and what the
vectors are is read from the shard's own ``edge_config.json``. A shard is opened for the time of one
call, because only one process may hold it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError
from ._written import Found, StoreError, Written
from .qdrant import CALLED, Hit


class Edge:
    """One shard of a folder of them."""

    def __init__(self, folder: Path, collection: str, vector_name: str | None) -> None:
        if Path(collection).name != collection or collection in ("", ".", ".."):
            raise ParameterError(f"collection must be the name of a folder, but is {collection!r}")
        self.path, self.vector_name = folder / collection, vector_name
        self.name = f'the shard "{collection}"'
        self.shard: Any = None

    def found(self) -> Found | None:
        """What is there."""
        from qdrant_edge import CountRequest

        settings = self.path / "edge_config.json"
        if not settings.exists():
            return None
        named = json.loads(settings.read_text(encoding="utf-8"))["vectors"]
        about = named.get(self.vector_name or "")
        if about is None:
            names = ", ".join(repr(name) for name in named)
            raise StoreError(
                f"expected the vector {self.vector_name!r} in {self.name}, but found {names}"
            )
        known = {value: key for key, value in CALLED.items()}
        distance = known.get(about["distance"], about["distance"])
        record = self._record.read_text(encoding="utf-8") if self._record.exists() else None
        rows = self._opened().count(CountRequest(exact=True))
        return Found(self.name, record, distance, int(about["size"]), rows)

    def create(self, written: Written) -> None:
        """Make the shard with its record."""
        import qdrant_edge

        distance = getattr(qdrant_edge.Distance, CALLED[written.distance])
        about = qdrant_edge.EdgeVectorParams(size=written.dimension, distance=distance)
        settings = qdrant_edge.EdgeConfig(vectors={self.vector_name or "": about})
        self.path.mkdir(parents=True, exist_ok=True)
        self.shard = qdrant_edge.EdgeShard.create(str(self.path), settings)
        self.mark(written)

    def mark(self, written: Written) -> None:
        """Put the record beside what is there."""
        part = self._record.with_suffix(".part")
        part.write_text(written.to_text(), encoding="utf-8")
        os.replace(part, self._record)

    def upsert(self, ids: list[Any], vectors: NDArray[np.float32], names: list[str] | None) -> None:
        """Write points; `names` are their payloads."""
        from qdrant_edge import Point, UpdateOperation

        payloads: list[Any] = [None] * len(ids) if names is None else [{"id": n} for n in names]
        named = self.vector_name
        points = [
            Point(point, row if named is None else {named: row}, payload)
            for point, row, payload in zip(ids, vectors.tolist(), payloads)
        ]
        self._opened().update(UpdateOperation.upsert_points(points))

    def query(self, vectors: NDArray[np.float32], k: int, exact: bool) -> list[list[Hit]]:
        """The nearest points of every vector."""
        from qdrant_edge import Query, QueryBatchRequest, QueryRequest, SearchParams

        requests = [
            QueryRequest(
                query=Query.Nearest(vector, using=self.vector_name),
                limit=k,
                params=SearchParams(exact=exact),
                with_payload=True,
            )
            for vector in vectors.tolist()
        ]
        found = self._opened().query_batch(QueryBatchRequest(requests))
        return [[(hit.id, hit.payload or {}, hit.score) for hit in row] for row in found]

    def close(self) -> None:
        """Write everything down and let go."""
        if self.shard is not None:
            self.shard.flush()
            self.shard.close()
            self.shard = None

    @property
    def _record(self) -> Path:
        return self.path / "metra.json"

    def _opened(self) -> Any:
        from qdrant_edge import EdgeShard

        if self.shard is None:
            self.shard = EdgeShard.load(str(self.path))
        return self.shard
