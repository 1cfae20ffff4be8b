"""Changing the embedding model: what `metra migrate` advises from a sample, against what the whole collection says.

    python benches/migration.py METRA docs/results/data/migration.json
    python benches/migration.py METRA docs/results/data/migration.json images

METRA is the command. The first line measures the texts, the second the images; each keeps what the file has of the other. Run by an interpreter that has what `fusion.requirements.txt` names; `METRA_DATA` names the folder of the data.
MiniLM's vectors are the data sets', WordLlama's (256 dimensions) are computed here with the weights of its wheel. Of images two kinds of
features stand for two models: stripes and published features of VIPeR, pixels and GIST of MNIST (computed here by `metra features`). The
sample is a quarter of the items, of VIPeR of the persons, drawn once.
`cargo xtask docs` makes the page of the file.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from text_vectors import answer, arguments, measured_with, small_model, texts_of, vectors_of, write_record

SAMPLE = 0.25
DIGITS = 4000


class Pair(NamedTuple):
    """Files of the same things in two spaces, by the space's name, and the options that say what is right."""

    name: str
    items: dict[str, Path]
    queries: dict[str, Path]
    options: list[str]
    # What is drawn together into the sample; nothing where items are drawn one by one.
    together: np.ndarray | None = None


def write(path: Path, vectors: np.ndarray, **columns: list[str]) -> Path:
    rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), vectors.shape[1])
    pq.write_table(pa.table({**columns, "vector": rows}), path)
    return path


def text_pairs(data: Path, folder: Path) -> list[Pair]:
    llama = small_model()
    pairs = []
    for name in ("scifact", "cranfield"):
        files: dict[str, dict[str, Path]] = {}
        for part in ("queries", "docs"):
            table = pq.read_table(data / f"{name}_minilm_{part}.parquet")
            ids = [str(label) for label in table["label"].to_pylist()]
            spaces = {"minilm": vectors_of(table), "wordllama": llama.embed(texts_of(table))}
            # Documents without a text have no direction.
            kept = np.flatnonzero(np.all([vectors.any(axis=1) for vectors in spaces.values()], axis=0))
            files[part] = {
                space: write(folder / f"{name}_{space}_{part}.parquet", vectors[kept], id=[ids[row] for row in kept])
                for space, vectors in spaces.items()
            }
        options = ["--id", "id", "--qrels", str(data / f"{name}_qrels.tsv")]
        pairs.append(Pair(name, files["docs"], files["queries"], options))
    table = pq.read_table(data / "clinc150_minilm.parquet")
    labels = np.array([str(label) for label in table["label"].to_pylist()])
    # Sentences out of scope are no class, and in splits of their own.
    kept = np.flatnonzero([not split.startswith("oos") for split in table["split"].to_pylist()])
    all_texts = texts_of(table)
    texts = [all_texts[row] for row in kept]
    spaces = {"minilm": vectors_of(table)[kept], "wordllama": llama.embed(texts)}
    columns = {"id": [str(row) for row in kept], "label": labels[kept].tolist()}
    files_of = {
        space: write(folder / f"clinc150_{space}.parquet", vectors, **columns) for space, vectors in spaces.items()
    }
    pairs.append(Pair("clinc150", files_of, {}, ["--id", "id", "--label", "label"]))
    return pairs


def people(data: Path, folder: Path) -> Pair:
    """VIPeR: a person in one camera asks for the same person in the other."""
    files = {}
    for space, name in (("stripes", "viper_stripes2580"), ("mdf76", "viper_mdf76")):
        table = pq.read_table(data / f"{name}.parquet").sort_by([("camera", "ascending"), ("label", "ascending")])
        labels = table["label"].to_pylist()
        columns = {"id": [str(row) for row in range(len(labels))], "label": [str(label) for label in labels]}
        files[space] = write(folder / f"viper_{space}.parquet", vectors_of(table), **columns)
    return Pair("viper", files, {}, ["--id", "id", "--label", "label"], np.array(labels))


