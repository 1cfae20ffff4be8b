"""What is similar to what, from the forms in which people have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def supervision(
    y: Any = None,
    *,
    qrels: Any = None,
    pairs: Any = None,
    triplets: Any = None,
    quadruplets: Any = None,
    orderings: Any = None,
    taxonomy: Any = None,
    cameras: Any = None,
    query_cameras: Any = None,
) -> dict[str, Any]:
    """Everything as plain lists, which the library reads."""
    numbers, labels = _classes(y)
    return {
        "numbers": numbers,
        "labels": labels,
        "qrels": None if qrels is None else _qrels(qrels),
        "pairs": None if pairs is None else _pairs(pairs),
        "triplets": None if triplets is None else _rows(triplets, "triplets", 3),
        "quadruplets": None if quadruplets is None else _quadruplets(quadruplets),
        "orderings": None if orderings is None else _orderings(orderings),
        "taxonomy": None if taxonomy is None else _taxonomy(taxonomy),
        "cameras": names(cameras),
        "query_cameras": names(query_cameras),
    }


def _classes(y: Any) -> tuple[list[int] | None, list[str] | None]:
    if y is None:
        return None, None
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y must have one class a row, but has {values.ndim} dimensions")
    if values.dtype.kind == "f" and np.all(np.isfinite(values)) and np.all(values == np.rint(values)):
        values = values.astype(np.int64)
    if values.dtype.kind in "iub":
        return values.astype(np.int64).tolist(), None
    return None, [str(value) for value in values.tolist()]


def names(values: Any) -> list[str] | None:
    """Values as text, None where there are none."""
    if values is None:
        return None
    return [str(value) for value in np.asarray(values).tolist()]


def _qrels(qrels: Any) -> list[tuple[int, int, float]]:
    if isinstance(qrels, Mapping):
        return [
            (_row(query, "query"), _row(item, "item"), float(grade))
            for query, graded in qrels.items()
            for item, grade in (graded.items() if isinstance(graded, Mapping) else _ones(graded))
        ]
    if hasattr(qrels, "tocoo"):
        sparse = qrels.tocoo()
        lines = zip(sparse.row, sparse.col, sparse.data)
        return [(int(query), int(item), float(grade)) for query, item, grade in lines]
    table = np.asarray(qrels)
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        raise ValueError(
            "qrels must have the columns query, item and, if graded, grade; a dictionary of "
            f"dictionaries or a sparse matrix will do too, but found the shape {table.shape}"
        )
    grades = table[:, 2].astype(float) if table.shape[1] == 3 else np.ones(len(table))
    rows = table[:, :2].astype(np.int64)
    return [(int(q), int(i), float(g)) for (q, i), g in zip(rows, grades)]


def _row(number: Any, what: str) -> int:
    try:
        return int(number)
    except ValueError:
        raise ValueError(
            f"qrels must name each {what} by its row number, from 0, but found {number!r}"
        ) from None


def _ones(items: Any) -> Any:
    return ((item, 1.0) for item in items)


def _pairs(pairs: Any) -> list[tuple[int, int, bool]]:
    if isinstance(pairs, tuple) and len(pairs) == 2:
        rows, said = _matrix(pairs[0], "pairs", (2,)), np.asarray(pairs[1])
        if said.shape != (len(rows),):
            raise ValueError(f"expected {len(rows)} labels of pairs, but found {said.shape}")
    else:
        table = _matrix(pairs, "pairs", (2, 3))
        rows = table[:, :2]
        said = table[:, 2] if table.shape[1] == 3 else np.ones(len(table))
    # 1 is similar; 0 and −1 are dissimilar.
    return [(int(a), int(b), bool(same > 0)) for (a, b), same in zip(rows, said)]


def _quadruplets(quadruplets: Any) -> list[tuple[int, int, int, int, bool]]:
    table = _matrix(quadruplets, "quadruplets", (4, 5))
    strict = table[:, 4] if table.shape[1] == 5 else np.ones(len(table))
    return [(*(int(v) for v in row[:4]), bool(s)) for row, s in zip(table, strict)]  # type: ignore[misc]


def _rows(table: Any, what: str, width: int) -> list[tuple[int, ...]]:
    return [tuple(int(v) for v in row) for row in _matrix(table, what, (width,))]


def _matrix(table: Any, what: str, widths: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(table)
    if array.ndim != 2 or array.shape[1] not in widths:
        expected = " or ".join(str(width) for width in widths)
        raise ValueError(
            f"{what} must be row numbers in {expected} columns, but have the shape {array.shape}"
        )
    if array.dtype.kind not in "iu":
        whole = array.astype(np.int64)
        if not np.array_equal(whole, array):
            raise ValueError(f"{what} must be row numbers, but some are not whole numbers")
        array = whole
    return array


def _orderings(orderings: Any) -> list[tuple[str, str]]:
    if isinstance(orderings, Mapping):
        return [(str(name), str(order)) for name, order in orderings.items()]
    lines = []
    for line in [orderings] if isinstance(orderings, str) else orderings:
        if isinstance(line, str):
            attribute, separator, order = line.partition(":")
            if not separator:
                raise ValueError(f'expected "attribute: A<B~C", but found {line!r}')
            lines.append((attribute.strip(), order.strip()))
        else:
            attribute, order = line
            lines.append((str(attribute), str(order)))
    return lines


def _taxonomy(taxonomy: Any) -> list[tuple[str, str]]:
    edges = taxonomy.items() if isinstance(taxonomy, Mapping) else taxonomy
    return [(str(child), str(parent)) for child, parent in edges]
