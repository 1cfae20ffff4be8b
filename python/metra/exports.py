"""Maps as files of other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from . import _metra


def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    side: str | None = None,
    normalize: bool = False,
    plan: _metra.Plan | None = None,
    items: Any = None,
    ids: Any = None,
    cameras: Any = None,
    name: str | None = None,
    table: str = "items",
    column: str = "embedding",
    id_column: str = "id",
) -> list[Path]:
    """Write a model's map as a file of another program, which then maps vectors without metra.

    Parameters
    ----------
    model : Model or fitted estimator
        Whose map.
    path : str or path
        Where to write. Its name says the format: ``.onnx``, ``.npy`` (the matrix; the offset to add in
        ``NAME.offset.npy``), ``.safetensors`` (as torch.nn.Linear loads it), ``.h`` (C), ``.faiss`` or
        ``.sql``.
    format : str, optional
        The format, where the name does not say it: ``onnx``, ``npy``, ``safetensors``, ``c``, ``faiss``,
        ``sql``, or ``sentence-transformers`` for a folder that
        ``sentence_transformers.models.Dense.load`` reads.
    side : {"query", "item"}, optional
        Whose map, where queries and items have one each.
    normalize : bool, default=False
        Divide by the length at the end, so that inner products of a cosine model are cosines.
    plan : Plan, optional
        Map queries as this plan asks its store, such as ``stores.X.open(...).plan``.
    items : array-like, optional
        Items of a FAISS index, which are mapped on their way in; ``ids`` are whole numbers to know them
        by (default: the numbers of their rows), ``cameras`` as for `transform`.
    name : str, optional
        What names in C and SQL begin with; the file's own by default.
    table, column, id_column : str
        Where SQL finds the vectors that it searches.

    Returns
    -------
    list of Path
        The files that were written.

    Examples
    --------
    >>> import metra, numpy as np, tempfile
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    >>> model = metra.Lda(n_components=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = metra.export(model, folder + "/map.npy")
    ...     W, b = (np.load(file) for file in files)
    >>> np.allclose(X @ W.T + b, model.transform(X), atol=1e-5)
    True
    """
    wish = {
        "format": format,
        "side": side,
        "normalize": bool(normalize),
        "name": name,
        "table": table,
        "column": column,
        "id_column": id_column,
        "ids": None if ids is None else _whole(ids),
        "cameras": cameras,
    }
    found = getattr(model, "model_", model)
    if not isinstance(found, _metra.Model):
        raise _metra.ParameterError(f"expected a model or a fitted estimator, but found {model!r}")
    if plan is not None and not isinstance(plan, _metra.Plan):
        raise _metra.ParameterError(f"plan must be a Plan, as metra.plan gives it, but is {plan!r}")
    return [Path(file) for file in _metra.export(found, os.fspath(path), wish, plan, items)]


def _whole(ids: Any) -> list[int]:
    array = np.asarray(ids)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.max() > 2**63 - 1):
        raise _metra.ParameterError("ids must be whole numbers, one an item: FAISS knows no others")
    return list(array.tolist())
