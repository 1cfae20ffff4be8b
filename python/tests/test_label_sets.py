"""Several labels per row."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

import metra

DIGITS = load_digits()
X = np.ascontiguousarray(DIGITS.data[:600], dtype=np.float32)
CLASSES = DIGITS.target[:600]
LISTS = [[f"{digit}", "even" if digit % 2 == 0 else "odd"] for digit in CLASSES]


def indicator() -> np.ndarray:
    """A column per digit, and one for the even and one for the odd."""
    table = np.zeros((len(X), 12), dtype=int)
    table[np.arange(len(X)), CLASSES] = 1
    table[np.arange(len(X)), 10 + CLASSES % 2] = 1
    return table


def learned(y) -> np.ndarray:
    return metra.Slr(n_components=8).fit(X, y).transform(X)


def test_all_forms_teach_the_same() -> None:
    expected = learned(LISTS)
    by_name = {name: number for number, name in enumerate([*"0123456789", "even", "odd"])}
    numbers = [[by_name[label] for label in labels] for labels in LISTS]
    assert np.array_equal(learned([set(labels) for labels in LISTS]), expected)
    for y in (indicator(), scipy.sparse.csr_matrix(indicator()), indicator().tolist(), numbers):
        # The order of the names decides nothing but rounding.
        assert np.allclose(learned(y), learned(indicator()), atol=1e-6)


def test_other_containers() -> None:
    import pandas as pd
    import pyarrow as pa

    expected = learned(LISTS)
    for y in (pd.Series(LISTS), pa.array(LISTS), pd.DataFrame(indicator())):
        assert np.allclose(learned(y), learned(indicator()), atol=1e-6) or np.array_equal(learned(y), expected)
    # One class per row, as a column.
    classes = metra.Lda(n_components=8).fit(X, CLASSES).transform(X)
    for y in ([[digit] for digit in CLASSES], CLASSES[:, None]):
        assert np.array_equal(metra.Lda(n_components=8).fit(X, y).transform(X), classes)


def test_a_gallery_is_searched_by_shared_labels() -> None:
    found = metra.evaluate("euclid", X[:200], LISTS[:200], gallery=(X[200:], LISTS[200:]), measures=["map"])
    parity = metra.evaluate("euclid", X[:200], CLASSES[:200] % 2, gallery=(X[200:], CLASSES[200:] % 2), measures=["map"])
    assert found["map"] == pytest.approx(parity["map"])


def test_relevance_is_the_number_of_shared_labels() -> None:
    assert metra.evaluate("euclid", X, LISTS, measures=["map"])["map"] == pytest.approx(
        metra.evaluate("euclid", X, CLASSES % 2, measures=["map"])["map"]
    )
    judged = {
        name: metra.evaluate("euclid", X, y, measures=["ndcg@10"])["ndcg@10"]
        for name, y in {"both": LISTS, "parity": CLASSES % 2}.items()
    }
    assert judged["both"] != judged["parity"]


def test_what_cannot_be_read_says_so() -> None:
    with pytest.raises(metra.SupervisionError, match="class labels"):
        metra.Lda().fit(X, LISTS)
    with pytest.raises(metra.SupervisionError, match="row 1 is 'b'"):
        metra.Slr().fit(X[:2], [["a"], "b"])
    with pytest.raises(metra.SupervisionError, match="missing label .* in row 1"):
        metra.Slr().fit(X[:2], [["a", "b"], [None]])
    with pytest.raises(metra.SupervisionError, match="2 dimensions and other values"):
        metra.Slr().fit(X[:3], np.arange(6).reshape(3, 2))
    with pytest.raises(metra.SupervisionError, match="0 and 1"):
        metra.Slr().fit(X[:3], scipy.sparse.csr_matrix([[2, 0], [0, 1], [1, 1]]))
    with pytest.raises(metra.SupervisionError, match="row 0 that is not whole"):
        metra.Slr().fit(X[:2], [[0.5, 1.0], [0.25, 1.0]])
    with pytest.raises(ValueError, match="expected 600, but found 599"):
        metra.Slr().fit(X, LISTS[1:])
