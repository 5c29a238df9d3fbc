"""What real processes take is read from the system; here is that it can be, and how it is shown."""

from pathlib import Path

import pytest

from benchmarks import footprint
from benchmarks.footprint import Plan
from benchmarks.footprint_report import Busy, Learners, Rest, Rows, Start, report
from benchmarks.progress import Lines
from benchmarks.report import text, to_dict, write

linux_only = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read from /proc"
)


@linux_only
def test_rows_are_counted_in_the_store_and_in_its_workers():
    found = footprint.measure_rows(Plan(rows=2_000), 16, Lines("footprint"))
    assert found.row_bytes > 16 * 8
    assert found.pending_bytes > 16 * 8
    assert found.rewarded_bytes > found.row_bytes
    assert found.taken_us >= found.follow_us >= 0


def test_the_report_has_tables_and_no_bar_and_no_picture(tmp_path):
    found = report(
        quick=False,
        start=Start(20.0, 15.0, 1.4, 1.3),
        rest=Rest(32.0, 203.0, 6.0, 0.002, 0.001),
        learners=[Learners(8, 37_000.0, 9_700.0, 0.001, 0.0004)],
        rows=[Rows(8, 337.0, 300.0, 86.0, 197.0, 213.0, 3.0, 18.0)],
        busy=Busy(206.0, 24.0, 0.75, 0.14, 3_960.0),
    )
    shown = text(found)
    assert "3,960 selects per second" in shown
    assert "must be" not in shown
    assert to_dict(found)["rows"][0]["pending_bytes"] == 337.0
    assert [path.name for path in write(found, tmp_path)] == ["footprint.json"]
