"""LangChain and LlamaIndex find documents by metra's embeddings, without a model of language and without a network."""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import Iterator
from typing import Any

import metra
import pytest
from processes import Metra, Process, Upstream


@pytest.fixture()
def front(program: Metra, source: Upstream, words: Any) -> Iterator[Process]:
    """A server whose model maps questions and documents otherwise."""
    with program.serve(words.two_file, "--upstream", source.address + "/v1") as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses outside this machine are errors."""
    connect = socket.socket.connect

    def near(self: socket.socket, address: Any) -> None:
        assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1"), f"{address} was asked"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", near)


def test_langchain_finds_documents(front: Process, words: Any) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.vectorstores import InMemoryVectorStore
    from metra.langchain import MetraEmbeddings

    embeddings = MetraEmbeddings(front.address)
    vectors = embeddings.embed_documents(words.documents[:3])
    assert vectors == words.two.transform_items(words.embed(words.documents[:3])).tolist()
    assert embeddings.embed_query("a") == words.two.transform_queries(words.embed(["a"]))[0].tolist()
    assert embeddings.embed_documents([]) == []
    assert asyncio.run(embeddings.aembed_query("a")) == embeddings.embed_query("a")
    assert asyncio.run(embeddings.aembed_documents(["a", "b"])) == embeddings.embed_documents(["a", "b"])
    store = InMemoryVectorStore(embeddings)
    store.add_texts(words.documents)
    right = 0
    for question, subject in words.asked.items():
        found = store.similarity_search(question, k=3)
        right += sum(words.about[document.page_content] == subject for document in found)
    # Questions were learned from; by chance one in six is right.
    assert right >= 0.9 * 3 * len(words.asked)


def test_llama_index_finds_nodes(front: Process, source: Upstream, words: Any) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode
    from metra.llama_index import MetraEmbedding

    embedding = MetraEmbedding(front.address, embed_batch_size=50)
    texts = words.documents[:3]
    assert embedding.get_text_embedding(texts[0]) == words.two.transform_items(words.embed(texts[:1]))[0].tolist()
    assert embedding.get_query_embedding("a") == words.two.transform_queries(words.embed(["a"]))[0].tolist()
    assert asyncio.run(embedding.aget_text_embedding("a")) == embedding.get_text_embedding("a")
    assert asyncio.run(embedding.aget_query_embedding("a")) == embedding.get_query_embedding("a")
    batch = asyncio.run(embedding.aget_text_embedding_batch(texts))
    assert batch == embedding.get_text_embedding_batch(texts)
    again = pickle.loads(pickle.dumps(embedding))
    assert again.get_query_embedding("a") == embedding.get_query_embedding("a")
    assert again.embed_batch_size == 50 and embedding.to_dict()["class_name"] == "MetraEmbedding"
    source.control()
    nodes = [TextNode(text=text) for text in words.documents]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    # 120 nodes in batches of 50, and no request for each.
    assert [request["texts"] for request in source.control()["requests"]] == [50, 50, 20]
    retriever = index.as_retriever(similarity_top_k=3)
    right = 0
    for question, subject in words.asked.items():
        right += sum(words.about[found.text] == subject for found in retriever.retrieve(question))
    assert right >= 0.9 * 3 * len(words.asked)


def test_errors_of_the_server_reach_the_application(front: Process, source: Upstream) -> None:
    pytest.importorskip("langchain_core")
    from metra.langchain import MetraEmbeddings

    source.control(lasting={"status": 400})
    with pytest.raises(metra.ServerError, match="upstream"):
        MetraEmbeddings(front.address).embed_query("a")
