"""What a held-out part says, in forms to look at."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

# What a table of differences shows: title, key and form.
_COLUMNS = (
    ("base", "base", "{:.4f}"),
    ("learned", "learned", "{:.4f}"),
    ("gain", "difference", "{:+.4f}"),
    ("from", "low", "{:+.4f}"),
    ("to", "high", "{:+.4f}"),
    ("", "verdict", "{}"),
)


class Verdicts(list[dict[str, Any]]):
    """Differences between two rankings, one dictionary a measure; they show as a table."""

    @property
    def frame(self) -> Any:
        """A pandas data frame, one row a measure."""
        import pandas

        return pandas.DataFrame(list(self)).set_index("measure")

    def __repr__(self) -> str:
        if not self:
            return "[]"
        form = "{measure:10}{base:>8.4f}{learned:>9.4f}{difference:>+10.4f}   "
        form += "[{low:+.4f}, {high:+.4f}]  {verdict}"
        head = f"{'':10}{'base':>8}{'learned':>9}{'gain':>10}   95 % interval ({self[0]['queries']} queries)"
        return "\n".join([head, *(form.format(**row) for row in self)])

    def _repr_html_(self) -> str:
        titles = ["", *(title for title, _, _ in _COLUMNS)]
        rows = [
            [row["measure"], *(form.format(row[key]) for _, key, form in _COLUMNS)] for row in self
        ]
        return html_table(titles, rows)


def html_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table; the first cell of a row is its name."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
