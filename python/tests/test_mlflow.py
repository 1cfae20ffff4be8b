"""Models in MLflow, by MLflow itself."""

from __future__ import annotations

from typing import Any

import metra
import numpy as np
import pytest
from sklearn.datasets import load_digits

mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32)


@pytest.fixture(scope="module")
def learned() -> Any:
    return metra.Lda(n_components=9).fit(X, y)


def test_a_logged_model_is_the_same_and_serves(learned, tmp_path, monkeypatch):
    import metra.mlflow

    # Small, without a database; MLflow asks to be told so.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run():
        info = metra.mlflow.log_model(learned, "digits", metadata={"note": "first"})
    model = metra.mlflow.load_model(info.model_uri)
    assert model.to_bytes() == learned.model_.to_bytes()
    served = mlflow.pyfunc.load_model(info.model_uri)
    np.testing.assert_array_equal(served.predict(X[:5]), learned.transform(X[:5]))
    np.testing.assert_array_equal(served.predict(X[:5], params={"side": "item"}), learned.transform(X[:5]))
    with pytest.raises(Exception, match="side must be query or item"):
        served.predict(X[:5], params={"side": "neither"})
    with pytest.raises(mlflow.exceptions.MlflowException):
        served.predict(X[:5, :9])
    assert served.metadata.metadata == {"note": "first"}


def test_a_saved_folder_keeps_what_was_there(learned, tmp_path):
    import metra.mlflow

    folder = tmp_path / "model"
    metra.mlflow.save_model(learned.model_, folder)
    assert metra.mlflow.load_model(str(folder)).method == "lda"
    assert f"metra=={metra.__version__}" in (folder / "requirements.txt").read_text()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "MLmodel").write_text("flavors:\n  sklearn: {}\n")
    with pytest.raises(metra.ModelFileError, match="but it is one for sklearn"):
        metra.mlflow.load_model(str(tmp_path / "other"))
    with pytest.raises(metra.ParameterError, match="expected an empty folder"):
        metra.mlflow.save_model(learned, folder)
