"""Values <= optimum <= (1 + gap) values, against rational arithmetic, where doubles are at their end."""

from fractions import Fraction

import numpy as np
import pytest
import rational
from extremes import chain, random_extremes
from oracles import Given

import gosprl
from gosprl.planning.certificate import COARSE, NEGLIGIBLE

both_methods = pytest.mark.parametrize("method", ["value-iteration", "modified-policy-iteration"])
EXPONENTS = range(6, 16)


def assert_true(plan, optimum, goals):
    """What a plan says of itself, against the optimum as fractions; up to 1e-9 upwards, as documented."""
    for s, best in enumerate(optimum):
        if best is None:
            assert plan.values[s] == np.inf
        elif s not in goals:
            value = Fraction(float(plan.values[s]))
            assert value <= best * (1 + Fraction(NEGLIGIBLE))
            assert best <= (1 + Fraction(plan.gap)) * value


def two_steps(leaving):
    """From 2 to 1 and from 1 to the goal 0, or back; each with a probability of about `leaving`."""
    s, s_next = [0, 1, 1, 1, 2, 2], [0, 0, 2, 1, 1, 2]
    p = [1, leaving, leaving / 3, 1 - leaving - leaving / 3, 0.7 * leaving, 1 - 0.7 * leaving]
    return gosprl.TabularMDP((s, [0] * 6, s_next, p), states=3)


@pytest.mark.parametrize("k", EXPONENTS)
def test_known_dynamics_that_hardly_ever_move(k):
    """With a = p(0|1), b = p(2|1), c = p(1|2): v(1) = (1 + b / c) / a and v(2) = v(1) + 1 / c."""
    mdp = two_steps(10.0**-k)
    P = mdp.dense()[:, 0]
    a, b, c = Fraction(P[1, 0]), Fraction(P[1, 2]), Fraction(P[2, 1])
    optimum = [Fraction(0), (1 + b / c) / a, (1 + b / c) / a + 1 / c]
    plan = gosprl.plan(mdp, [0])
    assert_true(plan, optimum, [0])
    assert plan.gap < 1e-8
    assert plan.residual <= 1e-6


@pytest.mark.parametrize("k", EXPONENTS)
@pytest.mark.parametrize("floor", ["0", "1/2", "1 - x"])
@pytest.mark.parametrize("seen", [True, False])
def test_sets_that_hardly_ever_move(k, floor, seen):
    """The goal gets x at most, as a stored successor or as one never seen: 1 / x steps."""
    x = 10.0**-k
    stay = {"0": 0.0, "1/2": 0.5, "1 - x": 1 - x}[floor]
    succ = np.array([0, 0, 1] if seen else [0, 1], dtype=np.int32)
    lower, upper = np.array([1.0, 0.0, stay]), np.array([1.0, x, 1.0])
    caps = np.array([0.0, 0.0 if seen else x])
    kept = [0, 1, 2] if seen else [0, 2]
    intervals = gosprl.Intervals(np.array([0, 1, len(kept)]), succ, lower[kept], upper[kept], caps, caps)
    plan = gosprl.plan(gosprl.EmpiricalModel(2, 1), [0], confidence=Given(intervals))
    assert_true(plan, [Fraction(0), 1 / min(Fraction(x), 1 - Fraction(stay))], [0])
    assert plan.gap < 1e-6


@pytest.mark.parametrize("known", [True, False])
def test_random_problems_at_the_edge(known):
    """Most are solved, and what is solved is true; the others have values above 1e9, and say so."""
    rng = np.random.default_rng(3)
    solved = refused = 0
    for _ in range(150):
        rows, intervals = random_extremes(rng, known)
        S, A = rows.num_states, rows.num_actions
        costs = rng.choice([np.ones((S, A)), rng.uniform(0.1, 5, (S, A))])
        optimum = rational.optimum(rows, intervals, [0], costs.ravel())
        try:
            plan = gosprl.plan(gosprl.EmpiricalModel(S, A), [0], costs=costs, confidence=Given(intervals))
        except gosprl.PrecisionError:
            assert max(best for best in optimum if best is not None) > 1e9
            refused += 1
            continue
        assert_true(plan, optimum, [0])
        assert plan.gap < COARSE
        solved += 1
    assert solved > 5 * refused


@both_methods
def test_ordinary_values_have_a_gap_of_rounding_at_least(method):
    """A plan that converged to the last bit is still not known better than that."""
    plan = gosprl.plan(gosprl.TabularMDP(chain(8, 0.3, 0.4)), [7], method=method, precision=1e-10)
    assert 1e-16 < plan.gap < 1e-9
    _assert_chain(plan, 8, 0.3, 0.4)


