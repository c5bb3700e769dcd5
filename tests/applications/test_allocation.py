"""Where the samples of `learn_policy` go: the fewest under constraints on what policies may be off."""

import gymnasium
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

import gosprl
from gosprl.applications import policy
from gosprl.applications.policy import Discounted, _fewest
from gosprl.certificates import mean_intervals, slack
from gosprl.envs.tabular_env import TabularEnv


def least_sum(a, most, least):
    """The optimum of the same program by sequential quadratic programming, in x = sqrt(least / n)."""
    free = np.flatnonzero(np.any(a > 0, axis=0))
    rest, least, a = least.sum() - least[free].sum(), least[free], a[:, free]
    scaled = a / np.sqrt(least)
    found = minimize(
        lambda x: (least @ x**-2.0) / least.sum(),
        np.full(len(least), min(1.0, (most / scaled.sum(axis=1)).min())),
        jac=lambda x: -2 * least * x**-3.0 / least.sum(),
        bounds=[(1e-3, 1.0)] * len(least),
        constraints=LinearConstraint(scaled / most[:, None], ub=1.0),
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success
    return rest + found.fun * least.sum()


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_one_constraint_in_closed_form(scale):
    """By Lagrange, n = a^(2/3) (sum a^(2/3))^2 / most^2."""
    a = scale * np.array([[1.0, 8.0, 0.0, 27.0]])
    n = _fewest(a, np.array([2.0]), np.ones(4))
    np.testing.assert_allclose(n, np.array([1, 4, 0, 9]) * (14 / 2 * scale) ** 2 + [0, 0, 1, 0], rtol=2e-3)


@pytest.mark.parametrize("seed", range(8))
def test_several_constraints_against_another_solver(seed):
    """Rows that few cuts ask for, as discounted visits do; what is needed is 1.2 to 3 times what is there, or less."""
    rng = np.random.default_rng(seed)
    cuts, rows = int(rng.integers(2, 12)), int(rng.integers(5, 60))
    least = rng.uniform(20, 2000, rows)
    a = rng.exponential(1.0, (cuts, rows)) ** 3 * (rng.random((cuts, rows)) < 0.5) * np.sqrt(least)
    a[:, 0] = np.sqrt(least[0])
    most = (a / np.sqrt(least)).sum(axis=1) / np.sqrt(rng.uniform(0.8, 3, cuts))
    n = _fewest(a, most, least)
    assert np.all(n >= least)
    assert np.all(a @ (1 / np.sqrt(n)) <= most * (1 + 1e-9))
    best = least_sum(a, most, least)
    assert best * (1 - 1e-6) <= n.sum() <= best * 1.01


def test_nothing_more_where_all_constraints_hold():
    least = np.array([10.0, 40.0])
    n = _fewest(np.array([[1.0, 2.0]]), np.array([5.0]), least)
    np.testing.assert_array_equal(n, least)


def test_the_programs_of_a_run_against_another_solver(monkeypatch):
    """Large counts, few cuts: a first step of the dual that is too long must not be the last."""
    programs = []

    def remember(*program):
        programs.append((*program, _fewest(*program)))
        return programs[-1][-1]

    monkeypatch.setattr(policy, "_fewest", remember)
    rooms = gosprl.envs.make("four_room43").with_rewards(np.eye(43)[0])
    gosprl.applications.learn_policy(rooms, 0.9, 1.0, seed=0, max_steps=9_000)
    assert len(programs) >= 2
    for a, most, least, n in programs[:2]:
        assert n.sum() <= 1.01 * least_sum(a, most, least)


def test_states_that_are_never_found_ask_for_nothing():
    """A phase aims at half of the gap, which is 2 at first: eight are more than enough for 0.2."""
    env = TabularEnv(gosprl.envs.make("riverswim6"))
    env.observation_space = gymnasium.spaces.Discrete(9)  # three more states than there are
    learnt = gosprl.applications.learn_policy(env, 0.5, 0.2, seed=0, max_steps=30_000)
    assert learnt.stop == "met"
    assert len(learnt.phases) <= 8


def test_a_state_never_visited_may_be_worth_everything():
    """State 0 was seen to lead to itself and to earn nothing: all that it may be off by is in its way to state 1."""
    gamma, visits, family = 0.8, 50, gosprl.KL(0.05)
    model = gosprl.EmpiricalModel(2, 1)
    model.update(np.zeros(visits, dtype=int), np.zeros(visits, dtype=int), np.zeros(visits, dtype=int))
    bounds = Discounted(model, family, gamma, 0.05, 1.0).bounds(1e-9)
    unseen = slack(model, family, np.array([0])).extra[0]
    reward = mean_intervals(model.visits, model.reward_sum, model.reward_sq, 0.05)[1][0]
    assert 0 < unseen < 1
    assert bounds.width[0] == pytest.approx(gamma * unseen / (1 - gamma) + reward)
