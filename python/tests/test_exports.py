"""Exported maps, as the programs that they are for read them."""

from __future__ import annotations

import json
from typing import Any

import metra
import numpy as np
import pytest
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32) + 1


@pytest.fixture(scope="module")
def learned() -> Any:
    return metra.Lda(n_components=9, prepare="centre+pca:32").fit(X, y)


def tensors(path: Any) -> dict[str, np.ndarray]:
    """A file of safetensors, read by hand: a length, a header, numbers."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = (8 + length + place for place in entry["data_offsets"])
        found[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return found


def test_components_fold_a_linear_preparation(learned):
    mapped = X @ learned.components_.T - learned.offset_
    np.testing.assert_allclose(mapped, learned.transform(X), atol=1e-4)
    matrix = learned.get_mahalanobis_matrix()
    one = X[0] - X[1]
    assert one @ matrix @ one == pytest.approx(learned.pair_distance([[X[0], X[1]]])[0] ** 2, rel=1e-3)
    again = metra.Lda(prepare="centre+pca:32").fit(X, y).set_params(prepare="l2").fit(X, y)
    assert not hasattr(again, "components_")
    with pytest.raises(ValueError, match="no such matrix: .*division by the length"):
        again.get_mahalanobis_matrix()


def test_a_shift_changes_no_mahalanobis_matrix():
    """Float64 far from zero is shifted before it becomes float32: no matrix can say that, M can."""
    random = np.random.default_rng(2)
    y = np.arange(300) % 3
    near = random.normal(size=(3, 5))[y] + random.normal(size=(300, 5))
    far = metra.Lda(n_components=2).fit(near + 1e9, y)
    assert not hasattr(far, "components_")
    expected = metra.Lda(n_components=2).fit(near, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(far.get_mahalanobis_matrix(), expected, rtol=1e-2, atol=1e-3)


def test_matrices(learned, tmp_path):
    files = metra.export(learned, tmp_path / "m.npy")
    assert [file.name for file in files] == ["m.npy", "m.offset.npy"]
    np.testing.assert_allclose(
        X @ np.load(files[0]).T + np.load(files[1]), learned.transform(X), atol=1e-4
    )
    [file] = metra.export(learned.model_, str(tmp_path / "m.safetensors"))
    found = tensors(file)
    np.testing.assert_allclose(X @ found["weight"].T + found["bias"], learned.transform(X), atol=1e-4)
    [folder] = metra.export(learned, tmp_path / "dense", format="sentence-transformers")
    config = json.loads((folder / "config.json").read_text())
    assert (config["in_features"], config["out_features"], config["bias"]) == (64, 9, True)
    dense = tensors(folder / "model.safetensors")
    np.testing.assert_array_equal(dense["linear.weight"], found["weight"])
    np.testing.assert_array_equal(dense["linear.bias"], found["bias"])


def test_other_files_name_what_they_hold(learned, tmp_path):
    [header] = metra.export(learned, tmp_path / "m.h")
    assert "M_OUTPUT" in header.read_text()
    [sql] = metra.export(learned, tmp_path / "m.sql", table="docs", column="v", id_column="doc")
    assert 'SELECT "doc" FROM "docs"' in sql.read_text() and 'ORDER BY "v"' in sql.read_text()
    [onnx] = metra.export(learned, tmp_path / "map.bin", format="onnx")
    assert b"embedding" in onnx.read_bytes()
    two = metra.Slr(n_components=4).fit(X, y)
    assert metra.export(two, tmp_path / "q.npy", side="query")
    plan = metra.plan(two, "ip", way="query-only")
    matrix, *offset = map(np.load, metra.export(two, tmp_path / "ask.npy", plan=plan))
    asked = X[:3] @ matrix.T + sum(offset)
    np.testing.assert_allclose(asked, plan.map_queries(X[:3]), rtol=1e-3, atol=1e-3)


def test_what_a_file_cannot_hold_is_refused(learned, tmp_path):
    with pytest.raises(metra.MetraError, match=r"expected a name that ends in \.onnx"):
        metra.export(learned, tmp_path / "m.txt")
    with pytest.raises(metra.ParameterError, match="format must be one of onnx, npy"):
        metra.export(learned, tmp_path / "m", format="tflite")
    with pytest.raises(metra.ParameterError, match="items must be given"):
        metra.export(learned, tmp_path / "m.faiss")
    with pytest.raises(metra.ParameterError, match="items must be absent"):
        metra.export(learned, tmp_path / "m.onnx", items=X)
    roots = metra.Lda(n_components=4, prepare="sqrt").fit(X, y)
    with pytest.raises(metra.DataError, match='step "sqrt"'):
        metra.export(roots, tmp_path / "m.npy")
    two = metra.Slr(n_components=4, score_by="dot").fit(X[:300], queries=X[300:310], qrels=[(0, 1), (1, 2)])
    assert two.model_.two_sided
    with pytest.raises(metra.ParameterError, match="side must be query or item"):
        metra.export(two, tmp_path / "m.npy")
    other = metra.plan(metra.Lda(n_components=9).fit(X, y))
    for name, options, message in [
        ("m.sql", {"normalize": True}, "normalize must be absent"),
        ("m.sql", {"side": "item"}, "side must be absent"),
        ("m.npy", {"ids": [1]}, "ids must be absent"),
        ("m.npy", {"plan": other}, "plan must be one of this model"),
        ("m.faiss", {"items": X, "ids": np.arange(len(X)) + 0.5}, "ids must be whole numbers"),
    ]:
        with pytest.raises(metra.ParameterError, match=message):
            metra.export(learned, tmp_path / name, **options)
    with pytest.raises(OSError):
        metra.export(learned, tmp_path / "no" / "folder.npy")
    assert not list(tmp_path.iterdir())
