"""What callers may say in more than one form."""

from __future__ import annotations

import os
from typing import Any

from ._metra import ParameterError

# Other names of scores, as stores and scikit-learn have them.
_SCORES = {"l2": "euclid", "euclidean": "euclid", "ip": "dot", "inner_product": "dot"}


def listed(words: Any) -> list[str]:
    """One word, several or none as a list."""
    return [words] if isinstance(words, str) else list(words or [])


def score_name(score: str) -> str:
    """The library's name of a score."""
    return _SCORES.get(score, score)


def threads(n_jobs: int | None) -> int | None:
    """Threads for the library, None for all cores; below zero as joblib counts: -2 leaves one free."""
    if n_jobs is None or n_jobs == -1:
        return None
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0:
        raise ParameterError(
            f"n_jobs must be a number of threads from 1, -1 or None for all cores, but is {n_jobs!r}"
        )
    jobs = int(n_jobs)
    return jobs if jobs > 0 else max((os.cpu_count() or 1) + 1 + jobs, 1)
