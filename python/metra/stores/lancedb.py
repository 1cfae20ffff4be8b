"""LanceDB: a table with a column of identifiers and one of vectors.

The record is metadata of the vector's field in the table's schema, so that copies of the table and
its older versions keep it. A write is one commit: after an error nothing of it is there. Search is
exact until an index is made on the column, by LanceDB's own ``create_index`` with the distance that
the plan names (LanceDB calls ``ip`` ``dot``). Metadata are columns, and filters are LanceDB's SQL:
``where="year >= 2020 AND tenant = 'a'"``, applied before the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import MetraError, ParameterError
from ._collection import Collection, synchronous
from ._rows import Batch, Items
from ._written import Found, StoreError, Written

# What LanceDB calls them, and what its distance has more than the dissimilarity.
_CALLED = {"l2": "l2", "ip": "dot", "cosine": "cosine"}
_MORE = {"l2": 0.0, "ip": 1.0, "cosine": 1.0}

# Identifiers that one condition names.
_NAMED = 1000


def open(
    model: Any,
    connection: Any,
    table: str,
    *,
    distance: str | None = None,
    keep_items: bool = False,
    id_column: str = "id",
    vector_column: str = "vector",
) -> Collection:
    """A table for a model; the first `Collection.write` makes it.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps: the model that wrote the table, or that will.
    connection : lancedb.DBConnection
        What ``lancedb.connect`` gives.
    table : str
        Name of the table.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the table is searched by.
    keep_items : bool, default=False
        The table, filled by others, holds the items as they are and only queries are mapped.
    id_column, vector_column : str
        The columns.

    Returns
    -------
    Collection
        What writes, searches, deletes and counts.

    Examples
    --------
    >>> import lancedb as client, metra, numpy as np, tempfile
    >>> from metra.stores import lancedb
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> docs = lancedb.open(model, client.connect(folder.name), "docs")
    >>> docs.write(range(60), X, metadata={"half": [row // 30 for row in range(60)]})
    Plan(way="mapped", distance="l2", dimension=2)
    >>> ids, scores = docs.search(X[:2], k=3, where="half = 0")
    >>> ids[:, 0].tolist(), docs.count("half = 0")
    ([0, 1], 30)
    >>> folder.cleanup()
    """
    connection = synchronous(connection, "what lancedb.connect gives")
    if id_column == vector_column:
        raise ParameterError(f"id_column and vector_column must differ, but both are {id_column!r}")
    columns, shared = (id_column, vector_column), {"distance": distance, "keep_items": keep_items}
    return _Lance(model, connection, table, columns, **shared).opened()


class _Lance(Collection):
    def __init__(
        self,
        model: Any,
        connection: Any,
        table: str,
        columns: tuple[str, str],
        **shared: Any,
    ) -> None:
        name = f'the column "{columns[1]}" of the table "{table}"'
        super().__init__(model, name, reserved=columns, **shared)
        self._connection, self._table_name = connection, table
        self._id, self._vector = columns
        self._table: Any = None

    def _found(self) -> Found | None:
        import pyarrow

        try:
            table = self._table = self._connection.open_table(self._table_name)
        except (ValueError, FileNotFoundError):
            return None
        schema = table.schema
        if self._vector not in schema.names:
            columns = ", ".join(schema.names)
            raise StoreError(f"expected {self._name}, but it has the columns {columns}")
        field = schema.field(self._vector)
        if not pyarrow.types.is_fixed_size_list(field.type):
            raise StoreError(f"expected vectors of one size in {self._name}, but found {field.type}")
        record = (field.metadata or {}).get(b"metra")
        distance = None
        for index in table.list_indices():
            if index.columns == [self._vector]:
                called = table.index_stats(index.name).distance_type
                distance = {value: key for key, value in _CALLED.items()}.get(called, called)
        return Found(
            self._name,
            None if record is None else record.decode("utf-8"),
            distance,
            field.type.list_size,
            table.count_rows(),
        )

    def _latest(self) -> Any:
        """The table with what others have written since it was opened."""
        self._table.checkout_latest()
        return self._table

    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        import pyarrow

        record = {"metra": written.to_text()}
        if found is not None:
            self._table.update_field_metadata({"path": self._vector, "metadata": record})
            return
        kind = pyarrow.int64() if written.ids == "int" else pyarrow.string()
        vector = pyarrow.list_(pyarrow.float32(), written.dimension)
        fields = [
            pyarrow.field(self._id, kind),
            pyarrow.field(self._vector, vector, metadata=record),
        ]
        schema = pyarrow.schema(fields)
        self._table = self._connection.create_table(self._table_name, schema=schema)

    def _put(self, items: Items, batches: Iterator[Batch]) -> None:
        import pyarrow

        metadata = self._columns(items)
        there = self._table.schema
        schema = pyarrow.schema(
            [there.field(self._id), there.field(self._vector)]
            + [pyarrow.field(name, values.type) for name, values in metadata.items()]
        )
        problems: list[MetraError] = []

        def arrow() -> Iterator[Any]:
            try:
                for batch in batches:
                    flat = pyarrow.array(batch.vectors.reshape(-1))
                    size = batch.vectors.shape[1]
                    columns = [
                        pyarrow.array(batch.ids, type=schema.field(0).type),
                        pyarrow.FixedSizeListArray.from_arrays(flat, size),
                    ]
                    columns += [v.slice(batch.first, len(batch.ids)) for v in metadata.values()]
                    yield pyarrow.record_batch(columns, schema=schema)
            except MetraError as error:
                # Through Arrow only its text would arrive.
                problems.append(error)
                raise

        reader = pyarrow.RecordBatchReader.from_batches(schema, arrow())
        try:
            if self._table.count_rows():
                merge = self._table.merge_insert(self._id).when_matched_update_all()
                merge.when_not_matched_insert_all().execute(reader)
            else:
                self._table.add(reader)
        except Exception:
            if problems:
                raise problems[0] from None
            raise

    def _columns(self, items: Items) -> dict[str, Any]:
        """Metadata as Arrow has them; columns that are new are added to the table, empty."""
        import pyarrow

        schema, found, new = self._table.schema, {}, []
        for name, values in items.columns.items():
            kind = schema.field(name).type if name in schema.names else None
            try:
                array = pyarrow.array(values, type=kind)
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                expected = "of one type" if kind is None else f"of {kind}, as the column is"
                raise ParameterError(f"metadata {name!r} must be {expected}: {error}") from error
            if pyarrow.types.is_null(array.type):
                array = array.cast(pyarrow.string())
            if kind is None:
                new.append(pyarrow.field(name, array.type))
            found[name] = array
        if new:
            self._table.add_columns(new)
        return found

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, where: Any, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        question = self._latest().search(list(vectors), vector_column_name=self._vector)
        question = question.distance_type(_CALLED[self.plan.distance]).limit(k)
        if where is not None:
            question = question.where(where, prefilter=True)
        if exact:
            question = question.bypass_vector_index()
        table = question.select([self._id, "_distance"]).to_arrow()
        rows: list[list[tuple[Any, float]]] = [[] for _ in vectors]
        # LanceDB numbers queries only where there is more than one.
        whose = table["query_index"].to_pylist() if len(vectors) > 1 else [0] * len(table)
        more = _MORE[self.plan.distance]
        for query, name, away in zip(
            whose, table[self._id].to_pylist(), table["_distance"].to_pylist()
        ):
            rows[query].append((name, away - more))
        for row in rows:
            row.sort(key=lambda found: found[1])
        return rows

    def _remove(self, ids: list[Any]) -> None:
        column = "`" + self._id.replace("`", "``") + "`"
        for first in range(0, len(ids), _NAMED):
            named = ", ".join(_literal(name) for name in ids[first : first + _NAMED])
            self._table.delete(f"{column} IN ({named})")

    def _count(self, where: Any) -> int:
        return int(self._latest().count_rows(where))


def _literal(name: int | str) -> str:
    return str(name) if isinstance(name, int) else "'" + name.replace("'", "''") + "'"
