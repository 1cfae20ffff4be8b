"""Examples in docstrings of stores run where the store's client is installed."""

from importlib.util import find_spec

_CLIENTS = {
    "chroma": "chromadb",
    "faiss": "faiss",
    "lancedb": "lancedb",
    "milvus": "pymilvus",
    "pgvector": "psycopg",
    "qdrant": "qdrant_client",
}

collect_ignore = [
    f"metra/stores/{store}.py" for store, client in _CLIENTS.items() if find_spec(client) is None
]
