import re
import subprocess
from pathlib import Path

import pytest
import yaml

from .prometheus import FOLDER, alerts, program

ALERTS_DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "alerts.md"
TESTS = sorted((FOLDER / "tests").glob("*.yml"))


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_configuration_and_rules_are_valid():
    promtool("check", "config", FOLDER / "prometheus.yml")
    promtool("check", "rules", *sorted((FOLDER / "rules").glob("*.yml")))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_rules_do_what_their_unit_tests_say(path):
    promtool("test", "rules", path)


def test_every_alert_has_been_seen_to_fire_and_to_be_quiet():
    seen = {
        (one["alertname"], bool(one["exp_alerts"]))
        for path in TESTS
        for case in yaml.safe_load(path.read_text())["tests"]
        for one in case.get("alert_rule_test", [])
    }
    assert seen == {(rule["alert"], fires) for rule in alerts() for fires in (True, False)}


def test_every_alert_says_how_bad_it_is_and_where_to_read_on():
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)
    for rule in alerts():
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"


def test_every_alert_has_a_section_that_says_what_to_look_at_and_do():
    sections = dict(
        re.findall(r"^### (\w+)\n(.*?)(?=^#|\Z)", ALERTS_DOCUMENT.read_text(), re.M | re.S)
    )
    assert sections.keys() == {rule["alert"] for rule in alerts()}
    for rule in alerts():
        text = sections[rule["alert"]]
        assert text.startswith(f"\n*{rule['labels']['severity']}")
        for part in ("**Means**", "**Look**", "**Do**"):
            assert part in text
