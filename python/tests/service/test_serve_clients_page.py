"""The guide to clients runs as it is written, against a server as it describes it, and prints what it shows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import metra
import pytest
from conftest import write_items
from processes import Metra, Upstream

# Where pages are run and compared.
sys.path.insert(0, str(Path(__file__).parents[1]))
from pages import ROOT, run_page  # noqa: E402

PAGE = ROOT / "docs" / "guide" / "serve-clients.md"
DESCRIBED = "http://127.0.0.1:8080"


def test_the_guide_to_clients_runs(
    program: Metra, source: Upstream, words: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.datasets import load_digits

    for needed in ("langchain_core", "llama_index.core", "openai"):
        pytest.importorskip(needed)
    X, y = load_digits(return_X_y=True)
    learned = metra.Warca(n_components=16, steps=100).fit(X[:1200], y[:1200]).model_
    learned.save(tmp_path / "digits.safetensors")
    write_items(tmp_path / "items.parquet", X[:1200].astype("float32"), y[:1200])
    columns = ("--id", "id", "--label", "label")
    program.run("index", tmp_path / "digits.safetensors", tmp_path / "items.parquet", *columns, "-o", tmp_path / "digits.index")
    words.two.save(tmp_path / "texts.safetensors")
    text = PAGE.read_text(encoding="utf-8")
    models = text.split("```toml\n")[1].split("```")[0]
    (tmp_path / "models.toml").write_text(models, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    options = ("--upstream", source.address + "/v1", "--feedback", tmp_path / "clicks.jsonl")
    with program.serve("--models", tmp_path / "models.toml", *options) as server:
        run_page(PAGE, lambda code: code.replace(DESCRIBED, server.address))


def test_the_guide_names_all_alarms() -> None:
    rules = (ROOT / "deploy" / "prometheus" / "metra-alerts.yml").read_text(encoding="utf-8")
    named = {line.split(":")[1].strip() for line in rules.splitlines() if "- alert:" in line}
    shown = PAGE.read_text(encoding="utf-8")
    assert len(named) == 9 and all(f"| `{name}` |" in shown for name in named)
