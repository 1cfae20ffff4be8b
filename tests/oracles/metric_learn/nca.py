# The values that the tests of NCA (crates/metra/src/methods/nca/oracle_tests.rs) are held against:
# objective and gradient of metric-learn and of scikit-learn at given maps, and the mean chance that
# they reach.
#
# Both take the sum of the rows' chances, we the mean, and as a loss: their values and gradients are
# divided by minus the number of rows here. Both learn from the data as they are, we from data
# divided by the mean distance inside classes: they get starts with and without it.
#
#   python nca.py      (an environment with what requirements.txt beside it lists)

import numpy
from metric_learn import NCA
from sets import data, listed, maps
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis


def at(learner, rows, labels, components):
    learner.n_iter_, learner.verbose = 0, False
    same = labels[:, None] == labels[None]
    value, gradient = learner._loss_grad_lbfgs(components.ravel(), rows, same)
    return -value / len(rows), -gradient / len(rows)


def grid():
    """Six rows at every place (a, b, q) of a grid, mixed by whole numbers in halves; a + b of them
    are of class 1.

    Rows that coincide and differ in class keep a map from fitting single rows, which on most sets
    has a local optimum for every start. Here every start leads to the same value: only a + b says
    something about the class.
    """
    rows, labels = [], []
    for a in range(4):
        for b in range(3):
            for q in range(2):
                for number in range(6):
                    rows.append([2 * a + b, -a + 2 * b + q, a + 3 * q])
                    labels.append(int(number < a + b))
    return numpy.array(rows) / 2, numpy.array(labels)


def main():
    rows, labels = data()
    for name, components in maps().items():
        value, gradient = at(NCA(), rows, labels, components)
        other = at(NeighborhoodComponentsAnalysis(), rows, labels, components)
        assert abs(value - other[0]) < 1e-12 and numpy.allclose(gradient, other[1], atol=1e-12)
        print(f"const {name}: (f64, &[f64]) = ({value:.9f}, &[{listed(gradient)}]);")
    rows, labels = grid()
    lengths = [
        numpy.linalg.norm(rows[i] - rows[j])
        for i in range(len(rows))
        for j in range(len(rows))
        if i != j and labels[i] == labels[j]
    ]
    for rank in (3, 2):
        axes = PCA(rank).fit(rows).components_
        best = 0.0
        for start, init in [("pca", axes), ("scaled pca", axes / numpy.mean(lengths))]:
            for kind in (NCA, NeighborhoodComponentsAnalysis):
                for tolerance in (1e-5, 1e-12):
                    learner = kind(init=init, n_components=rank, max_iter=5000, tol=tolerance)
                    components = learner.fit(rows, labels).components_
                    value = -at(learner, rows, labels, components)[0]
                    best = max(best, value)
                    print(f"// rank {rank}, {start}, {kind.__name__}, {tolerance}: {value:.9f}")
        print(f"const END_{rank}: f64 = {best:.9f};")


main()
