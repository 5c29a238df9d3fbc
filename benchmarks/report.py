"""What a benchmark found: tables and bars for the reader, JSON and a picture beside them."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clients.tables import aligned
from service import __version__

FORMAT = 1
PACKAGES = ("numpy", "scipy", "numba", "vowpalwabbit")


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure and what it must reach."""

    what: str
    figure: str
    bar: str
    passed: bool | None  # None: too little data to say

    @property
    def verdict(self) -> str:
        return "not judged" if self.passed is None else "PASS" if self.passed else "FAIL"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    rows: Sequence[Sequence[str]]  # the head first


@dataclass(frozen=True, slots=True)
class Report:
    name: str
    quick: bool
    tables: Sequence[Table]
    bars: Sequence[Bar]
    data: dict[str, Any]  # for the JSON
    draw: Callable[[Path], None] | None  # None: there is nothing to see
    packages: Sequence[str] = field(default=PACKAGES)


def text(report: Report) -> str:
    parts = [f"{table.title}\n{aligned(table.rows)}" for table in report.tables]
    if report.bars:
        head = ["bar", "figure", "must be", ""]
        parts.append(
            aligned([head, *([bar.what, bar.figure, bar.bar, bar.verdict] for bar in report.bars)])
        )
    return "\n\n".join(parts)


def to_dict(report: Report) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "benchmark": report.name,
        "quick": report.quick,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"architecture": platform.machine(), "cores": os.cpu_count()},
        "versions": {
            "lacuna": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in report.packages},
        },
        "bars": [
            {"what": b.what, "figure": b.figure, "must_be": b.bar, "passed": b.passed}
            for b in report.bars
        ],
        **report.data,
    }


def write(report: Report, directory: Path) -> list[Path]:
    data, picture = directory / f"{report.name}.json", directory / f"{report.name}.png"
    body = json.dumps(to_dict(report), allow_nan=False)
    data.write_text(body + "\n", encoding="utf-8")
    if report.draw is None:
        return [data]
    report.draw(picture)
    return [data, picture]
