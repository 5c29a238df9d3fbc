"""The five policies: what they choose, with which probability, and what they learn from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.learner import Arms, Constants, Learner, LearnerConfig, presets, randomness
from service.learner.policies import Scoring
from service.learner.presets import Round, horizon_of
from tests.learner.worlds import World, train

POLICIES = ["clbbf", "e-clbbf", "oful", "thompson", "random"]
OPTIMISTIC = ["clbbf", "e-clbbf", "oful"]


def make(policy="clbbf", d=3, **settings):
    return Learner(LearnerConfig(dimension=d, policy=policy, **settings))


def assert_frequencies(counts, probabilities):
    """Every count within five standard deviations of what its probability says."""
    n = sum(counts)
    for count, p in zip(counts, probabilities, strict=True):
        assert abs(count - n * p) < 5 * math.sqrt(n * p * (1 - p) + 1)


# All of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_the_first_round_is_uniform_and_says_so(policy):
    counts = [0] * 4
    for seed in range(1_200):
        choices = make(policy, d=2, seed=seed).select([[5.0, 0], [0, 1], [1, 1], [9, 9]])
        counts[choices.index[0]] += 1
        assert choices.probability == [0.25]
    assert_frequencies(counts, [0.25] * 4)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_the_same_seed_chooses_the_same_and_another_does_not(policy, preset):
    def played(seed):
        learner, world = make(policy, seed=seed, preset=preset, epsilon=0.5), World(3)
        indices = []
        for _ in range(60):
            choices = learner.select(world.arms(5))
            learner.reward(choices, 1.0)
            indices += choices.index
        return indices

    assert played(1) == played(1)
    assert played(1) != played(2)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_a_single_arm_is_chosen_with_certainty(policy, preset):
    learner, world = make(policy, preset=preset, epsilon=0.2), World(3)
    for _ in range(40):
        choices = learner.select(world.arms(1))
        assert choices.index == [0]
        assert choices.probability == [pytest.approx(1.0)]
        learner.reward(choices, world.reward(0))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_an_explanation_adds_up(policy, preset):
    learner = make(policy, preset=preset, alpha=1.0)
    world = train(learner, 60)
    for _ in range(20):
        features = world.arms()
        choices = learner.select(features)
        seen = ~np.isnan(features)
        np.testing.assert_array_equal(choices.arms.observed, seen)
        np.testing.assert_array_equal(choices.z[:, 0], 1.0)
        np.testing.assert_array_equal(choices.z[:, 1:][seen], features[seen])
        np.testing.assert_allclose(choices.mean, choices.z @ learner.model.theta, atol=1e-10)
        assert choices.model_version == learner.model.count
        assert choices.rounds[0].number == learner.moments.rounds
        if policy != "random" and choices.learns[0]:
            assert choices.index[0] == np.argmax(choices.mean + choices.bonus)


@pytest.mark.parametrize("policy", OPTIMISTIC)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_ties_go_to_the_lowest_index(policy, preset):
    learner = make(policy, preset=preset, horizon=2, alpha=1.0)
    train(learner, 20, k=4)
    for arms in ([[1.0, 2.0, 3.0]] * 5, [[np.nan] * 3] * 5):
        choices = learner.select(arms)
        assert choices.learns == [True]
        assert choices.index == [0]
        assert choices.probability == [1.0]


def test_ties_among_the_best_go_to_the_lowest_of_them():
    learner = make("oful", d=1, width=0.0)
    for _ in range(30):
        learner.reward(learner.select([[1.0], [2.0]]), 1.0)
    best, worse = [2.0], [0.5]
    assert learner.select([worse, best, best, worse]).index == [1]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_rounds_played_at_once_are_numbered_in_order(policy, preset):
    learner, world = make(policy, preset=preset), World(3)
    train(learner, 5)
    choices = learner.select_batch(Arms.join([Arms.of(world.arms(k)) for k in (2, 7, 1)]))
    assert choices.rounds == [Round(6, 2, 8), Round(7, 7, 8), Round(8, 1, 16)]
    assert [len(x) for x in (choices.index, choices.probability, choices.learns)] == [3, 3, 3]
    assert all(0 <= i < k for i, k in zip(choices.index, (2, 7, 1), strict=True))
    for request in range(3):
        row = choices.row(request, 1.5)
        at = choices.arms.starts[request] + choices.index[request]
        np.testing.assert_array_equal(row.z[0], choices.z[at])
        np.testing.assert_array_equal(row.observed[0], choices.arms.observed[at])
        assert row.y.tolist() == [1.5]


# Epsilon --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["clbbf", "oful", "thompson"])
def test_with_epsilon_what_is_reported_is_what_happens(policy):
    """Weighted by 1/probability every arm is chosen once a round on average: only the truth does.

    The model learns all the while, so the best arm is not always the same.
    """
    learner = make(policy, d=2, epsilon=0.4, seed=3)
    rng = np.random.default_rng(4)
    rounds, k = 4_000, 4
    weighted, squares = np.zeros(k), np.zeros(k)
    for _ in range(rounds):
        choices = learner.select(rng.normal(size=(k, 2)))
        p = choices.probability[0]
        assert 0.4 / k <= p <= 1.0
        weighted[choices.index[0]] += 1.0 / p
        squares[choices.index[0]] += 1.0 / p**2
        learner.reward(choices, float(rng.normal()))
    spread = np.sqrt(squares)  # of a sum of independent 1/p terms, from above
    assert (np.abs(weighted - rounds) < 5 * spread).all()


def test_epsilon_is_the_share_of_uniform_rounds():
    learner = make(d=1, epsilon=0.3, seed=1, width=0.0)
    learner.reward(learner.select([[3.0]]), 3.0)
    counts = [0, 0, 0]
    for _ in range(6_000):
        choices = learner.select([[1.0], [2.0], [3.0]])
        counts[choices.index[0]] += 1
        expected = 0.8 if choices.index[0] == 2 else 0.1
        assert choices.probability[0] == pytest.approx(expected)
    assert_frequencies(counts, [0.1, 0.1, 0.8])


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_epsilon_of_nothing_and_of_everything(epsilon):
    learner = make(d=1, epsilon=epsilon, width=0.0)
    learner.reward(learner.select([[3.0]]), 3.0)
    seen = [learner.select([[1.0], [2.0]]) for _ in range(200)]
    if epsilon == 0.0:
        assert {c.index[0] for c in seen} == {1}
        assert {c.probability[0] for c in seen} == {1.0}
    else:
        assert {c.index[0] for c in seen} == {0, 1}
        assert {c.probability[0] for c in seen} == {0.5}


# Active set -----------------------------------------------------------------------------------


def test_arms_outside_the_active_set_are_never_chosen():
    """‖x‖ ≤ c √(|S| ln(KT)), with |S| the entries that were seen."""
    c = 1.2
    learner, world = make(d=3, active_set=c, epsilon=0.3, width=3.0, seed=2), World(3)
    outside = 0
    for t in range(1, 400):
        features = world.arms(6)
        features[::2] *= 5.0
        choices = learner.select(features)
        horizon = 2 ** math.ceil(math.log2(t + 1))
        allowed = [
            np.linalg.norm(x[~np.isnan(x)])
            <= c * math.sqrt((~np.isnan(x)).sum() * math.log(6 * horizon))
            for x in features
        ]
        outside += 6 - sum(allowed)
        if any(allowed):
            assert allowed[choices.index[0]]
            score = np.where(allowed, choices.mean + choices.bonus, -np.inf)
            share = 1.0 if t == 1 else 0.3
            best = choices.index[0] == np.argmax(score)
            assert choices.probability[0] == pytest.approx(
                share / sum(allowed) + best * (1 - share)
            )
        learner.reward(choices, world.reward(choices.index[0]))
    assert outside > 300


@pytest.mark.parametrize("policy", POLICIES)
def test_where_no_arm_is_active_all_are(policy):
    learner = make(policy, d=2, active_set=1e-6)
    for _ in range(30):
        choices = learner.select([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        assert choices.index[0] in (0, 1, 2)
        assert choices.probability[0] > 0.0
        learner.reward(choices, 1.0)


def test_an_arm_of_which_nothing_is_seen_is_active():
    learner = make("random", d=2, active_set=1e-3)
    for _ in range(20):
        assert learner.select([[9.0, 9.0], [np.nan, np.nan]]).index == [1]


def test_each_request_of_a_batch_has_its_own_active_set():
    learner = make("random", d=1, active_set=1.0)
    batch = [Arms.of([[1e6], [0.1]]), Arms.of([[1e6], [1e6]]), Arms.of([[0.1], [1e6], [0.2]])]
    seen = [learner.select_batch(Arms.join(batch)) for _ in range(50)]
    assert {c.index[0] for c in seen} == {1}
    assert {c.index[1] for c in seen} == {0, 1}
    assert {c.index[2] for c in seen} == {0, 2}
    assert seen[0].probability == [1.0, 0.5, 0.5]


# λ, β and T, by hand --------------------------------------------------------------------------


def test_the_doubling_trick():
    config = LearnerConfig(2)
    for t in range(1, 200):
        assert horizon_of(config, t) == 2 ** math.ceil(math.log2(t + 1))
    assert [horizon_of(config, t) for t in (1, 2, 3, 4, 7, 8)] == [2, 4, 4, 8, 8, 16]
    assert horizon_of(LearnerConfig(2, horizon=1_000), 5) == 1_000
    assert horizon_of(LearnerConfig(2, horizon=1), 1) == 2  # ln(KT) must not vanish


def by_hand(learner, choices, request, this, *, completion_error):
    """The paper's score of the arms of one request, from S, b and ẑ alone."""
    config, c, d = learner.config, learner.config.constants, learner.config.dimension
    s, b = learner.model.s, learner.model.b
    z = choices.z[choices.arms.starts[request] : choices.arms.starts[request + 1]]
    log_kt = math.log(this.arms * this.horizon)
    ridge = c.c4 * d * log_kt if config.ridge is None else config.ridge
    v = ridge * np.eye(d + 1) + s
    inverse = np.linalg.inv(v)
    beta = c.c5 * math.sqrt((d + 1) * math.log(this.number * this.horizon))
    beta += c.c2 * math.sqrt(ridge)
    if completion_error:
        bound = math.sqrt(learner.model.count * np.trace(inverse @ s))
        share = math.sqrt(log_kt / this.arms)
        beta += c.c6 * (d / learner.estimate.p_hat) ** 1.5 * share * bound
    beta *= 1.0 if config.width is None else config.width
    mean = z @ inverse @ b
    return mean, beta * np.sqrt(np.einsum("ij,jk,ik->i", z, inverse, z))


