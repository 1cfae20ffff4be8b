# The values that the test of LFDA (crates/metra/src/methods/lfda/oracle_tests.rs) is held against:
# squared distances after metric-learn's LFDA on a set that a formula makes.
#
# The plain scaling alone: metric-learn 0.7.0 adds the local spread within classes to the mixed one
# where the paper subtracts it, which leaves the directions and adds 2 to every ratio that its
# weighted scaling takes the root of. And with its one slip in the scales put right, see below.
# Distances do not depend on the signs of the directions. Every class has more rows than neighbours
# are asked for and these are fewer than dimensions: otherwise metric-learn lowers them, for all
# later classes as well.
#
#   python lfda.py      (an environment with what requirements.txt beside it lists)

import numpy
from metric_learn import LFDA, lfda

ROWS, DIM, CLASSES, NEIGHBOURS, RANK = 45, 6, 3, 4, 3
PAIRS = [(0, 1), (0, 3), (1, 5), (2, 40), (7, 31), (12, 44), (20, 23), (33, 36)]


class ByRow:
    """numpy, but for the axis along which distances are put in order.

    metric-learn 0.7.0 orders every column of the distances and then reads the k-th column: that
    holds the sorted distances of row k, not every row's k-th distance as the paper has it. Ordered
    by rows, the k-th column is what was meant.
    """

    def __getattr__(self, name):
        return getattr(numpy, name)

    def partition(self, distances, k, axis):
        return numpy.partition(distances, k, axis=1)


def data():
    """Whole numbers in eighths, so that f32 holds them; class r mod 3, shifted in two columns."""
    rows = numpy.empty((ROWS, DIM))
    for r in range(ROWS):
        for c in range(DIM):
            rows[r, c] = ((r * r * 37 + r * c * 101 + c * c * 59 + r * 13) % 97) / 8
        rows[r, 0] += 4 * (r % CLASSES)
        rows[r, 1] -= 3 * (r % CLASSES)
    return rows, numpy.arange(ROWS) % CLASSES


def main():
    rows, labels = data()
    lfda.np = ByRow()
    learner = LFDA(n_components=RANK, k=NEIGHBOURS, embedding_type="plain")
    mapped = learner.fit(rows, labels).transform(rows)
    for a, b in PAIRS:
        print(f"({a}, {b}, {((mapped[a] - mapped[b]) ** 2).sum():.9f}),")


main()
