"""Optima of RankSVM with squared losses: ordered pairs by scikit-learn's LinearSVC on differences,
ordered and similar pairs by scipy's minimiser of the listed objective.

    python tests/oracles/constants/rank_svm.py

What it prints stands as constants in crates/metra/src/methods/qwise/rank_svm.rs. Run by hand.
"""

import math

import numpy as np
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

LEVELS = [0, 1, 1, 2]  # A < B ~ C < D


def rows():
    made = []
    for r in range(12):
        level = LEVELS[r % 4]
        made.append(
            [
                level + 0.9 * math.sin(2.3 * r),
                0.5 * level + math.cos(1.1 * r + 0.5),
                math.sin(1.7 * r + 0.3),
            ]
        )
    x = np.array(made)
    scale = math.sqrt(((x - x.mean(0)) ** 2).sum(1).mean())
    return x / scale, scale


def pairs(similar):
    level = [LEVELS[r % 4] for r in range(12)]
    ordered = [(i, j) for i in range(12) for j in range(12) if level[i] > level[j]]
    alike = [(i, j) for i in range(12) for j in range(i) if level[i] == level[j]]
    if similar == "classes":
        alike = [(i, j) for i, j in alike if i % 4 != j % 4]
    return ordered, alike if similar != "none" else []


def by_scipy(x, cost, similar):
    ordered, alike = pairs(similar)
    up = np.array([x[i] - x[j] for i, j in ordered])
    same = np.array([x[i] - x[j] for i, j in alike]).reshape(-1, 3)

    def objective(w):
        slack = np.maximum(0, 1 - up @ w)
        apart = same @ w
        value = 0.5 * w @ w + cost * (slack @ slack + apart @ apart)
        return value, w + 2 * cost * (-up.T @ slack + same.T @ apart)

    found = minimize(objective, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-10})
    return found.x


def by_scikit_learn(x, cost):
    ordered, _ = pairs("none")
    up = np.array([x[i] - x[j] for i, j in ordered])
    # Half of the differences the other way round, so that there are two classes.
    sign = np.array([1 if k % 2 == 0 else -1 for k in range(len(up))])
    model = LinearSVC(C=cost, loss="squared_hinge", fit_intercept=False, dual=False, tol=1e-10)
    return model.fit(up * sign[:, None], sign).coef_[0]


def show(name, w, scale):
    values = ", ".join(f"{v:.9f}" for v in w / scale)
    print(f"    const {name}: [f64; 3] = [{values}];")


def main():
    x, scale = rows()
    for cost, word in [(0.1, "0_1"), (10.0, "10")]:
        learned = by_scikit_learn(x, cost)
        assert np.allclose(learned, by_scipy(x, cost, "none"), atol=1e-6)
        show(f"ORDERED_{word}", learned, scale)
    show("LEVEL_0_1", by_scipy(x, 0.1, "level"), scale)
    show("LEVEL_10", by_scipy(x, 10.0, "level"), scale)
    show("CLASSES_0_1", by_scipy(x, 0.1, "classes"), scale)


if __name__ == "__main__":
    main()
