"""Queries and items that are vectors of two models."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import metra

DIGITS = load_digits()
ITEMS = np.ascontiguousarray(DIGITS.data[:400], dtype=np.float32)
ITEM_CLASSES = DIGITS.target[:400]
TURN = np.random.default_rng(0).normal(size=(64, 30)).astype(np.float32)
QUERIES = DIGITS.data[400:700].astype(np.float32) @ TURN
QUERY_CLASSES = DIGITS.target[400:700]
QRELS = np.argwhere(QUERY_CLASSES[:200, None] == ITEM_CLASSES[None, :])


def test_items_are_found_by_queries_of_another_model(tmp_path) -> None:
    learned = metra.Cca(n_components=8).fit(ITEMS, queries=QUERIES[:200], qrels=QRELS)
    model = learned.model_
    assert (model.input_dim, model.query_input_dim, model.two_spaces) == (64, 30, True)
    assert learned.n_features_in_ == 64
    ids, _ = learned.search(QUERIES[200:], ITEMS, k=1)
    assert np.mean(ITEM_CLASSES[ids[:, 0]] == QUERY_CLASSES[200:]) > 0.85
    assert learned.transform_query(QUERIES).shape == (300, 8)
    assert learned.transform_item(ITEMS).shape == (400, 8)
    # Pairs of a query and an item are compared as the matrix of all is.
    some = learned.pair_score((QUERIES[200:205], ITEMS[:5]))
    whole = model.dissimilarity(QUERIES[200:205], ITEMS[:5])
    assert np.allclose(some, -np.diag(whole), atol=1e-5)
    path = tmp_path / "two.safetensors"
    model.save(path)
    assert metra.Model.load(path).query_input_dim == 30
    found = metra.evaluate(learned, ITEMS, queries=QUERIES[:200], qrels=QRELS, measures=["p@1"])
    assert found["p@1"] > 0.85


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(metra.MetraError, match="dimension of the queries: expected 30"):
        metra.Cca(n_components=5).fit(ITEMS, queries=QUERIES[:200], qrels=QRELS).transform_query(ITEMS)
    with pytest.raises(metra.MetraError, match="vectors of two models"):
        metra.Adapter().fit(ITEMS, queries=QUERIES[:200], qrels=QRELS)
    with pytest.raises(metra.MetraError, match="separate queries"):
        metra.Cca().fit(ITEMS, ITEM_CLASSES, two_spaces=True)


def test_equal_dimensions_can_be_of_two_models() -> None:
    keywords = {"queries": DIGITS.data[400:600].astype(np.float32)[:, ::-1].copy(), "qrels": QRELS}
    one = metra.Procrustes().fit(ITEMS, **keywords)
    two = metra.Procrustes().fit(ITEMS, two_spaces=True, **keywords)
    assert (one.model_.two_spaces, two.model_.two_spaces) == (False, True)
    assert "procrustes" in two.base_ if two.base_ else True
