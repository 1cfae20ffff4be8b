"""Codes of bits in PostgreSQL with pgvector: quality, size of the index and searches per second, beside f32.

    METRA_DATA=... python benches/pgvector_codes.py METRA ADDRESS [FILE]

METRA is the command (built with the feature postgres), ADDRESS a database with the extension (postgres://...), in which a
table `metra_codes` is made anew. Needs numpy, pyarrow and psycopg. The figures are printed as JSON, and written to FILE
(docs/results/data/codes_pgvector.json) where one is named.

100,000 items of 384 dimensions: the 15,000 training rows of CLINC150 and 85,000 mixtures of two of them, which are relevant
to nothing. 1,000 test rows ask for rows of their class. Every search is timed by one connection, the searches in
turns, and the median of the repeats counts.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

ITEMS, QUERIES, REPEATS, TIMED = 100_000, 1_000, 5, 200
RESCORED = 200
TABLE = "metra_codes"


def run(metra: str, *arguments: object) -> dict:
    done = subprocess.run([metra, *map(str, arguments), "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def write(path: Path, vectors: np.ndarray, labels: np.ndarray) -> Path:
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    columns = {"id": pa.array(np.arange(len(vectors))), "label": pa.array(labels), "vector": flat}
    pq.write_table(pa.table(columns), path)
    return path


def read(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Items with labels, -1 for mixtures, and queries with labels."""
    table = pq.read_table(data / "clinc150_minilm.parquet")
    vectors = np.stack(table["vector"].to_numpy()).astype(np.float32)
    split = np.array(table["split"].to_pylist())
    labels = table["label"].to_numpy()
    random = np.random.default_rng(1)
    real = vectors[split == "train"]
    first, second = random.integers(0, len(real), (2, ITEMS - len(real)))
    share = random.uniform(0.3, 0.7, (len(first), 1)).astype(np.float32)
    mixed = share * real[first] + (1 - share) * real[second]
    items = np.concatenate([real, mixed / np.linalg.norm(mixed, axis=1, keepdims=True)])
    item_labels = np.concatenate([labels[split == "train"], np.full(len(mixed), -1)])
    asked = random.permutation(np.flatnonzero(split == "test"))[:QUERIES]
    return items, item_labels, vectors[asked], labels[asked]


def fill(connection: psycopg.Connection, items: np.ndarray) -> None:
    connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
    connection.execute(f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, embedding vector({items.shape[1]}))")
    with connection.cursor().copy(f"COPY {TABLE} FROM STDIN") as copy:
        for number, row in enumerate(items.tolist()):
            copy.write_row((number, str(row)))


