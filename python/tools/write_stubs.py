"""Write what type checkers and editors read of the estimators, which are made at import.

    python tools/write_stubs.py           # writes metra/learners.pyi and metra/__init__.pyi
    python tools/write_stubs.py --check   # fails where they are not as they would be written
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import metra
from metra import learners
from metra._estimator import SHARED

FOLDER = Path(__file__).resolve().parent.parent / "metra"

TYPES = {
    "a whole number": "int",
    "a number": "float",
    "a number, or several by comma": "float | str",
    "true or false": "bool",
}
SHARED_TYPES = {
    "prepare": "str",
    "score_by": "str | list[str] | None",
    "code": "str | None",
    "holdout": "str | None",
    "validation": "float",
    "test": "float",
    "refit": "bool",
    "grid": "dict[str, list[Any]] | None",
    "criterion": "str | None",
    "protocol": "str | None",
    "random_state": "Any",
    "n_jobs": "int | None",
    "copy": "bool",
    "verbose": "bool",
}


def kind(values: str) -> str:
    """The type of a parameter, of the words in which the registry says what it may be."""
    words = re.split(r", | or ", values)
    if values not in TYPES and len(words) > 1 and all(re.fullmatch(r"[a-z0-9-]+", word) for word in words):
        return f"Literal[{', '.join(chr(34) + word + chr(34) for word in words)}]"
    return TYPES.get(values, "str")


def lazy(module: str) -> list[str]:
    """What the package takes from a module when it is first used."""
    names = sorted(name for name, place in metra._LAZY.items() if place == module != name)
    return [f"from .{module} import (", *(f"    {name} as {name}," for name in names), ")"]


def estimator(entry: dict) -> str:
    """The stub of one estimator."""
    name = metra._names.class_name(entry["name"])
    kinds = {metra._names.parameter_name(p[0]): kind(p[2]) for p in entry["parameters"]}
    kinds["n_components"] = "int | None"
    kinds.update(SHARED_TYPES)
    lines = [f"class {name}(MetricLearner):", "    def __init__(", "        self,", "        *,"]
    signature = inspect.signature(getattr(learners, name).__init__)
    for parameter in list(signature.parameters.values())[1:]:
        default = repr(parameter.default).replace("'", '"')
        lines.append(f"        {parameter.name}: {kinds[parameter.name]} = {default},")
    return "\n".join([*lines, "    ) -> None: ..."])


def stubs() -> dict[str, str]:
    """The text of every stub file, by its name."""
    assert set(SHARED_TYPES) == set(SHARED)
    head = '"""Written by tools/write_stubs.py."""\n\n'
    classes = [metra._names.class_name(entry["name"]) for entry in metra.methods()]
    made = "\n\n".join(estimator(entry) for entry in metra.methods())
    imports = "from typing import Any, Literal\n\n"
    imports += "from ._estimator import MetricLearner as MetricLearner\n"
    imports += "from ._make import from_model as from_model\n\n"
    modules = sorted({*metra._LAZY.values()} - {"learners", "stores"})
    package = [
        "from typing import Any",
        "",
        "from . import learners as learners, stores as stores",
        "from ._metra import (",
        *(f"    {name} as {name}," for name in sorted({*metra.__all__} & {*vars(metra._metra)} - {*metra._LAZY, "plan"})),
        ")",
        *(line for module in modules for line in lazy(module)),
        "from .learners import (",
        *(f"    {name} as {name}," for name in sorted(["MetricLearner", "from_model", *classes])),
        ")",
        "",
        "def load(path: Any) -> Model: ...",
        "def plan(",
        "    model: Any,",
        "    distances: Any = ...,",
        "    keep_items: bool = False,",
        "    most_dimensions: int | None = None,",
        "    way: str | None = None,",
        ") -> Plan: ...",
    ]
    return {
        "learners.pyi": head + imports + made + "\n",
        "__init__.pyi": head + "\n".join(package) + "\n",
    }


def main() -> int:
    wrong = []
    for name, text in stubs().items():
        path = FOLDER / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                wrong.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    for name in wrong:
        print(f"metra/{name} is not as the registry has it: run python tools/write_stubs.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
