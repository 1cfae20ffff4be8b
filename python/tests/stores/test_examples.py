"""The examples in the docstrings of stores that need no server."""

import doctest
import importlib

import pytest

CLIENTS = {
    "chroma": "chromadb",
    "faiss": "faiss",
    "lancedb": "lancedb",
    "qdrant": "qdrant_client",
}


@pytest.mark.parametrize("store", CLIENTS)
def test_examples(store, tmp_path, monkeypatch):
    pytest.importorskip(CLIENTS[store], reason=f"the client of {store} is not installed")
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(f"metra.stores.{store}"))
    assert found.attempted > 0 and found.failed == 0
