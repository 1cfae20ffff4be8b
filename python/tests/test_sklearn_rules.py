"""scikit-learn's own checks on every estimator that learns from labels or from nothing."""

import metra
import pytest
from metra import learners
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

# Checks that cannot pass, with the reason. Keys are names of checks.
EXPECTED: dict[str, str] = {}


def quick(entry):
    """An estimator that learns in a moment."""
    estimator = getattr(learners, metra._names.class_name(entry["name"]))()
    known = {parameter[0] for parameter in entry["parameters"]}
    if "steps" in known:
        estimator.set_params(steps=10)
    estimator.set_params(n_jobs=1)
    return estimator


TAKES_LABELS = [
    quick(entry)
    for entry in metra.methods()
    if entry["needs"] == "nothing" or "labels" in entry["needs"]
]


@parametrize_with_checks(TAKES_LABELS)
def test_check(estimator, check):
    name = getattr(check, "func", check).__name__
    if name in EXPECTED:
        pytest.xfail(EXPECTED[name])
    check(estimator)


def test_all_at_once():
    check_estimator(learners.Lda())
