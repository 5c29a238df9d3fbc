"""A Dockerfile, read: its stages, and what a stage's image is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


@dataclass(frozen=True)
class Step:
    verb: str
    rest: str


@dataclass
class Stage:
    name: str
    parent: str  # another stage, or an image
    steps: list[Step] = field(default_factory=list)


@dataclass
class Image:
    """What its steps so far have set."""

    environment: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = ""
    told: dict[str, str] = field(default_factory=dict)  # ENTRYPOINT, CMD, HEALTHCHECK, …

    def words(self, verb: str) -> list[str]:
        """The exec form of ENTRYPOINT or CMD."""
        found: list[str] = json.loads(self.told.get(verb, "[]"))
        return found


def read(path: Path, arguments: Mapping[str, str] | None = None) -> dict[str, Stage]:
    """Stages by name, in order."""
    given = dict(arguments or {})
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for step in _steps(path.read_text()):
        if step.verb == "FROM":
            parent, name = re.fullmatch(r"(\S+) AS (\S+)", step.rest).groups()  # type: ignore[union-attr]
            stage = stages[name] = Stage(name, expanded(parent, given))
        elif stage is None:
            name, _, default = step.rest.partition("=")  # an ARG before the first FROM
            given.setdefault(name, default)
        else:
            stage.steps.append(step)
    return stages


def image(
    stages: Mapping[str, Stage], name: str, arguments: Mapping[str, str] | None = None
) -> Image:
    """What the image of a stage is told, its parents' included."""
    stage = stages[name]
    made = image(stages, stage.parent, arguments) if stage.parent in stages else Image()
    scope = Scope(made, dict(arguments or {}))
    for step in stage.steps:
        scope.follow(step)
    return made


class Scope:
    """The variables of one stage: an ARG is known in its own stage only."""

    def __init__(self, made: Image, given: dict[str, str]) -> None:
        self.made, self.given, self.known = made, given, dict[str, str]()

    @property
    def variables(self) -> dict[str, str]:
        return self.known | self.made.environment

    def follow(self, step: Step) -> None:
        """A step that only says something; COPY and RUN are for others to do."""
        if step.verb == "ARG":
            name, _, default = step.rest.partition("=")
            self.known[name] = self.given.get(name, expanded(default, self.variables))
        elif step.verb in ("ENV", "LABEL"):
            target = self.made.environment if step.verb == "ENV" else self.made.labels
            before = self.variables
            for word in WORD.findall(step.rest):
                name, _, value = word.partition("=")
                target[name] = expanded(value.strip("\"'"), before)
        elif step.verb == "WORKDIR":
            self.made.workdir = expanded(step.rest, self.variables)
        elif step.verb == "USER":
            self.made.user = step.rest
        elif step.verb not in ("COPY", "RUN"):
            self.made.told[step.verb] = step.rest


def expanded(text: str, variables: Mapping[str, str]) -> str:
    return VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), text)


def _steps(text: str) -> Iterator[Step]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    for line in whole.splitlines():
        if line.strip():
            verb, _, rest = line.strip().partition(" ")
            yield Step(verb.upper(), rest.strip())
