"""Synthetic vectors, models that the command trains on them, and indexes of them, made once in a folder.

Vectors lie around centres, so that a graph has neighbours to find; what is made depends on nothing but its sizes.
"""

import json
import subprocess
from pathlib import Path

import numpy as np

CENTRES, SPREAD, BLOCK = 10_000, 0.5, 65_536


def clustered(rows: int, dim: int, seed: int) -> np.ndarray:
    return np.concatenate(list(blocks(rows, dim, seed)))


def blocks(rows: int, dim: int, seed: int):
    """All seeds share the centres: queries are near items."""
    centres = np.random.default_rng(0).standard_normal((CENTRES, dim), dtype=np.float32)
    random = np.random.default_rng(seed)
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        near = centres[random.integers(0, CENTRES, count)]
        yield near + np.float32(SPREAD) * random.standard_normal((count, dim), dtype=np.float32)


class Prepared:
    """Files in a folder, each made when it is asked for first."""

    def __init__(self, metra: str, folder: Path) -> None:
        self.metra, self.folder = metra, folder
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments) -> dict:
        command = [self.metra, *map(str, arguments), "--json", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def vectors(self, rows: int, dim: int, seed: int) -> Path:
        path = self.folder / f"x-{rows}-{dim}-{seed}.npy"
        if not path.exists():
            part = path.with_suffix(".part")
            whole = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=(rows, dim))
            at = 0
            for block in blocks(rows, dim, seed):
                whole[at : at + len(block)] = block
                at += len(block)
            whole.flush()
            part.rename(path)
        return path

    def model(self, dim: int, rank: int, seed: int = 1) -> Path:
        """A linear map of `dim` to `rank` numbers: principal components, which need no labels but are given some."""
        path = self.folder / f"m{dim}to{rank}-{seed}.safetensors"
        if not path.exists():
            labels = self.folder / "labels-4000.npy"
            if not labels.exists():
                np.save(labels, np.arange(4_000) % 40)
            settings = ["--method", "pca", "--rank", rank, "--holdout", "none", "--seed", seed]
            self.run("train", self.vectors(4_000, dim, 100 + seed), "--label", labels, *settings, "-o", path)
        return path

    def index(self, model: Path, rows: int, dim: int, kind: str, labels: bool = False) -> Path:
        """`kind` is exact or graph."""
        path = self.folder / f"{model.stem}-{rows}-{kind}.index"
        if not path.exists():
            how = {"exact": ["--exact"], "graph": ["--approximate", "--parallel"]}[kind]
            if labels:
                named = self.folder / f"labels-{rows}.txt"
                named.write_text("".join(f"class-{row % 7}\n" for row in range(rows)))
                how = [*how, "--label", named]
            self.run("index", model, self.vectors(rows, dim, 7), *how, "-o", path)
        return path
