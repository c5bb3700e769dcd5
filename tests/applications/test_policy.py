"""Policy learning: values by linear algebra, bounds by the vertices of the sets, allocations by another solver."""

import math
import pickle

import gymnasium
import numpy as np
import pytest
from adversary import all_policies, as_rows, corners
from oracles import random_dynamics
from scipy.optimize import minimize

import gosprl
from gosprl import CollectionError, InputError, TabularMDP
from gosprl.applications import learn_policy, policy
from gosprl.applications.policy import PLAY, Discounted, _fewest, allocate
from gosprl.envs import make
from gosprl.envs.tabular_env import TabularEnv
from gosprl.fleet.simulated import Simulated
from gosprl.sets.certificates import mean_intervals, slack


def with_rewards(mdp, rewards, noise="bernoulli"):
    return TabularMDP(mdp.dense(), mdp.start, rewards=rewards, noise=noise)


def river(states=4, noise="bernoulli"):
    """RiverSwim with its usual rewards: little at the left, much at the right."""
    rewards = np.zeros((states, 2))
    rewards[0, 0], rewards[-1, 1] = 0.05, 1
    return with_rewards(make("riverswim", states=states), rewards, noise)


def toy(noise="bernoulli"):
    """Three states, of which one has two actions."""
    return with_rewards(make("toy3", nu=0.5), np.array([[0.3, 0], [0.9, 0], [0.2, 0.6]]), noise)


def value_of(mdp, gamma, policy):
    """[S] what a policy [S] of actions earns."""
    s = np.arange(mdp.num_states)
    P, R = mdp.dense()[s, policy], mdp.rows.to_dense(mdp.rewards)[s, policy]
    return np.linalg.solve(np.eye(len(s)) - gamma * P, R)


def best_value(mdp, gamma):
    """[S] what the best policy earns, by trying all."""
    policies = [mdp.rows.action[rows] for rows in all_policies(mdp.rows)]
    return np.max([value_of(mdp, gamma, policy) for policy in policies], axis=0)


def holds(learnt, mdp, gamma):
    """Whether what is promised is true; 1e-9 is for the rounding of both sides."""
    mine, best = value_of(mdp, gamma, learnt.policy), best_value(mdp, gamma)
    return bool(np.all(learnt.lower <= mine + 1e-9) and np.all(best <= learnt.upper + 1e-9))


@pytest.mark.parametrize(
    ("mdp", "gamma", "epsilon"),
    [
        (river(), 0.8, 0.5),
        (river(noise="none"), 0.9, 1.5),
        (river(), 0.99, 30),
        (river(), 1e-6, 0.1),
        (toy(), 0.6, 0.3),
        (toy(noise="none"), 0.01, 0.05),
    ],
)
@pytest.mark.parametrize("allocation", ["bespoke", "uniform"])
def test_the_promise(mdp, gamma, epsilon, allocation):
    learnt = learn_policy(mdp, gamma, epsilon, allocation=allocation, seed=0)
    assert learnt.stop == "met"
    assert learnt.gap == (learnt.upper - learnt.lower).max() <= epsilon
    assert holds(learnt, mdp, gamma)
    assert (best_value(mdp, gamma) - value_of(mdp, gamma, learnt.policy)).max() <= learnt.gap
    assert np.all((learnt.lower >= 0) & (learnt.upper <= 1 / (1 - gamma)))
    planned = 1e-3 * epsilon  # what values may be off by
    assert np.all((learnt.lower <= learnt.value + planned) & (learnt.value <= learnt.upper + planned))


def random_model(rng):
    """Counts and rewards of random dynamics: rows never visited, at times endings or known successors."""
    S, A = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    P = random_dynamics(rng, S, A)
    model = gosprl.EmpiricalModel(S, P.sum(axis=2) > 0)
    becomes, resets = np.arange(S), str(rng.choice(["never", "terminal", "anytime"], p=[0.7, 0.2, 0.1]))
    model.allow_resets(resets)
    if resets != "never":  # episodes end where they come to this state
        ended = int(rng.integers(S))
        becomes[ended] = model.final(ended)
    if rng.random() < 0.4 and resets == "never":
        model.restrict(P > 0)
    for s, a in np.argwhere(P.sum(axis=2) > 0).tolist():
        n = int(rng.choice([0, 1, 30, 3000]))
        rewards = rng.random(n) * rng.choice([0.1, 1])
        if n:
            model.update(np.full(n, s), np.full(n, a), becomes[rng.choice(S, size=n, p=P[s, a])], rewards)
    return model.arranged(model.arrangement())  # without room that is not in use


