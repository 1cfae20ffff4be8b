"""How good is a ranking, and is one better than another?"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _metra
from ._supervision import supervision
from ._verdicts import Verdicts, html_table, pandas
from ._words import listed, score_name, threads


class Evaluation(Mapping[str, float]):
    """Measures of a ranking: means by name, and one value a query.

    Attributes
    ----------
    queries : ndarray
        Row numbers of the queries that had something relevant.
    skipped : int
        Queries that had nothing relevant and are left out.
    clusters : ndarray
        What each query belongs to: identities, whose queries rise and fall together.
    cmc : ndarray
        Share of queries whose first relevant item has rank 1, at most 2, ...
    precision : ndarray
        Mean precision at recall 0, 0.05, ... 1.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self._values = {
            measure: np.asarray(values)
            for measure, values in zip(found["measures"], found["values"])
        }
        self.queries = np.asarray(found["queries"], dtype=np.int64)
        self.clusters = np.asarray(found["clusters"], dtype=np.int64)
        self.skipped = int(found["skipped"])
        self.cmc = np.asarray(found["cmc"])
        self.precision = np.asarray(found["precision"])

    def __getitem__(self, measure: str) -> float:
        return float(self.per_query(measure).mean())

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def per_query(self, measure: str) -> np.ndarray:
        """One value a query, in the order of `queries`."""
        if measure not in self._values:
            with contextlib.suppress(_metra.MetraError):
                measure = _metra.measure_name(measure)
        if measure not in self._values:
            raise KeyError(f"{measure!r} was not measured, but {', '.join(self._values)}")
        return self._values[measure]

    def against(self, base: Evaluation, random_state: int = 0) -> Verdicts:
        """Difference to a base on the same queries, with a paired bootstrap interval, by measure."""
        shared = [measure for measure in self if measure in base]
        return Verdicts(bootstrap(base, self, name, random_state=random_state) for name in shared)

    @property
    def frame(self) -> Any:
        """A pandas data frame, one row a query, one column a measure."""
        return pandas().DataFrame(self._values, index=pandas().Index(self.queries, name="query"))

    def _repr_html_(self) -> str:
        rows = [[measure, f"{self[measure]:.4f}"] for measure in self]
        return html_table(["", f"mean of {len(self.queries)} queries"], rows)

    def __repr__(self) -> str:
        values = ", ".join(f"{measure}={self[measure]:.4f}" for measure in self)
        return f"Evaluation({values}; {len(self.queries)} queries)"


