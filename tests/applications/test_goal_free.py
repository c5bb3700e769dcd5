"""Goal-free exploration: true costs of its policies by linear solves, the worst dynamics in the sets by vertices."""

import math
import pickle

import gymnasium
import numpy as np
import pytest
from adversary import all_policies, as_rows, corners, cost_of, least_cost, least_in_sets, most_of
from oracles import random_dynamics

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.applications import diameter, explore_all_goals
from gosprl.applications.goal_free import Explored, Task
from gosprl.envs import make
from gosprl.envs.lower_bounds import two_state_chain
from gosprl.envs.tabular_env import TabularEnv


def random_mdp(rng, S, A):
    while True:
        mdp = TabularMDP(random_dynamics(rng, S, A, successors=2))
        if mdp.is_communicating():
            return mdp


def random_costs(rng, c_min, shape):
    """Costs in [c_min, 1], often at the ends."""
    return rng.choice([c_min, 1.0], size=shape) if rng.random() < 0.5 else rng.uniform(c_min, 1, shape)


def policy_rows(explored, mdp, goal, costs):
    """The policy as rows [S]; it must have an action everywhere but at the goal."""
    policy = explored.policy(goal, costs)
    away = np.arange(mdp.num_states) != goal
    rows = np.zeros(mdp.num_states, dtype=int)
    rows[away] = mdp.rows.index(np.flatnonzero(away), policy[away])
    return rows


def loss(explored, mdp, goal, costs):
    """By how much the policy costs more in truth than the best, from the worst state; both solved exactly."""
    P, cost = (
        as_rows(mdp.dense(), mdp.rows),
        as_rows(np.broadcast_to(costs, (mdp.num_states, mdp.num_actions)), mdp.rows),
    )
    mine = cost_of(P, cost, policy_rows(explored, mdp, goal, costs), goal)
    return (mine - least_cost(mdp.rows.state, P, cost, goal)).max()


@pytest.mark.parametrize(
    ("mdp", "epsilon", "c_min"),
    [
        (make("toy3", nu=0.5), 1.0, 0.5),
        (two_state_chain(0.3), 1.0, 0.3),
        (make("riverswim", states=4), 8.0, 0.9),
        (random_mdp(np.random.default_rng(5), 3, 3), 2.0, 0.5),
    ],
)
def test_policies_for_all_goals_and_costs_are_as_good_as_promised(mdp, epsilon, c_min):
    explored = explore_all_goals(mdp, epsilon, c_min=c_min, seed=0)
    assert explored.stop == "met"
    assert explored.proved <= epsilon
    rng = np.random.default_rng(0)
    for goal in range(mdp.num_states):
        for _ in range(20):
            costs = random_costs(rng, c_min, (mdp.num_states, mdp.num_actions))
            assert loss(explored, mdp, goal, costs) <= explored.proved


def explored_by(rng, mdp, task, family):
    """What would be returned if the counts were random ones, and what its sets prove."""
    model = gosprl.EmpiricalModel.over(mdp.rows)
    if rng.random() < 0.5:
        model.restrict(mdp)
    for row in range(len(mdp.rows)):
        s, a = mdp.rows.pair(row)
        n = int(rng.choice([300, 3000, 10_000]))
        model.update(np.full(n, s), np.full(n, a), rng.choice(mdp.num_states, size=n, p=mdp.dense()[s, a]))
    proved = diameter.prove(model, family, np.arange(len(mdp.rows)))
    explored = Explored(
        model=model,
        epsilon=task.epsilon,
        proved=task.proves(proved),
        diameter=proved.upper,
        c_min=task.c_min,
        theta=task.theta,
        _known=proved.hat,
        _base=np.ones(len(proved.hat.rows)),
        _added=task.perturbation(proved.upper) if math.isfinite(proved.upper) else 0.0,
        collected=None,
        guarantee=gosprl.Guarantee(),
    )
    return explored, proved


