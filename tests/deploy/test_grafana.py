"""Grafana itself cannot be started here. What it is given is checked as far as it can be."""

import json
from itertools import combinations

import yaml

from .prometheus import DEPLOY

FOLDER = DEPLOY / "grafana"
# Panels that every Grafana has.
BUILT_IN = {"stat", "timeseries", "heatmap", "bargauge", "status-history"}
VARIABLE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard():
    return json.loads((FOLDER / "dashboards" / "lacuna.json").read_text())


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def test_the_dashboard_can_be_provisioned_again_and_again():
    found = dashboard()
    assert found["uid"] == "lacuna"
    assert "id" not in found
    assert found["schemaVersion"] == 42
    [provider] = yaml.safe_load((FOLDER / "provisioning/dashboards/lacuna.yml").read_text())[
        "providers"
    ]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
    [source] = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["global"]
    assert source["jsonData"]["timeInterval"] == scraped["scrape_interval"]


def test_the_dashboard_asks_five_questions():
    rows = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert rows == [
        "Is it up?",
        "Is it fast?",
        "Is it learning?",
        "What is missing?",
        "Is Redis healthy?",
    ]


def test_variables_are_the_data_source_the_learners_and_a_baseline():
    variables = {one["name"]: one for one in dashboard()["templating"]["list"]}
    assert list(variables) == ["datasource", "learner", "baseline"]
    assert variables["datasource"]["query"] == "prometheus"
    assert variables["learner"]["multi"]
    assert variables["learner"]["allValue"] == ".*"
    assert not variables["baseline"]["multi"]
    for name in ("learner", "baseline"):
        assert variables[name]["datasource"] == VARIABLE


def test_every_panel_says_what_it_shows_in_which_unit():
    for panel in panels():
        assert panel["type"] in BUILT_IN, panel["title"]
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == VARIABLE
        assert panel["targets"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        for target in panel["targets"]:
            assert target["datasource"] == VARIABLE
            assert target["expr"]
    everything = dashboard()["panels"]
    identities = [panel["id"] for panel in everything]
    assert len(set(identities)) == len(identities)
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)


def test_no_panel_lies_on_another():
    taken = [(panel["title"], panel["gridPos"]) for panel in dashboard()["panels"]]
    for _, at in taken:
        assert at["x"] >= 0
        assert at["w"] > 0
        assert at["x"] + at["w"] <= 24
    for (one, a), (two, b) in combinations(taken, 2):
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, (one, two)
