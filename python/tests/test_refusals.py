"""Input that cannot be meant is refused with words that help; nothing of it is accepted in silence."""

from __future__ import annotations

import threading
from typing import Any

import metra
import numpy as np
import pytest
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32)


def without(values: Any, missing: Any) -> np.ndarray:
    """Every seventh value is missing."""
    values = np.array(values, dtype=object)
    values[::7] = missing
    return values


def unlabelled() -> dict[str, Any]:
    """Classes of which some are missing, as libraries have them."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    named = without(y.astype(str), None)
    return {
        "None": without(y, None),
        "a list": named.tolist(),
        "texts and None": named,
        "NaN": without(y, np.nan).astype(float),
        "texts and NaN": without(y.astype(str), np.nan),
        "NA": pandas.array(without(y, None), dtype="Int64"),
        "a series": pandas.Series(named),
        "categories": pandas.Categorical(named),
        "masked": np.ma.masked_array(y, mask=np.arange(len(y)) % 7 == 0),
        "PyArrow": pyarrow.array(named.tolist()),
        "Polars": polars.Series(named.tolist()),
    }


FORMS = (
    "None", "a list", "texts and None", "NaN", "texts and NaN", "NA", "a series", "categories",
    "masked", "PyArrow", "Polars",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_missing_labels(form: str) -> None:
    labels = unlabelled()[form]
    message = "no class in 257 of 1797 rows .* the first is row 0"
    with pytest.raises(metra.SupervisionError, match=message):
        metra.Lda().fit(X, labels)
    with pytest.raises(metra.SupervisionError, match=message):
        metra.evaluate("euclid", X, labels)
    with pytest.raises(metra.SupervisionError, match=message):
        metra.evaluate("euclid", X, y, gallery=(X, labels))
    with pytest.raises(metra.SupervisionError, match=message):
        metra.compare(X, labels)


def test_classes_named_none_are_classes() -> None:
    names = np.where(y == 3, "None", y.astype(str))
    assert metra.evaluate("euclid", X, names)["map"] == metra.evaluate("euclid", X, y)["map"]


def test_continuous_labels() -> None:
    with pytest.raises(metra.SupervisionError, match="continuous.*digitize"):
        metra.Lda().fit(X, y + 0.5)
    with pytest.raises(metra.SupervisionError, match="infinity"):
        metra.Lda().fit(X, np.where(y == 1, np.inf, y))
    with pytest.raises(metra.SupervisionError, match="2 dimensions and other values"):
        metra.Lda().fit(X, np.stack([y, y], axis=1))
    # What learns from nothing may stand in a pipeline for regression.
    assert metra.Pca(n_components=2).fit(X, y + 0.5).transform(X).shape == (len(X), 2)


@pytest.mark.parametrize(
    "given",
    [{"pairs": [(0, 1)]}, {"triplets": [(0, 1, 2)]}, {"quadruplets": [(0, 1, 2, 3)]}],
    ids=lambda given: next(iter(given)),
)
def test_labels_beside_comparisons(given: dict[str, Any]) -> None:
    with pytest.raises(metra.SupervisionError, match=f"y and {next(iter(given))} both say"):
        metra.Itml().fit(X, y, **given)


def test_labels_beside_comparisons_that_are_learned_from() -> None:
    given = {"quadruplets": [(0, 10, 1, 2), (3, 13, 3, 4), (5, 15, 6, 7)]}
    alone = metra.Qwise().fit(X, **given)
    both = metra.Qwise(class_weight=1).fit(X, y, **given)
    assert both.model_.facts["constraints"] > alone.model_.facts["constraints"] == 3
    with pytest.raises(metra.SupervisionError, match="class_weight=1"):
        metra.Qwise().fit(X, y, **given)
    with pytest.raises(metra.MetraError, match="class_weight must be 0 where"):
        metra.Qwise(class_weight=1).fit(X, **given)


def test_queries_without_judgements() -> None:
    for call in (
        lambda: metra.Warca().fit(X, y, queries=X[:5]),
        lambda: metra.evaluate("euclid", X, y, queries=X[:5]),
        lambda: metra.compare(X, y, queries=X[:5]),
    ):
        with pytest.raises(metra.SupervisionError, match="queries need qrels"):
            call()


@pytest.mark.parametrize("labels", [[1, 2], [1, 0.5], [1, np.nan], ["same", "other"], [1, None]])
def test_labels_of_pairs(labels: list[Any]) -> None:
    with pytest.raises(metra.SupervisionError, match="must be 1 .similar., 0 or -1"):
        metra.Itml().fit(X, pairs=([(0, 1), (1, 2)], labels))


@pytest.mark.parametrize("labels", [[1, -1], [1, 0], [True, False], [1.0, -1.0]])
def test_labels_of_pairs_that_are_meant(labels: list[Any]) -> None:
    assert metra.Itml().fit(X, pairs=([(0, 10), (1, 2)], labels)).model_.input_dim == 64


def test_a_paired_bootstrap_of_other_queries() -> None:
    first, second = metra.evaluate("euclid", X[:500], y[:500]), metra.evaluate("euclid", X[500:1000], y[500:1000])
    for call in (lambda: metra.bootstrap(first, second), lambda: second.against(first)):
        with pytest.raises(metra.DataError, match="same queries"):
            call()
    other = metra.evaluate("cosine", X[:500], y[:500])
    assert [row["measure"] for row in other.against(first)] == list(first)


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_threads(n_jobs: Any) -> None:
    with pytest.raises(metra.ParameterError, match="n_jobs must be"):
        metra.Lda(n_jobs=n_jobs).fit(X, y)
    with pytest.raises(metra.ParameterError, match="n_jobs must be"):
        metra.evaluate("euclid", X, y, n_jobs=n_jobs)


def test_one_class() -> None:
    with pytest.raises(metra.DataError, match="one class"):
        metra.evaluate("euclid", X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="validation and test need y"):
        metra.Pca(test=0.2).fit(X)


@pytest.mark.parametrize("name", ["Warca", "Frml", "SupCon", "ProxyAnchor", "MultiSimilarity"])
def test_a_rate_that_is_too_large(name: str) -> None:
    learner = getattr(metra, name)
    with pytest.raises(metra.DivergedError, match="loss rose from .* smaller rate"):
        learner(n_components=8, steps=60, rate=1e9).fit(X, y)
    learner(n_components=8, steps=60, rate=1.0).fit(X, y)


def test_names_of_a_grid() -> None:
    with pytest.raises(metra.ParameterError, match="grid must name parameters .*n_components.*'lamb'"):
        metra.Warca(grid={"lamb": [1]}, validation=0.2).fit(X, y)


def test_arrays_that_are_written_to_during_a_fit() -> None:
    rows, stop = X.copy(), threading.Event()

    def disturb() -> None:
        while not stop.wait(0.001):
            rows[:] += 1

    writer = threading.Thread(target=disturb)
    writer.start()
    try:
        with pytest.raises(metra.DataError, match="written to during the fit.*copy=True"):
            metra.Warca(n_components=8, steps=400).fit(rows, y)
    finally:
        stop.set()
        writer.join()


def test_arrays_cannot_be_resized_during_a_fit() -> None:
    rows, problems = X.copy(), []

    def resize(phase: str, step: int, steps: int, *rest: Any) -> None:
        try:
            rows.resize(10, 64)
        except ValueError as error:
            problems.append(str(error))

    metra.Warca(n_components=8, steps=400).fit(rows, y, callback=resize)
    assert problems and "resize" in problems[0]


def test_missing_cameras() -> None:
    with pytest.raises(metra.SupervisionError, match="257 are missing"):
        metra.Lda(prepare="centre-groups").fit(X, y, cameras=without(y % 2, None))


def test_names_people_know() -> None:
    assert metra.LDA is metra.Lda and metra.NCA is metra.Nca
    assert metra.evaluate("l2", X, y)["map"] == metra.evaluate("euclid", X, y)["map"]
    assert metra.Warca(steps=5, score_by="l2").fit(X, y).model_.score == "euclid"


def test_cameras_reach_both_halves_of_fit_transform() -> None:
    learner = metra.Lda(prepare="centre-groups", n_components=3)
    found = learner.fit_transform(X, y, cameras=y % 2)
    assert np.array_equal(found, learner.transform(X, cameras=y % 2))


def test_sparse_matrices_are_pointed_to_a_reduction():
    sparse = pytest.importorskip("scipy.sparse")
    from sklearn.decomposition import TruncatedSVD
    from sklearn.pipeline import make_pipeline

    random = np.random.default_rng(2)
    y = np.arange(120) % 4
    X = sparse.random(120, 3000, density=0.01, random_state=3, format="csr")
    X[np.arange(120), y] = 1 + random.random(120)
    for given in (X, X.tocoo()):
        with pytest.raises(ValueError, match="TruncatedSVD"):
            metra.Lda(n_components=3).fit(given, y)
    pipeline = make_pipeline(TruncatedSVD(8, random_state=0), metra.Lda(n_components=3))
    assert pipeline.fit_transform(X, y).shape == (120, 3)
