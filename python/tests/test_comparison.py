"""What a comparison gives back: its winner, settings and verdicts."""

from __future__ import annotations

import metra
import numpy as np
import pytest
from sklearn.datasets import load_digits

X, y = load_digits(n_class=6, return_X_y=True)
X = X.astype(np.float32)


@pytest.fixture(scope="module")
def found() -> metra.Comparison:
    return metra.compare(X, y, methods=["lda", "warca"], trials=2, folds=2, n_jobs=1)


def test_the_winner_is_fitted_to_all_rows(found: metra.Comparison) -> None:
    best = found.best_estimator_
    assert best._method == found.best and best.n_features_in_ == 64
    chosen = {key: best.get_params()[key] for key in found.best_settings}
    assert chosen == found.best_settings
    again = found.estimator().fit(X, y)
    assert again.model_.to_bytes() == best.model_.to_bytes()


def test_settings_are_those_of_the_splits(found: metra.Comparison) -> None:
    line = next(line for line in found.results["lines"] if line["name"] == "warca")
    settings = found.estimator("warca").get_params()
    assert str(settings["steps"]) in {str(split["steps"]) for split in line["splits"]}
    assert settings["score_by"] in {split["score"] for split in line["splits"]}
    with pytest.raises(metra.ParameterError, match="name must be one of .*lda.* but is 'nca'"):
        found.estimator("nca")


def test_the_frame_says_what_to_conclude(found: metra.Comparison) -> None:
    pytest.importorskip("pandas", reason="frames are of pandas")
    frame = found.frame
    assert frame.index[0] == found.best
    rows = frame.dropna(subset=["gain"])
    for _, row in rows.iterrows():
        expected = "better" if row.low > 0 else "worse" if row.high < 0 else "no evidence"
        assert row.verdict == expected and row.verdict in repr(found)
    assert frame.loc["warca"].settings["steps"] > 0


def test_without_refit() -> None:
    found = metra.compare(X, y, methods=["lda"], trials=1, refit=False, n_jobs=1)
    assert not hasattr(found, "best_estimator_")


def test_evaluations_and_verdicts_as_tables() -> None:
    pytest.importorskip("pandas", reason="frames are of pandas")
    base = metra.evaluate("euclid", X, y, measures=["map", "p@1"])
    learned = metra.evaluate(metra.Lda(n_components=3).fit(X, y), X, y, measures=["map", "p@1"])
    assert base.frame.shape == (len(X), 2) and base.frame["map"].mean() == pytest.approx(base["map"])
    gains = learned.against(base)
    assert gains.frame.loc["map", "difference"] == gains[0]["difference"]
    assert "<th>map</th>" in base._repr_html_() and "better" in gains._repr_html_()
