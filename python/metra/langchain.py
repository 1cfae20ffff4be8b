"""Embeddings for LangChain: texts go to ``metra serve``, which asks its upstream and maps the vectors.

Needs ``pip install "metra[langchain]"``.
"""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from .client import Client

__all__ = ["MetraEmbeddings"]


class MetraEmbeddings(Embeddings):
    """Documents are mapped as items, and queries as queries.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8080``.
    **options
        As for `metra.Client`.

    Attributes
    ----------
    client : Client
        What asks the server.
    """

    def __init__(self, address: str, **options: Any) -> None:
        self.client = Client(address, **options)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The mapped vectors of documents.

        Parameters
        ----------
        texts : list of str
            The documents.

        Returns
        -------
        list of list of float
            One vector a document.
        """
        return self.client.embed(texts, side="item").tolist() if texts else []

    def embed_query(self, text: str) -> list[float]:
        """The mapped vector of a query.

        Parameters
        ----------
        text : str
            The query.

        Returns
        -------
        list of float
            Its vector.
        """
        return self.client.embed(text, side="query")[0].tolist()
