"""Evaluation, comparison, bootstrap and plots."""

import json
import subprocess

import metra
import numpy as np
import pytest
from sklearn.metrics import average_precision_score


def test_average_precision_is_scikit_learns(nuisance):
    X, y = nuisance
    found = metra.evaluate("euclid", X, y, measures=["map", "p@1"])
    distances = np.linalg.norm(X[:, np.newaxis].astype(float) - X, axis=2)
    for query in (0, 17, 200):
        others = np.arange(len(y)) != query
        expected = average_precision_score(y[others] == y[query], -distances[query][others])
        assert found.per_query("map")[query] == pytest.approx(expected, abs=1e-6)
    assert found.queries.tolist() == list(range(len(y))) and found.skipped == 0
    assert dict(found)["map"] == pytest.approx(found.per_query("map").mean())


def test_protocols(nuisance):
    X, y = nuisance
    cameras = np.arange(len(y)) % 2
    shot = metra.evaluate("euclid", X, y, cameras=cameras, protocol="single-shot", repeats=2)
    assert shot.cmc[-1] == pytest.approx(1.0) and "cmc@1" in shot
    crossed = metra.evaluate("euclid", X, y, cameras=cameras, protocol="cross-camera")
    # All of one camera against all of the other, as a gallery of its own.
    left, right = cameras == 0, cameras == 1
    apart = metra.evaluate(
        "euclid",
        X[left],
        y[left],
        cameras=cameras[left],
        gallery=(X[right], y[right], cameras[right]),
        protocol="cross-camera",
    )
    against = metra.evaluate("euclid", X[left], y[left], gallery=(X[right], y[right]))
    assert apart["map"] == pytest.approx(against["map"])
    assert 0 < crossed["map"] < 1
    voted = metra.evaluate(
        "euclid", X[left], y[left], gallery=(X[right], y[right]), classifier="knn:3"
    )
    assert len(voted.queries) == left.sum()
    reranked = metra.evaluate("euclid", X, y, rerank=True, measures=["map"])
    assert reranked["map"] != metra.evaluate("euclid", X, y, measures=["map"])["map"]


def test_one_thing_is_better_than_another(nuisance):
    X, y = nuisance
    learned = metra.Lda().fit(X[::2], y[::2])
    base = metra.evaluate("euclid", X[1::2], y[1::2], measures=["map", "p@1"])
    better = metra.evaluate(learned, X[1::2], y[1::2], measures=["map", "p@1"])
    found = {row["measure"]: row for row in better.against(base)}
    assert found["map"]["verdict"] == "better" and found["map"]["clusters"] == 30
    assert found["map"]["difference"] == pytest.approx(better["map"] - base["map"])
    assert metra.bootstrap(base, base)["verdict"] == "no evidence"
    with pytest.raises(metra.MetraError, match="second system"):
        metra.bootstrap([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="fitted"):
        metra.evaluate(metra.Lda(), X, y)


def test_agreement_by_hand():
    # |0 − 1| < |0 − 3| is right, |0 − 3| < |0 − 1| wrong; of pairs, 1 is nearer than 3.
    X = np.array([[0.0], [1.0], [3.0]])
    found = metra.agreement(
        "euclid",
        X,
        pairs=[[0, 1, 1], [0, 2, 0]],
        triplets=[[0, 1, 2], [0, 2, 1]],
        quadruplets=[[0, 1, 1, 2]],
    )
    assert [(row["measure"], row["value"]) for row in found] == [
        ("pairs auc", 1.0),
        ("triplets right", 0.5),
        ("quadruplets right", 1.0),
    ]
    with pytest.raises(ValueError, match="give pairs"):
        metra.agreement("euclid", X)


def test_a_gain_in_agreement(nuisance):
    X, y = nuisance
    triplets = [[q, q + 1, (q + 100) % len(y)] for q in range(0, len(y) - 1, 2)]
    learned = metra.Lda().fit(X, y)
    gain = metra.agreement(learned, X, triplets=triplets, base="euclid")[0]
    assert gain["verdict"] == "better" and gain["value"] > 0.8


def test_names_that_are_not_there(nuisance):
    X, y = nuisance
    found = metra.evaluate("euclid", X, y, measures="map")
    with pytest.raises(KeyError, match="was not measured, but map"):
        found["f1"]
    with pytest.raises(ValueError, match="gallery must be"):
        metra.evaluate("euclid", X, y, gallery=X)
    with pytest.raises(ValueError, match="needs a gallery"):
        metra.evaluate("euclid", X, y, classifier="gaussian")


def test_compare(nuisance, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = nuisance
    told = []
    found = metra.compare(
        X,
        y,
        methods={"LDA": metra.Lda(), "LDA 2": metra.Lda(n_components=2, ridge=0.01)},
        holdout="rows",
        draws=2,
        measures=["map", "p@1"],
        log=tmp_path / "log.jsonl",
        callback=lambda *news: told.append(news),
    )
    assert isinstance(found.frame, pandas.DataFrame)
    assert set(found.frame.index) == {"euclid", "cosine", "LDA", "LDA 2"}
    assert found.best == "LDA" == found.frame.index[0] and found.frame.loc["LDA", "gain"] > 0.2
    assert told[-1][1] == told[-1][2]
    page = found.report(tmp_path / "report.html")
    assert page.startswith("<!DOCTYPE html>") and (tmp_path / "report.html").exists()
    assert "srcdoc" in found._repr_html_() and "LDA" in repr(found)
    again = metra.compare(
        X,
        y,
        methods={"LDA": metra.Lda(), "LDA 2": metra.Lda(n_components=2, ridge=0.01)},
        holdout="rows",
        draws=2,
        measures=["map", "p@1"],
        log=tmp_path / "log.jsonl",
    )
    assert again.results == found.results


def test_compare_finds_what_the_command_finds(command, nuisance, tmp_path):
    X, y = nuisance
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    out = subprocess.run(
        [command, "compare", "x.npy", "--label", "y.npy", "--methods", "lda", "--no-cost", "--json"],
        check=True,
        capture_output=True,
        cwd=tmp_path,
    )
    expected = json.loads(out.stdout)["results"]
    found = metra.compare(X, y, methods=["lda"]).results
    for line, other in zip(expected["lines"], found["lines"]):
        assert line["measures"] == other["measures"]
        assert line["against_base"] == other["against_base"]


def test_plots(nuisance):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X, y = nuisance
    learned = metra.Warca(n_components=4, steps=30, validation=0.2, holdout="rows").fit(X, y)
    curves = {"euclid": metra.evaluate("euclid", X, y), "warca": metra.evaluate(learned, X, y)}
    axes = metra.plot_cmc(curves, ranks=10)
    assert [line.get_label() for line in axes.lines] == ["euclid", "warca"]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), curves["warca"].cmc[:10])
    before, after = metra.plot_embedding(learned, X, y % 5)
    assert before.get_title() == "before" and len(after.collections[0].get_offsets()) == len(X)
    assert len(metra.plot_history(learned).lines[0].get_xdata()) > 1
    with pytest.raises(ValueError, match="closed form"):
        metra.plot_history(metra.Lda().fit(X, y))


