"""The reference of the Python package as Markdown, from its docstrings: `reference.py FOLDER` writes pages into it.

`cargo xtask site` calls it with a Python that has the package.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import indent
from typing import Any

import metra
from metra._docs import _ATTRIBUTES, _SHARED

PAGES = {
    "python.md": "Python: functions and results",
    "python-estimators.md": "Python: estimators",
    "python-stores.md": "Python: vector stores and MLflow",
}
STORES = ("chroma", "faiss", "lancedb", "milvus", "pgvector", "qdrant")


def markdown(documentation: str | None, skip: Iterable[str] = ()) -> str:
    """A numpydoc docstring: sections become paragraphs, their entries lists, and examples blocks of code."""
    text = inspect.cleandoc(documentation or "")
    first, *parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    out = [prose(first)]
    for heading, body in zip(parts[::2], parts[1::2]):
        if heading == "Examples":
            out.append(f"```python\n{body.strip()}\n```")
            continue
        entries = re.split(r"^(?=\S)", body.strip("\n"), flags=re.MULTILINE)
        lines = [line for entry in entries if entry.strip() for line in item(entry, set(skip))]
        out.append(f"**{heading}**\n\n" + "\n".join(lines))
    return "\n\n".join(part for part in out if part) + "\n"


def item(entry: str, skip: set[str]) -> list[str]:
    """One parameter, attribute or result."""
    head, _, rest = entry.partition("\n")
    name, _, kind = head.partition(" : ")
    if name in skip:
        return []
    meaning = " ".join(prose(inspect.cleandoc(rest)).split())
    shown = f"- `{name}`" + (f" ({plain(kind)})" if kind else "")
    return [shown + (f": {meaning}" if meaning else "")]


def prose(text: str) -> str:
    """Single backticks are names in docstrings and code in Markdown; blocks that begin with ``>>>`` are code."""
    blocks = []
    for block in text.strip().split("\n\n"):
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```python\n{block}\n```")
        elif re.match(r"\S+\n    ", block):
            # Terms with what is said of them, set in.
            terms = re.split(r"^(?=\S)", block, flags=re.MULTILINE)
            pairs = [term.partition("\n")[::2] for term in terms if term]
            blocks.append("\n".join(f"- **{term}**: {plain(' '.join(said.split()))}" for term, said in pairs))
        else:
            blocks.append(plain(block))
    return "\n\n".join(blocks)


def plain(text: str) -> str:
    """What would be a tag of HTML, or emphasis, is neither."""
    parts = re.split(r"(``[^`]*``|`[^`]*`)", text)
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") for part in parts[::2]]
    return "".join(parts)


def call(name: str, what: Any) -> str:
    """A function with its parameters and without their types, which the text names."""
    try:
        found = inspect.signature(what)
    except (TypeError, ValueError):
        return f"{name}(…)"
    empty = inspect.Parameter.empty
    kept = [one.replace(annotation=empty) for key, one in found.parameters.items() if key not in ("self", "cls")]
    # Positional-only marks of the native part say nothing to a reader.
    return name + str(found.replace(parameters=kept, return_annotation=inspect.Signature.empty)).replace("(/, ", "(")


def function(name: str, what: Any, level: int) -> str:
    heading = "#" * level
    return f"{heading} {name}\n\n```python\n{call(name, what)}\n```\n\n{markdown(what.__doc__)}"


def members(kind: type) -> list[tuple[str, Any]]:
    # Fields of a named tuple are among its attributes already.
    fields = getattr(kind, "_fields", ())
    found = [(name, one) for name, one in inspect.getmembers(kind) if not name.startswith("_") and name not in fields]
    return [(name, one) for name, one in found if inspect.getdoc(one) and belongs(kind, name)]


def belongs(kind: type, name: str) -> bool:
    """Whether a member is ours: mixins of scikit-learn are described there, and dict's methods by Python."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    return owner is not None and owner.__module__.split(".")[0] in ("metra", "builtins") and owner not in (dict, list, str, tuple)


def described(name: str, kind: type, level: int) -> str:
    """A class with its methods and properties."""
    out = [f"{'#' * level} {name}\n\n{markdown(kind.__doc__)}"]
    for member, one in members(kind):
        if callable(one):
            out.append(function(f"{name}.{member}", one, level + 1))
        else:
            out.append(f"{'#' * (level + 1)} {name}.{member}\n\n{markdown(inspect.getdoc(one))}")
    return "\n".join(out)


def general() -> str:
    estimators = set(estimator_names())
    out = [markdown(metra.__doc__.split("\n>>> ", 1)[0])]
    names = [name for name in metra.__all__ if name not in estimators | {"stores", "learners", "__version__"}]
    functions = [name for name in names if not inspect.isclass(getattr(metra, name))]
    errors = [name for name in names if name not in functions and issubclass(getattr(metra, name), Exception)]
    classes = [name for name in names if name not in functions and name not in errors]
    out.append("## Functions\n")
    out += [function(f"metra.{name}", getattr(metra, name), 3) for name in sorted(functions)]
    out.append("## Classes\n")
    out += [described(f"metra.{name}", getattr(metra, name), 3) for name in sorted(classes)]
    out.append("## Errors\n")
    for name in sorted(errors):
        one = getattr(metra, name)
        said, *parts = markdown(one.__doc__).strip().split("\n\n")
        out.append(f"- `metra.{name}` (a `{one.__base__.__name__}`): {said}")
        out += [indent(part, "  ") for part in parts if part.startswith("- ")]
    return "\n".join(out)


def estimator_names() -> list[str]:
    return [name for name in metra.learners.__dict__ if inspect.isclass(getattr(metra.learners, name))
            and issubclass(getattr(metra.learners, name), metra.learners.MetricLearner)]


def estimators() -> str:
    base = metra.learners.MetricLearner
    names = sorted(name for name in estimator_names() if getattr(metra.learners, name) is not base)
    out = [
        "All estimators follow the rules of scikit-learn and have the methods and attributes of `MetricLearner`. "
        "[Which method when](../guide/choosing.md) says which to use; [Python](../guide/python.md) is the guide.\n",
        described("MetricLearner", base, 2),
        "### Parameters of all estimators\n",
    ]
    out += [f"- `{name}` ({kind}): {plain(meaning)}" for name, (kind, meaning) in _SHARED.items()]
    out.append(f"\n### When fitted\n\n{markdown(_ATTRIBUTES)}")
    for name in names:
        kind = getattr(metra.learners, name)
        text = markdown(kind.__doc__, skip=_SHARED)
        # Attributes are those of the base.
        text = re.sub(r"\*\*Attributes\*\*\n\n(- .*\n)+\n?", "", text)
        out.append(f"\n## metra.{name}\n\n{text}")
    return "\n".join(out)


def stores() -> str:
    out = [markdown(metra.stores.__doc__)]
    out.append(described("metra.stores.Collection", metra.stores.Collection, 2))
    for name in STORES:
        source = importlib.import_module(f"metra.stores.{name}")
        out.append(f"## metra.stores.{name}\n\n{markdown(source.__doc__)}")
        out.append(function(f"metra.stores.{name}.open", source.open, 3))
    flavor = importlib.import_module("metra.mlflow")
    out.append(f"## metra.mlflow\n\n{markdown(flavor.__doc__)}")
    out += [function(f"metra.mlflow.{name}", getattr(flavor, name), 3) for name in flavor.__all__]
    return "\n".join(out)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("expected: reference.py FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for (name, title), text in zip(PAGES.items(), (general(), estimators(), stores())):
        (folder / name).write_text(f"# {title}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
