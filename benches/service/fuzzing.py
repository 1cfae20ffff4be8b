"""Mutated requests in raw sockets: valid ones, changed here and there, drawn from a seed.

What comes back is sorted by status, and so is what comes back broken. A request that the server is still waiting for gets no
answer and is given up after a moment; requests ask to close the connection, so that all others end by themselves.
"""

import base64
import collections
import json
import random
import re
import socket
import threading
import time
import zlib

import numpy as np

import load
from data import clustered

DIM = 8
THREADS, PATIENCE = 8, 0.06
# What a client may be answered with; anything else is listed with the request that it came from.
EXPECTED = {200, 202, 400, 401, 403, 404, 405, 408, 413, 414, 415, 431, 503}
# Three rows of eight f32 as a stream of Arrow (by pyarrow 26), packed.
ARROW = zlib.decompress(
    base64.b85decode(
        "c-n=Lu?@m75Jf*Em<Xjv5up?m6cm({RFDA}A`+sYKu9Q}W&}o{q|68@DH(wg*ucCPBT^u7((}KIeRsatT5Bswi5eRymQha;9@YtoMHI1ye&w^*8@WVDia%-X&A"
        "`BMvo7}sxhP`SxLQrG6gBF*>WS~&2^t;wI`X<LH@kPfary5K60PkOP5s$eLx1zwRaFowLkfLtKpeX%n%P!<=0IO-`~R$H`Q0D6+3&Q4bb=bRl*W)l0Vg=a1uCf"
        "F4i9*Oa{eA9kii(HFoSt+-CIa6wm&C&"
    )
)
WORDS = [
    b"0", b"-0", b"-1", b"1e308", b"1e39", b"1e-400", b"1e999", b"-1e999", b"NaN", b"Infinity", b"null", b"true", b"{}", b"[]", b"[[]]",
    b'""', b"18446744073709551616", b"18446744073709551615", b"9" * 400, b"0." + b"1" * 3000, b"\xff\xfe", b"\x00", b"\r\n", b"\r\n\r\n",
    b"%00", b"%2e%2e%2f", b"\xed\xa0\x80", b'"\\ud800"', b"[" * 300, b'{"a":' * 300, b"chunked", b"identity", b"gzip", b"HTTP/1.0", b"HTTP/2.0",
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n",
    b"Connection: upgrade\r\n", b"application/octet-stream", b"application/vnd.apache.arrow.stream", b"\x7f", b": ", b"Host: a\r\nHost: b\r\n",
]  # fmt: skip


def request(method: str, path: str, body: bytes = b"", kind: str = load.JSON, more: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}"
    if method == "POST":
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def chunked(path: str, body: bytes, kind: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    half = len(body) // 2
    parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:], b""))
    return head.encode() + parts


def valid() -> list[bytes]:
    """One request of each kind, all of which are answered with status 200 (embeddings apart: there is no upstream server)."""
    vectors = clustered(4, DIM, 3)
    rows = json.loads(load.as_json(vectors))["vectors"]
    arrow = "application/vnd.apache.arrow.stream"
    search = {"vectors": rows, "k": 5, "filter": {"label": ["class-1", "class-2"]}}
    as_json = lambda value: json.dumps(value).encode()  # noqa: E731
    return [
        request("POST", "/v1/map", as_json({"vectors": rows, "side": "item", "output": "vectors"})),
        request("POST", "/v1/map?side=query", vectors.astype("<f4").tobytes(), load.BINARY),
        request("POST", "/v1/map?column=vector&side=item", ARROW, arrow),
        chunked("/v1/map?side=item", ARROW, arrow),
        chunked("/v1/map", as_json({"vectors": rows}), load.JSON),
        request("POST", "/v1/search", as_json(search)),
        request("POST", "/v1/search", as_json({"vectors": rows, "k": 7, "effort": 20})),
        request("POST", "/v1/search", as_json({"vectors": rows, "k": 3, "exact": True})),
        request("POST", "/v1/similar", as_json({"queries": rows, "items": rows})),
        request(
            "POST", "/v1/embeddings", as_json({"input": ["a", "b"], "model": "m:query", "encoding_format": "base64"})
        ),
        request("POST", "/v1/feedback", as_json({"query": "q17", "shown": ["d4", "d9"], "clicked": ["d9"]})),
        request("GET", "/v1/models", more="X-Request-Id: abc-1\r\nAuthorization: Bearer 0123456789abcdef\r\n"),
        request("GET", "/metrics"),
        request("GET", "/openapi.json"),
        request("GET", "/readyz"),
    ]


