"""Estimators as people use them: every kind of supervision, pipelines, files, interruption."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import joblib
import metra
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def gain(estimator, X, y):
    """mAP over Euclid's."""
    learned = metra.evaluate(estimator, X, y, measures=["map"])["map"]
    return learned - metra.evaluate("euclid", X, y, measures=["map"])["map"]


def test_labels(nuisance):
    X, y = nuisance
    learned = metra.Warca(n_components=4, steps=200).fit(X, y)
    assert gain(learned, X, y) > 0.3
    assert learned.components_.shape == (4, 16)
    assert learned.n_iter_ == 200 and len(learned.history_) == 200
    # Linear by hand: what the documentation says of components_ and offset_.
    by_hand = X @ learned.components_.T - learned.offset_
    np.testing.assert_allclose(learned.transform(X), by_hand, atol=1e-4)
    assert list(learned.get_feature_names_out()) == ["warca0", "warca1", "warca2", "warca3"]


def test_settings_of_papers():
    presets = {m["name"]: dict(m["paper"]) for m in metra.methods() if m["paper"]}
    assert {"warca", "frml", "slr"} <= set(presets)
    warca = metra.Warca.paper(n_components=8)
    # WARCA, Section 4.1: batches of 512, 2,000 steps.
    assert (warca.batch, warca.steps, warca.n_components) == (512, 2000, 8)
    assert metra.Warca.paper().get_params()["n_components"] == 40
    with pytest.raises(metra.ParameterError, match="no preset"):
        metra.Lda.paper()


def test_names_of_classes_are_classes_too(nuisance):
    X, y = nuisance
    named = metra.Lda().fit(X, [f"class {label:02}" for label in y])
    numbered = metra.Lda().fit(X, y)
    np.testing.assert_array_equal(named.components_, numbered.components_)


def test_pairs_triplets_and_quadruplets(nuisance):
    X, y = nuisance
    random = np.random.default_rng(1)
    anchors = random.integers(0, len(y), 4000)
    near = np.array([random.choice(np.flatnonzero(y == y[a])) for a in anchors])
    far = np.array([random.choice(np.flatnonzero(y != y[a])) for a in anchors])
    use = anchors != near
    anchors, near, far = anchors[use], near[use], far[use]
    same = np.column_stack([anchors, near, np.ones(len(near), int)])
    other = np.column_stack([anchors, far, np.zeros(len(far), int)])
    _, first = np.unique(np.sort(np.vstack([same, other])[:, :2], axis=1), axis=0, return_index=True)
    pairs = np.vstack([same, other])[first]
    assert gain(metra.Warca(n_components=4, steps=200).fit(X, pairs=pairs), X, y) > 0.1
    assert gain(metra.Qwise().fit(X, pairs=(pairs[:, :2], pairs[:, 2] * 2 - 1)), X, y) > 0.1
    assert gain(metra.Qwise().fit(X, triplets=np.column_stack([anchors, near, far])), X, y) > 0.1
    quadruplets = np.column_stack([anchors, near, anchors, far])
    assert gain(metra.Qwise().fit(X, quadruplets=quadruplets), X, y) > 0.1


def test_orderings_and_taxonomy(nuisance):
    X, y = nuisance
    order = "<".join(str(label) for label in range(30))
    ranked = metra.Attributes().fit(X, y, orderings={"size": order})
    assert ranked.model_.outputs == ["size"]
    assert ranked.transform(X).shape == (len(X), 1)
    tree = {str(label): f"group {label % 3}" for label in range(30)}
    tree |= {f"group {number}": "all" for number in range(3)}
    assert metra.Qwise().fit(X, y, taxonomy=tree).transform(X).shape[0] == len(X)


