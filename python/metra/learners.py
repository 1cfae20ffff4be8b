"""All estimators: one a learner of the library.

A learner that is new in the library's registry appears here by itself; a line in the stub file
tells type checkers about it.
"""

from ._estimator import MetricLearner
from ._make import from_model, make
from ._metra import methods

_made = {made.__name__: made for made in (make(entry, __name__) for entry in methods())}
globals().update(_made)

__all__ = ["MetricLearner", "from_model", *_made]