def main() -> None:
    metra, address, *file = sys.argv[1:]
    data = Path(os.environ["METRA_DATA"])
    items, item_labels, queries, query_labels = read(data)
    with tempfile.TemporaryDirectory() as name, psycopg.connect(address, autocommit=True) as connection:
        folder = Path(name)
        fill(connection, items)
        item_file = write(folder / "items.parquet", items, item_labels)
        query_file = write(folder / "queries.parquet", queries, query_labels)
        training = write(folder / "training.parquet", items[item_labels >= 0], item_labels[item_labels >= 0])
        with open(folder / "qrels.txt", "w") as qrels:
            for query, label in enumerate(query_labels):
                qrels.writelines(f"{query} 0 {item} 1\n" for item in np.flatnonzero(item_labels == label))
        judged = ["--qrels", folder / "qrels.txt", "--measures", "ndcg@10"]
        both = ["--queries", query_file, "--items", item_file, "--id", "id", *judged]
        models = {
            "cosine": ["--method", "cosine"],
            "sign": ["--method", "cosine", "--code", "sign"],
            "learned": ["--method", "supcon", "--rank", "128", "--code", "bits"],
        }
        for model, settings in models.items():
            path = folder / f"{model}.safetensors"
            run(metra, "train", training, "--label", "label", "--validation", 0, "--test", 0, *settings, "-o", path)
        push = ["--table", TABLE, "--from", "embedding"]
        rescoring = ["--rescore-vector", "embedding", "--rescore-model", folder / "cosine.safetensors", "--keep-items"]
        few = ["--rescore", RESCORED]
        # Model, how it is pushed, how it is searched, and the model whose order is asked for.
        ways = {
            "f32, 384 dimensions": ("cosine", ["--keep-items"], ["--keep-items"], "cosine"),
            "bits, 384, rescored by f32": ("sign", ["--to", "signs", "--type", "bit"], [*few, *rescoring], "cosine"),
            "learned bits, 128": ("learned", ["--to", "learned", "--type", "bit"], few, "learned"),
        }
        # Columns first: an index that is there already would be kept up to date while another column is written.
        for model, pushed, _, _ in ways.values():
            if "--to" in pushed:
                run(metra, "push", folder / f"{model}.safetensors", address, *push, *pushed)
        connection.execute(f"VACUUM FULL {TABLE}")
        figures, known = {}, set()
        for way, (model, pushed, searched, truth) in ways.items():
            path = folder / f"{model}.safetensors"
            began = time.perf_counter()
            run(metra, "push", path, address, *push, *pushed, "--index", "hnsw", "--index-memory", "1G")
            built = time.perf_counter() - began
            column = pushed[1] if "--to" in pushed else "embedding"
            search = [metra, "search", path, address, "--table", TABLE, "--table-vector", column, "--query", query_file]
            search = [*search, "--id", "id", "-k", 10, "--effort", RESCORED, "--run", folder / "run.trec", *searched]
            subprocess.run(list(map(str, search)), check=True, capture_output=True)
            served = run(metra, "eval", "--run", folder / "run.trec", *judged)["measures"]["ndcg@10"]
            own = run(metra, "eval", folder / f"{truth}.safetensors", *both)["measures"]["ndcg@10"]
            indexes = connection.execute(
                "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index "
                f"WHERE indrelid = '{TABLE}'::regclass AND NOT indisprimary"
            ).fetchall()
            size = next(size for name, size in indexes if name not in known)
            known |= {name for name, _ in indexes}
            figures[way] = {"way": way, "evaluated": own, "served": served, "index_bytes": size, "index_seconds": built}
        server = connection.execute("SHOW server_version").fetchone()[0]
        query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        extension = connection.execute(query).fetchone()[0]
        times = timed(connection, folder, metra, queries, ways)
        for way, seconds in times.items():
            rates = [TIMED / second for second in seconds]
            figures[way] |= {"per_second": statistics.median(rates), "least": min(rates), "most": max(rates)}
    found = {
        "server": f"PostgreSQL {server}, pgvector {extension}",
        "items": ITEMS,
        "queries": QUERIES,
        "rescored": RESCORED,
        "ways": list(figures.values()),
    }
    text = json.dumps(found, indent=2) + "\n"
    print(text)
    for path in file:
        Path(path).write_text(text)


def timed(connection, folder, metra, queries, ways) -> dict[str, list[float]]:
    """Seconds of some searches by the statements that an application would send, the ways in turns."""
    mapped = {}
    for model in ("cosine", "learned"):
        out = folder / f"{model}.npy"
        arguments = ["embed", folder / f"{model}.safetensors", folder / "queries.parquet", "--side", "query", "-o", out]
        subprocess.run([metra, *map(str, arguments)], check=True, capture_output=True)
        mapped[model] = [str(row.tolist()) for row in np.load(out)[:TIMED]]
    first = f"FROM {TABLE} ORDER BY {{column}} <~> binary_quantize(%(q)s::vector)::bit({{bits}}) LIMIT {RESCORED}"
    statements = {
        "f32, 384 dimensions": ("cosine", f"SELECT id FROM {TABLE} ORDER BY embedding <=> %(q)s::vector LIMIT 10"),
        "bits, 384, rescored by f32": (
            "cosine",
            f"SELECT id FROM (SELECT id, embedding {first.format(column='signs', bits=384)}) AS candidates "
            "ORDER BY embedding <=> %(q)s::vector LIMIT 10",
        ),
        "learned bits, 128": (
            "learned",
            f"SELECT id FROM (SELECT id, learned {first.format(column='learned', bits=128)}) AS candidates "
            "ORDER BY string_to_array(learned::text, NULL)::real[]::vector <#> %(q)s::vector LIMIT 10",
        ),
    }
    assert statements.keys() == ways.keys()
    connection.execute(f"SET hnsw.ef_search = {RESCORED}")
    times = {way: [] for way in statements}
    for repeat in range(REPEATS + 1):
        for way, (model, statement) in statements.items():
            began = time.perf_counter()
            for query in mapped[model]:
                connection.execute(statement, {"q": query}).fetchall()
            # The first round reads what the server has to hold.
            if repeat > 0:
                times[way].append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    main()