def test_the_bounds_are_those_of_the_worst_and_of_the_best_dynamics_in_the_sets():
    """By value iteration over vertices, without the shortest-path problem behind them."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        model, family = random_model(rng), gosprl.KL(0.1, scale=float(rng.choice([1, 0.1, 0.01])))
        gamma, precision = float(rng.choice([1e-6, 0.3, 0.9])), 1e-9
        problem = Discounted(model, family, gamma, 0.05, 1.0)
        bounds, (low, _, high) = problem.bounds(precision), problem.rewards()
        S, state = model.rows.num_states, model.rows.state
        ended, taken = model.terminal[state], ~model.certain | model.terminal[state]  # no reset is chosen
        sets = [np.eye(S)[[state[r]]] if ended[r] else corner for r, corner in enumerate(corners(model, family))]
        upper, lower = np.zeros(S), np.zeros(S)
        for _ in range(math.ceil(25 / (1 - gamma))):
            q = np.array([high[r] + gamma * (corner @ upper).max() for r, corner in enumerate(sets)])
            upper = np.full(S, -np.inf)
            np.maximum.at(upper, state[taken], q[taken])
            lower = np.array([low[r] + gamma * (sets[r] @ lower).min() for r in bounds.rows])
        np.testing.assert_allclose(bounds.upper, np.minimum(upper, 1 / (1 - gamma)), atol=1e-6)
        np.testing.assert_allclose(bounds.lower, lower, atol=1e-6)
        assert np.all(bounds.upper >= np.minimum(upper, 1 / (1 - gamma)) - 1e-9)  # never on the wrong side
        assert np.all(bounds.lower <= lower + 1e-9)
        assert np.all(bounds.upper[model.terminal] <= 1e-6)


def test_the_policy_is_the_best_by_what_was_seen():
    rng = np.random.default_rng(1)
    for _ in range(40):
        model, gamma = random_model(rng), float(rng.choice([0.3, 0.9]))
        bounds = Discounted(model, gosprl.KL(0.1), gamma, 0.05, 1.0).bounds(1e-9)
        S, state, seen = model.rows.num_states, model.rows.state, model.visits > 0
        ended = model.terminal[state]
        P = as_rows(model.dense(), model.rows)
        P[~seen | ended] = np.eye(S)[state[~seen | ended]]
        R = np.where(ended, 0, np.where(seen, model.reward_sum / np.maximum(model.visits, 1), 0.5))
        taken = ~model.certain | ended
        tried = [rows for rows in all_policies(model.rows) if taken[rows].all()]
        values = [np.linalg.solve(np.eye(S) - gamma * P[rows], R[rows]) for rows in tried]
        np.testing.assert_allclose(bounds.value, np.max(values, axis=0), atol=1e-6)
        mine = np.linalg.solve(np.eye(S) - gamma * P[bounds.rows], R[bounds.rows])
        np.testing.assert_allclose(mine, bounds.value, atol=1e-6)


def fewest(a, most, least):
    """The least sum of n >= `least` with a @ n^(-1/2) <= most; None if the solver fails."""
    scale = 1 / np.sqrt(least)
    found = minimize(
        lambda y: np.sum(least * y**-2.0) / least.sum(),
        np.full(len(least), 0.9 * min(1.0, (most / (a @ scale)).min())),
        jac=lambda y: -2 * least * y**-3.0 / least.sum(),
        bounds=[(1e-6, 1)] * len(least),
        constraints=[
            {"type": "ineq", "fun": lambda y: 1 - a @ (y * scale) / most, "jac": lambda y: -a * scale / most[:, None]}
        ],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    inside = np.all(a @ (found.x * scale) <= most * (1 + 1e-9))
    return found.fun * least.sum() if found.success and inside else None


def test_the_fewest_samples():
    """Against another solver, of the same problem as it is; one where all but one row are cheap, by hand."""
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(150):
        cuts, rows = int(rng.integers(1, 6)), int(rng.integers(1, 7))
        a = rng.random((cuts, rows)) * (rng.random((cuts, rows)) < 0.7) * 10 ** rng.uniform(-3, 3)
        a[:, 0] += 1e-6 * a.max() + 1e-9
        least = 10 ** rng.uniform(0, 3, rows)
        most = a @ (1 / np.sqrt(least)) * rng.uniform(0.1, 1.1, cuts)
        n = _fewest(a, most, least)
        assert np.all(n >= least * (1 - 1e-12))
        assert np.all(a @ (1 / np.sqrt(n)) <= most * (1 + 1e-9))
        known = fewest(a, most, least)
        if known is not None:
            checked += 1
            assert n.sum() <= known * 1.001
            assert n.sum() >= known * (1 - 1e-5)
    assert checked > 100
    np.testing.assert_allclose(
        _fewest(np.array([[1.0, 0.0]]), np.array([0.1]), np.array([4.0, 7.0])), [100, 7], rtol=1e-3
    )


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_one_constraint_in_closed_form(scale):
    """By Lagrange, n = a^(2/3) (sum a^(2/3))^2 / most^2."""
    a = scale * np.array([[1.0, 8.0, 0.0, 27.0]])
    n = _fewest(a, np.array([2.0]), np.ones(4))
    np.testing.assert_allclose(n, np.array([1, 4, 0, 9]) * (14 / 2 * scale) ** 2 + [0, 0, 1, 0], rtol=2e-3)


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
    rooms = make("four_room43").with_rewards(np.eye(43)[0])
    learn_policy(rooms, 0.9, 1.0, seed=0, max_steps=9_000)
    assert len(programs) >= 2
    for a, most, least, n in programs[:2]:
        assert n.sum() <= 1.001 * fewest(a, most, least)


def test_states_that_are_never_found_ask_for_nothing():
    """A phase aims at half of the gap, which is 2 at first: eight are more than enough for 0.2."""
    env = TabularEnv(make("riverswim6"))
    env.observation_space = gymnasium.spaces.Discrete(9)  # three more states than there are
    learnt = learn_policy(env, 0.5, 0.2, seed=0, max_steps=30_000)
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


@pytest.mark.parametrize("how", ["lost", "late"])
def test_bounds_of_a_fleet_are_those_of_its_committed_samples_and_what_is_unknown(how):
    """Two states that lead to each other, one action: the value is the solution of two equations."""
    means, gamma = np.array([0.6, 0.4]), 0.8
    mdp = gosprl.TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), rewards=means[:, None], noise="bernoulli")
    is_lost = lambda rng, r: r.reward == 1 and r.key == 1 and rng.random() < 0.95  # noqa: E731
    faults = {"lost": is_lost} if how == "lost" else {"duration": lambda rng, r: 100.0 if is_lost(rng, r) else 1.0}
    fleet = Simulated(mdp, 8, entropy=[0, 7], restart=0.0, **faults)
    late = 3 if how == "late" else None
    learnt = learn_policy(mdp, gamma, 0.5, seed=0, workers=fleet, late=late, max_steps=3000)
    model = learnt.collected.model
    assert model.unknown[0] > 100
    value = np.linalg.solve(np.eye(2) - gamma * np.array([[0, 1], [1, 0]]), means)
    assert np.all(learnt.lower <= value)
    assert np.all(value <= learnt.upper)
    same = Discounted(model, gosprl.KL(0.05), gamma, 0.05, 1.0).bounds(1e-9)
    assert learnt.lower == pytest.approx(same.lower, abs=1e-3)
    assert learnt.upper == pytest.approx(same.upper, abs=1e-3)


def visited(model, gamma, rows, start):
    """[R] discounted visits of a policy, by the frequencies seen."""
    P = as_rows(model.dense(), model.rows)[rows]
    w = np.zeros(len(model.rows))
    w[rows] = np.linalg.solve(np.eye(len(rows)) - gamma * P.T, np.eye(len(rows))[start])
    return w


def test_the_allocation_serves_all_policies_and_no_more():
    """All constraints, of every policy and start, against another solver of the same problem."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        S, A, gamma, ratio = 3, 2, 0.8, 0.6
        model = gosprl.EmpiricalModel(S, A)
        for s, a in np.ndindex(S, A):
            n = int(rng.integers(50, 500))
            model.update(np.full(n, s), np.full(n, a), rng.choice(S, n, p=rng.dirichlet(np.ones(S))), rng.random(n))
        problem = Discounted(model, gosprl.KL(0.1), gamma, 0.05, 1.0)
        bounds = problem.bounds(1e-9)
        w = np.array([visited(model, gamma, rows, s) for rows in all_policies(model.rows) for s in range(S)])
        target = ratio * (w @ (bounds.width - bounds.loss)).max()
        n = allocate(problem, bounds, ratio)
        scale = bounds.width * np.sqrt(model.visits)
        assert np.all(n >= model.visits)
        assert (w @ (scale / np.sqrt(n) - bounds.loss)).max() <= PLAY * target * (1 + 1e-6)
        known = fewest(w * scale, target + w @ bounds.loss, model.visits.astype(float))
        assert known is None or n.sum() <= known * 1.001


