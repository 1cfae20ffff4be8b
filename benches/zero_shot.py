"""Zero-shot classes on OSR and PubFig: accuracy with one to four classes that training has no rows of.

    METRA_DATA=... python benches/zero_shot.py METRA [PAGE]

METRA is the command. Every figure is the mean over the ten splits of the set, with classes drawn for each of them. The
table is printed, and written to PAGE (docs/results/zero_shot.md) where one is named.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SETS = {"OSR": ("osr_gist", "osr_gist", "osr_binary"), "PubFig": ("pubfig", "pubfig", "pubfig_binary")}
METHODS = {"RankSVM": "rank-svm", "Qwise": "attributes"}
HEAD = """# Classes without training rows

OSR (8 kinds of scenes) and PubFig (8 persons), 30 rows a class to learn from but none of the unseen classes, which are
drawn anew for each of ten splits and placed by the orderings alone
([how](../guide/attributes.md#classes-without-training-rows)). A test row may be given any of the eight classes.
Relative attributes are the orderings of Parikh & Grauman (ICCV 2011), binary ones the same table's other half, in which
a class has an attribute or not. Accuracy in percent: of all test rows, of those of seen classes, of those of unseen
classes; λ was chosen on validation rows of seen classes. Knowing nothing, one in eight is right: most figures of unseen
classes are below that, because seen classes, whose rows the scores were fitted to, win most of their rows.

Made by `python benches/zero_shot.py $(command -v metra) docs/results/zero_shot.md`, which runs for each line

```
metra train $METRA_DATA/osr_gist.parquet --label label --orderings examples/orderings/osr_gist.txt --method rank-svm --splits $METRA_DATA/osr_gist.splits.json --prepare sqrt+l2 --score euclid --tune lambda=0.003,0.01,0.03 --classifier zero-shot:0.5 --unseen-classes 2
```
"""


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
    metra, *page = sys.argv[1:]
    lines = [HEAD]
    for name, (table, relative, binary) in SETS.items():
        lines += [f"## {name}", "", "| unseen classes | attributes | method | all | seen | unseen |", "| --- " * 6 + "|"]
        for unseen in range(1, 5):
            for kind, orderings in (("relative", relative), ("binary", binary)):
                for title, method in METHODS.items():
                    found = accuracies(metra, table, orderings, method, unseen)
                    cells = [
                        f"{100 * statistics.mean(values):.1f} ± {100 * statistics.stdev(values):.1f}"
                        for values in zip(*found, strict=True)
                    ]
                    lines.append(f"| {unseen} | {kind} | {title} | {' | '.join(cells)} |")
                    print(lines[-1], flush=True)
        lines.append("")
    for path in page:
        Path(path).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
