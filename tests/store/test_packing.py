"""Values byte by byte: what is written is read back, what is not ours is refused."""

from __future__ import annotations

import numpy as np
import pytest

from service.store import packing
from service.store.packing import Answer, UnreadableValue

ANSWER = Answer("ad-17 é", 3, 20, 790, 0.25, False, b"12345678")


def rows(d: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    return rng.random((count, d)) < 0.5, rng.normal(size=(count, d)), rng.normal(size=count)


@pytest.mark.parametrize("d", [1, 7, 8, 9, 32, 129])
def test_logged_rows_come_back_to_the_bit(d):
    observed, xbar, y = rows(d, 5)
    entries = packing.rewarded_rows(observed, xbar, y)
    assert {len(entry) for entry in entries} == {packing.row_size(d)}
    for back in (packing.rows(entries, d), packing.joined_rows(b"".join(entries), d)):
        for written, read in zip((observed, xbar, y), back, strict=True):
            np.testing.assert_array_equal(written, read)


def test_a_row_of_another_size_or_version_is_refused():
    [entry] = packing.rewarded_rows(*rows(4, 1))
    for bad in (entry + b"x", entry[:-1], b"\x02" + entry[1:], b""):
        with pytest.raises(UnreadableValue):
            packing.rows([bad], 4)


def test_a_decision_comes_back_as_it_was_told():
    observed, xbar, _ = rows(4, 1)
    [row] = packing.rows_apart(observed, xbar)
    record = packing.decision(ANSWER, True, row)
    assert packing.answer(record) == ANSWER
    assert record.endswith(row)
    packing.check_decision(record, 4)
    alone = packing.as_degraded(record)
    assert packing.answer(alone).degraded
    assert len(alone) == len(record)
    assert packing.answer(alone).arm == ANSWER.arm


def test_a_decision_that_no_script_could_use_is_refused():
    observed, xbar, _ = rows(4, 1)
    [row] = packing.rows_apart(observed, xbar)
    good = packing.decision(ANSWER, True, row)
    endless = packing.decision(ANSWER, True, row[:-8] + packing.pack_reward(np.inf))
    bad = [good[:10], good[:-1], good + b"x", b"\x02" + good[1:], good[:1] + b"X" + good[2:]]
    for one in (*bad, endless):
        with pytest.raises(UnreadableValue):
            packing.check_decision(one, 4)
    with pytest.raises(UnreadableValue):
        packing.check_decision(good, 5)


def test_a_refresh_mark_comes_back_to_the_bit():
    rng = np.random.default_rng(0)
    sigma = rng.normal(size=(6, 6))
    sigma = sigma + sigma.T
    nu = rng.normal(size=6)
    mark = packing.read_mark(packing.mark(64, 1_000, 0.7, nu, sigma))
    assert (mark.power, mark.arms, mark.p_hat) == (64, 1_000, 0.7)
    np.testing.assert_array_equal(mark.nu, nu)
    np.testing.assert_array_equal(mark.sigma, sigma)
    with pytest.raises(UnreadableValue):
        packing.read_mark(b"\x09" + bytes(40))
