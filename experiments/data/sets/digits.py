"""Digits: the 1,797 images that scikit-learn comes with. The repository has them as `examples/data/digits.parquet`."""

from __future__ import annotations

import numpy as np

from .request import Request
from .tables import write_table


def build(request: Request) -> None:
    from sklearn.datasets import load_digits

    vectors, labels = load_digits(return_X_y=True)
    # Values are whole numbers from 0 to 16.
    write_table(request.output / "digits.parquet", vectors.astype(np.uint8), labels)
