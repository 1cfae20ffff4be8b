"""The notebooks run, on data they make and, where METRA_DATA is set, on the files they name; what is stored as
their output is what they print.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pages import same_output

nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")
nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")
pytest.importorskip("ipykernel", reason="notebooks need ipykernel")
pytest.importorskip("matplotlib", reason="notebooks need matplotlib")

FOLDER = Path(__file__).parents[1] / "notebooks"
NAMES = ["adapters", "codes", "compare", "re_identification", "relative_attributes", "thresholds"]

# Files of METRA_DATA that each reads.
FILES = {
    "adapters": ["scifact_minilm_docs.parquet", "scifact_minilm_queries.parquet"],
    "re_identification": ["viper_stripes2580.parquet", "viper_stripes2580.splits.json"],
    "relative_attributes": ["osr_gist.parquet", "osr_gist.json"],
}


def run(name: str, folder: Path, data: str | None) -> Any:
    """The notebook with its outputs; a cell that raises ends it with the cell's own traceback."""
    path = FOLDER / f"{name}.ipynb"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside an installed package")
    environment = dict(os.environ, MPLBACKEND="module://matplotlib_inline.backend_inline")
    environment.pop("METRA_DATA", None)
    environment["PYTHONPATH"] = str(FOLDER)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if data is not None:
        environment["METRA_DATA"] = data
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute(env=environment)


def printed(notebook: Any) -> str:
    """What all cells wrote, in their order."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return "".join(output.get("text", "") for output in outputs)


def pictures(notebook: Any) -> int:
    """How many pictures it shows."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return sum("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs_on_made_data(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path, None)
    assert pictures(done) >= 1
    # The made sets have something to learn: a notebook that gains nothing tells no story.
    assert "better" in printed(done) or name not in FILES
    assert list(tmp_path.iterdir()) == [], "a notebook left files where it was opened"
    if name not in FILES:
        assert_stored(name, done)


@pytest.mark.parametrize("name", FILES)
def test_notebook_runs_on_measured_data(name: str, tmp_path: Path) -> None:
    data = os.environ.get("METRA_DATA")
    if not data:
        pytest.skip("METRA_DATA is not set")
    pytest.importorskip("pyarrow", reason="the files are Parquet")
    absent = [file for file in FILES[name] if not (Path(data) / file).exists()]
    if absent:
        pytest.skip(f"METRA_DATA has no {', '.join(absent)}")
    done = run(name, tmp_path, data)
    assert pictures(done) >= 1
    assert_stored(name, done)


def assert_stored(name: str, done: Any) -> None:
    """What is stored in the file is what its cells print, and every picture is there."""
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert pictures(stored) == pictures(done)
    for number, (kept, cell) in enumerate(zip(stored.cells, done.cells, strict=True)):
        shown, told = (text(part) for part in (kept, cell))
        assert same_output(shown, told), f"{name}, cell {number} shows\n{shown}\nbut prints\n{told}"


def text(cell: Any) -> str:
    """What a cell printed; tables that it shows have CPU seconds, which no two runs share."""
    outputs = cell.get("outputs", [])
    return "".join(
        output.get("text", "") for output in outputs if output.get("name", "stdout") == "stdout"
    )


def test_notebooks_begin_with_a_question_and_a_picture() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        assert "?" in "".join(stored["cells"][0]["source"]) or path.stem == "filtered_search"
        first = [cell for cell in stored["cells"][:4] if cell["cell_type"] == "code"]
        assert any("image/png" in o.get("data", {}) for cell in first for o in cell["outputs"]), path
        assert path.stat().st_size < 300_000
