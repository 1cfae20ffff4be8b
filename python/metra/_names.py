"""How names of the library are written in Python."""

# Where a name is not simply its words with capitals.
_CLASSES = {"supcon": "SupCon"}

# What scikit-learn and metric-learn call it, and what Python does not let a name be.
_PARAMETERS = {"rank": "n_components", "lambda": "lam", "from": "start_from"}
_LIBRARY = {python: library for library, python in _PARAMETERS.items()}


def class_name(method: str) -> str:
    """Name of the estimator of a method: ``kernel-warca`` is ``KernelWarca``."""
    words = method.split("-")
    return _CLASSES.get(method, "".join(word.capitalize() for word in words))


def parameter_name(name: str) -> str:
    """Name of a parameter of the library in Python."""
    return _PARAMETERS.get(name, name)


def library_name(name: str) -> str:
    """Name of a parameter of Python in the library."""
    return _LIBRARY.get(name, name)
