"""Learn what "similar" means, over vectors you already have.

Estimators follow the rules of scikit-learn, models are files that the command ``metra`` reads and
writes too, and everything is judged on held-out parts with intervals.

Learn
    `Warca`, `Lda`, `SupCon`, `Adapter`, ... : estimators; `methods` lists them all with what they
    learn from, and ``help(metra.Warca)`` explains one. Supervision is ``y``, or ``qrels=`` with
    ``queries=``, ``pairs=``, ``triplets=``, ``quadruplets=``, ``orderings=`` or ``taxonomy=``.
Look
    `check` says what vectors and labels are like and how much there is to gain.
Judge
    `evaluate` ranks and measures; `Evaluation.against` and `bootstrap` tell a gain from chance;
    `agreement` judges by pairs and triplets; `compare` tries many methods under one protocol and fits
    the best; `gate` decides whether a candidate may replace what serves today; `budget` says what more
    labels would bring, `compress` how few bytes an item needs, and `clicks` makes judgements of a click log; `verification` says what thresholds
    do. `plot_cmc`, `plot_precision`, `plot_roc`, `plot_det`, `plot_gains`, `plot_embedding`,
    `plot_history` and `plot_neighbours` (pictures of what queries find) draw.
Use
    `Model` maps, compares and searches; `load` reads its file, and `from_model` makes an estimator of
    it. `plan` says how a vector store serves it, and `stores` does so in LanceDB, PostgreSQL with
    pgvector, Chroma, Milvus, Qdrant and FAISS. `export` writes its map for ONNX, FAISS, C, SQL and
    sentence-transformers. `Client` asks a server that ``metra serve`` runs, and finds `Hit`. ``metra`` in a shell, or
    ``python -m metra``, is the whole command.
Errors
    `MetraError` is a ValueError; `DataError`, `SupervisionError`, `ParameterError`, `DivergedError`,
    `ModelFileError`, `PlanError` and `ServerError` are its kinds.

>>> import metra
>>> from sklearn.datasets import load_digits
>>> X, y = load_digits(return_X_y=True)
>>> learned = metra.Warca(n_components=16, steps=100).fit(X[:1200], y[:1200])
>>> result = metra.evaluate(learned, X[1200:], y[1200:])
>>> result["map"] > metra.evaluate("euclid", X[1200:], y[1200:])["map"]
True
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from ._metra import (
    DataError,
    DivergedError,
    InternalError,
    MetraError,
    Model,
    ModelFileError,
    ParameterError,
    Plan,
    PlanError,
    SupervisionError,
    __version__,
    methods,
)
from ._metra import plan as _plan

# Loaded when first used: scikit-learn alone takes ten times as long to import as all of this.
_LAZY = {
    "evaluate": "evaluation",
    "Evaluation": "evaluation",
    "agreement": "evaluation",
    "bootstrap": "evaluation",
    "budget": "labels",
    "LabelBudget": "labels",
    "check": "checks",
    "DataCheck": "checks",
    "Client": "client",
    "Hit": "client",
    "ServerError": "client",
    "clicks": "labels",
    "Clicks": "labels",
    "compare": "comparison",
    "Comparison": "comparison",
    "compress": "compression",
    "Compression": "compression",
    "export": "exports",
    "gate": "release",
    "Gate": "release",
    "verification": "evaluation",
    "Verification": "evaluation",
    "plot_cmc": "plots",
    "plot_det": "plots",
    "plot_roc": "plots",
    "plot_embedding": "plots",
    "plot_gains": "plots",
    "plot_history": "plots",
    "plot_neighbours": "plots",
    "plot_precision": "plots",
    "stores": "stores",
    "learners": "learners",
}


def load(path: _Any) -> Model:
    """Read a model file, whether Python or the command wrote it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Model
        What maps and compares vectors; ``metra.from_model`` makes an estimator of it.
    """
    return Model.load(path)


def plan(
    model: _Any,
    distances: _Any = ("l2", "ip", "cosine"),
    keep_items: bool = False,
    most_dimensions: int | None = None,
    way: str | None = None,
) -> Plan:
    """What a vector store must hold and be asked so that its order is the metric's.

    For vectors that you store yourself, by ``map_items``, and ask for by ``map_queries``. What
    `metra.stores` wrote is moved to a centre that this plan does not know: take the plan of the
    opened collection there, ``stores.X.open(...).plan``.

    Parameters
    ----------
    model : Model or fitted estimator
        The metric.
    distances : str or list of str
        What the store compares by: ``l2``, ``ip`` (inner product) or ``cosine``.
    keep_items : bool, default=False
        Whether stored vectors must stay as they are.
    most_dimensions : int, optional
        Most numbers that the store takes in a vector.
    way : str, optional
        The only way that will do: ``mapped``, ``query-only``, ``extra-coordinate`` or ``rescaled``.

    Returns
    -------
    Plan
        The first exact way; `PlanError` says, for every way, why there is none.
    """
    from ._words import listed

    found = getattr(model, "model_", model)
    return _plan(found, listed(distances), keep_items, most_dimensions, way)


def _class_names() -> dict[str, str]:
    from ._names import class_name

    return {class_name(entry["name"]): entry["name"] for entry in methods()}


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        module = _import_module(f".{_LAZY[name]}", __name__)
        return module if name == _LAZY[name] else getattr(module, name)
    if name.isupper():
        # As abbreviations are written elsewhere: LDA, NCA, LMNN.
        name = next((known for known in _class_names() if known.upper() == name), name)
    if name == "from_model" or name in _class_names():
        return getattr(_import_module(".learners", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "from_model", *_class_names()})


__all__ = [
    *_LAZY,
    *_class_names(),
    "DataError",
    "DivergedError",
    "InternalError",
    "MetraError",
    "Model",
    "ModelFileError",
    "ParameterError",
    "Plan",
    "PlanError",
    "SupervisionError",
    "__version__",
    "from_model",
    "load",
    "methods",
    "plan",
]
