"""The pages run, what they print is what they show, and every estimator has a whole docstring."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from pathlib import Path

import metra
import pytest
from pages import ROOT, run_page, same_output

PAGES = [
    ROOT / "README.md",
    ROOT / "python" / "README.md",
    ROOT / "docs" / "guide" / "python.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name + "/" + page.name)
def test_page_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not page.exists():
        pytest.skip(f"{page.name} is not beside an installed package")
    matplotlib = pytest.importorskip("matplotlib", reason="the pages draw with matplotlib")
    for optional in ("pandas", "polars", "pyarrow", "mlflow"):
        pytest.importorskip(optional, reason=f"the pages use {optional}")
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    run_page(page)
    assert os.getcwd() == str(tmp_path.resolve()), "a block left the temporary folder"


def test_same_output_sees_words_and_numbers() -> None:
    assert same_output("map 0.8867 better\n", "map  0.8866 better")
    assert not same_output("map 0.8867 better", "map 0.8867 worse")
    assert not same_output("map 0.8867 better", "map 0.7867 better")
    assert not same_output("(1797, 16)", "(1797, 32)")


def test_links_of_pages_lead_somewhere() -> None:
    pages = [*PAGES, ROOT / "docs" / "guide" / "from-metric-learn.md"]
    for page in (page for page in pages if page.exists()):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_what_a_star_imports_is_there() -> None:
    assert {"Warca", "evaluate", "load", "MetraError"} <= set(metra.__all__)
    assert [name for name in metra.__all__ if not hasattr(metra, name)] == []


def sections(documentation: str) -> dict[str, str]:
    """Text under each underlined heading of a numpydoc docstring."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(documentation), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}


ESTIMATORS = sorted(
    name
    for name, made in vars(metra.learners).items()
    if hasattr(made, "_method") and not name.startswith("_")
)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_docstring_of_estimator_says_everything(name: str) -> None:
    estimator = getattr(metra, name)
    found = sections(estimator.__doc__)
    summary = found[""].strip().splitlines()[0]
    assert summary.endswith(".") and len(summary) <= 100, summary
    assert {"Parameters", "Attributes", "Examples"} <= set(found)
    described = re.findall(r"^(\w+) : (.+), default=(.+)$", found["Parameters"], re.MULTILINE)
    parameters = estimator().get_params(deep=False)
    assert sorted(parameter for parameter, _, _ in described) == sorted(parameters)
    for parameter, _, default in described:
        value = parameters[parameter]
        shown = default.strip("'\"")
        assert shown.lower() == str(value).lower() or float(shown) == value, (parameter, default)
    # A description follows every name, by four spaces.
    for line, following in zip(
        found["Parameters"].splitlines(), found["Parameters"].splitlines()[1:]
    ):
        if " : " in line and not line.startswith(" "):
            assert following.startswith("    ") and following.strip(), line
    assert ">>> " in found["Examples"] and f"import {name}" in found["Examples"]


def test_every_method_of_the_registry_has_an_estimator() -> None:
    assert {getattr(metra, name)._method for name in ESTIMATORS} == {
        entry["name"] for entry in metra.methods()
    }


FUNCTIONS = ["evaluate", "compare", "bootstrap", "load"]
FUNCTIONS += ["plot_cmc", "plot_embedding", "plot_gains", "plot_history", "plot_precision"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_of_function_names_every_parameter(name: str) -> None:
    function = getattr(metra, name)
    found = sections(function.__doc__)
    assert {"Parameters", "Returns"} <= set(found)
    heads = [
        line.partition(" : ")[0]
        for line in textwrap.dedent(found["Parameters"]).splitlines()
        if line and not line.startswith(" ")
    ]
    described = {part.strip(" *`") for head in heads for part in head.split(",")}
    assert set(inspect.signature(function).parameters) <= described


METHODS = ["fit", "transform", "pair_score", "score", "get_metric", "search"]


@pytest.mark.parametrize("name", METHODS)
def test_docstring_of_method_has_sections(name: str) -> None:
    method = getattr(metra.Warca, name)
    found = sections(method.__doc__)
    assert "Returns" in found, f"{name} does not say what it returns"
