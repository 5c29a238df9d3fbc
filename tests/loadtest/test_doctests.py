import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "clients.loadtest.connection",
        "clients.loadtest.histogram",
        "clients.loadtest.ledger",
        "clients.loadtest.ramp",
        "clients.demo.world",
    ],
)
def test_examples_in_docstrings_are_true(module):
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
