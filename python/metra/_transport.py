"""Requests to ``metra serve`` by the standard library alone: connections that are kept, repeated tries, typed errors.

Threads share one list of idle connections; each takes one out while it uses it, so that none is used by two.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import random
import ssl
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ._metra import MetraError, ParameterError

__all__ = ["Answer", "ServerError", "Transport"]

# Seconds before another try where the server does not say how many; they double.
_PAUSE = 0.25

# What a connection ends with that the server has closed.
_CLOSED = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class ServerError(MetraError):
    """A server did not serve a request, or gave no answer.

    Attributes
    ----------
    status : int or None
        The status of HTTP; None where there was no answer.
    code : str
        A word for programs, such as ``overloaded``; ``unreachable`` or ``timeout`` where there was no answer.
    message : str
        What was expected and found.
    """

    def __init__(self, status: int | None, code: str, message: str) -> None:
        value = "no answer" if status is None else f"status {status}"
        super().__init__(f"{value} ({code}): {message}")
        self.status = status
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are copied to other processes by their arguments, which here are not the text.
        return ServerError, (self.status, self.code, self.message)


class Answer(NamedTuple):
    """An answer to a request that was served."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        """The body, which is JSON where a metra server answers."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ServerError(self.status, "unknown", f"expected JSON, but found {self.body[:80]!r}") from error


class Transport:
    """Sends requests to one server."""

    def __init__(self, address: str, key: str | None, timeout: float, tries: int, context: Any) -> None:
        self._secure, self._host, self._port, self._path = _place(address)
        if key is not None and not (key.isascii() and key.isprintable() and key):
            raise ParameterError("key must be printable characters of ASCII, but has others or none")
        if not timeout > 0:
            raise ParameterError(f"timeout must be above 0, but is {timeout}")
        if tries < 1:
            raise ParameterError(f"tries must be at least 1, but is {tries}")
        self.address = address
        self._key, self._timeout, self._tries, self._context = key, timeout, tries, context
        self._process = os.getpid()
        self._idle: list[http.client.HTTPConnection] = []

    def send(self, method: str, path: str, body: bytes = b"", kind: str | None = None, *, again: bool = True) -> Answer:
        """The answer to a request; ``again`` says whether the server may get it twice."""
        headers = {"Content-Type": kind} if kind else {}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        for tried in range(1, self._tries + 1):
            usual = _PAUSE * 2 ** (tried - 1)
            pause: float | None = usual
            cause: Exception | None = None
            try:
                answer = self._try(method, self._path + path, body, headers, again)
                if answer.status < 300:
                    return answer
                failed = _refused(answer)
                # 504 is not repeated: the work was too much, and would be again.
                pause = _retry_after(answer.headers, usual) if answer.status in (429, 503) else None
            except TimeoutError as error:
                failed, cause, pause = self._silent("timeout", f"none within {self._timeout} s"), error, None
            except (OSError, http.client.HTTPException) as error:
                failed, cause = self._silent("unreachable", repr(error)), error
                refused = isinstance(error, ConnectionRefusedError)
                is_lasting = isinstance(error, ssl.SSLError) and not isinstance(error, _CLOSED)
                if is_lasting or not (again or refused):
                    pause = None
            # Nobody waits longer for another try than for an answer.
            if pause is None or pause > self._timeout or tried == self._tries:
                raise failed from cause
            # Clients that were refused together do not come back together.
            time.sleep(pause * random.uniform(1.0, 1.25))
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Close the idle connections; the next request opens another."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _silent(self, code: str, found: str) -> ServerError:
        return ServerError(None, code, f"expected an answer of {self.address}, but found {found}")

    def _try(self, method: str, path: str, body: bytes, headers: dict[str, str], again: bool) -> Answer:
        if self._process != os.getpid():
            # After a fork the connections are those of the parent.
            self._process, self._idle = os.getpid(), []
        # That a server has closed an idle connection shows only when it is used: what must not be sent twice gets a new one.
        kept = self._kept() if again else None
        if kept is not None:
            try:
                return self._exchange(kept, method, path, body, headers)
            except _CLOSED:
                pass
        return self._exchange(self._connection(), method, path, body, headers)

    def _kept(self) -> http.client.HTTPConnection | None:
        try:
            # One step, in which no other thread can come between.
            return self._idle.pop()
        except IndexError:
            return None

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> Answer:
        try:
            if connection.sock is None:
                connection.connect()
            try:
                connection.request(method, path, body, headers)
            except _CLOSED:
                # A server that refuses a request before it has read the body has answered nevertheless.
                pass
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:
            self._idle.append(connection)
        return answer

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}


def _place(address: str) -> tuple[bool, str, int, str]:
    """Whether it is encrypted, host, port, and what stands before the server's own paths."""
    expected = f"address must be http://HOST:PORT or https://HOST:PORT, but is {address!r}"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise ParameterError(f"{expected}: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ParameterError(expected)
    if parts.username is not None or parts.password is not None:
        raise ParameterError("address must have no name and password: key= holds a key")
    secure = parts.scheme == "https"
    # A port must be named: without one, http.client takes the end of an IPv6 address for it. Bases of OpenAI's clients end with /v1.
    return secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/").removesuffix("/v1")


def _retry_after(headers: http.client.HTTPMessage, usual: float) -> float:
    """The seconds of Retry-After, which is a number or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), usual)
    except (TypeError, ValueError, IndexError):
        return usual


def _refused(answer: Answer) -> ServerError:
    try:
        error = json.loads(answer.body)["error"]
        return ServerError(answer.status, str(error["code"]), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        # Something between client and server may answer with a page of its own.
        return ServerError(answer.status, "unknown", answer.body[:200].decode("utf-8", "replace"))
