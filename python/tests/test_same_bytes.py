"""Python and the command write the same bytes of the same data, seed and hold-out."""

import subprocess

import metra
import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    X, y = load_digits(return_X_y=True)
    folder = tmp_path_factory.mktemp("digits")
    np.save(folder / "x.npy", X.astype(np.float32))
    np.save(folder / "wide.npy", X)
    np.save(folder / "y.npy", y)
    return X, y, folder


def by_command(command, folder, file, *options):
    path = folder / "model.safetensors"
    subprocess.run(
        [command, "train", folder / file, "--label", folder / "y.npy", *options, "-o", path],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    return path.read_bytes()


@pytest.mark.parametrize("file", ["x.npy", "wide.npy"])
def test_held_out_parts_and_a_grid(command, digits, file):
    X, y, folder = digits
    written = by_command(
        command, folder, file, "--method", "warca", "--rank", "16", "--set", "steps=40",
        "--tune", "margin=0.15,0.5", "--holdout", "rows", "--seed", "3",
    )  # fmt: skip
    learned = metra.Warca(
        n_components=16,
        steps=40,
        grid={"margin": [0.15, 0.5]},
        holdout="rows",
        validation=0.2,
        test=0.2,
        random_state=3,
    )
    given = X.astype(np.float32) if file == "x.npy" else X
    assert learned.fit(given, y).model_.to_bytes() == written


@pytest.mark.parametrize("method", ["lda", "kissme", "lfda", "frml", "slr", "multi-similarity"])
def test_nothing_held_out(command, digits, method):
    X, y, folder = digits
    options = ["--method", method, "--holdout", "none", "--seed", "5"]
    estimator = getattr(metra, metra._names.class_name(method))(random_state=5)
    if "steps" in estimator.get_params():
        options += ["--set", "steps=20"]
        estimator.set_params(steps=20)
    written = by_command(command, folder, "x.npy", *options)
    assert estimator.fit(X.astype(np.float32), y).model_.to_bytes() == written


def test_a_file_of_the_command_is_an_estimator(command, digits):
    X, y, folder = digits
    by_command(command, folder, "x.npy", "--method", "lda", "--holdout", "none")
    learned = metra.Lda.load(folder / "model.safetensors")
    np.testing.assert_array_equal(
        learned.transform(X.astype(np.float32)), metra.Lda().fit(X, y).transform(X)
    )
