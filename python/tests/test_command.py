"""The command inside the package: the same as the program, as a script and as a module."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import metra
import numpy as np
import pytest
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
MODULE = [sys.executable, "-m", "metra"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    np.save(folder / "x.npy", X.astype(np.float32))
    np.save(folder / "y.npy", y)
    return folder


def run(folder, *words, program=MODULE):
    return subprocess.run([*program, *words], cwd=folder, capture_output=True, text=True)


def test_script_and_module_are_the_program(command, folder):
    script = shutil.which("metra", path=sysconfig.get_path("scripts"))
    assert script is not None
    words = ["train", "x.npy", "--label", "y.npy", "--method", "lda", "--holdout", "none", "-o"]
    written = []
    for number, program in enumerate(([command], MODULE, [script])):
        ran = run(folder, *words, f"{number}.safetensors", program=program)
        assert ran.returncode == 0, ran.stderr
        written.append((folder / f"{number}.safetensors").read_bytes())
    assert written[0] == written[1] == written[2]
    assert run(folder, "--version").stdout.split() == ["metra", metra.__version__]


def test_exit_codes(folder):
    assert run(folder).returncode == 2
    wrong = run(folder, "trian")
    assert wrong.returncode == 2 and "train" in wrong.stderr
    assert run(folder, "inspect", "none.safetensors").returncode == 1
    assert run(folder, "gate", "--help").returncode == 0
    metra.Lda(n_components=4).fit(X.astype(np.float32), y).model_.save(folder / "seen.safetensors")
    words = ["gate", "--base", "euclid", "--candidate", "seen.safetensors", "--data", "x.npy"]
    assert run(folder, *words, "--label", "y.npy").returncode == 8


def test_work_in_a_process_of_its_own(folder):
    """`compare` measures the cost of a fit in another process, which must be this command too."""
    words = ["compare", "x.npy", "--label", "y.npy", "--methods", "euclid,lda", "--trials", "1"]
    ran = run(folder, *words, "-o", "found")
    assert ran.returncode == 0, ran.stderr
    assert "could not be measured" not in ran.stderr
    costs = [json.loads(p.read_text()) for p in (folder / "found").rglob("*.json") if "cost" in p.name]
    assert costs and "lda" in costs[0]["lines"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks into /proc")
def test_ctrl_c_ends_it(folder):
    words = ["train", "x.npy", "--label", "y.npy", "--method", "warca", "--set", "steps=100000000"]
    running = subprocess.Popen(
        [*MODULE, *words, "-o", "never.safetensors"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    # It listens by a thread of its own.
    status = Path(f"/proc/{running.pid}/status")
    for _ in range(600):
        if int(re.search(r"Threads:\s+(\d+)", status.read_text())[1]) > 1:
            break
        time.sleep(0.1)
    os.kill(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=20)
    assert running.returncode == 130, told
    assert "interrupted" in told and not (folder / "never.safetensors").exists()