def bandit():
    """One state; an action that earns 0.9, one that earns nothing, and one that is nearly as good as the first."""
    return TabularMDP(np.ones((1, 3, 1)), rewards=np.array([[0.9, 0.0, 0.85]]), noise="bernoulli")


def test_pairs_that_are_clearly_bad_are_left_alone():
    learnt = learn_policy(bandit(), 0.5, 0.1, seed=0)
    best, bad, good = learnt.collected.counts[0]
    assert 10 * bad < min(best, good)
    assert bad < 0.1 * learnt.steps


def test_bespoke_takes_fewer_samples_than_uniform():
    steps = {
        allocation: np.mean([learn_policy(river(), 0.8, 0.6, allocation=allocation, seed=s).steps for s in range(4)])
        for allocation in ("bespoke", "uniform")
    }
    assert 1.5 * steps["bespoke"] < steps["uniform"]


def test_phases_count_up():
    learnt = learn_policy(toy(), 0.6, 0.3, seed=0)
    assert len(learnt.phases) > 2
    for before, after in zip(learnt.phases, learnt.phases[1:], strict=False):
        assert np.all(before <= after)
        assert before.sum() < after.sum()
    np.testing.assert_array_equal(learnt.phases[-1], learnt.collected.counts)
    assert learnt.phases[0][learnt.phases[0] > 0].min() >= 2 * math.log(3 * 4 / 0.05)
    even = learn_policy(toy(), 0.6, 0.3, allocation="uniform", seed=0).collected.counts
    assert even[[0, 1, 2, 2], [0, 0, 0, 1]].min() > 0.3 * even.max()


