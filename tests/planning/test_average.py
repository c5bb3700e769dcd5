"""Optimistic average reward: linear programs over occupations, all policies of all vertices, closed forms."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Given, Points, Problem, random_dynamics, random_problem
from scipy.optimize import linprog

import gosprl
from gosprl import EmpiricalModel, Intervals, PrecisionError, TabularMDP, _kernels
from gosprl.planning import average
from gosprl.planning.average import AveragePlanner
from gosprl.sets.known import Known

PRECISION = 1e-7
LP = 1e-6  # what the programs' own tolerances may make of a gain
TIE = 1e-6  # the planner takes any row that is this close to the best
FAMILIES = [gosprl.KL(), gosprl.KL(0.1, 0.03), gosprl.Bernstein(0.1, 0.1), gosprl.Bernstein(0.1, 0.01)]


# Tools


def known_plan(mdp, rewards, precision=PRECISION):
    """For rewards [S, A]."""
    return AveragePlanner(mdp, Known(mdp)).plan(rewards[mdp.rows.state, mdp.rows.action].astype(float), precision)


def known_program(P, rewards):
    """The largest gain for P [S, A, S], rows of zeros not existing: occupations x(s, a) that balance."""
    s, a = np.nonzero(P.sum(axis=2))
    balance = P[s, a].T - np.eye(len(P))[:, s]
    result = linprog(
        -rewards[s, a],
        A_eq=np.vstack([balance, np.ones(len(s))]),
        b_eq=np.append(np.zeros(len(P)), 1),
        bounds=(0, None),
    )
    assert result.status == 0
    return -result.fun


def program(problem, rewards, rows=None):
    """The largest gain over joint occupations x(row, s') of some rows (all): nature's part is linear in them, too."""
    R, S = problem.lower.shape
    taken = np.zeros(R, dtype=bool)
    taken[np.arange(R) if rows is None else rows] = True
    x = np.arange(R * S).reshape(R, S)
    upper, equal = [], []
    for r, s in itertools.product(range(R), range(S)):
        low, high = np.zeros((2, R * S))
        low[x[r]] += problem.lower[r, s]
        low[x[r, s]] -= 1
        high[x[r]] -= problem.upper[r, s]
        high[x[r, s]] += 1
        upper += [low, high]
    for r in range(R):
        cap = np.zeros(R * S)
        cap[x[r]] = np.where(problem.seen[r], 0, 1) - problem.total[r]
        upper.append(cap)
    for s in range(S):
        flow = np.zeros(R * S)
        flow[x[:, s]] += 1
        flow[x[problem.row_state == s].ravel()] -= 1
        equal.append(flow)
    result = linprog(
        -np.repeat(rewards, S),
        A_ub=np.array(upper),
        b_ub=np.zeros(len(upper)),
        A_eq=np.array([*equal, np.ones(R * S)]),
        b_eq=np.append(np.zeros(S), 1),
        bounds=np.column_stack([np.zeros(R * S), np.repeat(taken, S)]),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    return -result.fun


def policy_gains(P, rewards):
    """[S] gains of a chain P [S, S]: g = P g and g + h = r + P h, whatever classes it has."""
    S, stay = len(P), np.eye(len(P)) - P
    equations = np.block([[stay, np.zeros((S, S))], [np.eye(S), stay]])
    return np.linalg.lstsq(equations, np.append(np.zeros(S), rewards), rcond=None)[0][:S]


def all_policies(points, rewards):
    """[S] the largest gain from each state, over all policies; rewards [K] of the points."""
    S = points.P.shape[1]
    best = np.full(S, -np.inf)
    for policy in itertools.product(*(np.flatnonzero(points.state == s) for s in range(S))):
        best = np.maximum(best, policy_gains(points.P[list(policy)], rewards[list(policy)]))
    return best


def random_model(rng, S, A, most=40):
    """Random counts over random pairs."""
    exists = rng.random((S, A)) < 0.7
    exists[np.arange(S), rng.integers(A, size=S)] = True
    model, pairs = EmpiricalModel(S, exists), np.argwhere(exists)
    add_counts(rng, model, pairs, int(rng.integers(0, most * len(pairs))))
    return model


def add_counts(rng, model, pairs, number):
    if number:
        s, a = pairs[rng.integers(len(pairs), size=number)].T
        s_next = np.where(
            rng.random(number) < 0.8, (s + a) % model.num_states, rng.integers(model.num_states, size=number)
        )
        model.update(s, a, s_next)


def communicating(rng, S, A):
    """Random dynamics in which the first action may go on to the next state."""
    P = random_dynamics(rng, S, A)
    P[:, 0] = 0.8 * P[:, 0] + 0.2 * np.eye(S)[(np.arange(S) + 1) % S]
    return P


def confirm(plan, gain, precision=PRECISION, tolerance=LP):
    assert plan.low - tolerance <= gain <= plan.high + tolerance
    assert plan.high - plan.low <= precision


# Against programs


@pytest.mark.parametrize("seed", range(25))
def test_known_dynamics_have_the_gain_of_the_program(seed):
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    P, rewards = communicating(rng, S, A), rng.choice([rng.normal(size=(S, A)), rng.integers(0, 2, (S, A))])
    mdp = TabularMDP(P)
    plan = known_plan(mdp, rewards)
    confirm(plan, known_program(P, rewards))
    own = policy_gains(
        P[mdp.rows.state[plan.rows], mdp.rows.action[plan.rows]], rewards[np.arange(S), mdp.rows.action[plan.rows]]
    )
    assert own.min() >= plan.low - TIE  # from wherever it begins


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("seed", range(8))
def test_sets_from_counts_have_the_gain_of_the_program(family, seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, int(rng.integers(2, 6)), 2, int(rng.choice([3, 40, 1000])))
    problem = Problem.from_intervals(model.rows, family.intervals(model), [0])
    rewards = rng.choice([rng.random(len(model.rows)), rng.integers(0, 2, len(model.rows)).astype(float)])
    plan = AveragePlanner(model, family).plan(rewards, PRECISION)
    confirm(plan, program(problem, rewards))
    assert program(problem, rewards, plan.rows) >= plan.low - TIE - LP  # the policy alone, nature still hopeful
    assert np.array_equal(model.rows.state[plan.rows], np.arange(model.num_states))


def test_the_program_tells_gains_apart():
    """The comparison is not satisfied by anything: of half the rows, the gain is another."""
    rng = np.random.default_rng(0)
    model = random_model(rng, 4, 3, 300)
    problem = Problem.from_intervals(model.rows, FAMILIES[1].intervals(model), [0])
    rewards = rng.random(len(model.rows))
    best = AveragePlanner(model, FAMILIES[1]).plan(rewards, PRECISION)
    worst = AveragePlanner(model, FAMILIES[1]).plan(-rewards, PRECISION)
    assert program(problem, rewards, worst.rows) < best.low - 0.1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_structured_models(data):
    """Few states, hardly any counts or many, rewards with ties; rows that are all alike."""
    S, A = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    exists = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=A, max_size=A), min_size=S, max_size=S)))
    exists[~exists.any(axis=1), 0] = True
    numbers = st.lists(st.sampled_from([0, 0, 0, 1, 2, 50, 10_000]), min_size=S, max_size=S)
    counts = {(s, a): data.draw(numbers) for s, a in np.argwhere(exists).tolist()}
    parts = np.array([(s, a, n, k) for (s, a), row in counts.items() for n, k in enumerate(row)]).T
    model = EmpiricalModel.from_counts(*parts, states=S, actions=exists)
    rewards = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, -3.0]), min_size=len(model.rows), max_size=len(model.rows)))
    )
    family = data.draw(st.sampled_from(FAMILIES))
    plan = AveragePlanner(model, family).plan(rewards, PRECISION, key=data.draw(st.integers(-1, 2**32 - 1)))
    confirm(plan, program(Problem.from_intervals(model.rows, family.intervals(model), [0]), rewards), tolerance=1e-5)
    assert plan.values.min() == 0


# Against all policies of all vertices


def tiny_problem(seed):
    """(problem, rewards [R]); every other one is closed and sparse, so that there may be no way to some states."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 4))
    if seed % 2:
        problem = random_problem(rng, S=S, A=2 if S == 2 else 1)
    else:
        P = random_dynamics(rng, S, 2, successors=int(rng.integers(1, 3)))
        row, none = P[P.sum(axis=2) > 0], np.zeros(np.count_nonzero(P.sum(axis=2)))
        width = rng.choice([0, 0, 0.3], size=(len(row), 1))
        lower, upper = np.maximum(row - width, 0), np.where(row > 0, np.minimum(row + width, 1), 0)
        problem = Problem(P.sum(axis=2) > 0, row > 0, lower, upper, none, none, np.ones((S, 2)), [0])
    R = len(problem.lower)
    return problem, rng.choice([rng.random(R), rng.integers(0, 2, R).astype(float)])


def gains_of(problem, rewards):
    points = problem.points()
    return all_policies(points, rewards[points.row])


@pytest.mark.parametrize("seed", range(60))
def test_any_sets_have_the_gain_of_the_best_policy_of_vertices(seed, monkeypatch):
    """Or, if the gain depends on where one begins, they have none, and that is said."""
    problem, rewards = tiny_problem(seed)
    gains = gains_of(problem, rewards)
    planner = AveragePlanner(problem.model(), Given(problem.intervals()))
    if np.ptp(gains) < 1e-9:
        confirm(planner.plan(rewards, PRECISION), gains[0])
    else:
        monkeypatch.setattr(average, "MAX_SWEEPS", 20_000)
        with pytest.raises(PrecisionError, match="cannot be reached from others"):
            planner.plan(rewards, min(PRECISION, 0.5 * np.ptp(gains)))


def test_there_are_cases_of_both_kinds():
    same = [np.ptp(gains_of(*tiny_problem(seed))) < 1e-9 for seed in range(60)]
    assert 5 <= sum(same) <= 55


# Closed forms


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.9, 0.1), (0.001, 0.002), (1, 1), (1, 0.01)])
def test_a_chain_of_two_states(p, q):
    mdp = TabularMDP(np.array([[[1 - p, p]], [[q, 1 - q]]]))
    confirm(known_plan(mdp, np.array([[2.0], [5.0]])), (2 * q + 5 * p) / (p + q))


