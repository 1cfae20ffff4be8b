"""Type-check the documented examples: every block of Python in the pages, a module each.

    python tools/check_examples.py mypy --ignore-missing-imports
    python tools/check_examples.py pyright

What follows is the checker and its arguments; modules of a temporary folder are added. Exits with the
checker's own code.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGES = [ROOT / "python" / "README.md"]
PAGES += [GUIDE / f"{name}.md" for name in ("python", "pgvector", "from-metric-learn", "serve-clients")]


def examples() -> dict[str, str]:
    """The blocks of every page, one module a page; of the guide to stores, one a store."""
    found = {page.parent.name + "_" + page.stem: page.read_text(encoding="utf-8") for page in PAGES}
    first, *sections = (GUIDE / "python-stores.md").read_text(encoding="utf-8").split("\n## ")
    found |= {f"stores_{number}": first + section for number, section in enumerate(sections)}
    blocks = {
        re.sub(r"\W", "_", name): "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
        for name, text in found.items()
    }
    return {name: code for name, code in blocks.items() if code}


def main() -> int:
    """Write the modules and run the checker on them."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        for name, code in examples().items():
            (Path(folder) / f"{name}.py").write_text(code, encoding="utf-8")
        files = sorted(str(path) for path in Path(folder).iterdir())
        return subprocess.run([*sys.argv[1:], *files], cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
