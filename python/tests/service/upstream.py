"""A server of embeddings in OpenAI's form: WordLlama with the weights of its wheel, and failures when they are asked for.

POST /control with {"failures": [...], "lasting": ...} says how the next requests fail, one after another, and how
all later ones do; the answer lists the requests since the last control. A failure has one of these keys:

    slow: seconds before a right answer         status: a status, with retry_after for its header
    dimension: numbers of each vector           close: true, to close without an answer
    half: true, to close within the answer      text: a body that is no JSON
    missing: vectors that are left out
"""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import wordllama

DIM = 256


def load() -> Any:
    """WordLlama without a download: the tokenizer, too, is in the wheel, where a cache would have it."""
    return wordllama.WordLlama.load(
        "l2_supercat", dim=DIM, cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )


class State:
    """What is shared by all requests."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.model = load()
        self.failures: list[dict[str, Any]] = []
        self.lasting: dict[str, Any] | None = None
        self.seen: list[dict[str, Any]] = []

    def next_failure(self, seen: dict[str, Any]) -> dict[str, Any]:
        """How a request fails, if it does."""
        with self.lock:
            self.seen.append(seen)
            return self.failures.pop(0) if self.failures else self.lasting or {}

    def control(self, said: dict[str, Any]) -> dict[str, Any]:
        """Take new failures; what was seen."""
        with self.lock:
            seen, self.seen = self.seen, []
            self.failures, self.lasting = list(said.get("failures", [])), said.get("lasting")
            return {"requests": seen}

    def embed(self, texts: list[str]) -> np.ndarray:
        """The vectors of texts."""
        with self.lock:
            return np.asarray(self.model.embed(texts), dtype=np.float32)


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    state: State

    def do_POST(self) -> None:
        """Answer a request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/control":
            return self.answer(200, self.state.control(request))
        if self.path != "/v1/embeddings":
            return self.answer(404, {"error": {"message": self.path, "code": "not_found"}})
        listed = request["input"] if isinstance(request["input"], list) else [request["input"]]
        seen = {"authorization": self.headers.get("Authorization"), "texts": len(listed), "time": time.monotonic()}
        failure = self.state.next_failure({**seen, **{name: request.get(name) for name in ("model", "encoding_format")}})
        time.sleep(failure.get("slow", 0))
        if "close" in failure:
            self.close_connection = True
            return None
        if "status" in failure:
            after = failure.get("retry_after")
            headers = {} if after is None else {"Retry-After": str(after)}
            error = {"error": {"message": "a failure of the test", "code": "asked_for"}}
            return self.answer(failure["status"], error, headers)
        if "text" in failure:
            return self.send(200, failure["text"].encode(), "text/html", {})
        vectors = self.state.embed(listed)[:, : failure.get("dimension", DIM)]
        vectors = vectors[: len(vectors) - failure.get("missing", 0)]
        text = request.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(row.tobytes()).decode() if text else row.tolist(),
            }
            for index, row in enumerate(vectors)
        ]
        # The order of the answer is no promise: `index` says which text a vector is of.
        usage = {"prompt_tokens": len(listed), "total_tokens": len(listed)}
        model = request.get("model") or "wordllama"
        answer = {"object": "list", "data": data[::-1] if not text else data, "model": model, "usage": usage}
        return self.answer(200, answer, half="half" in failure)

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None, *, half: bool = False) -> None:
        """Send JSON."""
        self.send(status, json.dumps(body).encode(), "application/json", headers or {}, half=half)

    def send(self, status: int, body: bytes, kind: str, headers: dict[str, str], *, half: bool = False) -> None:
        """Send a body, or the first half of it."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until the process is ended."""
    Handler.state = State()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(json.dumps({"listening": f"http://127.0.0.1:{server.server_address[1]}"}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
