"""Training that starts from an earlier model."""

from __future__ import annotations

from pathlib import Path

import metra
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def earlier(digits: tuple[np.ndarray, np.ndarray]) -> metra.Warca:
    X, y = digits
    return metra.Warca(n_components=8, steps=60, score_by="cosine").fit(X[:900], y[:900])


# Steps that move nothing show where they start.
STILL = {"steps": 1, "rate": 1e-9}


@pytest.mark.parametrize("given", ["estimator", "model", "path"])
def test_a_fit_starts_where_the_earlier_model_ended(
    digits: tuple[np.ndarray, np.ndarray], earlier: metra.Warca, tmp_path: Path, given: str
) -> None:
    X, y = digits
    path = tmp_path / "earlier.safetensors"
    earlier.save(path)
    start = {"estimator": earlier, "model": earlier.model_, "path": path}[given]
    found = metra.Warca(**STILL).fit(X[900:1200], y[900:1200], start_from=start)
    assert found.model_.output_dim == 8
    assert found.model_.score == "cosine"
    assert_allclose(found.transform(X), earlier.transform(X), rtol=1e-3, atol=1e-3)


def test_partial_fit_goes_on_from_its_own_model(
    digits: tuple[np.ndarray, np.ndarray], earlier: metra.Warca
) -> None:
    X, y = digits
    first = metra.Warca(n_components=8, steps=60, score_by="cosine").partial_fit(X[:900], y[:900])
    assert_allclose(first.transform(X), earlier.transform(X))
    first.set_params(**STILL).partial_fit(X[900:1200], y[900:1200])
    assert_allclose(first.transform(X), earlier.transform(X), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="X has 9 features"):
        first.partial_fit(X[:, :9], y)


def test_what_the_earlier_model_knows_is_not_tested_on(
    digits: tuple[np.ndarray, np.ndarray], earlier: metra.Warca
) -> None:
    X, y = digits
    with pytest.raises(metra.DataError, match="the model to start from has learned from"):
        metra.Warca(test=0.5, steps=5).fit(X, y, start_from=earlier)
    known = metra.Warca(validation=0.2, steps=5).fit(X[:900], y[:900], start_from=earlier)
    assert known.sizes_["validation"] == 0
    new = metra.Warca(validation=0.2, steps=5).fit(X[900:], y[900:], start_from=earlier)
    assert new.sizes_["validation"] > 100


def test_methods_without_steps_refuse_a_start(
    digits: tuple[np.ndarray, np.ndarray], earlier: metra.Warca
) -> None:
    X, y = digits
    with pytest.raises(metra.ParameterError, match="start_from must be left out for lda: only .*warca"):
        metra.Lda().fit(X, y, start_from=earlier)
    assert not hasattr(metra.Lda(), "partial_fit")
    with pytest.raises(metra.ParameterError, match="a map of 64 dimensions to 9"):
        metra.Warca(n_components=9).fit(X, y, start_from=earlier)
    with pytest.raises(ValueError):
        metra.Warca().fit(X, y, start_from=metra.Warca())
