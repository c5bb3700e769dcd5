"""Treasure: where it is found, when the search ends, and what is said if nothing is found."""

import gymnasium as gym
import numpy as np
import pytest

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.applications import find_treasure
from gosprl.envs import make
from gosprl.envs.tabular_env import TabularEnv

RIVER, GRID = make("riverswim6"), make("room20")


def hidden(mdp, s, a, reward=1.0, others=0.0, **options):
    rewards = np.full((mdp.num_states, mdp.num_actions), others)
    rewards[s, a] = reward
    return TabularMDP(mdp.dense(), mdp.start, rewards=rewards, **options)


FEW = pytest.mark.filterwarnings("ignore:met for the .* states discovered")  # a sample of each pair says little


@FEW
@pytest.mark.parametrize("name", ["riverswim6", "room20", "toy3"])
@pytest.mark.parametrize("kind", [TabularMDP, TabularEnv])
def test_whoever_has_sampled_every_pair_has_found_it(name, kind):
    plain = make(name)
    for row in range(0, len(plain.rows), 3):
        mdp = hidden(plain, *plain.rows.pair(row))
        exists = mdp.rows.to_dense(np.ones(len(mdp.rows), dtype=bool))
        system, need = (mdp, 1) if kind is TabularMDP else (TabularEnv(mdp), exists.astype(int))
        answer = find_treasure(system, need, seed=row)
        assert answer.stop == "met"
        assert answer.found
        assert (answer.state, answer.action, answer.reward, answer.covered) == (*plain.rows.pair(row), 1.0, 1.0)
        assert np.all(answer.collected.counts[exists] >= 1)
        assert f"reward 1 at state {answer.state}, action {answer.action}" in repr(answer)


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
def test_a_threshold_ends_the_search_at_once(noise):
    mdp = hidden(GRID, 13, 2, 0.8, noise=noise)
    for seed in range(5):
        answer = find_treasure(mdp, 60, threshold=0.5, seed=seed)
        counts = answer.collected.counts
        assert (answer.stop, answer.found, answer.state, answer.action) == ("found", True, 13, 2)
        assert answer.reward == (0.8 if noise == "none" else 1.0)
        assert answer.collected.found[:2] == (13, 2)
        assert answer.collected.found.step == answer.steps == counts.sum()
        assert answer.collected.model.reward_sum.sum() == answer.reward
        if noise == "none":
            assert counts[13, 2] == 1


def test_without_a_threshold_the_walk_goes_on():
    mdp = hidden(RIVER, 0, 0)
    assert find_treasure(mdp, threshold=0.5, seed=0).steps < find_treasure(mdp, seed=0).steps
    assert find_treasure(mdp, seed=0).covered == 1


def test_a_reward_that_is_paid_sometimes_needs_more_samples():
    """One in ten: a run that takes the pair n times finds it with probability 1 - 0.9^n.

    The walk does not depend on rewards. Of 60 runs with a sample of each pair, four standard deviations around the mean
    number of those that find it: a false alarm of 1e-4. Forty samples each fail with 0.9^40.
    """
    mdp = hidden(RIVER, 4, 1, 0.1, noise="bernoulli")
    once = [find_treasure(mdp, 1, seed=seed) for seed in range(60)]
    chance = np.array([1 - 0.9 ** answer.collected.counts[4, 1] for answer in once])
    found = sum(answer.found for answer in once)
    assert abs(found - chance.sum()) < 4 * np.sqrt(np.sum(chance * (1 - chance)))
    assert 0 < found < 60
    many = find_treasure(mdp, 40, seed=0)
    assert (many.state, many.action) == (4, 1)
    model = many.collected.model
    assert many.reward == model.reward_sum[9] / model.visits[9]


def test_the_largest_mean_is_reported():
    mdp = TabularMDP(RIVER.dense(), rewards=np.arange(12).reshape(6, 2) % 7)
    answer = find_treasure(mdp, seed=0)
    assert (answer.state, answer.action, answer.reward) == (3, 0, 6.0)


