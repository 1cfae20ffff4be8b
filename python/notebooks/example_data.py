"""Data of the notebooks: measured sets where the environment variable METRA_DATA names their folder, and sets
of the same kind that are made here where it does not. In made sets there is something to learn by
construction: their figures show how to read the output, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np


def documents() -> tuple[Any, ...]:
    """Items, queries, judgements (query, item, grade) by row numbers, and which queries to learn from.

    SciFact: scientific claims, the abstracts they cite, vectors of all-MiniLM-L6-v2.
    """
    return _measured_or_made(_scifact, _made_documents)


def people() -> tuple[Any, ...]:
    """Vectors of images, person, camera, and which images to learn from.

    VIPeR: 632 people before two cameras, 2,580 numbers an image.
    """
    return _measured_or_made(_viper, _made_people)


def scenes() -> tuple[Any, ...]:
    """Vectors of images, scene, orderings of scenes by attribute, rows to learn from, and rows to judge by.

    Outdoor scenes (OSR): 2,688 images as GIST, 8 classes, 6 attributes. All numbers are positive.
    """
    return _measured_or_made(_osr, _made_scenes)


def _measured_or_made(measured: Any, made: Any) -> tuple[Any, ...]:
    folder = os.environ.get("METRA_DATA")
    return measured(Path(folder)) if folder else made()


def _vectors(table: Any) -> np.ndarray:
    # One list of numbers a row, in one piece: a view on Arrow's memory.
    return table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)


def _scifact(folder: Path) -> tuple[Any, ...]:
    import pyarrow.parquet as parquet

    items = parquet.read_table(folder / "scifact_minilm_docs.parquet")
    queries = parquet.read_table(folder / "scifact_minilm_queries.parquet")
    # Judgements name documents and claims by their own identifiers: make row numbers of them.
    item_row = {name: row for row, name in enumerate(items["label"].to_pylist())}
    query_row = {name: row for row, name in enumerate(queries["label"].to_pylist())}
    lines = np.loadtxt(folder / "scifact_qrels.tsv", dtype=np.int64, usecols=(0, 2, 3))
    qrels = np.array([(query_row[q], item_row[i], grade) for q, i, grade in lines])
    train = np.array(queries["split"].to_pylist()) == "train"
    return _vectors(items), _vectors(queries), qrels, train


def _made_documents(n_items: int = 1200, n_queries: int = 600, columns: int = 64) -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    topics = random.normal(size=(40, columns))
    items = topics[random.integers(0, 40, n_items)] + 0.6 * random.normal(size=(n_items, columns))
    # Queries are blurred, and three times as much in columns where manner, not matter, shows.
    blur = np.where(np.arange(columns) < 12, 3.6, 1.2)
    # Some documents are asked for again and again, most never.
    wanted = (n_items * random.random(n_queries) ** 3).astype(int)
    queries = items[wanted] + blur * random.normal(size=(n_queries, columns))
    qrels = np.column_stack([np.arange(n_queries), wanted, np.ones(n_queries, dtype=int)])
    return items.astype(np.float32), queries.astype(np.float32), qrels, np.arange(n_queries) < 400


def _viper(folder: Path) -> tuple[Any, ...]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "viper_stripes2580.parquet")
    X = _vectors(table)
    splits = json.loads((folder / "viper_stripes2580.splits.json").read_text())["splits"]
    person = table["label"].to_numpy()
    return X, person, table["camera"].to_numpy(), np.isin(person, splits[0]["train"])


def _made_people(people: int = 300, bins: int = 240, stripes: int = 6) -> tuple[Any, ...]:
    random = np.random.default_rng(3)
    look = random.normal(size=(people, 20)) @ random.normal(size=(20, bins)) / np.sqrt(20)
    # Pose and background change more from image to image than people differ.
    change = random.normal(size=(30, bins)) / np.sqrt(30)
    light = random.normal(size=(2, bins))
    images = []
    for camera in (0, 1):
        pose = random.normal(size=(people, 30)) @ change
        counts = random.poisson(2 * np.exp(0.5 * look + 1.2 * pose + light[camera]))
        counts = counts.astype(np.float32).reshape(people, stripes, -1)
        total = np.maximum(counts.sum(axis=2, keepdims=True), 1)
        images.append((counts / total).reshape(people, bins))
    person = np.tile(np.arange(people), 2)
    return np.concatenate(images), person, np.repeat([0, 1], people), person < people // 2


def _osr(folder: Path) -> tuple[Any, ...]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "osr_gist.parquet")
    about = json.loads((folder / "osr_gist.json").read_text())
    splits = json.loads((folder / "osr_gist.splits.json").read_text())["splits"]
    X = _vectors(table)
    scene = np.array(about["classes"])[table["label"].to_numpy()]
    # The file has the first letter of every class.
    whole = {name[0].upper(): name for name in about["classes"]}
    orderings = {
        attribute: re.sub("[A-Z]", lambda letter: whole[letter[0]], order)
        for attribute, order in about["relative_ordering_text"].items()
    }
    return X, scene, orderings, np.array(splits[0]["train"]), np.array(splits[0]["test"])


def _made_scenes(rows: int = 1200, columns: int = 80) -> tuple[Any, ...]:
    orderings = {
        "natural": "tower<street<highway<coast~forest",
        "open": "forest~tower<street<highway<coast",
        "busy": "coast<forest<highway<tower<street",
    }
    random = np.random.default_rng(5)
    strength = {}
    for place, order in enumerate(orderings.values()):
        for level, alike in enumerate(order.split("<")):
            for name in alike.split("~"):
                strength.setdefault(name, np.zeros(3))[place] = level
    scene = random.choice(sorted(strength), rows)
    # Images of a class vary in their attributes, and more in eight other things.
    shown = np.stack([strength[name] for name in scene]) + 0.5 * random.normal(size=(rows, 3))
    X = shown @ random.normal(size=(3, columns)) + random.normal(size=(rows, columns))
    X += 3 * random.normal(size=(rows, 8)) @ random.normal(size=(8, columns))
    order = random.permutation(rows)
    X -= X.min()
    return X.astype(np.float32), scene, orderings, order[:150], order[150:]
