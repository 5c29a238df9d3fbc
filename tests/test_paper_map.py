"""Every function, class and module that docs/paper-map.md names is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "paper-map.md").read_text("utf-8")
NAMES = sorted(set(re.findall(r"`((?:service|clients|tests)\.[\w.]+)`", TEXT)))


def resolved(name: str):
    """The module, or what is in it by that name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_map_names_exists(name):
    assert resolved(name) is not None


def test_the_map_names_every_policy_and_every_part_of_the_learner():
    from service.learner.policies import POLICIES

    assert len(NAMES) > 40
    for policy in POLICIES.values():
        if policy.__name__ not in ("Clbbf", "Random"):  # Algorithm 1 is mapped line by line
            assert any(policy.__name__ in name for name in NAMES)
    for part in ("arms", "moments", "estimate", "completion", "regression", "presets", "history"):
        assert any(name.startswith(f"service.learner.{part}.") for name in NAMES)


def test_the_map_gives_no_line_numbers():
    assert not re.search(r"\.py:\d|\bline \d", TEXT)


def test_a_name_that_does_not_exist_is_noticed():
    for name in ("service.learner.moments.Moments.nothing", "service.learner.nowhere"):
        with pytest.raises((AttributeError, ModuleNotFoundError)):
            resolved(name)