def test_the_certificate_holds_for_every_plausible_model():
    """The policy under the worst dynamics in the sets, and the optimum under the best, against each of its steps."""
    rng = np.random.default_rng(0)
    checked = 0
    while checked < 25:
        S, A = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        mdp, family = random_mdp(rng, S, A), gosprl.KL(0.1, scale=float(rng.choice([1, 0.05, 0.01])))
        task = Task(float(rng.choice([0.1, 0.5, 2])), float(rng.choice([0.2, 0.5, 1])), math.inf, None)
        explored, proved = explored_by(rng, mdp, task, family)
        if not math.isfinite(explored.proved):
            continue
        checked += 1
        e, state, sets = proved.x, mdp.rows.state, corners(explored.model, family)
        x = e / task.c_min
        for goal in range(S):
            costs = random_costs(rng, task.c_min, (S, A))
            cost, rows = as_rows(costs, mdp.rows), policy_rows(explored, mdp, goal, costs)
            seen = explored.values(goal, costs)
            most, least = most_of(sets, cost, rows, goal), least_in_sets(state, sets, cost, goal)
            assert np.all(most <= seen / (1 - x) * (1 + 1e-7))
            assert np.all(least >= seen * (1 - x / (1 - e)) - 1e-9)
            assert (most - least).max() <= explored.proved + 1e-7


def in_time(P, cost, rows, goal, theta):
    """[S] the least cost of deterministic policies that take at most theta times the fewest steps; all are tried."""
    tried = all_policies(rows)
    costs, times = (np.array([cost_of(P, each, policy, goal) for policy in tried]) for each in (cost, np.ones(len(P))))
    slow = times > theta * times.min(axis=0) * (1 + 1e-9)
    return np.where(slow, np.inf, costs).min(axis=0)


def test_with_free_steps_the_certificate_is_about_policies_that_arrive_in_time():
    """For vertices of the sets taken at random as the truth, against all policies."""
    rng = np.random.default_rng(1)
    checked = 0
    while checked < 20:
        S, A = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        mdp, family = random_mdp(rng, S, A), gosprl.KL(0.1, scale=0.01)
        theta = float(rng.choice([1, 1.5, 3]))
        task = Task(float(rng.choice([0.5, 2])), float(rng.choice([0, 0.01])), theta, None)
        explored, _ = explored_by(rng, mdp, task, family)
        if not math.isfinite(explored.proved) or task.perturbation(explored.diameter) == 0:
            continue
        checked += 1
        sets = corners(explored.model, family)
        for goal in range(S):
            costs = random_costs(rng, task.c_min, (S, A))
            cost, rows = as_rows(costs, mdp.rows), policy_rows(explored, mdp, goal, costs)
            for _ in range(4):
                P = np.array([corner[rng.integers(len(corner))] for corner in sets])
                best = in_time(P, cost, mdp.rows, goal, theta)
                assert np.all(cost_of(P, cost, rows, goal) <= best + explored.proved)


def three_roads():
    """In state 0: wait; go to state 1 surely; go there once in five steps. From state 1 back."""
    P = np.zeros((2, 3, 2))
    P[0], P[1, 0, 0] = [[1, 0], [0, 1], [0.8, 0.2]], 1
    return TabularMDP(P)


@pytest.mark.parametrize(("theta", "road"), [(1, 1), (6, 2)])
def test_theta_decides_whether_a_slow_way_is_to_be_found(theta, road):
    """Waiting is free, the slow way costs 5 * 0.02 and takes 5 steps, the other 1 and takes one step."""
    mdp = three_roads()
    explored = explore_all_goals(mdp, 0.5, theta=theta, seed=0, successors=mdp)
    assert explored.stop == "met"
    assert explored.proved <= 0.5
    costs = np.array([[0, 1, 0.02], [0.3, 1, 1]])
    assert explored.policy(1, costs)[0] == road
    rng = np.random.default_rng(0)
    P = as_rows(mdp.dense(), mdp.rows)
    for each in [costs, *(random_costs(rng, 0, (2, 3)) for _ in range(20))]:
        for goal in range(2):
            cost, rows = as_rows(each, mdp.rows), policy_rows(explored, mdp, goal, each)
            best = in_time(P, cost, mdp.rows, goal, theta)
            assert np.all(cost_of(P, cost, rows, goal) <= best + explored.proved)


