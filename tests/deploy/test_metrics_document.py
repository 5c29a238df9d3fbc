import re
from pathlib import Path

from service.api.families import COUNTERS, GAUGES, HISTOGRAMS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_every_metric_is_in_the_document_with_its_type_and_labels():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|(.*?)\| .+ \|$", DOCUMENT.read_text(), re.M)
    told = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    families = [
        *((f"lacuna_{name}_total", "counter", one) for name, one in COUNTERS.items()),
        *((f"lacuna_{name}", "gauge", one) for name, one in GAUGES.items()),
        *((f"lacuna_{name}", "histogram", one) for name, one in HISTOGRAMS.items()),
    ]
    assert told == {name: (kind, one.labels) for name, kind, one in families}
    assert len(rows) == len(told)