def test_nothing_above_the_threshold():
    mdp = hidden(RIVER, 2, 1, 0.5)
    for threshold in (0.5, 7):
        answer = find_treasure(mdp, threshold=threshold, seed=0)
        assert (answer.stop, answer.found, answer.state, answer.action) == ("met", False, None, None)
        assert answer.reward == 0.5  # the largest mean that was seen
        assert "found      nothing" in repr(answer)


def test_no_rewards_at_all():
    answer = find_treasure(TabularMDP(RIVER.dense()), seed=0)
    assert (answer.stop, answer.found, answer.reward) == ("met", False, 0.0)


def test_nothing_needed_nothing_found():
    answer = find_treasure(hidden(RIVER, 0, 0), 0, seed=0)
    assert (answer.stop, answer.steps, answer.found, answer.reward, answer.covered) == ("met", 0, False, 0.0, 1.0)


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
def test_thresholds_below_zero(noise):
    """The first step's reward is 0, which is above -1."""
    answer = find_treasure(hidden(RIVER, 5, 0, noise=noise), threshold=-1, seed=0)
    assert (answer.stop, answer.steps, answer.state, answer.reward) == ("found", 1, 0, 0.0)
    losses = hidden(RIVER, 5, 1, -0.5, others=-2.0)
    answer = find_treasure(losses, threshold=-1, seed=0)
    assert (answer.state, answer.action, answer.reward) == (5, 1, -0.5)
    answer = find_treasure(losses, seed=0)
    assert (answer.found, answer.reward) == (False, -0.5)  # a loss is no treasure


def test_needs_of_any_shape():
    mdp = hidden(RIVER, 3, 1)
    each = find_treasure(mdp, [1, 2, 3, 0, 5, 6], seed=0)
    assert np.all(each.collected.counts.sum(axis=1) >= [1, 2, 3, 0, 5, 6])
    need = np.zeros((6, 2), dtype=int)
    need[3, 1] = 4
    pairs = find_treasure(mdp, need, seed=0)
    assert pairs.collected.counts[3, 1] == 4
    assert (pairs.state, pairs.action) == (3, 1)
    with pytest.raises(InputError, match=r"need: expected a number, \[S\]"):
        find_treasure(mdp, [1, 2, 3])


def test_how_much_is_covered():
    answer = find_treasure(GRID, 2, seed=0, max_steps=40)
    full = np.all(answer.collected.counts >= 2, axis=1)
    assert (answer.stop, answer.covered) == ("max_steps", full.mean())
    assert f"{full.mean():.1%} of the states" in repr(answer)


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "random"])
def test_the_goal_of_a_lake(strategy):
    """The reward is paid at the step to the goal, which ends the episode."""
    for seed in range(4):
        answer = find_treasure(gym.make("FrozenLake-v1"), 100, threshold=0.5, seed=seed, strategy=strategy)
        assert (answer.stop, answer.state, answer.reward) == ("found", 14, 1.0)
        states = answer.collected.model.states
        assert answer.collected.found.next_state == states.final(15)
        assert states[states.final(15)] == 15
        assert answer.steps == answer.collected.found.step == answer.collected.counts.sum()
    answer = find_treasure(gym.make("FrozenLake-v1"), 30, seed=0, strategy=strategy)
    assert (answer.stop, answer.state, answer.covered) == ("met", 14, 1.0)
    assert "100.0% of the 11 states discovered\n" in repr(answer)


def test_of_an_environment_the_states_found_are_covered():
    """Both actions of the start were tried, and led nowhere else: more samples would have found more."""
    env = TabularEnv(hidden(RIVER, 5, 1))
    with pytest.warns(UserWarning, match="met for the . states discovered; .* unseen=0.05 would go on") as warned:
        few = next(answer for answer in (find_treasure(env, seed=seed) for seed in range(99)) if answer.steps == 2)
    assert str(warned[-1].message).startswith("met for the 1 states discovered; a pair visited may have")
    assert (few.stop, few.found, few.covered) == ("met", False, 1.0)
    assert "100.0% of the 1 states discovered" in repr(few)
    assert "never seen, of probability <= 1" in repr(few)
    sure = find_treasure(env, seed=0, unseen=0.2)
    assert (sure.stop, sure.state, sure.action) == ("met", 5, 1)


