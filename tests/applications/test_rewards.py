"""Reward estimation: what is returned is what the intervals say, it ends when they are narrow enough, it is right."""

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import binom

import gosprl
from gosprl import EmpiricalModel, InputError, TabularMDP
from gosprl.applications import estimate_rewards
from gosprl.applications.rewards import CertifiedRewards
from gosprl.envs import make
from gosprl.envs.tabular_env import TabularEnv
from gosprl.fleet.simulated import Simulated
from gosprl.sets.certificates import mean_intervals

FALSE_ALARM = 1e-6
RIVER = make("riverswim6")
MEANS = np.linspace(0, 1, 12).reshape(6, 2)
COINS = TabularMDP(RIVER.dense(), rewards=MEANS, noise="bernoulli")
SURE = TabularMDP(RIVER.dense(), rewards=MEANS)


def radii(model, delta):
    """[R] by the intervals themselves."""
    lower, upper = mean_intervals(model.visits, model.reward_sum, model.reward_sq, delta)
    mean = model.reward_sum / model.visits
    return np.maximum(upper - mean, mean - lower)


@pytest.mark.parametrize(
    ("system", "options"),
    [(COINS, {}), (SURE, {}), (TabularEnv(COINS), {"resets": "never"})],
    ids=["coins", "sure", "env"],
)
@pytest.mark.parametrize("delta", [0.1, 0.001])
def test_radii_are_those_of_the_intervals_and_small_enough(system, options, delta):
    answer = estimate_rewards(system, 0.2, delta=delta, seed=0, **options)
    model = answer.collected.model
    assert answer.stop == "met"
    assert answer.rewards.ravel() == pytest.approx(model.reward_sum / model.visits)
    assert answer.radius.ravel() == pytest.approx(radii(model, delta), rel=1e-12)
    assert 0.15 < answer.radius.max() <= 0.2
    assert np.all(np.abs(answer.rewards - MEANS) <= answer.radius)
    discovered = ", of the states discovered" if options else ""
    assert str(answer.guarantee) == f"delta={delta:g}{discovered}: every mean reward is within its radius"


def test_rewards_without_noise_are_exact():
    """And known after as many samples as Bernstein's inequality needs for what does not vary."""
    answer = estimate_rewards(SURE, 0.05, seed=0)
    assert answer.rewards == pytest.approx(MEANS, abs=1e-12)
    N = np.arange(2, 10_000)
    enough = int(N[np.argmax(7 * np.log(8 * 12 * N * (N - 1) / 0.1) / (3 * (N - 1)) <= 0.05)])
    assert answer.collected.counts[2:4].min() == enough  # means in the middle, where kl is wider
    assert answer.steps < estimate_rewards(COINS, 0.05, seed=0).steps


class Watched(CertifiedRewards):
    """At every look: more is asked for exactly while an interval is too wide."""

    def update(self, model, rows):
        changed = super().update(model, rows)
        wide = self.errors(model, np.arange(len(model.rows)))[1] > self.epsilon
        assert np.all(self.pair[wide] > model.visits[wide])
        assert np.all(self.pair[~wide] == 0)
        self.open = bool(wide.any())
        return changed


def test_more_is_asked_for_exactly_while_an_interval_is_too_wide():
    model = EmpiricalModel(6, 2)
    rule = Watched(model, True, 0.25, 0.1, 1.0)
    assert rule.update(model, np.array([], dtype=np.int64)).tolist() == list(range(12))
    assert rule.open
    result = gosprl.Collector(need=rule, seed=0, model=model).run(COINS)
    assert (result.stop, rule.open) == ("met", False)


def test_what_was_not_seen_may_be_anything():
    answer = estimate_rewards(COINS, 0.2, seed=0, max_steps=3)
    unseen = answer.collected.counts == 0
    assert unseen.sum() >= 9
    assert np.all(answer.rewards[unseen] == 0.5)
    assert np.all(answer.radius[unseen] == 0.5)
    assert np.all(np.abs(answer.rewards - MEANS) <= answer.radius)


@pytest.mark.parametrize("epsilon", [0.5, 1, 1e300])
def test_an_error_that_is_always_met_takes_no_step(epsilon):
    answer = estimate_rewards(COINS, epsilon, seed=0)
    assert (answer.stop, answer.steps) == ("met", 0)
    assert np.all(answer.radius <= epsilon)


def test_an_error_that_is_never_met_ends_with_the_steps():
    answer = estimate_rewards(COINS, 1e-300, seed=0, max_steps=400)
    assert (answer.stop, answer.steps) == ("max_steps", 400)
    assert "0% within 1e-300" in repr(answer)


TWO = TabularMDP([[[0.5, 0.5]] * 2] * 2, rewards=[[0.3, 0.5], [0.7, 0.05]], noise="bernoulli")


