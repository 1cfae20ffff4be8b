# Files of vectors as numpy, pyarrow, gzip and csv write them: every one must be mapped to the same bytes as
# the Parquet file of the same rows.

import csv
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet

random = numpy.random.default_rng(5)
vectors = random.normal(size=(150, 6)).astype(numpy.float32)
labels = numpy.array([f"class {number % 7}" for number in range(150)])
metra = sys.argv[1]


def run(*arguments, stdin=None):
    done = subprocess.run([metra, *map(str, arguments)], capture_output=True, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return done


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), 6)
    table = pyarrow.table({"vector": values, "label": labels.tolist()})
    pyarrow.parquet.write_table(table, folder / "x.parquet")
    run("train", folder / "x.parquet", "--label", "label", "--method", "lda", "--rank", 3, "--holdout", "none",
        "-o", folder / "m.safetensors")

    def mapped(path, *more, stdin=None):
        out = folder / "out.npy"
        run("embed", folder / "m.safetensors", path, "-o", out, *more, stdin=stdin)
        return out.read_bytes()

    expected = mapped(folder / "x.parquet")

    for compression in ["uncompressed", "lz4", "zstd"]:
        pyarrow.feather.write_feather(table, folder / "x.feather", compression=compression)
        assert mapped(folder / "x.feather") == expected, compression

    # Sparse vectors: of each row the numbers that are not 0, and where they stand.
    holes = numpy.where(random.random(vectors.shape) < 0.5, 0, vectors)
    whole = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(holes.ravel()), 6)
    pyarrow.parquet.write_table(pyarrow.table({"vector": whole}), folder / "holes.parquet")
    kind = pyarrow.struct([("indices", pyarrow.list_(pyarrow.int32())), ("values", pyarrow.list_(pyarrow.float32()))])
    rows = [{"indices": numpy.flatnonzero(row).tolist(), "values": row[row != 0].tolist()} for row in holes]
    field = pyarrow.field("vector", kind, metadata={"dim": "6"})
    sparse = pyarrow.table([pyarrow.array(rows, kind)], schema=pyarrow.schema([field]))
    pyarrow.parquet.write_table(sparse, folder / "sparse.parquet")
    pyarrow.feather.write_feather(sparse, folder / "sparse.feather")
    for name in ["sparse.parquet", "sparse.feather"]:
        assert mapped(folder / name) == mapped(folder / "holes.parquet"), name

    numpy.savez(folder / "x.npz", X=vectors, y=labels)
    assert mapped(folder / "x.npz") == expected
    numpy.savez_compressed(folder / "x.npz", X=vectors, y=labels, other=vectors * 2)
    assert mapped(folder / "x.npz", "--vector", "X") == expected
    found = json.loads(run("check", folder / "x.npz", "--vector", "X", "--label", "y", "--json").stdout)
    assert found["classes"]["count"] == 7, found

    with open(folder / "x.csv", "w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["name", *"abcdef"])
        writer.writerows([label, *(repr(float(v)) for v in row)] for label, row in zip(labels, vectors))
    assert mapped(folder / "x.csv", "--vector", "a,b,c,d,e,f") == expected
    (folder / "y.csv.gz").write_bytes(gzip.compress((folder / "x.csv").read_bytes()))
    assert mapped(folder / "y.csv.gz", "--vector", "a,b,c,d,e,f") == expected

    with open(folder / "lists.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "embedding"])
        writer.writerows([label, json.dumps([float(v) for v in row])] for label, row in zip(labels, vectors))
    assert mapped(folder / "lists.csv", "--vector", "embedding") == expected

    with open(folder / "x.jsonl", "w") as file:
        for label, row in zip(labels, vectors):
            print(json.dumps({"name": label, "embedding": [float(v) for v in row]}), file=file)
    assert mapped(folder / "x.jsonl") == expected
    with open(folder / "x.jsonl") as file:
        assert mapped("-", stdin=file) == expected

    holes = vectors.copy()
    holes[[3, 77], [2, 5]] = numpy.nan
    numpy.save(folder / "holes.npy", holes)
    numpy.save(folder / "labels.npy", labels)
    done = run("check", folder / "holes.npy", "--label", folder / "labels.npy", "--missing", "skip", "--json")
    assert json.loads(done.stdout)["rows"] == 148
    done = run("check", folder / "holes.npy", "--label", folder / "labels.npy", "--missing", "skip")
    assert b"2 of 150 rows left out" in done.stderr

print("formats: all files map to the same bytes")