def test_intervals_of_two_states():
    """Nature goes to the better state as often, and leaves it as rarely, as it may."""
    intervals = Intervals(
        np.array([0, 2, 4]),
        np.array([0, 1, 0, 1], dtype=np.int32),
        np.array([0.0, 0.1, 0.2, 0.0]),
        np.array([1.0, 0.3, 0.6, 1.0]),
        np.zeros(2),
        np.zeros(2),
    )
    plan = AveragePlanner(EmpiricalModel(2, 1), Given(intervals)).plan(np.array([0.0, 1.0]), PRECISION)
    confirm(plan, 0.3 / (0.3 + 0.2))
    assert plan.values == pytest.approx([0, 1 / 0.5], abs=1e-4)  # v(1) - v(0) = 1 / (p + q)


@pytest.mark.parametrize("period", [2, 3, 7])
def test_a_cycle_of_any_period(period):
    P = np.eye(period)[(np.arange(period) + 1) % period][:, None]
    rewards = np.arange(period)[:, None] ** 2.0
    confirm(known_plan(TabularMDP(P), rewards), rewards.mean())


def test_one_state_and_one_action():
    assert known_plan(TabularMDP(np.ones((1, 1, 1))), np.array([[7.0]])).low == 7
    plan = known_plan(TabularMDP(np.ones((1, 4, 1))), np.array([[1.0, 3.0, 2.0, 3.0]]))
    assert (plan.low, plan.high) == (3, 3)
    assert plan.rows[0] in (1, 3)


