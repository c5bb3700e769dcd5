"""Best-state identification: the schedule, the bound, who is dropped when; how often it is wrong."""

import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import binom

import gosprl
from gosprl import CollectionError, EmpiricalModel, InputError, TabularMDP
from gosprl.applications import best_state
from gosprl.applications.best import (
    LOOK,
    SuccessiveElimination,
    SuccessiveRejects,
    error_bound,
    schedule,
    unknown_pulls,
)
from gosprl.collecting.requirements import as_requirement
from gosprl.envs import make
from gosprl.envs.tabular_env import TabularEnv
from gosprl.fleet.record import FleetRecord
from gosprl.fleet.simulated import Simulated

FALSE_ALARM = 1e-6
RIVER = make("riverswim6")
NOTHING = np.array([], dtype=np.int64)


def rewarding(means, mdp=None, noise="bernoulli"):
    """An MDP whose states pay these means; by default every step leads to a uniform state."""
    S = len(means)
    P = np.full((S, 1, S), 1 / S) if mdp is None else mdp.dense()
    return TabularMDP(P, rewards=np.repeat(np.array(means, dtype=float)[:, None], P.shape[1], axis=1), noise=noise)


def hub(means, away=0.1):
    """State 0 is left seldom, to any other, each of which leads back: visits are far from even."""
    S = len(means)
    P = np.zeros((S, 1, S))
    P[0, 0] = [1 - away] + [away / (S - 1)] * (S - 1)
    P[1:, 0, 0] = 1
    return TabularMDP(P, rewards=np.array(means)[:, None], noise="bernoulli")


def intervals(answer, delta=0.1):
    model = answer.collected.model
    return SuccessiveElimination(model, True, delta, 0.0, 1.0).intervals(model)


def slow_rewards(rng, report):
    return 100.0 if report.reward == 1 and report.key == 1 and rng.random() < 0.95 else 1.0


@pytest.mark.parametrize("seed", range(3))
def test_a_run_of_a_fleet_is_met_only_if_the_last_samples_decide_it(seed):
    """Samples that waited for one that is late are committed when it is given up: then there is one more look."""
    mdp = TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    fleet = Simulated(mdp, 8, entropy=[seed, 7], duration=slow_rewards)
    answer = best_state(mdp, seed=seed, workers=fleet, late=3, max_steps=500)
    lower, upper = intervals(answer)
    assert not (answer.reached and np.any(upper[answer.candidates] < lower.max()))
    assert answer.reached == (len(answer.candidates) == 1)


@pytest.mark.parametrize("lost", ["unknown", "state"])
def test_lost_rewards_may_have_been_any(lost):
    """Most rewards of the best state are lost: with a crash in their place, the other one is the best."""
    mdp = TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    system, ending = (mdp, {}) if lost == "unknown" else (lambda: TabularEnv(mdp), {"resets": "terminal"})
    fleet = Simulated(
        system, 8, entropy=[0, 7], restart=0.0, lost=lambda rng, r: r.reward == 1 and r.key == 1 and rng.random() < 0.95
    )
    answer = best_state(system, seed=0, workers=fleet, lost=lost, max_steps=4000, **ending)
    if lost == "unknown":  # what is lost may have been all ones, or all zeros
        assert answer.candidates.tolist() == [0, 1]
        assert (answer.stop, str(answer.guarantee)) == (
            "max_steps",
            "delta=0.1: the best state is among the candidates",
        )
    else:  # a step that led to a crash has earned nothing
        assert (answer.state, answer.stop) == (1, "met")
        assert "given that losing a walker depends on its last pair only" in str(answer.guarantee)


def test_a_budget_of_a_fleet_that_lost_samples_promises_nothing():
    mdp = TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), rewards=np.array([[0.6], [0.4]]), noise="bernoulli")
    fleet = Simulated(mdp, 4, entropy=[0, 7], restart=0.0, lost=lambda rng, r: r.reward == 1 and rng.random() < 0.5)
    answer = best_state(mdp, 100, seed=0, workers=fleet)
    assert answer.stop == "met"
    assert "promise nothing" in str(answer.guarantee)


