"""Codes: trained by estimators, as bytes, and chosen by budgets."""

from __future__ import annotations

from pathlib import Path

import metra
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

X, y = load_digits(n_class=6, return_X_y=True)
X = X.astype(np.float32)


def test_an_estimator_trains_for_bits() -> None:
    learned = metra.SupCon(n_components=24, steps=40, code="bits").fit(X, y)
    model = learned.model_
    assert (model.code, model.item_bytes) == ("bits", 3)
    codes, items = learned.encode_items(X), learned.transform(X)
    assert codes.shape == (len(X), 3) and codes.dtype == np.uint8
    # Packed as numpy packs them, and items are what their bits stand for.
    assert (np.unpackbits(codes, axis=1).astype(bool) == (items > 0)).all()
    assert len(np.unique(np.abs(items))) == 1
    queries = learned.transform_query(X)
    assert ((queries > 0) == (items > 0)).all() and len(np.unique(queries)) > 100
    assert clone(learned).get_params()["code"] == "bits"
    again = metra.from_model(model)
    assert again.code == "bits" and (again.encode_items(X) == codes).all()


def test_signed_bytes_and_their_scales() -> None:
    learned = metra.Pca(n_components=5, code="int8", score_by="euclid").fit(X, y)
    codes = learned.encode_items(X)
    assert codes.shape == (len(X), 9)
    scales = codes[:, 5:].copy().view("<f4")
    assert np.allclose(codes[:, :5].view("int8") * scales, learned.transform(X))


def test_a_code_is_chosen_like_any_setting() -> None:
    learned = metra.Lda(n_components=5, grid={"code": ["sign", "int8"]}, validation=0.3).fit(X, y)
    assert len(learned.trials_) >= 2 and learned.model_.code in ("bits", "int8")
    with pytest.raises(metra.ParameterError, match="code"):
        metra.Lda(code="int7").fit(X, y)
    plain = metra.Lda().fit(X, y)
    assert plain.model_.code is None and plain.model_.item_bytes == 4 * plain.model_.output_dim
    with pytest.raises(metra.ParameterError, match="code must be one that items are held in"):
        plain.encode_items(X)
    compared = metra.compare(X, y, methods={"bits": metra.Lda(n_components=5, code="sign")}, trials=1, n_jobs=1)
    assert compared.estimator("bits").code == "sign"


def test_nested_dimensions_serve_by_themselves() -> None:
    parts = {}
    for nested in (0, 4):
        # From a random start no order of dimensions is given.
        learned = metra.SupCon(n_components=32, steps=150, nested=nested, start="random", score_by="cosine")
        learned.fit(X[:600], y[:600])
        short = learned.model_.shortened(4)
        assert short.output_dim == 4 and short.held_out is None
        assert (short.transform_items(X) == learned.transform(X)[:, :4]).all()
        parts[nested] = metra.evaluate(short, X[600:], y[600:])["map"]
    assert parts[4] > parts[0] + 0.02
    with pytest.raises(metra.ParameterError, match="1 to 4"):
        short.shortened(5)


@pytest.fixture(scope="module")
def found() -> metra.Compression:
    return metra.compress(X, y, bytes=[8, 2], methods=["Lda"], holdout="rows")


def test_budgets_end_in_models_and_a_sentence(found: metra.Compression, tmp_path: Path) -> None:
    assert sorted(found.models) == [2, 8] and all(m.item_bytes <= b for b, m in found.models.items())
    for budget, (first, fine) in found.rescored.items():
        assert first.item_bytes <= budget and fine.code == "int8"
    model, _ = found.recommended
    assert any(row["recommended"] and row["item_bytes"] == model.item_bytes for row in found.rows())
    assert "bytes" in found.recommendation and found.recommendation in repr(found)
    page = found.report(tmp_path / "codes.html")
    assert (tmp_path / "codes.html").read_text(encoding="utf-8") == page and "<svg" in page
    assert "iframe" in found._repr_html_()
    again = metra.compress(X, y, bytes=[8, 2], methods=["lda"], holdout="rows", n_jobs=1)
    assert again.results == found.results
    assert again.models[2].to_bytes() == found.models[2].to_bytes()


def test_what_was_found_is_what_an_evaluation_gives(found: metra.Compression) -> None:
    model = found.models[2]
    row = next(row for row in found.rows() if 2 in row["budgets"] and row["learned"] and not row["rescored"])
    assert model.held_out["measures"]["map"]["learned"] == row["map"]


def test_without_supervision_neighbours_are_found() -> None:
    found = metra.compress(X, bytes=[4, 64], rescore=0)
    assert found.results["measure"] == "r@10" and found.results["base_value"] == 1.0
    by_budget = {budget: row["r@10"] for row in found.rows() for budget in row["budgets"]}
    assert 0.3 < by_budget[4] < by_budget[64]
    assert not any(row["learned"] for row in found.rows())


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(metra.SupervisionError, match="leave methods out"):
        metra.compress(X, methods=["lda"])
    with pytest.raises(metra.ParameterError, match="qrels"):
        metra.compress(X, queries=X)
    with pytest.raises(metra.ParameterError, match="protocol must come with labels"):
        metra.compress(X, protocol="leave-one-out")
    for base in ("cosin", "dot"):
        with pytest.raises(metra.ParameterError, match="base must be euclid or cosine"):
            metra.compress(X, y, base=base, bytes=[4], methods=[])
    with pytest.raises(metra.ParameterError, match="nested must be 0 to 8"):
        metra.SupCon(n_components=16, nested=9).fit(X, y)
    with pytest.raises(metra.ParameterError, match="bytes must be"):
        metra.compress(X, y, bytes=[])
    with pytest.raises(metra.ParameterError, match="tolerance"):
        metra.compress(X, y, tolerance=-1)
    with pytest.raises(metra.DataError, match="hold out both"):
        metra.compress(X, y, test=0)
