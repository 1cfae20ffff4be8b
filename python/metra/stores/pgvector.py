"""PostgreSQL with pgvector: a column of a table, whose comment holds the record.

The comment of a column travels with dumps and is seen by ``\\d+``. A table of one's own can get the
column: rows that have the identifier are updated, others are added. A write is one transaction:
after an error nothing of it is there. Search is exact until there is an index (``index="hnsw"``); of bits the
first answers by Hamming distance are put in order, unless ``exact=True`` asks for all.

Metadata are columns of the table; those that are absent are added. Filters are SQL: a condition
``where="year >= 2020"``, one with values that psycopg puts in,
``where=("tenant = %s AND year >= %s", [tenant, 2020])``, or one composed by ``psycopg.sql``.
`Collection.delete` sets vectors to NULL: rows of a table may be more than their vectors.
"""

from __future__ import annotations

import datetime
import re
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._metra import ParameterError, Plan
from ._collection import Collection, synchronous
from ._rows import Batch, Items
from ._written import Found, StoreError, Written

# What a column holds at most, and what an index of pgvector takes, by the column's type.
MOST_DIMENSIONS = {"vector": 16_000, "halfvec": 16_000, "bit": 16_000}
MOST_INDEXED = {"vector": 2_000, "halfvec": 4_000, "bit": 16_000}

_OPERATOR = {"l2": "<->", "ip": "<#>", "cosine": "<=>"}

# An index of HNSW gives no more rows than this setting says; pgvector's own is 40.
_USUAL_SEARCH, _MOST_SEARCH = 40, 1_000

# First answers of bits that are put in order, at least.
_USUAL_RESCORE = 100

# Types of new columns. The first that fits all values is taken: bool is an int, and a time a date.
_TYPES: list[tuple[tuple[type, ...], str]] = [
    ((bool,), "boolean"),
    ((int,), "bigint"),
    ((int, float), "double precision"),
    ((str,), "text"),
    ((datetime.datetime,), "timestamp"),
    ((datetime.date,), "date"),
]


def open(
    model: Any,
    connection: Any,
    table: str,
    *,
    distance: str | None = None,
    keep_items: bool = False,
    schema: str | None = None,
    id_column: str = "id",
    vector_column: str = "embedding",
    column_type: str = "vector",
    index: str | None = None,
    rescore: int | None = None,
) -> Collection:
    """A column of a table for a model; the first `Collection.write` makes it.

    Parameters
    ----------
    model : Model or fitted estimator
        Who maps: the model that wrote the column, or that will.
    connection : psycopg.Connection
        To a database that has the extension ``vector``. What is written is committed, unless the
        caller began a transaction.
    table : str
        Name of the table; table and column are made if they are absent.
    distance : {"l2", "ip", "cosine"}, optional
        Insist on what the column is searched by.
    keep_items : bool, default=False
        The column, filled by others, holds the items as they are and only queries are mapped.
    schema : str, optional
        Schema of the table; without it the connection's search path decides.
    id_column, vector_column : str
        The columns. Names are quoted: they mean what they say, capitals included.
    column_type : {"vector", "halfvec", "bit"}, default="vector"
        Type of a new column. Halves keep three digits: nearly equal scores change places. Bits are for models with a
        code of bits (``code="bits"`` or ``"hamming"`` of the estimator).
    index : {"hnsw"}, optional
        Make an index by the plan's distance when items are written, if there is none. It takes up
        to 2,000 dimensions (4,000 of ``halfvec``, 16,000 of ``bit``), and search is approximate from then on.
    rescore : int, optional
        First answers by the Hamming distance of bits that are put into the model's own order; None for four times as
        many as are asked for, 100 at least.

    Returns
    -------
    Collection
        What writes, searches, deletes and counts.
    """
    connection = synchronous(connection, "a psycopg.Connection")
    if column_type not in MOST_DIMENSIONS:
        raise ParameterError(f"column_type must be vector, halfvec or bit, but is {column_type!r}")
    if rescore is not None and rescore < 1:
        raise ParameterError(f"rescore must be at least 1, but is {rescore}")
    if index not in (None, "hnsw"):
        raise ParameterError(f"index must be 'hnsw' or None, but is {index!r}")
    column = _Column(
        model, connection, schema, table, (id_column, vector_column), column_type, index, rescore,
        distance=distance, keep_items=keep_items,
    )
    return column.opened()


