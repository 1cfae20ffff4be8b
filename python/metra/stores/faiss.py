"""FAISS: a flat index in a file, exact, with the record in a file beside it.

``docs.faiss`` holds the vectors (``IndexIDMap2`` over ``IndexFlatL2`` or ``IndexFlatIP``), and
``docs.faiss.metra.json`` the record and, where identifiers are texts, their list: FAISS itself
knows numbers alone. FAISS has no cosine; such models are stored at length 1 and asked by inner
product. It has no metadata either: ``where`` is the list of the identifiers to search among, or an
``IDSelector`` of FAISS over its own numbers.

The index is read when it is opened and kept in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError
from ._collection import Collection
from ._rows import Batch, Items, checked_ids
from ._written import Found, StoreError, Written


def open(
    model: Any,
    path: str | os.PathLike[str],
    *,
    distance: str | None = None,
    keep_items: bool = False,
) -> Collection:
    """An index file for a model; the first `Collection.write` makes it.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps: the model that wrote the index, or that will.
    path : str or path
        The index; its record goes to the same name with ``.metra.json`` at its end.
    distance : {"l2", "ip"}, optional
        Insist on what the index compares by.
    keep_items : bool, default=False
        The index, made by others, holds the items as they are and only queries are mapped. It may
        be any index of FAISS by L2 or inner product, approximate ones too.

    Returns
    -------
    Collection
        What writes, searches, deletes and counts.

    Examples
    --------
    >>> import metra, numpy as np, tempfile
    >>> from metra.stores import faiss
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> docs = faiss.open(model, folder.name + "/docs.faiss")
    >>> docs.write(range(60), X)
    Plan(way="mapped", distance="l2", dimension=2)
    >>> ids, scores = docs.search(X[:2], k=3, where=range(1, 60))
    >>> 0 in ids, ids[1, 0].item()
    (False, 1)
    >>> folder.cleanup()
    """
    return _Faiss(model, Path(path), distance, keep_items).opened()


class _Faiss(Collection):
    _distances = ("l2", "ip")
    _has_metadata = False

    def __init__(self, model: Any, path: Path, distance: str | None, keep_items: bool) -> None:
        name = f'the index "{path.name}"'
        super().__init__(model, name, distance=distance, keep_items=keep_items)
        self._path, self._beside = path, path.with_name(path.name + ".metra.json")
        self._index: Any = None
        self._texts: list[str] | None = None

    def _found(self) -> Found | None:
        import faiss

        if not self._path.exists():
            return None
        index = self._index = faiss.read_index(str(self._path))
        known = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "ip"}
        if index.metric_type not in known:
            raise StoreError(
                f"{self._name} has the metric {index.metric_type}, but expected L2 or inner product"
            )
        rows, record = int(index.ntotal), None
        if self._beside.exists():
            try:
                side = json.loads(self._beside.read_text(encoding="utf-8"))
                record, told, self._texts = json.dumps(side["record"]), side["rows"], side["names"]
            except (ValueError, KeyError, TypeError) as error:
                raise StoreError(f"the record of {self._name} cannot be read: {error!r}") from error
            if told != rows:
                raise StoreError(
                    f"{self._name} holds {rows} vectors, but its record is of {told}: one of the "
                    "two files is of another time"
                )
        return Found(self._name, record, known[index.metric_type], int(index.d), rows)

    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        import faiss

        flat = faiss.IndexFlatL2 if written.distance == "l2" else faiss.IndexFlatIP
        self._index = faiss.IndexIDMap2(flat(written.dimension))
        self._texts = [] if written.ids == "str" else None

    def _put(self, items: Items, batches: Iterator[Batch]) -> None:
        numbers = np.asarray(self._numbered(items.ids), dtype=np.int64)
        if self._index.ntotal:
            self._index.remove_ids(numbers)
        for batch in batches:
            named = numbers[batch.first : batch.first + len(batch.ids)]
            self._index.add_with_ids(batch.vectors, named)
        self._save()

    def _numbered(self, ids: list[Any]) -> list[int]:
        """FAISS' numbers of identifiers; texts that are new get the next ones."""
        if self._texts is None:
            return ids
        known = {name: number for number, name in enumerate(self._texts)}
        for name in ids:
            if name not in known:
                known[name] = len(self._texts)
                self._texts.append(name)
        return [known[name] for name in ids]

    def _save(self) -> None:
        import faiss

        # Each file is replaced as a whole; the number of rows tells two that do not belong together.
        assert self._written is not None
        record = json.loads(self._written.to_text())
        side = {"record": record, "rows": int(self._index.ntotal), "names": self._texts}
        parts = [self._path.with_name(self._path.name + ".part"), self._beside.with_suffix(".part")]
        faiss.write_index(self._index, str(parts[0]))
        parts[1].write_text(json.dumps(side, sort_keys=True), encoding="utf-8")
        os.replace(parts[0], self._path)
        os.replace(parts[1], self._beside)

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, where: Any, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        index = self._index
        options = {} if where is None else {"params": self._parameters(where)}
        near, numbers = index.search(vectors, min(k, max(int(index.ntotal), 1)), **options)
        if self.plan.distance == "ip":
            near = -near
        # FAISS fills the places for which it found nothing with the largest number.
        most = np.finfo(np.float32).max
        texts = self._texts
        return [
            [
                (number if texts is None else texts[number], score)
                for number, score in zip(*row)
                if score < most
            ]
            for row in zip(numbers.tolist(), near.tolist())
        ]

    def _parameters(self, where: Any) -> Any:
        """What restricts a search, in the form that the kind of index takes."""
        import faiss

        selector = self._selector(where)
        inner = faiss.downcast_index(getattr(self._index, "index", self._index))
        # Parameters of a search replace those of the index.
        if isinstance(inner, faiss.IndexIVF):
            return faiss.SearchParametersIVF(sel=selector, nprobe=inner.nprobe)
        if isinstance(inner, faiss.IndexHNSW):
            return faiss.SearchParametersHNSW(sel=selector, efSearch=inner.hnsw.efSearch)
        return faiss.SearchParameters(sel=selector)

    def _selector(self, where: Any) -> Any:
        import faiss

        if isinstance(where, faiss.IDSelector):
            return where
        if isinstance(where, (str, bytes, dict)) or not hasattr(where, "__iter__"):
            raise ParameterError(
                "where must be identifiers or an IDSelector of FAISS, which has no metadata to "
                f"filter by, but is {where!r}"
            )
        values, kind = checked_ids(where, None)
        own = "int" if self._written is None else self._written.ids
        if values and kind != own:
            raise StoreError(f"{self._name} has ids of {own}, but these are {kind}")
        if self._texts is not None:
            known = {name: number for number, name in enumerate(self._texts)}
            values = [known[name] for name in values if name in known]
        return faiss.IDSelectorBatch(np.asarray(values, dtype=np.int64))

    def _remove(self, ids: list[Any]) -> None:
        self._index.remove_ids(self._selector(ids))
        self._save()

    def _count(self, where: Any) -> int:
        if where is None:
            return int(self._index.ntotal)
        import faiss

        selector = self._selector(where)
        inner = self._index
        numbers = (
            faiss.vector_to_array(inner.id_map).tolist()
            if hasattr(inner, "id_map")
            else range(int(inner.ntotal))
        )
        return sum(selector.is_member(number) for number in numbers)
