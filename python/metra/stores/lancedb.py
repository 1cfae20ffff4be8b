"""LanceDB: a table with a column of identifiers and one of vectors.

The record is metadata of the vector's field in the table's schema, so that copies of the table and
its older versions keep it. A write is one commit: after an error nothing of it is there. Search is
exact until an index is made on the column, by LanceDB's own ``create_index`` with the distance that
the plan names (LanceDB calls ``ip`` ``dot``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import MetraError, ParameterError, Plan
from ._rows import BATCH, Items, answers, asked, checked_nothing
from ._written import (
    Found,
    StoreError,
    Written,
    learned,
    plan_to_keep,
    plan_to_search,
    plan_to_write,
    there,
)

DISTANCES = ("l2", "ip", "cosine")

# What LanceDB calls them, and what its distance has more than the dissimilarity.
_CALLED = {"l2": "l2", "ip": "dot", "cosine": "cosine"}
_MORE = {"l2": 0.0, "ip": 1.0, "cosine": 1.0}

# Queries that are asked at once.
_QUERIES = 256


def write(
    model: Any,
    connection: Any,
    table: str,
    ids: Any = None,
    X: Any = None,
    *,
    cameras: Any = None,
    distance: str | None = None,
    keep_items: bool = False,
    id_column: str = "id",
    vector_column: str = "vector",
    batch: int = BATCH,
) -> Plan:
    """Write items into a table; one that the same model wrote is added to.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps.
    connection : lancedb.DBConnection
        What ``lancedb.connect`` gives.
    table : str
        Name of the table; it is made if it is absent.
    ids : array-like of int or str
        One identifier a row. One that is there already gets the new vector.
    X : array-like of shape (n_items, n_features)
        The items as they are.
    cameras : array-like, optional
        Camera of every row, where the model needs it.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the table is searched by.
    keep_items : bool, default=False
        Write nothing: only see whether the table, filled by others, serves this model as it is.
    id_column, vector_column : str
        The columns.
    batch : int, default=1000
        Rows that are mapped at once.

    Returns
    -------
    Plan
        What was stored and what will be asked.

    Examples
    --------
    >>> import lancedb as client, metra, numpy as np, tempfile
    >>> from metra.stores import lancedb
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> database = client.connect(folder.name)
    >>> lancedb.write(model, database, "docs", range(60), X)
    Plan(way="mapped", distance="l2", dimension=2)
    >>> ids, scores = lancedb.search(model, database, "docs", X[:2], k=3)
    >>> ids[:, 0].tolist()
    [0, 1]
    >>> folder.cleanup()
    """
    model, opened = learned(model), _opened(connection, table)
    found = None if opened is None else _found(opened, table, vector_column)
    if keep_items:
        checked_nothing(ids, X)
        return plan_to_keep(model, there(found, _named(table)), offered=DISTANCES, distance=distance)
    items = Items(ids, X, cameras, batch)
    plan, written = plan_to_write(
        model,
        found,
        items.first,
        ids=items.kind,
        offered=DISTANCES,
        distance=distance,
        most_dimensions=None,
    )
    schema = _schema(id_column, vector_column, written)
    if opened is None:
        opened = connection.create_table(table, schema=schema)
    elif found is not None and found.record is None:
        _mark(opened, vector_column, written)
    _send(opened, items, plan, schema, id_column)
    return plan


def search(
    model: Any,
    connection: Any,
    table: str,
    queries: Any,
    k: int = 10,
    *,
    cameras: Any = None,
    keep_items: bool = False,
    id_column: str = "id",
    vector_column: str = "vector",
    exact: bool = False,
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The nearest items of every query.

    Parameters
    ----------
    model : Model or fitted estimator
        The one that wrote the table; with `keep_items`, any that leaves items as they are.
    connection : lancedb.DBConnection
        What ``lancedb.connect`` gives.
    table : str
        Name of the table.
    queries : array-like of shape (n_queries, n_features)
        The queries as they are.
    k : int, default=10
        How many.
    cameras : array-like, optional
        Camera of every query, where the model needs it.
    keep_items : bool, default=False
        The table holds the items as they are, and only queries are mapped.
    id_column, vector_column : str
        The columns.
    exact : bool, default=False
        Go past an index of the column, if there is one.

    Returns
    -------
    ids : ndarray of shape (n_queries, k)
        Identifiers as they were written, nearest first.
    scores : ndarray of shape (n_queries, k), float32
        Smaller is nearer: squared distances, minus inner products or minus cosines.
    """
    model, opened = learned(model), _opened(connection, table)
    found = None if opened is None else _found(opened, table, vector_column)
    found = there(found, _named(table))
    plan, _ = plan_to_search(model, found, keep_items, DISTANCES)
    vectors = asked(plan, queries, cameras, k)
    rows: list[list[tuple[Any, float]]] = []
    for first in range(0, len(vectors), _QUERIES):
        some = vectors[first : first + _QUERIES]
        question = opened.search(list(some), vector_column_name=vector_column)
        question = question.distance_type(_CALLED[plan.distance]).limit(int(k))
        if exact:
            question = question.bypass_vector_index()
        rows += _read(question.select([id_column, "_distance"]), len(some), id_column, plan)
    return answers(rows)


