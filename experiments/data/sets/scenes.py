"""Relative attributes: outdoor scenes (OSR) as GIST, and the authors' features of public figures (PubFig)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .images import features, sorted_images
from .request import Request
from .sources import Source
from .tables import few_a_class, write_json, write_splits, write_table

SCENES = Source(
    "github", "lionelmessi6410/Scene-Recognition-with-Bag-of-Words", "1bbc11cd060f792b54b86baa8a5f7483133b9f2c"
)
PUBFIG = Source("github", "Kanav-7/RelativeAttributeCV", "e2a65872a1e1da26a3bc88b53a45ee8fd5652019")

# Of the fifteen categories there, the eight of Oliva and Torralba, each with 100 images in `train` and these in `test`.
CLASSES = {
    "Coast": 260, "Forest": 228, "Highway": 160, "InsideCity": 208,
    "Mountain": 274, "OpenCountry": 310, "Street": 192, "TallBuilding": 256,
}
# Parikh & Grauman, ICCV 2011, Table 1, classes by their first letters; the notebook on attributes reads it.
ORDERINGS = {
    "natural": "T<I~S<H<C~O~M~F",
    "open": "T~F<I~S<M<H~C~O",
    "perspective": "O<C<M~F<H<I<S<T",
    "large-objects": "F<O~M<I~S<H~C<T",
    "diagonal-plane": "F<O~M<C<I~S<H<T",
    "close-depth": "C<M<O<T~I~S~H~F",
}
TRAINING, DRAWS = 30, 10
NOTE = f"ten draws of {TRAINING} training rows per class, the rest for test (numpy default_rng(0..{DRAWS - 1}))"


def osr_gist(request: Request) -> None:
    """Class by class, and in each the source's training images before its test images; its split is not ours."""
    root = SCENES.path(request.sources, "data")
    paths, labels = [], []
    for label, (name, tests) in enumerate(CLASSES.items()):
        found = sorted_images(root / "train" / name, ".jpg", 100) + sorted_images(root / "test" / name, ".jpg", tests)
        paths += found
        labels += [label] * len(found)
    write_table(
        request.output / "osr_gist.parquet",
        features("gist", paths),
        labels,
        name=pa.array([f"{path.parent.name}/{path.name}" for path in paths]),
    )
    about = {"classes": [name.lower() for name in CLASSES], "relative_ordering_text": ORDERINGS}
    write_json(request.output / "osr_gist.json", about)
    splits = few_a_class(np.array(labels), TRAINING, DRAWS)
    write_splits(request.output / "osr_gist.splits.json", "row", NOTE, splits)


def pubfig(request: Request) -> None:
    from scipy.io import loadmat

    data = loadmat(PUBFIG.path(request.sources, "pubfig_data.mat"))
    # Matlab counts from 1.
    labels = data["class_labels"].ravel().astype(int) - 1
    write_table(
        request.output / "pubfig.parquet",
        data["feat"].astype(np.float32),
        labels,
        train=pa.array(data["used_for_training"].ravel() == 1),
        name=pa.array([str(name[0]) for name in data["im_names"].ravel()]),
    )
    write_splits(request.output / "pubfig.splits.json", "row", NOTE, few_a_class(labels, TRAINING, DRAWS))