def test_queries_and_judgements(nuisance):
    X, y = nuisance
    queries, items = X[::3], np.ascontiguousarray(X[1::3])
    relevant = [
        (query, item, 1.0)
        for query, label in enumerate(y[::3])
        for item in np.flatnonzero(y[1::3] == label)
    ]
    as_dict = {}
    for query, item, grade in relevant:
        as_dict.setdefault(query, {})[item] = grade
    by_rows = metra.Slr(n_components=4).fit(items, queries=queries, qrels=np.array(relevant))
    by_dict = metra.Slr(n_components=4).fit(items, queries=queries, qrels=as_dict)
    assert by_rows.model_ == by_dict.model_
    judged = metra.evaluate(by_rows, items, queries=queries, qrels=relevant, measures=["ndcg@10"])
    plain = metra.evaluate("euclid", items, queries=queries, qrels=relevant, measures=["ndcg@10"])
    assert judged["ndcg@10"] > plain["ndcg@10"] + 0.1
    # Two maps, and the score between them by hand.
    left, right = by_rows.transform_query(queries[:5]), by_rows.transform_item(items[:5])
    expected = np.sum(left.astype(float) * right, axis=1)
    np.testing.assert_allclose(by_rows.pair_score((queries[:5], items[:5])), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="pair_score"):
        by_rows.pair_distance((queries[:5], items[:5]))


def test_distances_by_hand(nuisance):
    X, y = nuisance
    learned = metra.Lda().fit(X, y)
    mapped = learned.transform(X[:20]).astype(float)
    expected = np.linalg.norm(mapped[:10] - mapped[10:], axis=1)
    pairs = np.stack([X[:10], X[10:20]], axis=1)
    np.testing.assert_allclose(learned.pair_distance(pairs), expected, rtol=1e-5)
    np.testing.assert_allclose(learned.pair_score(pairs), -(expected**2), rtol=1e-5)
    distance = learned.get_metric()
    assert distance(X[0], X[10]) == pytest.approx(expected[0], rel=1e-5)
    matrix = learned.get_mahalanobis_matrix()
    difference = (X[0] - X[10]).astype(float)
    assert difference @ matrix @ difference == pytest.approx(expected[0] ** 2, rel=1e-3)


def test_with_scikit_learn(nuisance):
    X, y = nuisance
    search = GridSearchCV(metra.Lda(), {"ridge": [0.001, 0.1]}, cv=3).fit(X, y)
    assert set(search.best_params_) == {"ridge"} and search.best_score_ > 0.5
    voting = make_pipeline(StandardScaler(), metra.Lda(), KNeighborsClassifier()).fit(X, y)
    plain = KNeighborsClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert voting.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > plain + 0.2
    learned = metra.Lda().fit(X[::2], y[::2])
    known = KNeighborsClassifier(metric="precomputed").fit(learned.distances(X[::2]), y[::2])
    precomputed = known.score(learned.distances(X[1::2], X[::2]), y[1::2])
    mapped = KNeighborsClassifier().fit(learned.transform(X[::2]), y[::2])
    assert precomputed == pytest.approx(mapped.score(learned.transform(X[1::2]), y[1::2]), abs=0.02)
    copied = clone(metra.Warca(n_components=3, margin=0.5))
    assert copied.get_params()["margin"] == 0.5 and not hasattr(copied, "model_")


def test_set_output(nuisance):
    pandas = pytest.importorskip("pandas")
    X, y = nuisance
    learned = metra.Lda(n_components=2).fit(pandas.DataFrame(X).add_prefix("column "), y)
    framed = learned.set_output(transform="pandas").transform(pandas.DataFrame(X).add_prefix("column "))
    assert list(framed.columns) == ["lda0", "lda1"]
    assert list(learned.feature_names_in_)[:1] == ["column 0"]


def test_joblib_and_pickle_go_through_the_models_bytes(nuisance, tmp_path):
    X, y = nuisance
    learned = metra.Warca(n_components=4, steps=20).fit(X, y)
    assert pickle.loads(pickle.dumps(learned)).model_ == learned.model_
    joblib.dump(learned, tmp_path / "learned.joblib")
    again = joblib.load(tmp_path / "learned.joblib")
    np.testing.assert_array_equal(again.transform(X), learned.transform(X))
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(learned.transform)(X[k::2]) for k in (0, 1))
    np.testing.assert_array_equal(parts[1], learned.transform(X[1::2]))
    data = bytearray(learned.model_.to_bytes())
    data[-1] ^= 1
    with pytest.raises(metra.ModelFileError):
        metra.Model.from_bytes(bytes(data))