def test_states_of_which_nothing_is_asked_for_are_not_counted():
    """Neither those with a need of 0 nor those that end an episode: of 16 states of the lake 11 are to be sampled."""
    part = find_treasure(hidden(RIVER, 5, 1), [0, 0, 1, 1, 0, 1], seed=0, max_steps=1)
    assert part.covered == 0
    assert "0.0% of the 3 states asked for, of 6" in repr(part)
    lake = find_treasure(gym.make("FrozenLake-v1"), 30, seed=0, max_steps=400)
    short = np.setdiff1d(lake.collected.unmet["state"], [-1])  # the reset
    asked = lake.collected.model.discovered
    assert 0 < len(short) < len(asked)
    assert lake.covered == 1 - len(short) / len(asked)


@pytest.mark.parametrize(
    ("options", "guarantee"),
    [
        ({"delta": 0.2}, "delta=0.2: the steps that covering takes obey the paper's bound"),
        ({"strategy": "gosprl", "delta": 0.2}, "delta=0.2: the steps that covering takes obey the paper's bound"),
        ({"strategy": "random"}, "none: a random walk"),
        ({"strategy": "gosprl", "scale": 0.1}, "heuristic: scale 0.1"),
        ({"strategy": "practical"}, "heuristic: scale 0.01"),
        ({"dynamics": RIVER}, "known dynamics"),
        ({"strategy": "practical", "dynamics": RIVER}, "known dynamics"),
        ({"strategy": "gosprl", "dynamics": RIVER}, "known dynamics"),
        (
            {"successors": RIVER},
            "delta=0.1, given the successors: the steps that covering takes obey the paper's bound",
        ),
    ],
)
def test_the_promise_is_that_of_the_strategy(options, guarantee):
    answer = find_treasure(RIVER, seed=0, **options)
    assert str(answer.guarantee) == guarantee


@FEW
def test_resets_are_no_treasure():
    """Every step costs at least 1; the reset from the goal, which costs nothing, is no step."""
    answer = find_treasure(gym.make("CliffWalking-v1"), seed=0)
    assert answer.collected.resets > 0
    assert (answer.stop, answer.found, answer.reward) == ("met", False, -1.0)
    above = find_treasure(gym.make("CliffWalking-v1"), threshold=-0.5, seed=0)
    assert (above.stop, above.found) == ("met", False)


def test_both_engines_find_the_same():
    """With needs of all pairs, so that what is needed is the same; the environment draws from another stream."""
    mdp = hidden(RIVER, 5, 1, 0.9)
    need = np.full((6, 2), 9)
    for seed in range(3):
        compiled, stepped = (find_treasure(system, need, threshold=0.5, seed=seed) for system in (mdp, TabularEnv(mdp)))
        assert compiled.collected.found[:4:3] == stepped.collected.found[:4:3] == (5, 0.9)
        assert stepped.collected.counts[5, 1] == compiled.collected.counts[5, 1] == 1


def test_the_search_of_a_system_that_is_known():
    """With known dynamics it is close to the fewest steps that any search can take on average."""
    answer = find_treasure(hidden(RIVER, 5, 1), seed=0, dynamics=RIVER)
    assert str(answer.guarantee) == "known dynamics"
    assert answer.steps <= 3 * gosprl.fluid_limit(RIVER, 1)


@pytest.mark.parametrize("threshold", [np.nan, np.inf, "high", None])
def test_thresholds_are_numbers(threshold):
    if threshold is None:
        assert find_treasure(RIVER, threshold=threshold, seed=0).stop == "met"
    else:
        with pytest.raises(InputError, match="threshold: expected a finite number"):
            find_treasure(RIVER, threshold=threshold)