def png(pixels: np.ndarray) -> bytes:
    """A grey image."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    height, width = pixels.shape
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def digits(metra: str, data: Path, folder: Path) -> Pair:
    """MNIST: some digits ask for others of their class."""
    table = pq.read_table(data / "mnist.parquet")
    rows = np.sort(np.random.default_rng(2).choice(table.num_rows, DIGITS, replace=False))
    table = table.take(pa.array(rows))
    images = folder / "digits"
    images.mkdir()
    pixels = vectors_of(table)
    for number, image in enumerate(pixels.astype(np.uint8)):
        (images / f"{number:05}.png").write_bytes(png(image.reshape(28, 28)))
    answer(metra, "features", "gist", images, "-o", folder / "gist.parquet")
    gist = vectors_of(pq.read_table(folder / "gist.parquet"))
    columns = {"id": [str(row) for row in rows], "label": [str(label) for label in table["label"].to_pylist()]}
    spaces = {"pixels": pixels, "gist": gist}
    files = {space: write(folder / f"mnist_{space}.parquet", vectors, **columns) for space, vectors in spaces.items()}
    return Pair("mnist", files, {}, ["--id", "id", "--label", "label"])


def drawn(pair: Pair) -> np.ndarray:
    """The items of the sample."""
    draw = np.random.default_rng(1)
    if pair.together is None:
        rows = pq.read_metadata(next(iter(pair.items.values()))).num_rows
        return np.sort(draw.choice(rows, round(rows * SAMPLE), replace=False))
    groups = np.unique(pair.together)
    chosen = draw.choice(groups, round(len(groups) * SAMPLE), replace=False)
    return np.flatnonzero(np.isin(pair.together, chosen))


def sampled(path: Path, folder: Path, keep: np.ndarray) -> Path:
    """The file with these rows alone."""
    target = folder / path.name
    pq.write_table(pq.read_table(path).take(pa.array(keep)), target)
    return target


def migrate(metra: str, pair: Pair, old: str, new: str, items: dict[str, Path]) -> dict[str, Any]:
    queries = ["--old-queries", pair.queries[old], "--new-queries", pair.queries[new]] if pair.queries else []
    return answer(metra, "migrate", items[old], items[new], *pair.options, *queries)


def summary(found: dict[str, Any]) -> dict[str, Any]:
    criterion = "ndcg@10" if "ndcg@10" in found["lines"][0]["measures"] else "map"
    return {
        "items": found["items"],
        "queries": found["queries"],
        "measure": criterion,
        "means": {line["name"]: round(line["measures"][criterion], 6) for line in found["lines"]},
        "gains": {
            row["measure"]: {key: round(row[key], 6) for key in ("difference", "low", "high")} for row in found["gains"]
        },
        "choice": found["choice"],
        "advice": found["advice"],
    }


def studied(metra: str, pairs: list[Pair], folder: Path) -> list[dict[str, Any]]:
    """Both directions of every pair, by all items and by the sample."""
    (folder / "sample").mkdir()
    records = []
    for pair in pairs:
        first, second = pair.items
        keep = drawn(pair)
        few = {space: sampled(path, folder / "sample", keep) for space, path in pair.items.items()}
        for old, new in ((first, second), (second, first)):
            whole = summary(migrate(metra, pair, old, new, pair.items))
            part = summary(migrate(metra, pair, old, new, few))
            records.append({"name": f"{pair.name} {old} to {new}", "whole": whole, "sample": part})
            print(records[-1]["name"], whole["means"], whole["choice"], part["choice"], flush=True)
    return records


def main() -> None:
    of_images = sys.argv[3:] == ["images"]
    if of_images:
        del sys.argv[3:]
    metra, data, output = arguments(__doc__)
    record = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if of_images:
            pairs = [people(data, folder), digits(metra, data, folder)]
            record["images"] = {**measured_with(metra, "numpy"), "results": studied(metra, pairs, folder)}
        else:
            pairs = text_pairs(data, folder)
            record.update({**measured_with(metra, "wordllama"), "results": studied(metra, pairs, folder)})
    write_record(output, record)


if __name__ == "__main__":
    main()