def test_the_rewards_of_a_state_are_one_stream_over_all_its_actions():
    """Of two rows of a state, one waits for an outcome: what is issued and not committed is unknown to the stream."""
    model = EmpiricalModel(2, 2)
    record = FleetRecord(model, as_requirement(10, model))
    record.update_need()
    samples = [record.issue(number, row)[0] for number, row in enumerate([0, 0, 1, 1, 2, 2])]
    for i in (1, 2, 3, 5):  # the first of row 0, and the first of row 2, are in flight
        record.returning = samples[i]
        record.step(samples[i].row, 0, 1.0, terminated=False)
    record.flush()
    assert record.counts.visits.tolist() == [0, 2, 0, 0]
    assert unknown_pulls(record.counts).tolist() == [2, 0]  # state 1 has samples of one row: a beginning of its stream
    record.give_up(samples[4], "unknown")
    assert unknown_pulls(record.counts).tolist() == [2, 1]
    assert unknown_pulls(model) is None


# Successive Rejects


def test_the_schedule_by_hand():
    """K = 4, n = 100: logbar = 1/2 + 1/2 + 1/3 + 1/4 = 1.58333, and 96 / (1.58333 * 4, 3, 2) = 15.2, 20.2, 30.3."""
    assert schedule(100, 4) == [16, 21, 31]
    assert schedule(4, 4) == [0, 0, 0]
    assert schedule(7, 1) == []
    assert schedule(10, 2) == [4]  # 8 / (1 * 2)


@pytest.mark.parametrize("states", [2, 3, 7, 20])
@pytest.mark.parametrize("budget", [20, 100, 12_345])
def test_the_schedule_is_the_formula_and_within_the_budget(states, budget):
    logbar = 0.5
    for i in range(2, states + 1):
        logbar += 1 / i
    phases = schedule(budget, states)
    assert phases == [math.ceil((budget - states) / (logbar * (states + 1 - k))) for k in range(1, states)]
    assert phases == sorted(phases)
    assert sum(phases) + phases[-1] <= budget


@pytest.mark.parametrize("means", [[0.1, 0.9], [0.5, 0.2, 0.45], [0.3, 0.9, 0.1, 0.9, 0.4], [1.0]])
@pytest.mark.parametrize("budget", [5, 60, 2000])
def test_the_bound_is_the_double_sum(means, budget):
    gaps = sorted((max(means) - mean for mean in means), reverse=True)
    expected = 0.0
    for k, n in enumerate(schedule(budget, len(means)), start=1):
        for gap in gaps[:k]:
            expected += 2 * math.exp(-n * gap**2 / 2)
    assert error_bound(means, budget) == pytest.approx(min(1, expected))
    assert error_bound(means[::-1], budget) == error_bound(means, budget)


def test_the_bound_in_numbers():
    """Two states, gap 0.8, n = 52: logbar = 1, n_1 = 25, so 2 exp(-25 * 0.64 / 2) = 6.7e-4."""
    assert error_bound([0.1, 0.9], 52) == pytest.approx(2 * math.exp(-8))


@pytest.mark.parametrize("means", [0.5, [], [[0.1, 0.2]], [0.1, 1.5], [-0.1, 0.5], [np.nan, 0.5], "many"])
def test_means_of_the_bound(means):
    with pytest.raises(InputError, match="means: "):
        error_bound(means, 10)


def test_rejects_drop_the_worst_when_all_have_what_the_phase_asks_for():
    """By hand: 3 states, n = 30: logbar = 4/3, n_k = 27 / (4/3 * (3, 2)) = 7, 11."""
    model = EmpiricalModel(3, 1)
    rule = SuccessiveRejects(model, True, 30)
    rule.update(model, NOTHING)
    assert rule.state.tolist() == [1, 1, 1]

    def sample(s, times, reward):
        model.update([s] * times, [0] * times, [0] * times, reward)
        rule.update(model, np.array([s]))

    for s in range(3):
        sample(s, 1, 0.5)
    assert rule.schedule == [7, 11]
    assert rule.state.tolist() == [7, 7, 7]
    sample(0, 20, 0.1)  # more than asked for: all count
    sample(1, 6, 0.4)
    sample(2, 5, 0.0)
    assert rule.dropped == []
    sample(2, 1, 0.0)  # means 0.119, 0.414, 0.071
    assert (rule.dropped, rule.state.tolist()) == ([2], [11, 11, 0])
    sample(1, 4, 0.0)  # 0.264
    assert (rule.dropped, rule.done, rule.state.tolist()) == ([2, 0], True, [0, 0, 0])


