"""Estimators by the rules of scikit-learn, made from the library's registry."""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, check_non_negative

from . import _metra
from ._arrays import as_rows, unpacked, working_type
from ._names import library_name, parameter_name
from ._pairs import Distance, as_distance, two_sides
from ._progress import watcher
from ._supervision import names, supervision
from ._verdicts import Verdicts
from ._words import listed, score_name, threads
from .evaluation import warn_of_thresholds

if TYPE_CHECKING:
    from typing_extensions import Self

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn before 1.6 has it as a method

    def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
        return estimator._validate_data(X, **options)


# Keywords that every estimator has beside its learner's own parameters.
SHARED: dict[str, Any] = {
    "prepare": "none",
    "score_by": None,
    "code": None,
    "holdout": None,
    "validation": 0.0,
    "test": 0.0,
    "refit": False,
    "grid": None,
    "criterion": None,
    "protocol": None,
    "random_state": 1,
    "n_jobs": None,
    "copy": False,
    "verbose": False,
}


# Kernels between histograms, which have no negative values.
HISTOGRAM_KERNELS = ("chi2", "exp-chi2", "intersection")


class MetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all estimators share: learning, mapping, distances, files."""

    _method: str
    _needs: str
    _supervised: bool
    _starts_from_model: bool
    _paper: dict[str, Any]

    @classmethod
    def paper(cls, **keywords: Any) -> Self:
        """The estimator with the settings of its paper (``--set preset=paper`` of the command).

        Parameters
        ----------
        **keywords : any
            Parameters that are given another value.

        Returns
        -------
        MetricLearner
            The estimator, not fitted.
        """
        if not cls._paper:
            raise _metra.ParameterError(f"{cls.__name__} has no preset of a paper")
        return cls(**{**cls._paper, **keywords})

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
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
        start_from: Any = None,
        callback: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 10.0,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> Self:
        """Learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The vectors; with `queries`, the items. C-contiguous float32 and float64 are read where
            they lie while other threads run, so that nothing may write to them until the call ends;
            ``copy=True`` makes a copy first.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), optional
            A class of every row. For several labels per row a list of labels in every row, or a matrix of 0 and 1 with a
            column per label (lists of 0 and 1 alone, all of one length, are one): rows are relevant to each other by
            the number of labels that they share. For other grades give `qrels`.
        queries : array-like of shape (n_queries, n_features), optional
            Vectors of queries, where they are not rows of `X`.
        qrels : array-like, mapping or sparse matrix, optional
            Which items are relevant to which queries, by row numbers: rows (query, item) or
            (query, item, grade), ``{query: {item: grade}}``, or a matrix of grades.
        two_spaces : bool, default=False
            Whether `queries` and `X` are vectors of two models, so that a map is learned for each; known where they have
            different numbers of features.
        vector_dims : sequence of int, optional
            That a row is several vectors, one behind the other, with these numbers of features: what ``l2-each`` prepares
            and ``VectorWeights`` weights.
        pairs : array-like of shape (n_pairs, 2) or (n_pairs, 3), or (pairs, labels), optional
            Row numbers of two vectors that are similar (1) or not (0 or -1); without a third column
            all are similar.
        triplets : array-like of shape (n_triplets, 3), optional
            Row numbers of an anchor, one that is near to it, and one that is far.
        quadruplets : array-like of shape (n_quadruplets, 4) or (n_quadruplets, 5), optional
            Row numbers of a pair and of another pair that is farther apart; a fifth column of 0
            asks for no margin between them.
        orderings : mapping or list of str, optional
            Orderings of classes by attributes, from least to most: ``{"smiling": "A<B~C"}`` or
            ``{"smiling": ["A", ["B", "C"]]}``; needs `y`.
        taxonomy : mapping or list of pairs, optional
            Parent of every class and group; needs `y`.
        cameras, query_cameras : array-like, optional
            Camera or session of every row (query), for ``prepare="centre-groups"`` and protocols of
            re-identification.
        start_from : estimator, Model or path, optional
            A fitted model whose map the steps start from, instead of anew: for new rows and classes. The estimator must have
            the same rank and ``prepare``. Rows that the model has learned from are not validated on, and none may be in
            the test part. Methods that take no steps refuse it.
        callback : callable, optional
            Called as ``callback(phase, step, steps, loss, validation)`` some times a second; what it
            raises ends the fit.
        checkpoint : path, optional
            A file that keeps how far the fit is. The same fit, called again after its process was
            ended, goes on from there to the same model. It is removed when the fit is done; a
            checkpoint of other data or settings is an error.
        checkpoint_every : float, default=10.0
            Seconds between two states in the checkpoint, at least.
        on_interrupt : {"raise", "keep"}, default="raise"
            What Ctrl-C does: end the call with KeyboardInterrupt, or end the steps under way and keep
            the best map so far, with a warning; a second Ctrl-C then ends the call.

        Returns
        -------
        self
            The fitted estimator.
        """
        given = (qrels, pairs, triplets, quadruplets)
        if y is None and self._supervised and all(part is None for part in given):
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                f"it learns from {self._needs}"
            )
        if getattr(X, "ndim", 2) == 3:
            raise ValueError(
                f"Found array with dim 3 in {type(self).__name__}: expected one vector a row. Pairs of "
                "vectors P (n, 2, d) with labels go in as fit(numpy.concatenate([P[:, 0], P[:, 1]]), "
                "pairs=([(i, n + i) for i in range(n)], labels))"
            )
        X = self._vectors(X, reset=True)
        if y is not None:
            _check_rows(y, X, "y")
        if cameras is not None:
            _check_rows(cameras, X, "cameras")
        if queries is not None:
            queries = self._own(as_rows(queries), queries)
        if not self._supervised and not any(part is not None for part in given):
            y = self._labels_to_judge_by(y, X)
        supervised_by = supervision(
            y,
            queries=queries,
            qrels=qrels,
            two_spaces=two_spaces,
            vector_dims=vector_dims,
            pairs=pairs,
            triplets=triplets,
            quadruplets=quadruplets,
            orderings=orderings,
            taxonomy=taxonomy,
            cameras=cameras,
            query_cameras=query_cameras,
            combined=bool(getattr(self, "class_weight", 0)),
        )
        if on_interrupt not in ("raise", "keep"):
            raise ValueError(f"on_interrupt must be raise or keep, but is {on_interrupt!r}")
        start = None if start_from is None else _earlier(start_from)
        order = self._order()
        if start is not None:
            if hasattr(self, "n_components"):
                order["settings"].setdefault("rank", str(start.output_dim))
            if not order["scores"] and start.method == self._method:
                order["scores"] = [start.score]
        order["keep"] = on_interrupt == "keep"
        if checkpoint is not None:
            order["checkpoint"] = (os.fspath(checkpoint), float(checkpoint_every))
        with watcher(type(self).__name__, self.verbose, callback) as tell, own_names():
            found = _metra.train(order, X, queries, supervised_by, tell, start)
        if found["ended_early"]:
            warnings.warn(
                f"{type(self).__name__}: the steps were ended by Ctrl-C; the best map so far is kept",
                stacklevel=2,
            )
        self._learned(found["model"])
        self.history_ = found["history"]
        last = [moment["step"] for moment in self.history_[-1:]]
        self.n_iter_ = int(self.model_.facts.get("steps", *last or [1]))
        self.trials_ = [{**t, "settings": python_settings(t["settings"])} for t in found["trials"]]
        self.chosen_ = python_settings(found["settings"])
        self.sizes_ = dict(zip(("train", "validation", "test"), found["sizes"]))
        self.test_ = Verdicts(found["test"])
        self.test_seen_ = Verdicts(found["seen"])
        self.test_unseen_ = Verdicts(found["unseen"])
        self.base_ = found["base"]
        self.cpu_seconds_ = found["cpu_seconds"]
        self.seconds_ = found["seconds"]
        return self

    @available_if(lambda self: self._starts_from_model)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, **given: Any) -> Self:
        """Go on learning, from what was learned before, if anything was.

        Every call takes all steps of the method (``steps``) on the rows that are given alone: give it old rows beside new
        ones, or it forgets what they taught, and few steps.

        Parameters
        ----------
        X, y, **given
            What `fit` takes, beside `start_from`.

        Returns
        -------
        self
            The fitted estimator.
        """
        earlier = getattr(self, "model_", None)
        if earlier is not None:
            self._vectors(X)  # of as many features as before
        return self.fit(X, y, start_from=earlier, **given)

    def fit_transform(self, X: Any, y: Any = None, cameras: Any = None, **given: Any) -> np.ndarray:
        """Learn from items and map them; takes what `fit` takes."""
        return self.fit(X, y, cameras=cameras, **given).transform(X, cameras)

    def _labels_to_judge_by(self, y: Any, X: np.ndarray) -> Any:
        """Classes for a method that needs none: only held-out parts are judged by them."""
        if self.validation == 0.0 and self.test == 0.0:
            return np.zeros(len(X), dtype=np.int64)
        if y is None:
            raise ValueError("validation and test need y, or qrels, to judge by, but there is none")
        return y

    def _order(self) -> dict[str, Any]:
        settings, own = {}, _own_parameters(type(self))
        for name in own:
            value = getattr(self, name)
            if value is not None:
                settings[library_name(name)] = library_text(value)
        if self.code is not None:
            settings["code"] = str(self.code)
        shared = ("prepare", "code")
        for name in self.grid or {}:
            if name not in (*own, *shared):
                raise _metra.ParameterError(
                    f"grid must name parameters ({', '.join([*own, *shared])}), but has {name!r}"
                )
        grid = [
            (name if name in shared else library_name(name), [library_text(v) for v in values])
            for name, values in (self.grid or {}).items()
        ]
        for name, values in grid:
            settings.pop(name, None)
            if len(values) != 1 and self.validation == 0.0:
                raise ValueError(
                    f"grid tries {len(values)} values of {parameter_name(name)}: expected "
                    "validation above 0, so that there is something to choose by, but it is 0"
                )
        nothing = self.validation == 0.0 and self.test == 0.0
        return {
            "method": self._method,
            "settings": settings,
            "grid": grid,
            "prepare": self.prepare,
            "scores": [score_name(score) for score in listed(self.score_by)],
            "base": None,
            "holdout": "none" if nothing and self.holdout is None else self.holdout,
            "validation": float(self.validation),
            "test": float(self.test),
            "refit": bool(self.refit),
            "protocol": self.protocol,
            "measures": [],
            "criterion": self.criterion,
            "seed": _seed(self.random_state),
            "threads": threads(self.n_jobs),
            "checkpoint": None,
            "keep": False,
        }

    def _learned(self, model: Any) -> None:
        self.model_ = model
        # Of an earlier fit, which may have had a matrix where this one has none.
        for name in ("components_", "offset_", "query_components_", "query_offset_"):
            self.__dict__.pop(name, None)
        matrix = model.components()
        if matrix is not None:
            self.components_, self.offset_ = matrix
            if model.two_sided:
                self.query_components_, self.query_offset_ = model.components(True)
        self.n_features_in_ = model.input_dim

    def _vectors(self, X: Any, reset: bool = False) -> np.ndarray:
        """Vectors as scikit-learn checks them, without a copy where they can be used as they are."""
        given, X = X, unpacked(X)
        if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
            wanted: Any = working_type(X.dtype)
        else:
            wanted = [np.float64, np.float32]
        least = 2 if reset else 1
        X = validate_data(self, X, reset=reset, dtype=wanted, order="C", ensure_min_samples=least)
        if self._takes_histograms():
            check_non_negative(X, f"{type(self).__name__} (kernel {self.kernel})")
        return self._own(X, given)

    def _queries(self, X: Any) -> np.ndarray:
        """Vectors of queries, which may be those of another model; their number of features is checked by the model."""
        if not self.model_.two_spaces:
            return self._vectors(X)
        return self._own(as_rows(X), X)

    def _own(self, rows: np.ndarray, given: Any) -> np.ndarray:
        """Rows that no other thread writes to, if ``copy`` asks for them."""
        # Arrow, pandas and Polars lend their memory too, which numpy cannot always tell.
        return rows.copy() if self.copy and (given is rows or rows.base is not None) else rows

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the outputs: attributes by their names, others by class and number."""
        check_is_fitted(self)
        if self.model_.outputs:
            return np.asarray(self.model_.outputs, dtype=object)
        return super().get_feature_names_out(input_features)

    @property
    def _n_features_out(self) -> int:
        return self.model_.output_dim

    def transform(self, X: Any, cameras: Any = None) -> np.ndarray:
        """Map items, so that plain distances between mapped vectors are the learned ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The vectors.
        cameras : array-like of shape (n_samples,), optional
            Camera of every row, where ``prepare`` needs it.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            To be compared by ``model_.score``: Euclidean distance, cosine or inner product.
        """
        return self.transform_item(X, cameras)

    def transform_item(self, X: Any, cameras: Any = None) -> np.ndarray:
        """Map items; see `transform`."""
        check_is_fitted(self)
        return self.model_.transform_items(self._vectors(X), names(cameras))

    def encode_items(self, X: Any, cameras: Any = None) -> np.ndarray:
        """The codes of items, where ``code`` says how they are held.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The vectors.
        cameras : array-like of shape (n_samples,), optional
            Camera of every row, where ``prepare`` needs it.

        Returns
        -------
        ndarray of shape (n_samples, model_.item_bytes), uint8
            Bits packed as by ``numpy.packbits``; of ``int8`` signed bytes, and the scale of the row as four bytes of a
            float32 where rows have one. `transform_item` gives the vectors that codes stand for, and
            `transform_query` what queries are compared with them by.
        """
        check_is_fitted(self)
        return self.model_.encode_items(self._vectors(X), names(cameras))

    def transform_query(self, X: Any, cameras: Any = None) -> np.ndarray:
        """Map queries, which learners of a bilinear similarity map otherwise than items."""
        check_is_fitted(self)
        return self.model_.transform_queries(self._queries(X), names(cameras))

    def pair_score(self, pairs: Any, cameras: Any = None, item_cameras: Any = None) -> np.ndarray:
        """How similar the two vectors of each pair are; more is more similar.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (left, right)
            The vectors of the pairs: query and item, where they are mapped differently.
        cameras, item_cameras : array-like, optional
            Camera of the first (second) vector of each pair, where ``prepare`` needs it.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Scores in the order of the pairs.
        """
        check_is_fitted(self)
        left, right = two_sides(pairs)
        left, right = self._queries(left), self._vectors(right)
        return -self.model_.pair_dissimilarity(left, right, cameras, item_cameras)

    def pair_distance(
        self, pairs: Any, cameras: Any = None, item_cameras: Any = None
    ) -> np.ndarray:
        """Learned distance between the two vectors of each pair; see `pair_score`.

        With the Euclidean score this is the Mahalanobis distance (its root), with cosine
        1 - cosine. An inner product is no distance: use `pair_score` there.
        """
        dissimilarity = -self.pair_score(pairs, cameras, item_cameras)
        return as_distance(self.model_.score, dissimilarity)

    def distances(
        self, X: Any, items: Any = None, cameras: Any = None, item_cameras: Any = None
    ) -> np.ndarray:
        """All distances between rows of `X` and `items` (or of `X`), for ``metric="precomputed"``."""
        check_is_fitted(self)
        X = self._vectors(X) if items is None else self._queries(X)
        if items is None:
            items_, item_cameras = X, cameras
        else:
            items_ = self._vectors(items)
        found = self.model_.dissimilarity(X, items_, cameras, item_cameras)
        out = as_distance(self.model_.score, found)
        if items is None:
            np.fill_diagonal(out, 0.0)
        return out

    def get_metric(self) -> Any:
        """The learned distance as a function of two vectors, for ``metric=`` of scikit-learn.

        Returns
        -------
        callable
            ``distance(u, v)``; it keeps the model and no data.
        """
        check_is_fitted(self)
        return Distance(self.model_)

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """M such that the squared distance is (u - v)^T M (u - v), for linear maps by Euclid."""
        check_is_fitted(self)
        model = self.model_
        if model.score != "euclid" or model.two_sided:
            raise ValueError(
                "there is no such matrix: expected one linear map compared by euclid, but found "
                f"score {model.score}"
            )
        try:
            linear = model.linear_part()
        except _metra.MetraError as error:
            raise ValueError(f"there is no such matrix: {error}") from None
        return linear.T @ linear

    def search(
        self,
        queries: Any,
        items: Any,
        k: int = 10,
        cameras: Any = None,
        item_cameras: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The nearest items of every query, by exact search.

        Returns
        -------
        ids : ndarray of shape (n_queries, k)
            Row numbers of the items, nearest first.
        dissimilarities : ndarray of shape (n_queries, k)
            Smaller is nearer: squared distances, or negative cosines or inner products.
        """
        check_is_fitted(self)
        queries, items = self._queries(queries), self._vectors(items)
        return self.model_.search(
            queries, items, k, cameras, item_cameras, threads(self.n_jobs)
        )

    def calibrate_threshold(
        self, X: Any, y: Any, false_match_rate: float = 0.001, cameras: Any = None
    ) -> Self:
        """Find where same ends: a threshold that so many pairs of two identities pass by mistake.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were not learned from: all pairs of them are measured.
        y : array-like of shape (n_samples,)
            An identity of every row.
        false_match_rate : float, default=0.001
            Largest share of the pairs of two identities that may match.
        cameras : array-like of shape (n_samples,), optional
            Camera of every row, where ``prepare`` needs it.

        Returns
        -------
        self
            With the threshold in ``model_.decision``, which files keep, and with the rate of true
            matches and its interval beside it.
        """
        check_is_fitted(self)
        X = self._vectors(X)
        _check_rows(y, X, "y")
        given = supervision(y, cameras=cameras)
        self.model_, leak = _metra.calibrate(
            self.model_, X, given, false_match_rate, 0, threads(self.n_jobs)
        )
        warn_of_thresholds([false_match_rate], self.model_.decision["different"], leak)
        return self

    def same(self, pairs: Any, cameras: Any = None, item_cameras: Any = None) -> np.ndarray:
        """Whether the two vectors of each pair are the same, by the calibrated threshold.

        Takes what `pair_score` takes and gives an array of booleans.
        """
        dissimilarity = -self.pair_score(pairs, cameras, item_cameras)
        decision = self.model_.decision
        if decision is None:
            raise ValueError("there is no threshold yet: call calibrate_threshold first")
        return dissimilarity <= decision["threshold"]

    def score(self, X: Any, y: Any = None, measure: str = "map", **given: Any) -> float:
        """A ranking measure: every row is a query and all others are searched.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The vectors.
        y : array-like of shape (n_samples,)
            A class of every row.
        measure : str, default="map"
            Any measure that `metra.evaluate` knows.
        **said
            What else `metra.evaluate` takes, such as `queries` and `qrels`.

        Returns
        -------
        float
            The mean over queries.
        """
        from .evaluation import evaluate

        check_is_fitted(self)
        self._vectors(X)
        return evaluate(self, X, y, measures=[measure], n_jobs=self.n_jobs, **given)[measure]

    def save(self, path: Any) -> None:
        """Write the model to a file that the command ``metra`` reads too."""
        check_is_fitted(self)
        self.model_.save(path)

    @classmethod
    def load(cls, path: Any) -> MetricLearner:
        """An estimator with the model of a file; its parameters are those of the file."""
        from ._make import from_model

        return from_model(_metra.Model.load(path), cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._supervised
        # Vectors are kept as float32 whatever they came as.
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.input_tags.positive_only = self._takes_histograms()
        return tags

    def _more_tags(self) -> dict[str, Any]:
        # What scikit-learn before 1.6 asks.
        return {
            "requires_y": self._supervised,
            "preserves_dtype": ["float32"],
            "requires_positive_X": self._takes_histograms(),
        }

    def _takes_kernel(self) -> bool:
        return hasattr(self, "kernel")

    def _takes_histograms(self) -> bool:
        return getattr(self, "kernel", None) in HISTOGRAM_KERNELS


@contextlib.contextmanager
def own_names() -> Iterator[None]:
    """Errors about parameters, with the names that they have in Python."""
    try:
        yield
    except _metra.ParameterError as error:
        name, separator, rest = str(error).partition(" must be ")
        if not separator or parameter_name(name) == name:
            raise
        raise _metra.ParameterError(parameter_name(name) + separator + rest) from None


def python_settings(settings: dict[str, str]) -> dict[str, Any]:
    return {parameter_name(name): python_value(text) for name, text in settings.items()}


def _check_rows(values: Any, X: np.ndarray, what: str) -> None:
    # Lists of labels differ in length, and sparse matrices have none: neither is an array.
    if not hasattr(values, "shape") and not hasattr(values, "__len__"):
        values = np.asarray(values)
    shape = values.shape if hasattr(values, "shape") else (len(values),)
    rows = shape[0] if shape else 1
    if not shape or rows != len(X):
        # The words are scikit-learn's, which its own checks look for.
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {what} must have one "
            f"value a row: expected {len(X)}, but found {rows}"
        )


def library_text(value: Any) -> str:
    """A value as the library reads it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def python_value(text: str) -> Any:
    """A value of the library, which keeps all as text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _earlier(given: Any) -> Any:
    """The model of an estimator, a model, or that of a file."""
    if isinstance(given, MetricLearner):
        check_is_fitted(given)
        return given.model_
    return given if isinstance(given, _metra.Model) else _metra.Model.load(given)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state must be at least 0, but is {random_state}")
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def _own_parameters(estimator: type[MetricLearner]) -> list[str]:
    signature = inspect.signature(estimator.__init__)
    return [name for name in signature.parameters if name != "self" and name not in SHARED]
