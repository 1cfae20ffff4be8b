"""All estimators: one a learner of the library.

A learner that is new in the library's registry appears here by itself; a line in the stub file
tells type checkers about it.
"""

from ._estimator import MetricLearner, from_model, make
from ._metra import methods

for _entry in methods():
    _made = make(_entry, __name__)
    globals()[_made.__name__] = _made

__all__ = ["MetricLearner", "from_model"]
__all__ += [name for name, made in globals().items() if isinstance(made, type)]