def test_what_is_added_to_costs_is_paid_for():
    """From each of three states to any in one step. By a detour it is free, directly it costs 0.24.

    With theta = 2 and D = 1, epsilon / 4 is added to the costs: for epsilon = 1 the direct way looks better then.
    """
    P = np.zeros((3, 3, 3))
    P[:] = np.eye(3)
    mdp = TabularMDP(P)
    explored = explore_all_goals(mdp, 1, theta=2, seed=0, successors=mdp)
    costs = np.zeros((3, 3))
    costs[0, 1] = 0.24
    assert explored.policy(1, costs)[0] == 1
    assert 0.24 <= explored.proved <= 1


def test_all_costs_zero():
    """Every way is free; the policy arrives all the same."""
    explored = explore_all_goals(three_roads(), 5, theta=1, seed=0)
    assert explored.policy(1, np.zeros(2))[0] == 1
    np.testing.assert_array_equal(explored.values(1, np.zeros((2, 3))), [0, 0])


def seen_rows(explored):
    """(state [R], P [R, S]) of the frequencies of the pairs visited, and a mask [S, A] of these."""
    model = explored.model
    visited = model.rows.to_dense(model.visits > 0)
    return np.nonzero(visited)[0], model.dense()[visited], visited


@pytest.mark.parametrize("steps", [40, 400, 4000])
def test_values_and_policies_are_those_of_the_frequencies_seen(steps):
    rng = np.random.default_rng(steps)
    mdp = make("riverswim", states=5)
    explored = explore_all_goals(mdp, 0.5, c_min=0.1, seed=1, max_steps=steps)
    state, P, visited = seen_rows(explored)
    number = np.cumsum(visited).reshape(visited.shape) - 1
    for goal in range(5):
        for costs in (rng.uniform(0.1, 1, 5), rng.uniform(0.1, 1, (5, 2)), None):
            full = np.ones((5, 2)) if costs is None else costs if costs.ndim == 2 else np.repeat(costs[:, None], 2, 1)
            best = least_cost(state, P, full[visited], goal)
            np.testing.assert_allclose(explored.values(goal, costs), best, rtol=1e-9)
            policy = explored.policy(goal, costs)
            ways = np.isfinite(best) & (np.arange(5) != goal)
            assert np.all(policy[~np.isfinite(best)] == -1)
            rows = np.zeros(5, dtype=int)
            rows[ways] = number[np.flatnonzero(ways), policy[ways]]
            taken = cost_of(P, full[visited], rows, goal)
            np.testing.assert_allclose(taken[ways], best[ways], rtol=1e-9)


def test_values_for_added_costs_are_those_of_the_costs_given():
    """What is added to plan with is not part of the values."""
    explored = explore_all_goals(two_state_chain(0.5), 2, theta=1, seed=0)
    p = explored.model.p_hat(0, 0)[1][1]  # to state 1
    assert explored.values(1, [0.25, 1.0])[0] == pytest.approx(0.25 / p)


def test_small_differences_of_costs_add_up_on_long_ways():
    """Where single successors are known nothing is left open; 59 steps, each 4e-7 dearer by one of the actions."""
    P = np.zeros((60, 2, 60))
    P[np.arange(60), :, (np.arange(60) + 1) % 60] = 1
    mdp = TabularMDP(P)
    explored = explore_all_goals(mdp, 1e-6, c_min=0.5, seed=0, successors=mdp)
    assert explored.proved <= 1e-6
    costs = np.full((60, 2), 0.5)
    costs[:, 0] += 4e-7
    assert explored.values(0, costs)[1] - 59 * 0.5 <= 1e-6
    assert np.all(explored.policy(0, costs)[1:] == 1)


def phi(D, omega, epsilon, delta, support, S, A):
    """The printed allocation for alpha = 1."""
    one = math.log(D * S * A / (omega * epsilon * delta))
    two = math.log(D * S * A / (omega * delta))
    return (
        D**3 * support / (omega * epsilon**2) * one
        + D**2 * S / (omega * epsilon) * one
        + D**2 * support / omega**2 * two**2
    )


