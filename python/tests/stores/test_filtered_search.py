"""The notebook of filtered search: its cells run here, where LanceDB is, and print what it shows."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from typing import Any

import pytest
from pages import ROOT, same_output

pytest.importorskip("lancedb", reason="lancedb is not installed")


def test_cells_print_what_is_stored(monkeypatch, tmp_path):
    path = ROOT / "python" / "notebooks" / "filtered_search.ipynb"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside an installed package")
    matplotlib = pytest.importorskip("matplotlib", reason="the notebook draws with matplotlib")
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        shown = "".join(
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell["outputs"]
            if "image/png" not in output.get("data", {})
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            last = _run("".join(cell["source"]), names)
        told = printed.getvalue() + ("" if last is None or not shown else repr(last))
        assert same_output(shown, told), f"shows\n{shown}\nbut prints\n{told}"
    assert list(tmp_path.iterdir()) == []


def _run(code: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, if it is an expression that shows itself."""
    *body, last = ast.parse(code).body
    shows = isinstance(last, ast.Expr) and not code.rstrip().endswith(";")
    rest = body if shows else [*body, last]
    exec(compile(ast.Module(rest, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if shows else None