def evaluate(
    metric: Any,
    X: Any,
    y: Any = None,
    *,
    queries: Any = None,
    qrels: Any = None,
    gallery: Any = None,
    cameras: Any = None,
    query_cameras: Any = None,
    protocol: str | None = None,
    classifier: str | None = None,
    repeats: int = 1,
    measures: str | list[str] | None = None,
    gain: str = "linear",
    empty: str = "skip",
    rerank: bool | str = False,
    random_state: int = 1,
    n_jobs: int | None = None,
) -> Evaluation:
    """Judge a metric by the rankings it gives.

    Parameters
    ----------
    metric : estimator, Model or str
        What to judge: something fitted, a model, or ``"euclid"``, ``"cosine"`` or ``"dot"`` for the
        vectors as they are.
    X : array-like of shape (n_samples, n_features)
        The vectors; with `queries`, the items.
    y : array-like of shape (n_samples,), optional
        A class of every row: rows of one class are relevant to each other. Several labels per row as `fit` takes them.
    queries, qrels : optional
        Vectors of queries and which items are relevant to them, as `fit` takes them.
    gallery : tuple (X, y) or (X, y, cameras), optional
        What is searched in place of the rows themselves.
    cameras, query_cameras : array-like, optional
        Camera of every row (query).
    protocol : str, optional
        ``leave-one-out`` (default), ``against-training`` (with a gallery), ``single-shot``,
        ``cross-camera`` or ``judged`` (with qrels).
    classifier : str, optional
        Judge by classes found in the gallery: ``gaussian``, ``gaussian:SHARE`` or ``knn:K``.
    repeats : int, default=1
        How often ``single-shot`` draws images.
    measures : str or list of str, optional
        Such as ``map``, ``p@1``, ``cmc@5``, ``ndcg@10``, ``r@100``, ``mrr``, ``auc``.
    gain : {"linear", "exponential"}, default="linear"
        Gain of a grade in nDCG.
    empty : {"skip", "zero"}, default="skip"
        What becomes of queries with nothing relevant.
    rerank : bool or str, default=False
        Re-rank by k-reciprocal neighbours first; True, or some of ``k1=20,k2=6,lambda=0.3``.
    random_state : int, default=1
        Seed of the protocol's draws.
    n_jobs : int, optional
        Threads; None for all cores.

    Returns
    -------
    Evaluation
        Means by measure, and one value a query.

    Examples
    --------
    >>> import metra
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = metra.evaluate("euclid", X, y, measures=["p@1"])
    >>> round(result["p@1"], 2)
    0.96
    """
    question = question_of(
        protocol=protocol,
        classifier=classifier,
        repeats=repeats,
        measures=measures,
        gain=gain,
        empty=empty,
        rerank=rerank,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    if classifier is not None and gallery is None:
        raise ValueError("a classifier needs a gallery: the rows whose classes are known, as (X, y)")
    data = ranked(X, y, queries, qrels, gallery, cameras, query_cameras)
    return Evaluation(_metra.judge(question, metric_of(metric), *data))


def question_of(
    *,
    protocol: str | None,
    classifier: str | None = None,
    repeats: int,
    measures: str | list[str] | None,
    beside: bool = False,
    gain: str = "linear",
    empty: str = "skip",
    rerank: bool | str,
    random_state: int,
    n_jobs: int | None,
) -> dict[str, Any]:
    """How to judge, in the library's words."""
    if gain not in ("linear", "exponential"):
        raise ValueError(f"gain must be linear or exponential, but is {gain!r}")
    if empty not in ("skip", "zero"):
        raise ValueError(f"empty must be skip or zero, but is {empty!r}")
    return {
        "protocol": protocol,
        "classifier": classifier,
        "repeats": repeats,
        "measures": listed(measures),
        "beside": beside,
        "exponential_gain": gain == "exponential",
        "count_empty": empty == "zero",
        "rerank": "default" if rerank is True else rerank or None,
        "seed": random_state,
        "threads": threads(n_jobs),
    }


def ranked(
    X: Any, y: Any, queries: Any, qrels: Any, gallery: Any, cameras: Any, query_cameras: Any
) -> tuple[Any, ...]:
    """What is ranked: items, queries, what is known of them, and a gallery with what is known of it."""
    said = supervision(y, queries=queries, qrels=qrels, cameras=cameras, query_cameras=query_cameras)
    if gallery is None:
        return X, queries, said, None
    if not isinstance(gallery, (tuple, list)) or len(gallery) not in (2, 3):
        raise ValueError("gallery must be (X, y) or (X, y, cameras)")
    searched, searched_y, *rest = gallery
    return X, queries, said, (searched, supervision(searched_y, cameras=rest[0] if rest else None))


def metric_of(metric: Any) -> tuple[Any, str | None]:
    """The model, or the score of vectors as they are, of what was given to judge."""
    if isinstance(metric, str):
        return None, score_name(metric)
    if isinstance(metric, _metra.Model):
        return metric, None
    model = getattr(metric, "model_", None)
    if model is None:
        raise ValueError(
            "expected a fitted estimator, a model or one of 'euclid', 'cosine' and 'dot', but found "
            f"{metric!r}"
        )
    return model, None


def agreement(
    metric: Any,
    X: Any,
    *,
    pairs: Any = None,
    triplets: Any = None,
    quadruplets: Any = None,
    cameras: Any = None,
    base: str | None = None,
    random_state: int = 1,
    n_jobs: int | None = None,
) -> list[dict[str, Any]]:
    """How far a metric agrees with comparisons of rows that it has not learned from.

    Parameters
    ----------
    metric : estimator, Model or str
        What to judge, as for `evaluate`.
    X : array-like of shape (n_samples, n_features)
        The vectors.
    pairs, triplets, quadruplets : optional
        Comparisons of rows, as `fit` takes them.
    cameras : array-like, optional
        Camera of every row.
    base : str, optional
        ``"euclid"`` or ``"cosine"``, to state the gain over it too.
    random_state : int, default=1
        Seed of the intervals.
    n_jobs : int, optional
        Threads; None for all cores.

    Returns
    -------
    list of dict
        One a kind: ``value`` is the area under the curve of pairs, or the share of triplets and
        quadruplets that are ordered right, with ``value_low`` and ``value_high``; with a base,
        ``difference``, ``low``, ``high`` and ``verdict``.

    Examples
    --------
    >>> import metra
    >>> metra.agreement("euclid", [[0.0], [1.0], [3.0]], triplets=[[0, 1, 2], [0, 2, 1]])[0]["value"]
    0.5
    """
    if pairs is None and triplets is None and quadruplets is None:
        raise ValueError("give pairs, triplets or quadruplets to judge by")
    model, score = metric_of(metric)
    said = supervision(pairs=pairs, triplets=triplets, quadruplets=quadruplets, cameras=cameras)
    return _metra.agree(model, score, base, X, said, random_state, threads(n_jobs))


@dataclass(frozen=True)
class Verification:
    """What thresholds do: which pairs of rows match, of one identity and of two.

    Attributes
    ----------
    points : list of dict
        By rate of false matches: ``asked``, ``threshold`` (a pair matches where its dissimilarity is not
        above), ``false_match_rate``, ``true_match_rate`` and the interval of it, ``low`` and ``high``.
    same, different : int
        Pairs of one identity, and of two.
    identities : int
        Identities of at least two rows.
    seen_rows : tuple of int, optional
        Rows that the metric learned from, and rows looked at; None where it does not keep that.
    """

    points: list[dict[str, float]]
    same: int
    different: int
    identities: int
    seen_rows: tuple[int, int] | None

    @property
    def frame(self) -> Any:
        """A pandas data frame, one row a rate."""
        return pandas().DataFrame(self.points).set_index("asked")

    def _cells(self) -> list[list[str]]:
        forms = (
            ("asked", "{:g}"),
            ("threshold", "{:.6g}"),
            ("false_match_rate", "{:.3g}"),
            ("true_match_rate", "{:.4f}"),
        )
        return [
            [form.format(p[name]) for name, form in forms] + [f"[{p['low']:.4f}, {p['high']:.4f}]"]
            for p in self.points
        ]

    _titles = ("asked", "threshold", "false matches", "true matches", "95 % interval")

    def __repr__(self) -> str:
        form = "{:>8}{:>14}{:>15}{:>14}   {}"
        head = f"{self.same} pairs of {self.identities} identities, {self.different} pairs of two"
        return "\n".join([head, form.format(*self._titles), *(form.format(*c) for c in self._cells())])

    def _repr_html_(self) -> str:
        return html_table(self._titles, self._cells())


def verification(
    metric: Any,
    X: Any,
    y: Any,
    *,
    false_match_rates: Any = (0.0001, 0.001, 0.01, 0.1),
    cameras: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Verification:
    """Same or not the same: how many true matches there are at given rates of false matches.

    All pairs of the rows are measured. ``calibrate_threshold`` of an estimator keeps one of the
    thresholds in its model; `plot_roc` and `plot_det` draw.

    Parameters
    ----------
    metric : estimator, Model or str
        What to judge, as for `evaluate`.
    X : array-like of shape (n_samples, n_features)
        Rows that were not learned from.
    y : array-like of shape (n_samples,)
        An identity of every row.
    false_match_rates : float or sequence of float
        Largest shares of the pairs of two identities that may match.
    cameras : array-like, optional
        Camera of every row, where the metric needs it.
    random_state : int, default=0
        Seed of the intervals.
    n_jobs : int, optional
        Threads; None for all cores.

    Returns
    -------
    Verification
        One point a rate.

    Examples
    --------
    >>> import metra
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = metra.verification("euclid", X, y, false_match_rates=0.01)
    >>> found.points[0]["false_match_rate"] <= 0.01
    True
    """
    rates = np.atleast_1d(np.asarray(false_match_rates, dtype=np.float64)).tolist()
    said = supervision(y, cameras=cameras)
    found = _metra.verification(
        metric_of(metric), X, said, rates, random_state, threads(n_jobs)
    )
    warn_of_thresholds(rates, found["different"], found.pop("leak"))
    return Verification(**found)


def warn_of_thresholds(rates: list[float], different: int, leak: tuple[int, int] | None) -> None:
    """Warn of rates that so many pairs of two identities cannot show, and of rows that were learned from."""
    few = [f"{rate:g}" for rate in rates if 0 < rate * different < 1]
    if few:
        warnings.warn(
            f"{different} pairs of two identities cannot show a false match rate of {', '.join(few)}: the "
            "threshold found is one without any false match",
            stacklevel=3,
        )
    if leak is not None:
        warnings.warn(
            f"the metric learned from {leak[0]} of the {leak[1]} rows and has driven their identities apart: "
            "on new ones expect more false and fewer true matches",
            stacklevel=3,
        )


def bootstrap(
    base: Any,
    learned: Any,
    measure: str | None = None,
    *,
    clusters: Any = None,
    resamples: int = 2000,
    level: float = 0.95,
    random_state: int = 0,
) -> dict[str, Any]:
    """Whether one ranking is better than another on the same queries, by a paired bootstrap.

    Parameters
    ----------
    base, learned : Evaluation or array-like of shape (n_queries,)
        One value a query for each; evaluations of the same queries with `measure`.
    measure : str, optional
        Which measure of the evaluations; their first by default.
    clusters : array-like of shape (n_queries,), optional
        What each query belongs to, such as its identity: whole clusters are drawn.
    resamples : int, default=2000
        Number of draws.
    level : float, default=0.95
        How often intervals made so hold the truth.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    dict
        ``base``, ``learned``, ``difference``, ``low``, ``high``, ``queries``, ``clusters`` and
        ``verdict``: better, worse or no evidence.

    Examples
    --------
    >>> import metra
    >>> metra.bootstrap([0, 0, 1, 0] * 25, [1, 0, 1, 1] * 25)["verdict"]
    'better'
    """
    name = measure
    if isinstance(base, Evaluation) and isinstance(learned, Evaluation):
        name = next(iter(base)) if measure is None else measure
        same = np.array_equal(base.queries, learned.queries)
        if not same or not np.array_equal(base.clusters, learned.clusters):
            raise _metra.DataError(
                "a paired bootstrap needs the same queries in both evaluations, but these are of "
                "other rows or classes"
            )
        clusters = base.clusters if clusters is None else clusters
        base, learned = base.per_query(name), learned.per_query(name)
    base, learned = (np.asarray(part, dtype=np.float64) for part in (base, learned))
    if base.ndim != 1 or learned.ndim != 1:
        raise ValueError("expected two evaluations, or one value a query for each")
    if clusters is None:
        groups = np.arange(len(base))
    else:
        groups = np.unique(np.asarray(clusters), return_inverse=True)[1]
    found = _metra.bootstrap(
        base.tolist(), learned.tolist(), groups.tolist(), resamples, level, random_state
    )
    found["measure"] = name or ""
    return dict(found)
