"""Every query of rules and dashboard, asked of a real Prometheus that scrapes two real replicas,
each with traffic, and the exporter of the real server below them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.api.running import Service, service
from tests.api.test_metrics import ODD
from tests.servers import Server, server, wait_for

from .prometheus import Prometheus, alerts, program, prometheus, redis_exporter, rules
from .test_grafana import dashboard, panels

WITHIN_S = 60.0
# Queries that have nothing to say of a system that is well and young, and why.
SILENT = {
    'lacuna:missing:ratio_rate5m{learner=~".*"} offset 1d': "nothing is a day old",
    'ALERTS{alertstate="firing", alertname=~"(Lacuna|Redis).*"}': "nothing is wrong",
}
NAMES = re.compile(r"\b((?:lacuna|redis)[a-z0-9_]*(?::\w+)*|up)\b(?=[{\[ )\n]|$)")


@dataclass
class Watched:
    prometheus: Prometheus
    store: Server
    replicas: list[Service]


@pytest.fixture(scope="module")
def watched(tmp_path_factory) -> Iterator[Watched]:
    for name in ("prometheus", "prometheus-redis-exporter"):
        program(name)
    folder = tmp_path_factory.mktemp("watched")
    with ExitStack() as stack:
        enter = stack.enter_context
        store = enter(server(appendonly="yes", maxmemory="512mb"))
        shared = ("--redis-url", store.url)
        replicas = [enter(service(*shared, "--workers", "2")), enter(service(*shared))]
        exporter = enter(redis_exporter(folder, store.url))
        targets = {
            "lacuna-1:8080": replicas[0].url.removeprefix("http://"),
            "lacuna-2:8080": replicas[1].url.removeprefix("http://"),
            "redis-exporter:9121": exporter,
        }
        found = enter(prometheus(folder, targets))
        for replica in replicas:
            enter(traffic(replica.url))
        yield Watched(found, store, replicas)


class traffic:  # noqa: N801, a context manager like the others
    """The demo's, until the block ends."""

    def __init__(self, url: str) -> None:
        self.command = [sys.executable, "-m", "service.cli", "demo", "--url", url]
        self.command += ["--forever", "--quiet", "--pages", "10"]

    def __enter__(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30.0)


def without_answer(found: Prometheus, expressions: list[str]) -> list[str]:
    """Those that have no value, or none that is a number."""

    def answered(expression: str) -> bool:
        values = [float(one["value"][1]) for one in found.query(expression)]
        return any(value == value for value in values)

    return [one for one in expressions if not answered(one)]


def wait_for_answers(found: Prometheus, expressions: list[str]) -> None:
    left = list(expressions)

    def all_answered() -> bool:
        left[:] = without_answer(found, left)
        return not left

    try:
        wait_for(all_answered, "every query has an answer", WITHIN_S)
    except AssertionError:
        pytest.fail(f"no answer to {left}")


def test_every_target_is_up(watched):
    def up() -> bool:
        targets = watched.prometheus.get("targets")["activeTargets"]
        return len(targets) == 4 and {one["health"] for one in targets} == {"up"}

    wait_for(up, "every target is up", WITHIN_S)


def test_every_recording_rule_has_data(watched):
    wait_for_answers(watched.prometheus, [rule["record"] for rule in rules() if "record" in rule])


def test_every_query_of_the_dashboard_has_data(watched):
    texts = [target["expr"] for panel in panels() for target in panel["targets"]]
    texts += [one["expr"] for one in dashboard()["annotations"]["list"] if "expr" in one]
    for name, value in (
        ("$learner", ".*"),
        ("$baseline", "demo-random"),
        ("$__rate_interval", "10s"),
        ("$__range", "1m"),
    ):
        texts = [text.replace(name, value) for text in texts]
    assert not [text for text in texts if "$" in text]
    assert set(texts) > SILENT.keys()
    wait_for_answers(watched.prometheus, [text for text in texts if text not in SILENT])
    for text in SILENT:
        watched.prometheus.query(text)  # it can be asked


def test_variables_of_the_dashboard_offer_the_learners(watched):
    learners = {"demo-lacuna", "demo-zero-fill", "demo-random"}
    wait_for(
        lambda: set(watched.prometheus.get("label/learner/values")) == learners,
        "all learners are offered",
        WITHIN_S,
    )
    for one in dashboard()["templating"]["list"][1:]:
        metric = re.fullmatch(r"label_values\((\w+), learner\)", one["definition"])
        assert metric
        found = watched.prometheus.query(f"count by (learner) ({metric[1]})")
        assert {series["metric"]["learner"] for series in found} == learners


def test_replicas_tell_of_one_learner_and_the_rules_do_not_count_it_twice(watched):
    ask = watched.prometheus.query

    def both() -> bool:
        return len(ask('lacuna_model_version{learner="demo-lacuna"} > 0')) == 2

    wait_for(both, "both replicas have the learner", WITHIN_S)
    [recorded] = ask('lacuna:arms:count{learner="demo-lacuna"}')
    with watched.replicas[0].client() as http:
        arms = http.get("/learners/demo-lacuna").json()["arms"]
    assert 0.5 * arms < float(recorded["value"][1]) < 1.5 * arms
    [mean] = ask('lacuna:mean_reward:5m{learner="demo-lacuna"}')
    assert 0.0 <= float(mean["value"][1]) <= 1.0


def test_every_alert_can_be_evaluated_and_none_fires(watched):
    wait_for_answers(
        watched.prometheus,
        sorted({name for rule in alerts() for name in NAMES.findall(rule["expr"])}),
    )

    def evaluated() -> list[dict[str, str]]:
        groups = watched.prometheus.get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    wait_for(lambda: all(one["health"] != "unknown" for one in evaluated()), "evaluated", WITHIN_S)
    assert {one.get("lastError") for one in evaluated()} == {None}
    assert {one["health"] for one in evaluated()} == {"ok"}
    assert len(evaluated()) == len(rules())
    assert [one["name"] for one in evaluated() if one.get("state") == "firing"] == []


def test_prometheus_reads_names_of_features_however_odd(watched):
    with watched.replicas[0].client() as http:
        assert http.put("/learners/odd", json={"features": ODD}).status_code == 201
        arm = {"features": [1.0] * len(ODD)}
        assert http.post("/select", json={"learner": "odd", "arms": [arm]}).status_code == 200

    def names() -> set[str]:
        found = watched.prometheus.query('lacuna_feature_observed_rate{learner="odd"}')
        return {one["metric"]["feature"] for one in found}

    wait_for(lambda: names() == set(ODD), "every feature has its name", WITHIN_S)


def test_alerts_notice_a_store_and_a_replica_that_are_gone(watched):
    """The last test: it breaks what the others need."""
    watched.store.kill()
    watched.replicas[1].end()
    wanted = {"LacunaStoreAway", "LacunaDegraded", "RedisDown", "LacunaDown"}

    def noticed() -> bool:
        found = watched.prometheus.get("alerts")["alerts"]
        return wanted <= {one["labels"]["alertname"] for one in found}

    wait_for(noticed, f"{wanted} are pending or fire", WITHIN_S)
