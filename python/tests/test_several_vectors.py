"""Rows of several vectors, one behind the other."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import metra

DIGITS = load_digits()
Y = DIGITS.target[:400]
NOISE = np.random.default_rng(0).normal(scale=100, size=(400, 20))
X = np.hstack([DIGITS.data[:400], NOISE]).astype(np.float32)


def test_noise_gets_no_weight(tmp_path) -> None:
    learned = metra.VectorWeights(prepare="l2-each").fit(X, Y, vector_dims=[64, 20])
    facts = learned.model_.facts
    assert facts["weight_1"] > 0.95
    assert facts["weight_1"] + facts["weight_2"] == pytest.approx(1)
    mapped = learned.transform(X)
    assert np.allclose(np.linalg.norm(mapped, axis=1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(mapped[:, :64], axis=1) ** 2, facts["weight_1"], atol=1e-5)
    path = tmp_path / "weights.safetensors"
    learned.model_.save(path)
    assert np.array_equal(metra.Model.load(path).transform(X), mapped)


def test_dimensions_may_be_a_parameter() -> None:
    named = metra.VectorWeights(dims="64").fit(X, Y)
    told = metra.VectorWeights().fit(X, Y, vector_dims=(64, 20))
    assert named.model_.facts == told.model_.facts


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(metra.MetraError, match="rows of several vectors"):
        metra.VectorWeights().fit(X, Y)
    with pytest.raises(metra.MetraError, match="added up"):
        metra.VectorWeights().fit(X, Y, vector_dims=[64, 21])
    with pytest.raises(metra.MetraError, match="a row is one vector"):
        metra.Lda(prepare="l2-each", n_components=5).fit(X, Y)
    with pytest.raises(TypeError):
        metra.VectorWeights().fit(X, Y, vector_dims=[64.0, 20.0])
    with pytest.raises(metra.MetraError, match="at least 1 each"):
        metra.VectorWeights().fit(X, Y, vector_dims=[85, -1])
