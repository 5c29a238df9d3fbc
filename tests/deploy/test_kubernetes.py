"""The manifests: they build, Kubernetes knows every field, and they agree with the service."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import signal
import subprocess
from base64 import b64decode
from collections.abc import Iterator

import httpx
import kubernetes_validate
import pytest
import yaml

from service import __version__
from service.errors import BadSetting
from service.settings import Settings, variable
from service.store.embedded import EmbeddedServer
from service.supervisor import KILLED_AFTER_S
from tests.api.running import Service, service
from tests.deploy.manifests import (
    MANIFESTS,
    ROOT,
    Manifest,
    built,
    container,
    environment,
    is_core,
    needs_kustomize,
    patches,
    pod,
    settings,
    the,
    written,
)
from tests.servers import Server, server, wait_for

OVERLAYS = ("trial", "production")
# The oldest that has all we use, one between, and the newest whose schema is at hand.
VERSIONS = ("1.30", "1.34", "1.37")
LABELS = {"app.kubernetes.io/name": "lacuna"}
SERVER_STOP_S = inspect.signature(EmbeddedServer).parameters["stop_timeout_s"].default


@pytest.fixture(scope="module", params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> list[Manifest]:
    return built(request.param)


@pytest.fixture(scope="module")
def production() -> list[Manifest]:
    return built("production")


@pytest.fixture(scope="module")
def trial() -> list[Manifest]:
    return built("trial")


# Without kustomize -----------------------------------------------------------------------------


def test_every_file_is_used_by_a_kustomization():
    named = set(patches())
    for path in MANIFESTS.rglob("kustomization.yaml"):
        listed = yaml.safe_load(path.read_text())
        for name in listed["resources"] + listed.get("components", []):
            assert (path.parent / name).exists(), f"{path}: {name}"
            named.add((path.parent / name).resolve())
    assert named - {path.parent for path in MANIFESTS.rglob("*.yaml")} == set(written())


@pytest.mark.parametrize("path", written(), ids=lambda path: str(path.relative_to(MANIFESTS)))
def test_every_file_is_one_manifest_that_kubernetes_knows(path):
    [manifest] = yaml.safe_load_all(path.read_text("utf-8"))
    if path not in patches() and is_core(manifest):
        for version in (VERSIONS[0], VERSIONS[-1]):
            kubernetes_validate.validate(manifest, version, strict=True)


def test_nothing_here_is_a_secret():
    for path in MANIFESTS.rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8")
            assert not re.search(r"^kind: Secret|secretGenerator|rediss?://", text, re.M), path


def test_a_service_link_would_have_broken_the_start():
    # Why enableServiceLinks is off: this is what a Service named lacuna adds to every pod.
    with pytest.raises(BadSetting, match="LACUNA_PORT must be a whole number"):
        Settings.from_environment({"LACUNA_PORT": "tcp://10.96.0.7:8080"})


# What kustomize makes of it ----------------------------------------------------------------------


@needs_kustomize
def test_kubernetes_knows_every_field(overlay):
    for manifest in filter(is_core, overlay):
        for version in VERSIONS:
            kubernetes_validate.validate(manifest, version, strict=True)


@needs_kustomize
def test_the_overlays_have_what_they_should(trial, production):
    both = {"Namespace", "ServiceAccount", "ConfigMap", "Service", "Deployment", "NetworkPolicy"}
    scaled = {"HorizontalPodAutoscaler", "PodDisruptionBudget", "ServiceMonitor"}
    assert {one["kind"] for one in trial} == both | {"PersistentVolumeClaim"}
    assert {one["kind"] for one in production} == both | scaled
    for manifests in (trial, production):
        name = the("Namespace", manifests)["metadata"]["name"]
        spaces = {m["metadata"].get("namespace") for m in manifests if m["kind"] != "Namespace"}
        assert spaces == {name}


@needs_kustomize
def test_everything_means_the_same_pods(overlay):
    for manifest in overlay:
        if manifest["kind"] == "ConfigMap" or manifest["kind"] == "Namespace":
            continue
        assert manifest["metadata"]["labels"] == LABELS
    deployment = the("Deployment", overlay)["spec"]
    assert deployment["template"]["metadata"]["labels"] == LABELS
    assert the("Service", overlay)["spec"]["selector"] == LABELS
    assert the("NetworkPolicy", overlay)["spec"]["podSelector"]["matchLabels"] == LABELS
    chosen = [deployment["selector"]]
    chosen += [one["labelSelector"] for one in pod(overlay)["topologySpreadConstraints"]]
    chosen += [
        one["spec"]["selector"]
        for one in overlay
        if one["kind"] in ("PodDisruptionBudget", "ServiceMonitor")
    ]
    assert all(one == {"matchLabels": LABELS} for one in chosen)


@needs_kustomize
def test_the_image_is_of_this_version(overlay):
    assert container(overlay)["image"] == f"lacuna:{__version__}", "newTag in base/kustomization"


@needs_kustomize
def test_every_variable_is_a_setting(overlay):
    known = set(Settings().to_environment())
    assert set(environment(overlay)) <= known
    settings(overlay)  # raises where a value cannot be used


@needs_kustomize
def test_ports_agree(overlay):
    told = settings(overlay)
    [port] = container(overlay)["ports"]
    assert (port["name"], port["containerPort"]) == ("http", told.port)
    assert told.host == "0.0.0.0"
    [served] = the("Service", overlay)["spec"]["ports"]
    assert (served["name"], served["targetPort"]) == ("http", "http")
    [let_in] = the("NetworkPolicy", overlay)["spec"]["ingress"]
    assert let_in["ports"] == [{"port": "http", "protocol": "TCP"}]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container(overlay)[probe]["httpGet"]["port"] == "http"


@needs_kustomize
def test_the_grace_period_is_long_enough_to_drain(overlay):
    told = settings(overlay)
    sleep_s = container(overlay).get("lifecycle", {"preStop": {"sleep": {"seconds": 0}}})
    takes_s = sleep_s["preStop"]["sleep"]["seconds"] + told.drain_idle_s + told.drain_s
    takes_s += KILLED_AFTER_S
    if variable("redis_url") not in environment(overlay):
        takes_s += SERVER_STOP_S
    assert pod(overlay)["terminationGracePeriodSeconds"] >= takes_s


@needs_kustomize
def test_pods_are_restricted(overlay):
    spec, one = pod(overlay), container(overlay)
    assert spec["automountServiceAccountToken"] is False
    assert the("ServiceAccount", overlay)["automountServiceAccountToken"] is False
    assert spec["serviceAccountName"] == the("ServiceAccount", overlay)["metadata"]["name"]
    assert spec["enableServiceLinks"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 10001
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    labels = the("Namespace", overlay)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    mounted = {mount["name"]: mount["mountPath"] for mount in one["volumeMounts"]}
    assert set(mounted) == {volume["name"] for volume in spec["volumes"]}
    assert mounted["tmp"] == "/tmp"
    assert set(one["resources"]["limits"]) == {"memory"}, "a throttled worker is a slow one"


@needs_kustomize
def test_the_trial_has_one_pod_and_keeps_its_data(trial):
    deployment = the("Deployment", trial)["spec"]
    assert deployment["replicas"] == 1
    assert deployment["strategy"] == {"type": "Recreate"}
    assert variable("redis_url") not in environment(trial)
    [claim] = [v["persistentVolumeClaim"] for v in pod(trial)["volumes"] if v["name"] == "data"]
    assert claim["claimName"] == the("PersistentVolumeClaim", trial)["metadata"]["name"]
    [mount] = [m for m in container(trial)["volumeMounts"] if m["name"] == "data"]
    assert settings(trial).data_dir.startswith(mount["mountPath"] + "/")
    assert the("NetworkPolicy", trial)["spec"]["egress"] == []


@needs_kustomize
def test_production_scales_and_takes_its_secrets_from_a_secret(production):
    deployment = the("Deployment", production)
    assert "replicas" not in deployment["spec"], "the autoscaler says how many"
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    scaler = the("HorizontalPodAutoscaler", production)["spec"]
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert scaler["minReplicas"] > the("PodDisruptionBudget", production)["spec"]["maxUnavailable"]
    assert "cpu" in container(production)["resources"]["requests"], "utilization is of the request"
    secrets = {
        one["name"]: one["valueFrom"]["secretKeyRef"] for one in container(production)["env"]
    }
    assert {name: one["key"] for name, one in secrets.items()} == {
        "LACUNA_REDIS_URL": "redis-url",
        "LACUNA_API_KEYS": "api-keys",
    }
    assert not any(one.get("optional") for one in secrets.values())
    assert {one["name"] for one in secrets.values()} == {"lacuna"}
    ports = [
        p for rule in the("NetworkPolicy", production)["spec"]["egress"] for p in rule["ports"]
    ]
    assert {port["port"] for port in ports} == {53, 6379, 26379}


@needs_kustomize
def test_prometheus_finds_the_metrics(production):
    spec = the("ServiceMonitor", production)["spec"]
    assert set(spec) == {"jobLabel", "selector", "endpoints"}
    [endpoint] = spec["endpoints"]
    assert set(endpoint) == {"port", "path", "interval", "scrapeTimeout", "authorization"}
    [served] = the("Service", production)["spec"]["ports"]
    assert endpoint["port"] == served["name"]
    assert endpoint["authorization"] == {
        "type": "Bearer",
        "credentials": {"name": "lacuna", "key": "scrape-key"},
    }
    assert spec["jobLabel"] in LABELS
    interval, timeout = (int(endpoint[name].rstrip("s")) for name in ("interval", "scrapeTimeout"))
    assert timeout <= interval


# The document -------------------------------------------------------------------------------------


def shown(start: str) -> str:
    """The one shell block of docs/kubernetes.md that begins so."""
    text = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    [block] = [one for one in re.findall(r"```sh\n(.*?)```", text, re.S) if one.startswith(start)]
    return block


def ran(command: str, **variables: str) -> list[Manifest]:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@needs_kustomize
@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
def test_the_secret_of_the_document_is_the_one_that_pods_want(production):
    [making] = re.findall(
        r"^kubectl -n lacuna create secret.*?[^\\]$", shown("kubectl apply -f"), re.S | re.M
    )
    given = {"REDIS_URL": "redis://r", "API_KEY": "a", "SCRAPE_KEY": "s", "NEW_KEY": "n"}
    [made] = ran(making + " --dry-run=client -o yaml", **given)
    wanted = {one["valueFrom"]["secretKeyRef"]["key"] for one in container(production)["env"]}
    assert made["metadata"]["name"] == "lacuna"
    assert set(made["data"]) == wanted | {"scrape-key"}
    # Changing a key makes the same Secret anew.
    [changed] = ran(shown("kubectl -n lacuna create secret").partition("| kubectl")[0], **given)
    assert set(changed["data"]) == set(made["data"])
    assert b64decode(changed["data"]["api-keys"]) == b"n,a,s"


def test_the_rules_become_resources_of_the_operator():
    rules = sorted((ROOT / "deploy" / "prometheus" / "rules").glob("*.yml"))
    if not rules:
        pytest.skip("there are no rules")
    made = ran(shown("for file in").replace("kubectl apply -f -", "cat"))
    assert [one["kind"] for one in made] == ["PrometheusRule"] * len(rules)
    for one, file in zip(made, rules, strict=True):
        assert one["spec"] == yaml.safe_load(file.read_text("utf-8"))


# The service, told what a pod is told ------------------------------------------------------------


@pytest.fixture
def store() -> Iterator[Server]:
    with server() as one:
        yield one


@pytest.fixture
def running(store: Server, production: list[Manifest]) -> Iterator[Service]:
    given = {name: value or "" for name, value in environment(production).items()}
    given |= {"LACUNA_REDIS_URL": store.url, "LACUNA_API_KEYS": "callers,scraper"}
    with service("--host", "127.0.0.1", **given) as one:
        yield one


@needs_kustomize
def test_a_pod_stays_in_the_service_while_redis_is_away_and_answers(running, store, production):
    probes = {
        name: container(production)[name]["httpGet"]["path"]
        for name in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    select = {"learner": "ads", "arms": [{"features": [0.5, None]}, {"features": [0.1, 0.2]}]}
    with running.client() as http:

        def status(path: str) -> int:
            return http.get(path).status_code

        key = {"x-api-key": "callers"}
        assert {status(path) for path in probes.values()} == {200}
        scraped = the("ServiceMonitor", production)["spec"]["endpoints"][0]["path"]
        answer = http.get(scraped, headers={"authorization": "Bearer scraper"})
        assert "lacuna_" in answer.text
        assert http.post("/select", json=select, headers=key).json()["degraded"] is False
        store.kill()
        assert http.post("/select", json=select, headers=key).json()["degraded"] is True
        assert status(probes["startupProbe"]) == 503
        assert status(probes["readinessProbe"]) == 200
        assert status(probes["livenessProbe"]) == 200
        store.start()
        wait_for(lambda: status(probes["startupProbe"]) == 200, "it is ready again")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(pod(production)["terminationGracePeriodSeconds"]) == 0


@needs_kustomize
def test_a_pod_that_never_met_its_redis_does_not_enter_the_service(store, production):
    path = container(production)["startupProbe"]["httpGet"]["path"]
    store.kill()
    with service("--redis-url", store.url) as fresh, httpx.Client(base_url=fresh.url) as http:
        assert http.get(path).status_code == 503
        select = http.post("/select", json={"arms": [{"features": [0.5]}]})
        assert select.status_code == 503, "it has no model to answer from"
        store.start()
        wait_for(lambda: http.get(path).status_code == 200, "it is ready")
