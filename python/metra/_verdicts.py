"""What a held-out part says, in a form to look at."""

from __future__ import annotations

from typing import Any


class Verdicts(list[dict[str, Any]]):
    """What a test part says, one dictionary a measure; it prints as a table."""

    def __repr__(self) -> str:
        if not self:
            return "[]"
        form = "{measure:10}{base:>8.4f}{learned:>9.4f}{difference:>+10.4f}   "
        form += "[{low:+.4f}, {high:+.4f}]  {verdict}"
        head = f"{'':10}{'base':>8}{'learned':>9}{'gain':>10}   95 % interval ({self[0]['queries']} queries)"
        return "\n".join([head, *(form.format(**row) for row in self)])