def test_ties_are_broken_by_the_key():
    mdp = TabularMDP(np.ones((1, 4, 1)))
    planner = AveragePlanner(mdp, Known(mdp))
    rows = {int(planner.plan(np.array([1.0, 3.0, 2.0, 3.0]), PRECISION, key).rows[0]) for key in range(50)}
    assert rows == {1, 3}


def test_a_far_reward_is_worth_the_way():
    """A chain of 30 states; one end pays 1, the other 0.99."""
    n = 30
    s = np.arange(n)
    P = np.stack([np.eye(n)[np.maximum(s - 1, 0)], np.eye(n)[np.minimum(s + 1, n - 1)]], axis=1)
    rewards = np.zeros((n, 2))
    rewards[0, 0], rewards[-1, 1] = 0.99, 1
    plan = known_plan(TabularMDP(P), rewards, 1e-6)
    confirm(plan, 1, 1e-6)
    assert plan.rows.tolist() == (2 * s + 1).tolist()
    assert plan.values == pytest.approx(s, abs=0.01)  # a step later is a reward of 1 less


# What does not exist


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_are_off_are_not_taken(seed):
    rng = np.random.default_rng(seed)
    model = EmpiricalModel(4, 3)
    add_counts(rng, model, np.array([(s, a) for s in range(3) for a in range(3)]), 200)
    model.locate(3, (0,))  # which offers only its first action
    family, rewards = FAMILIES[2], rng.random(12)
    rewards[[10, 11]] = 5  # tempting
    problem = Problem.from_intervals(model.rows, family.intervals(model), [0])
    plan = AveragePlanner(model, family).plan(rewards, PRECISION)
    confirm(plan, program(problem, rewards, np.arange(10)))
    assert plan.rows[3] == 9


