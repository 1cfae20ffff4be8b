"""How a plan is chosen for a store, remembered beside its vectors, and found again.

A stored vector makes sense only to the model and the plan that mapped it. The record says both, in
a few hundred bytes of JSON that every store has a place for; a centre adds 16 bytes for every three
numbers. The model itself is not in it: models are files of their own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _metra
from .._metra import MetraError, Model, ParameterError, Plan

# Raised when a field changes its meaning, so that an older metra refuses instead of guessing.
VERSION = 1


class StoreError(MetraError):
    """What a store holds is not what was expected; the message names both."""

    __module__ = "metra.stores"


@dataclass(frozen=True)
class Written:
    """What a store remembers of who wrote its vectors.

    Attributes
    ----------
    model : str
        SHA-256 of the model's file.
    method : str
        The learner, for people who read the record.
    way, distance : str
        The plan's way and what the store compares by.
    dimension : int
        Numbers in a stored vector.
    raw : bool
        Whether the vectors are the items as they were, which serve any model that leaves them so.
    ids : str
        ``int`` or ``str``: what the identifiers were before the store took them.
    centre : str or None
        What was taken from mapped vectors, as base64 of little-endian float32.
    """

    model: str
    method: str
    way: str
    distance: str
    dimension: int
    raw: bool
    ids: str
    centre: str | None

    @classmethod
    def of(cls, model: str, method: str, plan: Plan, ids: str) -> Written:
        """The record of what is about to be written."""
        centre = plan.centre
        return cls(
            model=model,
            method=method,
            way=plan.way,
            distance=plan.distance,
            dimension=plan.dimension,
            raw=plan.items_stay,
            ids=ids,
            centre=None if centre is None else _packed(centre),
        )

    def to_text(self) -> str:
        """The record as JSON, with sorted keys."""
        return json.dumps({"metra": VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str, name: str) -> Written:
        """The record of a store; `name` is for messages."""
        try:
            read = json.loads(text)
            version = read.pop("metra")
            if version != VERSION:
                raise StoreError(
                    f"{name} has a record of version {version}, but expected {VERSION}: another "
                    "version of metra wrote it"
                )
            return cls(**{field.name: read[field.name] for field in fields(cls)})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"the record of {name} cannot be read: {error!r}") from error


@dataclass(frozen=True)
class Found:
    """What is there already: a collection, a table's column, an index.

    Attributes
    ----------
    name : str
        For messages, such as ``the table "docs"``.
    record : str or None
        What `Written.to_text` gave, if it is there.
    distance : str or None
        What it compares by; None where a search chooses.
    dimension : int or None
        Numbers in a vector; None where the first one that is written decides.
    rows : int
        Vectors in it.
    """

    name: str
    record: str | None
    distance: str | None
    dimension: int | None
    rows: int

    def written(self) -> Written | None:
        """The record, if there is one."""
        return None if self.record is None else Written.from_text(self.record, self.name)


def learned(model: Any) -> Model:
    """The model itself, of a model or a fitted estimator."""
    found = getattr(model, "model_", model)
    if isinstance(found, Model):
        return found
    from sklearn.base import BaseEstimator

    if isinstance(found, BaseEstimator):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(found)
    raise ParameterError(
        f"model must be a metra.Model or a fitted estimator of metra, but is {type(model).__name__}"
    )


def digest(model: Model) -> str:
    """SHA-256 of the model's file, which is the same wherever it was trained or loaded."""
    return hashlib.sha256(model.to_bytes()).hexdigest()


def fresh_plan(
    model: Model,
    found: Found | None,
    offered: Sequence[str],
    distance: str | None,
    most_dimensions: int | None,
) -> Plan:
    """The plan for a collection that is absent or empty; it has no centre yet."""
    plan = _metra.plan(model, _allowed(model, offered, distance), False, most_dimensions)
    if found is not None:
        _check_shape(found, plan)
        if found.rows:
            raise StoreError(
                f"{found.name} holds {found.rows} vectors that metra did not write: expected an "
                "empty or a new one, or keep_items=True to search them as they are"
            )
    return plan


def kept_plan(
    model: Model,
    found: Found,
    offered: Sequence[str],
    distance: str | None,
    most_dimensions: int | None,
) -> Plan:
    """The plan that searches vectors which stay as they are."""
    written = found.written()
    if written is not None and not written.raw:
        raise StoreError(
            f"{found.name} holds vectors that {_model(written)} mapped ({written.way}), but "
            "keep_items expects them as they were"
        )
    there = found.distance if written is None else written.distance
    if distance is not None and there is not None and distance != there:
        raise StoreError(f"{found.name} compares by {there}, but distance is {distance!r}")
    allowed = _allowed(model, offered, distance) if there is None else [there]
    plan = _metra.plan(model, allowed, True, most_dimensions)
    _check_shape(found, plan)
    return plan


def written_plan(model: Model, own: str, found: Found, distance: str | None) -> Plan:
    """The plan by which the vectors were written, for the same model, whose digest is `own`."""
    written = Written.from_text(found.record or "", found.name)
    if own != written.model:
        raise StoreError(
            f"{found.name} was written by {_model(written)}, but this is "
            f"{_named(own, model.method)}: use the model that wrote it, or write to a new one"
        )
    if distance is not None and distance != written.distance:
        raise StoreError(
            f"{found.name} compares by {written.distance}, but distance is {distance!r}: write "
            "to a new one"
        )
    try:
        plan = _metra.find_plan(model, written.way, written.distance, written.dimension)
    except MetraError as error:
        raise StoreError(f"the record of {found.name} names a plan that is unknown: {error}") from error
    _check_shape(found, plan)
    if written.centre is not None:
        plan = plan.with_centre(_unpacked(written.centre, found.name))
    return plan


def _check_shape(found: Found, plan: Plan) -> None:
    if found.dimension is not None and found.dimension != plan.dimension:
        raise StoreError(
            f"{found.name} holds vectors of dimension {found.dimension}, but the plan ({plan.way} by "
            f"{plan.distance}) has {plan.dimension}"
        )
    if found.distance is not None and found.distance != plan.distance:
        raise StoreError(
            f"{found.name} compares by {found.distance}, but the plan ({plan.way}) needs "
            f"{plan.distance}"
        )


def _allowed(model: Model, offered: Sequence[str], distance: str | None) -> list[str]:
    if distance is None:
        return list(offered)
    if distance not in offered:
        # What cannot work in any store is said first, with all its reasons.
        _metra.plan(model, [distance])
        raise ParameterError(
            f"distance must be one of {', '.join(offered)} for this store, but is {distance!r}"
        )
    return [distance]


def _model(written: Written) -> str:
    return _named(written.model, written.method)


def _named(model: str, method: str) -> str:
    return f"the model {model[:12]} ({method})"


def _packed(centre: NDArray[np.float32]) -> str:
    return base64.b64encode(centre.astype("<f4").tobytes()).decode("ascii")


def _unpacked(centre: str, name: str) -> list[float]:
    try:
        values = np.frombuffer(base64.b64decode(centre, validate=True), dtype="<f4")
    except ValueError as error:
        raise StoreError(f"the centre in the record of {name} cannot be read: {error}") from error
    return [float(value) for value in values]
