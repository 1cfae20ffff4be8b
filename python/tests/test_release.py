"""The gate, label budgets and clicks: the same as the command's, and by hand where that can be."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import metra
import numpy as np
import pytest
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32)
HALF = 900


@pytest.fixture(scope="module")
def learned() -> Any:
    return metra.Lda(n_components=9).fit(X[:HALF], y[:HALF])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, learned):
    folder = tmp_path_factory.mktemp("release")
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", y)
    np.save(folder / "held.npy", X[HALF:])
    np.save(folder / "held_y.npy", y[HALF:])
    learned.model_.save(folder / "m.safetensors")
    return folder


def said(command, folder, *words, code=0):
    """What the command prints as JSON."""
    ran = subprocess.run([command, *words, "--json"], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    return json.loads(ran.stdout)


def test_the_gate_decides_as_the_command_does(command, folder, learned):
    found = metra.gate("euclid", learned, X[HALF:], y[HALF:], allow_worse_measures=True)
    words = "gate --base euclid --candidate m.safetensors --data held.npy --label held_y.npy".split()
    by_command = said(command, folder, *words, "--allow-worse-measures")
    assert found and found.decision == by_command["decision"] == "ship"
    assert found.exit_code == by_command["exit_code"] == 0
    assert found.words == by_command["words"]
    assert f"{by_command['headroom']['left']:.4f} of map above the base" in found.headroom
    for key in ("base", "learned", "difference", "low", "high", "queries"):
        assert found.gain[key] == by_command["gain"][key]
        for ours, theirs in zip(found.beside, by_command["beside"], strict=True):
            assert ours[key] == theirs[key]
    assert [row["value"] for row in found.slices] == [s["value"] for s in by_command["slices"]]
    assert list(found.changed) == [by_command[f"{k}_queries"] for k in ("better", "equal", "worse")]
    assert [r[1:] for r in found.regressions] == [
        (r["base"], r["candidate"]) for r in by_command["regressions"]
    ]
    # First answers are lost, which is not to ship unless it is allowed.
    kept_back = metra.gate("euclid", learned, X[HALF:], y[HALF:])
    by_command = said(command, folder, *words, code=9)
    assert not kept_back and kept_back.decision == by_command["decision"] == "worse measure"
    assert "p@1" in repr(kept_back).split("WORSE")[1]


def test_the_gain_is_that_of_two_evaluations(learned):
    found = metra.gate("cosine", learned, X[HALF:], y[HALF:], measure="p@1", worst=3)
    new = metra.evaluate(learned, X[HALF:], y[HALF:], measures="p@1")
    old = metra.evaluate("cosine", X[HALF:], y[HALF:], measures="p@1")
    difference = new.per_query("p@1") - old.per_query("p@1")
    assert found.gain["measure"] == "p@1"
    assert found.gain["difference"] == pytest.approx(difference.mean(), abs=1e-12)
    assert found.changed == ((difference > 0).sum(), (difference == 0).sum(), (difference < 0).sum())
    fallen = [query for query, _, _ in found.regressions]
    assert len(fallen) == 3 and (difference[fallen] == difference.min()).all()
    assert "map" in [row["measure"] for row in found.beside]


def test_decisions_that_do_not_ship(learned):
    held = X[HALF:], y[HALF:]
    assert metra.gate("euclid", learned, X[:HALF], y[:HALF]).decision == "trained on"
    same = metra.gate("euclid", "euclid", *held)
    assert same.decision == "no evidence" and not same and same.exit_code == 3
    assert metra.gate(learned, "euclid", *held).decision == "worse"
    assert metra.gate("euclid", learned, *held, min_gain=0.9).decision == "nothing to gain"
    with pytest.raises(metra.MetraError, match="min-gain must be between 0 and 1"):
        metra.gate("euclid", learned, *held, min_gain=-1)


def test_slices_of_the_callers_own(learned):
    even = np.where(y[HALF:] % 2 == 0, "even", "odd")
    found = metra.gate("euclid", learned, X[HALF:], y[HALF:], slices={"digit": even})
    mine = {row["value"]: row for row in found.slices if row["by"] == "digit"}
    assert {name: row["queries"] for name, row in mine.items()} == {
        "even": int((even == "even").sum()),
        "odd": int((even == "odd").sum()),
    }
    new = metra.evaluate(learned, X[HALF:], y[HALF:]).per_query("map")
    assert mine["odd"]["learned"] == pytest.approx(new[even == "odd"].mean(), abs=1e-12)
    # Below zero for one slice alone.
    upside_down = metra.gate(learned, "euclid", X[HALF:], y[HALF:], slices={"digit": even})
    assert "WORSE" in repr(upside_down) and "digit odd" in repr(upside_down)
    assert len(found.frame) == 1 + len(found.slices)
    assert found.words in found._repr_html_()
    with pytest.raises(ValueError, match=r"slices\['digit'\] must be one value for each"):
        metra.gate("euclid", learned, X[HALF:], y[HALF:], slices={"digit": even[1:]})


def test_the_gate_takes_galleries_and_qrels(learned):
    gallery = X[1300:], y[1300:]
    found = metra.gate("euclid", learned, X[HALF:1300], y[HALF:1300], gallery=gallery)
    new = metra.evaluate(learned, X[HALF:1300], y[HALF:1300], gallery=gallery)
    assert found.gain["learned"] == pytest.approx(new["map"], abs=1e-12)
    qrels = [(q, i) for q in range(40) for i in range(400) if y[1300 + q] == y[HALF + i]]
    judged = {"queries": X[1300:1340], "qrels": qrels}
    found = metra.gate("euclid", learned, X[HALF:1300], **judged)
    new = metra.evaluate(learned, X[HALF:1300], **judged)
    assert found.gain["measure"] == "ndcg@10"
    assert found.gain["learned"] == pytest.approx(new["ndcg@10"], abs=1e-12)


def test_the_gate_re_ranks_across_cameras_as_the_command_does(command, folder, learned):
    cameras = np.where(np.arange(len(X)) % 2, "left", "right")
    rows, gallery = slice(HALF, 1300), slice(1300, None)
    held = {
        "cameras": cameras[rows],
        "gallery": (X[gallery], y[gallery], cameras[gallery]),
        "protocol": "cross-camera",
    }
    found = metra.gate("euclid", learned, X[rows], y[rows], **held, rerank=True)
    part = np.full(len(X), "other-part")
    part[rows], part[gallery] = "query", "gallery"
    lines = [",".join(["label", "camera", "part", *(f"v{n}" for n in range(64))])]
    lines += [
        ",".join([str(label), camera, p, *map(str, row.tolist())])
        for label, camera, p, row in zip(y, cameras, part, X)
    ]
    (folder / "all.csv").write_text("\n".join(lines))
    by_command = said(
        command, folder, "gate", "--base", "euclid", "--candidate", "m.safetensors",
        "--data", "all.csv", "--vector", "v*", "--label", "label", "--camera", "camera",
        "--where", "part=query", "--gallery-where", "part=gallery",
        "--protocol", "cross-camera", "--rerank", "default", code=found.exit_code,
    )  # fmt: skip
    for key in ("base", "learned", "low", "high", "queries"):
        assert found.gain[key] == pytest.approx(by_command["gain"][key], abs=1e-6)
    plain = metra.gate("euclid", learned, X[rows], y[rows], **held)
    assert plain.gain["learned"] != found.gain["learned"]


def test_a_label_budget_is_the_commands(command, folder):
    curve = metra.budget(
        metra.Lda(n_components=9, ridge=0.1, holdout="rows", random_state=2), X, y, halvings=2, draws=2
    )
    by_command = said(
        command, folder, "budget", "x.npy", "--label", "y.npy", "--method", "lda", "--rank", "9",
        "--holdout", "rows", "--seed", "2", "--halvings", "2", "--label-draws", "2",
        "--set", "ridge=0.1",
    )  # fmt: skip
    assert [p["labelled"] for p in curve.points] == [p["units"] for p in by_command["points"]]
    for ours, theirs in zip(curve.points, by_command["points"], strict=True):
        assert ours["value"] == pytest.approx(theirs["value"], abs=1e-9)
        assert ours["gain"]["low"] == pytest.approx(theirs["gain"]["low"], abs=1e-9)
    assert curve.forecast[0] == pytest.approx(by_command["forecast"]["gain"], abs=1e-9)
    assert curve.words == by_command["forecast"]["words"]
    assert curve.words in repr(curve) and curve.words in curve._repr_html_()
    assert list(curve.frame.index) == [0.25, 0.5, 1.0]
    with pytest.raises(ValueError, match="an estimator of metra"):
        metra.budget(7, X, y)


def sessions(count: int = 4000) -> list[tuple[str, list[str], list[str]]]:
    """Clicks by the position-based model: items a to e, relevant with 0.8 to 0.05, shown in any order."""
    random = np.random.default_rng(7)
    items, relevance, looks = list("abcde"), [0.8, 0.4, 0.2, 0.1, 0.05], 1.0 / np.arange(1, 6)
    log = []
    for number in range(count):
        order = random.permutation(5)
        hit = random.random(5) < looks * np.take(relevance, order)
        shown = [items[place] for place in order]
        log.append((f"q{number % 3}", shown, [item for item, yes in zip(shown, hit) if yes]))
    return log


def test_clicks_find_looks_and_relevance():
    found = metra.clicks(sessions())
    np.testing.assert_allclose(found.looks, 1.0 / np.arange(1, 6), atol=0.06)
    for pair in found.pairs:
        assert pair["relevance"] == pytest.approx(
            dict(zip("abcde", [0.8, 0.4, 0.2, 0.1, 0.05]))[pair["item"]], abs=0.08
        )
    assert found.qrels["q0"]["a"] == 3 and found.qrels["q0"]["e"] == 0
    assert (found.sessions, found.queries, found.queries_left_out) == (4000, 3, 0)
    assert set(found.frame.columns) >= {"query", "item", "grade"}


def test_clicks_are_the_commands(command, tmp_path):
    log = sessions(600)
    lines = [json.dumps({"query": q, "shown": s, "clicked": c}) for q, s, c in log]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    said(command, tmp_path, "clicks", "log.jsonl", "-o", "qrels.txt")
    written = [line.split() for line in (tmp_path / "qrels.txt").read_text().splitlines()]
    as_dicts = [{"query": q, "shown": s, "clicked": c} for q, s, c in log]
    for given in (log, as_dicts, tmp_path / "log.jsonl"):
        found = metra.clicks(given)
        assert [[p["query"], "0", p["item"], str(p["grade"])] for p in found.pairs] == written


def test_clicks_become_rows_to_fit_by():
    found = metra.clicks(sessions())
    rows = found.rows(["q2", "q0", "q1"], list("edcba"))
    assert rows.shape == (15, 3)
    grades = {(q, i): g for q, i, g in rows.tolist()}
    assert grades[1, 4] == found.qrels["q0"]["a"]
    random = np.random.default_rng(1)
    learned = metra.Slr(n_components=2).fit(
        random.normal(size=(5, 3)), queries=random.normal(size=(3, 3)), qrels=rows
    )
    assert learned.model_.input_dim == 3
    with pytest.raises(metra.DataError, match="no query and item of the log"):
        found.rows(["other"], ["z"])


def test_logs_that_cannot_be_meant_are_refused(tmp_path):
    with pytest.raises(metra.DataError, match='session 1: "z" was clicked, but is not among'):
        metra.clicks([("q", ["a"], ["a"]), ("q", ["a"], ["z"])])
    with pytest.raises(metra.DataError, match="session 0: expected a query, the items shown"):
        metra.clicks([("q", "abc", "a")])
    with pytest.raises(metra.DataError, match="session 0: expected a query"):
        metra.clicks([{"query": "q"}])
    with pytest.raises(metra.DataError, match="session 0: expected a query"):
        metra.clicks([(float("nan"), ["a"], ["a"])])
    with pytest.raises(metra.DataError, match="some have the same"):
        metra.clicks([(1, ["a", 2], ["a"]), (1, [2, "a"], [2])] * 10).rows([1, "1"], ["a", "2"])
    with pytest.raises(metra.DataError, match="none of the 1 sessions has one"):
        metra.clicks([("q", ["a"], [])])
    with pytest.raises((OSError, metra.DataError)):
        metra.clicks(tmp_path / "none.jsonl")
    with pytest.warns(UserWarning, match="1 / position is assumed"):
        metra.clicks([("q", ["a", "b"], ["a"])] * 20)


def test_reports_name_slices_and_what_is_missing(learned, monkeypatch):
    even = np.where(y[HALF:] % 2 == 0, "even", "odd")
    found = metra.gate("euclid", learned, X[HALF:], y[HALF:], slices={"digit": even})
    assert "digit even" in repr(found.slices) and "digit odd" in repr(found)
    with pytest.raises(ValueError, match="slices must be a mapping"):
        metra.gate("euclid", learned, X[HALF:], y[HALF:], slices=even)
    named = metra.budget("lda", X, y, halvings=1, draws=1)
    assert [point["share"] for point in named.points] == [0.5, 1.0]
    assert "n_components" in named.settings or "rank" not in named.settings
    with pytest.raises(metra.ParameterError, match="the name of a method, but found 'ldda'"):
        metra.budget("ldda", X, y)
    with pytest.raises(metra.DataError, match="the log has none"):
        metra.clicks([])
    with pytest.raises(metra.DataError, match="fewer than min_sessions"):
        metra.clicks([("q", ["a", "b"], ["a"])] * 3, eta=1.0).rows(["q"], ["a"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install metra\[frames\]"):
        _ = found.frame


def test_a_model_maps_too(learned):
    np.testing.assert_array_equal(learned.model_.transform(X[:5]), learned.transform(X[:5]))
    two = metra.Slr(n_components=4, score_by="dot").fit(
        X[:300], queries=X[300:310], qrels=[(0, 1), (1, 2)]
    )
    with pytest.raises(metra.DataError, match="transform_queries or transform_items"):
        two.model_.transform(X[:5])
