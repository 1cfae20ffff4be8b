"""Docstrings of estimators in numpydoc form, from what the library says of its learners."""

from __future__ import annotations

import textwrap
from typing import Any

from ._names import parameter_name

_SHARED = {
    "prepare": (
        "str",
        "Preparation before the method, steps joined by ``+``: ``sqrt``, ``l2``, ``log:1000``, "
        "``centre``, ``centre-groups``, ``scale``, ``pca:N``, ``whiten:N``, ``pca:95%``.",
    ),
    "score_by": (
        "str, list of str or None",
        "How mapped vectors are compared: ``euclid``, ``cosine`` or ``dot``. None or several are "
        "chosen among on the validation part; without one, the method's first is taken.",
    ),
    "code": (
        "str or None",
        "How items are held in fewer bytes: ``f16``, ``int8``, ``int8-columns``, ``bits``, ``hamming``, ``sign``, "
        "``itq``, ``pq:N`` or ``opq:N``; None for float32. Maps of some methods are trained for ``bits`` and "
        "``int8``. `encode_items` gives the codes; `metra.compress` finds out which serve.",
    ),
    "holdout": (
        "str or None",
        "What is new at use: ``identities``, ``rows``, ``queries``, ``items`` or ``none``; None asks "
        "the data.",
    ),
    "validation": (
        "float",
        "Share held out to choose score, number of steps and values of ``grid``. With 0 all rows "
        "are learned from and the given settings stand.",
    ),
    "test": ("float", "Share held out to judge with, once; see ``test_``."),
    "refit": ("bool", "Learn from the test part too, after it has judged."),
    "grid": ("dict or None", "Values to try on the validation part, by parameter."),
    "criterion": ("str or None", "Measure to choose by; None takes ``map``, or ``ndcg@10``."),
    "protocol": (
        "str or None",
        "Who is searched for by whom in held-out parts: ``leave-one-out``, ``against-training``, "
        "``single-shot``, ``cross-camera``.",
    ),
    "random_state": (
        "int, RandomState or None",
        "Seed of all draws: the same seed gives the same bytes on any number of threads.",
    ),
    "n_jobs": ("int or None", "Threads; None for all cores. Results do not depend on it."),
    "copy": (
        "bool",
        "Copy arrays before they are used. Without it float32 and float64 are read where they lie "
        "while other threads run, and nothing may write to them during a call.",
    ),
    "verbose": ("bool", "Show a bar while learning."),
}

_ATTRIBUTES = """
Attributes
----------
components_ : ndarray of shape (n_components, n_features)
    The map (of items), where it is linear: ``X @ components_.T - offset_``, with a linear preparation
    (``centre``, ``scale``, ``pca``, ``whiten``) folded in. ``offset_`` is None where nothing is
    subtracted.
model_ : Model
    What was learned, as files hold it.
n_features_in_ : int
    Numbers in a vector.
n_iter_ : int
    Steps done; 1 for closed forms.
history_ : list of dict
    Phase, step, loss and value on the validation part of every step.
trials_ : list of dict
    What was tried on the validation part.
test_ : list of dict
    What the test part says, with intervals; ``test_seen_`` and ``test_unseen_`` for queries some or
    none of whose relevant items training had seen.
sizes_ : dict
    Rows or queries in the training, validation and test part.
"""

_EXAMPLES = {
    "labels": """
>>> from metra import {name}
>>> from sklearn.datasets import load_digits
>>> X, y = load_digits(n_class=5, return_X_y=True)
>>> learned = {name}({keywords}).fit(X[:300], y[:300])
>>> learned.transform(X).shape == (901, {width})
True
>>> learned.pair_score((X[:2], X[:2])).shape
(2,)
""",
    "nothing": """
>>> from metra import {name}
>>> from sklearn.datasets import load_digits
>>> X, y = load_digits(n_class=5, return_X_y=True)
>>> learned = {name}({keywords}).fit(X)
>>> learned.transform(X).shape == (901, {width})
True
""",
    "vectors": """
>>> from metra import {name}
>>> from sklearn.datasets import load_digits
>>> X, y = load_digits(return_X_y=True)
>>> # The upper and the lower half of an image as two vectors.
>>> learned = {name}().fit(X[:300], y[:300], vector_dims=[32, 32])
>>> learned.transform(X[300:]).shape
(1497, 64)
""",
    "orderings": """
>>> from metra import {name}
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> learned = {name}().fit(X, y, orderings={{"size": "0<1<2"}})
>>> learned.transform(X).shape
(150, 1)
""",
}


def docstring(name: str, entry: dict[str, Any], defaults: dict[str, Any]) -> str:
    """The docstring of one estimator."""
    lines = [entry["summary"], "", f"Supervision: {entry['needs']}.", "", "Parameters", "----------"]
    for parameter, default, values, meaning in entry["parameters"]:
        kind = _KINDS.get(values, "str")
        if parameter == "rank":
            many = "all" if default == "0" else f"{default}, or all columns where there are fewer"
            meaning += f" None takes {many}."
            default = "None"
        if values not in _KINDS:
            meaning += f" One of {values}."
        lines += _described(parameter_name(parameter), kind, default, meaning)
    for shared, (kind, meaning) in _SHARED.items():
        lines += _described(shared, kind, repr(defaults[shared]), meaning)
    lines += [_ATTRIBUTES.rstrip(), "", "Examples", "--------"]
    lines.append(_example(name, entry).strip())
    return "\n".join(lines) + "\n"


_KINDS = {"a whole number": "int", "a number": "float", "true or false": "bool"}


def _described(name: str, kind: str, default: str, meaning: str) -> list[str]:
    text = textwrap.wrap(meaning, 92)
    return [f"{name} : {kind}, default={default}", *("    " + line for line in text)]


def _example(name: str, entry: dict[str, Any]) -> str:
    known = {parameter[0] for parameter in entry["parameters"]}
    if entry["several_vectors"]:
        form = _EXAMPLES["vectors"]
    elif not entry["supervised"]:
        form = _EXAMPLES["nothing"]
    elif "labels" in entry["needs"]:
        form = _EXAMPLES["labels"]
    else:
        form = _EXAMPLES["orderings"]
    keywords = ["n_components=3"] if "rank" in known else []
    if "steps" in known:
        keywords.append("steps=20")
    width = "3" if "rank" in known else "64"
    if name == "Svmml":
        # Directions of sums as well as of differences, and two numbers that make a product of them.
        width = "8"
    return form.format(name=name, keywords=", ".join(keywords), width=width)