# Warm, shifted, scaled


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_warm_and_cold_have_the_same_gain(family):
    rng = np.random.default_rng(3)
    model = random_model(rng, 5, 3, 20)
    pairs = np.argwhere(model.rows.to_dense(np.ones(len(model.rows), dtype=bool)))
    warm = AveragePlanner(model, family)
    rewards = rng.random(len(model.rows))
    for _ in range(6):
        if rng.random() < 0.5:
            rewards = rng.random(len(model.rows)) * 10.0 ** rng.integers(-1, 2)
        add_counts(rng, model, pairs[rng.integers(len(pairs), size=3)], int(rng.integers(1, 200)))
        plan, cold = warm.plan(rewards, PRECISION), AveragePlanner(model, family).plan(rewards, PRECISION)
        confirm(plan, (cold.low + cold.high) / 2, tolerance=PRECISION)
        confirm(
            plan, program(Problem.from_intervals(model.rows, family.intervals(model), [0]), rewards), tolerance=1e-5
        )
    assert warm.plans == 6


def test_the_same_again_takes_one_sweep():
    model = random_model(np.random.default_rng(0), 5, 2)
    planner, rewards = AveragePlanner(model, FAMILIES[0]), np.random.default_rng(1).random(len(model.rows))
    first, again = (planner.plan(rewards, PRECISION) for _ in range(2))
    assert (again.sweeps, again.low, again.rows.tolist()) == (1, first.low, first.rows.tolist())
    assert planner.sweeps == first.sweeps + 1


def test_shifted_and_scaled_rewards():
    rng = np.random.default_rng(1)
    model = random_model(rng, 5, 3, 100)
    rewards = rng.random(len(model.rows))
    gain = {
        (shift, scale): AveragePlanner(model, FAMILIES[1]).plan(shift + scale * rewards, scale * PRECISION).low
        for shift, scale in ((0, 1), (5, 1), (-7, 1), (0, 100), (3, 0.01))
    }
    for (shift, scale), low in gain.items():
        assert low == pytest.approx(shift + scale * gain[0, 1], abs=scale * PRECISION + 1e-9)


