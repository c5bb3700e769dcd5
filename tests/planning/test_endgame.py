"""The order of the last samples with known dynamics, against the exact optimum by other code, and by hand."""

import numpy as np
import pytest
from random_mdps import random_mdp

import gosprl
from gosprl.envs import make
from gosprl.planning.endgame import Endgame
from gosprl.theory.price import bayes_price


def endgame(mdp, need):
    found = gosprl.Collector(mdp.num_states, mdp.num_actions, need, dynamics=mdp, seed=0).planner.practical._endgame
    assert isinstance(found, Endgame)
    return found


def expected_steps(mdp, rows, size, policy):
    """[levels, S] steps until nothing is missing if `policy` is followed: one linear system over all of them."""
    levels, S = policy.shape
    stride, index = np.append(1, np.cumprod(size))[:-1], np.arange(levels * S).reshape(levels, S)
    system, steps = np.eye(levels * S), np.ones(levels * S)
    steps[:S] = 0
    for level in range(1, levels):
        for s in range(S):
            row, after = policy[level, s], level
            for i in np.flatnonzero(rows == row):
                after -= stride[i] if level // stride[i] % size[i] else 0
            k = slice(mdp.ptr[row], mdp.ptr[row + 1])
            system[index[level, s], index[after, mdp.succ[k]]] -= mdp.prob[k]
    return np.linalg.solve(system, steps).reshape(levels, S)


@pytest.mark.parametrize("seed", range(6))
def test_the_policy_takes_the_least_steps_that_any_collector_takes(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 3, 2)
    need = rng.integers(0, 3, size=(3, 2)) * (rng.random((3, 2)) < 0.7)
    need[0, 0] = 1
    found = endgame(mdp, need)
    assert found.policy() is not None
    steps = expected_steps(mdp, found._items, found._size, found._policy)
    assert steps[-1, mdp.start] == pytest.approx(bayes_price([mdp], need).known, rel=1e-3)


def test_a_river_is_climbed_before_anything_is_sampled_down():
    river = make("riverswim6")
    policy, missing = endgame(river, 1).policy()
    assert list(missing) == list(range(12))
    assert list(river.rows.action[policy[1:5]]) == [1, 1, 1, 1]


def test_what_no_order_can_collect_is_left_to_others():
    """State 1 is never left: a need in both states cannot be met from everywhere."""
    trap = gosprl.TabularMDP(([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1], [1.0] * 4), states=2, actions=2)
    assert endgame(trap, 1).policy() is None
    assert gosprl.collect(trap, 1, dynamics=trap, seed=0, max_steps=50).steps == 4


@pytest.mark.parametrize("need", [100, [1] * 6])
def test_too_much_missing_and_needs_of_states_are_left_to_others(need):
    assert endgame(make("riverswim6"), need).policy() is None


class MoreOfTheFirst(gosprl.Requirement):
    """One sample of every pair, and ten more of the first for each other pair that was sampled."""

    def __init__(self, pairs):
        self.pair, self.state = np.ones(pairs, dtype=np.int64), np.zeros(1, dtype=np.int64)

    def update(self, model, rows):
        self.pair[0] = 1 + 10 * np.count_nonzero(model.visits[1:])


def test_a_need_that_grows_is_solved_again():
    """The states that miss something stay the same when it grows, so that their number does not say that it grew."""
    mdp = gosprl.TabularMDP(([0, 0, 0], [0, 1, 2], [0, 0, 0], [1.0] * 3), states=1, actions=3)
    requirement = MoreOfTheFirst(3)
    result = gosprl.collect(mdp, requirement, dynamics=mdp, seed=0, max_steps=50)
    assert result.met
    assert list(result.counts[0]) == [21, 1, 1]


def test_runs_take_the_expected_steps_and_more_without_the_endgame(monkeypatch):
    """False alarm: 1 in 15,000, four standard errors."""
    mdp = make("riverswim6")
    least = bayes_price([mdp], np.ones((6, 2), dtype=int)).known

    def difference():
        steps = [gosprl.collect(mdp, 1, dynamics=mdp, seed=k).steps for k in range(100)]
        return (np.mean(steps) - least) / (np.std(steps, ddof=1) / 10)

    assert abs(difference()) < 4
    monkeypatch.setattr("gosprl.planning.endgame.ENTRIES", 0)
    assert difference() > 4
