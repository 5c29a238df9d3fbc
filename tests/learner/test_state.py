"""State ⇄ bytes: what comes back decides the same, and nothing else is ever taken for a learner."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learner import (
    Arms,
    BadInput,
    BadState,
    Constants,
    Learner,
    LearnerConfig,
    Moments,
    codec,
    dump,
    dump_model,
    dump_moments,
    load,
    load_model,
    load_moments,
)

POLICIES = ["clbbf", "e-clbbf", "oful", "thompson", "random"]


def requests(seed, count, d, most_arms=6):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k = int(rng.integers(1, most_arms + 1))
        x = rng.normal(size=(k, d)).cumsum(axis=1) + 0.3
        yield np.where(rng.random((k, d)) < 0.7, x, np.nan), float(rng.normal())


def trained(rounds, d=3, seed=1, **settings_):
    learner = Learner(LearnerConfig(dimension=d, seed=5, alpha=0.95, **settings_))
    for x, y in requests(seed, rounds, d):
        learner.reward(learner.select(x), y)
    return learner


def assert_same_future(one, two, rounds=200):
    d = one.config.dimension
    for x, y in requests(99, rounds, d):
        a, b = one.select(x), two.select(x)
        assert a.index == b.index
        assert a.probability == b.probability
        assert a.learns == b.learns
        assert a.model_version == b.model_version
        for mine, theirs in ((a.z, b.z), (a.mean, b.mean), (a.bonus, b.bonus)):
            np.testing.assert_array_equal(mine, theirs)
        one.reward(a, y)
        two.reward(b, y)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_what_comes_back_decides_the_same_for_the_next_200_rounds(policy, preset):
    """45 rewards: between the refreshes at 32 and 64, and the 200 that follow pass two more."""
    original = trained(45, policy=policy, preset=preset, epsilon=0.1)
    blob = dump(original)
    restored = load(blob)
    assert restored.config == original.config
    assert dump(restored) == blob
    assert_same_future(original, restored)
    assert dump(restored) == dump(original)


@pytest.mark.parametrize("policy", ["clbbf", "thompson", "e-clbbf"])
def test_an_estimate_that_is_still_in_use_comes_back_to_the_bit(policy):
    """400 rounds in, the next few requests use the estimate as it was stored."""
    original = trained(400, d=5, policy=policy)
    restored = load(dump(original))
    assert not original.estimate_due()
    for name in ("nu", "sigma", "omega"):
        np.testing.assert_array_equal(
            getattr(restored.estimate, name), getattr(original.estimate, name)
        )
    assert_same_future(original, restored, rounds=30)


@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 63, 64])
def test_any_moment_is_a_good_one_to_stop(rounds):
    original = trained(rounds)
    assert_same_future(original, load(dump(original)), rounds=70)


@pytest.mark.parametrize(
    "settings_",
    [
        {"history_limit": 0},
        {"history_limit": 10},
        {"active_set": 0.7},
        {"horizon": 500, "constants": Constants(0.1, 0.2, 0.3, 0.4), "preset": "paper"},
        {"ridge": 0.5, "width": 2.0, "missingness": "uniform"},
    ],
)
def test_every_setting_survives(settings_):
    original = trained(45, **settings_)
    restored = load(dump(original))
    assert restored.config == original.config
    assert_same_future(original, restored, rounds=100)


@pytest.mark.parametrize("d", [1, 8, 9, 70])
def test_dimensions_on_both_sides_of_a_byte_of_mask_and_of_the_blocked_routines(d):
    original = trained(20, d=d)
    assert_same_future(original, load(dump(original)), rounds=30)


def test_a_choice_that_waits_for_its_reward_can_be_rewarded_after_the_restart():
    original = trained(20)
    x, _ = next(requests(3, 1, 3))
    choices = original.select(x)
    restored = load(dump(original))
    original.reward(choices, 2.0)
    restored.reward(choices, 2.0)
    assert dump(original) == dump(restored)


def test_dumping_changes_nothing_and_says_the_same_twice():
    learner = trained(20)
    assert dump(learner) == dump(learner)


def test_what_was_loaded_shares_no_memory_with_the_bytes():
    blob = bytearray(dump(trained(20)))
    restored = load(bytes(blob))
    restored.reward(restored.select([[1.0, 2.0, 3.0]]), 1.0)
    assert load(bytes(blob)).model.count == 20


# What is refused ----------------------------------------------------------------------------


def test_every_prefix_of_a_learner_is_refused():
    blob = dump(trained(3, d=2))
    for end in range(len(blob)):
        with pytest.raises(BadState):
            load(blob[:end])


def test_every_flipped_byte_of_a_learner_is_noticed():
    blob = dump(trained(3, d=2))
    for at in range(len(blob)):
        damaged = bytearray(blob)
        damaged[at] ^= 0x5A
        with pytest.raises(BadState):
            load(bytes(damaged))


def test_every_prefix_and_every_flipped_bit_of_moments_is_noticed():
    blob = dump_moments(Moments.of(Arms.of([[1.0, np.nan], [0.5, 2.0]])))
    for end in range(len(blob)):
        with pytest.raises(BadState):
            load_moments(blob[:end])
    for at in range(8 * len(blob)):
        damaged = bytearray(blob)
        damaged[at // 8] ^= 1 << at % 8
        with pytest.raises(BadState):
            load_moments(bytes(damaged))


def test_bytes_too_many_are_refused():
    with pytest.raises(BadState, match="too many"):
        load(dump(trained(3)) + b"\0")


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"\0" * 100,
        b"LACUNA",
        b"{}",
        b"\x80\x04}\x94\x8c\x01a\x94K\x01s.",
        b"\x93NUMPY" + b"\0" * 90,
    ],
)
def test_foreign_bytes_are_refused(foreign):
    with pytest.raises(BadState, match=r"not a Lacuna|truncated"):
        load(foreign)
    with pytest.raises(BadState):
        load_moments(foreign)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_at_all_raise_anything_else(tail):
    for blob in (tail, codec.MAGIC + tail, codec.MAGIC + b"\x01\x01" + tail):
        with pytest.raises(BadState):
            load(blob)
        with pytest.raises(BadState):
            load_moments(blob)


def test_a_newer_format_is_named_as_such():
    blob = bytearray(dump(trained(3)))
    blob[len(codec.MAGIC) + 1] = codec.FORMAT + 1
    with pytest.raises(BadState, match="newer"):
        load(sealed(bytes(blob[:-4])))


def test_one_kind_is_not_taken_for_another():
    learner = trained(3)
    with pytest.raises(BadState, match="another kind"):
        load(dump_moments(learner.moments))
    with pytest.raises(BadState, match="another kind"):
        load_moments(dump(learner))


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def arrays_of(blob):
    """Copies, to be changed: what is unpacked is to be read only."""
    return {name: array.copy() for name, array in codec.unpack(codec.Kind.LEARNER, blob)[1].items()}


def altered(blob, *, scalars=(), arrays=()):
    """A blob that is whole, checksum and all, but says something else."""
    kind = codec.Kind(blob[len(codec.MAGIC)])
    old_scalars, old_arrays = codec.unpack(kind, blob)
    return codec.pack(kind, old_scalars | dict(scalars), old_arrays | dict(arrays))


@pytest.mark.parametrize(
    "scalars",
    [
        {"count": -1},
        {"count": 1.5},
        {"count": "20"},
        {"count": True},
        {"count": 2**63},
        {"rounds": float("inf")},
        {"arms": float("nan")},
        {"arms": -3},
        {"ridge": 0.0},
        {"ridge": -1.0},
        {"ridge": float("nan")},
        {"ridge": "1"},
        {"sum_yy": float("inf")},
        {"next_refresh": None},
        {"estimate": [0.0, 5]},
        {"estimate": [0.5]},
        {"estimate": 7},
        {"config": {}},
        {"config": {"dimension": 2}},
        {"config": {"dimension": 3, "policy": "other"}},
        {"config": {"dimension": 3, "colour": 1}},
        {"config": 5},
    ],
)
def test_a_whole_blob_with_an_impossible_number_is_refused(scalars):
    with pytest.raises(BadState):
        load(altered(dump(trained(20)), scalars=scalars))


@pytest.mark.parametrize("name", ["s", "factor", "frozen_s", "b", "theta", "xbar", "y", "sigma"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_never_come_back(name, value):
    """They would stay in S for good, and no factorisation of S would ever succeed."""
    blob = dump(trained(20))
    arrays = arrays_of(blob)
    arrays[name].flat[-1] = value
    with pytest.raises(BadState, match="not finite"):
        load(altered(blob, arrays={name: arrays[name]}))


def test_a_factor_that_cannot_be_divided_by_is_refused():
    blob = dump(trained(20))
    arrays = arrays_of(blob)
    for value in (0.0, -1.0):
        arrays["factor"][0] = value
        with pytest.raises(BadState, match="positive definite"):
            load(altered(blob, arrays={"factor": arrays["factor"]}))


@pytest.mark.parametrize("name", ["s", "frozen_s", "p"])
def test_a_negative_sum_of_squares_is_refused(name):
    blob = dump(trained(20))
    arrays = arrays_of(blob)
    arrays[name][0] = -1.0
    with pytest.raises(BadState, match="negative"):
        load(altered(blob, arrays={name: arrays[name]}))


@pytest.mark.parametrize("name", ["xi", "z", "s", "b", "theta", "xbar", "observed", "y", "nu"])
def test_an_array_of_another_shape_or_type_is_refused(name):
    blob = dump(trained(20))
    _, arrays = codec.unpack(codec.Kind.LEARNER, blob)
    longer = np.concatenate([arrays[name], arrays[name][:1]])
    with pytest.raises(BadState):
        load(altered(blob, arrays={name: longer}))
    if name not in ("z", "s"):
        other = np.float64 if arrays[name].dtype == np.uint8 else np.uint8
        with pytest.raises(BadState):
            load(altered(blob, arrays={name: np.zeros(arrays[name].shape, other)}))


def test_a_part_that_is_missing_is_named():
    blob = dump(trained(20))
    scalars, arrays = codec.unpack(codec.Kind.LEARNER, blob)
    for name in arrays:
        rest = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(BadState, match=name):
            load(codec.pack(codec.Kind.LEARNER, scalars, rest))
    for name in scalars:
        if name != "estimate":
            rest = {key: value for key, value in scalars.items() if key != name}
            with pytest.raises(BadState, match=name):
                load(codec.pack(codec.Kind.LEARNER, rest, arrays))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"7",
        b"{}",
        b'{"scalars":{},"arrays":[["a","|O8",[1]]]}',
        b'{"scalars":{},"arrays":[["a","<f8",[-1]]]}',
        b'{"scalars":{},"arrays":[["a","<f8",[1e3]]]}',
        b'{"scalars":{},"arrays":[["a","<f8",[99999999999999999999]]]}',
        b'{"scalars":{},"arrays":[["a","<f8"]]}',
        b'{"scalars":7,"arrays":[]}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_header_that_makes_no_sense_is_refused(header):
    head = codec.MAGIC + bytes([codec.Kind.LEARNER, codec.FORMAT])
    with pytest.raises(BadState):
        load(sealed(head + struct.pack("<I", len(header)) + header))


def test_the_header_is_plain_json_and_the_rest_plain_numbers():
    blob = dump(trained(3, d=2))
    size = struct.unpack_from("<I", blob, 8)[0]
    header = json.loads(blob[12 : 12 + size])
    assert {type_ for _, type_, _ in header["arrays"]} <= {"<f8", "|u1"}
    assert header["scalars"]["config"]["dimension"] == 2


# Moments alone ------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(d=st.integers(1, 80), k=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_moments_come_back_bit_for_bit(d, k, seed):
    rng = np.random.default_rng(seed)
    moments = Moments.of(Arms.of(rng.normal(size=(k, d)), rng.random((k, d)) < 0.6))
    again = load_moments(dump_moments(moments))
    for name in ("xi", "z", "p"):
        np.testing.assert_array_equal(getattr(again, name), getattr(moments, name))
    assert (again.arms, again.rounds) == (moments.arms, moments.rounds)


def test_a_blob_is_little_more_than_the_numbers_in_it():
    d = 32
    moments = Moments.zero(d)
    numbers = d + d * (d + 1)  # ξ and the upper halves of Z and P
    assert len(dump_moments(moments)) < 8 * numbers + 200


def test_moments_with_a_rounding_below_0_come_back_and_are_still_good():
    """Seen only in what was taken away again, and summed in another order then."""
    taken = Arms.of([[0.1, 1.0], [0.7, 2.0], [0.3, 3.0]])
    moments = Moments.of(Arms.join([Arms.of([[np.nan, 5.0]]), taken]))
    moments.subtract(Moments.of(taken))
    moments.z[0, 0] = -1e-16  # the worst that can be left, whatever this machine rounds
    again = load_moments(dump_moments(moments))
    np.testing.assert_array_equal(again.z, moments.z)
    assert again.p[0, 0] == 0.0
    learner = Learner(LearnerConfig(dimension=2))
    learner.moments = again
    estimate = learner.new_estimate()
    assert np.linalg.eigvalsh(estimate.sigma).min() > 0.0


def test_merged_moments_of_workers_come_from_their_blobs():
    parts = [Moments.of(Arms.of([[1.0, np.nan]])), Moments.of(Arms.of([[2.0, 4.0]]))]
    total = Moments.zero(2)
    for part in parts:
        total.merge(load_moments(dump_moments(part)))
    assert total.xi.tolist() == [3.0, 4.0]
    with pytest.raises(BadInput):
        total.merge(Moments.zero(3))


# The model alone ----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_a_model_its_moments_and_its_rows_are_the_whole_learner(policy, preset):
    """What a worker starts from: the snapshot, the moments, and the log behind it."""
    original = trained(45, policy=policy, preset=preset, history_limit=30)
    restored = Learner(original.config)
    load_model(restored, dump_model(original))
    restored.moments = load_moments(dump_moments(original.moments))
    restored.history.append(original.history.rows())
    restored.estimate = original.estimate
    assert dump(restored) == dump(original)
    assert_same_future(original, restored, rounds=60)


def test_a_damaged_model_is_refused_and_leaves_the_learner_as_it_was():
    blob = dump_model(trained(5, d=2))
    learner = Learner(LearnerConfig(dimension=2, seed=5, alpha=0.95))
    before = dump(learner)
    for at in range(len(blob)):
        damaged = bytearray(blob)
        damaged[at] ^= 0x5A
        for bad in (bytes(damaged), blob[:at]):
            with pytest.raises(BadState):
                load_model(learner, bad)
    assert dump(learner) == before


def test_a_model_of_another_dimension_or_another_kind_is_refused():
    learner = Learner(LearnerConfig(dimension=2))
    for blob in (dump_model(trained(5, d=3)), dump(trained(5, d=2))):
        with pytest.raises(BadState):
            load_model(learner, blob)