def test_the_truth_is_within_the_radius():
    """40 runs at delta = 0.1: more failures than a binomial has with probability 1e-6 would refute it."""
    wrong, narrow, means = 0, 0, np.array([[0.3, 0.5], [0.7, 0.05]])
    for seed in range(40):
        answer = estimate_rewards(TWO, 0.15, seed=seed)
        wrong += bool(np.any(np.abs(answer.rewards - means) > answer.radius))
        heuristic = estimate_rewards(TWO, 0.05, seed=seed, confidence=gosprl.KL(0.1, scale=0.01))
        narrow += bool(np.any(np.abs(heuristic.rewards - means) > heuristic.radius))
        assert str(heuristic.guarantee).startswith("heuristic: scale 0.01")
    assert wrong <= binom.isf(FALSE_ALARM, 40, 0.1)
    assert narrow > binom.isf(FALSE_ALARM, 40, 0.1)


@pytest.mark.parametrize("strategy", ["guarded", "random"])
@pytest.mark.parametrize("steps", [None, 50])
def test_of_an_environment_the_states_found_are_estimated(strategy, steps):
    env = gym.make("FrozenLake-v1")
    answer = estimate_rewards(env, 0.35, seed=1, max_steps=steps, strategy=strategy)
    model = answer.collected.model
    live = model.is_discovered[:16]
    assert live.any()
    for table in (answer.rewards, answer.radius):
        assert np.isnan(table).tolist() == [[not here] * 4 for here in live]
    truth = np.zeros((16, 4))
    for s, a in np.ndindex(16, 4):
        truth[s, a] = sum(p * r for p, _, r, _ in env.unwrapped.P[s][a])
    assert np.all(np.abs(answer.rewards - truth)[live] <= answer.radius[live])
    if steps is None:
        assert np.all(answer.radius[live] <= 0.35)
        assert "at state 14, action" in repr(answer)


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, int])
def test_rewards_of_any_kind(kind):
    class Kind(TabularEnv):
        def step(self, action):
            s_next, reward, *rest = super().step(action)
            return s_next, kind(reward), *rest

    plain, other = (estimate_rewards(env(COINS), 0.3, seed=0) for env in (TabularEnv, Kind))
    assert other.rewards.tolist() == plain.rewards.tolist()


def test_rewards_outside_are_found_on_the_way():
    mdp = TabularMDP(RIVER.dense(), rewards=np.where(np.arange(6)[:, None] == 2, 1.5, 0.5) * [1, 1])
    words = (
        r"after \d+ steps: rewards: expected rewards in \[0, 1\], got 1.5 at \(s, a\) = \(2, \d\); .* \(high - low\)"
    )
    with pytest.raises(gosprl.CollectionError, match=words) as caught:
        estimate_rewards(TabularEnv(mdp), 0.2, seed=0)
    assert caught.value.result.counts[2].sum() == 0  # it is not counted


@pytest.mark.parametrize("epsilon", [0, -0.1, np.nan, np.inf, "0.1", None, False])
def test_epsilon_is_positive(epsilon):
    with pytest.raises(InputError, match="epsilon: expected a positive finite number"):
        estimate_rewards(COINS, epsilon)


def fleet_that_loses(mdp, seed, chance):
    def lost(rng, report):
        return report.reward == 1 and report.key == 1 and rng.random() < chance

    return Simulated(mdp, 8, entropy=[seed, 7], restart=0.0, lost=lost)


@pytest.mark.parametrize("seed", range(3))
def test_lost_rewards_of_a_fleet_are_part_of_the_radius(seed):
    """By hand: of n = known + m rewards the mean is at least sum / n, and at most (sum + m) / n, up to chance."""
    mdp = TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    answer = estimate_rewards(mdp, 0.1, seed=seed, workers=fleet_that_loses(mdp, seed, 0.7), max_steps=1500)
    model, m = answer.collected.model, answer.collected.model.unknown
    n = model.visits + m
    assert (answer.stop, m[0] > 200, m[1]) == ("max_steps", True, 0)
    assert np.all(np.abs(answer.rewards - [[0.6], [0.4]]) <= answer.radius)
    assert answer.radius[0, 0] > (model.reward_sum + m)[0] / n[0] - answer.rewards[0, 0]


def test_a_fleet_that_loses_few_rewards_finishes():
    """The width falls with m / n: a few losses take more samples, not for ever."""
    mdp = TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    fleet = fleet_that_loses(mdp, 0, 0.05)
    answer = estimate_rewards(mdp, 0.15, seed=0, workers=fleet, max_steps=20_000)
    assert (answer.stop, answer.collected.model.unknown[0] > 0) == ("met", True)
    assert np.all(np.abs(answer.rewards - [[0.6], [0.4]]) <= answer.radius)


def test_what_a_fleet_assumes_of_losses_is_in_the_guarantee():
    mdp = TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    fleet = fleet_that_loses(mdp, 0, 0.5)
    answer = estimate_rewards(mdp, 0.3, seed=0, workers=fleet, lost="independent")
    assert str(answer.guarantee) == (
        "delta=0.1, given that losses do not depend on outcomes: every mean reward is within its radius"
    )
