"""The command ``metra``, as ``python -m metra`` and as the script that the package installs."""

from __future__ import annotations

import sys

from ._metra import command


def main() -> int:
    """Run the command with this process's arguments; its exit code."""
    arguments = sys.argv[1:]
    # How the interpreter was started with us, for work in a process of its own.
    started = sys.orig_argv[1 : len(sys.orig_argv) - len(arguments)]
    return command([sys.executable, *started], arguments)


if __name__ == "__main__":
    sys.exit(main())