class _Column(Collection):
    """One column of vectors. All names are quoted by psycopg; none goes into SQL as text."""

    def __init__(
        self,
        model: Any,
        connection: Any,
        schema: str | None,
        table: str,
        columns: tuple[str, str],
        column_type: str,
        index: str | None,
        rescore: int | None,
        **options: Any,
    ) -> None:
        from psycopg import sql

        if not hasattr(connection, "transaction"):
            raise ParameterError(
                "expected a connection, as psycopg.connect(...) gives it, but found "
                f"{type(connection).__name__}"
            )
        name = f'the column "{columns[1]}" of the table "{table}"'
        super().__init__(model, name, reserved=columns, **options)
        self._connection, self._sql = connection, sql
        self._table = sql.Identifier(table) if schema is None else sql.Identifier(schema, table)
        self._id, self._vector = (sql.Identifier(column) for column in columns)
        self._names = columns
        parts = table.split(".")
        self._dotted = (parts[0], parts[1]) if schema is None and len(parts) == 2 else None
        self._new_type, self._index, self._rescore = column_type, index, rescore
        # What is there: types and comments of the table's columns, and the type of the vectors.
        self._columns: dict[str, tuple[str, str | None]] = {}
        self._type: str | None = None

    def _session(self) -> AbstractContextManager[Any]:
        return self._connection.transaction()

    def _check_items(self, items: Items) -> None:
        connection = self._connection
        # What psycopg began by itself, with the first statement, and not the caller by transaction().
        begun = connection.info.transaction_status != 0
        if begun and not connection.autocommit and not getattr(connection, "_num_transactions", 1):
            warnings.warn(
                "this connection is within a transaction, which its first statement began: what is "
                "written is lost, and others wait, unless you commit(); psycopg.connect(..., "
                "autocommit=True) has no such transactions",
                stacklevel=4,
            )

    def _ask(self, text: str, values: Sequence[Any] = (), **parts: Any) -> Any:
        """Run a statement in which {table}, {id}, {vector} and `parts` stand for composed parts.

        A statement with `values` must not have names of the caller's in it: psycopg would take a
        per cent sign in a name for a place of a value.
        """
        known = {"table": self._table, "id": self._id, "vector": self._vector, **parts}
        composed = self._sql.SQL(text).format(**known)
        return self._connection.execute(composed, values or None, prepare=False)

    def _condition(self, where: Any) -> Any:
        """A filter as a part of a statement, with its values put in."""
        if where is None:
            return self._sql.SQL("true")
        if isinstance(where, self._sql.Composable):
            return self._sql.SQL("({})").format(where)
        values: Any = None
        if isinstance(where, tuple) and len(where) == 2:
            where, values = where
        if not isinstance(where, str) or not where.strip():
            raise ParameterError(
                "where must be a condition of SQL, a condition with its values or one that "
                f"psycopg.sql composed, but is {where!r}"
            )
        if values is not None:
            if isinstance(values, str) or not isinstance(values, (Sequence, Mapping)):
                raise ParameterError(
                    "values of where must be a list or a mapping, as psycopg takes them, but are "
                    f"{values!r}"
                )
            from psycopg import ClientCursor

            where = ClientCursor(self._connection).mogrify(where, values)
        # On lines of its own: a comment at its end ends there.
        return self._sql.SQL("(\n{}\n)").format(self._sql.SQL(where))

    def _found(self) -> Found | None:
        self._look_at_columns()
        kind = self._type or self._new_type
        self._most_dimensions = (MOST_DIMENSIONS if self._index is None else MOST_INDEXED)[kind]
        if self._type is None:
            return None
        kind, comment = self._columns[self._names[1]]
        # Comments that people wrote are not records.
        record = comment if comment is not None and comment.startswith("{") else None
        rows = 0
        if record is None and not self._keep_items:
            rows = self._count(None)
        shape = re.search(r"\((\d+)\)", kind)
        if shape is not None:
            dimension: int | None = int(shape[1])
        else:
            one = self._ask(
                "SELECT vector_dims({vector}) FROM {table} WHERE {vector} IS NOT NULL LIMIT 1"
            ).fetchone()
            dimension = None if one is None else one[0]
        return Found(self._name, record, None, dimension, rows)

    def _look_at_columns(self) -> None:
        if self._ask("SELECT to_regtype('vector')").fetchone()[0] is None:
            raise StoreError(
                "this database has no type vector: expected the extension of pgvector, which "
                "CREATE EXTENSION vector adds"
            )
        found = self._ask(
            "SELECT attname, format_type(atttypid, atttypmod), "
            "col_description(attrelid, attnum) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self._table.as_string(self._connection)],
        ).fetchall()
        self._columns = {name: (kind, comment) for name, kind, comment in found}
        self._type = None
        if not self._columns and self._dotted is not None:
            schema, table = self._dotted
            raise ParameterError(
                f'there is no table of the name "{schema}.{table}", and none is made: for a table in a '
                f"schema give {table!r} and schema={schema!r}"
            )
        id_column, vector_column = self._names
        if self._columns and id_column not in self._columns:
            raise StoreError(
                f'expected the column "{id_column}" beside {self._name}, but the columns are '
                f"{', '.join(self._columns)}"
            )
        if vector_column in self._columns:
            kind = self._columns[vector_column][0]
            # With a schema before it where the extension is not on the search path.
            shape = re.fullmatch(r"(?:.*\.)?(vector|halfvec|bit)(?:\(\d+\))?", kind)
            if shape is None:
                raise StoreError(f"expected vector, halfvec or bit in {self._name}, but found {kind}")
            self._type = shape[1]

    def _look(self) -> Found | None:
        found = super()._look()
        if (self._type or self._new_type) == "bit" and self._plan is not None and self._plan.sign_scale is None:
            raise ParameterError(
                "column_type 'bit' must be for what a model with a code of bits stores (code='bits' of the estimator), "
                f"but this one has the code {self.model.code} and the plan {self._plan}"
            )
        return found

    def _centred(self, plan: Plan, items: Items) -> Plan:
        # Signs have no free origin.
        return plan if (self._type or self._new_type) == "bit" else super()._centred(plan, items)

    def _is_unique(self) -> bool:
        """Whether an identifier means one row."""
        found = self._ask(
            "SELECT 1 FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] "
            "WHERE indrelid = to_regclass(%s) AND attname = %s AND indisunique AND indnkeyatts = 1 "
            "AND indpred IS NULL",
            [self._table.as_string(self._connection), self._names[0]],
        )
        return found.fetchone() is not None

    def _begin(self, found: Found | None, written: Written, items: Items) -> None:
        kind = self._type or self._new_type
        vector = self._sized(kind, written.dimension)
        if not self._columns:
            self._ask(
                "CREATE TABLE {table} ({id} {ids} PRIMARY KEY, {vector} {type})",
                ids=self._sql.SQL("bigint" if written.ids == "int" else "text"),
                type=vector,
            )
        elif self._type is None:
            self._ask("ALTER TABLE {table} ADD COLUMN {vector} {type}", type=vector)
        # A column is named with its table before it, and a comment takes no parameter.
        record = self._sql.Literal(written.to_text())
        self._ask("COMMENT ON COLUMN {table}.{vector} IS {record}", record=record)
        self._look_at_columns()

    def _put(self, items: Items, batches: Iterator[Batch]) -> None:
        sql, names = self._sql, list(items.columns)
        if not self._is_unique():
            raise StoreError(
                f'expected a primary key or a unique index on the column "{self._names[0]}" beside '
                f"{self._name}, but there is none: an identifier could mean several rows"
            )
        self._add_columns(items)
        arriving = sql.Identifier(f"metra_arriving_{uuid.uuid4().hex}")
        columns = [*self._names, *names]
        # Types came from the catalogue: they are no names to be quoted.
        typed = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(self._columns[name][0]))
            for name in columns
        ]
        comma = sql.SQL(", ")
        listed = comma.join(map(sql.Identifier, columns))
        parts = {"arriving": arriving, "listed": listed, "typed": comma.join(typed)}
        self._ask("CREATE TEMPORARY TABLE {arriving} ({typed}) ON COMMIT DROP", **parts)
        copied = sql.SQL("COPY {} ({}) FROM STDIN").format(arriving, listed)
        with self._connection.cursor() as cursor, cursor.copy(copied) as copy:
            for batch in batches:
                for name, row, about in zip(batch.ids, batch.vectors, batch.metadata):
                    text = _bits(row) if self._type == "bit" else _text(row)
                    copy.write_row((name, text, *about.values()))
        parts["changes"] = comma.join(
            sql.SQL("{0} = {1}.{0}").format(sql.Identifier(name), arriving) for name in columns[1:]
        )
        self._ask(
            "UPDATE {table} SET {changes} FROM {arriving} WHERE {table}.{id} = {arriving}.{id}",
            **parts,
        )
        self._ask(
            "INSERT INTO {table} ({listed}) SELECT {listed} FROM {arriving} WHERE NOT EXISTS "
            "(SELECT 1 FROM {table} WHERE {table}.{id} = {arriving}.{id})",
            **parts,
        )
        self._ask("DROP TABLE {arriving}", **parts)
        if self._index is not None:
            self._make_index()

    def _add_columns(self, items: Items) -> None:
        new = [name for name in items.columns if name not in self._columns]
        for name in new:
            values = [value for value in items.columns[name] if value is not None]
            kinds = {type(value) for value in values}
            fits = [kind for types, kind in _TYPES if kinds <= set(types)]
            if fits == ["timestamp"] and all(value.tzinfo is not None for value in values):
                fits = ["timestamptz"]
            if not fits:
                found = ", ".join(sorted(kind.__name__ for kind in kinds))
                raise ParameterError(
                    f"metadata {name!r} must be all of one kind (texts, numbers, booleans, dates or "
                    f"times), or a column that is there already, but has values of {found}"
                )
            self._ask(
                "ALTER TABLE {table} ADD COLUMN {name} {kind}",
                name=self._sql.Identifier(name),
                # What has no value at all may become anything; text holds most.
                kind=self._sql.SQL(fits[0] if kinds else "text"),
            )
        if new:
            self._look_at_columns()

    def _make_index(self) -> None:
        """An index by the plan's distance, if there is none."""
        operators = "bit_hamming_ops" if self._type == "bit" else f"{self._type}_{self.plan.distance}_ops"
        there = self._ask(
            "SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
            "JOIN pg_am ON pg_am.oid = relam JOIN pg_opclass ON pg_opclass.oid = indclass[0] "
            "JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] "
            "WHERE indrelid = to_regclass(%s) AND attname = %s AND opcname = %s AND amname = %s",
            [self._table.as_string(self._connection), self._names[1], operators, self._index],
        ).fetchone()
        if there is None:
            self._ask(
                "CREATE INDEX ON {table} USING {method} ({vector} {operators})",
                method=self._sql.Identifier(self._index),
                operators=self._sql.Identifier(operators),
            )

    def _nearest(
        self, vectors: NDArray[np.float32], k: int, where: Any, exact: bool
    ) -> list[list[tuple[Any, float]]]:
        distance, condition = self.plan.distance, self._condition(where)
        if exact:
            self._ask("SELECT set_config('enable_indexscan', 'off', true)")
        if self._version() >= (0, 8):
            # Rows that were replaced or do not pass the filter are in an index, too: go on until
            # there are k others.
            self._ask("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
        bits = self._type == "bit"
        rescored = max(4 * k, _USUAL_RESCORE) if self._rescore is None else self._rescore
        first = max(k, rescored) if bits else k
        if first > _USUAL_SEARCH:
            more = str(min(first, _MOST_SEARCH))
            self._ask("SELECT set_config('hnsw.ef_search', %s, true)", [more])
        if bits:
            return [self._nearest_bits(row, k, None if exact else first, condition) for row in vectors]
        found = [
            self._ask(
                "SELECT {id}, {vector} {operator} {asked}::{kind} FROM {table} "
                "WHERE {vector} IS NOT NULL AND {condition} "
                "ORDER BY {vector} {operator} {asked}::{kind} LIMIT {k}",
                operator=self._sql.SQL(_OPERATOR[distance]),
                asked=self._sql.Literal(_text(row)),
                kind=self._sql.Identifier(self._type or "vector"),
                condition=condition,
                k=self._sql.Literal(k),
            ).fetchall()
            for row in vectors
        ]
        return [[(name, _score(away, distance)) for name, away in row] for row in found]

    def _nearest_bits(
        self, query: NDArray[np.float32], k: int, first: int | None, condition: Any
    ) -> list[tuple[Any, float]]:
        """Of the first by Hamming distance, or of all rows, the nearest by the query's numbers."""
        if first is None:
            source = "{table} WHERE {vector} IS NOT NULL AND {condition}"
        else:
            source = (
                "(SELECT {id}, {vector} FROM {table} WHERE {vector} IS NOT NULL AND {condition} "
                "ORDER BY {vector} <~> binary_quantize({asked}::vector)::{bits} LIMIT {first}) AS first"
            )
        # Bits become the numbers 0 and 1 by way of their text.
        rows = self._ask(
            "SELECT {id}, string_to_array({vector}::text, NULL)::real[]::vector <#> {asked}::vector AS away "
            f"FROM {source} ORDER BY away LIMIT {{k}}",
            asked=self._sql.Literal(_text(query)),
            bits=self._sized("bit", len(query)),
            condition=condition,
            first=self._sql.Literal(first),
            k=self._sql.Literal(k),
        ).fetchall()
        scale = self.plan.sign_scale
        assert scale is not None
        # Away is minus the sum of the query's numbers where a bit is set; items are scale * (2 bit - 1).
        asked = query.astype(np.float64)
        own, length = float(asked @ asked), scale * scale * len(query)

        def score(away: float) -> float:
            product = -scale * (2.0 * away + float(asked.sum()))
            return {
                "l2": own + length - 2.0 * product,
                "ip": -product,
                "cosine": -product / (own * length) ** 0.5,
            }[self.plan.distance]

        return [(name, score(away)) for name, away in rows]

    def _remove(self, ids: list[Any]) -> None:
        kind = self._sql.SQL(self._columns[self._names[0]][0])
        for first in range(0, len(ids), 10_000):
            named = self._sql.SQL(", ").join(
                self._sql.SQL("{}::{}").format(self._sql.Literal(str(name)), kind)
                for name in ids[first : first + 10_000]
            )
            self._ask("UPDATE {table} SET {vector} = NULL WHERE {id} IN ({named})", named=named)

    def _count(self, where: Any) -> int:
        found = self._ask(
            "SELECT count({vector}) FROM {table} WHERE {condition}",
            condition=self._condition(where),
        )
        return int(found.fetchone()[0])

    def _version(self) -> tuple[int, ...]:
        said = self._ask("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        return tuple(int(part) for part in re.findall(r"\d+", said[0])) if said else ()

    def _sized(self, kind: str, dimension: int) -> Any:
        sized = self._sql.SQL("{}({})")
        return sized.format(self._sql.Identifier(kind), self._sql.Literal(dimension))


def _bits(row: NDArray[np.float32]) -> str:
    return "".join("1" if value > 0 else "0" for value in row.tolist())


def _text(row: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, row.tolist())) + "]"


def _score(away: float, distance: str) -> float:
    # The operators give the root of the squared distance, minus the product, and 1 - cosine.
    return {"l2": away * away, "ip": away, "cosine": away - 1.0}[distance]
