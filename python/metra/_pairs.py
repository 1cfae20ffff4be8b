"""Pairs of vectors, and distances between them by what a model compares by."""

from __future__ import annotations

from typing import Any

import numpy as np


class Distance:
    """The learned distance between two vectors; it can be pickled."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, u: Any, v: Any) -> float:
        left, right = (np.asarray(part, dtype=np.float64)[np.newaxis] for part in (u, v))
        found = self.model.pair_dissimilarity(left, right)
        return float(as_distance(self.model.score, found)[0])


def as_distance(score: str, dissimilarity: np.ndarray) -> np.ndarray:
    """Dissimilarities as distances, where the score has one."""
    if score == "euclid":
        return np.sqrt(np.maximum(dissimilarity, 0.0))
    if score == "cosine":
        return np.maximum(1.0 + dissimilarity, 0.0)
    if score.startswith("blocks"):
        return dissimilarity
    raise ValueError(
        "an inner product is no distance: use pair_score, or fit with score_by='euclid' or 'cosine'"
    )


def two_sides(pairs: Any) -> tuple[Any, Any]:
    """The first and the second vectors of pairs."""
    if isinstance(pairs, tuple) and len(pairs) == 2:
        return pairs
    array = np.asarray(pairs)
    if array.ndim != 3 or array.shape[1] != 2:
        raise ValueError(
            f"expected pairs of vectors of the shape (n_pairs, 2, n_features), or two arrays, but "
            f"found {array.shape}"
        )
    return np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])
