"""May a candidate replace what serves today?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _metra
from ._verdicts import Verdicts, html_table, pandas, slice_name
from .evaluation import metric_of, question_of, ranked


@dataclass(frozen=True)
class Gate:
    """What the gate decided; true where the candidate may ship.

    Attributes
    ----------
    decision : str
        ``ship``, ``no evidence``, ``worse``, ``below minimum``, ``nothing to gain``, ``worse slice``,
        ``worse measure`` or ``trained on``.
    words : str
        The decision in a sentence.
    exit_code : int
        What ``metra gate`` ends with: 0 to ship.
    gain : dict
        ``base``, ``learned``, ``difference``, ``low``, ``high`` and ``verdict`` of the measure.
    beside : Verdicts
        Other measures. One that gets worse keeps the candidate from shipping, unless that is allowed.
    slices : Verdicts
        Parts of the queries, with ``by`` and ``value``; their intervals hold all together.
    headroom : str
        What was left to gain over the baseline.
    changed : tuple of int
        Queries that rose, stayed and fell.
    regressions : list of tuple
        Queries that fell most: row number, value of the baseline, value of the candidate.
    skipped : int
        Queries that had nothing relevant.
    seen_rows : tuple of int, optional
        Queries that the candidate learned from, and queries looked at; None where it does not keep that.
    """

    decision: str
    words: str
    exit_code: int
    gain: dict[str, Any]
    beside: Verdicts
    slices: Verdicts
    headroom: str
    changed: tuple[int, int, int]
    regressions: list[tuple[int, float, float]]
    skipped: int
    seen_rows: tuple[int, int] | None

    def __bool__(self) -> bool:
        return self.decision == "ship"

    def __repr__(self) -> str:
        gain = self.gain
        lines = [
            self.words,
            f"gain      {gain['difference']:+.4f} {gain['measure']}, 95 % interval "
            f"[{gain['low']:+.4f}, {gain['high']:+.4f}] ({gain['base']:.4f} -> {gain['learned']:.4f}, "
            f"{gain['queries']} queries)",
            f"headroom  {self.headroom}",
            f"changed   {self.changed[0]} better, {self.changed[1]} equal, {self.changed[2]} worse",
        ]
        if self.seen_rows and self.seen_rows[0]:
            lines.append(f"WARNING   the candidate learned from {self.seen_rows[0]} of the queries")
        worse = [row["measure"] for row in self.beside if row["verdict"] == "worse"]
        worse += [slice_name(row) for row in self.slices if row["verdict"] == "worse"]
        if worse:
            lines.append(f"WORSE     {', '.join(worse)}")
        if self.slices:
            lines += ["", repr(self.slices)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            [
                name,
                str(row["queries"]),
                f"{row['base']:.4f}",
                f"{row['learned']:.4f}",
                f"{row['difference']:+.4f}",
                f"[{row['low']:+.4f}, {row['high']:+.4f}]",
                row["verdict"],
            ]
            for name, row in self._rows()
        ]
        titles = ["", "queries", "baseline", "candidate", "gain", "interval", ""]
        return f"<p><b>{self.words}</b></p>" + html_table(titles, rows)

    def _rows(self) -> list[tuple[str, dict[str, Any]]]:
        sliced = [(slice_name(row), row) for row in self.slices]
        return [("all: " + self.gain["measure"], self.gain), *sliced]

    @property
    def frame(self) -> Any:
        """A pandas data frame: all queries in the first row, then one row a slice."""
        rows = [{"slice": name, **row} for name, row in self._rows()]
        return pandas().DataFrame(rows).drop(columns=["by", "value"], errors="ignore").set_index("slice")


def gate(
    base: Any,
    candidate: Any,
    X: Any,
    y: Any = None,
    *,
    queries: Any = None,
    qrels: Any = None,
    gallery: Any = None,
    cameras: Any = None,
    query_cameras: Any = None,
    protocol: str | None = None,
    repeats: int = 1,
    rerank: bool | str = False,
    measure: str | None = None,
    min_gain: float = 0.0,
    slices: Mapping[str, Any] | None = None,
    no_worse_slice: bool = False,
    allow_worse_measures: bool = False,
    worst: int = 10,
    random_state: int = 1,
    n_jobs: int | None = None,
) -> Gate:
    """Decide whether a candidate may replace the baseline, from queries that neither was trained on.

    Both rank the same held-out queries. The candidate ships only if the whole 95 % interval of its gain
    lies above 0 and above `min_gain`. It does not where it learned from the queries, where queries
    about items that no training judgement names get worse, and where another measure, such as ``p@1``,
    gets reliably worse.

    Parameters
    ----------
    base : estimator, Model or str
        What serves today: ``"euclid"``, ``"cosine"`` or ``"dot"`` for the vectors as they are, or a model.
    candidate : estimator, Model or str
        What may replace it.
    X, y, queries, qrels, gallery, cameras, query_cameras, protocol, repeats, rerank
        Held-out data, as `metra.evaluate` takes it.
    measure : str, optional
        What decides: ``map`` with classes, ``ndcg@10`` with qrels by default.
    min_gain : float, default=0.0
        The gain that must be shown: the interval's lower end must reach it.
    slices : mapping of str to array-like, optional
        Columns to report separately, with a value for every row of `X` (or of `queries`).
    no_worse_slice : bool, default=False
        Do not ship where a slice gets reliably worse.
    allow_worse_measures : bool, default=False
        Ship although another measure gets reliably worse.
    worst : int, default=10
        Number of the worst regressions that are listed.
    random_state : int, default=1
        Seed of the protocol's draws and of the bootstrap.
    n_jobs : int, optional
        Threads; None for all cores.

    Returns
    -------
    Gate
        The decision, which is true where the candidate may ship.

    Examples
    --------
    >>> import metra
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> learned = metra.Lda(n_components=9).fit(X[:1200], y[:1200])
    >>> metra.gate("euclid", learned, X[1200:], y[1200:]).decision
    'worse measure'
    >>> bool(metra.gate("euclid", learned, X[1200:], y[1200:], allow_worse_measures=True))
    True
    >>> metra.gate("euclid", learned, X[:1200], y[:1200]).decision
    'trained on'
    """
    question = question_of(
        protocol=protocol,
        repeats=repeats,
        measures=measure,
        beside=True,
        rerank=rerank,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    if slices is not None and not isinstance(slices, Mapping):
        raise ValueError(
            'slices must be a mapping of names to one value a row, such as {"tenant": tenants}, but is '
            f"{type(slices).__name__}"
        )
    cuts = []
    for name, values in (slices or {}).items():
        rows = len(X if queries is None else queries)
        values = np.asarray(values)
        if values.shape != (rows,):
            raise ValueError(
                f"slices[{name!r}] must be one value for each of the {rows} rows that are asked, but "
                f"has the shape {values.shape}"
            )
        cuts.append((str(name), [str(value) for value in values.tolist()]))
    conditions = {
        "min_gain": float(min_gain),
        "no_worse_slice": bool(no_worse_slice),
        "allow_worse_measures": bool(allow_worse_measures),
        "worst": int(worst),
        "seed": random_state,
        "slices": cuts,
    }
    found = _metra.gate(
        question,
        conditions,
        metric_of(base),
        metric_of(candidate),
        *ranked(X, y, queries, qrels, gallery, cameras, query_cameras),
    )
    for name in ("beside", "slices"):
        found[name] = Verdicts(found[name])
    return Gate(**{**found, "changed": tuple(found["changed"])})
