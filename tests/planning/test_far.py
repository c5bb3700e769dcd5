"""Optimistic plans to goals that are 1e6 to 1e12 steps away, where sweeps alone would take as many."""

import time
from fractions import Fraction

import numpy as np
import pytest
import rational
from extremes import chain, counts_of

import gosprl
from gosprl.planning.certificate import COARSE, NEGLIGIBLE
from gosprl.planning.focus import Focus
from gosprl.planning.solution import SLOW
from gosprl.planning.workspace import Workspace

KL, BERNSTEIN = gosprl.KL(0.1, 1.0), gosprl.Bernstein(0.1, 1.0)


def river(states, up, slip):
    """Two actions: 0 goes down; 1 goes up with `up`, down with `slip`, and stays otherwise. P [S, 2, S]."""
    P = np.concatenate([chain(states, 0.0, 1.0), chain(states, up, slip)], axis=1)
    P[-1, 1] = P[-1, 0]
    return P


def next_door(P):
    """Candidates: what is possible, and to stay."""
    return (P > 0) | np.eye(len(P), dtype=bool)[:, None]


# P, visits of each pair, whether the possible successors are known, the sets, about the steps from state 0
FAR = {
    "drift": (chain(12, 0.1, 0.4), 10**7, True, KL, 2e7),
    "drift, bernstein": (chain(12, 0.1, 0.4), 10**9, True, BERNSTEIN, 2e7),
    "strong drift": (chain(13, 0.1, 0.8), 10**9, True, KL, 1e11),
    "strong drift, scaled": (chain(11, 0.1, 0.8), 10**6, True, gosprl.KL(0.1, 0.01), 2e9),
    "unseen mass": (chain(12, 0.1, 0.4), 10**10, False, KL, 6e7),
    "unseen mass, bernstein": (chain(10, 0.1, 0.5), 10**10, False, BERNSTEIN, 5e6),
    "river": (river(10, 0.02, 0.2), 10**7, True, KL, 5e9),
    "river, unseen mass": (river(8, 0.02, 0.2), 10**11, False, KL, 5e7),
    "narrow gate": (river(6, 1e-4, 0.05), 10**8, True, KL, 1e16),
}


def model_of(name):
    P, visits, closed, family, _ = FAR[name]
    return counts_of(P, visits, next_door(P) if closed else None), family, len(P) - 1


@pytest.mark.parametrize("name", [name for name in FAR if name != "narrow gate"])
def test_against_rational_arithmetic(name):
    model, family, goal = model_of(name)
    optimum = rational.optimum(model.rows, family.intervals(model), [goal])
    plan = gosprl.plan(model, [goal], confidence=family, precision=1e-4)
    assert 0.3 < optimum[0] / FAR[name][-1] < 3
    for s in range(goal):
        value = Fraction(float(plan.values[s]))
        assert value <= optimum[s] * (1 + Fraction(NEGLIGIBLE))
        assert optimum[s] <= (1 + Fraction(plan.gap)) * value
    assert plan.gap < COARSE
    assert plan.sweeps < 3 * SLOW


@pytest.mark.parametrize("closed", [True, False])
def test_a_long_chain_proves_its_values(closed):
    """In fractions: w <= L w, so w is at most the optimum, and (1 + gap) w >= L (1 + gap) w, so that is at least it.

    Both up to 1e-6, as w are doubles: at 1e9 steps these are 1e-7 apart.
    """
    P = chain(150, 0.45, 0.5)
    model = counts_of(P, 10**10, next_door(P) if closed else None)
    plan = gosprl.plan(model, [149])
    assert plan.values[0] > 1e6
    assert plan.sweeps < 3 * SLOW
    sets = KL.intervals(model)
    low = [Fraction(float(w)) for w in plan.values]
    high = [(1 + Fraction(plan.gap)) * Fraction(float(w)) for w in plan.values]
    for s in range(149):
        row = rational.row_of(sets, s)
        assert 1 + rational.drift(rational.least_mean(row, low), low, s) >= -1e-6
        assert 1 + rational.drift(rational.least_mean(row, high), high, s) <= 1e-6


