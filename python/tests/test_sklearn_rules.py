"""scikit-learn's own checks on every estimator that learns from labels or from nothing, and from rows of one vector."""

import metra
import pytest
from metra import learners
from sklearn.utils.estimator_checks import parametrize_with_checks

# Checks that cannot pass, with the reason, by estimator.
NOTHING = (
    "the check's labels are drawn at random: no direction tells them apart, and the learner says so "
    "in place of a metric that ranks by noise"
)
EXPECTED = {
    "Kissme": {
        "check_dont_overwrite_parameters": NOTHING,
        "check_methods_sample_order_invariance": NOTHING,
        "check_methods_subset_invariance": NOTHING,
        "check_fit2d_predict1d": NOTHING,
    },
    "Xqda": {
        "check_fit_idempotent": NOTHING,
        "check_n_features_in": NOTHING,
    },
}


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
    if (not entry["supervised"] or "labels" in entry["needs"]) and not entry["several_vectors"]
]


@parametrize_with_checks(TAKES_LABELS)
def test_check(estimator, check):
    name = getattr(check, "func", check).__name__
    reason = EXPECTED.get(type(estimator).__name__, {}).get(name)
    if reason is None:
        check(estimator)
        return
    with pytest.raises(metra.DataError, match="nothing can be learned"):
        check(estimator)


def test_an_estimator_of_every_learner_that_takes_labels():
    names = {type(estimator).__name__ for estimator in TAKES_LABELS}
    assert {"Warca", "KernelWarca", "Frml", "Slr", "Qwise", "Kissme", "Lda"} <= names
    assert len(TAKES_LABELS) >= len(metra.methods()) - 3
