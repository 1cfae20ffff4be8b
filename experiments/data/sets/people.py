"""Persons seen by two cameras: VIPeR, PRID450S and PRID 2011 as stripes, and VIPeR by published features."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from .images import features, shrunk, sorted_images
from .request import Request
from .sources import Source
from .tables import Split, write_splits, write_table

VIPER = Source("github", "JulianKu/k-KISSME", "3d25f443de1448063701977ec9f508826e2b3f7c")
PRID = Source("github", "cswaynecool/latent_re_id", "abbf7ca400b229f3ba267ba3b7794b228279a72d")
MDF = Source("github", "silasxue/MDF-KISS", "215f25ddd6714b627de88ded76e18f67cd7bf61a")

# Persons that both cameras have seen.
HALVED = {"viper_stripes2580": 632, "prid450s_stripes2580": 450, "prid2011_stripes2580": 200}
SEED, DRAWS = 2016, 10


def halves(name: str) -> list[Split]:
    """Ten random halves of the persons. The papers' own are not published."""
    # One generator ran on from set to set, so the draws of the sets before are made too.
    random = np.random.default_rng(SEED)
    for each, persons in HALVED.items():
        splits = []
        for _ in range(DRAWS):
            order = random.permutation(persons)
            train, test = order[: persons // 2], order[persons // 2 :]
            splits.append({"train": sorted(train.tolist()), "test": sorted(test.tolist())})
        if each == name:
            return splits
    raise KeyError(name)


def write_stripes(
    request: Request, name: str, root: Path, paths: Sequence[Path], label: Sequence[int], camera: Sequence[int]
) -> None:
    if name == "viper_stripes2580":
        vectors = features("stripes", paths)
    else:
        # Averaged over areas to VIPeR's size, as for the stored tables. `metra` itself would use a triangle filter, by
        # which some rows correlate with the stored ones at .998 only.
        with tempfile.TemporaryDirectory() as folder:
            vectors = features("stripes", shrunk(paths, Path(folder), 48, 128))
    write_table(
        request.output / f"{name}.parquet",
        vectors,
        label,
        camera=pa.array(camera, pa.int8()),
        name=pa.array([path.relative_to(root).as_posix() for path in paths]),
    )
    note = f"ten random halves of the persons (numpy default_rng({SEED})); the papers' own are not published"
    write_splits(request.output / f"{name}.splits.json", "label", note, halves(name))


def viper(request: Request) -> None:
    """Both cameras have the same 632 persons; labels count them in the order of the numbers in their names."""
    root = VIPER.path(request.sources, "LOMO_Feature_Extractor/data/VIPeR")
    paths = [path for camera in ("cam_a", "cam_b") for path in sorted_images(root / camera, ".bmp", 632)]
    persons = list(range(632))
    write_stripes(request, "viper_stripes2580", root, paths, persons * 2, [0] * 632 + [1] * 632)


def prid450s(request: Request) -> None:
    """450 persons, called PPPP00C.png. The folder is called prid2011, but number and look are PRID450S's."""
    root = PRID.path(request.sources, "prid2011")
    paths = sorted_images(root, ".png", 900)
    label = [int(path.name[:4]) - 1 for path in paths]
    camera = [int(path.stem[-1]) - 1 for path in paths]
    write_stripes(request, "prid450s_stripes2580", root, paths, label, camera)


def prid2011(request: Request) -> None:
    """Persons 1 to 200 are the same in both cameras; all others have been seen by one, and get labels of their own."""
    root = PRID.path(request.sources, "prid")
    first, second = (sorted_images(root / f"cam_{name}", ".png", count) for name, count in (("a", 385), ("b", 749)))
    numbers = [int(path.stem.split("_")[1]) - 1 for path in second]
    label = [int(path.stem.split("_")[1]) - 1 for path in first]
    # Labels of camera a's own persons come first.
    shared = HALVED["prid2011_stripes2580"]
    label += [number if number < shared else number + len(first) - shared for number in numbers]
    write_stripes(
        request, "prid2011_stripes2580", root, [*first, *second], label, [0] * len(first) + [1] * len(second)
    )


def viper_mdf76(request: Request) -> None:
    """Published features of VIPeR, camera a before camera b, and the hundred halves published with them."""
    from scipy.io import loadmat

    vectors = loadmat(MDF.path(request.sources, "data/viper_features_MDF.mat"))["ux2"].T.astype(np.float32)
    persons = len(vectors) // 2
    camera = pa.array(np.repeat([0, 1], persons), pa.int8())
    write_table(request.output / "viper_mdf76.parquet", vectors, np.tile(np.arange(persons), 2), camera=camera)
    splits = []
    for run in loadmat(MDF.path(request.sources, "data/viper_runs100.mat"))["runs"][0]:
        # Matlab counts from 1; the first half of an order is for training.
        order = (run["perm"].ravel().astype(int) - 1).tolist()
        splits.append({"train": order[: persons // 2], "test": order[persons // 2 :]})
    note = f"{len(splits)} published halves of the persons"
    write_splits(request.output / "viper_mdf76.splits.json", "label", note, splits)