@pytest.mark.parametrize("kind", [lambda mdp: mdp, TabularEnv], ids=["mdp", "env"])
def test_without_noise_states_are_dropped_from_the_worst_on(kind):
    means = [0.3, 0.9, 0.1, 0.4, 0.8, 0.2]
    answer = best_state(kind(rewarding(means, RIVER, "none")), 120, seed=0)
    assert (answer.stop, answer.state, answer.candidates.tolist()) == ("met", 1, [1])
    assert answer.dropped.tolist() == np.argsort(means)[:-1].tolist()
    assert answer.rewards == pytest.approx(means)
    assert answer.pulls.tolist() == answer.collected.counts.sum(axis=1).tolist()
    for k, n in enumerate(schedule(120, 6)):
        left = [*answer.dropped[k:], answer.state]
        assert np.all(answer.pulls[left] >= n)


@pytest.mark.parametrize("budget", [6, 7, 12])
def test_the_smallest_budgets(budget):
    answer = best_state(rewarding([0, 0, 0, 1, 0, 0], RIVER, "none"), budget, seed=0)
    assert (answer.stop, answer.state) == ("met", 3)


def test_equal_states_are_told_apart_somehow():
    answer = best_state(rewarding([0.5] * 4, noise="none"), 100, seed=0)
    assert answer.stop == "met"
    assert sorted([*answer.dropped, answer.state]) == [0, 1, 2, 3]
    answer = best_state(rewarding([1, 0, 1], noise="none"), 100, seed=0)
    assert answer.state in (0, 2)
    assert answer.dropped[0] == 1


def test_rejects_are_wrong_no_more_often_than_the_bound():
    """100 runs with a bound below 0.03; that a smaller budget is not as good is found out."""
    means, runs = [0.1, 0.6, 0.2], 100
    mdp = hub(means)

    def wrong(budget):
        return sum(best_state(mdp, budget, seed=seed).state != 1 for seed in range(runs))

    bound = error_bound(means, 170)
    assert bound < 0.03
    assert wrong(170) <= binom.isf(FALSE_ALARM, runs, bound)
    assert wrong(5) > binom.isf(FALSE_ALARM, runs, bound)


def test_the_promise_of_a_budget():
    answer = best_state(rewarding([0.2, 0.8]), 40, seed=0)
    assert "falls exponentially with the budget" in str(answer.guarantee)
    early = best_state(rewarding([0.2, 0.8]), 4000, seed=0, max_steps=30)
    assert str(early.guarantee).endswith("; stopped before the budget was spent")
    assert (early.stop, early.candidates.tolist(), early.budget) == ("max_steps", [0, 1], 4000)


# Successive Elimination


def test_elimination_drops_what_is_below_another_and_asks_for_a_fifth_more():
    model = EmpiricalModel(2, 1)
    rule = SuccessiveElimination(model, True, 0.1, 0.0, 1.0)
    rule.update(model, NOTHING)
    rounds, rng = [], np.random.default_rng(0)
    while not rule.done:
        rounds.append(rule.need)
        for s in (0, 1):
            missing = rule.need - int(model.visits[s])
            model.update([s] * missing, [0] * missing, [0] * missing, rng.random(missing) < (0.5, 0.8)[s])
        lower, upper = rule.intervals(model)
        assert rule.dropped == []
        rule.update(model, np.array([0, 1]))
        assert rule.done == (upper[0] < lower[1])
    assert rounds[:4] == [1, 2, 3, 4]
    assert all(now == max(2, math.ceil(1.2 * before)) for before, now in itertools.pairwise(rounds))
    assert (rule.dropped, rule.best, rule.remaining.tolist()) == ([0], 1, [False, True])


