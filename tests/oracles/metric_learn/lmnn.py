# The values that the tests of LMNN (crates/metra/src/methods/lmnn/oracle_tests.rs) are held against:
# metric-learn's objective and gradient at given maps, and the objective where it stops by itself.
#
# metric-learn 0.7.0 counts as we do: `regularization` weighs the pull of every target, what is left
# of 1 every triplet (row, target, impostor) within a margin of 1, nothing is divided by a number of
# rows, and targets are the nearest rows before learning. Its gradient is that of the objective by L.
#
#   python lmnn.py      (an environment with what requirements.txt beside it lists)

import numpy
from metric_learn import LMNN
from metric_learn.lmnn import _sum_outer_products
from sets import CLASSES, ROWS, data, listed, maps

NEIGHBOURS, PULL = 3, 0.5

# Its own settings; and rates and tolerances with which it comes farther.
RUNS = [
    {},
    {"learn_rate": 1e-3},
    {"learn_rate": 1e-4, "convergence_tol": 1e-9, "max_iter": 20_000},
]


def squared(rows):
    return ((rows[:, None] - rows[None]) ** 2).sum(-1)


def dense(rows, labels, components):
    """The objective by its definition; no row may have two choices of targets, nor a triplet be so
    near to its margin that rounding decides."""
    before, after = squared(rows), squared(rows @ components.T)
    value = 0.0
    for i in range(ROWS):
        own = [j for j in numpy.argsort(before[i]) if j != i and labels[j] == labels[i]]
        assert before[i, own[NEIGHBOURS - 1]] < before[i, own[NEIGHBOURS]]
        for j in own[:NEIGHBOURS]:
            over = 1 + after[i, j] - after[i, labels != labels[i]]
            value += PULL * after[i, j] + (1 - PULL) * numpy.maximum(0, over).sum()
            dense.nearest = min(dense.nearest, numpy.abs(over[over != 0]).min())
    return value


def at(rows, labels, components):
    """metric-learn's gradient and objective."""
    learner = LMNN(n_neighbors=NEIGHBOURS, regularization=PULL)
    learner.labels_ = numpy.arange(CLASSES)
    targets = learner._select_targets(rows, labels)
    pulls = _sum_outer_products(rows, targets.flatten(), numpy.repeat(numpy.arange(ROWS), NEIGHBOURS))
    found = learner._loss_grad(rows, components, pulls, NEIGHBOURS, PULL, targets, labels)
    return found[0], found[1]


def main():
    rows, labels = data()
    for name, components in maps().items():
        dense.nearest = numpy.inf
        gradient, value = at(rows, labels, components)
        assert abs(value - dense(rows, labels, components)) < 1e-9 * value
        assert dense.nearest > 1e-4
        print(f"const {name}: (f64, &[f64]) = ({value:.9f}, &[{listed(gradient, 3)}]);")
    for init, rank in [("identity", 4), ("pca", 2)]:
        found = []
        for settings in RUNS:
            learner = LMNN(init=init, n_components=rank, n_neighbors=NEIGHBOURS, **settings)
            components = learner.fit(rows, labels).components_
            found.append(dense(rows, labels, components))
            print(f"// rank {rank}, {settings}: {found[-1]:.6f} after {learner.n_iter_}")
        print(f"const END_{rank}: f64 = {min(found):.6f};")


main()