@pytest.mark.parametrize("steps", [1, 20, 2000])
def test_a_run_cut_short_promises_what_it_can(steps):
    mdp = river()
    learnt = learn_policy(mdp, 0.9, 0.01, seed=0, max_steps=steps)
    assert (learnt.stop, learnt.steps) == ("max_steps", steps)
    assert holds(learnt, mdp, 0.9)
    assert 0.01 < learnt.gap <= 1 / (1 - 0.9)
    if steps == 1:
        assert learnt.phases == []
        np.testing.assert_allclose(learnt.upper, 10)
        np.testing.assert_allclose(learnt.lower, 0, atol=1e-9)


def test_an_epsilon_above_all_values_leaves_values_in_their_range():
    learnt = learn_policy(river(), 0.9, 1e9, seed=0)
    assert len(learnt.phases) == 1
    assert np.all((learnt.value >= 0) & (learnt.value <= 10))


def test_a_discount_near_one():
    """What doubles resolve of values up to 100 000 is enough to go on with."""
    mdp = river()
    learnt = learn_policy(mdp, 0.99999, 0.1, seed=0, max_steps=3000)
    assert (learnt.stop, holds(learnt, mdp, 0.99999)) == ("max_steps", True)


LAKE = ["SFFF", "FHFH", "FFFH", "HFFG"]


