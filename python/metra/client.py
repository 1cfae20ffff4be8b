"""A client of ``metra serve``, by the standard library and numpy alone.

Vectors that are mapped travel as bytes unless they have groups, all others as text. Many threads may use one client; connections are kept. Requests
that the server refused because it was busy or about to stop are sent again after the time that it asks for.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import numpy as np

from ._arrays import as_rows
from ._metra import DataError, ParameterError
from ._transport import Answer, ServerError, Transport

__all__ = ["Client", "Hit", "ServerError"]

_Found = TypeVar("_Found")

_BINARY = "application/octet-stream"

# Numbers of a request: as text they are some 12 MB, and servers take 16 MB where nothing else is said.
_NUMBERS = 1 << 19


class Hit(NamedTuple):
    """An item that was found.

    Attributes
    ----------
    id : str
        Its id, or its number in the index where items have no ids.
    label : str or None
        Its label, where items have labels.
    dissimilarity : float
        Smaller is nearer.
    """

    id: str
    label: str | None
    dissimilarity: float


class Client:
    """Asks a server that ``metra serve`` runs.

    What has more rows than a request may have is sent in parts, all of which ask the same version of the model.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8080``.
    key : str, optional
        A key of the server.
    model : str, optional
        The model, as a name or ``name@version``; not needed where the server has only one.
    timeout : float, default=60
        Seconds for each part of an answer, and the longest pause before another try. Longer than the server's
        ``--timeout``, so that its own answer says what took so long.
    tries : int, default=3
        How often a request is sent, at most, where the server is busy (503, 429) or cannot be reached.
    batch : int, default=1000
        Most vectors, pairs or texts of one request.
    context : ssl.SSLContext, optional
        How certificates are checked, for ``https``.

    Raises
    ------
    ServerError
        By every method, where the server does not serve a request or gives no answer.

    Examples
    --------
    >>> client = metra.Client("http://127.0.0.1:8080")  # doctest: +SKIP
    >>> client.search(queries, k=3)  # doctest: +SKIP
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        model: str | None = None,
        timeout: float = 60.0,
        tries: int = 3,
        batch: int = 1000,
        context: Any = None,
    ) -> None:
        if batch < 1:
            raise ParameterError(f"batch must be at least 1, but is {batch}")
        self._transport = Transport(address, key, timeout, tries, context)
        self._batch, self.model = batch, model

    def map(self, vectors: Any, *, side: str | None = None, groups: Any = None) -> np.ndarray:
        """Map vectors.

        Parameters
        ----------
        vectors : array of shape (rows, dimensions)
            What the model takes. Arrays of float32 are sent quickest.
        side : {'query', 'item'}, optional
            Whose map to use; needed where the model has two.
        groups : list of str, optional
            The camera or session of each row, where the model subtracts the mean of each.

        Returns
        -------
        ndarray of float32
            The mapped vectors.
        """
        return self._mapped(vectors, side, groups, "vectors")

    def encode(self, items: Any, *, groups: Any = None) -> np.ndarray:
        """The codes of items, as bytes, for a model that has a code.

        Parameters
        ----------
        items : array of shape (rows, dimensions)
            What the model takes.
        groups : list of str, optional
            The camera or session of each row, where the model subtracts the mean of each.

        Returns
        -------
        ndarray of uint8
            One row of bytes an item.
        """
        return self._mapped(items, "item", groups, "codes")

    def search(
        self,
        vectors: Any,
        k: int = 10,
        *,
        exact: bool = False,
        effort: int | None = None,
        label: str | Sequence[str] | None = None,
        groups: Any = None,
    ) -> list[list[Hit]]:
        """The nearest items of the server's index.

        Parameters
        ----------
        vectors : array of shape (queries, dimensions)
            Queries, not yet mapped.
        k : int, default=10
            How many items for each.
        exact : bool, default=False
            Whether to compare with every item, although the index has a graph or codes.
        effort : int, optional
            Candidates that a graph keeps on its way, or first answers of codes that are ranked again.
        label : str or list of str, optional
            Only items with one of these labels.
        groups : list of str, optional
            The camera or session of each query, where the model subtracts the mean of each.

        Returns
        -------
        list of list of Hit
            The nearest first.
        """
        rows = _rows(vectors)
        names = _names(groups, "groups", rows)
        options: dict[str, Any] = {"k": k, "exact": exact}
        if effort is not None:
            options["effort"] = effort
        if label is not None:
            options["filter"] = {"label": label if isinstance(label, str) else list(label)}

        def ask(part: slice, model: str | None) -> tuple[list[list[Hit]], str]:
            request = {"vectors": rows[part].tolist(), **_given(groups=names and names[part]), **options}
            answer = self._json("/v1/search", request, model)
            found = [
                [Hit(hit["id"], hit.get("label"), hit["dissimilarity"]) for hit in hits] for hits in answer["results"]
            ]
            return found, answer["model"]

        return [hits for found in self._in_parts(len(rows), rows.shape[1], ask) for hits in found]

    def similar(
        self, queries: Any, items: Any, *, query_groups: Any = None, item_groups: Any = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """How dissimilar pairs are: the first query and the first item, and so on.

        Parameters
        ----------
        queries, items : array of shape (pairs, dimensions)
            The vectors of each pair.
        query_groups, item_groups : list of str, optional
            The camera or session of each row, where the model subtracts the mean of each.

        Returns
        -------
        dissimilarities : ndarray of float64
            Smaller is nearer.
        same : ndarray of bool or None
            Whether both are the same, where the model is calibrated.
        """
        left, right = _rows(queries), _rows(items)
        if left.shape != right.shape:
            raise DataError(f"expected a query for each item, but found arrays of shape {left.shape} and {right.shape}")
        query_names = _names(query_groups, "query_groups", left)
        item_names = _names(item_groups, "item_groups", right)

        def ask(part: slice, model: str | None) -> tuple[list[dict[str, Any]], str]:
            request = {
                "queries": left[part].tolist(),
                "items": right[part].tolist(),
                **_given(query_groups=query_names and query_names[part], item_groups=item_names and item_names[part]),
            }
            answer = self._json("/v1/similar", request, model)
            return answer["results"], answer["model"]

        results = [pair for found in self._in_parts(len(left), 2 * left.shape[1], ask) for pair in found]
        dissimilarities = np.array([pair["dissimilarity"] for pair in results])
        decided = all("same" in pair for pair in results)
        return dissimilarities, np.array([pair["same"] for pair in results]) if decided else None

    def embed(self, texts: str | Sequence[str], *, side: str | None = None) -> np.ndarray:
        """The mapped embeddings of texts, by the server's upstream.

        Parameters
        ----------
        texts : str or list of str
            One text or several.
        side : {'query', 'item'}, optional
            Whose map to use; needed where the model has two.

        Returns
        -------
        ndarray of float32
            One row a text.
        """
        listed = [texts] if isinstance(texts, str) else list(texts)
        if not listed:
            raise DataError("expected at least one text, but found none")
        # The side may stand behind the model's name, and answers name the model alone.
        _, colon, named = (self.model or "").rpartition(":")

        def ask(part: slice, model: str | None) -> tuple[list[np.ndarray], str]:
            request = {"input": listed[part], "encoding_format": "base64", **_given(side=side)}
            answer = self._json("/v1/embeddings", request, model)
            vectors = [np.frombuffer(base64.b64decode(one["embedding"]), dtype="<f4") for one in answer["data"]]
            return vectors, answer["model"] + (colon and colon + named)

        vectors = [vector for found in self._in_parts(len(listed), 1, ask) for vector in found]
        return np.stack(vectors).astype(np.float32)

    def feedback(self, query: str, shown: Sequence[str], clicked: Sequence[str]) -> bool:
        """Say what was shown for a query and what was clicked.

        It is sent again only where the server refused it, so that no session is written twice.

        Parameters
        ----------
        query : str
            The query's id.
        shown, clicked : list of str
            The ids that were shown, in their order, and those that were clicked.

        Returns
        -------
        bool
            Whether it was written: the server may write a part.
        """
        request = {"query": query, "shown": list(shown), "clicked": list(clicked)}
        body = json.dumps(request).encode()
        answer = self._transport.send("POST", "/v1/feedback", body, "application/json", again=False)
        return bool(answer.json()["recorded"])

    def models(self) -> list[dict[str, Any]]:
        """What is served.

        Returns
        -------
        list of dict
            Of each model its ``id``, ``input_dim``, ``output_dim`` and what else the server says.
        """
        return list(self._transport.send("GET", "/v1/models").json()["data"])

    def close(self) -> None:
        """Close idle connections; the next request opens another."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        model = "" if self.model is None else f", model={self.model!r}"
        return f"Client({self._transport.address!r}{model})"

    def _parts(self, rows: int, width: int) -> list[slice]:
        """The rows of each request, about as many in each: a row that is mapped alone can differ in its last bit."""
        most = max(min(self._batch, _NUMBERS // max(width, 1)), 1)
        count = -(-rows // most)
        ends = [rows * part // count for part in range(count + 1)]
        return [slice(first, end) for first, end in zip(ends, ends[1:])]

    def _in_parts(self, rows: int, width: int, ask: Callable[[slice, str | None], tuple[_Found, str]]) -> list[_Found]:
        """What ``ask(part, model)`` finds for every part, with the name of the model and its version: all parts are asked of the version that
        the first one had, and once again of a newer one where that is exchanged meanwhile."""
        for tries_left in (1, 0):
            found: list[_Found] = []
            model = self.model
            try:
                for part in self._parts(rows, width):
                    one, model = ask(part, model)
                    found.append(one)
            except ServerError as error:
                if error.status == 404 and found and tries_left:
                    continue
                raise
            return found
        raise AssertionError("the last try returns or raises")

    def _mapped(self, vectors: Any, side: str | None, groups: Any, output: str) -> np.ndarray:
        rows = _rows(vectors)
        names = _names(groups, "groups", rows)
        kind = "<f4" if output == "vectors" else "u1"
        # Where a model shifts columns before they become f32, rounding them here would lose what it keeps.
        with np.errstate(over="ignore"):
            narrow = rows.astype("<f4", copy=False)
        exact = bool((narrow == rows).all())
        binary, element = (narrow, None) if exact else (rows.astype("<f8", copy=False), "float64")

        def ask(part: slice, model: str | None) -> tuple[np.ndarray, str]:
            if names is None:
                given = _given(model=model, side=side, output=output, element=element)
                address = urlencode(given, quote_via=quote)
                answer = self._transport.send("POST", f"/v1/map?{address}", binary[part].tobytes(), _BINARY)
                return _table(answer, kind, len(binary[part])), answer.headers["metra-model"]
            options = _given(side=side, groups=names[part], output=output)
            found = self._json("/v1/map", {"vectors": rows[part].tolist(), **options}, model)
            if output == "vectors":
                return np.array(found["vectors"], dtype=kind), found["model"]
            codes = [np.frombuffer(base64.b64decode(code), dtype=kind) for code in found["codes"]]
            return np.stack(codes), found["model"]

        mapped = self._in_parts(len(rows), rows.shape[1], ask)
        return np.concatenate(mapped).astype(np.dtype(kind).newbyteorder("="), copy=False)

    def _json(self, path: str, request: dict[str, Any], model: str | None) -> Any:
        body = json.dumps({**_given(model=model), **request}).encode()
        return self._transport.send("POST", path, body, "application/json").json()


def _rows(vectors: Any) -> np.ndarray:
    rows = as_rows(vectors)
    if len(rows) == 0:
        raise DataError("expected at least one vector, but found none")
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise DataError(f"row {row}, column {column}: expected a finite number, but found {rows[row, column]}")
    return rows


def _names(groups: Any, what: str, rows: np.ndarray) -> list[str] | None:
    if groups is None:
        return None
    names = [str(name) for name in groups]
    if isinstance(groups, str) or len(names) != len(rows):
        raise DataError(f"expected one name for each of {len(rows)} rows in {what}, but found {len(names)}")
    return names


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _table(answer: Answer, kind: str, rows: int) -> np.ndarray:
    numbers = len(answer.body) // np.dtype(kind).itemsize
    if numbers == 0 or numbers % rows or len(answer.body) % np.dtype(kind).itemsize:
        found = f"expected {rows} rows of numbers, but found {len(answer.body)} bytes"
        raise ServerError(answer.status, "unknown", found)
    return np.frombuffer(answer.body, dtype=kind).reshape(rows, -1)
