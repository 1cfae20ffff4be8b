"""What all stores have in common: one model's items in one collection, table or index.

A store's own module has a function ``open`` and a class with what only that store knows: what is
there, how it is made, and how vectors are put in, found, deleted and counted.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError, Plan
from ._rows import BATCH, Batch, Items, answers, asked, checked_ids, own_id
from ._written import Found, StoreError, Written, digest, fresh_plan, kept_plan, learned, written_plan

if TYPE_CHECKING:
    from typing_extensions import Self

# Queries that are asked at once.
_QUERIES = 256

class Collection(ABC):
    """The items of one model in a store; `open` of a store's module gives it.

    What is there is looked at once, when it is opened, and again before every `write`. An instance
    can serve many searches; it keeps the caller's client and closes nothing.
    """

    # What the store can compare by.
    _distances: ClassVar[Sequence[str]] = ("l2", "ip", "cosine")
    # Why it has no exact search, where it has none.
    _never_exact: ClassVar[str | None] = None
    # Whether items can have metadata.
    _has_metadata: ClassVar[bool] = True

    def __init__(
        self,
        model: Any,
        name: str,
        *,
        distance: str | None = None,
        keep_items: bool = False,
        most_dimensions: int | None = None,
        reserved: Sequence[str] = (),
    ) -> None:
        self.model = learned(model)
        self._name, self._distance, self._keep_items = name, distance, keep_items
        self._most_dimensions, self._reserved = most_dimensions, reserved
        self._model_digest = digest(self.model)
        self._plan: Plan | None = None
        self._written: Written | None = None
        # Whether what was found is still so; a write that failed may have changed it.
        self._is_known = self._is_there = False

    def opened(self) -> Self:
        """Look at what is there, unless it is known."""
        if not self._is_known:
            with self._session():
                self._look()
        return self

    @property
    def plan(self) -> Plan:
        """What is stored and what is asked: the plan by which the items were written, exactly.

        ``plan.map_queries`` gives what this store must be asked, wherever it is asked from. A plan
        made anew by `metra.plan` has no centre and would not do.
        """
        self.opened()
        if self._plan is None or not self._is_there:
            raise StoreError(f"expected {self._name}, but it is absent: nothing was written yet")
        return self._plan

    def write(
        self,
        ids: Any,
        X: Any,
        *,
        metadata: Any = None,
        cameras: Any = None,
        batch: int = BATCH,
    ) -> Plan:
        """Put items in. Those that are there already get the new vector and keep all else.

        Parameters
        ----------
        ids : array-like of int or str
            One identifier a row, all different.
        X : array-like of shape (n_items, n_features)
            The items as they are.
        metadata : mapping, list of mappings or data frame, optional
            Values to filter by, one a row: ``{"tenant": [...], "year": [...]}``, one mapping a row,
            or a table of pandas, Polars or PyArrow. None, NaN and NaT are missing values. Items that
            are there already keep what is not named.
        cameras : array-like, optional
            Camera of every row, where the model needs it.
        batch : int, default=1000
            Rows that are mapped and sent at once.

        Returns
        -------
        Plan
            What was stored and what will be asked.
        """
        self._check_writable()
        if metadata is not None and not self._has_metadata:
            raise ParameterError(
                f"{self._name} cannot hold metadata: keep them beside it, and name the items to "
                "search by where=ids"
            )
        items = Items(ids, X, cameras, metadata, min(batch, self._most_rows()), self._reserved)
        self._check_items(items)
        try:
            with self._session():
                found = self._look()
                if self._written is None:
                    self._begin(found, self._first(items), items)
                elif items.kind != self._written.ids:
                    raise StoreError(
                        f"{self._name} has ids of {self._written.ids}, but these are {items.kind}"
                    )
                plan, self._is_there = self._plan, True
                assert plan is not None
                self._put(items, items.mapped(plan))
        except BaseException:
            self._is_known = False
            raise
        return plan

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        where: Any = None,
        cameras: Any = None,
        exact: bool = False,
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The nearest items of every query.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_features)
            The queries as they are.
        k : int, default=10
            How many.
        where : optional
            The store's own filter, as the module's documentation says: only items that pass it are
            searched.
        cameras : array-like, optional
            Camera of every query, where the model needs it.
        exact : bool, default=False
            Go past an approximate index, if there is one.

        Returns
        -------
        ids : ndarray of shape (n_queries, k)
            Identifiers as they were written, nearest first.
        scores : ndarray of shape (n_queries, k), float32
            Smaller is nearer: squared distances, minus inner products or minus cosines.
        """
        if exact and self._never_exact is not None:
            raise ParameterError(f"exact must be False: {self._never_exact}")
        vectors = asked(self.plan, queries, cameras, k)
        kind = None if self._written is None else self._written.ids
        rows: list[list[tuple[Any, float]]] = []
        with self._session():
            for first in range(0, len(vectors), _QUERIES):
                rows += self._nearest(vectors[first : first + _QUERIES], int(k), where, exact)
        return answers([[(own_id(name, kind), score) for name, score in row] for row in rows])

    def delete(self, ids: Any) -> None:
        """Take items out; identifiers that are not there are passed over.

        In PostgreSQL the row stays, and its vector becomes NULL: what writes all rows without a vector
        would bring it back.

        Parameters
        ----------
        ids : array-like of int or str
            As they were written.
        """
        self._check_writable()
        if isinstance(ids, (int, str)):
            raise ParameterError(f"ids must be a list of identifiers, but is {ids!r}")
        values, kind = checked_ids(ids, None)
        written = self.opened()._written
        if not values or written is None:
            return
        if kind != written.ids:
            raise StoreError(f"{self._name} has ids of {written.ids}, but these are {kind}")
        with self._session():
            self._remove(values)

    def count(self, where: Any = None) -> int:
        """How many items there are, or how many pass a filter (as in `search`)."""
        if not self.opened()._is_there:
            return 0
        with self._session():
            return self._count(where)

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        state = repr(self._plan) if self._is_there else "absent"
        return f"<{self._name}: {state}>"

    def _look(self) -> Found | None:
        found = self._found()
        self._is_known, self._is_there = True, found is not None
        self._written = None if found is None else found.written()
        if self._keep_items:
            if found is None:
                raise StoreError(f"expected {self._name}, but it is absent")
            self._plan = kept_plan(
                self.model, found, self._distances, self._distance, self._most_dimensions
            )
        elif found is None or self._written is None:
            self._plan = fresh_plan(
                self.model, found, self._distances, self._distance, self._most_dimensions
            )
        else:
            self._plan = written_plan(self.model, self._model_digest, found, self._distance)
        return found

    def _first(self, items: Items) -> Written:
        """The record of a collection that this model writes to first."""
        plan = self._plan
        assert plan is not None
        # Cameras' means are taken before the map: what is left lies around the origin already.
        if not plan.items_stay and self.model.cameras is None:
            plan = self._plan = self._centred(plan, items)
        self._written = Written.of(self._model_digest, self.model.method, plan, items.kind)
        return self._written

    def _centred(self, plan: Plan, items: Items) -> Plan:
        return plan.centred_on(items.first)

    def _check_writable(self) -> None:
        if self._keep_items:
            raise ParameterError(
                "keep_items=True leaves the store's vectors as they are: expected a collection that "
                "was opened without it"
            )

    def _check_items(self, items: Items) -> None:
        """Refuse what this store cannot take."""

    def _most_rows(self) -> int:
        """Rows that the store takes at once."""
        return 2**31

    def _session(self) -> AbstractContextManager[Any]:
        """What is held for the time of one call, such as a transaction."""
        return nullcontext()

    @abstractmethod
    def _found(self) -> Found | None:
        """What is there."""

    @abstractmethod
    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        """Make the collection with its record, or mark the empty one that was found."""

    @abstractmethod
    def _put(self, items: Items, batches: Iterator[Batch]) -> None:
        """Write items; those that are there keep what is not written."""

    @abstractmethod
    def _nearest(
        self, vectors: NDArray[np.float32], k: int, where: Any, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        """Identifiers and scores of the nearest items, as dissimilarities."""

    @abstractmethod
    def _remove(self, ids: list[Any]) -> None:
        """Take items out."""

    @abstractmethod
    def _count(self, where: Any) -> int:
        """Items that pass a filter."""


def synchronous(client: Any, expected: str) -> Any:
    """A client, unless it is one whose answers must be awaited."""
    found = type(client)
    if inspect.iscoroutine(client):
        client.close()
    elif not any(base.__name__.startswith("Async") for base in found.__mro__):
        return client
    raise ParameterError(
        f"expected {expected}, but found {found.__name__}: asynchronous clients are not supported; "
        "give a synchronous one and call it in a thread (asyncio.to_thread)"
    )
