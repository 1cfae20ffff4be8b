"""Identifiers and vectors on their way into a store, and answers on their way back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import as_rows
from .._metra import DataError, MetraError, ParameterError, Plan
from .._supervision import names

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


def checked_ids(ids: Any, rows: int) -> tuple[list[Id], str]:
    """Identifiers as plain values with their kind, ``int`` or ``str``; each must be there once."""
    if ids is None:
        raise ParameterError("ids must be one identifier a row, but is None")
    values = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(values) != rows:
        raise ParameterError(
            f"ids must be one a row of X: expected {rows}, but found {len(values)}"
        )
    if not values:
        raise ParameterError("X must have at least one row, but has none")
    kind = "str" if isinstance(values[0], str) else "int"
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


def checked_cameras(cameras: Any, rows: int) -> list[str] | None:
    """Cameras as text, one a row."""
    found = names(cameras)
    if found is not None and len(found) != rows:
        raise ParameterError(f"cameras must be one a row: expected {rows}, but found {len(found)}")
    return found


def checked_nothing(ids: Any, X: Any) -> None:
    """With ``keep_items`` there is nothing to write."""
    if ids is not None or X is not None:
        raise ParameterError(
            "keep_items=True leaves the store's vectors as they are: expected neither ids nor X"
        )


class Items:
    """Items on their way into a store: checked as a whole, mapped some rows at a time.

    Parameters
    ----------
    ids, X, cameras, batch
        What the stores' ``write`` takes.

    Attributes
    ----------
    ids : list of int or list of str
        Identifiers, all different.
    kind : str
        ``int`` or ``str``.
    first : ndarray
        The rows of the first batch.
    """

    def __init__(self, ids: Any, X: Any, cameras: Any, batch: int) -> None:
        if batch < 1:
            raise ParameterError(f"batch must be at least 1, but is {batch}")
        self._rows = checked_rows(X)
        self.ids, self.kind = checked_ids(ids, len(self._rows))
        self._cameras = checked_cameras(cameras, len(self._rows))
        self._batch = batch
        self.first = self._rows[:batch]

    def mapped(
        self, plan: Plan, ids: Sequence[Id] | None = None
    ) -> Iterator[tuple[list[Any], NDArray[np.float32]]]:
        """What to store, a batch after the other; `ids` may be what the store calls them."""
        named = self.ids if ids is None else ids
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
            yield list(named[rows]), vectors


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