def test_files(nuisance, tmp_path):
    X, y = nuisance
    learned = metra.Warca(n_components=4, steps=20, margin=0.5).fit(X, y)
    learned.save(tmp_path / "m.safetensors")
    again = metra.Warca.load(tmp_path / "m.safetensors")
    assert again.margin == 0.5 and again.n_components == 4
    np.testing.assert_array_equal(again.transform(X), learned.transform(X))
    assert metra.load(tmp_path / "m.safetensors") == learned.model_
    with pytest.raises(ValueError, match="Warca"):
        metra.Lda.load(tmp_path / "m.safetensors")
    with pytest.raises(FileNotFoundError):
        metra.load(tmp_path / "absent.safetensors")


def test_choosing_and_judging(nuisance):
    X, y = nuisance
    learned = metra.Lda(validation=0.25, test=0.25, holdout="rows", grid={"ridge": [0.001, 10]})
    learned.fit(X, y)
    assert len(learned.trials_) == 2 and learned.chosen_["ridge"] in (0.001, 10)
    judged = {row["measure"]: row for row in learned.test_}
    assert judged["map"]["verdict"] == "better"
    assert learned.model_.held_out["measures"]["map"]["learned"] == judged["map"]["learned"]


def test_a_grid_needs_something_to_choose_by(nuisance):
    X, y = nuisance
    with pytest.raises(ValueError, match="grid tries 2 values of n_components"):
        metra.Lda(grid={"n_components": [2, 3]}).fit(X, y)
    # A single value stands without a choice.
    assert metra.Lda(grid={"n_components": [2]}).fit(X, y).transform(X).shape[1] == 2


def test_steps_are_those_of_the_model(nuisance):
    X, y = nuisance
    learned = metra.Warca(n_components=4, steps=60, validation=0.2, holdout="rows").fit(X, y)
    assert learned.n_iter_ == learned.model_.facts["steps"] <= 60
    assert learned.sizes_["train"] + learned.sizes_["validation"] == len(X)


def test_what_is_not_linear_has_no_single_matrix(nuisance):
    X, y = nuisance
    reduced = metra.Warca(prepare="centre+l2", steps=20).fit(X, y)
    assert not hasattr(reduced, "components_")
    with pytest.raises(ValueError, match="no such matrix"):
        reduced.get_mahalanobis_matrix()
    kernel = metra.KernelLfda(n_components=3).fit(np.abs(X[:100]), y[:100])
    assert not hasattr(kernel, "components_")
    with pytest.raises(ValueError, match="kernel"):
        kernel.get_mahalanobis_matrix()


