"""The examples in docstrings give what they show."""

import doctest
import importlib
import pkgutil

import metra
import pytest

# Stores and applications of the service have tests of their own, where what they need is installed.
ELSEWHERE = ("metra.stores", "metra.langchain", "metra.llama_index", "metra._metra")
MODULES = ["metra"] + [
    module.name
    for module in pkgutil.iter_modules(metra.__path__, "metra.")
    if module.name not in ELSEWHERE
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_estimator_has_an_example():
    from metra import learners

    finder = doctest.DocTestFinder()
    for entry in metra.methods():
        made = getattr(learners, metra._names.class_name(entry["name"]))
        assert finder.find(made)[0].examples, made.__name__