def steps_to_the_goal():
    """[16] fewest steps, inf from holes; by search from the goal."""
    steps = np.full(16, np.inf)
    steps[15] = 0
    for _ in range(16):
        for s in range(16):
            row, column = divmod(s, 4)
            if LAKE[row][column] in "SF":
                near = [
                    min(max(row + d, 0), 3) * 4 + min(max(column + r, 0), 3)
                    for d, r in ((0, 1), (1, 0), (0, -1), (-1, 0))
                ]
                steps[s] = min(steps[s], 1 + min(steps[t] for t in near))
    return steps


@pytest.mark.parametrize("allocation", ["bespoke", "uniform"])
def test_frozen_lake_where_terminal_states_are_worth_nothing(allocation):
    """Where a step does what it should, k steps from the goal are worth gamma^(k - 1)."""
    steps = steps_to_the_goal()
    ends = [5, 7, 11, 12, 15]
    best = np.where(np.isin(np.arange(16), ends), 0, 0.9 ** (np.where(np.isfinite(steps), steps, 0) - 1))
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    learnt = learn_policy(env, 0.9, 0.5, allocation=allocation, seed=0, max_steps=100_000)
    assert learnt.stop == "met"
    live = np.setdiff1d(np.arange(16), ends)
    np.testing.assert_allclose(learnt.value[live], best[live], atol=1e-3)
    assert np.all((learnt.lower <= best + 1e-9) & (best <= learnt.upper + 1e-9))
    assert np.all(learnt.policy[ends] == -1)  # nothing is done there, and nothing was seen of what could be
    assert np.isnan(learnt.value[ends]).all()
    assert learnt.gap == (learnt.upper - learnt.lower)[live].max() <= 0.5
    assert all(np.all(samples[ends] == 0) for samples in learnt.phases)
    observation, _ = env.reset(seed=1)
    for _ in range(6):
        observation, reward, *_ = env.step(learnt.policy[int(observation)])
    assert (int(observation), reward) == (15, 1)


def test_states_that_are_not_found_have_no_policy():
    """States 0 and 1 alternate; from 0 once in a million steps to state 2, which is worth much."""
    P = np.zeros((3, 1, 3))
    P[0, 0], P[1, 0, 0], P[2, 0, 0] = [0, 1 - 1e-6, 1e-6], 1, 1
    mdp = TabularMDP(P, rewards=np.array([[0.2], [0.4], [1.0]]))
    learnt = learn_policy(TabularEnv(mdp), 0.5, 0.4, seed=0, max_steps=20_000)
    assert learnt.stop == "met"
    assert not learnt.collected.model.is_discovered[2]
    np.testing.assert_array_equal(learnt.policy, [0, 0, -1])
    best = best_value(mdp, 0.5)  # also of what was not found
    assert np.all((learnt.lower <= best + 1e-9) & (best <= learnt.upper + 1e-9))
    assert learnt.gap == (learnt.upper - learnt.lower)[:2].max() < (learnt.upper - learnt.lower)[2]


def test_the_same_mdp_through_gymnasium():
    mdp = river(states=3)
    learnt = learn_policy(TabularEnv(mdp), 0.6, 0.4, seed=0, max_steps=50_000)
    assert learnt.stop == "met"
    assert holds(learnt, mdp, 0.6)


def test_known_successors_take_fewer_steps():
    mdp = river()
    plain, known = (
        learn_policy(mdp, 0.9, 2, seed=0, **given) for given in ({}, {"successors": make("riverswim", states=4)})
    )
    assert known.steps < plain.steps
    assert holds(known, mdp, 0.9)


def test_one_state():
    learnt = learn_policy(bandit(), 0.5, 0.5, seed=0)
    assert learnt.policy[0] in (0, 2)
    assert learnt.lower[0] <= 1.8 <= learnt.upper[0]


def test_the_same_seed_gives_the_same():
    first, again, other = (learn_policy(toy(), 0.6, 0.5, seed=s) for s in (5, 5, 6))
    np.testing.assert_array_equal(first.collected.counts, again.collected.counts)
    np.testing.assert_array_equal(first.lower, again.lower)
    assert not np.array_equal(first.collected.counts, other.collected.counts)


