"""Tables and lists as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, numbers to the right, a rule under the head.

    >>> print(aligned([["what", "count"], ["selects", "12"]]))
    what     count
    ───────  ─────
    selects     12
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])


def listed(items: Mapping[str, str]) -> str:
    """For a help text: names, and what they stand for.

    >>> print(listed({"pca": "principal components", "raw": "as they are"}))
      pca  principal components
      raw  as they are
    """
    width = max(map(len, items))
    return "\n".join(f"  {name.ljust(width)}  {summary}" for name, summary in items.items())
