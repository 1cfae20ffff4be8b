"""The sets that can be built: where each comes from, what builds it, and the files that it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import covertype, digits, genes, people, pixels, scenes, texts
from .request import Request
from .sources import Source


@dataclass(frozen=True)
class DataSet:
    """One set: its sources, its builder, its tables, and the other files that are checked beside them."""

    sources: tuple[Source, ...]
    build: Callable[[Request], None]
    tables: tuple[str, ...]
    others: tuple[str, ...] = ()


SETS: dict[str, DataSet] = {
    "digits": DataSet((), digits.build, ("digits",)),
    "mnist": DataSet((pixels.MNIST,), pixels.mnist, ("mnist",)),
    "fashion_mnist": DataSet((pixels.FASHION,), pixels.fashion_mnist, ("fashion_mnist",)),
    "clinc150": DataSet((texts.CLINC, texts.MODEL), texts.clinc150, ("clinc150_minilm",)),
    "scifact": DataSet(
        (texts.SCIFACT, texts.MODEL),
        texts.scifact,
        ("scifact_minilm_docs", "scifact_minilm_queries"),
        ("scifact_qrels.tsv", "scifact_minilm.splits.json"),
    ),
    "cranfield": DataSet(
        (texts.CRANFIELD, texts.MODEL),
        texts.cranfield,
        ("cranfield_minilm_docs", "cranfield_minilm_queries"),
        ("cranfield_qrels.tsv",),
    ),
    "viper_stripes2580": DataSet(
        (people.VIPER,), people.viper, ("viper_stripes2580",), ("viper_stripes2580.splits.json",)
    ),
    "prid450s_stripes2580": DataSet(
        (people.PRID,), people.prid450s, ("prid450s_stripes2580",), ("prid450s_stripes2580.splits.json",)
    ),
    "prid2011_stripes2580": DataSet(
        (people.PRID,), people.prid2011, ("prid2011_stripes2580",), ("prid2011_stripes2580.splits.json",)
    ),
    "viper_mdf76": DataSet((people.MDF,), people.viper_mdf76, ("viper_mdf76",), ("viper_mdf76.splits.json",)),
    "osr_gist": DataSet((scenes.SCENES,), scenes.osr_gist, ("osr_gist",), ("osr_gist.splits.json",)),
    "pubfig": DataSet((scenes.PUBFIG,), scenes.pubfig, ("pubfig",), ("pubfig.splits.json",)),
    "yeast": DataSet((genes.MLR,), genes.build, ("yeast",), ("yeast.splits.json",)),
    "covertype15k": DataSet(
        (covertype.FOREST,), covertype.build, ("covertype15k",), ("covertype15k.splits.json",)
    ),
}
