"""What callers may say in more than one form."""

from __future__ import annotations

from typing import Any


def listed(words: Any) -> list[str]:
    """One word, several or none as a list."""
    return [words] if isinstance(words, str) else list(words or [])


def threads(n_jobs: int | None) -> int | None:
    """Threads for the library: None, for all cores, where scikit-learn says None or -1."""
    if n_jobs is None or n_jobs < 0:
        return None
    return max(n_jobs, 1)
