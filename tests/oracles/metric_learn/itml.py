# The values that the tests of ITML (crates/metra/src/methods/itml/oracle_tests.rs) are held against:
# metric-learn's matrix after two cycles and at the end, and the primal objective there.
#
# metric-learn 0.7.0 has the same gamma: it weighs the divergence of the bounds against that of the
# matrix. Bounds are compared with squared distances there too, though its documentation speaks of
# distances and its own choice of bounds (none is taken here) is percentiles of distances that are
# not squared. It looks at all similar pairs and then at all dissimilar ones, and stops by another
# measure of change: sum of moves over the Euclidean lengths of old and new multipliers. Its prior
# `covariance` divides by n - 1 where our whitening divides by n. A dissimilar pair of equal vectors
# makes its matrix NaN, so there is none here.
#
#   python itml.py      (an environment with what requirements.txt beside it lists)

import numpy
from metric_learn import ITML
from metric_learn._util import _initialize_metric_mahalanobis
from sets import DIM, ROWS, data, listed

NEAR, FAR = 2.0, 9.0


def pairs():
    """Every row with the third after it, which is of its class, and with the fourth, which is not."""
    near = [(r, (r + 3) % ROWS) for r in range(ROWS)]
    far = [(r, (r + 4) % ROWS) for r in range(ROWS)]
    return numpy.array(near + far), numpy.array([1] * ROWS + [-1] * ROWS)


def primal(matrix, rows, gamma):
    """LogDet divergence from the identity, plus gamma times that of the bounds, which give way as
    far as distances ask for it."""
    value = numpy.trace(matrix) - numpy.linalg.slogdet(matrix)[1] - DIM
    for (a, b), kind in zip(*pairs()):
        difference = rows[a] - rows[b]
        distance = difference @ matrix @ difference
        ratio = max(distance / NEAR, 1) if kind == 1 else min(distance / FAR, 1)
        value += gamma * (ratio - numpy.log(ratio) - 1)
    return value


def given():
    """A positive definite matrix of a formula."""
    return numpy.array([[1 / (2 + i + j) + (i == j) / 2 for j in range(DIM)] for i in range(DIM)])


def fitted(rows, gamma, **settings):
    which, kinds = pairs()
    learner = ITML(gamma=gamma, **settings).fit(rows[which], kinds, bounds=[NEAR, FAR])
    return learner.get_mahalanobis_matrix(), learner.n_iter_


def main():
    rows, labels = data()
    which, kinds = pairs()
    assert ((labels[which[:, 0]] == labels[which[:, 1]]) == (kinds == 1)).all()
    upper = numpy.triu_indices(DIM)
    for gamma, name in [(0.25, "SOFT"), (4.0, "HARD")]:
        twice, _ = fitted(rows, gamma, max_iter=2)
        own, cycles = fitted(rows, gamma)
        end, more = fitted(rows, gamma, max_iter=200_000, tol=1e-13)
        print(f"// metric-learn takes {cycles + 1} cycles by itself, {more + 1} to the end")
        print(f"const {name}: Expected = Expected {{")
        print(f"    gamma: {gamma},")
        print(f"    given: {primal(given(), rows, gamma):.9f},")
        print(f"    twice: [{listed(twice[upper])}],")
        print(f"    end: [{listed(end[upper])}],")
        print(f"    own_primal: {primal(own, rows, gamma):.9f},")
        print(f"    end_primal: {primal(end, rows, gamma):.9f},")
        print("};")
    prior = _initialize_metric_mahalanobis(rows[which], "covariance")
    print(f"const WHITENING: [f64; 10] = [{listed(prior[upper])}];")


main()
