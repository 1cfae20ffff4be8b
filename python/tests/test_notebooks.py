"""The notebooks run, on data they make and, where METRA_DATA is set, on the files they name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")
nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")
pytest.importorskip("ipykernel", reason="notebooks need ipykernel")
pytest.importorskip("matplotlib", reason="notebooks need matplotlib")

FOLDER = Path(__file__).parents[1] / "notebooks"
NAMES = ["adapters", "re_identification", "relative_attributes"]

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
    assert "better" in printed(done)
    assert list(tmp_path.iterdir()) == [], "a notebook left files where it was opened"


@pytest.mark.parametrize("name", NAMES)
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
    # Either verdict will do: what was measured is not for a test to wish for.
    assert "better" in printed(done) or "no evidence" in printed(done)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_stored_without_outputs(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside an installed package")
    stored = json.loads(path.read_text(encoding="utf-8"))
    for cell in stored["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert path.stat().st_size < 30_000