def _read(question: Any, queries: int, id_column: str, plan: Plan) -> list[list[tuple[Any, float]]]:
    table = question.to_arrow()
    rows: list[list[tuple[Any, float]]] = [[] for _ in range(queries)]
    # LanceDB numbers queries only where there is more than one.
    whose = table["query_index"].to_pylist() if queries > 1 else [0] * len(table)
    more = _MORE[plan.distance]
    for query, name, away in zip(
        whose, table[id_column].to_pylist(), table["_distance"].to_pylist()
    ):
        rows[query].append((name, away - more))
    for row in rows:
        row.sort(key=lambda found: found[1])
    return rows


def _named(table: str) -> str:
    return f'the table "{table}" in this database'


def _opened(connection: Any, table: str) -> Any:
    try:
        return connection.open_table(table)
    except (ValueError, FileNotFoundError):
        return None


def _found(opened: Any, table: str, vector_column: str) -> Found:
    import pyarrow

    name = f'the column "{vector_column}" of the table "{table}"'
    schema = opened.schema
    if vector_column not in schema.names:
        raise StoreError(f"expected {name}, but it has the columns {', '.join(schema.names)}")
    field = schema.field(vector_column)
    if not pyarrow.types.is_fixed_size_list(field.type):
        raise StoreError(f"expected vectors of one size in {name}, but found {field.type}")
    record = (field.metadata or {}).get(b"metra")
    distance = None
    for index in opened.list_indices():
        if index.columns == [vector_column]:
            called = opened.index_stats(index.name).distance_type
            distance = {value: key for key, value in _CALLED.items()}.get(called, called)
    return Found(
        name,
        None if record is None else record.decode("utf-8"),
        distance,
        field.type.list_size,
        opened.count_rows(),
    )


def _schema(id_column: str, vector_column: str, written: Written) -> Any:
    import pyarrow

    if id_column == vector_column:
        raise ParameterError(f"id_column and vector_column must differ, but both are {id_column!r}")
    name = pyarrow.int64() if written.ids == "int" else pyarrow.string()
    vector = pyarrow.list_(pyarrow.float32(), written.dimension)
    record = {"metra": written.to_text()}
    return pyarrow.schema(
        [pyarrow.field(id_column, name), pyarrow.field(vector_column, vector, metadata=record)]
    )


def _mark(opened: Any, vector_column: str, written: Written) -> None:
    """Put the record on a table that was there, empty."""
    record = {"metra": written.to_text()}
    opened.update_field_metadata({"path": vector_column, "metadata": record})


def _send(opened: Any, items: Items, plan: Plan, schema: Any, id_column: str) -> None:
    import pyarrow

    problems: list[MetraError] = []

    def batches() -> Iterator[Any]:
        try:
            for names, vectors in items.mapped(plan):
                flat = pyarrow.array(vectors.reshape(-1))
                column = pyarrow.FixedSizeListArray.from_arrays(flat, plan.dimension)
                ids = pyarrow.array(names, type=schema.field(0).type)
                yield pyarrow.record_batch([ids, column], schema=schema)
        except MetraError as error:
            # Through Arrow only its text would arrive.
            problems.append(error)
            raise

    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    try:
        if opened.count_rows():
            merge = opened.merge_insert(id_column).when_matched_update_all()
            merge.when_not_matched_insert_all().execute(reader)
        else:
            opened.add(reader)
    except Exception:
        if problems:
            raise problems[0] from None
        raise
