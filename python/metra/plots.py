"""Pictures through matplotlib, which is an optional extra: ``pip install metra[plots]``."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np

from ._arrays import as_rows
from .comparison import Comparison
from .evaluation import Evaluation, Verification, metric_of


def _axes(axes: Any, **options: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install metra[plots]") from error
    return pyplot.subplots(layout="constrained", **options)[1]


def plot_cmc(evaluations: Any, *, ranks: int = 20, ax: Any = None) -> Any:
    """Share of queries whose first relevant item is among the first 1, 2, ... answers.

    Parameters
    ----------
    evaluations : Evaluation, or mapping of names to Evaluation
        What `metra.evaluate` gave.
    ranks : int, default=20
        How far to the right.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        With one line an evaluation.
    """
    curves = {
        name: (np.arange(1, min(ranks, len(found.cmc)) + 1), np.asarray(found.cmc)[:ranks])
        for name, found in _named(evaluations).items()
    }
    ax = _drawn(_axes(ax), curves, "rank", "share of queries found")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax


def plot_precision(evaluations: Any, *, ax: Any = None) -> Any:
    """Precision by recall, the mean over queries.

    Parameters
    ----------
    evaluations : Evaluation, or mapping of names to Evaluation
        What `metra.evaluate` gave.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        With one line an evaluation.
    """
    curves = {
        name: (np.linspace(0, 1, len(found.precision)), np.asarray(found.precision))
        for name, found in _named(evaluations).items()
    }
    return _drawn(_axes(ax), curves, "recall", "precision")


def plot_roc(verifications: Any, *, ax: Any = None) -> Any:
    """Rate of true matches by rate of false matches, on a logarithmic axis, with intervals.

    Parameters
    ----------
    verifications : Verification, or mapping of names to Verification
        What `metra.verification` gave; ``false_match_rates=numpy.logspace(-4, -0.5, 30)`` draws well.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        With one line a verification.
    """
    ax = _axes(ax)
    found = _named(verifications)
    curves = {}
    for name, points in _rates(found).items():
        false, true, low, high = points
        curves[name] = (false, true)
        ax.fill_between(false, low, high, alpha=0.15)
    ax.set_xscale("log")
    bottom = ax.get_ylim()[0]
    ax = _drawn(ax, curves, "rate of false matches", "rate of true matches")
    ax.set_ylim(bottom=max(bottom, 0.0))
    return ax


def plot_det(verifications: Any, *, ax: Any = None) -> Any:
    """Rate of missed matches by rate of false matches, both on the normal distribution's scale.

    Parameters
    ----------
    verifications : Verification, or mapping of names to Verification
        What `metra.verification` gave; ``false_match_rates=numpy.logspace(-4, -0.5, 30)`` draws well.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        With one line a verification; lower is better.
    """
    from statistics import NormalDist

    place = np.vectorize(NormalDist().inv_cdf, otypes=[float])
    ax = _axes(ax)
    found = _named(verifications)
    ends = []
    for name, (false, true, _, _) in _rates(found).items():
        drawn = (true < 1.0) & (true > 0.0)
        missed = 1.0 - true[drawn]
        ax.plot(place(false[drawn]), place(missed), marker=".", label=name or None)
        ends.append((false[drawn], missed))
    ticks = np.array([1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])
    for axis, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
        values = np.concatenate([np.empty(0), *(end[side] for end in ends)])
        if len(values):
            near = ticks[(ticks >= values.min() / 3) & (ticks <= min(3 * values.max(), 0.995))]
            limits = place(np.array([values.min() / 1.2, min(1.2 * values.max(), 0.995)]))
            axis.set_ticks(place(near), [f"{100 * tick:g} %" for tick in near])
            ax.set(**{f"{axis.axis_name}lim": limits})
    ax.set(xlabel="rate of false matches", ylabel="rate of missed matches")
    ax.grid(alpha=0.3)
    if any(found):
        ax.legend(loc="best")
    return ax


def _rates(verifications: dict[str, Verification]) -> dict[str, tuple[np.ndarray, ...]]:
    """False and true matches with the interval, by growing rate; rates of which there are none are left out."""
    names = ("false_match_rate", "true_match_rate", "low", "high")
    curves = {}
    for name, found in verifications.items():
        points = sorted(found.points, key=lambda point: point["asked"])
        points = [point for point in points if point["false_match_rate"] > 0]
        curves[name] = tuple(np.array([point[key] for point in points]) for key in names)
    return curves


def plot_gains(gains: Any, *, ax: Any = None) -> Any:
    """Gains with their intervals, one line each: a forest plot.

    Parameters
    ----------
    gains : Comparison, or list of dict
        What `metra.compare` gave (gains of methods in its criterion), or what `Evaluation.against`
        gave or ``test_`` of an estimator holds (gains by measure).
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        With a point and an interval a method or measure; those right of zero are better.
    """
    rows = [
        (row.get("method") or row["measure"], row.get("gain", row.get("difference")), row)
        for row in (gains.rows() if isinstance(gains, Comparison) else gains)
    ]
    rows = [row for row in rows if row[1] is not None][::-1]
    if not rows:
        raise ValueError("there is no gain to draw: expected at least one method beside the base")
    ax = _axes(ax, figsize=(6, 1.2 + 0.35 * len(rows)))
    for place, (_, gain, row) in enumerate(rows):
        colour = {"better": "tab:green", "worse": "tab:red"}.get(row["verdict"], "tab:gray")
        ax.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=2)
        ax.plot([gain], [place], color=colour, marker="o")
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    ax.set(xlabel="gain, with its 95 % interval", ylim=(-0.6, len(rows) - 0.4))
    ax.grid(alpha=0.3, axis="x")
    return ax


def _named(found: Any) -> dict[str, Any]:
    """What is drawn by its name: one thing alone has none."""
    return {"": found} if isinstance(found, (Evaluation, Verification)) else dict(found)


def _drawn(ax: Any, curves: Any, across: str, up: str) -> Any:
    """Lines on axes that begin a little below the lowest of them, so that differences are seen."""
    for name, (places, values) in curves.items():
        ax.plot(places, values, marker=".", label=name or None)
    lowest = min(float(np.min(values)) for _, values in curves.values())
    highest = max(float(np.max(values)) for _, values in curves.values())
    room = max(0.05 * (highest - lowest), 0.005)
    ax.set(xlabel=across, ylabel=up, ylim=(max(lowest - room, 0.0), min(highest + room, 1.02)))
    ax.grid(alpha=0.3)
    if any(curves):
        ax.legend(loc="best")
    return ax


def plot_embedding(estimator: Any, X: Any, y: Any = None, *, axes: Any = None) -> Any:
    """The two directions of largest variance, of the vectors as they are and as mapped.

    Parameters
    ----------
    estimator : fitted estimator
        What maps.
    X : array-like of shape (n_samples, n_features)
        The vectors.
    y : array-like of shape (n_samples,), optional
        Classes, for colours.
    axes : two matplotlib axes, optional
        Where to draw.

    Returns
    -------
    two matplotlib axes
        Before and after.
    """
    axes = _axes(axes, ncols=2, figsize=(9, 4))
    classes = None if y is None else np.unique(np.asarray(y), return_inverse=True)
    for ax, title, rows in zip(axes, ("before", "after"), (as_rows(X), estimator.transform(X))):
        points = _two_directions(np.asarray(rows, dtype=np.float64))
        colours = None if classes is None else classes[1]
        drawn = ax.scatter(*points.T, c=colours, cmap="tab10", s=8, alpha=0.7)
        ax.set(title=title, xticks=[], yticks=[])
    if classes is not None and len(classes[0]) <= 10:
        handles, _ = drawn.legend_elements(num=None)
        axes[1].legend(handles, classes[0], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def _two_directions(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, ::-1][:, :2]


def plot_history(estimator: Any, *, ax: Any = None) -> Any:
    """Loss, and the value on the validation part where there was one, by step.

    Parameters
    ----------
    estimator : fitted estimator
        One that learned in steps.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        Of the loss; the validation value has an axis of its own on the right.
    """
    history = estimator.history_
    if not history:
        raise ValueError(f"{type(estimator).__name__} learned in closed form: there are no steps")
    # The first phase has the validation part, where there was one.
    phase = history[0]["phase"]
    moments = [moment for moment in history if moment["phase"] == phase]
    ax = _axes(ax)
    steps = [moment["step"] for moment in moments]
    ax.plot(steps, [moment["loss"] for moment in moments], color="tab:blue", label="loss")
    ax.set(xlabel="step", ylabel="loss")
    ax.grid(alpha=0.3)
    judged = [moment for moment in moments if moment["validation"] is not None]
    if judged:
        right = ax.twinx()
        values = [moment["validation"] for moment in judged]
        right.plot([m["step"] for m in judged], values, color="tab:orange", marker=".")
        right.set_ylabel("validation", color="tab:orange")
    return ax


def plot_neighbours(
    metric: Any,
    X: Any,
    y: Any,
    images: Any,
    *,
    queries: Any = 8,
    k: int = 8,
    random_state: int = 1,
) -> Any:
    """Pictures of what queries find among the other rows, framed green if right and red if not.

    For the queries that fare worst: ``found.queries[found.per_query("map").argsort()[:8]]`` of what
    `metra.evaluate` gave. ``metra sheets`` draws large sheets of images in files.

    Parameters
    ----------
    metric : estimator, Model or str
        What ranks, as for `evaluate`.
    X : array-like of shape (n_samples, n_features)
        Vectors that were not learned from.
    y : array-like of shape (n_samples,)
        A class of every row.
    images : sequence of n_samples arrays or paths
        A picture of every row, as ``matplotlib.pyplot.imshow`` or ``imread`` takes it.
    queries : int or sequence of int, default=8
        Rows that ask, or how many to draw by the seed.
    k : int, default=8
        How many answers to show.
    random_state : int, default=1
        Seed of the draw.

    Returns
    -------
    array of matplotlib axes
        A row a query: the query, and its nearest rows with rank and distance.
    """
    rows, labels, images = as_rows(X), np.asarray(y), list(images)
    if not len(rows) == len(labels) == len(images):
        raise ValueError(
            f"expected a class and a picture of each of {len(rows)} rows, but found {len(labels)} classes "
            f"and {len(images)} pictures"
        )
    if isinstance(queries, (int, np.integer)):
        drawn = np.random.default_rng(random_state)
        queries = np.sort(drawn.choice(len(rows), min(int(queries), len(rows)), replace=False))
    queries = np.asarray(queries)
    if queries.dtype == bool:
        queries = np.flatnonzero(queries)
    queries = queries.astype(np.int64)
    if len(queries) == 0 or queries.min() < 0 or queries.max() >= len(rows):
        raise ValueError(f"expected queries between 0 and {len(rows) - 1}, but found {queries}")
    distances = _distances(metric, rows, queries)
    distances[np.arange(len(queries)), queries] = np.inf  # itself
    k = min(k, len(rows) - 1)
    size = (1.0 + 1.0 * k, 1.35 * len(queries))
    axes = _axes(None, nrows=len(queries), ncols=k + 1, figsize=size, squeeze=False)
    for line, query, found in zip(axes, queries, distances):
        _picture(line[0], images[query], "black", f"query\n{labels[query]}")
        for rank, (ax, item) in enumerate(zip(line[1:], np.argsort(found, kind="stable")), 1):
            colour = "tab:green" if labels[item] == labels[query] else "tab:red"
            _picture(ax, images[item], colour, f"{rank}: {labels[item]}\n{found[item]:.3g}")
    return axes


def _distances(metric: Any, rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    model, score = metric_of(metric)
    if model is not None:
        return np.asarray(model.dissimilarity(rows[queries], rows), dtype=np.float64)
    rows = np.asarray(rows, dtype=np.float64)
    if score == "euclid":
        return np.stack([((rows - rows[query]) ** 2).sum(axis=1) for query in queries])
    if score == "cosine":
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not lengths.all():
            raise ValueError(f"row {int(np.argmin(lengths))} has length 0, which cosine cannot compare")
        rows = rows / lengths
        return 1.0 - rows[queries] @ rows.T
    return -rows[queries] @ rows.T


def _picture(ax: Any, image: Any, colour: str, title: str) -> None:
    if isinstance(image, (str, PathLike)):
        from matplotlib import pyplot

        image = pyplot.imread(fspath(image))
    image = np.asarray(image)
    ax.imshow(image, cmap="gray" if image.ndim == 2 else None)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=7)
    for spine in ax.spines.values():
        spine.set(color=colour, linewidth=2)


__all__ = [
    "plot_cmc",
    "plot_det",
    "plot_embedding",
    "plot_gains",
    "plot_history",
    "plot_neighbours",
    "plot_precision",
    "plot_roc",
]
