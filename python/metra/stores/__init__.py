"""Serve a learned metric from the vector store you already run.

One module a store: `lancedb`, `pgvector`, `chroma`, `milvus`, `qdrant` and `faiss`. Each has a
function ``open``, which gives a `Collection` that writes, searches, deletes and counts, with
metadata and the store's own filters. What is stored, what is asked and by which distance is a plan
(`metra.plan`), so that the store's order is the model's; where no plan fits, `metra.PlanError` says
why. Every store keeps a record of the model and the plan beside its vectors: another model is
refused, and another process that opens it asks by the same plan.

Scores are dissimilarities in all stores, smaller is nearer: the squared distance for ``l2``, minus
the product for ``ip``, minus the cosine for ``cosine``. Under the way ``mapped`` they are the
model's own dissimilarities; other ways add a part that is the same for all items of a query.

Nothing here imports a client before its module is used.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from ._collection import Collection
from ._written import StoreError

_STORES = ("chroma", "faiss", "lancedb", "milvus", "pgvector", "qdrant")


def __getattr__(name: str) -> _Any:
    if name in _STORES:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_STORES})


__all__ = ["Collection", "StoreError"]
