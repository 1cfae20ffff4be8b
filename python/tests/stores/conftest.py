"""Made data, and a model of every kind that a plan treats differently.

Engines and servers are real; each is started by a fixture of its own test file on a free port and
in a temporary folder, and stopped at the end.
"""

from __future__ import annotations

from typing import Any

import metra
import numpy as np
import pytest
from law import DIM, ITEMS, MODELS, QUERIES, Made


@pytest.fixture(scope="session")
def made() -> Made:
    """Twenty classes in 12 positive columns, for square roots; more items than one batch holds."""
    random = np.random.default_rng(5)
    middles = random.uniform(1.0, 3.0, size=(20, DIM))

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.arange(count) % 20
        spread = random.normal(scale=0.4, size=(count, DIM))
        return np.abs(middles[y] + spread).astype(np.float32), y

    items, y = draw(ITEMS)
    queries, query_y = draw(QUERIES)
    return Made(items, queries, y, query_y)


def _models(made: Made) -> dict[str, Any]:
    X, y = made.items[:400], made.y[:400]
    qrels = [(q, i) for q in range(QUERIES) for i in range(400) if made.query_y[q] == y[i]]
    learned = {
        # Lengths and places of mapped vectors count: l2.
        "warca": metra.Warca(n_components=5, steps=60).fit(X, y),
        "cosine": metra.Warca(n_components=5, steps=60, score_by="cosine").fit(X, y),
        # No affine map: only mapped vectors can be stored.
        "kernel": metra.KernelWarca(n_components=4, landmarks=60, steps=20).fit(X, y),
        "prepared": metra.Kissme(n_components=6, prepare="sqrt+centre").fit(X, y),
        # A map each for queries and items, compared by inner product.
        "slr": metra.Slr(n_components=4, sides="two", score_by="dot").fit(
            X, queries=made.queries, qrels=qrels
        ),
        # Items stay as they are.
        "adapter": metra.SlrAdapter(score_by="dot").fit(X, queries=made.queries, qrels=qrels),
    }
    return {name: estimator.model_ for name, estimator in learned.items()}


@pytest.fixture(scope="session")
def models(made: Made) -> dict[str, Any]:
    """A model of every kind that a plan treats differently."""
    found = _models(made)
    assert tuple(found) == MODELS
    return found