@pytest.mark.parametrize(
    ("arguments", "omega"),
    [({"c_min": 0.5}, 0.5), ({"theta": 2.0}, 0.5 / (2 * 2 * 3)), ({"c_min": 0.2, "theta": 9}, 0.2)],
)
def test_the_printed_allocation(arguments, omega):
    """With epsilon = 0.5, D = 3 given, successors 2 at most, S = 3, A = 2, delta = 0.2; alpha makes it 99.5."""
    alpha = 99.5 / phi(3, omega, 0.5, 0.2, 2, 3, 2)
    mdp = make("toy3", nu=0.5)
    explored = explore_all_goals(mdp, 0.5, rule="paper", diameter=3, alpha=alpha, delta=0.2, seed=0, **arguments)
    assert explored.stop == "met"
    visits = explored.model.visits
    assert visits.min() == 100
    assert explored.diameter == 3
    more = explore_all_goals(mdp, 0.5, rule="paper", diameter=3, alpha=3 * alpha, delta=0.2, seed=0, **arguments)
    assert more.model.visits.min() == 299


def test_the_printed_rule_estimates_the_diameter_first():
    mdp = two_state_chain(0.5)
    explored = explore_all_goals(mdp, 0.5, c_min=1, rule="paper", alpha=1e-9, seed=0)
    assert explored.stop == "met"
    assert 2 <= explored.diameter <= (1 + 2 * 0.5 * 1.5) * 1.5 * 2
    given = explore_all_goals(mdp, 0.5, c_min=1, rule="paper", diameter=2, alpha=1e-9, seed=0)
    assert given.steps < explored.steps  # the allocation itself is one sample
    with pytest.raises(
        InputError, match=r"^alpha: expected rule='paper', whose allocation it multiplies, got 'certified'"
    ):
        explore_all_goals(mdp, 0.5, c_min=1, alpha=2)


def test_an_allocation_beyond_whole_numbers_is_not_met():
    explored = explore_all_goals(
        two_state_chain(0.5), 1e-9, c_min=1e-9, rule="paper", diameter=1e3, seed=0, max_steps=200
    )
    assert (explored.stop, explored.steps) == ("max_steps", 200)
    assert explored.collected.unmet["needed"].max() == 2**62


@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_a_run_cut_short(steps):
    explored = explore_all_goals(make("riverswim6"), 0.01, c_min=0.5, seed=0, max_steps=steps)
    assert (explored.stop, explored.steps, explored.proved) == ("max_steps", steps, math.inf)
    assert "nothing is proved;" in repr(explored)
    assert explored.values(0)[0] == 0
    if steps == 1:
        np.testing.assert_array_equal(explored.policy(5)[:5], [-1] * 5)
        np.testing.assert_array_equal(explored.values(5), [math.inf] * 5 + [0])


def test_a_run_cut_short_may_prove_more_than_epsilon():
    mdp = two_state_chain(0.5)
    explored = explore_all_goals(mdp, 0.05, c_min=1, seed=0, max_steps=20_000)
    assert explored.stop == "max_steps"
    assert 0.05 < explored.proved < 1
    assert loss(explored, mdp, 1, np.ones((2, 1))) <= explored.proved


def test_a_diameter_that_is_given_saves_samples():
    """It is better known than by the sets."""
    mdp = three_roads()
    mine, given = (explore_all_goals(mdp, 2, theta=2, seed=0, diameter=D) for D in (None, 1))
    assert given.proved <= 2
    assert given.steps < mine.steps
    assert (given.diameter, mine.diameter > 1) == (1, True)


def test_one_state():
    one = TabularMDP(np.ones((1, 2, 1)))
    for arguments in ({"theta": 2}, {"c_min": 0.5}, {"theta": 2, "rule": "paper", "alpha": 1e-6}):
        explored = explore_all_goals(one, 0.5, seed=0, **arguments)
        assert explored.stop == "met"
        assert explored.proved <= 0.5
        assert (explored.diameter, explored.values(0)[0]) == (0, 0)


def test_one_state_found():
    """Where the start is left once in a hundred steps, the rest of the system may not be there at first."""
    explored = explore_all_goals(TabularEnv(two_state_chain(0.01)), 0.5, theta=2, seed=0, max_steps=30)
    assert not explored.model.is_discovered[1]
    assert "of the states discovered, given that there are no others: " in str(explored.guarantee)
    assert explored.values(1)[0] == math.inf


