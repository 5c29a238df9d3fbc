"""What the learner refuses at its door: one error of ours that names the field, nothing changed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from service.learner import (
    Arms,
    BadInput,
    Constants,
    Learner,
    LearnerConfig,
    LearnerError,
    Moments,
    dump,
)

NAN, INF = float("nan"), float("inf")
GOOD = [[0.5, 1.0], [NAN, 2.0], [0.1, 0.2]]


@pytest.fixture
def learner():
    learner = Learner(LearnerConfig(dimension=2))
    for t in range(5):
        learner.reward(learner.select(GOOD), float(t % 2))
    return learner


def refused(action, field, learner=None):
    before = dump(learner) if learner else None
    with pytest.raises(BadInput) as caught:
        action()
    assert caught.value.field == field
    assert str(caught.value) == f"{field}: {caught.value.problem}"
    assert isinstance(caught.value, LearnerError)
    if learner:
        assert dump(learner) == before


@pytest.mark.parametrize(
    "features",
    [
        [],
        [[]],
        [[], []],
        [1.0, 2.0],
        [[[1.0, 2.0]]],
        5.0,
        None,
        [[1.0, 2.0], [3.0]],
        [[1.0, 2.0], 3.0],
        [[1.0]],
        [[1.0, 2.0, 3.0]],
        "text",
        [["a", "b"]],
        [["1", "2"]],
        [["1", None]],
        [[b"1", 2.0]],
        [[1.0, 2j]],
        [[1.0, {}]],
        [[1.0, [2.0]]],
        {"a": 1.0},
        [[10**400, 1.0]],
        np.array([["2026-11-18", "2026-11-19"]], dtype="datetime64[D]"),
        np.array([[1 + 2j, 3]]),
        np.empty((0, 2)),
        np.empty((2, 0)),
        object(),
    ],
)
def test_features_of_the_wrong_shape_or_kind_are_refused(learner, features):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(lambda: learner.select(features), "features", learner)


@pytest.mark.parametrize("value", [INF, -INF, 1e308, -1e308, 1.0001e50])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (2, 1)])
def test_a_value_that_is_not_finite_or_far_too_large_is_named_by_its_place(
    learner, value, row, column
):
    features = np.array(GOOD)
    features[row, column] = value
    refused(lambda: learner.select(features), f"features[{row}][{column}]", learner)


def test_an_unusable_value_under_a_0_of_the_mask_is_ignored(learner):
    choices = learner.select([[INF, 1.0], [1e308, 2.0]], [[0, 1], [0, 1]])
    assert choices.arms.observed.tolist() == [[False, True], [False, True]]
    assert np.isfinite(choices.mean + choices.bonus).all()


@pytest.mark.parametrize(
    "mask",
    [
        [[1, 1]],
        [[1, 1], [1, 1], [1]],
        [[1], [1], [1]],
        [1, 1],
        1,
        [[1, 1], [1, 2], [0, 0]],
        [[1, 1], [1, 0.5], [0, 0]],
        [[1, 1], [1, -1], [0, 0]],
        [[1, 1], [1, NAN], [0, 0]],
        [[1, 1], [1, None], [0, 0]],
        [[1, 1], [1, INF], [0, 0]],
        [["1", "1"], ["1", "0"], ["0", "0"]],
        [[1, 1], [1, 10**400], [0, 0]],
        "110",
    ],
)
def test_a_mask_of_the_wrong_shape_or_with_other_values_than_0_and_1_is_refused(learner, mask):
    refused(lambda: learner.select(GOOD, mask), "mask", learner)


@pytest.mark.parametrize("mask", [[[True, False]] * 3, np.array([[1, 0]] * 3, dtype=np.uint8)])
def test_a_mask_may_be_of_any_kind_of_number(learner, mask):
    assert learner.select([[1.0, 2.0]] * 3, mask).arms.observed.tolist() == [[True, False]] * 3


def test_none_and_nan_both_mean_missing():
    np.testing.assert_array_equal(
        Arms.of([[None, 1.0], [2.0, NAN]]).observed, [[False, True], [True, False]]
    )


def test_integers_and_single_precision_are_taken_as_they_are():
    assert Arms.of([[1, 2]]).x.tolist() == [[1.0, 2.0]]
    assert Arms.of(np.array([[0.5, 2]], dtype=np.float32)).x.tolist() == [[0.5, 2.0]]
    assert Arms.of(np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])).x.tolist() == [[1, 2], [3, 4]]


def test_the_callers_array_is_not_written_to(learner):
    features = np.array(GOOD)
    before = features.copy()
    learner.select(features)
    np.testing.assert_array_equal(features, before)


@pytest.mark.parametrize(
    "reward",
    [NAN, INF, -INF, 1e308, -1e308, 10**400, True, np.True_, "1", b"1", None, [1.0], 1j, {}],
)
def test_a_reward_that_is_not_a_usable_number_is_refused(learner, reward):
    choices = learner.select(GOOD)
    refused(lambda: learner.reward(choices, reward), "reward", learner)


@pytest.mark.parametrize("policy", ["e-clbbf", "random"])
def test_a_bad_reward_is_refused_even_where_it_would_not_be_learnt_from(policy):
    learner = Learner(LearnerConfig(dimension=2, policy=policy))
    choices = learner.select(GOOD)
    refused(lambda: learner.reward(choices, NAN), "reward", learner)


@pytest.mark.parametrize(
    "reward", [0, 1, -3, 0.25, np.float32(0.25), np.float16(1), np.int64(-(2**63)), np.uint8(3)]
)
def test_a_reward_may_be_any_kind_of_number(learner, reward):
    before = learner.model.sum_y
    learner.reward(learner.select(GOOD), reward)
    assert learner.model.sum_y == before + float(reward)


@pytest.mark.parametrize("policy", ["clbbf", "e-clbbf", "oful", "thompson", "random"])
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_the_largest_values_that_are_let_in_leave_every_number_finite(policy, preset):
    learner = Learner(LearnerConfig(dimension=3, policy=policy, preset=preset, alpha=1.0))
    rng = np.random.default_rng(0)
    for t in range(40):
        x = rng.choice([1e50, -1e50, 1e-50, 0.0, 1.0, NAN], size=(4, 3))
        choices = learner.select(x)
        assert np.isfinite(choices.mean).all()
        assert np.isfinite(choices.bonus).all()
        assert np.isfinite(choices.z).all()
        learner.reward(choices, [1e50, -1e50, 0.0][t % 3])
        assert np.isfinite(learner.model.theta).all()
        assert np.isfinite(learner.model.s).all()


def test_requests_of_different_dimension_or_none_at_all_do_not_join():
    refused(lambda: Arms.join([Arms.of([[1.0]]), Arms.of([[1.0, 2.0]])]), "requests")
    refused(lambda: Arms.join([]), "requests")


def test_a_batch_of_another_dimension_is_refused_by_the_learner(learner):
    refused(lambda: learner.select_batch(Arms.of([[1.0, 2.0, 3.0]])), "features", learner)
    refused(lambda: Moments.zero(4).add(Arms.of([[1.0, 2.0, 3.0]])), "features")


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *[("dimension", v) for v in (0, -1, 1_025, 2.0, "2", None, True, NAN)],
        *[("policy", v) for v in ("ucb", "CLBBF", None, 1, ["clbbf"], {})],
        *[("preset", v) for v in ("best", None, 0)],
        *[("missingness", v) for v in ("mar", None, 0)],
        *[("horizon", v) for v in (0, -5, 1.5, "9", True, 2**53 + 1)],
        *[("ridge", v) for v in (0, 0.0, -1.0, NAN, INF, "1", True, 1e101, 10**400, 1e-10)],
        *[("width", v) for v in (-0.1, NAN, INF, "1", False, 1e101)],
        *[("alpha", v) for v in (0, 0.0, -0.5, 1.5, NAN, None, "1", True, 10**400)],
        *[("active_set", v) for v in (0.0, -1.0, NAN, INF, "1", True)],
        *[("epsilon", v) for v in (-0.01, 1.01, NAN, INF, None, "0", True)],
        *[("seed", v) for v in (-1, 2**64, 1.0, None, "0", True)],
        *[("history_limit", v) for v in (-1, 2**31 + 1, 1.0, None, "0", True)],
        *[("constants", v) for v in (None, 1.0, [1, 1, 1, 1], "c2")],
    ],
)
def test_every_setting_refuses_what_it_cannot_be_and_says_which_it_was(field, bad):
    refused(lambda: LearnerConfig(**{"dimension": 2, field: bad}), field)
    refused(lambda: LearnerConfig.from_dict({"dimension": 2, field: bad}), field)


@pytest.mark.parametrize("name", ["c2", "c4", "c5", "c6"])
@pytest.mark.parametrize("bad", [-1.0, NAN, INF, "1", None, True, 10**400])
def test_every_constant_of_the_paper_is_checked(name, bad):
    refused(lambda: LearnerConfig(2, constants=Constants(**{name: bad})), f"constants.{name}")
    given = {"dimension": 2, "constants": {name: bad}}
    refused(lambda: LearnerConfig.from_dict(given), f"constants.{name}")


def test_unknown_settings_and_a_missing_dimension_are_named():
    refused(lambda: LearnerConfig.from_dict({"dimension": 2, "colour": 1}), "colour")
    refused(lambda: LearnerConfig.from_dict({"policy": "oful"}), "dimension")
    given = {"dimension": 2, "constants": {"c3": 1.0}}
    refused(lambda: LearnerConfig.from_dict(given), "constants.c3")


def test_a_ridge_of_nothing_is_refused_however_it_comes_about():
    refused(lambda: LearnerConfig(2, constants=Constants(c4=0.0)), "constants.c4")
    assert LearnerConfig(2, constants=Constants(c4=0.0), ridge=1.0).ridge == 1.0


def test_a_configuration_survives_its_dictionary():
    config = LearnerConfig(
        3, policy="thompson", horizon=9, constants=Constants(c6=0.5), ridge=2, seed=2**64 - 1
    )
    assert LearnerConfig.from_dict(config.to_dict()) == config
    assert LearnerConfig.from_dict({"dimension": 3, "constants": Constants()}) == LearnerConfig(3)


def test_the_papers_preset_knows_one_missing_rate_whatever_is_asked():
    assert LearnerConfig(2, preset="paper", missingness="per_feature").uniform_missingness
    assert LearnerConfig(2, missingness="uniform").uniform_missingness
    assert not LearnerConfig(2).uniform_missingness
