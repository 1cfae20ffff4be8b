"""The native part: see python/src."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

class MetraError(ValueError): ...
class ParameterError(MetraError): ...
class DataError(MetraError): ...
class SupervisionError(MetraError): ...
class DivergedError(MetraError): ...
class ModelFileError(MetraError): ...
class PlanError(MetraError): ...
class InternalError(RuntimeError): ...

class Model:
    @classmethod
    def load(cls, path: Any) -> Model: ...
    @classmethod
    def from_bytes(cls, data: bytes) -> Model: ...
    def save(self, path: Any) -> None: ...
    def to_bytes(self) -> bytes: ...
    @property
    def method(self) -> str: ...
    @property
    def parameters(self) -> dict[str, str]: ...
    @property
    def prepare(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def facts(self) -> dict[str, float]: ...
    @property
    def score(self) -> str: ...
    @property
    def input_dim(self) -> int: ...
    @property
    def output_dim(self) -> int: ...
    @property
    def code(self) -> str | None: ...
    @property
    def item_bytes(self) -> int: ...
    @property
    def outputs(self) -> list[str]: ...
    @property
    def fingerprints(self) -> tuple[str, str]: ...
    @property
    def cameras(self) -> list[str] | None: ...
    @property
    def held_out(self) -> dict[str, Any] | None: ...
    @property
    def decision(self) -> dict[str, Any] | None: ...
    @property
    def two_sided(self) -> bool: ...
    def components(
        self, queries: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None] | None: ...
    def linear_part(self) -> NDArray[np.float32]: ...
    def transform(self, x: ArrayLike, cameras: Any = None) -> NDArray[np.float32]: ...
    def transform_items(
        self, x: ArrayLike, cameras: Any = None
    ) -> NDArray[np.float32]: ...
    def encode_items(self, x: ArrayLike, cameras: Any = None) -> NDArray[np.uint8]: ...
    def shortened(self, dimensions: int) -> Model: ...
    def transform_queries(
        self, x: ArrayLike, cameras: Any = None
    ) -> NDArray[np.float32]: ...
    def dissimilarity(
        self,
        queries: ArrayLike,
        items: ArrayLike,
        cameras: Any = None,
        item_cameras: Any = None,
    ) -> NDArray[np.float32]: ...
    def pair_dissimilarity(
        self,
        a: ArrayLike,
        b: ArrayLike,
        cameras: Any = None,
        item_cameras: Any = None,
    ) -> NDArray[np.float64]: ...
    def search(
        self,
        queries: ArrayLike,
        items: ArrayLike,
        k: int,
        cameras: Any = None,
        item_cameras: Any = None,
        threads: int | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...

class Plan:
    @property
    def way(self) -> str: ...
    @property
    def distance(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def items_stay(self) -> bool: ...
    @property
    def sign_scale(self) -> float | None: ...
    @property
    def centre(self) -> NDArray[np.float32] | None: ...
    def centred_on(self, items: ArrayLike) -> Plan: ...
    def with_centre(self, centre: list[float]) -> Plan: ...
    def map_items(self, x: ArrayLike, cameras: Any = None) -> NDArray[np.float32]: ...
    def map_queries(
        self, x: ArrayLike, cameras: Any = None
    ) -> NDArray[np.float32]: ...
    def describe(self) -> str: ...

def plan(
    model: Model,
    distances: list[str],
    keep_items: bool = False,
    most_dimensions: int | None = None,
    way: str | None = None,
) -> Plan: ...
def find_plan(model: Model, way: str, distance: str, dimension: int) -> Plan: ...
def methods() -> list[dict[str, Any]]: ...
def check_settings(method: str, settings: dict[str, str]) -> None: ...
def train(
    order: dict[str, Any],
    items: ArrayLike,
    queries: ArrayLike | None,
    supervision: dict[str, Any],
    callback: Any = None,
    start: Model | None = None,
) -> dict[str, Any]: ...
def judge(
    question: dict[str, Any],
    metric: tuple[Model | None, str | None],
    items: ArrayLike,
    queries: ArrayLike | None,
    supervision: dict[str, Any],
    gallery: tuple[ArrayLike, dict[str, Any]] | None = None,
    callback: Any = None,
) -> dict[str, Any]: ...
def gate(
    question: dict[str, Any],
    conditions: dict[str, Any],
    base: tuple[Model | None, str | None],
    candidate: tuple[Model | None, str | None],
    items: ArrayLike,
    queries: ArrayLike | None,
    supervision: dict[str, Any],
    gallery: tuple[ArrayLike, dict[str, Any]] | None = None,
) -> dict[str, Any]: ...
def label_budget(
    order: dict[str, Any],
    items: ArrayLike,
    queries: ArrayLike | None,
    supervision: dict[str, Any],
    halvings: int,
    draws: int,
    callback: Any = None,
) -> dict[str, Any]: ...
def clicks(
    log: Any,
    min_sessions: int,
    smoothing: float,
    grades: list[float],
    eta: float | None,
) -> dict[str, Any]: ...
def export(
    model: Model,
    path: str,
    wish: dict[str, Any],
    plan: Plan | None = None,
    items: ArrayLike | None = None,
) -> list[str]: ...
def command(program: list[str], arguments: list[str]) -> int: ...
def agree(
    model: Model | None,
    score: str | None,
    base: str | None,
    items: ArrayLike,
    supervision: dict[str, Any],
    seed: int = 1,
    threads: int | None = None,
) -> list[dict[str, Any]]: ...
def calibrate(
    model: Model,
    items: ArrayLike,
    supervision: dict[str, Any],
    rate: float,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[Model, tuple[int, int] | None]: ...
def verification(
    metric: tuple[Model | None, str | None],
    items: ArrayLike,
    supervision: dict[str, Any],
    rates: list[float],
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, Any]: ...
def check(
    items: ArrayLike,
    supervision: dict[str, Any],
    seed: int = 1,
    threads: int | None = None,
) -> dict[str, Any]: ...
def measure_name(name: str) -> str: ...
def bootstrap(
    base: list[float],
    learned: list[float],
    clusters: list[int],
    resamples: int,
    level: float,
    seed: int,
) -> dict[str, Any]: ...
def compare(
    contest: dict[str, Any],
    items: ArrayLike,
    queries: ArrayLike | None,
    supervision: dict[str, Any],
    callback: Any = None,
) -> tuple[str, str]: ...
def compress(
    order: dict[str, Any],
    items: ArrayLike,
    queries: ArrayLike | None,
    supervision: dict[str, Any],
    callback: Any = None,
) -> tuple[str, str, list[Any], Any]: ...
def report_html(results: str, costs: str | None = None) -> str: ...
