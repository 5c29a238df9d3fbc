"""docker-compose.yml as it is written; test_stack.py runs it."""

import re
from pathlib import Path

import pytest

from clients.demo.command import DECISION_TTL_S, POLICIES
from clients.demo.world import NAMES
from service.learner import LearnerConfig
from service.settings import PARSERS, Settings, variable

from .stack import PORTS, ROOT, compose, stages

NGINX = ROOT / "deploy/nginx/nginx.conf"
JOBS = {"loadtest", "replay"}
OURS = {"lacuna:local", "lacuna-clients:local"}


@pytest.fixture(scope="module")
def services():
    return compose()["services"]


def seconds(text):
    return sum(
        int(number) * {"s": 1, "m": 60}[unit] for number, unit in re.findall(r"(\d+)([sm])", text)
    )


def directive(name):
    """All values of it in the load balancer's configuration."""
    return re.findall(rf"(?m)^\s*{name} ([^;]+);", NGINX.read_text())


def test_the_services_are_those_that_are_scraped_and_addressed_by_name(services):
    assert set(services) == {*PORTS, "demo", *JOBS}
    assert {name for name, told in services.items() if told.get("profiles")} == JOBS
    assert services["loadtest"]["profiles"] == ["loadtest"]
    assert services["replay"]["profiles"] == ["replay"]


def test_ports_are_published_on_this_machine_only(services):
    published = {
        name: [(port["host_ip"], port["published"], port["target"]) for port in told["ports"]]
        for name, told in services.items()
        if told.get("ports")
    }
    assert published == {
        "lb": [("127.0.0.1", "8080", 8080)],
        "prometheus": [("127.0.0.1", "9090", 9090)],
        "grafana": [("127.0.0.1", "3000", 3000)],
    }


def test_every_address_in_it_is_a_service_and_its_port():
    text = (ROOT / "docker-compose.yml").read_text() + NGINX.read_text()
    text = re.sub(r"(?m)#.*$|^ *image:.*$", "", text)
    found = set(re.findall(r"(?:[/ ])((?:redis|lacuna|lb|prometheus|grafana)[\w-]*):(\d+)", text))
    assert found == {("redis", "6379"), ("lacuna-1", "8080"), ("lacuna-2", "8080"), ("lb", "8080")}


def test_every_image_is_pinned_to_a_version(services):
    for told in services.values():
        tag = told["image"].rpartition(":")[2]
        assert told["image"] in OURS or re.match(r"v?\d+\.\d+\.\d+", tag), told["image"]


def test_each_image_of_ours_is_built_by_one_service_and_never_pulled(services):
    built = [told["image"] for told in services.values() if "build" in told]
    assert sorted(built) == sorted(OURS)
    ours = [told for told in services.values() if told["image"] in OURS]
    assert {told["pull_policy"] for told in ours} == {"never"}


def test_what_is_built_are_stages_of_the_dockerfile(services):
    targets = {told["build"]["target"] for told in services.values() if "build" in told}
    assert targets == {"service", "clients"} <= set(stages())
    assert list(stages())[-1] == "service", "what a build without a target makes"


def test_every_file_that_is_mounted_exists(services):
    sources = {
        mount["source"]
        for name, told in services.items()
        for mount in told.get("volumes", [])
        if mount["type"] == "bind" and name != "replay"
    }
    assert len(sources) >= 5
    assert [source for source in sources if not Path(source).exists()] == []


def test_every_variable_of_a_replica_is_a_setting(services):
    known = {variable(name) for name in PARSERS}
    for name in ("lacuna-1", "lacuna-2"):
        environment = services[name]["environment"]
        assert set(environment) <= known
        Settings.from_environment(environment)


def test_replicas_are_alike(services):
    assert {**services["lacuna-1"], "build": None} == {**services["lacuna-2"], "build": None}


