"""The manifests as written and as built, for tests to look into."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "deploy" / "kubernetes"

Manifest = dict[str, Any]


def kustomize() -> list[str] | None:
    """kubectl's or the program itself, 4 or newer: components and `null` in patches need that."""
    for command in (["kustomize"], ["kubectl"]):
        if not shutil.which(command[0]):
            continue
        asked = [*command, "version", *(["--client", "-o", "json"] if "kubectl" in command else [])]
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        if "kubectl" in command:
            told = json.loads(told or "{}").get("kustomizeVersion", "")
        found = re.search(r"v(\d+)\.", told)
        if found and int(found[1]) >= 4:
            return [*command, "build" if command == ["kustomize"] else "kustomize"]
    return None


BUILD = kustomize()
needs_kustomize = pytest.mark.skipif(
    BUILD is None, reason="there is no kustomize 4 or kubectl 1.21"
)


def built(overlay: str) -> list[Manifest]:
    assert BUILD is not None
    folder = MANIFESTS / "overlays" / overlay
    done = subprocess.run([*BUILD, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "kustomize warns of nothing"
    return list(yaml.safe_load_all(done.stdout))


def the(kind: str, manifests: list[Manifest]) -> Manifest:
    [found] = [one for one in manifests if one["kind"] == kind]
    return found


def pod(manifests: list[Manifest]) -> Manifest:
    return the("Deployment", manifests)["spec"]["template"]["spec"]


def container(manifests: list[Manifest]) -> Manifest:
    [one] = pod(manifests)["containers"]
    return one


def environment(manifests: list[Manifest]) -> dict[str, str | None]:
    """What the container is told; None where a Secret has it."""
    config = the("ConfigMap", manifests)
    [source] = container(manifests)["envFrom"]
    assert source["configMapRef"]["name"] == config["metadata"]["name"]
    return config["data"] | {one["name"]: one.get("value") for one in container(manifests)["env"]}


def settings(manifests: list[Manifest]) -> Settings:
    known = {name: value for name, value in environment(manifests).items() if value is not None}
    return Settings.from_environment(known)


def written() -> list[Path]:
    return [path for path in sorted(MANIFESTS.rglob("*.yaml")) if path.name != "kustomization.yaml"]


def patches() -> set[Path]:
    found = set()
    for path in MANIFESTS.rglob("kustomization.yaml"):
        for patch in yaml.safe_load(path.read_text()).get("patches", []):
            found.add(path.parent / patch["path"])
    return found


def is_core(manifest: Manifest) -> bool:
    return manifest["kind"] != "ServiceMonitor"  # a resource of the Prometheus operator
