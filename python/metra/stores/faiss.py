"""FAISS: a flat index in a file, exact, with the record in a file beside it.

``docs.faiss`` holds the vectors (``IndexIDMap2`` over ``IndexFlatL2`` or ``IndexFlatIP``), and
``docs.faiss.metra.json`` the record and, where identifiers are texts, their list: FAISS itself
knows numbers alone. FAISS has no cosine; such models are stored at length 1 and asked by inner
product.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import Plan
from ._rows import BATCH, Items, answers, asked, checked_nothing
from ._written import (
    Found,
    StoreError,
    Written,
    learned,
    plan_to_keep,
    plan_to_search,
    plan_to_write,
)

DISTANCES = ("l2", "ip")


@dataclass(frozen=True)
class Opened:
    """An index with its record, read once for many searches."""

    name: str
    index: Any
    record: str | None
    names: list[str] | None

    def found(self) -> Found:
        """What the index compares by and holds."""
        import faiss

        known = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "ip"}
        metric = self.index.metric_type
        if metric not in known:
            raise StoreError(
                f"{self.name} has the metric {metric}, but expected L2 or inner product"
            )
        rows = int(self.index.ntotal)
        return Found(self.name, self.record, known[metric], int(self.index.d), rows)


def write(
    model: Any,
    path: str | os.PathLike[str],
    ids: Any = None,
    X: Any = None,
    *,
    cameras: Any = None,
    distance: str | None = None,
    keep_items: bool = False,
    batch: int = BATCH,
) -> Plan:
    """Write items into an index file; one that the same model wrote is added to.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps.
    path : str or path
        The index; its record goes to the same name with ``.metra.json`` at its end.
    ids : array-like of int or str
        One identifier a row. One that is there already gets the new vector.
    X : array-like of shape (n_items, n_features)
        The items as they are.
    cameras : array-like, optional
        Camera of every row, where the model needs it.
    distance : {"l2", "ip"}, optional
        Insist on what the index compares by.
    keep_items : bool, default=False
        Write nothing: only see whether the index, made by others, serves this model as it is.
    batch : int, default=1000
        Rows that are mapped at once.

    Returns
    -------
    Plan
        What was stored and what will be asked.

    Examples
    --------
    >>> import metra, numpy as np, tempfile
    >>> from metra.stores import faiss
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> faiss.write(model, folder.name + "/docs.faiss", range(60), X)
    Plan(way="mapped", distance="l2", dimension=2)
    >>> ids, scores = faiss.search(model, folder.name + "/docs.faiss", X[:2], k=3)
    >>> ids[:, 0].tolist()
    [0, 1]
    >>> folder.cleanup()
    """
    import faiss

    model, path = learned(model), Path(path)
    opened = read(path) if path.exists() else None
    if keep_items:
        checked_nothing(ids, X)
        opened = read(path) if opened is None else opened
        return plan_to_keep(model, opened.found(), offered=DISTANCES, distance=distance)
    items = Items(ids, X, cameras, batch)
    plan, written = plan_to_write(
        model,
        None if opened is None else opened.found(),
        items.first,
        ids=items.kind,
        offered=DISTANCES,
        distance=distance,
        most_dimensions=None,
    )
    if opened is None or opened.record is None:
        flat = faiss.IndexFlatL2 if plan.distance == "l2" else faiss.IndexFlatIP
        index: Any = faiss.IndexIDMap2(flat(plan.dimension))
        names: list[str] | None = [] if items.kind == "str" else None
    else:
        index, names = opened.index, opened.names
    numbers = items.ids if names is None else _numbered(items.ids, names)
    if index.ntotal:
        index.remove_ids(np.asarray(numbers, dtype=np.int64))
    for part, vectors in items.mapped(plan, numbers):
        index.add_with_ids(vectors, np.asarray(part, dtype=np.int64))
    _save(path, index, written, names)
    return plan


def read(path: str | os.PathLike[str]) -> Opened:
    """Read an index with its record, to search it more than once.

    Parameters
    ----------
    path : str or path
        What `write` wrote, or any index of FAISS by L2 or inner product (without a record).

    Returns
    -------
    Opened
        What `search` takes in place of the path.
    """
    import faiss

    path = Path(path)
    beside = _beside(path)
    if not path.exists():
        raise FileNotFoundError(f"expected an index of FAISS at {path}, but there is no such file")
    index, name = faiss.read_index(str(path)), f'the index "{path.name}"'
    if not beside.exists():
        return Opened(name, index, None, None)
    try:
        side = json.loads(beside.read_text(encoding="utf-8"))
        record, rows, names = side["record"], side["rows"], side["names"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"the record of {name} cannot be read: {error!r}") from error
    if rows != index.ntotal:
        raise StoreError(
            f"{name} holds {index.ntotal} vectors, but its record is of {rows}: one of the two "
            "files is of another time"
        )
    return Opened(name, index, json.dumps(record), names)


def search(
    model: Any,
    source: str | os.PathLike[str] | Opened,
    queries: Any,
    k: int = 10,
    *,
    cameras: Any = None,
    keep_items: bool = False,
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The nearest items of every query.

    Parameters
    ----------
    model : Model or fitted estimator
        The one that wrote the index; with `keep_items`, any that leaves items as they are.
    source : path or Opened
        The index file, or what `read` gave.
    queries : array-like of shape (n_queries, n_features)
        The queries as they are.
    k : int, default=10
        How many.
    cameras : array-like, optional
        Camera of every query, where the model needs it.
    keep_items : bool, default=False
        The index holds the items as they are, and only queries are mapped.

    Returns
    -------
    ids : ndarray of shape (n_queries, k)
        Identifiers as they were written, nearest first.
    scores : ndarray of shape (n_queries, k), float32
        Smaller is nearer: squared distances, or minus inner products.
    """
    model = learned(model)
    opened = source if isinstance(source, Opened) else read(source)
    found = opened.found()
    plan, _ = plan_to_search(model, found, keep_items, DISTANCES)
    vectors = asked(plan, queries, cameras, k)
    near, numbers = opened.index.search(vectors, int(min(k, max(found.rows, 1))))
    if plan.distance == "ip":
        near = -near
    # Approximate indexes fill the places for which they found nothing with the largest number.
    there = near < np.finfo(np.float32).max
    names = opened.names
    return answers(
        [
            [
                (number if names is None else names[number], score)
                for number, score, is_there in zip(*row)
                if is_there
            ]
            for row in zip(numbers.tolist(), near.tolist(), there.tolist())
        ]
    )


def _numbered(ids: list[Any], names: list[str]) -> list[int]:
    """Numbers for texts, adding to `names` those that are new."""
    known = {name: number for number, name in enumerate(names)}
    for name in ids:
        if name not in known:
            known[name] = len(names)
            names.append(name)
    return [known[name] for name in ids]


def _save(path: Path, index: Any, written: Written, names: list[str] | None) -> None:
    import faiss

    # Each file is replaced as a whole; the number of rows tells two that do not belong together.
    side = {"record": json.loads(written.to_text()), "rows": int(index.ntotal), "names": names}
    parts = [path.with_name(path.name + ".part"), _beside(path).with_suffix(".part")]
    faiss.write_index(index, str(parts[0]))
    parts[1].write_text(json.dumps(side, sort_keys=True), encoding="utf-8")
    os.replace(parts[0], path)
    os.replace(parts[1], _beside(path))


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".metra.json")
