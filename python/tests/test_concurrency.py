"""Threads, forks, repeated fits, and fits that go on after a kill."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import metra

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks into /proc")

LEARNER = {"n_components": 4, "steps": 50}


def fitted_bytes(given):
    X, y = given
    return metra.Warca(**LEARNER, n_jobs=2).fit(X, y).model_.to_bytes()


def test_a_forked_process_fits_as_its_parent_does(nuisance):
    expected = fitted_bytes(nuisance)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        # A pool of threads that a fork does not take along would wait for ever.
        found = pool.map_async(fitted_bytes, [nuisance] * 4).get(timeout=60)
    assert found == [expected] * 4


def test_a_process_forked_during_a_fit_works(nuisance):
    X, y = nuisance
    expected = fitted_bytes(nuisance)
    started, enough = threading.Event(), threading.Event()

    def tell(*_):
        started.set()
        if enough.is_set():
            raise InterruptedError

    def fit():
        with pytest.raises(InterruptedError):
            metra.Warca(n_components=4, steps=1_000_000).fit(X, y, callback=tell)

    fitting = threading.Thread(target=fit)
    fitting.start()
    assert started.wait(timeout=60)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.map_async(fitted_bytes, [nuisance]).get(timeout=60)
    enough.set()
    fitting.join()
    assert found == [expected]


def test_many_threads_at_once_disturb_nobody(nuisance):
    X, y = nuisance
    expected = fitted_bytes(nuisance)
    shared = metra.Warca(**LEARNER).fit(X, y)
    mapped = shared.transform(X)
    with ThreadPoolExecutor(8) as pool:
        fits = [pool.submit(fitted_bytes, nuisance) for _ in range(8)]
        maps = [pool.submit(shared.transform, X) for _ in range(8)]
    assert all(fit.result() == expected for fit in fits)
    assert all(np.array_equal(other.result(), mapped) for other in maps)


def test_repeated_fits_leave_nothing_behind(nuisance):
    X, y = nuisance
    learner = metra.Warca(**LEARNER)
    expected = learner.fit(X, y).model_.to_bytes()
    files, threads = (len(os.listdir(f"/proc/self/{kind}")) for kind in ("fd", "task"))
    for _ in range(20):
        assert learner.fit(X, y).model_.to_bytes() == expected
    assert len(os.listdir("/proc/self/fd")) == files
    # Threads end on their own, a moment after the fit.
    for _ in range(100):
        if len(os.listdir("/proc/self/task")) <= threads:
            return
        time.sleep(0.05)
    raise AssertionError(f"{len(os.listdir('/proc/self/task'))} threads, {threads} before")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_copy_is_out_of_reach_of_other_threads(nuisance, dtype):
    X, y = nuisance
    learner = metra.Warca(n_components=8, steps=1000, copy=True)
    expected = learner.fit(X.astype(dtype), y).model_.to_bytes()
    written = X.astype(dtype)

    def write(*_):
        written[:] = np.nan

    assert learner.fit(written, y, callback=write).model_.to_bytes() == expected
    assert np.isnan(written).all(), "the fit was too short to be disturbed"


FIT = """
import sys, numpy as np, metra
random = np.random.default_rng(7)
y = np.repeat(np.arange(30), 12)
X = random.normal(size=(360, 16)).astype(np.float32) + y[:, None] % 5
learner = metra.Warca(steps=500, validation=0.3, grid={"lam": [1e-3, 1e-2]})
def tell(*_):
    print("going", flush=True)
checkpoint = {"checkpoint": sys.argv[2], "checkpoint_every": 0.01} if len(sys.argv) > 2 else {}
learner.fit(X, y, callback=tell, **checkpoint).save(sys.argv[1])
"""


def test_a_killed_fit_goes_on_to_the_same_model(tmp_path):
    alone, resumed, kept = (tmp_path / name for name in ("a.safetensors", "b.safetensors", "c"))
    subprocess.run([sys.executable, "-c", FIT, alone], check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen(
        [sys.executable, "-c", FIT, resumed, kept], stdout=subprocess.PIPE, text=True
    )
    for _ in range(3):
        assert process.stdout.readline() == "going\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert kept.exists() and not resumed.exists()
    X = np.zeros((4, 2), dtype=np.float32)
    with pytest.raises(metra.DataError, match="of another training"):
        metra.Lda().fit(X + np.arange(4)[:, None], [0, 0, 1, 1], checkpoint=kept)
    subprocess.run(
        [sys.executable, "-c", FIT, resumed, kept], check=True, stdout=subprocess.DEVNULL
    )
    assert resumed.read_bytes() == alone.read_bytes() and not kept.exists()


def test_ctrl_c_can_keep_the_best_map_so_far():
    code = """
import os, signal, threading, warnings
# Shells start what runs in the background with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
import metra
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    learned = metra.Warca(n_components=8, steps=10**8).fit(X, y, on_interrupt="keep")
assert [str(w.message) for w in said] == [
    "Warca: the steps were ended by Ctrl-C; the best map so far is kept"
], said
assert 0 < learned.n_iter_ < 10**8
assert metra.evaluate(learned, X, y)["map"] > metra.evaluate("euclid", X, y)["map"]
threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    learned.fit(X, y)
except KeyboardInterrupt:
    print("raised")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "raised\n"
