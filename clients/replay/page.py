"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clients.simulate.picture import LOOKS, draw

from .protocol import Setting
from .report import Summary, describe, panels, ratios

SYNTHETIC = "Synthetic data: rows and clicks are made up, the signal is planted."

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 68rem; margin: 2.5rem auto;
  padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.about { color: #666; margin-top: 0; }
p.loud { background: #fff3cd; border-left: 4px solid #d39e00; padding: .6rem .9rem; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid #e5e5e5; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
"""


def write(
    folder: Path, about: dict[str, Any], summaries: Sequence[Summary], baseline: str
) -> tuple[Path, Path]:
    """`replay.png` and `replay.html`."""
    picture, page = folder / "replay.png", folder / "replay.html"
    note = _note(about, summaries)
    shown = panels(summaries)
    draw(shown, picture, note=note)
    drawing = folder / "replay.svg"
    draw(shown, drawing, note=note)
    svg = drawing.read_text(encoding="utf-8")
    drawing.unlink()
    page.write_text(
        _document(about, summaries, baseline, svg[svg.index("<svg") :]), encoding="utf-8"
    )
    return picture, page


def _note(about: dict[str, Any], summaries: Sequence[Summary]) -> str:
    count = len(summaries[0].seeds)
    note = f"{about['dataset']}, mean of {count} seeds, 95 % bands" if count > 1 else "one seed"
    return f"{note}. {SYNTHETIC}" if about["synthetic"] else note


def _document(about: dict[str, Any], summaries: Sequence[Summary], baseline: str, svg: str) -> str:
    title = f"Replay of {about['dataset']}"
    facts = (
        f"{about['rows_read']:,} impressions read, {about['rows_kept']:,} kept, "
        f"{100 * about['click_rate']:.1f} % clicked; features: {about['features']}."
    )
    loud = f'<p class="loud">{SYNTHETIC}</p>' if about["synthetic"] else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f'<h1>{html.escape(title)}</h1><p class="about">{html.escape(facts)}</p>{loud}'
        f"{svg}{_tables(summaries, baseline)}</html>\n"
    )


def _tables(summaries: Sequence[Summary], baseline: str) -> str:
    rows: dict[Setting, list[str]] = {}
    for one, ratio in zip(summaries, ratios(summaries, baseline), strict=True):
        cells = [
            LOOKS[one.policy][0],
            f"{one.ctr:.4f}",
            f"± {one.half_width:.4f}" if math.isfinite(one.half_width) else "–",
            f"{ratio:.3f}" if math.isfinite(ratio) else "–",
        ]
        row = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        rows.setdefault(one.setting, []).append(f"<tr>{row}</tr>")
    head = "".join(f"<th>{one}</th>" for one in ("policy", "CTR", "95 % band", f"over {baseline}"))
    return "".join(
        f"<h2>{html.escape(describe(setting))}</h2><table><tr>{head}</tr>{''.join(body)}</table>"
        for setting, body in rows.items()
    )
