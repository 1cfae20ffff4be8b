"""Zero-shot classes on OSR and PubFig: accuracy with one to four classes that training has no rows of.

    METRA_DATA=... python benches/zero_shot.py METRA docs/results/data/zero_shot.json

METRA is the command. Every figure is the mean over the ten splits of the set, with classes drawn for each of them, and
its standard deviation. `cargo xtask docs` makes the page of the file.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SETS = {"OSR": ("osr_gist", "osr_gist", "osr_binary"), "PubFig": ("pubfig", "pubfig", "pubfig_binary")}
METHODS = {"RankSVM": "rank-svm", "Qwise": "attributes"}


def accuracies(metra: str, table: str, orderings: str, method: str, unseen: int) -> list[list[float]]:
    """Of every split: accuracy over all test rows, seen classes and unseen classes."""
    data, root = Path(os.environ["METRA_DATA"]), Path(__file__).parent.parent
    command = [metra, "train", data / f"{table}.parquet", "--label", "label", "--orderings"]
    command += [root / "examples/orderings" / f"{orderings}.txt", "--method", method]
    command += ["--splits", data / f"{table}.splits.json", "--prepare", "sqrt+l2", "--score", "euclid"]
    command += ["--tune", "lambda=0.003,0.01,0.03", "--classifier", "zero-shot:0.5"]
    command += ["--unseen-classes", str(unseen), "--json"]
    done = subprocess.run(command, check=True, capture_output=True)
    splits = json.loads(done.stdout)["splits"]
    return [[split[part][0]["learned"] for part in ("measures", "seen_items", "unseen_items")] for split in splits]


def main() -> None:
    metra, output = sys.argv[1:]
    rows = []
    for name, (table, relative, binary) in SETS.items():
        for unseen in range(1, 5):
            for kind, orderings in (("relative", relative), ("binary", binary)):
                for title, method in METHODS.items():
                    found = accuracies(metra, table, orderings, method, unseen)
                    row = {"set": name, "unseen_classes": unseen, "attributes": kind, "method": title}
                    for part, values in zip(("all", "seen", "unseen"), zip(*found, strict=True), strict=True):
                        row[part] = [round(statistics.mean(values), 6), round(statistics.stdev(values), 6)]
                    rows.append(json.dumps(row))
                    print(rows[-1], flush=True)
    Path(output).write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
