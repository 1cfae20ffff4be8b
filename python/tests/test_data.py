"""Whatever holds vectors gives the same model, and float32 is not copied."""

import resource
import subprocess
import sys
import textwrap

import metra
import numpy as np
import pytest
from metra._arrays import as_rows


def model_of(X, y):
    return metra.Lda(n_components=3).fit(X, y).model_.to_bytes()


@pytest.fixture(scope="module")
def whole():
    """Values that every type holds exactly."""
    random = np.random.default_rng(3)
    y = np.repeat(np.arange(6), 20)
    X = random.integers(0, 50, size=(120, 8)) + 10 * y[:, np.newaxis]
    return X.astype(np.float32), y


@pytest.mark.parametrize("kind", ["float64", "float16", "int8", "int16", "int32", "int64", "uint16"])
def test_types(whole, kind):
    X, y = whole
    assert model_of(X.astype(kind), y) == model_of(X, y)


def test_orders_and_memory(whole, tmp_path):
    X, y = whole
    expected = model_of(X, y)
    assert model_of(np.asfortranarray(X), y) == expected
    assert model_of(np.repeat(X, 2, axis=0)[::2], y) == expected
    frozen = X.copy()
    frozen.flags.writeable = False
    assert model_of(frozen, y) == expected
    np.save(tmp_path / "x.npy", X)
    assert model_of(np.load(tmp_path / "x.npy", mmap_mode="r"), y) == expected
    assert model_of(X.tolist(), y.tolist()) == expected


def test_frames(whole):
    X, y = whole
    expected = model_of(X, y)
    pandas = pytest.importorskip("pandas")
    assert model_of(pandas.DataFrame(X), pandas.Series(y)) == expected
    assert model_of(pandas.DataFrame({"vector": list(X)}), y) == expected
    polars = pytest.importorskip("polars")
    assert model_of(polars.DataFrame(X), polars.Series(y)) == expected
    column = polars.Series("vector", X, dtype=polars.Array(polars.Float32, 8))
    assert model_of(column, y) == expected
    assert model_of(polars.DataFrame({"vector": column}), y) == expected


def test_arrow(whole):
    X, y = whole
    expected = model_of(X, y)
    pyarrow = pytest.importorskip("pyarrow")
    flat = pyarrow.array(X.ravel())
    column = pyarrow.FixedSizeListArray.from_arrays(flat, 8)
    assert model_of(column, y) == expected
    assert model_of(pyarrow.chunked_array([column[:50], column[50:]]), y) == expected
    assert model_of(pyarrow.table({"vector": column}), y) == expected
    # A slice begins elsewhere in the same memory.
    np.testing.assert_array_equal(as_rows(column[7:]), X[7:])
    rows = as_rows(column)
    assert rows.base is not None and rows.dtype == np.float32
    with pytest.raises(ValueError, match="missing"):
        as_rows(pyarrow.array([[1.0, 2.0], None], pyarrow.list_(pyarrow.float32(), 2)))


def test_wide_numbers_are_judged_before_they_are_narrowed():
    # Differences of 1 at 1e9 vanish in float32; the model remembers the shift.
    random = np.random.default_rng(5)
    y = np.repeat(np.arange(5), 20)
    X = y[:, np.newaxis] + random.normal(size=(100, 3)) * 0.1
    near = metra.Lda(n_components=2).fit(X, y)
    far = metra.Lda(n_components=2).fit(X + 1e9, y)
    expected = near.pair_distance((X[:50], X[50:]))
    np.testing.assert_allclose(far.pair_distance((X[:50] + 1e9, X[50:] + 1e9)), expected, rtol=1e-3)


def test_what_cannot_be_used_is_named():
    with pytest.raises(ValueError, match="2 dimensions"):
        metra.evaluate("euclid", np.zeros(3), [0, 0, 1])
    bad = np.ones((3, 2), dtype=np.float32)
    bad[1, 1] = np.nan
    with pytest.raises(metra.DataError, match="row 1, column 1"):
        metra.evaluate("euclid", bad, [0, 0, 1])
    masked = np.ma.masked_equal(np.arange(6, dtype=np.float32).reshape(3, 2), 4)
    with pytest.raises(ValueError, match="1 are masked"):
        metra.evaluate("euclid", masked, [0, 0, 1])
    with pytest.raises(ValueError, match="complex"):
        as_rows(np.ones((2, 2), dtype=complex))


MEMORY = textwrap.dedent(
    """
    import resource, sys
    import numpy as np
    import metra
    kind = sys.argv[1]
    rows, columns = 400_000, 128
    X = np.ones((rows, columns), dtype=kind)
    X[:, 0] = np.arange(rows) % 97
    X[:, 1:9] = np.random.default_rng(1).normal(size=(rows, 8))
    y = (np.arange(rows) % 97).tolist()
    small = metra.Lda(n_components=2, n_jobs=1).fit(X[:1000], y[:1000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    metra.Lda(n_components=2, n_jobs=1).fit(X, y)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
)


def growth(kind):
    """Kilobytes that a fit on 205 MB of float32 needs beside the data."""
    out = subprocess.run(
        [sys.executable, "-c", MEMORY, kind], check=True, capture_output=True, text=True
    )
    return int(out.stdout)


@pytest.mark.skipif(not hasattr(resource, "RUSAGE_SELF"), reason="the system does not tell")
def test_float32_is_not_copied():
    # The copy of float64 is 205 MB; that it shows makes sure that a copy would be seen.
    single, double = growth("float32"), growth("float64")
    assert single < 100_000, f"{single} KB beside 205,000 KB of data"
    assert double > 180_000, f"{double} KB"