def test_a_state_found_by_the_last_step_counts():
    """States 0 and 1 alternate; from 0 rarely to 2, which leads back once in a thousand steps."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1], P[0, 1], P[1, :, 0], P[2] = 1, [0, 0.97, 0.03], 1, [0.001, 0, 0.999]
    env = TabularEnv(TabularMDP(P))
    arguments = {"c_min": 0.5, "seed": 2, "resets": "never"}
    steps = next(
        n for n in range(60, 200) if explore_all_goals(env, 0.5, max_steps=n, **arguments).model.is_discovered.all()
    )
    before, after = (explore_all_goals(env, 0.5, max_steps=n, **arguments) for n in (steps - 1, steps))
    assert before.proved < math.inf
    assert after.collected.counts[2].sum() == 0
    assert (after.proved, after.diameter) == (math.inf, math.inf)


def test_the_same_mdp_through_gymnasium():
    mdp = two_state_chain(0.5)
    explored = explore_all_goals(TabularEnv(mdp), 1, c_min=0.5, seed=0, max_steps=100_000)
    assert explored.stop == "met"
    for goal in range(2):
        assert loss(explored, mdp, goal, np.full((2, 1), 0.5)) <= explored.proved <= 1


def test_frozen_lake_where_a_reset_is_a_step():
    """The ways are sure: what was seen once is what happens. From a hole a reset, then the way from the start."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    explored = explore_all_goals(env, 20, c_min=1, seed=0, max_steps=100_000)
    assert explored.stop == "met"
    never = np.inf  # holes are never left by an action
    np.testing.assert_allclose(explored.values(15), [6, 5, 4, 5, 5, never, 3, never, 4, 3, 2, never, never, 2, 1, 0])
    states = explored.model.states
    assert explored.policy(states.final(15)).tolist() == explored.policy(15).tolist()
    with pytest.raises(InputError, match=r"^goal: expected a live or a final state, got 16, which stands for"):
        explored.policy(16)
    # to fall into the hole at 5, and from there, by a reset, to the start
    np.testing.assert_allclose(explored.values(5)[[0, 1, 4, 6, 14]], [2, 1, 1, 1, 3])
    np.testing.assert_allclose(explored.values(0)[[1, 14]], [1, 2])  # from 14 by the goal, which ends the episode
    path, s = [], 0
    state, _ = env.reset(seed=0)
    policy = explored.policy(15)
    while s != 15:
        state, *_ = env.step(policy[s])
        s = int(state)
        path.append(s)
    assert len(path) == 6


def test_the_same_seed_gives_the_same():
    first, again, other = (explore_all_goals(make("toy3", nu=0.5), 3, c_min=1, seed=s) for s in (5, 5, 6))
    assert (first.steps, first.proved) == (again.steps, again.proved)
    np.testing.assert_array_equal(first.collected.counts, again.collected.counts)
    assert not np.array_equal(first.collected.counts, other.collected.counts)


