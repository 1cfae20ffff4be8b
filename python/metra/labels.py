"""Where labels come from, and how many are enough."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from . import _metra
from ._progress import watcher
from ._supervision import supervision
from ._verdicts import html_table, pandas


@dataclass(frozen=True)
class LabelBudget:
    """Quality against the number of labels, and what twice as many would bring.

    Attributes
    ----------
    points : list of dict
        By growing ``share`` of the labels: ``labelled`` rows or queries, ``value`` and its ``deviation``
        over the draws, ``gain`` over the baseline and ``doubling`` over half as many labels (each with
        ``difference``, ``low``, ``high``), or ``failure`` where nothing could be learned from so little.
    measure, base : str
        What was measured, and the baseline.
    settings : dict
        Settings of all fits, by the names of parameters.
    forecast : tuple (gain, reach, flat), optional
        What twice the labels would bring, give or take, and whether even the last doubling showed no
        gain; None where too few shares could be learned from.
    words : str
        The forecast in a sentence.
    """

    points: list[dict[str, Any]]
    measure: str
    base: str
    settings: dict[str, Any]
    forecast: tuple[float, float, bool] | None
    words: str

    def _cells(self) -> list[list[str]]:
        rows = []
        for point in self.points:
            head = [f"1/{1 / point['share']:.0f}", str(point["labelled"])]
            if point["gain"] is None:
                rows.append([*head, point["failure"] or "", "", "", ""])
                continue
            spans = [
                f"{found['difference']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}]" if found else ""
                for found in (point["gain"], point["doubling"])
            ]
            rows.append([*head, f"{point['value']:.4f}", f"{point['deviation']:.4f}", *spans])
        return rows

    def _titles(self) -> list[str]:
        return ["share", "labelled", self.measure, "±", f"over {self.base}", "over half the labels"]

    def __repr__(self) -> str:
        form = "{:>6}{:>10}{:>9}{:>8}   {:<28}{}"
        lines = [form.format(*cells).rstrip() for cells in [self._titles(), *self._cells()]]
        return "\n".join([*lines, self.words])

    def _repr_html_(self) -> str:
        return html_table(self._titles(), self._cells()) + f"<p>{self.words}</p>"

    @property
    def frame(self) -> Any:
        """A pandas data frame, one row a share."""
        rows = [
            {
                "share": point["share"],
                "labelled": point["labelled"],
                self.measure: point["value"],
                "deviation": point["deviation"],
                **{
                    f"{name} {key}": found[key] if found else None
                    for name, found in (("gain", point["gain"]), ("doubling", point["doubling"]))
                    for key in ("difference", "low", "high")
                },
            }
            for point in self.points
        ]
        return pandas().DataFrame(rows).set_index("share")


def budget(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    halvings: int = 4,
    draws: int = 3,
    validation: float = 0.2,
    test: float = 0.2,
    queries: Any = None,
    qrels: Any = None,
    cameras: Any = None,
    query_cameras: Any = None,
    callback: Any = None,
) -> LabelBudget:
    """How quality grows with the number of labels, and what twice as many would bring.

    Settings are chosen once, from everything. Then the method learns from a half, a quarter, ... of the
    labelled rows (whole classes where identities are held out, queries with qrels), several random
    draws each, and every fit is judged on the same test part.

    Parameters
    ----------
    estimator : estimator or str
        The method with its parameters, which is not changed; or its name.
    X, y, queries, qrels, cameras, query_cameras
        Vectors and what is similar, as `fit` takes them.
    halvings : int, default=4
        How often the labels are halved: 4 goes down to a sixteenth.
    draws : int, default=3
        How many random draws of each share.
    validation, test : float, default=0.2
        Shares that are held out; those of the estimator where it has some.
    callback : callable, optional
        As for `fit`.

    Returns
    -------
    LabelBudget
        The curve; it shows as a table.

    Examples
    --------
    >>> import metra
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> curve = metra.budget(metra.Lda(n_components=9), X, y, halvings=2, draws=1)
    >>> [point["share"] for point in curve.points]
    [0.25, 0.5, 1.0]
    """
    from ._estimator import MetricLearner, own_names, python_settings
    from ._names import class_name

    if isinstance(estimator, str):
        from . import learners

        known = {entry["name"] for entry in _metra.methods()}
        if estimator not in known:
            raise _metra.ParameterError(
                f"expected an estimator or the name of a method, but found {estimator!r}"
            )
        estimator = getattr(learners, class_name(estimator))()
    if not isinstance(estimator, MetricLearner):
        raise ValueError(f"expected an estimator of metra, but found {estimator!r}")
    held_out = {"validation": validation, "test": test}
    estimator = clone(estimator)
    estimator.set_params(**{n: getattr(estimator, n) or share for n, share in held_out.items()})
    order = estimator._order()
    said = supervision(y, queries=queries, qrels=qrels, cameras=cameras, query_cameras=query_cameras)
    with watcher("budget", estimator.verbose, callback) as tell, own_names():
        found = _metra.label_budget(order, X, queries, said, halvings, draws, tell)
    found["settings"] = python_settings(found["settings"])
    found["words"] = found["words"] or "too few shares could be learned from to say what more would bring"
    return LabelBudget(**found)


@dataclass(frozen=True)
class Clicks:
    """Judgements that were made of a click log.

    Attributes
    ----------
    qrels : dict
        ``{query: {item: grade}}`` by the log's own identifiers, as text; grade 0 is shown and not wanted.
    pairs : list of dict
        ``query``, ``item``, ``shown``, ``clicks``, ``relevance``, ``at_least`` (in nine cases of ten) and
        ``grade`` of every pair.
    looks : list of float
        The chance that each position is looked at, the first being 1.
    sessions, queries, queries_left_out : int
        What the log had, and queries with too few sessions.
    """

    qrels: dict[str, dict[str, int]] = field(repr=False)
    pairs: list[dict[str, Any]] = field(repr=False)
    looks: list[float] = field(repr=False)
    sessions: int
    queries: int
    queries_left_out: int

    @property
    def frame(self) -> Any:
        """A pandas data frame, one row a pair."""
        return pandas().DataFrame(self.pairs)

    def rows(self, queries: Sequence[Any], items: Sequence[Any]) -> np.ndarray:
        """The judgements by row numbers, as ``fit(qrels=)`` takes them.

        Parameters
        ----------
        queries, items : sequence
            The identifiers of the rows of both arrays of vectors, in their order.

        Returns
        -------
        ndarray of shape (n_judgements, 3)
            Query, item and grade; pairs whose query or item is not among them are left out.
        """
        places = [_places("queries", queries), _places("items", items)]
        rows = [
            (places[0][pair["query"]], places[1][pair["item"]], pair["grade"])
            for pair in self.pairs
            if pair["query"] in places[0] and pair["item"] in places[1]
        ]
        if not rows:
            problem = "no query and item of the log are among those given"
            if self.queries_left_out:
                problem += f"; {self.queries_left_out} of {self.queries} queries of the log had fewer "
                problem += "than min_sessions sessions"
            raise _metra.DataError(problem)
        return np.asarray(rows, dtype=np.int64)


def clicks(
    log: str | os.PathLike[str] | Iterable[Any],
    *,
    min_sessions: int = 10,
    smoothing: float = 2.0,
    grades: Sequence[float] = (0.1, 0.25, 0.5),
    eta: float | None = None,
) -> Clicks:
    """Graded judgements of a click log, corrected for the position of what was clicked.

    The chance that a position is looked at is estimated from items that were shown at several positions
    for the same query; relevance is then clicks over looks. Without such items 1 / position is assumed,
    with a warning.

    Parameters
    ----------
    log : path, or iterable of (query, shown, clicked)
        A file as ``metra clicks`` reads it, or sessions: the query, the items in the order in which they
        were shown, and those that were clicked. Sessions may be dictionaries with these keys too.
    min_sessions : int, default=10
        Leave out queries with fewer sessions.
    smoothing : float, default=2.0
        Looks at the log's mean relevance that every pair begins with.
    grades : sequence of float, default=(0.1, 0.25, 0.5)
        Relevances that must at least be there for grades 1, 2, ....
    eta : float, optional
        Take position ** -eta as the chance of a look and do not estimate it.

    Returns
    -------
    Clicks
        The judgements; ``rows`` gives them as ``fit(qrels=)`` takes them.

    Examples
    --------
    >>> import metra
    >>> log = [("rust", ["a", "b"], ["b"]), ("rust", ["b", "a"], ["b"])] * 10
    >>> metra.clicks(log).qrels
    {'rust': {'a': 0, 'b': 3}}
    """
    if isinstance(log, (str, os.PathLike)):
        given: Any = os.fspath(log)
    else:
        given = [_session(number, session) for number, session in enumerate(log)]
        if not given:
            raise _metra.DataError("expected sessions, but the log has none")
    found = _metra.clicks(given, min_sessions, smoothing, list(grades), eta)
    if found.pop("assumed"):
        warnings.warn(
            "no item stood at several positions of one query often enough to see how looks fall: "
            "1 / position is assumed (or give eta)",
            stacklevel=2,
        )
    names = ("query", "item", "shown", "clicks", "relevance", "at_least", "grade")
    pairs = [dict(zip(names, pair)) for pair in found.pop("pairs")]
    qrels: dict[str, dict[str, int]] = {}
    for pair in pairs:
        qrels.setdefault(pair["query"], {})[pair["item"]] = pair["grade"]
    return Clicks(qrels=qrels, pairs=pairs, **found)


def _places(what: str, names: Sequence[Any]) -> dict[str, int]:
    found = {str(name): row for row, name in enumerate(names)}
    if len(found) < len(names):
        raise _metra.DataError(f"{what} must be known by an identifier each, but some have the same")
    return found


def _session(number: int, session: Any) -> tuple[str, list[str], list[str]]:
    if isinstance(session, Mapping):
        session = (session.get("query"), session.get("shown"), session.get("clicked", ()))
    try:
        query, shown, clicked = session
        if isinstance(shown, str) or isinstance(clicked, str):
            raise TypeError
        return _name(query), [_name(item) for item in shown], [_name(item) for item in clicked]
    except (TypeError, ValueError):
        raise _metra.DataError(
            f"session {number}: expected a query, the items shown and the items clicked, known by texts or "
            f"whole numbers, but found {session!r}"
        ) from None


def _name(name: Any) -> str:
    if not isinstance(name, (str, Integral)) or isinstance(name, bool):
        raise TypeError
    return str(name)
