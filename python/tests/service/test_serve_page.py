"""The guide to `metra serve` runs as it is written: its commands, its requests by curl, its Python."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import Metra, Upstream

# Where pages are run and compared.
sys.path.insert(0, str(Path(__file__).parents[1]))
from pages import ROOT, run_page  # noqa: E402

PAGE = ROOT / "docs" / "guide" / "serve.md"
DESCRIBED = "http://127.0.0.1:8080"


def lines(block: str) -> list[str]:
    """Commands of a block, each as one line."""
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def shell_blocks() -> list[str]:
    """Blocks without a language, which are commands."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for language, block in found if not language]


def test_the_guide_runs(
    program: Metra, source: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shutil.which("curl"), "the examples need curl"
    monkeypatch.chdir(tmp_path)
    program.run("examples")
    commands = [shlex.split(line) for block in shell_blocks() for line in lines(block) if "metra serve" not in line]
    setup = [words[1:] for words in commands if words[0] == "metra"]
    assert [words[0] for words in setup] == ["train", "index"]
    for words in setup:
        program.run(*words)
    requests = [words for words in commands if words[0] == "curl"]
    assert len(requests) >= 3
    numbers = ", ".join(["0.5"] * 64)
    with program.serve("m.safetensors", "--index", "digits.index") as server:
        for words in requests:
            words = [word.replace(DESCRIBED, server.address).replace("…64 numbers…", numbers) for word in words]
            answer = subprocess.run([*words, "--fail-with-body"], capture_output=True, text=True, timeout=60)
            assert answer.returncode == 0, answer.stdout
            assert json.loads(answer.stdout)
        run_page(PAGE, lambda code: code.replace(DESCRIBED, server.address))


def test_every_server_of_the_guide_starts(
    program: Metra, source: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program.run("examples")
    data = "examples/data/digits.parquet"
    columns = (data, "--label", "label")
    program.run("train", *columns, "--method", "lda", "--rank", "9", "-o", "m.safetensors")
    program.run("index", "m.safetensors", *columns, "-o", "digits.index")
    shutil.copy("m.safetensors", "candidate.safetensors")
    (tmp_path / "models.toml").write_text(PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0])
    served = [line for block in shell_blocks() for line in lines(block) if "metra serve" in line]
    assert len(served) >= 4
    for line in served:
        words = shlex.split(line)
        start = words.index("serve")
        variables = dict(word.split("=", 1) for word in words[: start - 1])
        # The addresses of the guide are nobody's.
        options = [re.sub(r"^https://\S+/v1$", source.address + "/v1", word) for word in words[start + 1 :]]
        with program.serve(*options, **variables) as server:
            assert json.loads(server.get("/v1/models"))["data"], line