def test_nothing_has_rights_or_limits_it_does_not_need(services):
    for name, told in services.items():
        assert told["read_only"], name
        assert told["cap_drop"] == ["ALL"], name
        assert told["security_opt"] == ["no-new-privileges:true"], name
        assert told["restart"] == ("no" if name in JOBS else "unless-stopped"), name
        assert float(told["cpus"]) > 0, name
        assert int(told["mem_limit"]) > 0, name
        assert told["pids_limit"] > 0, name
        assert told["logging"]["options"]["max-size"], name
        assert "privileged" not in told, name


def test_everything_that_can_say_so_says_whether_it_is_healthy(services):
    without = {name for name, told in services.items() if "healthcheck" not in told}
    assert without == {"demo", "redis-exporter", *JOBS}  # an image without a shell, and clients
    for name, told in services.items():
        for other, how in (told.get("depends_on") or {}).items():
            assert how["condition"] == "service_healthy", (name, other)
            assert "healthcheck" in services[other], (name, other)


def test_state_is_in_named_volumes(services):
    kept = {
        (name, mount["source"], mount["target"])
        for name, told in services.items()
        for mount in told.get("volumes", [])
        if mount["type"] == "volume"
    }
    assert kept == {
        ("redis", "store", "/data"),
        ("prometheus", "prometheus", "/prometheus"),
        ("grafana", "grafana", "/var/lib/grafana"),
        ("loadtest", "reports", "/reports"),
        ("replay", "reports", "/reports"),
    }


def test_a_replica_has_time_to_drain(services):
    settings = Settings()
    grace_s = seconds(services["lacuna-1"]["stop_grace_period"])
    assert grace_s > settings.drain_s + settings.drain_idle_s + 10


def test_the_load_balancer_closes_idle_connections_before_a_replica_does():
    to_replicas, to_callers = (seconds(text) for text in directive("keepalive_timeout"))
    assert to_replicas < Settings().keep_alive_s
    assert to_callers > 0


def test_the_load_balancer_lets_through_what_the_service_would_take(services):
    assert directive("client_max_body_size") == ["4m", "160m"]
    told = Settings.from_environment(services["lacuna-1"]["environment"])
    assert told.max_body_bytes == 4 << 20
    assert told.max_import_bytes == 160 << 20
    # docs/operations.md: a worker at rest, and three times the file.
    assert int(services["lacuna-1"]["mem_limit"]) > (210 + 3.2 * 160) * 2**20


def test_only_rewards_are_sent_again_after_they_may_have_arrived():
    text = NGINX.read_text()
    locations = re.findall(r"location (?:=|~)? ?(\S+) \{([^}]*)\}", text)
    again = {path for path, body in locations if "non_idempotent" in body}
    assert again == {"/reward", "/reward/batch"}
    assert directive("proxy_next_upstream")[0] == "error timeout"


def test_the_demo_may_run_for_ever(services):
    """By the formula of docs/operations.md, with event ids as long as the demo's."""
    command = services["demo"]["command"]
    pages_per_s = float(command[command.index("--pages") + 1])
    rows = 1.125 * LearnerConfig(dimension=len(NAMES)).history_limit
    learner = pages_per_s * DECISION_TTL_S * (220 + 2 * 32) + rows * (20 + 8.3 * len(NAMES))
    limit = re.search(r"(?m)^maxmemory (\d+)mb$", (ROOT / "deploy/redis.conf").read_text())[1]
    assert len(POLICIES) * learner < int(limit) * 2**20 / 4


def test_keys_and_workers_come_from_the_environment():
    given = {"LACUNA_API_KEYS": "new,old", "LACUNA_API_KEY": "new", "LACUNA_WORKERS": "3"}
    told = compose(**given)["services"]
    assert told["lacuna-1"]["environment"]["LACUNA_API_KEYS"] == "new,old"
    assert told["lacuna-1"]["environment"]["LACUNA_WORKERS"] == "3"
    assert told["demo"]["environment"]["LACUNA_API_KEY"] == "new"
    moved = compose(LACUNA_LB_PORT="8081")["services"]["lb"]["ports"]
    assert moved[0]["published"] == "8081"