def test_plots_of_precision_and_gains(nuisance):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X, y = nuisance
    before, after = (metra.evaluate(name, X, y) for name in ("euclid", "cosine"))
    axes = metra.plot_precision({"euclid": before, "cosine": after})
    assert len(axes.lines) == 2 and len(axes.lines[0].get_xdata()) == len(before.precision)
    lowest, highest = axes.get_ylim()
    assert 0 <= lowest <= min(before.precision) and highest >= max(before.precision)
    gains = after.against(before)
    axes = metra.plot_gains(gains)
    assert [text.get_text() for text in axes.get_yticklabels()] == list(before)[::-1]
    # Each gain is an interval and a point.
    drawn = [line for line in axes.lines if len(line.get_xdata()) == 1]
    assert [line.get_xdata()[0] for line in drawn] == [row["difference"] for row in gains][::-1]
    with pytest.raises(ValueError, match="no gain to draw"):
        metra.plot_gains([])


def test_orderings_as_lists(nuisance):
    X, y = nuisance
    written = metra.RankSvm().fit(X, y, orderings={"size": "0<1~2<3"})
    listed = metra.RankSvm().fit(X, y, orderings={"size": [0, [1, 2], 3]})
    assert listed.model_.to_bytes() == written.model_.to_bytes()
    assert listed.get_feature_names_out().tolist() == ["size"]
    with pytest.raises(metra.SupervisionError, match="must not have < or ~"):
        metra.RankSvm().fit(X, y, orderings={"size": ["a<b", "c"]})


def test_vectors_of_pairs_are_pointed_to_pairs():
    with pytest.raises(ValueError, match="Found array with dim 3 .*pairs="):
        metra.Itml().fit(np.zeros((5, 2, 3)), np.ones(5))


def test_verification_is_that_of_all_pairs():
    random = np.random.default_rng(3)
    y = np.arange(150) % 3
    X = (random.normal(size=(3, 4))[y] + random.normal(size=(150, 4))).astype(np.float32)
    found = metra.verification("euclid", X, y, false_match_rates=[0.3, 0.01])
    a, b = np.triu_indices(len(X), 1)
    away = ((X[a].astype(np.float64) - X[b]) ** 2).sum(axis=1)
    same = y[a] == y[b]
    assert (found.same, found.different) == (same.sum(), (~same).sum())
    assert found.identities == 3
    for point in found.points:
        matched = away <= point["threshold"] * (1 + 1e-6)
        assert point["false_match_rate"] == pytest.approx(matched[~same].mean(), abs=1e-3)
        assert point["true_match_rate"] == pytest.approx(matched[same].mean(), abs=1e-3)
        assert point["false_match_rate"] <= point["asked"]
        assert point["low"] <= point["true_match_rate"] <= point["high"]
    learned = metra.Lda(n_components=2).fit(X, y)
    kept = learned.calibrate_threshold(X, y, 0.01).model_.decision
    with pytest.warns(UserWarning, match="learned from 150 of the 150 rows"):
        learned.calibrate_threshold(X, y, 0.01)
    with pytest.warns(UserWarning, match="learned from 150 of the 150 rows"):
        again = metra.verification(learned, X, y, false_match_rates=0.01).points[0]
    with pytest.warns(UserWarning, match="7500 pairs .* cannot show a false match rate of 0.0001"):
        metra.verification("euclid", X, y, false_match_rates=[0.1, 0.0001])
    assert kept["threshold"] == again["threshold"]
    assert kept["true_match_rate"] == again["true_match_rate"]
    assert list(found.frame.index) == [0.3, 0.01]
    assert "0.3" in repr(found) and "<table>" in found._repr_html_()
    with pytest.raises(metra.ParameterError, match="between 0 and 1"):
        metra.verification("euclid", X, y, false_match_rates=0)


