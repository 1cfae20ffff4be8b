# Re-ranking by k-reciprocal neighbours against dense matrices in numpy, step by step as the authors' published code has
# it (Zhong, Zheng, Cao & Li, CVPR 2017): average precision and first answers of `metra eval --rerank` must be the same.

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

metra = sys.argv[1]


def reranked(rows, k1, k2, share):
    """Distances of all rows to all."""
    squared = ((rows[:, None] - rows[None]) ** 2).sum(2)
    distance = squared / squared.max(1, keepdims=True)
    order = numpy.argsort(distance, axis=1, kind="stable")
    count = len(rows)

    def reciprocal(row, k):
        forward = order[row, : k + 1]
        return forward[(order[forward, : k + 1] == row).any(1)]

    weights = numpy.zeros((count, count))
    for row in range(count):
        first = reciprocal(row, k1)
        expanded = first
        for member in first:
            theirs = reciprocal(member, int(numpy.around(k1 / 2)))
            if len(numpy.intersect1d(theirs, first)) > 2 / 3 * len(theirs):
                expanded = numpy.append(expanded, theirs)
        expanded = numpy.unique(expanded)
        weight = numpy.exp(-distance[row, expanded])
        weights[row, expanded] = weight / weight.sum()
    if k2 > 1:
        weights = numpy.stack([weights[order[row, :k2]].mean(0) for row in range(count)])
    shared = numpy.stack([numpy.minimum(row, weights).sum(1) for row in weights])
    return (1 - share) * (1 - shared / (2 - shared)) + share * distance


def measures(distance, labels):
    precision, first = [], []
    for row, found in enumerate(distance):
        others = numpy.arange(len(labels)) != row
        relevant = (labels == labels[row])[others][numpy.argsort(found[others], kind="stable")]
        hits = numpy.cumsum(relevant) / numpy.arange(1, len(relevant) + 1)
        precision.append(hits[relevant].mean())
        first.append(relevant[0])
    return numpy.mean(precision), numpy.mean(first)


random = numpy.random.default_rng(7)
labels = numpy.arange(240) % 24
centres = random.normal(size=(24, 6))
rows = (1.3 * centres[labels] + random.normal(size=(240, 6))).astype(numpy.float32)

with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), 6)
    table = pyarrow.table({"vector": vectors, "label": labels.tolist()})
    pyarrow.parquet.write_table(table, folder / "x.parquet")
    for k1, k2, share in [(20, 6, 0.3), (7, 3, 0.1), (9, 1, 0.05), (12, 5, 0.8)]:
        settings = f"k1={k1},k2={k2},lambda={share}"
        done = subprocess.run(
            [metra, "eval", "euclid", "x.parquet", "--label", "label", "--rerank", settings, "--measures", "map,p@1", "--json"],
            cwd=folder, capture_output=True, check=True,
        )
        found = json.loads(done.stdout)
        found = [found["measures"]["map"], found["measures"]["p@1"]]
        expected = measures(reranked(rows.astype(float), k1, k2, share), labels)
        assert numpy.allclose(found, expected, atol=1e-6), (settings, found, expected)
print("re-ranked measures agree")
