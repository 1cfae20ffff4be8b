# Leave-one-out measures over labelled vectors, query by query, against scikit-learn and against
# the definition of CMC.
#
# All values are eighths and every set is symmetric about the origin, so that its mean is 0 and all
# squared distances are exact in f32 as in f64: what ties here ties there.
#
#   auc            roc_auc_score, which counts ties by half, as metra does: all queries.
#   map            average_precision_score: queries without ties only, because scikit-learn takes a
#                  tied group at its end where metra takes the expected value over its orders.
#   p@1, cmc@k     the share of orders of the tied items, all listed, in which the first relevant
#                  item comes in time: all queries.
#
# A query whose class has no other row is skipped by metra; AUC is not defined for it.

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from sklearn.metrics import average_precision_score, roc_auc_score

TOLERANCE = 1e-12
RANKS = {"p@1": 1, "cmc@1": 1, "cmc@5": 5}
MEASURES = ["map", "auc", *RANKS]
# Orders of one tied group that are listed; the sets below stay far below it.
MOST_ORDERS = 2_000_000


def symmetric(draw, rows, dim, values, classes, copies):
    """Rows in eighths with their negatives and some copies; the last label is a class of one."""
    half = draw.integers(-values, values + 1, size=(rows, dim)) / 8
    half = numpy.concatenate([half, half[:copies]])
    data = numpy.concatenate([half, -half])
    labels = draw.integers(0, classes, size=len(data))
    labels[-1] = classes
    order = draw.permutation(len(data))
    return data[order], labels[order]


def in_time(distances, relevant, rank):
    """Share of the orders of tied items in which the first relevant one has at most this rank."""
    nearest = distances[relevant].min()
    before = int((distances < nearest).sum())
    tied = distances == nearest
    size, hits = int(tied.sum()), int((tied & relevant).sum())
    if before + size - hits + 1 <= rank:
        return 1.0
    orders = good = 0
    for places in itertools.combinations(range(size), hits):
        orders += 1
        good += before + places[0] + 1 <= rank
        assert orders < MOST_ORDERS, "a tied group is too large to list its orders"
    return good / orders


def expected(data, labels):
    """Values of every query that has a relevant row; map where nothing ties."""
    answers = {}
    for query in range(len(data)):
        others = numpy.arange(len(data)) != query
        relevant = labels[others] == labels[query]
        if not relevant.any():
            continue
        distances = ((data[others] - data[query]) ** 2).sum(axis=1)
        values = {name: in_time(distances, relevant, rank) for name, rank in RANKS.items()}
        values["auc"] = roc_auc_score(relevant, -distances)
        if len(numpy.unique(distances)) == len(distances):
            values["map"] = average_precision_score(relevant, -distances)
        answers[str(query)] = values
    return answers


def metra(binary, data, labels):
    with tempfile.TemporaryDirectory() as folder:
        vectors, names = Path(folder) / "x.npy", Path(folder) / "y.txt"
        numpy.save(vectors, data.astype(numpy.float32))
        names.write_text("".join(f"class-{label}\n" for label in labels), encoding="utf-8")
        command = [binary, "eval", "euclid", vectors, "--label", names]
        command += ["--measures", ",".join(MEASURES), "--per-query", "--json"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def compare(title, binary, data, labels, least):
    """Every value; returns whether all agree and at least so many values of each were compared."""
    found, wanted = metra(binary, data, labels), expected(data, labels)
    if found["per_query"].keys() != wanted.keys():
        print(f"  {title}: other queries were measured")
        return False
    counts, largest, wrong = dict.fromkeys(MEASURES, 0), 0.0, []
    for query, values in wanted.items():
        for name, value in values.items():
            ours = found["per_query"][query][name]
            difference = abs(ours - value)
            counts[name] += 1
            largest = max(largest, difference)
            if not difference <= TOLERANCE:
                wrong.append(f"query {query} {name}: {ours!r}, not {value!r}")
    shown = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"  {title}: {shown}; largest difference {largest:.1e}")
    for line in wrong[:5]:
        print(f"    {line}")
    if found["skipped_queries"] != len(data) - len(wanted):
        print(f"    {found['skipped_queries']} queries skipped, not {len(data) - len(wanted)}")
        return False
    # Without this a change of the sets could leave nothing to compare.
    enough = all(counts[name] >= count for name, count in least.items())
    if not enough:
        print(f"    expected at least {least}")
    return enough and not wrong


def main():
    draw = numpy.random.default_rng(1)
    # Few values: nearly every query has ties, between copies and between different rows.
    tied = symmetric(draw, 150, 3, 4, 12, 20)
    # Many values in many columns: ties are rare.
    plain = symmetric(draw, 60, 12, 400, 8, 0)
    good = compare("with ties", sys.argv[1], *tied, {"auc": 300, "cmc@5": 300})
    good &= compare("without", sys.argv[1], *plain, {"auc": 100, "map": 50})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