def test_a_first_look_says_what_the_command_says(tmp_path, command):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", X=X.astype(np.float32), y=y)
    line = [command, "check", str(tmp_path / "digits.npz"), "--label", "y", "--json"]
    said = json.loads(subprocess.run(line, check=True, capture_output=True).stdout)
    found = metra.check(X, y)
    assert found.shape == (said["rows"], said["dim"]) == X.shape
    assert found.norms == tuple(said["norms"][name] for name in ("smallest", "mean", "largest"))
    assert found.norms[1] == pytest.approx(np.linalg.norm(X, axis=1).mean())
    assert found.classes == said["classes"]
    assert [base["map"] for base in found.headroom] == [base["map"] for base in said["headroom"]]
    assert [name for name, _ in found.hints] == ["scale", "sqrt"]
    assert 'try prepare="sqrt"' in repr(found) and "<table>" in found._repr_html_()

    odd = metra.check(np.vstack([X, X[:3], 0 * X[:2]]), np.concatenate([y, y[:2], [77, 1, 2]]))
    assert (odd.zero_vectors, odd.duplicates, odd.duplicates_of_another_class) == (2, 4, 2)
    assert [base["score"] for base in odd.headroom] == ["euclid"]
    assert "1 of one row" in repr(odd)
    alone = metra.check(-X)
    assert alone.classes is None and not alone.headroom
    assert [name for name, _ in alone.hints] == ["scale"]
    with pytest.raises(ValueError, match="labels"):
        metra.check(X, y[:-1])


def test_neighbours_are_drawn(tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    images = list(X.reshape(-1, 8, 8))
    images[3] = tmp_path / "three.png"
    pyplot.imsave(images[3], X[3].reshape(8, 8))
    learned = metra.Lda().fit(X[900:], y[900:])
    for metric in (learned, "euclid", "cosine", "dot"):
        axes = metra.plot_neighbours(metric, X, y, images, queries=[3, 500], k=4)
        assert axes.shape == (2, 5)
        assert axes[0, 0].get_title() == "query\n3"
        if metric == "euclid":
            away = ((X - X[3]) ** 2).sum(axis=1)
            away[3] = np.inf
            nearest = np.argsort(away)[:4]
            titles = [ax.get_title() for ax in axes[0, 1:]]
            expected = [f"{rank}: {y[row]}\n{away[row]:.3g}" for rank, row in enumerate(nearest, 1)]
            assert titles == expected
    assert metra.plot_neighbours("euclid", X[:5], y[:5], images[:5]).shape == (5, 5)
    pyplot.close("all")
    with pytest.raises(ValueError, match="a picture of each of 1797 rows, but found 1797 classes and 5"):
        metra.plot_neighbours("euclid", X, y, images[:5])
    with pytest.raises(ValueError, match="queries between 0 and 1796"):
        metra.plot_neighbours("euclid", X, y, images, queries=[1797])


def test_rates_are_drawn():
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib")
    matplotlib.use("agg")
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rates = np.logspace(-4, -0.5, 20)
    found = {
        name: metra.verification(name, X, y, false_match_rates=rates) for name in ("euclid", "cosine")
    }
    for draw in (metra.plot_roc, metra.plot_det):
        ax = draw(found)
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["euclid", "cosine"]
        assert all(np.isfinite(line.get_ydata()).all() for line in ax.get_lines())
        assert draw(found["euclid"]).get_legend() is None
        matplotlib.pyplot.close("all")


def test_measures_have_other_names():
    X, y = np.arange(12.0).reshape(-1, 1), np.arange(12) // 3
    found = metra.evaluate("l2", X, y, measures=["precision@1", "hit@2"])
    assert list(found) == ["p@1", "cmc@2"]
    assert found["precision@1"] == found["p@1"] and found["rank-2"] == found["cmc@2"]
    with pytest.raises(metra.ParameterError, match="r@1, the share of the relevant items .* or cmc@1"):
        metra.evaluate("l2", X, y, measures="recall@1")
    with pytest.raises(KeyError, match="'map' was not measured, but p@1, cmc@2"):
        found["map"]