@pytest.mark.parametrize("kind", [lambda mdp: mdp, TabularEnv], ids=["mdp", "env"])
def test_what_is_left_is_above_all_that_was_dropped(kind):
    means = [0.2, 0.5, 0.1, 0.3, 0.05, 0.95]
    answer = best_state(kind(rewarding(means, RIVER)), seed=0)
    assert (answer.stop, answer.state, answer.candidates.tolist()) == ("met", 5, [5])
    assert sorted(answer.dropped.tolist()) == [0, 1, 2, 3, 4]
    scope = ", of the states discovered in the first look" if kind is TabularEnv else ""
    given = ", given that mean rewards depend on states, not on actions" if kind is TabularEnv else ""
    assert str(answer.guarantee) == f"delta=0.1{scope}{given}: this is the best state"


def test_the_best_is_found_at_the_level():
    """40 runs at delta = 0.1 and a gap of 0.1: more failures than a binomial has with probability 1e-6 refute it."""
    mdp, runs = rewarding([0.5, 0.6]), 40
    wrong = sum(best_state(mdp, seed=seed).state != 1 for seed in range(runs))
    narrow = [best_state(mdp, seed=seed, confidence=gosprl.KL(0.1, scale=0.01)) for seed in range(runs)]
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.1)
    assert sum(answer.state != 1 for answer in narrow) > binom.isf(FALSE_ALARM, runs, 0.1)
    assert str(narrow[0].guarantee).startswith("heuristic: scale 0.01: ")


def test_rewards_without_noise_need_few_samples():
    """As many as Bernstein's inequality needs for half of the gap, and what the rounds add."""
    answer = best_state(rewarding([0.5, 0.52], noise="none"), seed=0)
    N = np.arange(2, 10**5)
    enough = int(N[np.argmax(7 * np.log(8 * 2 * N * (N - 1) / 0.1) / (3 * (N - 1)) < 0.01)])
    assert answer.state == 1
    assert 0.9 * enough <= answer.pulls.min() <= 1.2 * enough + 1


@pytest.mark.parametrize("epsilon", [0.2, 0.3])
def test_the_state_is_proved_to_be_within_epsilon(epsilon):
    """No upper end is above its lower end by more; that is more than having the largest mean."""
    others = 0
    for means, seed in itertools.product(([0.5, 0.52, 0.5, 0.5], [0.55, 0.5, 0.6, 0.3]), range(10)):
        answer = best_state(hub(means), epsilon=epsilon, seed=seed)
        lower, upper = intervals(answer)
        assert answer.stop == "met"
        assert np.delete(upper, answer.state).max() - lower[answer.state] <= epsilon
        others += answer.state != answer.candidates[np.argmax(answer.rewards[answer.candidates])]
        assert str(answer.guarantee) == f"delta=0.1: this is the best state, or within {epsilon:g} of it"
    assert others > 0


def test_epsilon_saves_samples():
    mdp = rewarding([0.5, 0.55])
    steps = [best_state(mdp, seed=0, epsilon=epsilon).steps for epsilon in (0.0, 0.2, 2.0)]
    assert steps[0] > steps[1] > steps[2]


def test_equal_states_are_never_told_apart():
    answer = best_state(rewarding([0.2, 0.7, 0.7]), seed=0, max_steps=5000)
    assert (answer.stop, answer.candidates.tolist(), answer.dropped.tolist()) == ("max_steps", [1, 2], [0])
    assert str(answer.guarantee) == "delta=0.1: the best state is among the candidates"
    assert answer.state in (1, 2)
    assert "undecided     states 1, 2" in repr(answer)
    assert best_state(rewarding([0.2, 0.7, 0.7]), epsilon=0.1, seed=0).stop == "met"


def test_after_one_step_any_state_may_be_the_best():
    answer = best_state(rewarding([0.2, 0.7, 0.7], noise="none"), seed=0, max_steps=1)
    assert (answer.state, answer.candidates.tolist()) == (0, [0, 1, 2])
    assert answer.rewards.tolist() == [0.2, -np.inf, -np.inf]
    assert "mean rewards  0: 0.2\n" in repr(answer)


# Environments


@pytest.mark.parametrize("options", [{"budget": 100}, {"epsilon": 0.5}], ids=["budget", "confidence"])
def test_states_that_have_to_be_found(options):
    """Every action of those found is tried ten times; what ends an episode is no candidate."""
    answer = best_state(gym.make("FrozenLake-v1"), seed=0, **options)
    model = answer.collected.model
    live = np.flatnonzero(model.is_discovered)
    assert answer.stop == "met"
    assert sorted([*answer.dropped, *answer.candidates]) == live.tolist()
    assert np.all(answer.collected.counts[live] >= LOOK)
    ends = np.array([5, 7, 11, 12, 15])
    assert np.all(answer.pulls[ends] == 0)
    assert np.all(np.isneginf(answer.rewards[ends]))
    if "budget" in options:
        assert answer.state == 14  # next to the goal


