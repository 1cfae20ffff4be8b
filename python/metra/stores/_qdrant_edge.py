"""Shards of Qdrant Edge: Qdrant's engine in process, one folder a collection.

A shard has no place for metadata: the record is the file ``metra.json`` in its folder, and what the
vectors are is read from the shard's own ``edge_config.json``. A shard is opened for the time of one
call, because only one process may hold it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._metra import ParameterError
from ._rows import Items
from ._written import Found, StoreError, Written
from .qdrant import CALLED, Hit, Points


class Edge(Points):
    """One shard of a folder of them."""

    def __init__(self, model: Any, folder: Path, collection: str, **options: Any) -> None:
        if Path(collection).name != collection or collection in ("", ".", ".."):
            raise ParameterError(f"collection must be the name of a folder, but is {collection!r}")
        super().__init__(model, f'the shard "{collection}"', **options)
        self._path = folder / collection
        self._record = self._path / "metra.json"
        self._held: Any = None

    @contextmanager
    def _session(self) -> Iterator[None]:
        try:
            yield
        finally:
            if self._held is not None:
                self._held.flush()
                self._held.close()
                self._held = None

    @property
    def _shard(self) -> Any:
        from qdrant_edge import EdgeShard

        if self._held is None:
            self._held = EdgeShard.load(str(self._path))
        return self._held

    def _found(self) -> Found | None:
        settings = self._path / "edge_config.json"
        if not settings.exists():
            return None
        named = json.loads(settings.read_text(encoding="utf-8"))["vectors"]
        about = named.get(self._vector_name or "")
        if about is None:
            names = ", ".join(repr(name) for name in named)
            raise StoreError(
                f"expected the vector {self._vector_name!r} in {self._name}, but found {names}"
            )
        known = {value: key for key, value in CALLED.items()}
        distance = known.get(about["distance"], about["distance"])
        record = self._record.read_text(encoding="utf-8") if self._record.exists() else None
        return Found(self._name, record, distance, int(about["size"]), self._count(None))

    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        import qdrant_edge

        if found is None:
            distance = getattr(qdrant_edge.Distance, CALLED[written.distance])
            about = qdrant_edge.EdgeVectorParams(size=written.dimension, distance=distance)
            settings = qdrant_edge.EdgeConfig(vectors={self._vector_name or "": about})
            self._path.mkdir(parents=True, exist_ok=True)
            self._held = qdrant_edge.EdgeShard.create(str(self._path), settings)
        part = self._record.with_suffix(".part")
        part.write_text(written.to_text(), encoding="utf-8")
        os.replace(part, self._record)

    def _known(self, points: list[Any]) -> set[Any]:
        # Other than a server, a shard gives UUIDs as objects.
        found = self._shard.retrieve(points, False, False)
        return {r.id if isinstance(r.id, int) else str(r.id) for r in found}

    def _update(self, points: list[Any], vectors: list[Any], payloads: list[Any]) -> None:
        from qdrant_edge import PointVectors, UpdateOperation

        moved = [PointVectors(point, self._named(v)) for point, v in zip(points, vectors)]
        self._shard.update(UpdateOperation.update_vectors(moved))
        for point, payload in zip(points, payloads):
            if payload:
                self._shard.update(UpdateOperation.set_payload([point], payload))

    def _insert(self, points: list[Any], vectors: list[Any], payloads: list[Any]) -> None:
        from qdrant_edge import Point, UpdateOperation

        rows = zip(points, vectors, payloads)
        made = [Point(point, self._named(vector), payload) for point, vector, payload in rows]
        self._shard.update(UpdateOperation.upsert_points(made))

    def _hits(self, vectors: list[Any], k: int, where: Any, exact: bool) -> list[list[Hit]]:
        from qdrant_edge import Query, QueryBatchRequest, QueryRequest, SearchParams

        requests = [
            QueryRequest(
                query=Query.Nearest(vector, using=self._vector_name),
                limit=k,
                filter=where,
                params=SearchParams(exact=exact),
                with_payload=True,
            )
            for vector in vectors
        ]
        found = self._shard.query_batch(QueryBatchRequest(requests))
        return [[(hit.id, hit.payload or {}, hit.score) for hit in row] for row in found]

    def _delete(self, points: list[Any]) -> None:
        from qdrant_edge import UpdateOperation

        self._shard.update(UpdateOperation.delete_points(points))

    def _count(self, where: Any) -> int:
        from qdrant_edge import CountRequest

        return int(self._shard.count(CountRequest(exact=True, filter=where)))
