"""Estimators made from the registry, and from models."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from . import _metra
from ._docs import docstring
from ._estimator import SHARED, MetricLearner, python_value
from ._names import class_name, parameter_name


def make(entry: dict[str, Any], module: str) -> type[MetricLearner]:
    """The estimator of one learner of the registry."""
    name = class_name(entry["name"])
    defaults: dict[str, Any] = {}
    for parameter, default, _, _ in entry["parameters"]:
        # The rank is limited by the number of columns, which is not known yet.
        defaults[parameter_name(parameter)] = None if parameter == "rank" else python_value(default)
    defaults.update(SHARED)

    def __init__(self: Any, **keywords: Any) -> None:
        for keyword in keywords:
            if keyword not in defaults:
                raise TypeError(f"{name}() has no parameter {keyword!r}: expected some of "
                                f"{', '.join(defaults)}")
        for keyword, default in defaults.items():
            setattr(self, keyword, keywords.get(keyword, default))

    kinds = inspect.Parameter
    own = [kinds("self", kinds.POSITIONAL_OR_KEYWORD)]
    own += [kinds(k, kinds.KEYWORD_ONLY, default=v) for k, v in defaults.items()]
    __init__.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{name}.__init__"
    __init__.__module__ = module
    return type(
        name,
        (MetricLearner,),
        {
            "__init__": __init__,
            "__doc__": docstring(name, entry, defaults),
            "__module__": module,
            "_method": entry["name"],
            "_needs": entry["needs"],
            "_supervised": entry["supervised"],
            "_starts_from_model": entry["starts_from_model"],
            "_paper": {parameter_name(k): python_value(v) for k, v in entry["paper"]},
        },
    )


def from_model(model: Any, cls: type[MetricLearner] | None = None) -> MetricLearner:
    """A fitted estimator that holds a model.

    Parameters
    ----------
    model : Model or path
        What `metra.load` gives, or its file.
    cls : type, optional
        The estimator it must be one of.

    Returns
    -------
    MetricLearner
        An estimator of the method that made the model, with its parameters.
    """
    if not isinstance(model, _metra.Model):
        model = _metra.Model.load(model)
    module = sys.modules[__package__ + ".learners"]
    found = getattr(module, class_name(model.method))
    if cls is not None and not issubclass(found, cls):
        raise ValueError(f"expected a model of {cls.__name__}, but it is of {found.__name__}")
    keywords = {parameter_name(k): python_value(v) for k, v in model.parameters.items()}
    estimator = found(**keywords, prepare=model.prepare, random_state=model.seed)
    estimator._learned(model)
    return estimator
