"""all-MiniLM-L6-v2 in numpy: mean of the last layer over the tokens, at length 1.

Six layers are few enough to write down, and no framework of neural networks has to be installed. The weights and the
tokenizer are those of the package; `max_seq_length` of its configuration is 256 tokens.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

TOKENS = 256
# Tokens of a batch: enough for fast products, few enough for some hundred MB of intermediate values.
BATCH = 8_192


class Encoder:
    """Reads a folder with config.json, model.safetensors and tokenizer.json."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        config = json.loads((folder / "config.json").read_text())
        self.layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.epsilon: float = config["layer_norm_eps"]
        self.weights: dict[str, np.ndarray] = load_file(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # The file's own settings cut at 128 tokens and pad to 128.
        self.tokenizer.enable_truncation(TOKENS)
        self.tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One row a text, float32."""
        tokens = [encoded.ids for encoded in self.tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(texts), len(self.weights["embeddings.LayerNorm.weight"])), dtype=np.float32)
        done = 0
        for rows in batches([len(ids) for ids in tokens]):
            vectors[rows] = self._batch([tokens[row] for row in rows])
            done += len(rows)
            print(f"\r{done} of {len(texts)} texts", end="", file=sys.stderr)
        print(file=sys.stderr)
        return vectors

    def _batch(self, tokens: list[list[int]]) -> np.ndarray:
        longest = max(map(len, tokens))
        ids = np.array([row + [0] * (longest - len(row)) for row in tokens])
        real = np.arange(longest) < np.array([len(row) for row in tokens])[:, None]
        # Minus infinity before a softmax: padding gets no attention.
        bias = np.where(real, 0, -np.inf).astype(np.float32)[:, None, None, :]
        name = "embeddings"
        states = self.weights[f"{name}.word_embeddings.weight"][ids]
        states = states + self.weights[f"{name}.position_embeddings.weight"][:longest]
        states = self._norm(states + self.weights[f"{name}.token_type_embeddings.weight"][0], name)
        for layer in range(self.layers):
            states = self._layer(states, bias, f"encoder.layer.{layer}")
        mean = (states * real[:, :, None]).sum(axis=1) / real.sum(axis=1, keepdims=True)
        unit: np.ndarray = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit

    def _layer(self, states: np.ndarray, bias: np.ndarray, name: str) -> np.ndarray:
        from scipy.special import erf

        count, length, width = states.shape
        size = width // self.heads

        def head(which: str) -> np.ndarray:
            projected = self._dense(states, f"{name}.attention.self.{which}")
            return projected.reshape(count, length, self.heads, size).transpose(0, 2, 1, 3)

        scores = head("query") @ head("key").transpose(0, 1, 3, 2) / np.float32(np.sqrt(size)) + bias
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ head("value")).transpose(0, 2, 1, 3).reshape(count, length, width)
        mixed = self._dense(mixed, f"{name}.attention.output.dense")
        states = self._norm(states + mixed, f"{name}.attention.output")
        inner = self._dense(states, f"{name}.intermediate.dense")
        inner *= np.float32(0.5) * (1 + erf(inner / np.float32(np.sqrt(2))))
        return self._norm(states + self._dense(inner, f"{name}.output.dense"), f"{name}.output")

    def _dense(self, states: np.ndarray, name: str) -> np.ndarray:
        projected: np.ndarray = states @ self.weights[f"{name}.weight"].T
        projected += self.weights[f"{name}.bias"]
        return projected

    def _norm(self, states: np.ndarray, name: str) -> np.ndarray:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        scaled: np.ndarray = centred / spread * self.weights[f"{name}.LayerNorm.weight"]
        scaled += self.weights[f"{name}.LayerNorm.bias"]
        return scaled


def batches(lengths: list[int]) -> Iterator[list[int]]:
    """Rows of about one length together, since the shorter ones of a batch are padded."""
    rows: list[int] = []
    for row in np.argsort(lengths, kind="stable").tolist():
        if rows and (len(rows) + 1) * lengths[row] > BATCH:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows
