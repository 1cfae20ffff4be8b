"""Measures `metra serve` as a process on loopback.

    python benches/service/run.py METRA OUT.json PART... [options]

See README.md for the parts, their order and their time. Every part prints a table and writes its figures under its name into
OUT.json, beside those of other parts. Needs numpy, Linux (/proc, taskset) and oha.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Read by OpenBLAS when numpy is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

import attacks  # noqa: E402
import life  # noqa: E402
import load  # noqa: E402
import mapping  # noqa: E402
import overload  # noqa: E402
import searching  # noqa: E402
import soak  # noqa: E402
from data import Prepared  # noqa: E402

PARTS = {
    "map": mapping.measure,
    "search": searching.measure,
    "overload": overload.measure,
    "soak": soak.measure,
    "life": life.measure,
    "attacks": attacks.measure,
}


def settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metra")
    parser.add_argument("out", type=Path)
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    add = parser.add_argument
    add(
        "--folder",
        type=Path,
        help="where models, vectors and indexes are kept for the next run (default: a temporary one)",
    )
    add("--seconds", type=float, default=20, help="of each load in map and search (20)")
    add("--overload-seconds", type=float, default=300, help="of each overload (300)")
    add("--soak-minutes", type=float, default=30)
    add("--items", type=int, default=100_000, help="of the exact index (100,000)")
    add("--graph-items", type=int, default=1_000_000, help="of the index with a graph (1,000,000); 0 leaves it out")
    add(
        "--large-items",
        type=int,
        default=4_000_000,
        help="of the index that is opened after kill -9 (4,000,000); 0 leaves it out",
    )
    add("--reloads", type=int, default=1_000)
    add("--stops", type=int, default=20, help="SIGTERMs under load (20)")
    add("--fuzzed", type=int, default=100_000, help="mutated requests (100,000)")
    add("--seed", type=int, default=1, help="of the mutations")
    add("--comparisons", type=int, default=20_000, help="of keys, each way (20,000)")
    add("--server-core", type=int, default=0)
    add("--client-core", type=int, default=1)
    add("--direct", help="command that calls the library without the service, see README.md")
    return parser.parse_args()


def recorded(value):
    """As it is written: JSON has no numbers that are not finite, and files are named without their folders."""
    if isinstance(value, dict):
        return {str(name): recorded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [recorded(one) for one in value]
    if isinstance(value, str) and value.startswith("/"):
        return Path(value).name
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main() -> None:
    given = settings()
    given.metra = str(Path(given.metra).resolve())
    given.cores = load.Cores(given.server_core, given.client_core)
    told = subprocess.run([given.metra, "doctor", "--json"], capture_output=True, text=True, check=True).stdout
    doctor = json.loads(told)
    with tempfile.TemporaryDirectory(prefix="metra-service-") as temporary:
        given.prepared = Prepared(given.metra, (given.folder or Path(temporary)).resolve())
        given.scratch = Path(temporary)
        for name in given.parts:
            began = time.perf_counter()
            product = load.product_seconds(given.cores)
            print(f"== {name}", flush=True)
            found = PARTS[name](given)
            found["run"] = {
                "command": sys.argv,
                "cores": given.cores.facts(),
                "cpu": load.cpu_model(),
                "metra": {"version": doctor["version"], "sources": doctor["code"]},
                "python": platform.python_version(),
                "numpy": np.__version__,
                "oha": load.version(),
                "product_seconds": {"before": product, "after": load.product_seconds(given.cores)},
                "seconds": time.perf_counter() - began,
                "load_average": os.getloadavg(),
                "date": time.strftime("%Y-%m-%d"),
            }
            all_parts = json.loads(given.out.read_text()) if given.out.exists() else {}
            all_parts[name] = recorded(found)
            given.out.write_text(json.dumps(all_parts, indent=1, sort_keys=True) + "\n")
            print(
                f"-- {name}: {found['run']['seconds']:.0f} s, product {product:.2f} s, written to {given.out}",
                flush=True,
            )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130)
