"""Identifiers and vectors on their way into a store, and answers on their way back."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import as_rows
from .._metra import DataError, MetraError, ParameterError, Plan
from .._supervision import is_missing, names

# An identifier, as the caller gives it and gets it back.
Id = int | str

# Rows that are mapped and sent at once: some megabytes at a thousand numbers each.
BATCH = 1000


def checked_rows(X: Any) -> NDArray[Any]:
    """Vectors one a row. Arrays stay where they are: batches are converted one by one."""
    if X is None:
        raise ParameterError("X must be the items' vectors, but is None")
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X
    return as_rows(X)


def checked_ids(ids: Any, rows: int | None) -> tuple[list[Id], str]:
    """Identifiers as plain values with their kind, ``int`` or ``str``; each must be there once.

    With `rows` there must be so many, and at least one.
    """
    if ids is None:
        raise ParameterError("ids must be one identifier a row, but is None")
    values = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if rows is not None and len(values) != rows:
        raise ParameterError(
            f"ids must be one a row of X: expected {rows}, but found {len(values)}"
        )
    if not values and rows is not None:
        raise ParameterError("X must have at least one row, but has none")
    kind = "str" if values and isinstance(values[0], str) else "int"
    seen: dict[Id, int] = {}
    for row, value in enumerate(values):
        if kind == "int" and isinstance(value, np.integer):
            value = values[row] = int(value)
        if isinstance(value, bool) or not isinstance(value, str if kind == "str" else int):
            raise ParameterError(
                f"ids must be all int or all str, but row {row} has {value!r} and row 0 "
                f"{values[0]!r}"
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ParameterError(f"ids must fit into 64 bits, but row {row} has {value}")
        if seen.setdefault(value, row) != row:
            raise ParameterError(
                f"ids must be different, but {value!r} is in the rows {seen[value]} and {row}"
            )
    return values, kind


def own_id(name: Any, kind: str | None) -> Id:
    """An identifier as it was written; of vectors that others wrote, as the store has it."""
    if kind == "int" or (kind is None and isinstance(name, int)):
        return int(name)
    return str(name)


def checked_cameras(cameras: Any, rows: int) -> list[str] | None:
    """Cameras as text, one a row."""
    found = names(cameras)
    if found is not None and len(found) != rows:
        raise ParameterError(f"cameras must be one a row: expected {rows}, but found {len(found)}")
    return found


@dataclass(frozen=True)
class Batch:
    """Some items, as a store gets them.

    Attributes
    ----------
    ids : list of int or list of str
        Their identifiers.
    vectors : ndarray
        What to store, one row an item.
    metadata : list of dict
        One an item; all have the same keys, and None is a missing value.
    first : int
        Number of the first row.
    """

    ids: list[Any]
    vectors: NDArray[np.float32]
    metadata: list[dict[str, Any]]
    first: int

    def documents(self) -> list[dict[str, Any]]:
        """Metadata for stores of documents, which have no dates: those are ISO 8601 texts."""
        return [{key: _as_text(value) for key, value in row.items()} for row in self.metadata]


def _as_text(value: Any) -> Any:
    # Times are dates, too.
    return value.isoformat() if isinstance(value, datetime.date) else value


class Items:
    """Items on their way into a store: checked as a whole, mapped some rows at a time.

    Parameters
    ----------
    ids, X, cameras, metadata, batch
        What `Collection.write` takes.
    reserved : sequence of str
        Names that metadata must not have.

    Attributes
    ----------
    ids : list of int or list of str
        Identifiers, all different.
    kind : str
        ``int`` or ``str``.
    first : ndarray
        The rows of the first batch.
    columns : dict of str to list
        Metadata by name, one value a row.
    """

    def __init__(
        self, ids: Any, X: Any, cameras: Any, metadata: Any, batch: int, reserved: Sequence[str]
    ) -> None:
        if batch < 1:
            raise ParameterError(f"batch must be at least 1, but is {batch}")
        self._rows = checked_rows(X)
        self.ids, self.kind = checked_ids(ids, len(self._rows))
        self.columns = checked_metadata(metadata, len(self._rows), reserved)
        self._cameras = checked_cameras(cameras, len(self._rows))
        self._batch = batch
        self.first = self._rows[:batch]

    def mapped(self, plan: Plan) -> Iterator[Batch]:
        """What to store, a batch after the other."""
        for first in range(0, len(self._rows), self._batch):
            rows = slice(first, first + self._batch)
            cameras = None if self._cameras is None else self._cameras[rows]
            try:
                vectors = plan.map_items(self._rows[rows], cameras)
            except MetraError as error:
                last = min(first + self._batch, len(self._rows)) - 1
                raise type(error)(
                    f"in the rows {first} to {last} of X, counted from {first}: {error}"
                ) from error
            some = {name: values[rows] for name, values in self.columns.items()}
            metadata = [dict(zip(some, values)) for values in zip(*some.values())]
            yield Batch(self.ids[rows], vectors, metadata or [{} for _ in vectors], first)


def checked_metadata(metadata: Any, rows: int, reserved: Sequence[str]) -> dict[str, list[Any]]:
    """Metadata by name, as plain values, one a row; missing values are None."""
    if metadata is None:
        return {}
    if isinstance(metadata, (list, tuple)):
        for row, one in enumerate(metadata):
            if not isinstance(one, Mapping):
                raise ParameterError(
                    f"metadata must be one mapping a row, but row {row} has {type(one).__name__}"
                )
        keys = {key: None for one in metadata for key in one}
        columns = {key: [one.get(key) for one in metadata] for key in keys}
        if len(metadata) != rows:
            raise ParameterError(
                f"metadata must be one mapping a row of X: expected {rows}, but found {len(metadata)}"
            )
    elif isinstance(metadata, Mapping):
        columns = dict(metadata)
    elif hasattr(metadata, "columns"):
        # Tables of PyArrow name their columns otherwise than those of pandas and Polars.
        named = getattr(metadata, "column_names", metadata.columns)
        columns = {name: metadata[name] for name in named}
    else:
        raise ParameterError(
            "metadata must be a mapping of names to values, one mapping a row or a data frame, but "
            f"is {type(metadata).__name__}"
        )
    found = {}
    for name, values in columns.items():
        if not isinstance(name, str) or not name:
            raise ParameterError(f"metadata must be named by texts, but one name is {name!r}")
        if name in reserved:
            raise ParameterError(
                f"metadata must not be named {name!r}: the store has that name for the items' own "
                "identifiers or vectors"
            )
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise ParameterError(f"metadata {name!r} must be one value a row, but is {values!r}")
        if len(values) != rows:
            raise ParameterError(
                f"metadata {name!r} must be one value a row of X: expected {rows}, but found "
                f"{len(values)}"
            )
        found[name] = [_plain(value) for value in _listed(values)]
    return found


def _listed(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        # As finer units than microseconds, numpy would give numbers.
        return list(values.astype("datetime64[us]").tolist())
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def _plain(value: Any) -> Any:
    """A value without numpy's or pandas' type; missing ones are None."""
    if isinstance(value, np.generic):
        value = value.item()
    if is_missing(value):
        return None
    if type(value).__name__ == "Timestamp":
        return value.to_pydatetime()
    return value


def asked(plan: Plan, queries: Any, cameras: Any, k: int) -> NDArray[np.float32]:
    """What to ask with, one row a query."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError(f"k must be a whole number of at least 1, but is {k!r}")
    rows = checked_rows(queries)
    return plan.map_queries(rows, checked_cameras(cameras, len(rows)))


def answers(
    found: Sequence[Sequence[tuple[Any, float]]],
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Identifiers and scores of all queries, nearest first.

    Where an approximate index found fewer for one query than for another, the places left over have
    the score infinity and the identifier -1, or None among texts.
    """
    width = max((len(row) for row in found), default=0)
    whole = all(isinstance(name, (int, np.integer)) for row in found for name, _ in row)
    ids: NDArray[Any] = (
        np.full((len(found), width), -1, dtype=np.int64)
        if whole
        else np.full((len(found), width), None, dtype=object)
    )
    scores = np.full((len(found), width), np.inf, dtype=np.float32)
    for place, row in enumerate(found):
        for rank, (name, score) in enumerate(row):
            ids[place, rank] = name
            scores[place, rank] = score
    if not np.all(np.isfinite(scores) | (scores == np.inf)):
        raise DataError("the store answered with scores that are not numbers")
    return ids, scores
