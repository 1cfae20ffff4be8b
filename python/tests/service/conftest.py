"""Models of every kind that a server treats differently, in one server; a server of embeddings, and models of its texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import metra
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import Metra, Process, Upstream, upstream
from texts import DOCUMENTS, QUESTIONS
from upstream import load

CAMERAS = ("north", "south", "east")


@pytest.fixture(scope="session")
def program(command: str, tmp_path_factory: pytest.TempPathFactory) -> Metra:
    """The command, where the package's own is not held against itself."""
    return Metra(command, tmp_path_factory.mktemp("logs"))


def write_items(path: Path, vectors: np.ndarray, labels: Any) -> None:
    """A table of items with ids and labels."""
    table = {
        "id": [f"item-{row}" for row in range(len(vectors))],
        "label": [str(label) for label in labels],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
    }
    pq.write_table(pa.table(table), path)


@pytest.fixture(scope="session")
def models(nuisance: Any) -> dict[str, metra.Model]:
    """A model of every kind that a server treats differently."""
    X, y = nuisance
    cameras = [CAMERAS[row % 3] for row in range(len(y))]
    few = range(0, len(y), 6)
    qrels = [(query, item) for query in range(len(few)) for item in range(len(y)) if y[few[query]] == y[item]]
    far = X.astype(np.float64) + 1e9
    calibrated = metra.Lda(n_components=4).fit(X[::2], y[::2])
    calibrated.calibrate_threshold(X[1::2], y[1::2], false_match_rate=0.05)
    learned = {
        "plain": metra.Warca(n_components=5, steps=60).fit(X, y),
        "sides": metra.Slr(n_components=4, sides="two", score_by="dot").fit(X, queries=X[::6], qrels=qrels),
        "bits": metra.SupCon(n_components=16, steps=40, code="bits").fit(X, y),
        "bytes": metra.Pca(n_components=5, code="int8", score_by="euclid").fit(X, y),
        "groups": metra.Lda(n_components=4, prepare="centre-groups").fit(X, y, cameras=cameras),
        # Its columns vary little around a large number, which f32 cannot hold: the model takes it from them first.
        "far": metra.Lda(n_components=4).fit(far, y),
        "calibrated": calibrated,
    }
    return {name: estimator.model_ for name, estimator in learned.items()}


@pytest.fixture(scope="session")
def served(
    program: Metra, models: dict[str, metra.Model], nuisance: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    """A server of all models, some with an index of the same items."""
    folder = tmp_path_factory.mktemp("served")
    X, y = nuisance
    write_items(folder / "items.parquet", X, y)
    lines = []
    for name, model in models.items():
        model.save(folder / f"{name}.safetensors")
        lines += ["[[model]]", f'name = "{name}"', 'version = "1"', f'file = "{name}.safetensors"']
        if name in ("plain", "sides", "bits"):
            index = folder / f"{name}.index"
            columns = ("--id", "id", "--label", "label")
            program.run("index", folder / f"{name}.safetensors", folder / "items.parquet", *columns, "-o", index)
            lines.append(f'index = "{name}.index"')
    (folder / "models.toml").write_text("\n".join(lines) + "\n")
    with program.serve("--models", folder / "models.toml", "--feedback", folder / "clicks.jsonl") as server:
        server.folder = folder
        yield server


@pytest.fixture(scope="session")
def embeddings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    """A server of embeddings."""
    with upstream(tmp_path_factory.mktemp("upstream") / "upstream.log") as server:
        yield server


@pytest.fixture()
def source(embeddings: Upstream) -> Upstream:
    """The server of embeddings, which does not fail and was asked nothing."""
    embeddings.control()
    return embeddings


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Texts, their vectors by WordLlama, and models of them: one map for both sides, and one for each."""
    folder = tmp_path_factory.mktemp("words")
    llama = load()
    documents, questions = ([text for text, _ in texts] for texts in (DOCUMENTS, QUESTIONS))
    about, asked = ([name for _, name in texts] for texts in (DOCUMENTS, QUESTIONS))
    items, queries = (np.asarray(llama.embed(texts), dtype=np.float32) for texts in (documents, questions))
    qrels = [(q, i) for q in range(len(asked)) for i in range(len(about)) if asked[q] == about[i]]
    one = metra.Lda(n_components=5, score_by="cosine").fit(items, np.array(about)).model_
    two = metra.Slr(n_components=8, sides="two", score_by="cosine").fit(items, queries=queries, qrels=qrels).model_
    for name, model in (("one", one), ("two", two)):
        model.save(folder / f"{name}.safetensors")
    return SimpleNamespace(
        folder=folder,
        embed=lambda texts: np.asarray(llama.embed(list(texts)), dtype=np.float32),
        documents=documents,
        about=dict(zip(documents, about)),
        questions=questions,
        asked=dict(zip(questions, asked)),
        one=one,
        two=two,
        one_file=folder / "one.safetensors",
        two_file=folder / "two.safetensors",
    )
