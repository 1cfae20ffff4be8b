"""PostgreSQL with pgvector: a column of a table, whose comment holds the record.

The comment of a column travels with dumps and is seen by ``\\d+``. A table of one's own can get the
column: rows that have the identifier are updated, others are added. A write is one transaction:
after an error nothing of it is there. Search is exact until there is an index (``index="hnsw"``).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError, Plan
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

# What a column holds at most, and what an index of pgvector takes, by the column's type.
MOST_DIMENSIONS = {"vector": 16_000, "halfvec": 16_000}
MOST_INDEXED = {"vector": 2_000, "halfvec": 4_000}

_OPERATOR = {"l2": "<->", "ip": "<#>", "cosine": "<=>"}

# An index of HNSW gives no more rows than this setting says; pgvector's own is 40.
_USUAL_SEARCH, _MOST_SEARCH = 40, 1_000


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
    schema: str | None = None,
    id_column: str = "id",
    vector_column: str = "embedding",
    column_type: str = "vector",
    index: str | None = None,
    batch: int = BATCH,
) -> Plan:
    """Write items into a column of a table; one that the same model wrote is added to.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps.
    connection : psycopg.Connection
        To a database that has the extension ``vector``. What is written is committed, unless the
        caller began a transaction.
    table : str
        Name of the table; table and column are made if they are absent.
    ids : array-like of int or str
        One identifier a row. One that is there already gets the new vector.
    X : array-like of shape (n_items, n_features)
        The items as they are.
    cameras : array-like, optional
        Camera of every row, where the model needs it.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the column is searched by.
    keep_items : bool, default=False
        Write nothing: only see whether the column, filled by others, serves this model as it is.
    schema : str, optional
        Schema of the table; without it the connection's search path decides.
    id_column, vector_column : str
        The columns. Names are quoted: they mean what they say, capitals included.
    column_type : {"vector", "halfvec"}, default="vector"
        Type of a new column. Halves keep three digits: nearly equal scores change places.
    index : {"hnsw"}, optional
        Make an index by the plan's distance, if there is none. It takes up to 2,000 dimensions
        (4,000 of ``halfvec``), and search is approximate from then on.
    batch : int, default=1000
        Rows that are mapped at once.

    Returns
    -------
    Plan
        What was stored and what will be asked.
    """
    model = learned(model)
    if column_type not in MOST_DIMENSIONS:
        raise ParameterError(f"column_type must be vector or halfvec, but is {column_type!r}")
    if index not in (None, "hnsw"):
        raise ParameterError(f"index must be 'hnsw' or None, but is {index!r}")
    column = _Column(connection, schema, table, id_column, vector_column)
    with connection.transaction():
        column.look()
        if keep_items:
            checked_nothing(ids, X)
            kept = there(column.found(), column.name)
            return plan_to_keep(model, kept, offered=DISTANCES, distance=distance)
        items = Items(ids, X, cameras, batch)
        kind = column.type or column_type
        plan, written = plan_to_write(
            model,
            column.found(),
            items.first,
            ids=items.kind,
            offered=DISTANCES,
            distance=distance,
            most_dimensions=(MOST_DIMENSIONS if index is None else MOST_INDEXED)[kind],
        )
        column.prepare(written, kind)
        column.fill(items, plan, kind)
        if index is not None:
            column.make_index(index, plan, kind)
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
    schema: str | None = None,
    id_column: str = "id",
    vector_column: str = "embedding",
    exact: bool = False,
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The nearest items of every query.

    Parameters
    ----------
    model : Model or fitted estimator
        The one that wrote the column; with `keep_items`, any that leaves items as they are.
    connection : psycopg.Connection
        As for `write`.
    table : str
        Name of the table.
    queries : array-like of shape (n_queries, n_features)
        The queries as they are.
    k : int, default=10
        How many.
    cameras : array-like, optional
        Camera of every query, where the model needs it.
    keep_items : bool, default=False
        The column holds the items as they are, and only queries are mapped.
    schema : str, optional
        Schema of the table.
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
    model = learned(model)
    column = _Column(connection, schema, table, id_column, vector_column)
    with connection.transaction():
        column.look()
        found = there(column.found(count=False), column.name)
        plan, written = plan_to_search(model, found, keep_items, DISTANCES)
        vectors = asked(plan, queries, cameras, k)
        rows = column.nearest(vectors, plan.distance, int(k), exact)
    kind = None if written is None else {"int": int, "str": str}[written.ids]
    return answers(
        [[(_id(name, kind), _score(away, plan.distance)) for name, away in row] for row in rows]
    )


def _id(name: Any, kind: type | None) -> Any:
    if kind is not None:
        return kind(name)
    return name if isinstance(name, int) else str(name)


def _score(away: float, distance: str) -> float:
    # The operators give the root of the squared distance, minus the product, and 1 - cosine.
    return {"l2": away * away, "ip": away, "cosine": away - 1.0}[distance]


class _Column:
    """One column of vectors. All names are quoted by psycopg; none goes into SQL as text."""

    def __init__(
        self, connection: Any, schema: str | None, table: str, id_column: str, vector_column: str
    ) -> None:
        from psycopg import sql

        self.connection, self.sql = connection, sql
        self.table = sql.Identifier(table) if schema is None else sql.Identifier(schema, table)
        self.id, self.vector = sql.Identifier(id_column), sql.Identifier(vector_column)
        self.names = id_column, vector_column
        self.name = f'the column "{vector_column}" of the table "{table}"'
        # What `look` finds: the type and numbers of the vectors, the type of identifiers.
        self.type: str | None = None
        self.dimension: int | None = None
        self.record: str | None = None
        self.id_type: str | None = None
        self.is_there = False

    def ask(self, text: str, values: Sequence[Any] = (), **parts: Any) -> Any:
        """Run a statement in which {table}, {id}, {vector} and `parts` stand for composed parts.

        A statement with `values` must not have names of the caller's in it: psycopg would take a
        per cent sign in a name for a place of a value.
        """
        known = {"table": self.table, "id": self.id, "vector": self.vector, **parts}
        composed = self.sql.SQL(text).format(**known)
        return self.connection.execute(composed, values or None, prepare=False)

    def look(self) -> None:
        """See what is there."""
        if self.ask("SELECT to_regtype('vector')").fetchone()[0] is None:
            raise StoreError(
                "this database has no type vector: expected the extension of pgvector, which "
                "CREATE EXTENSION vector adds"
            )
        quoted = self.table.as_string(self.connection)
        self.is_there = self.ask("SELECT to_regclass(%s)", [quoted]).fetchone()[0] is not None
        columns = {
            name: (kind, comment)
            for name, kind, comment in self.ask(
                "SELECT attname, format_type(atttypid, atttypmod), "
                "col_description(attrelid, attnum) FROM pg_attribute "
                "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                [quoted],
            ).fetchall()
        }
        id_column, vector_column = self.names
        if columns and id_column not in columns:
            raise StoreError(
                f'expected the column "{id_column}" beside {self.name}, but the columns are '
                f"{', '.join(columns)}"
            )
        if not columns or vector_column not in columns:
            self.id_type = columns[id_column][0] if columns else None
            return
        self.id_type = columns[id_column][0]
        kind, comment = columns[vector_column]
        # With a schema before it where the extension is not on the search path.
        shape = re.fullmatch(r"(?:.*\.)?(vector|halfvec)(?:\((\d+)\))?", kind)
        if shape is None:
            raise StoreError(f"expected vector or halfvec in {self.name}, but found {kind}")
        self.type, self.dimension = shape[1], int(shape[2]) if shape[2] else None
        # Comments that people wrote are not records.
        self.record = comment if comment is not None and comment.startswith("{") else None

    def found(self, count: bool = True) -> Found | None:
        """The column, if it is there; counting reads the whole table."""
        if self.type is None:
            return None
        rows = 0
        if count and self.record is None:
            rows = self.ask("SELECT count({vector}) FROM {table}").fetchone()[0]
        dimension = self.dimension
        if dimension is None:
            one = self.ask(
                "SELECT vector_dims({vector}) FROM {table} WHERE {vector} IS NOT NULL LIMIT 1"
            ).fetchone()
            dimension = None if one is None else one[0]
        return Found(self.name, self.record, None, dimension, rows)

    def prepare(self, written: Written, kind: str) -> None:
        """Make table, column and record where they are absent."""
        vector = self._type(kind, written.dimension)
        if not self.is_there:
            self.id_type = "bigint" if written.ids == "int" else "text"
            self.ask(
                "CREATE TABLE {table} ({id} {ids} PRIMARY KEY, {vector} {type})",
                ids=self.sql.SQL(self.id_type),
                type=vector,
            )
        elif self.type is None:
            self.ask("ALTER TABLE {table} ADD COLUMN {vector} {type}", type=vector)
        if self.record is None:
            # A column is named with its table before it, and a comment takes no parameter.
            self.ask(
                "COMMENT ON COLUMN {table}.{vector} IS {record}",
                record=self.sql.Literal(written.to_text()),
            )

    def fill(self, items: Items, plan: Plan, kind: str) -> None:
        """Put items in: new rows are added, others get the new vector."""
        arriving = self.sql.Identifier(f"metra_arriving_{uuid.uuid4().hex}")
        # The type came from the catalogue or is one of two words: it is no name to be quoted.
        ids = self.sql.SQL(self.id_type or "text")
        vector = self._type(kind, plan.dimension)
        self.ask(
            "CREATE TEMPORARY TABLE {arriving} (name {ids}, place {type}) ON COMMIT DROP",
            arriving=arriving,
            ids=ids,
            type=vector,
        )
        copied = self.sql.SQL("COPY {} (name, place) FROM STDIN").format(arriving)
        with self.connection.cursor() as cursor, cursor.copy(copied) as copy:
            for names, vectors in items.mapped(plan):
                for name, row in zip(names, vectors):
                    copy.write_row((name, _text(row)))
        self.ask(
            "UPDATE {table} SET {vector} = place FROM {arriving} WHERE {table}.{id} = name",
            arriving=arriving,
        )
        self.ask(
            "INSERT INTO {table} ({id}, {vector}) SELECT name, place FROM {arriving} "
            "WHERE NOT EXISTS (SELECT FROM {table} WHERE {table}.{id} = name)",
            arriving=arriving,
        )
        self.ask("DROP TABLE {arriving}", arriving=arriving)

    def make_index(self, method: str, plan: Plan, kind: str) -> None:
        """An index by the plan's distance, if there is none."""
        operators = f"{kind}_{plan.distance}_ops"
        there = self.ask(
            "SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
            "JOIN pg_am ON pg_am.oid = relam JOIN pg_opclass ON pg_opclass.oid = indclass[0] "
            "JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] "
            "WHERE indrelid = to_regclass(%s) AND attname = %s AND opcname = %s AND amname = %s",
            [self.table.as_string(self.connection), self.names[1], operators, method],
        ).fetchone()
        if there is None:
            self.ask(
                "CREATE INDEX ON {table} USING {method} ({vector} {operators})",
                method=self.sql.Identifier(method),
                operators=self.sql.Identifier(operators),
            )

    def nearest(
        self, vectors: NDArray[np.float32], distance: str, k: int, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        """Identifiers and distances by pgvector's operator."""
        if exact:
            self.ask("SELECT set_config('enable_indexscan', 'off', true)")
        if self._version() >= (0, 8):
            # Rows that were replaced are still in an index: go on until there are k that were not.
            self.ask("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
        if k > _USUAL_SEARCH:
            more = str(min(k, _MOST_SEARCH))
            self.ask("SELECT set_config('hnsw.ef_search', %s, true)", [more])
        operator, kind = (
            self.sql.SQL(_OPERATOR[distance]),
            self.sql.Identifier(self.type or "vector"),
        )
        return [
            self.ask(
                "SELECT {id}, {vector} {operator} {asked}::{kind} FROM {table} "
                "WHERE {vector} IS NOT NULL ORDER BY {vector} {operator} {asked}::{kind} LIMIT {k}",
                operator=operator,
                asked=self.sql.Literal(_text(row)),
                kind=kind,
                k=self.sql.Literal(k),
            ).fetchall()
            for row in vectors
        ]

    def _version(self) -> tuple[int, ...]:
        said = self.ask("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        return tuple(int(part) for part in re.findall(r"\d+", said[0])) if said else ()

    def _type(self, kind: str, dimension: int) -> Any:
        return self.sql.SQL("{}({})").format(self.sql.Identifier(kind), self.sql.Literal(dimension))


def _text(row: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, row.tolist())) + "]"
