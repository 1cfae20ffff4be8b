"""Quality by bytes of an item: maps with codes of many sizes, chosen on a validation part."""

from __future__ import annotations

import json
from typing import Any

from . import _metra
from ._names import class_name
from ._progress import watcher
from ._supervision import supervision
from ._verdicts import pandas
from ._words import listed, threads


class Compression:
    """What `compress` found; in a notebook it shows its report.

    Attributes
    ----------
    results : dict
        Everything, as ``metra compress --json`` prints it.
    recommendation : str
        What to do, in a sentence.
    models : dict
        By budget of bytes: the `Model` of the best code searched alone.
    rescored : dict
        By budget of bytes: of the best code with rescoring the `Model` that finds first answers and the one that
        puts them in order.
    recommended : tuple or None
        The recommended `Model`, and the one that rescores its first answers or None; None where no code is
        recommended.
    """

    def __init__(self, found: tuple[str, str, list[Any], Any]) -> None:
        text, self._page, budgets, self.recommended = found
        self.results: dict[str, Any] = json.loads(text)
        self.recommendation: str = self.results["recommendation"]
        self.models = {budget: alone for budget, alone, _ in budgets if alone is not None}
        self.rescored = {budget: both for budget, _, both in budgets if both is not None}

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each line of the table: budgets, bytes in memory and on disk, map and code, the measure
        with its gain over the vectors as they are, and whether it is recommended.
        """
        rows = []
        for line in self.results["rows"]:
            gain = line["measures"][0]
            row = {name: line[name] for name in ("budgets", "words", "item_bytes", "disk_bytes", "learned", "rescored")}
            row |= {self.results["measure"]: gain["value"], "gain": gain["difference"]}
            row |= {name: gain[name] for name in ("low", "high", "verdict")}
            rows.append(row | {"recommended": line["recommended"]})
        return rows

    @property
    def frame(self) -> Any:
        """The rows as a pandas data frame."""
        return pandas().DataFrame(self.rows())

    def report(self, path: Any = None) -> str:
        """The report as one HTML page, written to `path` where one is given."""
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._page)
        return self._page

    def _repr_html_(self) -> str:
        # In a frame of its own: the page has a style sheet that is not meant for the notebook.
        from html import escape

        page = escape(self._page, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:0"></iframe>'

    def __repr__(self) -> str:
        found = self.results
        rows = self.rows()
        width = max((len(row["words"]) for row in rows), default=0) + 2
        lines = [
            f"{found['base']} on {found['base_bytes']} bytes: {found['measure']} {found['base_value']:.4f}",
            f"{'memory':>8}{'disk':>8}  {'map and code':{width}}{found['measure']:>8}{'gain':>10}   95 % interval",
        ]
        for row in rows:
            disk = "" if row["disk_bytes"] is None else row["disk_bytes"]
            text = f"{row['item_bytes']:>8}{disk:>8}  {row['words']:{width}}{row[found['measure']]:>8.4f}"
            lines.append(text + f"{row['gain']:>+10.4f}   [{row['low']:+.4f}, {row['high']:+.4f}]  {row['verdict']}")
        return "\n".join([*lines, f"recommended: {self.recommendation}"])


def compress(
    X: Any,
    y: Any = None,
    *,
    bytes: Any = (8, 16, 32, 64, 128, 256),
    queries: Any = None,
    qrels: Any = None,
    pairs: Any = None,
    triplets: Any = None,
    quadruplets: Any = None,
    cameras: Any = None,
    query_cameras: Any = None,
    methods: Any = None,
    rescore: int = 100,
    tolerance: float = 0.01,
    prepare: str = "none",
    base: str | None = None,
    holdout: str | None = None,
    validation: float = 0.2,
    test: float = 0.2,
    protocol: str | None = None,
    measures: str | list[str] | None = None,
    criterion: str | None = None,
    random_state: int = 1,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Any = None,
) -> Compression:
    """Find how few bytes an item needs, and what that costs or gains.

    For every budget the vectors as they are, their principal directions and learned maps are tried with codes of
    that size. The best on the validation part is evaluated once on the test part, against the vectors in float32.

    Parameters
    ----------
    X, y, queries, qrels, pairs, triplets, quadruplets, cameras, query_cameras
        Vectors and what is similar, as `fit` of any estimator takes them. Without any of it the ten nearest
        neighbours of the vectors count as right, and the share of them that is found is measured.
    bytes : list of int
        Budgets: bytes of an item in memory, at most.
    methods : list of str, optional
        Methods whose maps are tried (``"supcon"`` or ``"SupCon"``); None takes two that suit the supervision, an empty
        list none.
    rescore : int, default=100
        First answers of a code that are put in order by int8 vectors on disk; 0 tries no rescoring.
    tolerance : float, default=0.01
        Loss that is accepted, for the recommendation.
    prepare : str
        Preparation before learned maps, as estimators have it.
    base : {"euclid", "cosine"}, optional
        How vectors are compared as they are; None chooses on the validation part, and is cosine without supervision.
    holdout, validation, test, protocol, measures, criterion, random_state, n_jobs, verbose, callback
        As `metra.compare` has them.

    Returns
    -------
    Compression
        A table, models by budget, and a recommendation.

    Examples
    --------
    >>> import metra
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> found = metra.compress(X[:600], y[:600], bytes=[4], methods=["lda"], holdout="rows")
    >>> found.models[4].item_bytes <= 4
    True
    """
    given = (y, qrels, pairs, triplets, quadruplets)
    supervised = any(part is not None for part in given)
    if not supervised and queries is not None:
        raise _metra.ParameterError("queries must come with qrels, but there are none")
    names = None if methods is None else [_method(name) for name in listed(methods)]
    if not supervised and names:
        raise _metra.SupervisionError("methods learn from labels or qrels, but there are none: leave methods out")
    ignored = {
        "prepare": prepare != "none",
        "holdout": holdout is not None,
        "protocol": protocol is not None,
        "criterion": criterion is not None,
        "cameras": cameras is not None or query_cameras is not None,
    }
    for name, is_given in ignored.items():
        if is_given and not supervised:
            raise _metra.ParameterError(f"{name} must come with labels or qrels: without, neighbours are to be found")
    from ._arrays import as_rows
    from ._estimator import own_names

    order = {
        "bytes": [int(budget) for budget in bytes],
        "rescore": int(rescore),
        "tolerance": float(tolerance),
        "methods": names,
        "prepare": prepare,
        "base": base,
        "holdout": holdout,
        "validation": float(validation),
        "test": float(test),
        "protocol": protocol,
        "measures": listed(measures),
        "criterion": criterion,
        "seed": int(random_state),
        "threads": threads(n_jobs),
        "supervised": supervised,
    }
    vectors, asked = as_rows(X), None if queries is None else as_rows(queries)
    parts = {"qrels": qrels, "pairs": pairs, "triplets": triplets, "quadruplets": quadruplets}
    supervised_by = supervision(y, queries=asked, cameras=cameras, query_cameras=query_cameras, **parts)
    with watcher("compress", verbose, callback) as tell, own_names():
        return Compression(_metra.compress(order, vectors, asked, supervised_by, tell))


def _method(name: str) -> str:
    """The library's name of a method that is named as there or as in Python."""
    return next((entry["name"] for entry in _metra.methods() if class_name(entry["name"]) == name), name)