def test_it_prints_and_pickles():
    explored = explore_all_goals(three_roads(), 3, theta=1.5, seed=0)
    explored.policy(1)  # what it keeps for plans must not be in the way
    copy = pickle.loads(pickle.dumps(explored))
    assert repr(copy) == repr(explored)
    np.testing.assert_array_equal(copy.values(1, [0.5, 0.5]), explored.values(1, [0.5, 0.5]))
    lines = repr(explored).splitlines()
    assert lines[0] == "Explored"
    assert [line.split()[0] for line in lines[1:]] == ["policies", "goals,", "diameter", "steps", "stop", "guarantee"]
    assert "of those that take at most 1.5 times the fewest steps; 3 was asked for" in lines[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "^epsilon: expected a positive finite number, got 0"),
        ({"epsilon": math.inf}, "^epsilon: expected a positive finite number"),
        ({"theta": 0.9, "c_min": 0}, "^theta: expected a number >= 1, or inf, got 0.9"),
        ({"theta": math.nan}, "^theta: expected a number >= 1, or inf"),
        ({"theta": "2"}, "^theta: expected a number >= 1, or inf"),
        ({"theta": True}, "^theta: expected a number >= 1, or inf"),
        ({"c_min": -0.1}, r"^c_min: expected the least cost, in \[0, 1\], got -0.1"),
        ({"c_min": 1.1}, r"^c_min: expected the least cost, in \[0, 1\]"),
        (
            {"c_min": 0},
            "^c_min, theta: expected c_min > 0 or a finite theta >= 1; with c_min = 0 .* never reaches the goal may",
        ),
        ({"diameter": 0.5}, "^diameter: expected at least 1 step, got 0.5"),
        ({"diameter": -1}, "^diameter: expected a positive finite number"),
        ({"rule": "printed"}, "^rule: 'printed' is not known; known are certified, paper"),
        ({"rule": "paper", "alpha": 0}, "^alpha: expected a positive finite number"),
        ({"delta": 0}, "^delta: expected a number strictly between 0 and 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        explore_all_goals(two_state_chain(0.5), **{"epsilon": 0.5, "c_min": 0.5, **arguments})


@pytest.mark.parametrize("theta", [np.int64(2), np.float32(2), 2])
def test_theta_may_be_any_number(theta):
    explored = explore_all_goals(two_state_chain(0.5), 5, theta=theta, seed=0)
    assert type(explored.theta) is float
    assert explored.theta == 2


@pytest.mark.parametrize(
    ("goal", "costs", "message"),
    [
        (3, None, "^goal: expected a state in 0..2, got 3"),
        (-1, None, "^goal: expected a state in 0..2, got -1"),
        (0.5, None, "^goal: expected whole numbers"),
        ([0, 1], None, "^goal: expected a state in 0..2, got an array"),
        (
            0,
            [0.4, 0.5, 0.5],
            r"^costs: expected costs in \[c_min, 1\] = \[0.5, 1\], got 0.4 at \(s, a\) = \(0, 0\); .*smaller c_min",
        ),
        (0, [0.5, 0.5, 2], r"^costs: .* got 2 at \(s, a\) = \(2, 0\); divide costs above 1 by their maximum"),
        (0, [0.5, 0.5, math.nan], "^costs: .* got nan at"),
        (0, [0.5, 0.5], r"^costs: expected \[S\] = \(3,\) or \[S, A\] = \(3, 2\), got shape \(2,\)"),
        (0, np.ones((2, 3)), "^costs: expected .* got shape"),
        (0, "much", "^costs: expected numbers"),
    ],
)
def test_bad_questions(goal, costs, message):
    explored = explore_all_goals(make("toy3", nu=0.5), 5, c_min=0.5, seed=0)
    for ask in (explored.policy, explored.values):
        with pytest.raises(InputError, match=message):
            ask(goal, costs)


def test_costs_of_actions_that_do_not_exist_do_not_matter():
    explored = explore_all_goals(make("toy3", nu=0.5), 5, c_min=0.5, seed=0)
    costs = np.array([[1, -7], [1, math.nan], [1, 1]])
    np.testing.assert_array_equal(explored.values(1, costs), explored.values(1))


def test_a_system_that_is_not_communicating_is_refused():
    apart = TabularMDP(np.eye(3)[[1, 0, 0]][:, None])
    with pytest.raises(InputError, match="no path leads from the start, state 0, to state 2"):
        explore_all_goals(apart, 0.5, c_min=1)


RUNS, ALARM = 40, 12  # with failures of probability 0.1 each, 12 or more in 40 have a chance of 4e-4


def many_roads():
    """Two states; one road to the other succeeds with 0.5, five with 0.3: a wrong one costs 1.33 steps more."""
    P = np.zeros((2, 6, 2))
    P[0, :, 1] = P[1, :, 0] = [0.3, 0.3, 0.5, 0.3, 0.3, 0.3]
    P[0, :, 0] = P[1, :, 1] = 1 - P[0, :, 1]
    return TabularMDP(P)


def wrong(confidence):
    """In how many runs some policy is worse than was proved."""
    mdp = many_roads()
    runs = [explore_all_goals(mdp, 1.2, c_min=1, confidence=confidence, seed=seed) for seed in range(RUNS)]
    return sum(max(loss(each, mdp, goal, np.ones((2, 6))) for goal in range(2)) > each.proved for each in runs)


def test_it_is_wrong_as_rarely_as_promised_and_sets_too_narrow_are_found_out():
    assert wrong("kl") < ALARM
    assert wrong(gosprl.KL(0.1, scale=0.01)) >= ALARM
