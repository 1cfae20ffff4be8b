"""Embeddings for LlamaIndex: texts go to ``metra serve``, which asks its upstream and maps the vectors.

Needs ``pip install "metra[llama-index]"``.
"""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from .client import Client

__all__ = ["MetraEmbedding"]


class MetraEmbedding(BaseEmbedding):
    """Texts of nodes are mapped as items, and queries as queries.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8080``.
    embed_batch_size : int, default=64
        Texts that are sent at once.
    **options
        As for `metra.Client`.
    """

    _client: Client = PrivateAttr()

    def __init__(self, address: str, embed_batch_size: int = 64, **options: Any) -> None:
        super().__init__(model_name=options.get("model") or "metra", embed_batch_size=embed_batch_size)
        self._client = Client(address, **options)

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex stores it.

        Returns
        -------
        str
            The name.
        """
        return "MetraEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._client.embed(query, side="query")[0].tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._client.embed(text, side="item")[0].tolist()

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._client.embed(texts, side="item").tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        # One request for all: what is inherited sends one for each.
        return await asyncio.to_thread(self._get_text_embeddings, texts)
