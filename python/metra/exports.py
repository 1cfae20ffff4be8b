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
        "ids": None if ids is None else np.asarray(ids, dtype=np.int64).tolist(),
        "cameras": cameras,
    }
    found = getattr(model, "model_", model)
    return [Path(file) for file in _metra.export(found, os.fspath(path), wish, plan, items)]
