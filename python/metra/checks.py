"""What are these vectors like, and how much is there to gain?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _metra
from ._supervision import supervision
from ._verdicts import html_table
from ._words import threads


@dataclass(frozen=True)
class DataCheck:
    """A first look at vectors.

    Attributes
    ----------
    shape : tuple of int
        Rows and dimension.
    norms : tuple of float
        Smallest, mean and largest length of a vector.
    zero_vectors : int
        Vectors of length 0, which cosine cannot compare.
    negative_values : bool
        Whether some value is below 0.
    spread_ratio : float
        Largest standard deviation of a column beside the smallest.
    duplicates, duplicates_of_another_class : int
        Rows that equal an earlier one, and those of them with another label.
    classes : dict, optional
        ``count``, ``smallest``, ``median``, ``largest``, ``of_one_row`` and ``holdout``: what
        `metra.compare` holds out by default.
    headroom : list of dict
        How well the vectors rank as they are, by ``score``: ``map`` and ``p@1`` of so many ``queries``, on
        a sample of whole classes.
    hints : list of tuple
        Preparations worth a try, each with the reason.
    """

    shape: tuple[int, int]
    norms: tuple[float, float, float]
    zero_vectors: int
    negative_values: bool
    spread_ratio: float
    duplicates: int
    duplicates_of_another_class: int
    classes: dict[str, Any] | None
    headroom: list[dict[str, Any]]
    hints: list[tuple[str, str]]

    def _facts(self) -> list[tuple[str, str]]:
        low, mean, high = self.norms
        facts = [
            ("vectors", f"{self.shape[0]:,} × {self.shape[1]}"),
            ("norms", f"{low:.4f} to {high:.4f}, mean {mean:.4f}"),
        ]
        if self.zero_vectors:
            facts.append(("zero", f"{self.zero_vectors:,} vectors of length 0: cosine cannot be used"))
        if self.duplicates:
            another = self.duplicates_of_another_class
            end = f", {another:,} of them under another label" if another else ""
            facts.append(("duplicates", f"{self.duplicates:,} rows equal an earlier one{end}"))
        if self.classes:
            sizes = "{count:,} of {smallest} to {largest} rows, median {median}".format(**self.classes)
            single = self.classes["of_one_row"]
            end = f"; {single:,} of one row, which have nothing to find" if single else ""
            facts.append(("classes", sizes + end))
        for base in self.headroom:
            values = f"map {base['map']:.4f}, p@1 {base['p@1']:.4f} as they are"
            gain = f"at most {1 - base['map']:+.4f} and {1 - base['p@1']:+.4f} to gain"
            facts.append((base["score"], f"{values} ({base['queries']:,} queries): {gain}"))
        facts += [("hint", f'{reason}: try prepare="{name}"') for name, reason in self.hints]
        return facts

    def __repr__(self) -> str:
        return "\n".join(f"{name:<12}{text}" for name, text in self._facts())

    def _repr_html_(self) -> str:
        return html_table(["", ""], [list(fact) for fact in self._facts()])


def check(X: Any, y: Any = None, *, random_state: int = 1, n_jobs: int | None = None) -> DataCheck:
    """Look at vectors and their labels before learning from them.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The vectors.
    y : array-like of shape (n_samples,), optional
        A class of every row.
    random_state : int, default=1
        Seed of the classes that the headroom is estimated from.
    n_jobs : int, optional
        Threads; None for all cores.

    Returns
    -------
    DataCheck
        Shape, lengths, duplicates, classes, and how well the vectors rank as they are.

    Examples
    --------
    >>> import metra
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> found = metra.check(X, y)
    >>> found.duplicates, found.classes["count"], round(found.headroom[0]["map"], 2)
    (0, 10, 0.66)
    """
    said = supervision(y)
    return DataCheck(**_metra.check(X, said, random_state, threads(n_jobs)))