def test_what_doubles_cannot_hold_is_refused_early():
    """1e16 steps: an error in a moment that says what was not reached."""
    model, family, goal = model_of("narrow gate")
    begun = time.process_time()
    with pytest.raises(gosprl.PrecisionError, match=r"was not reached, only .*rounding|too rarely for doubles"):
        gosprl.plan(model, [goal], confidence=family)
    assert time.process_time() - begun < 10


def test_a_precision_that_can_be_reached_is_named():
    """Values of 1e11 are multiples of 1e-5."""
    model, family, goal = model_of("strong drift")
    with pytest.raises(
        gosprl.PrecisionError, match=r"precision=1e-12 was not reached.*precision=.* can be reached"
    ) as said:
        gosprl.plan(model, [goal], confidence=family, precision=1e-12)
    precision = float(str(said.value).split("precision=")[2].split()[0])
    assert gosprl.plan(model, [goal], confidence=family, precision=precision).residual <= precision


def test_plans_of_a_run_go_on_from_far_values():
    """Counts grow between plans, each warm from the last: as from scratch."""
    P = chain(12, 0.1, 0.4)
    model, goal = counts_of(P, 10**7, next_door(P)), np.arange(12) == 11
    work, rng = Workspace(model, KL), np.random.default_rng(0)
    for _ in range(5):
        _, costs = work.plan(goal, np.ones(12), 1e-4, -1)
        cold = gosprl.plan(model, [11], precision=1e-4)
        np.testing.assert_allclose(costs[:11], cold.values[:11], rtol=1e-4)
        row = rng.integers(11, size=1000)
        model.update(row, np.zeros(1000, dtype=int), [rng.choice(12, p=P[s, 0]) for s in row])


def test_policies_too_large_for_a_linear_solve_are_swept_on(monkeypatch):
    model = counts_of(chain(8, 0.2, 0.4), 10**5, next_door(chain(8, 0.2, 0.4)))
    expected = gosprl.plan(model, [7])
    monkeypatch.setattr("gosprl.planning.exact.MAX_TRANSITIONS", 1)
    monkeypatch.setattr("gosprl.planning.solution.SLOW", 50)
    plan = gosprl.plan(model, [7])
    assert plan.sweeps > 50
    np.testing.assert_allclose(plan.values, expected.values, rtol=expected.gap + plan.gap)
    far = counts_of(chain(12, 0.1, 0.4), 10**7, next_door(chain(12, 0.1, 0.4)))
    monkeypatch.setattr("gosprl.planning.solution.MAX_WORK", 10**6)
    with pytest.raises(gosprl.PrecisionError, match=r"stopped after .* sweeps"):
        gosprl.plan(far, [11])


def test_policies_whose_factors_do_not_fit_into_memory_are_swept_on(monkeypatch):
    def full(*given):
        raise MemoryError

    model = counts_of(chain(8, 0.2, 0.4), 10**5, next_door(chain(8, 0.2, 0.4)))
    expected = gosprl.plan(model, [7])
    monkeypatch.setattr("scipy.sparse.linalg.splu", full)
    monkeypatch.setattr("gosprl.planning.solution.SLOW", 50)
    plan = gosprl.plan(model, [7])
    assert plan.sweeps > 50
    np.testing.assert_allclose(plan.values, expected.values, rtol=expected.gap + plan.gap)


def test_focused_plans_leave_far_goals_to_full_plans():
    """Where rounding exceeds their tolerance: their values stay below the optimum, and they make no plan."""
    P = chain(13, 0.1, 0.4)
    model, goal = counts_of(P, 10**9, next_door(P)), np.arange(13) == 12
    work = Workspace(model, KL)
    focus = Focus(work, np.ones(13))
    focus.set_goals(goal)
    work.plan(goal, np.ones(13), 1e-4, -1)
    assert focus.adopt()
    optimum = rational.optimum(model.rows, KL.intervals(model), [12])
    assert np.all([Fraction(float(v)) <= best for v, best in zip(focus.values, optimum, strict=True)])
    np.testing.assert_allclose(focus.values, [float(best) for best in optimum], rtol=1e-5)
    assert focus.plan(0, 1e-4, -1) is None