def _assert_chain(plan, states, up, down):
    """v(s) - v(s + 1) = (1 + down (v(s - 1) - v(s))) / up, from the bottom, where v(-1) is v(0)."""
    optimum, step = [Fraction(0)] * states, Fraction(0)
    steps = []
    for _ in range(states - 1):
        step = (1 + Fraction(down) * step) / Fraction(up)
        steps.append(step)
    for s in range(states - 2, -1, -1):
        optimum[s] = optimum[s + 1] + steps[s]
    assert_true(plan, optimum, [states - 1])


@pytest.mark.parametrize("states", [20, 30, 38, 42, 45, 50])
def test_values_that_doubles_barely_hold_say_how_well_they_are_known(states):
    """A walk with a drift away from the goal, 1e5 to 1e12 steps: no double is nearer to its neighbours' mean."""
    P = chain(states, 0.3, 0.5)
    mdp = gosprl.TabularMDP(P)
    plan = gosprl.plan(mdp, [states - 1], precision=1e-3)
    _assert_chain(plan, states, mdp.dense()[1, 0, 2], mdp.dense()[1, 0, 0])
    assert plan.gap < COARSE


@pytest.mark.parametrize("states", [60, 65, 100, 300])
def test_values_beyond_doubles_are_refused(states):
    """1e14 steps and more: rounding is as large as costs are."""
    with pytest.raises(
        gosprl.PrecisionError, match=r"was not reached.*add goals that are nearer|too rarely for doubles"
    ):
        gosprl.plan(gosprl.TabularMDP(chain(states, 0.3, 0.5)), [states - 1])


def test_the_policy_is_told_by_differences_that_values_do_not_hold():
    """Of two actions that leave with 2e-13 and 1e-13, at 1e13 steps: the difference of their values is no double's."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 0] = 1
    P[2, :, 1] = 1
    P[1, 0, [0, 1]] = 1e-13, 1 - 1e-13
    P[1, 1, [0, 1]] = 1.001e-13, 1 - 1.001e-13
    plan = gosprl.plan(gosprl.TabularMDP(P), [0], precision=1.0)
    assert plan.policy[1] == 1
    assert plan.values[1] == pytest.approx(1 / 1.001e-13, rel=1e-6)


def test_the_residual_is_that_of_the_values():
    """Of two certificates, the one of the sweeps says what v is divided by: its part of the residual counts."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        up = 10 ** -rng.uniform(0.3, 4)
        mdp, costs = gosprl.TabularMDP(chain(3, up, 1 - up)), 10 ** rng.uniform(-6, 2, 3)
        plan = gosprl.plan(mdp, [2], costs=costs, precision=1e-2)
        P, w = mdp.dense()[:, 0], [Fraction(float(x)) for x in plan.values]
        for s in range(2):
            p = {x: Fraction(float(P[s, x])) for x in range(3)}
            residual = abs(Fraction(float(costs[s])) + rational.drift(p, w, s))
            assert residual <= plan.residual * (1 + 1e-9) + 1e-14 * plan.values.max()


def test_the_price_of_an_action_that_is_not_taken_does_not_count():
    """A residual of rounding, times a cost of 1e12 that no plan pays, is still one of rounding."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.full(40, 0.05), size=(40, 2))
        costs = np.where(np.arange(2) == 1, 1e12, np.ones((40, 2)))
        plan = gosprl.plan(gosprl.TabularMDP(P), [0], costs=costs)
        assert plan.residual <= 1e-6
        assert plan.gap < 2e-6


@pytest.mark.parametrize("off", [-9e-10, -1e-12, 1e-12, 9e-10])
def test_sets_that_miss_one_by_little_are_normalised(off):
    """The mass that is missing, or too much, is not lost: 1e5 steps would be 1e-4 of themselves too few or too many."""
    p = np.array([1.0, 1e-5, (1 - 1e-5) + off])
    nothing = np.zeros(2)
    intervals = gosprl.Intervals(np.array([0, 1, 3]), np.array([0, 0, 1], dtype=np.int32), p, p, nothing, nothing)
    plan = gosprl.plan(gosprl.EmpiricalModel(2, 1), [0], confidence=Given(intervals))
    assert plan.values[1] == pytest.approx(1e5, rel=2e-9)


def test_mass_that_must_go_to_a_trap_does_not_get_lost():
    """Of state 1, at least 5e-10 goes to state 2, which is never left."""
    upper = np.array([1.0, 1e-5, 1 - 1e-5 - 5e-10, 1e-9, 1.0])
    lower, nothing = np.array([1.0, 0, 0, 0, 1]), np.zeros(3)
    succ = np.array([0, 0, 1, 2, 2], dtype=np.int32)
    intervals = gosprl.Intervals(np.array([0, 1, 4, 5]), succ, lower, upper, nothing, nothing)
    plan = gosprl.plan(gosprl.EmpiricalModel(3, 1), [0], confidence=Given(intervals))
    assert plan.values.tolist() == [0, np.inf, np.inf]
