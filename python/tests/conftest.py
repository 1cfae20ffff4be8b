"""What several tests share: a set with a known answer, and where the command is."""

import os
import shutil
import sysconfig
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def nuisance():
    """Classes in four columns, louder noise in twelve: a good metric drops the noise."""
    random = np.random.default_rng(7)
    y = np.repeat(np.arange(30), 12)
    centres = random.normal(size=(30, 4)) * 2
    signal = centres[y] + random.normal(size=(len(y), 4)) * 0.5
    noise = random.normal(size=(len(y), 12)) * 4
    return np.hstack([signal, noise]).astype(np.float32), y


@pytest.fixture(scope="session")
def command():
    """The command `metra`: named by METRA_COMMAND, or on the path. The package's own is not held against itself."""
    found = os.environ.get("METRA_COMMAND") or shutil.which("metra")
    if found is None or Path(found).parent == Path(sysconfig.get_path("scripts")):
        pytest.skip("the command metra is not there: set METRA_COMMAND to its path")
    return str(Path(found).resolve())