def test_it_prints_and_pickles():
    learnt = learn_policy(toy(), 0.6, 0.5, seed=0)
    copy = pickle.loads(pickle.dumps(learnt))
    assert repr(copy) == repr(learnt)
    np.testing.assert_array_equal(copy.policy, learnt.policy)
    lines = repr(learnt).splitlines()
    assert lines[0] == "LearntPolicy"
    assert [line.split()[0] for line in lines[1:]] == ["policy", "value", "phases", "steps", "stop", "guarantee"]
    assert "of the best; 0.5 was asked for" in lines[1]
    assert lines[-1].endswith("delta=0.1: lower <= V^policy <= V* <= upper")


def test_the_level_is_that_of_sets_and_rewards_together():
    """Half of delta is for the rewards; a family given by name gets the other half, an object has its own."""
    given = learn_policy(toy(), 0.5, 1, delta=0.1, confidence=gosprl.KL(0.2), seed=0)
    assert str(given.guarantee).startswith("delta=0.25:")
    named = learn_policy(toy(), 0.5, 1, delta=0.1, seed=0)
    same = learn_policy(toy(), 0.5, 1, delta=0.1, confidence=gosprl.KL(0.05), seed=0, strategy="guarded")
    assert str(named.guarantee).startswith("delta=0.1:")
    assert same.guarantee == named.guarantee
    narrow = learn_policy(toy(), 0.5, 1, confidence=gosprl.KL(0.1, scale=0.5), seed=0)
    assert str(narrow.guarantee).startswith("heuristic: scale 0.5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": 0}, "^gamma: expected a number strictly between 0 and 1"),
        ({"gamma": 1}, "^gamma: expected a number strictly between 0 and 1"),
        ({"epsilon": 0}, "^epsilon: expected a positive finite number"),
        ({"epsilon": "small"}, "^epsilon: expected a positive finite number"),
        ({"allocation": "even"}, "^allocation: 'even' is not known; known are bespoke, uniform"),
        ({"delta": 2}, "^delta: expected a number strictly between 0 and 1"),
        (
            {"system": make("toy3")},
            r"^system: expected an MDP with rewards, but toy3 has none; .*TabularMDP\(P, rewards=R\)",
        ),
        (
            {"system": with_rewards(make("riverswim", states=2), np.array([[0, 1], [-1, 3]]), "none")},
            r"^rewards: expected rewards in \[0, 1\], got -1 at \(s, a\) = \(1, 0\); scale them: .*low = -1, high = 3",
        ),
        (
            {"system": TabularMDP(np.eye(2)[[1, 1]][:, None], rewards=np.ones((2, 1)))},
            "no path leads back to the start, state 0, from state 1",
        ),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        learn_policy(**{"system": toy(), "gamma": 0.5, "epsilon": 0.5, **arguments})


@pytest.mark.parametrize(("factor", "error", "reward"), [(10, InputError, "3.0"), (2, CollectionError, "1.8")])
def test_rewards_of_an_environment_outside_of_their_range(factor, error, reward):
    """Known at the first step, or only after some."""
    env = gymnasium.wrappers.TransformReward(TabularEnv(toy(noise="none")), lambda r: factor * r)
    with pytest.raises(error, match=rf"rewards: expected rewards in \[0, 1\], got {reward} at .*TransformReward"):
        learn_policy(env, 0.5, 0.5, seed=0)


RUNS, ALARM = 40, 12  # with failures of probability 0.1 each, 12 or more in 40 have a chance of 4e-4


def wrong(confidence):
    """In how many runs a bound is on the wrong side."""
    mdp = TabularMDP(
        [[[0.5, 0.5], [0.3, 0.7]], [[0.5, 0.5], [0.3, 0.7]]], rewards=[[0.5, 0.4], [0.5, 0.6]], noise="bernoulli"
    )
    runs = [learn_policy(mdp, 0.5, 0.8, confidence=confidence, seed=seed) for seed in range(RUNS)]
    return sum(not holds(learnt, mdp, 0.5) for learnt in runs)


def test_it_is_wrong_as_rarely_as_promised_and_sets_too_narrow_are_found_out():
    assert wrong("kl") < ALARM
    assert wrong(gosprl.KL(0.05, scale=0.01)) >= ALARM