# What has no gain, and what is heard


def two_classes(S):
    """Two rings of S states, the second pays more; no way between them."""
    s = np.arange(2 * S)
    return TabularMDP((s, 0 * s, s // S * S + (s + 1) % S, np.ones(2 * S))), (s >= S).astype(float)[:, None]


@pytest.mark.parametrize("S", [1, 200])
def test_different_gains_are_an_error_in_reasonable_time(S, monkeypatch):
    monkeypatch.setattr(average, "MAX_WORK", average.MAX_WORK // 10)  # of large systems; the time is that of a tenth
    began = time.process_time()
    with pytest.raises(PrecisionError, match=r"precision=1e-07 .* only 1 with values up to .* another gain"):
        known_plan(*two_classes(S))
    assert time.process_time() - began < 20


def test_the_same_gain_in_two_classes_is_no_error():
    mdp, rewards = two_classes(3)
    confirm(known_plan(mdp, 0 * rewards + 2), 2)


def test_a_precision_below_rounding_is_an_error(monkeypatch):
    monkeypatch.setattr(average, "MAX_SWEEPS", 5000)
    rng = np.random.default_rng(0)
    P = 0.999 * np.eye(40)[:, None] + 0.001 * rng.dirichlet(np.ones(40), size=(40, 1))
    with pytest.raises(PrecisionError, match="rounding"):
        known_plan(TabularMDP(P), rng.random((40, 1)), 1e-20)


def test_work_is_done_in_pieces_between_which_an_interrupt_is_heard(monkeypatch):
    rng = np.random.default_rng(2)
    model = random_model(rng, 6, 2, 100)
    rewards = rng.random(len(model.rows))
    family = gosprl.KL(0.1, 0.001)
    whole = AveragePlanner(model, family).plan(rewards, PRECISION)
    calls, kernel = [], _kernels.average

    def counted(*given):
        calls.append(given[7])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return kernel(*given)

    monkeypatch.setattr(_kernels, "average", counted)
    monkeypatch.setattr(average, "WORK_PER_CALL", 10 * len(model.rows))
    planner = AveragePlanner(model, family)
    with pytest.raises(KeyboardInterrupt):
        planner.plan(rewards, PRECISION)
    assert max(calls) <= 10
    plan = planner.plan(rewards, PRECISION)  # as if nothing had happened
    confirm(plan, (whole.low + whole.high) / 2, tolerance=PRECISION)
    assert len(calls) > 5
    for work in (1, len(model.rows)):  # a piece is at least one sweep, which must get on
        monkeypatch.setattr(average, "WORK_PER_CALL", work)
        confirm(AveragePlanner(model, family).plan(rewards, 1e-3), (whole.low + whole.high) / 2, 1e-3)


def test_a_plan_that_fails_leaves_the_planner_as_it_was(monkeypatch):
    mdp, rewards = two_classes(2)
    planner = AveragePlanner(mdp, Known(mdp))
    planner.plan(np.ones(4), PRECISION)
    monkeypatch.setattr(average, "MAX_SWEEPS", 1000)
    with pytest.raises(PrecisionError):
        planner.plan(rewards[:, 0], PRECISION)
    assert planner.plan(np.ones(4), PRECISION).sweeps == 1


def test_points_and_intervals_agree():
    """The same known dynamics as points of an empirical model."""
    P = communicating(np.random.default_rng(5), 5, 2)
    mdp, rewards = TabularMDP(P), np.random.default_rng(6).random((5, 2))
    points = Points.from_dense(P)
    problem = Problem.from_intervals(mdp.rows, Known(mdp).intervals(), [0])
    assert program(problem, rewards[points.state, mdp.rows.action]) == pytest.approx(known_program(P, rewards), abs=LP)