def test_what_is_found_later_is_no_candidate():
    """A state that only one in ten thousand steps leads to, and that pays most."""

    class Rare(gym.Env):
        observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(1)

        def reset(self, *, seed=None, options=None):
            self.s, self.t = 0, 0
            return 0, {}

        def step(self, action):
            reward, self.t = (0.2, 0.6, 1.0)[self.s], self.t + 1
            self.s = 2 if self.t % 100 == 0 else (self.s + 1) % 2
            return self.s, reward, False, False, {}

    answer = best_state(Rare(), seed=0)
    assert (answer.state, answer.collected.model.discovered) == (1, [0, 1, 2])
    assert "of the states discovered in the first look" in str(answer.guarantee)


def test_budgets_of_environments_are_checked_once_the_states_are_found():
    with pytest.raises(CollectionError, match="budget: expected at least one sample of each of the 11 states, got 10"):
        best_state(gym.make("FrozenLake-v1"), 10, seed=0)
    assert best_state(gym.make("FrozenLake-v1"), 11, seed=0).stop == "met"


# Bad input


@pytest.mark.parametrize("budget", [5, 1])
def test_budgets_smaller_than_the_number_of_states(budget):
    words = f"budget: expected at least one sample of each of the 6 states, got {budget}"
    with pytest.raises(InputError, match=words):
        best_state(rewarding([0.5] * 6, RIVER), budget)
    with pytest.raises(InputError, match=words):
        error_bound([0.1] * 6, budget)


@pytest.mark.parametrize("budget", [0, -3, 10.0, "ten", True, np.nan])
def test_budgets_are_whole_numbers(budget):
    with pytest.raises(InputError, match="budget: expected a whole number >= 1"):
        best_state(rewarding([0.5] * 6, RIVER), budget)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf, "0.1", None])
def test_epsilon_is_not_negative(epsilon):
    with pytest.raises(InputError, match="epsilon: expected"):
        best_state(rewarding([0.5, 0.6]), epsilon=epsilon)


def test_rewards_that_depend_on_the_action():
    rewards = np.full((6, 2), 0.5)
    rewards[3, 1] = 0.75
    words = r"rewards: expected those of a state to be the same .*, got 0.5 and 0.75 in state 3; .* estimate_rewards"
    for options in ({}, {"budget": 100}):
        with pytest.raises(InputError, match=words):
            best_state(TabularMDP(RIVER.dense(), rewards=rewards), **options)


def test_actions_that_do_not_exist_have_no_reward():
    toy = make("toy3")
    rewards = np.array([[0.2, 0.9], [0.4, 0.9], [0.6, 0.6]])  # only state 2 has two actions
    assert best_state(TabularMDP(toy.dense(), toy.start, rewards=rewards), seed=0).state == 2


def test_a_budget_takes_no_epsilon():
    with pytest.raises(InputError, match=r"budget, epsilon: .* one of the two"):
        best_state(rewarding([0.5, 0.6]), 100, epsilon=0.1)


def test_what_is_not_checked_of_rewards_is_assumed():
    """Rewards of an environment may depend on actions, and then no state is the best: the guarantee says so."""
    means = np.array([[0.9, 0.1], [0.6, 0.6]])
    mdp = TabularMDP(np.full((2, 2, 2), 0.5), rewards=means, noise="bernoulli")
    with pytest.raises(InputError, match="reward"):
        best_state(mdp, seed=0)
    assumed = "that mean rewards depend on states, not on actions"
    for budget in (None, 200):
        answer = best_state(TabularEnv(mdp), budget, seed=0, max_steps=500)
        assert assumed in answer.guarantee.given
        assert assumed in str(answer.guarantee)
    table = TabularMDP(np.full((2, 2, 2), 0.5), rewards=np.array([[0.9, 0.9], [0.6, 0.6]]), noise="bernoulli")
    assert not best_state(table, seed=0, max_steps=500).guarantee.given
