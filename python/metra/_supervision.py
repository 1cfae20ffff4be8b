"""What is similar to what, from the forms in which people have it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._metra import SupervisionError


def supervision(
    y: Any = None,
    *,
    queries: Any = None,
    qrels: Any = None,
    two_spaces: bool = False,
    vector_dims: Any = None,
    pairs: Any = None,
    triplets: Any = None,
    quadruplets: Any = None,
    orderings: Any = None,
    taxonomy: Any = None,
    cameras: Any = None,
    query_cameras: Any = None,
    combined: bool = False,
) -> dict[str, Any]:
    """Everything as plain lists, which the library reads. ``combined``: classes are learned from beside comparisons."""
    compared = {"pairs": pairs, "triplets": triplets, "quadruplets": quadruplets}
    beside = [name for name, given in compared.items() if given is not None]
    if y is not None and beside and not combined:
        raise SupervisionError(
            f"y and {beside[0]} both say what is similar, and only one of them would be used: give "
            "one of them, or take Qwise(class_weight=1), which learns from both"
        )
    if queries is not None and qrels is None:
        raise SupervisionError(
            "queries need qrels, which say what items are relevant to them: expected both"
        )
    lists, list_of = _several_labels(y)
    numbers, labels = _classes(y if lists is None else None)
    return {
        "numbers": numbers,
        "labels": labels,
        "label_lists": lists,
        "label_list_of": list_of,
        "qrels": None if qrels is None else _qrels(qrels),
        "two_spaces": bool(two_spaces),
        "vector_dims": None if vector_dims is None else _dims(vector_dims),
        "pairs": None if pairs is None else _pairs(pairs),
        "triplets": None if triplets is None else _rows(triplets, "triplets", 3),
        "quadruplets": None if quadruplets is None else _quadruplets(quadruplets),
        "orderings": None if orderings is None else _orderings(orderings),
        "taxonomy": None if taxonomy is None else _taxonomy(taxonomy),
        "cameras": names(cameras),
        "query_cameras": names(query_cameras),
    }


def _dims(vector_dims: Any) -> list[int]:
    """Numbers of features of the vectors of a row."""
    dims = [operator.index(dim) for dim in vector_dims]
    if any(dim < 1 for dim in dims):
        raise SupervisionError(f"vector_dims must be at least 1 each, but are {dims}")
    return dims


def _several_labels(y: Any) -> tuple[list[list[str]] | None, list[int] | None]:
    """Distinct lists of labels, and which of them each row has; nothing where rows have one label."""
    rows = None if y is None else _label_lists(y)
    if rows is None:
        return None, None
    numbers: dict[tuple[str, ...], int] = {}
    of = [numbers.setdefault(tuple(row), len(numbers)) for row in rows]
    return [list(labels) for labels in numbers], of


def _label_lists(y: Any) -> list[list[str]] | None:
    """The labels of every row, of a matrix of 0 and 1 or of a sequence of lists."""
    if hasattr(y, "tocsr"):
        matrix = y.tocsr()
        if not np.all(np.isin(matrix.data, (0, 1))):
            raise SupervisionError("y must be a matrix of 0 and 1 (multilabel-indicator), but has other values")
        matrix.eliminate_zeros()
        matrix.sort_indices()
        bounds = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
        return [[str(label) for label in matrix.indices[start:end]] for start, end in bounds]
    if hasattr(y, "to_pylist"):  # PyArrow
        y = y.to_pylist()
    elif getattr(y, "ndim", 1) == 1 and hasattr(y, "to_list"):  # pandas, polars
        y = y.to_list()
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype == object):
        rows = list(y)
        is_list = [_is_list(row) for row in rows]
        # One value in every row is a column of classes.
        if any(is_list) and not all(known and len(row) == 1 for row, known in zip(rows, is_list, strict=True)):
            if not _is_indicator(rows, is_list):
                return [_labels(row, number) for number, row in enumerate(rows)]
            y = np.asarray(rows)
    if not hasattr(y, "ndim") or y.ndim != 2 or y.shape[1] < 2:
        return None
    values = np.asarray(y)
    if np.ma.is_masked(y) or not np.all(np.isin(values, (0, 1))):
        return None
    return [[str(label) for label in np.flatnonzero(row)] for row in values]


def _is_list(row: Any) -> bool:
    return isinstance(row, (list, tuple, set, frozenset)) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _is_indicator(rows: list[Any], is_list: list[bool]) -> bool:
    """Whether lists are the rows of a matrix of 0 and 1."""
    if not all(is_list) or any(isinstance(row, (set, frozenset)) for row in rows):
        return False
    widths = {len(row) for row in rows}
    return len(widths) == 1 and all(not isinstance(label, str) and label in (0, 1) for row in rows for label in row)


def _labels(row: Any, number: int) -> list[str]:
    if not _is_list(row):
        raise SupervisionError(
            f"y has lists of labels, but row {number} is {row!r}: expected a list in every row, empty for none"
        )
    if any(is_missing(label) for label in row):
        raise SupervisionError(f"y has a missing label (None or NaN) in row {number}: leave it out of the list")
    if any(isinstance(label, (float, np.floating)) and label != int(label) for label in row):
        raise SupervisionError(f"y has a label in row {number} that is not whole: expected names or numbers of labels")
    # The label 1.0 is the label 1.
    return sorted(str(int(label)) if isinstance(label, (float, np.floating)) else str(label) for label in row)


def _classes(y: Any) -> tuple[list[int] | None, list[str] | None]:
    if y is None:
        return None, None
    missing = missing_values(y)
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values, missing = values[:, 0], missing.reshape(-1)
    if values.ndim != 1:
        raise SupervisionError(
            f"y must be one class per row, a list of labels per row, or a matrix of 0 and 1 with a column per "
            f"label, but has {values.ndim} dimensions and other values"
        )
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise SupervisionError(
            f"y has no class in {int(missing.sum())} of {len(values)} rows (None or NaN; the first is "
            f"row {first}): leave such rows out, of X and y alike"
        )
    if values.dtype.kind == "f":
        if not np.all(np.isfinite(values)):
            raise SupervisionError("Input y contains infinity: expected classes")
        if np.any(values != np.rint(values)):
            raise SupervisionError(
                "y must be classes, but has numbers that are not whole (continuous): cut them into "
                "classes (numpy.digitize), order classes by orderings=, or name what is similar by "
                "pairs= or triplets="
            )
        values = values.astype(np.int64)
    if values.dtype.kind in "iub":
        return values.astype(np.int64).tolist(), None
    return None, [str(value) for value in values.tolist()]


def missing_values(values: Any) -> np.ndarray:
    """Where values are None, NaN, NaT, NA or masked."""
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(np.ma.getmaskarray(values))
    if hasattr(values, "to_pylist"):  # PyArrow
        values = np.asarray(values.to_pylist(), dtype=object)
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return np.isnan(array)
    if array.dtype.kind == "M":
        return np.isnat(array)
    if array.dtype.kind != "O":
        # A list of texts and None becomes texts, "None" among them.
        array = np.asarray(values, dtype=object)
        if array.dtype.kind != "O" or array.shape != np.asarray(values).shape:
            return np.zeros(np.shape(values), dtype=bool)
    missing = [is_missing(value) for value in array.ravel()]
    return np.asarray(missing, dtype=bool).reshape(array.shape)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def names(values: Any) -> list[str] | None:
    """Cameras as text, None where there are none."""
    if values is None:
        return None
    missing = missing_values(values)
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise SupervisionError(
            f"cameras must be one a row, but {int(missing.sum())} are missing (None or NaN; the first "
            f"is row {first})"
        )
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
        raise SupervisionError(
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
        raise SupervisionError(
            f"qrels must name each {what} by its row number, from 0, but found {number!r}"
        ) from None


def _ones(items: Any) -> Any:
    return ((item, 1.0) for item in items)


def _pairs(pairs: Any) -> list[tuple[int, int, bool]]:
    if isinstance(pairs, tuple) and len(pairs) == 2:
        rows, said = _matrix(pairs[0], "pairs", (2,)), np.asarray(pairs[1])
        if said.shape != (len(rows),):
            raise SupervisionError(f"expected {len(rows)} labels of pairs, but found {said.shape}")
    else:
        table = _matrix(pairs, "pairs", (2, 3))
        rows = table[:, :2]
        said = table[:, 2] if table.shape[1] == 3 else np.ones(len(table))
    wrong = [label for label in said.tolist() if label not in (1, 0, -1)]
    if wrong:
        raise SupervisionError(
            "labels of pairs must be 1 (similar), 0 or -1 (dissimilar), True or False, but "
            f"{len(wrong)} are not, such as {wrong[0]!r}"
        )
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
        raise SupervisionError(
            f"{what} must be row numbers in {expected} columns, but have the shape {array.shape}"
        )
    if array.dtype.kind not in "iu":
        whole = array.astype(np.int64)
        if not np.array_equal(whole, array):
            raise SupervisionError(f"{what} must be row numbers, but some are not whole numbers")
        array = whole
    return array


def _orderings(orderings: Any) -> list[tuple[str, str]]:
    if isinstance(orderings, Mapping):
        return [(str(name), _order(order)) for name, order in orderings.items()]
    lines = []
    for line in [orderings] if isinstance(orderings, str) else orderings:
        if isinstance(line, str):
            attribute, separator, order = line.partition(":")
            if not separator:
                raise SupervisionError(f'expected "attribute: A<B~C", but found {line!r}')
            lines.append((attribute.strip(), order.strip()))
        else:
            attribute, order = line
            lines.append((str(attribute), _order(order)))
    return lines


def _order(order: Any) -> str:
    """An ordering as text: ``A<B~C``, or a list from least to most, with lists of classes that tie."""
    if isinstance(order, str):
        return order
    levels = []
    for level in order:
        names = [str(n) for n in (level if isinstance(level, (list, tuple, set)) else [level])]
        for name in names:
            if "<" in name or "~" in name:
                raise SupervisionError(f"classes of an ordering must not have < or ~, as {name!r} has")
        levels.append("~".join(names))
    return "<".join(levels)


def _taxonomy(taxonomy: Any) -> list[tuple[str, str]]:
    edges = taxonomy.items() if isinstance(taxonomy, Mapping) else taxonomy
    return [(str(child), str(parent)) for child, parent in edges]
