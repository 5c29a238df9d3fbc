"""The examples in the learner's docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import service.learner

MODULES = [
    "service.learner",
    *(m.name for m in pkgutil.walk_packages(service.learner.__path__, "service.learner.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = sum(
        len(test.examples)
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
    )
    assert examples >= 2
