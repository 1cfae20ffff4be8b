"""Features of images by the command `metra`."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from .request import Failure
from .sources import run
from .tables import read_vectors


def features(kind: str, paths: Sequence[Path]) -> np.ndarray:
    """Vectors of the images, in their order."""
    if shutil.which("metra") is None:
        raise Failure("the command metra is not on PATH: cargo build --release, then add target/release to PATH")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listed, out = folder / "list.csv", folder / "features.parquet"
        # A list rather than folders: rows then keep an order that is not that of the paths.
        with listed.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["path"], *([str(path.resolve())] for path in paths)])
        run(["metra", "features", kind, "--manifest", str(listed), "-o", str(out)])
        vectors = read_vectors(pq.read_table(out))
    return vectors.astype(np.float32)


def shrunk(paths: Sequence[Path], folder: Path, width: int, height: int) -> list[Path]:
    """Images brought to one size by averaging areas, as PNG files in a folder."""
    import cv2

    found = []
    for number, path in enumerate(paths):
        # The program's own warning would not say what to do.
        image = cv2.imread(str(path)) if path.stat().st_size else None
        if image is None:
            raise Failure(f"{path} cannot be read as an image: fetch it anew")
        found.append(folder / f"{number}.png")
        cv2.imwrite(str(found[-1]), cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA))
    return found


def sorted_images(folder: Path, ending: str, expected: int) -> list[Path]:
    """Images of a folder by name. Their number is checked: labels are counted from their order."""
    found = sorted(folder.glob(f"*{ending}"))
    if len(found) != expected:
        raise Failure(f"expected {expected} files *{ending} in {folder}, but found {len(found)}: fetch it anew")
    return found
