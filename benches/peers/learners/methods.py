"""What is compared: methods, the libraries they come from, and three settings of each.

The number of numbers in a mapped vector is set alike: 64 where a method wants many (or the
dimension, where that is less), the number of classes less one where it works by the spread between
classes. Grids were settled on validation rows.
"""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

METRA, METRIC_LEARN, CURRENT = "metra", "metric-learn", "current"

# Name, library, environment, class (or "" for the vectors as they are).
METHODS: list[tuple[str, str, str, str]] = [
    ("Euclid", "as they are", METRA, ""),
    ("Cosine", "as they are", METRA, ""),
    ("Warca", "metra", METRA, "Warca"),
    ("MultiSimilarity", "metra", METRA, "MultiSimilarity"),
    ("SupCon", "metra", METRA, "SupCon"),
    ("Lda", "metra", METRA, "Lda"),
    ("Lfda", "metra", METRA, "Lfda"),
    ("Xqda", "metra", METRA, "Xqda"),
    ("Lmnn", "metra", METRA, "Lmnn"),
    ("Nca", "metra", METRA, "Nca"),
    ("Itml", "metra", METRA, "Itml"),
    ("LFDA", "metric-learn", METRIC_LEARN, "LFDA"),
    ("ITML_Supervised", "metric-learn", METRIC_LEARN, "ITML_Supervised"),
    ("LMNN", "metric-learn", METRIC_LEARN, "LMNN"),
    ("NCA", "metric-learn", METRIC_LEARN, "NCA"),
    ("NeighborhoodComponentsAnalysis", "scikit-learn", CURRENT, "NeighborhoodComponentsAnalysis"),
    ("MultiSimilarityLoss", "pytorch-metric-learning", CURRENT, "MultiSimilarityLoss"),
]

# The same method in metra and in another library.
TWINS = [
    ("Lfda", "LFDA", "metric-learn"),
    ("Lmnn", "LMNN", "metric-learn"),
    ("Nca", "NCA", "metric-learn"),
    ("Nca", "NeighborhoodComponentsAnalysis", "scikit-learn"),
    ("Itml", "ITML_Supervised", "metric-learn"),
    ("MultiSimilarity", "MultiSimilarityLoss", "pytorch-metric-learning"),
]
# Methods that are measured on Fashion-MNIST, where 48,000 rows are learned from in trials. metric-learn and
# scikit-learn were not tried: they do not end within the limits on 12,000 rows of CLINC150.
ON_LARGE = ("Euclid", "Cosine", "Warca", "MultiSimilarity", "SupCon", "Lda", "Xqda", "Lmnn",
            "MultiSimilarityLoss")


def inputs(data: str, name: str, library: str) -> list[str]:
    """Which inputs a method learns from: all columns, their principal components, or both.

    metric-learn gets principal components where there are more than 100 columns: its LFDA needs a
    spread of full rank, and its ITML updates a matrix of dim x dim once a constraint. On Digits its
    LFDA gets both, for some pixels there are constant. metra gets what metric-learn gets.
    """
    if data == "fashion_mnist":
        return ["pca100"] if name in ON_LARGE else []
    if data == "digits":
        return ["all", "pca40"] if name in ("Warca", "Lda", "Lfda", "Xqda", "LFDA") else ["all"]
    if library == "metric-learn" or name in ("Lmnn", "Nca", "Itml"):
        return ["pca100"]
    if name == "NeighborhoodComponentsAnalysis" and data == "clinc150":
        return ["all"]
    return ["all", "pca100"]


def settings(name: str, classes: int, dim: int) -> list[Settings]:
    """Three settings of a method, the first the cheapest where costs differ much.

    LMNN's own rate of 1e-7 took ten times as long as 1e-3 for the same validation mAP on Digits,
    and 1,000 passes of ITML ten times as long as 100 for less, so both have what suits them better.
    """
    many = {"n_components": min(64, dim)}
    few = {"n_components": min(classes - 1, dim)}
    lmnn = {"learn_rate": 1e-3}
    # metric-learn draws 20 classes^2 constraints, which are 450,000 for CLINC150.
    itml = {"max_iter": 100, "n_constraints": min(20 * classes**2, 10_000)}
    torch = {**many, "batch": 128}
    small = {**torch, "temperature": 0.2}
    table: dict[str, list[Settings]] = {
        "Euclid": [{}],
        "Cosine": [{}],
        "Warca": [many, {**many, "margin": 0.15, "start": "lda"}, {**many, "lam": 0.01}],
        "MultiSimilarity": [
            many, {**many, "batch": 128}, {**many, "batch": 128, "rate": 0.003}
        ],
        "SupCon": [many, {**small, "rate": 0.01}, {**small, "rate": 0.003}],
        "Lda": [{**few, "ridge": ridge} for ridge in (0.1, 0.01, 1)],
        "Lfda": [{**few, "ridge": ridge} for ridge in (0.1, 0.01, 1)],
        "Xqda": [{"ridge": ridge} for ridge in (0.1, 0.01, 1)],
        "Lmnn": [many, few, {**many, "neighbours": 10}],
        "Nca": [few, many, {**few, "start": "lda"}],
        "Itml": [{"pairs": itml["n_constraints"], "gamma": gamma} for gamma in (1, 0.1, 10)],
        "LFDA": [
            {**few, "embedding_type": kind} for kind in ("weighted", "plain", "orthonormalized")
        ],
        "ITML_Supervised": [{**itml, "gamma": gamma} for gamma in (1, 0.1, 10)],
        "LMNN": [{**lmnn, **few}, lmnn, {**lmnn, "n_neighbors": 10}],
        "NCA": [few, many, {**few, "init": "pca"}],
        "NeighborhoodComponentsAnalysis": [few, many, {**few, "init": "pca"}],
        "MultiSimilarityLoss": [
            {**torch, "rate": 0.01},
            {**torch, "rate": 0.01, "beta": 10, "epsilon": 0.3},
            {**torch, "rate": 0.003, "beta": 10, "epsilon": 0.3},
        ],
    }
    return table[name]
