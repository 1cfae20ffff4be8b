"""Models in MLflow: log them with a run, load them again, serve them.

What is logged is the model's own file, which holds numbers and text and is checked against its digest, so that loading
opens no pickle. Needs MLflow 3 (``pip install "metra[mlflow]"``).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import mlflow.artifacts
import mlflow.models
import numpy as np
from mlflow.models.signature import ModelSignature
from mlflow.types.schema import ParamSchema, ParamSpec, Schema, TensorSpec

from . import _metra

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR_NAME = "metra"
_FILE = "model.safetensors"


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    mlflow_model: Any = None,
    signature: Any = None,
    pip_requirements: Any = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write a folder that MLflow loads and serves.

    Parameters
    ----------
    model : Model or fitted estimator
        What was learned.
    path : str or path
        The folder, which must not be there or be empty.
    mlflow_model : mlflow.models.Model, optional
        MLflow's own description, where `log_model` has begun one.
    signature : mlflow.models.ModelSignature, optional
        Of inputs and outputs; by default vectors of the model's dimensions, with a parameter ``side``, ``query`` or
        ``item``, that says whose map to use.
    pip_requirements : list of str, optional
        What serving needs; this version of metra by default.
    metadata : dict, optional
        Anything to keep with it.
    """
    model = getattr(model, "model_", model)
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise _metra.ParameterError(f"{folder}: expected an empty folder, but there are files in it")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / _FILE)
    described = mlflow_model if mlflow_model is not None else mlflow.models.Model()
    described.signature = signature if signature is not None else _signature(model)
    if metadata is not None:
        described.metadata = metadata
    described.add_flavor(FLAVOR_NAME, data=_FILE, metra_version=_metra.__version__, method=model.method)
    described.add_flavor("python_function", loader_module=__name__, data=_FILE, env="requirements.txt")
    needed = pip_requirements if pip_requirements is not None else [f"metra=={_metra.__version__}"]
    (folder / "requirements.txt").write_text("\n".join(needed) + "\n", encoding="utf-8")
    described.save(str(folder / "MLmodel"))


def log_model(model: Any, name: str, **keywords: Any) -> Any:
    """Log a model with the active run, or a new one.

    Parameters
    ----------
    model : Model or fitted estimator
        What was learned.
    name : str
        What it is called in the run.
    **keywords
        As for `save_model` and ``mlflow.models.Model.log``, such as ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        With ``model_uri``, which `load_model` takes.
    """
    from . import mlflow as flavor

    return mlflow.models.Model.log(artifact_path=None, name=name, flavor=flavor, model=model, **keywords)


def load_model(model_uri: str, dst_path: str | None = None) -> _metra.Model:
    """Load a model that was logged or saved.

    Parameters
    ----------
    model_uri : str
        Such as ``runs:/RUN/NAME``, ``models:/NAME/1`` or a folder.
    dst_path : str, optional
        Where to put files that come from elsewhere.

    Returns
    -------
    Model
        `metra.from_model` makes an estimator of it.
    """
    folder = mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path)
    flavors = mlflow.models.Model.load(folder).flavors
    if FLAVOR_NAME not in flavors:
        found = ", ".join(sorted(flavors))
        raise _metra.ModelFileError(f"{model_uri}: expected a model that metra logged, but it is one for {found}")
    return _metra.Model.load(os.path.join(folder, flavors[FLAVOR_NAME]["data"]))


class _Served:
    """What MLflow's servers call."""

    def __init__(self, model: _metra.Model) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> np.ndarray:
        side = (params or {}).get("side", "query")
        if side not in ("query", "item"):
            raise _metra.ParameterError(f"side must be query or item, but is {side!r}")
        map_rows = self.model.transform_queries if side == "query" else self.model.transform_items
        return map_rows(np.asarray(data, dtype=np.float32))


def _load_pyfunc(path: str) -> _Served:
    return _Served(_metra.Model.load(path))


def _signature(model: _metra.Model) -> ModelSignature:
    def vectors(dimension: int) -> Schema:
        return Schema([TensorSpec(np.dtype(np.float32), (-1, dimension))])

    sides = ParamSchema([ParamSpec("side", "string", "query")])
    # Of two models either side may come.
    dimension = -1 if model.two_spaces else model.input_dim
    return ModelSignature(vectors(dimension), vectors(model.output_dim), sides)