def test_cameras(nuisance):
    X, y = nuisance
    cameras = np.where(np.arange(len(y)) % 2, "left", "right")
    moved = X + (cameras == "left")[:, np.newaxis] * np.float32(100)
    learned = metra.Lda(prepare="centre-groups").fit(moved, y, cameras=cameras)
    near = learned.pair_distance((moved[:50], moved[1:51]), cameras[:50], cameras[1:51])
    assert near.max() < 100 and learned.model_.cameras == ["left", "right"]
    ids, _ = learned.search(moved[:5], moved, 1, cameras[:5], cameras)
    assert ids[:, 0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(metra.ParameterError, match="cameras must be given"):
        learned.transform(moved)


def test_same_or_not(nuisance, tmp_path):
    X, y = nuisance
    learned = metra.Lda().fit(X[::2], y[::2])
    rest, identities = X[1::2], y[1::2]
    with pytest.raises(ValueError, match="calibrate_threshold"):
        learned.same((rest[:2], rest[2:4]))
    learned.calibrate_threshold(rest, identities, false_match_rate=0.01)
    left, right = np.triu_indices(len(rest), 1)
    said = learned.same((rest[left], rest[right]))
    together = identities[left] == identities[right]
    decision = learned.model_.decision
    assert decision["false_match_rate"] <= 0.01
    assert np.mean(said[~together]) == pytest.approx(decision["false_match_rate"])
    assert np.mean(said[together]) == pytest.approx(decision["true_match_rate"])
    learned.save(tmp_path / "m.safetensors")
    assert metra.load(tmp_path / "m.safetensors").decision == decision


def test_plans(nuisance):
    X, y = nuisance
    learned = metra.Lda().fit(X, y)
    plan = metra.plan(learned, "l2")
    assert (plan.way, plan.dimension) == ("mapped", 16)
    np.testing.assert_allclose(plan.map_items(X), learned.transform(X), rtol=1e-5)
    with pytest.raises(metra.PlanError, match="cosine"):
        metra.plan(learned.model_, ["cosine"])


def test_threads_and_runs_change_no_byte(nuisance):
    X, y = nuisance
    models = [
        metra.Warca(n_components=4, steps=30, n_jobs=jobs).fit(X, y).model_.to_bytes()
        for jobs in (1, 2, 2)
    ]
    assert models[0] == models[1] == models[2]


def test_callback_and_history(nuisance):
    X, y = nuisance
    news = []
    # Enough steps to be asked some times.
    learned = metra.Warca(n_components=8, steps=3000)
    learned.fit(X, y, callback=lambda *told: news.append(told))
    assert news and news[-1][2] == 3000
    assert learned.history_[-1]["step"] == 3000

    def refuse(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        metra.Warca(n_components=8, steps=1_000_000).fit(X, y, callback=refuse)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_a_fit():
    script = textwrap.dedent(
        """
        import numpy, sys, metra
        X = numpy.random.default_rng(1).normal(size=(20000, 256)).astype("float32")
        y = numpy.arange(20000) % 100
        def told(*news):
            print("running", flush=True)
        try:
            metra.Warca(steps=1_000_000).fit(X, y, callback=told)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    )
    running = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "running\n"
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    lines = iter(running.stdout.readline, "stopped\n")
    assert all(line == "running\n" for line in lines)
    # It takes a tenth of a second on an idle machine; the fit itself would take hours.
    assert time.monotonic() - began < 5
    assert running.wait(timeout=30) == 0


def test_errors_keep_their_words_and_have_classes(nuisance):
    X, y = nuisance
    with pytest.raises(metra.ParameterError, match="n_components must be between 1 and 16"):
        metra.Warca(n_components=17).fit(X, y)
    with pytest.raises(metra.ParameterError, match="lam must be"):
        metra.Warca(lam=-1).fit(X, y)
    with pytest.raises(ValueError, match="random_state must be at least 0"):
        metra.Warca(random_state=-1).fit(X, y)
    with pytest.raises(metra.ParameterError, match="margin"):
        metra.Warca(margin=-1).fit(X, y)
    with pytest.raises(metra.SupervisionError, match="orderings"):
        metra.Attributes().fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        metra.Warca().fit(X)
    with pytest.raises(TypeError, match="no parameter 'marginal'"):
        metra.Warca(marginal=1)
    with pytest.raises(metra.DataError, match="at least 2 classes"):
        metra.Lda().fit(X, np.zeros(len(X)))
    with pytest.raises(metra.MetraError, match="triplet 0"):
        metra.Qwise().fit(X, triplets=[[0, 1, -1]])
    assert issubclass(metra.MetraError, ValueError)


def test_cameras_are_routed_through_a_pipeline(nuisance):
    import sklearn
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    X, y = nuisance
    cameras = np.where(np.arange(len(X)) % 2, "left", "right")
    X = X + 5 * (cameras == "left")[:, np.newaxis]
    with sklearn.config_context(enable_metadata_routing=True):
        learner = metra.Lda(prepare="centre-groups")
        learner.set_fit_request(cameras=True).set_transform_request(cameras=True)
        steps = make_pipeline(learner, KNeighborsClassifier()).fit(X, y, cameras=cameras)
        by_hand = metra.Lda(prepare="centre-groups").fit(X, y, cameras=cameras).transform(X, cameras)
        found = KNeighborsClassifier().fit(by_hand, y).predict(by_hand)
        np.testing.assert_array_equal(steps.predict(X, cameras=cameras), found)
        assert cross_val_score(steps, X, y, cv=3, params={"cameras": cameras}).mean() > 0.3  # of 30 classes
