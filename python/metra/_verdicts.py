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


def pandas() -> Any:
    """The library of data frames, which is an optional extra."""
    try:
        import pandas as library
    except ImportError as error:
        raise ImportError("data frames need pandas: pip install metra[frames]") from error
    return library


class Verdicts(list[dict[str, Any]]):
    """Differences between two rankings, one dictionary a measure; they show as a table."""

    @property
    def frame(self) -> Any:
        """A pandas data frame, one row a measure."""
        return pandas().DataFrame(list(self)).set_index("measure")

    def __repr__(self) -> str:
        if not self:
            return "[]"
        names = [named(row) for row in self]
        width = max(10, *(len(name) + 1 for name in names))
        form = "{base:>8.4f}{learned:>9.4f}{difference:>+10.4f}   [{low:+.4f}, {high:+.4f}]  {verdict}"
        counts = {row["queries"] for row in self}
        of = f" ({self[0]['queries']} queries)" if len(counts) == 1 else ""
        head = f"{'':{width}}{'base':>8}{'learned':>9}{'gain':>10}   95 % interval{of}"
        return "\n".join([head, *(f"{n:{width}}" + form.format(**r) for n, r in zip(names, self))])

    def _repr_html_(self) -> str:
        titles = ["", *(title for title, _, _ in _COLUMNS)]
        rows = [
            [named(row), *(form.format(row[key]) for _, key, form in _COLUMNS)] for row in self
        ]
        return html_table(titles, rows)


def named(row: dict[str, Any]) -> str:
    """What a difference is of: a measure, or a slice of the queries."""
    return f"{slice_name(row)} ({row['queries']} queries)" if "by" in row else str(row["measure"])


def slice_name(row: dict[str, Any]) -> str:
    """What the queries of a slice share."""
    return f"{row['by']} {row['value']}"


def html_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table; the first cell of a row is its name."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
