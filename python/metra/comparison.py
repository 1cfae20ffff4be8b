"""Many methods under one protocol, with settings chosen on validation parts alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from statistics import median_low
from typing import Any

from . import _metra
from ._names import class_name, library_name, parameter_name
from ._progress import watcher
from ._supervision import supervision
from ._verdicts import pandas
from ._words import listed, threads


# What results call it, and what people read.
_VERDICTS = {"better": "better", "worse": "worse", "none": "no evidence"}


class Comparison:
    """What a comparison found; in a notebook it shows its report.

    Attributes
    ----------
    results : dict
        Everything, as the command's ``results.json`` has it.
    costs : dict
        CPU seconds of fits and trials.
    best_estimator_ : estimator
        The best method with the settings that were chosen, fitted to all rows; with ``refit=False``
        it is absent.
    """

    def __init__(self, results: str, costs: str) -> None:
        self._texts = (results, costs)
        self.best_estimator_: Any
        self.results: dict[str, Any] = json.loads(results)
        self.costs: dict[str, Any] = json.loads(costs)

    @property
    def best(self) -> str:
        """The best method by the criterion."""
        return str(self.results["best"])

    @property
    def best_settings(self) -> dict[str, Any]:
        """What the best method chose; see `estimator`."""
        return self._chosen(self._line(self.best)) or {}

    def estimator(self, name: str | None = None) -> Any:
        """An estimator of a compared method, not fitted, with the settings that it chose.

        Parameters
        ----------
        name : str, optional
            The method's name in this comparison; the best by default.

        Returns
        -------
        estimator
            With the settings that most splits chose, and the median of their numbers of steps.
        """
        from . import learners

        line = self._line(self.best if name is None else name)
        chosen = self._chosen(line)
        if chosen is None:
            raise _metra.DataError(f"{line['name']} failed on every split")
        return getattr(learners, class_name(line["method"]))(**chosen)

    def _line(self, name: str) -> dict[str, Any]:
        for line in self.results["lines"]:
            if line["name"] == name:
                return dict(line)
        names = ", ".join(line["name"] for line in self.results["lines"])
        raise _metra.ParameterError(f"name must be one of {names}, but is {name!r}")

    def _chosen(self, line: dict[str, Any]) -> dict[str, Any] | None:
        """The settings that most splits chose; None where the method failed on every one."""
        from ._estimator import python_value

        splits = [split for split in line["splits"] if split["failure"] is None]
        if not splits:
            return None

        def settings(split: dict[str, Any]) -> tuple[Any, ...]:
            return tuple(sorted(split["chosen"].items())), split["prepare"], split["score"]

        usual = Counter(map(settings, splits)).most_common(1)[0][0]
        chosen, prepare, score = usual
        found = {parameter_name(k): python_value(v) for k, v in [*line["settings"].items(), *chosen]}
        found |= {"prepare": prepare, "score_by": score}
        steps = [s["steps"] for s in splits if settings(s) == usual and s["steps"] is not None]
        if steps:
            found["steps"] = max(int(median_low(steps)), 1)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a method, best first: means and deviations, the gain over the base with its
        verdict, and the settings that were chosen.
        """
        rows = []
        criterion = self.results["protocol"]["criterion"]
        for line in self.results["lines"]:
            row: dict[str, Any] = {"method": line["name"]}
            for measure in line["measures"]:
                name = measure["measure"]
                row[name] = measure["mean"]
                row[f"{name} std"] = measure["deviation"]
            gain = next((g for g in line["against_base"] if g["measure"] == criterion), None)
            row["gain"] = gain["difference"] if gain else None
            row["low"] = gain["low"] if gain else None
            row["high"] = gain["high"] if gain else None
            row["verdict"] = _VERDICTS.get(gain["evidence"]) if gain else None
            row["settings"] = self._chosen(line)
            cost = self.costs["lines"].get(line["name"])
            row["CPU s"] = cost["cpu_seconds"] if cost else None
            rows.append(row)
        return sorted(rows, key=lambda row: row.get(criterion) or 0.0, reverse=True)

    @property
    def frame(self) -> Any:
        """The rows as a pandas data frame, best first, by method."""
        return pandas().DataFrame(self.rows()).set_index("method")

    def report(self, path: Any = None) -> str:
        """The report as one HTML page, written to `path` where one is given."""
        page = str(_metra.report_html(*self._texts))
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def _repr_html_(self) -> str:
        # In a frame of its own: the page has a style sheet that is not meant for the notebook.
        from html import escape

        page = escape(self.report(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:0"></iframe>'

    def __repr__(self) -> str:
        criterion = self.results["protocol"]["criterion"]
        lines = [f"{'':24}{criterion:>10}{'gain':>10}   95 % interval"]
        for row in self.rows():
            value = row.get(criterion)
            text = f"{row['method'][:23]:24}" + ("" if value is None else f"{value:>10.4f}")
            if row["gain"] is not None:
                text += f"{row['gain']:>+10.4f}   [{row['low']:+.4f}, {row['high']:+.4f}]  {row['verdict']}"
            lines.append(text)
        return "\n".join(lines)


def compare(
    X: Any,
    y: Any = None,
    *,
    methods: Any = None,
    queries: Any = None,
    qrels: Any = None,
    two_spaces: bool = False,
    vector_dims: Any = None,
    pairs: Any = None,
    triplets: Any = None,
    quadruplets: Any = None,
    orderings: Any = None,
    taxonomy: Any = None,
    cameras: Any = None,
    query_cameras: Any = None,
    prepare: str = "none",
    base: str | None = None,
    holdout: str | None = None,
    validation: float = 0.2,
    test: float = 0.2,
    draws: int = 1,
    folds: int | None = None,
    protocol: str | None = None,
    repeats: int = 1,
    measures: str | list[str] | None = None,
    criterion: str | None = None,
    trials: int = 8,
    halving: int | None = None,
    refit: bool = True,
    random_state: int = 1,
    log: Any = None,
    name: str = "comparison",
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Any = None,
) -> Comparison:
    """Compare methods: every one chooses its settings on validation parts, with equal budgets.

    Parameters
    ----------
    X, y, queries, qrels, two_spaces, vector_dims, pairs, triplets, quadruplets, orderings, taxonomy, cameras, query_cameras
        Vectors and what is similar, as `fit` of any estimator takes them.
    methods : list, optional
        Names (``"warca"`` or ``"Warca"``), estimators, or a dictionary of names to estimators, whose parameters are
        fixed and whose ``grid`` is tried. None takes all that can learn from this and have no
        kernel. Euclid and cosine always compete, or ``procrustes`` where queries are vectors of another model.
    prepare : str, default="none"
        Preparation before methods that are given by name.
    base : str, optional
        The method that all are compared with; the better of Euclid and cosine by default.
    holdout, validation, test, protocol, criterion
        As for estimators.
    draws, folds : int, optional
        Repeat with this many random test parts, or deal all out in folds.
    repeats : int, default=1
        How often ``single-shot`` draws images.
    measures : list of str, optional
        What is measured.
    trials : int, default=8
        Most settings that a method may try on each split.
    halving : int, optional
        Successive halving: one setting in so many goes on with so many times more steps.
    refit : bool, default=True
        Fit the best method to all rows, with the settings that it chose, as ``best_estimator_``.
    random_state : int, default=1
        Seed of all draws.
    log : path, optional
        File of what is done: an interrupted comparison goes on from there.
    name : str, default="comparison"
        Its name in the report.
    n_jobs : int, optional
        Trials at once; None for all cores.
    verbose : bool, default=False
        Show a bar.
    callback : callable, optional
        Called as ``callback(what, done, total, None, None)``.

    Returns
    -------
    Comparison
        Table, data frame, results and report.

    Examples
    --------
    >>> import metra
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = metra.compare(X, y, methods=["lda"], measures=["map"], n_jobs=1)
    >>> sorted(line["name"] for line in found.results["lines"])
    ['cosine', 'euclid', 'lda']
    """
    named, lines = _methods(methods)
    contest = {
        "name": name,
        "named": named,
        "lines": lines,
        "prepare": prepare,
        "base": base,
        "holdout": holdout,
        "validation": float(validation),
        "test": float(test),
        "draws": draws,
        "folds": folds,
        "protocol": protocol,
        "repeats": repeats,
        "measures": listed(measures),
        "criterion": criterion,
        "trials": trials,
        "halving": halving,
        "seed": random_state,
        "log": log,
        "threads": threads(n_jobs),
    }
    given = {
        "queries": queries,
        "qrels": qrels,
        "two_spaces": two_spaces,
        "vector_dims": vector_dims,
        "pairs": pairs,
        "triplets": triplets,
        "quadruplets": quadruplets,
        "orderings": orderings,
        "taxonomy": taxonomy,
        "cameras": cameras,
        "query_cameras": query_cameras,
    }
    with watcher(name, verbose, callback) as tell:
        found = Comparison(*_metra.compare(contest, X, queries, supervision(y, **given), tell))
    if refit:
        best = found.estimator().set_params(random_state=random_state, n_jobs=n_jobs)
        found.best_estimator_ = best.fit(X, y, **given)
    return found


def _methods(methods: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Names, and estimators as lines with settings of their own."""
    if methods is None:
        return [], []
    named: list[str] = []
    lines: list[dict[str, Any]] = []
    if isinstance(methods, str):
        methods = [methods]
    classes = {class_name(entry["name"]): entry["name"] for entry in _metra.methods()}
    given = methods.items() if isinstance(methods, Mapping) else ((None, m) for m in methods)
    for name, method in given:
        # Names of estimators and estimators that were not made yet are as good as names.
        if isinstance(method, type):
            method = method()
        if isinstance(method, str):
            method = classes.get(method, method)
        if isinstance(method, str) and name is None:
            named.append(method)
        elif isinstance(method, str):
            lines.append(_line(str(name), method, {}, None, "none", []))
        else:
            order = method._order()
            grid = order["grid"] if method.grid is not None else None
            # Only what was set: the rest is open to the registry's grid.
            line = _line(
                name or method._method,
                method._method,
                _set_parameters(method),
                grid,
                order["prepare"],
                order["scores"],
            )
            lines.append(line)
    return named, lines


def _line(
    name: str, method: str, settings: Any, grid: Any, prepare: str, scores: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "method": method,
        "settings": settings,
        "grid": grid,
        "prepare": prepare,
        "scores": scores,
    }


def _set_parameters(estimator: Any) -> dict[str, str]:
    from ._estimator import SHARED, library_text

    usual = type(estimator)().get_params()
    changed = {
        key: value
        for key, value in estimator.get_params(deep=False).items()
        if key not in SHARED and value is not None and value != usual[key]
    }
    settings = {library_name(key): library_text(value) for key, value in changed.items()}
    return settings if estimator.code is None else {**settings, "code": str(estimator.code)}