def mutated(draw: random.Random, requests: list[bytes]) -> bytes:
    data = bytearray(draw.choice(requests))
    fit = draw.random() < 0.5
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        # Half of the mutations leave the head alone, or few would get past it.
        start = data.find(b"\r\n\r\n") + 4 if draw.random() < 0.5 else 0
        at = draw.randrange(start, len(data)) if start < len(data) else draw.randrange(max(len(data), 1))
        length = draw.choice((1, 1, 2, 4, 8, 32))
        what = draw.randrange(8)
        if what == 0 and data:
            data[at] ^= 1 << draw.randrange(8)
        elif what == 1:
            data[at : at + length] = draw.randbytes(length)
        elif what == 2:
            del data[at : at + length]
        elif what == 3:
            data[at:at] = data[at : at + length] * draw.choice((1, 2, 50))
        elif what == 4:
            data[at : at + draw.choice((0, 1, 4))] = draw.choice(WORDS)
        elif what == 5 and draw.random() < 0.3:
            del data[at:]
        elif what == 6:
            other = draw.choice(requests)
            cut = draw.randrange(len(other))
            data[at : at + length] = other[cut : cut + length * 8]
        elif what == 7:
            data[at : at + 4] = np.uint32(
                draw.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0x7FC00000))
            ).tobytes()
    return fitted(data) if fit else bytes(data)


def fitted(data: bytearray) -> bytes:
    """The same with the length of its body, so that the server reads what was changed and not less or more."""
    head, gap, body = bytes(data).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    lengths = [n for n, line in enumerate(lines) if line.lower().startswith(b"content-length:")]
    for number in lengths[:1]:
        lines[number] = b"Content-Length: %d" % len(body)
    return b"\r\n".join(lines) + gap + body


def exchange(port: int, data: bytes, patience: float = PATIENCE) -> tuple[list[int], bytes, str]:
    """Statuses of the answers, all that came, and how it ended: closed, waiting or reset."""
    came, ended = bytearray(), "closed"
    with socket.socket() as connection:
        connection.settimeout(5)
        connection.connect(("127.0.0.1", port))
        try:
            connection.sendall(data)
        except OSError:
            # The server may have answered and closed before it read all: the answer can be there all the same.
            pass
        connection.settimeout(patience)
        try:
            while part := connection.recv(65_536):
                came += part
        except TimeoutError:
            ended = "waiting"
        except OSError:
            ended = "reset"
    return statuses(bytes(came)), bytes(came), ended


def one_answer(connection: socket.socket) -> bytes:
    """The next answer of a connection that stays open, whole."""
    came = b""
    while True:
        part = connection.recv(65_536)
        came += part
        head, gap, rest = came.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if not part or (gap and len(rest) >= int(length[1] if length else 0)):
            return came


def statuses(came: bytes) -> list[int]:
    """Of answers after each other."""
    found = []
    while came.startswith(b"HTTP/1."):
        head, gap, rest = came.partition(b"\r\n\r\n")
        code = int(head[9:12])
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
        length = int(fields.get(b"content-length", b"0"))
        found.append(code)
        came = rest[length:] if gap else b""
    return found


class Fuzz:
    """All mutated requests, by several threads with a seed for each request, so that one can be sent again."""

    def __init__(self, port: int, count: int, seed: int) -> None:
        self.port, self.count, self.seed, self.requests = port, count, seed, valid()
        self.statuses, self.endings, self.odd = collections.Counter(), collections.Counter(), []
        self.lock, self.next = threading.Lock(), iter(range(count))
        self.unreachable = 0

    def one(self, number: int) -> bytes:
        return mutated(random.Random(self.seed * 1_000_003 + number), self.requests)

    def _run(self) -> None:
        while True:
            with self.lock:
                number = next(self.next, None)
            if number is None or self.unreachable > 20:
                return
            data = self.one(number)
            try:
                found, came, ended = exchange(self.port, data)
            except OSError as error:
                with self.lock:
                    self.unreachable += 1
                    self.odd.append({"number": number, "problem": repr(error)})
                time.sleep(0.2)
                continue
            with self.lock:
                self.statuses.update(found)
                self.endings[ended if found else f"{ended}, no answer"] += 1
                wrong = [status for status in found if status not in EXPECTED]
                # An answer that is not of HTTP would be the server's mistake.
                if (wrong or (came and not found)) and len(self.odd) < 50:
                    self.odd.append(
                        {"number": number, "statuses": wrong, "request": repr(data[:600]), "answer": repr(came[:400])}
                    )

    def run(self) -> dict:
        for base in self.requests:
            found, came, _ = exchange(self.port, base, 10)
            if found not in ([200], [202], [404]):
                raise SystemExit(
                    f"expected an unchanged request to be answered with status 200, but found {found}: {came[:500]!r} to {base[:300]!r}"
                )
        threads = [threading.Thread(target=self._run, daemon=True) for _ in range(THREADS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {
            "requests": self.count,
            "seed": self.seed,
            "seconds": time.perf_counter() - began,
            "statuses": dict(sorted(self.statuses.items())),
            "endings": dict(self.endings),
            "odd": self.odd,
            "unreachable": self.unreachable,
        }
