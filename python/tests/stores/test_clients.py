"""What `open` is given in place of a client."""

import asyncio

import pytest
from metra.stores import chroma, lancedb, milvus, qdrant


def test_asynchronous_clients_are_refused(models, tmp_path):
    model = models["warca"]
    qdrant_client = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    client = qdrant_client.AsyncQdrantClient(":memory:")
    with pytest.raises(ValueError, match="QdrantClient, but found AsyncQdrantClient: async.*thread"):
        qdrant.open(model, client, "docs")
    chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed")
    # A coroutine until it is awaited, which is easily forgotten.
    with pytest.raises(ValueError, match="HttpClient, but found coroutine"):
        chroma.open(model, chromadb.AsyncHttpClient(), "docs")
    engine = pytest.importorskip("lancedb", reason="lancedb is not installed")

    async def attempt():
        lancedb.open(model, await engine.connect_async(tmp_path), "docs")

    with pytest.raises(ValueError, match="lancedb.connect gives, but found AsyncConnection"):
        asyncio.run(attempt())
    pymilvus = pytest.importorskip("pymilvus", reason="pymilvus is not installed")
    client = pymilvus.AsyncMilvusClient.__new__(pymilvus.AsyncMilvusClient)
    with pytest.raises(ValueError, match="MilvusClient, but found AsyncMilvusClient"):
        milvus.open(model, client, "docs")
