"""The one law all stores are held to: the store's order is the model's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import metra
import numpy as np

ITEMS, QUERIES, DIM, K = 1600, 7, 12, 10


@dataclass(frozen=True)
class Made:
    """Items, queries and one class a row, from one drawing."""

    items: np.ndarray
    queries: np.ndarray
    y: np.ndarray
    query_y: np.ndarray


MODELS = ("warca", "cosine", "kernel", "prepared", "slr", "adapter")


def assert_same_order(
    model: Any, made: Made, ids: np.ndarray, scores: np.ndarray, k: int = K, least: float = 1.0
) -> None:
    """The store found what exact search finds, wherever scores differ by 1e-5 of their range.

    `ids` are row numbers of `made.items`. Scores must rise, ids be different, and the i-th of the
    store must be as near as the i-th of `Model.search`, by the model's own dissimilarities. Stores
    that have approximate search alone must find at least the share `least` of the true ones, and
    order what they find as the model does.
    """
    all_scores = model.dissimilarity(made.queries, made.items).astype(np.float64)
    exact, _ = model.search(made.queries, made.items, k)
    assert ids.shape == (len(made.queries), k) and scores.shape == ids.shape
    assert scores.dtype == np.float32
    hits = 0
    for query, row in enumerate(np.asarray(ids, dtype=np.int64)):
        near, best = all_scores[query], exact[query].astype(np.int64)
        tolerance = 1e-5 * (near.max() - near.min())
        assert len(set(row.tolist())) == k
        assert np.all(np.diff(scores[query]) >= 0)
        assert np.all(np.diff(near[row]) >= -tolerance), (query, row, near[row])
        wrong = np.abs(near[row] - near[best]) > tolerance
        assert least < 1.0 or not wrong.any(), (query, row, best, near[row], near[best])
        hits += int(np.sum(near[row] <= near[best[-1]] + tolerance))
    assert hits >= least * ids.size, f"{hits} of {ids.size} are among the nearest"


def assert_own_scores(model: Any, made: Made, ids: np.ndarray, scores: np.ndarray) -> None:
    """Scores are the model's own dissimilarities, as under the way ``mapped``."""
    all_scores = model.dissimilarity(made.queries, made.items)
    rows = np.asarray(ids, dtype=np.int64)
    own = np.take_along_axis(all_scores, rows, axis=1)
    np.testing.assert_allclose(scores, own, atol=2e-5 * np.ptp(all_scores))


def reloaded(model: Any, folder: Path) -> Any:
    """The same model through a file."""
    model.save(folder / "model.safetensors")
    return metra.load(folder / "model.safetensors")