@pytest.mark.parametrize("policy", OPTIMISTIC)
@pytest.mark.parametrize("width", [None, 0.25])
@pytest.mark.parametrize("horizon", [None, 700])
def test_the_papers_constants_by_hand_for_a_batch_of_requests_of_different_k(
    policy, width, horizon
):
    learner = make(
        policy,
        preset="paper",
        constants=Constants(c2=0.3, c4=0.7, c5=1.1, c6=0.013),
        width=width,
        horizon=horizon,
        alpha=1.0,
    )
    world = train(learner, 50)
    sizes = (2, 9, 1, 5)
    choices = learner.select_batch(Arms.join([Arms.of(world.arms(k)) for k in sizes]))
    assert learner.model.count > 0
    for r, (this, k) in enumerate(zip(choices.rounds, sizes, strict=True)):
        assert this == Round(51 + r, k, horizon or 64)
        mean, bonus = by_hand(learner, choices, r, this, completion_error=policy == "clbbf")
        arms = slice(choices.arms.starts[r], choices.arms.starts[r + 1])
        np.testing.assert_allclose(choices.mean[arms], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(choices.bonus[arms], bonus, rtol=1e-8)
        assert choices.index[r] == np.argmax(mean + bonus)


def test_a_given_ridge_replaces_the_papers():
    learner = make(preset="paper", ridge=2.5)
    world = train(learner, 20)
    choices = learner.select_batch(Arms.join([Arms.of(world.arms(k)) for k in (2, 4)]))
    assert learner.model.ridge == 2.5
    for r, this in enumerate(choices.rounds):
        mean, bonus = by_hand(learner, choices, r, this, completion_error=True)
        arms = slice(choices.arms.starts[r], choices.arms.starts[r + 1])
        np.testing.assert_allclose(choices.mean[arms] + choices.bonus[arms], mean + bonus)


@pytest.mark.parametrize("width", [None, 0.0, 0.3, 1.7])
def test_the_practical_width_by_hand(width):
    """β = w σ̂ √ln(tT), σ̂² = (1 + Σ residual²) / (1 + r)."""
    learner = make(width=width)
    world = train(learner, 50)
    choices = learner.select(world.arms(6))
    history = learner.history.rows()
    v = presets.PRACTICAL_RIDGE * np.eye(4) + history.z.T @ history.z
    theta = np.linalg.solve(v, history.z.T @ history.y)
    noise = (1 + ((history.y - history.z @ theta) ** 2).sum()) / (1 + 50)
    scale = math.sqrt(noise * math.log(51 * 64))
    norms = np.sqrt(np.einsum("ij,ji->i", choices.z, np.linalg.solve(v, choices.z.T)))
    if width is None:  # the preset's own, chosen by experiment: the same for all arms
        width = choices.bonus[0] / (scale * norms[0])
        assert 0.0 < width < 2.0
    np.testing.assert_allclose(choices.bonus, width * scale * norms, rtol=1e-8)


def test_the_practical_choice_does_not_depend_on_the_unit_of_rewards():
    """But for the one reward with an error of 1 that is thought to have come before all others."""
    indices = []
    for unit in (1.0, 1e6):
        learner, world = make(), World(3, seed=8)
        played = []
        for t in range(300):
            choices = learner.select(world.arms(5))
            played.append(choices.index[0] if t >= 100 else 0)
            # the same rewards whatever was chosen, so that both see the same
            learner.reward(choices, unit * world.reward(0))
        indices.append(played)
    same = np.mean(np.array(indices[0][100:]) == np.array(indices[1][100:]))
    assert same > 0.8


# clbbf and the baselines ----------------------------------------------------------------------


def test_oful_takes_missing_entries_for_0_and_keeps_nothing():
    learner = make("oful")
    world = train(learner, 30)
    features = world.arms(5)
    choices = learner.select(features)
    np.testing.assert_array_equal(choices.z[:, 1:], np.nan_to_num(features))
    assert learner.estimate is None
    assert len(learner.history) == 0
    assert learner.completed_entries == 0


def test_random_is_uniform_whatever_it_learns():
    learner, counts = make("random", d=1, seed=5), [0, 0, 0, 0]
    for _ in range(4_000):
        choices = learner.select([[0.0], [1.0], [2.0], [3.0]])
        counts[choices.index[0]] += 1
        assert choices.probability == [0.25]
        learner.reward(choices, float(choices.index[0]))
    assert_frequencies(counts, [0.25] * 4)


def test_clbbf_counts_what_it_completes():
    learner = make(d=3)
    learner.select([[1.0, np.nan, 2.0], [np.nan, np.nan, 0.0]])
    assert learner.completed_entries == 3


@pytest.mark.parametrize("policy", ["clbbf", "thompson"])
def test_a_policy_that_completes_beats_one_that_does_not(policy):
    """Sums over the same 1,500 rounds; a hole tells much from its neighbours here."""
    earned = {}
    for name in (policy, "oful", "random"):
        learner, world, total = make(name, d=4, seed=1), World(4, seed=6, p=0.6), 0.0
        for _ in range(1_500):
            choices = learner.select(world.arms(10))
            total += float(world.full[choices.index[0]] @ world.theta)
            learner.reward(choices, world.reward(choices.index[0]))
        earned[name] = total
    assert earned[policy] > earned["oful"] > earned["random"]


# e-clbbf --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "k", "alpha", "horizon"), [(2, 20, 0.8, 100), (3, 4, 1.0, 50)])
def test_e_clbbf_explores_for_exactly_tau_rounds_that_teach_only_the_moments(d, k, alpha, horizon):
    tau = math.ceil(d * math.log(horizon) ** 2 / (k * alpha**4))
    learner, world = make("e-clbbf", d=d, alpha=alpha, horizon=horizon), World(d)
    for t in range(1, tau + 40):
        choices = learner.select(world.arms(k))
        explores = t <= tau
        assert choices.learns == [not explores]
        assert choices.probability == [1.0 / k if explores else 1.0]
        learner.reward(choices, world.reward(choices.index[0]))
        assert learner.model.count == max(0, t - tau)
        assert learner.moments.arms == t * k
        if explores:
            assert not learner.model.s.any()
            assert not learner.model.b.any()
    assert len(learner.history) == 0


def test_e_clbbf_never_completes_a_choice_again():
    learner, world = make("e-clbbf", alpha=1.0, horizon=10), World(3)
    s = np.zeros((4, 4))
    for _ in range(100):
        choices = learner.select(world.arms(6))
        learner.reward(choices, 1.0)
        if choices.learns[0]:
            row = choices.z[choices.index[0]]
            s += np.outer(row, row)
    np.testing.assert_allclose(learner.model.s, s)


# thompson -------------------------------------------------------------------------------------


ARMS = np.array([[1.0, 0.2], [0.3, 1.0], [-0.5, 0.4], [0.9, 0.8]])


def settled_thompson(**settings):
    """A model that does not move any more, and the probabilities that follow from it."""
    learner = make("thompson", d=2, seed=9, **settings)
    rng = np.random.default_rng(10)
    for _ in range(12):
        choices = learner.select(ARMS)
        learner.reward(choices, 0.1 * float(rng.normal()))
    learner.select(ARMS)  # what is due is done
    model = learner.model
    v = model.gram()
    noise = (1 + model.residual_square()) / (1 + model.count)
    draws = rng.multivariate_normal(
        np.linalg.solve(v, model.b),
        presets.THOMPSON_WIDTH**2 * noise * np.linalg.inv(v),
        size=200_000,
    )
    winners = (draws @ np.c_[np.ones(4), ARMS].T).argmax(axis=1)
    return learner, np.bincount(winners, minlength=4) / len(draws)


def test_thompson_chooses_as_often_as_the_posterior_says():
    learner, probabilities = settled_thompson()
    assert sorted(probabilities)[-2] > 0.1  # something to get wrong
    counts = [0] * 4
    for _ in range(4_000):
        counts[learner.select(ARMS).index[0]] += 1
    assert_frequencies(counts, probabilities)


def test_thompson_reports_the_probability_of_the_posterior():
    """Given arm a was drawn, its share of m draws is on average p + (1 − p)/m."""
    learner, probabilities = settled_thompson()
    reported = [[] for _ in range(4)]
    for _ in range(3_000):
        choices = learner.select(ARMS)
        reported[choices.index[0]].append(choices.probability[0])
    for values, p in zip(reported, probabilities, strict=True):
        if len(values) > 50:
            spread = math.sqrt(p * (1 - p) / 128 / len(values)) + 0.002  # 0.002: ours, of 200,000
            assert abs(np.mean(values) - p - (1 - p) / 128) < 5 * spread


def test_thompson_probabilities_of_all_arms_sum_to_1():
    learner, _ = settled_thompson()
    z = np.c_[np.ones(4), ARMS]
    for t in range(50, 60):
        scoring = Scoring([Round(t, 4, 64)], [0, 4], z, None, 1.0, learner.model)
        best = int((z @ learner.model.theta + learner.policy.bonus(scoring, np.ones(4))).argmax())
        shares = [learner.policy.propensity(scoring, [best], [a])[0] for a in range(4)]
        assert sum(shares) == pytest.approx(1.0)
        assert shares[best] > 0.0


def test_thompson_draws_are_independent_from_round_to_round():
    """Before any reward V = I, so the bonus of unit arms is the noise that was drawn."""
    learner, z = make("thompson", d=11), np.eye(12)
    draws = np.array(
        [
            learner.policy.bonus(
                Scoring([Round(t, 12, 64)], [0, 12], z, None, 1.0, learner.model), np.ones(12)
            )
            for t in range(1, 3_001)
        ]
    )
    coins = np.array([randomness.of_round(0, t).random(2) for t in range(1, 3_001)])
    for size in (draws, np.abs(draws)):  # a sign of its own hides the size from a correlation
        with_coins = np.corrcoef(coins.T, size.T)[:2, 2:]
        assert np.abs(with_coins).max() < 6 / math.sqrt(len(draws))
    for lag in (1, 2, 3):
        between = np.corrcoef(draws[:-lag].T, draws[lag:].T)[:12, 12:]  # any entry with any other
        assert np.abs(between).max() < 6 / math.sqrt(len(draws))


def test_thompson_with_a_width_of_nothing_is_greedy():
    learner, _ = settled_thompson(width=0.0)
    for _ in range(50):
        choices = learner.select(ARMS)
        assert choices.index[0] == choices.mean.argmax()
        assert choices.probability == [1.0]


def test_thompson_draws_have_the_covariance_of_the_posterior():
    """θ̃ − θ̂ ~ N(0, v² V⁻¹): seen through the bonus of unit arms."""
    learner, _ = settled_thompson()
    model = learner.model
    z = np.eye(3)
    draws = []
    for t in range(1, 6_001):
        scoring = Scoring([Round(t, 3, 64)], [0, 3], z, None, 1.0, model)
        draws.append(learner.policy.bonus(scoring, np.ones(3)))
    noise = (1 + model.residual_square()) / (1 + model.count)
    expected = presets.THOMPSON_WIDTH**2 * noise * np.linalg.inv(model.gram())
    deviation = np.sqrt(np.diagonal(expected))
    error = (np.cov(np.array(draws).T) - expected) / np.outer(deviation, deviation)
    assert np.abs(error).max() < 5 * math.sqrt(2 / 6_000)
