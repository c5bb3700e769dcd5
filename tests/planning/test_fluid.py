"""The fluid program: against the same program written down plainly, solved by SciPy or exactly, and its duality."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from gosprl import EmpiricalModel, GosprlError, TabularMDP
from gosprl.planning import fluid
from gosprl.planning.fluid import Infeasible, solve

TOLERANCE = 1e-6  # relative


def instance(seed):
    """Rows with state-dependent actions, loops, some mass that escapes, zero costs, and needs of both kinds."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 7))
    P = rng.dirichlet(np.full(S, 0.3), size=(S, 3))
    P[rng.random((S, 3)) < 0.3] = 0
    P[P < 1e-3] = 0
    P[P.sum(axis=(1, 2)) == 0, 0, 0] = 1
    mdp = TabularMDP(P / np.maximum(P.sum(axis=2, keepdims=True), 1e-300))
    R = len(mdp.rows)
    escape = np.where(rng.random(R) < 0.2, 1.0, 0.1 * rng.random(R))
    prob = mdp.prob * (1 - np.repeat(escape, np.diff(mdp.ptr)))
    cost = np.where(rng.random(R) < 0.1, 0.0, 1.0)
    pair = rng.integers(0, 5, R) * (rng.random(R) < 0.7)
    state = rng.integers(0, 8, S) * (rng.random(S) < 0.5)
    law = rng.dirichlet(np.ones(S))
    return mdp, prob, cost, pair, state, law, escape


def plain(mdp, prob, cost, pair, state, law, escape):
    """The least cost over visits lambda [R], last states e [S] and arrivals z [S] of what escaped, dense."""
    S, R = mdp.num_states, len(mdp.rows)
    leave, arrive = np.zeros((S, R)), np.zeros((S, R))
    leave[mdp.rows.state, np.arange(R)] = 1
    np.add.at(arrive, (mdp.succ, np.repeat(np.arange(R), np.diff(mdp.ptr))), prob)
    flow = np.hstack([leave - arrive, np.eye(S), -np.eye(S)])
    escaped = np.concatenate([escape, np.zeros(S), -np.ones(S)])
    visits = np.hstack([-leave, np.zeros((S, 2 * S))])
    bounds = [(b, None) for b in pair] + [(0, None)] * (2 * S)
    right = np.append(law, 0)
    return linprog(
        np.append(cost, np.zeros(2 * S)),
        A_eq=np.vstack([flow, escaped]),
        b_eq=right,
        A_ub=visits,
        b_ub=-state,
        bounds=bounds,
        method="highs-ipm",
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_value_is_that_of_the_plain_program(seed):
    mdp, prob, *rest = instance(seed)
    flow = solve(mdp.rows, mdp.ptr, mdp.succ, prob, *rest)
    assert flow.value == pytest.approx(plain(mdp, prob, *rest).fun, rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(40))
def test_the_potentials_prove_the_value(seed):
    """v <= 0 and v(s) <= c + p v + escape * min v for all rows; what pairs are worth then adds up to the value."""
    mdp, prob, cost, pair, _, law, escape = instance(seed)
    none = np.zeros(mdp.num_states, dtype=np.int64)
    flow = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, pair, none, law, escape)
    v = flow.potential
    assert v.max() <= TOLERANCE
    q = cost + np.add.reduceat(prob * v[mdp.succ], mdp.ptr[:-1]) + escape * v.min()
    worth = q - v[mdp.rows.state]
    assert worth.min() >= -TOLERANCE
    assert law @ v + pair @ worth == pytest.approx(flow.value, rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(40))
def test_the_visits_are_a_solution(seed):
    """They cover the need, cost what the program says, and leave no more than what arrives: the rest is the end."""
    mdp, prob, cost, pair, state, law, escape = instance(seed)
    S, row = mdp.num_states, np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    flow = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, pair, state, law, escape)
    visits = flow.visits
    assert (visits >= pair - TOLERANCE).all()
    left = np.bincount(mdp.rows.state, visits, S)
    assert (left >= state - TOLERANCE).all()
    assert cost @ visits == pytest.approx(flow.value, rel=TOLERANCE, abs=TOLERANCE)
    arrived = law + np.bincount(mdp.succ, prob * visits[row], S)
    assert (np.maximum(left - arrived, 0)).sum() <= escape @ visits + TOLERANCE * (1 + visits.sum())


@pytest.mark.parametrize("seed", range(20))
def test_beginning_with_another_solution_changes_nothing(seed):
    mdp, prob, cost, pair, state, law, escape = instance(seed)
    before = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, pair, state, law, escape)
    less = np.maximum(pair - 1, 0)
    cold = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, less, state, law, escape)
    warm = solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, less, state, law, escape, before.basis)
    assert warm.value == pytest.approx(cold.value, rel=TOLERANCE, abs=TOLERANCE)


def test_more_is_needed_than_can_be_had():
    """From 0 surely to 1, which stays: 0 is seen once."""
    mdp = TabularMDP([[[0, 1]], [[0, 1]]])
    ones, law = np.ones(2), np.array([1.0, 0.0])
    none = np.zeros(2, dtype=np.int64)
    assert solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, ones, np.array([1, 3]), none, law).value == pytest.approx(4)
    with pytest.raises(Infeasible):
        solve(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, ones, np.array([2, 0]), none, law)


def lonely_pair(visits, pseudo=0.1):
    """A state never left in so many visits, a second one that may follow and leads back; the chance of that."""
    model = EmpiricalModel.from_counts([0], [0], [0], [visits], states=2, actions=1, successors=lambda s, a: {0, 1 - s})
    return model, pseudo / (visits + 2 * pseudo)


@pytest.mark.parametrize("visits", [10, 10**6, 10**9, 10**12, 4 * 10**14, 10**17])
@pytest.mark.parametrize("need", [1, 10**6, 10**12, 2**61])
def test_rows_that_hardly_ever_leave_and_large_needs_are_solved(visits, need):
    """Each visit of the second state takes 1 / p visits of the first.

    HiGHS refuses coefficients of 1e15 and more, and tolerances that are absolute mean nothing for large needs: its
    status was "Not Set", or "Unknown", and the solver's word was not heard.
    """
    model, p = lonely_pair(visits)
    state = np.array([need, need])
    flow = fluid.solve_model(model, np.zeros(2, dtype=np.int64), state, 0, None, 0.1)
    assert flow.value == pytest.approx(need / p + need, rel=1e-5)


@pytest.mark.parametrize("need", [1, 10**9, 2**61])
def test_large_needs_of_a_cycle(need):
    model = EmpiricalModel.from_counts([0, 1], [0, 0], [1, 0], [5, 5], states=2, actions=1)
    pair = np.array([need, need])
    assert fluid.solve_model(model, pair, np.zeros(2, dtype=np.int64), 0, None).value == pytest.approx(2 * need)


def known(P, pair, state, start, escape=None):
    """Solve for known dynamics, from one state; `escape` of each row goes anywhere."""
    mdp = TabularMDP(P)
    cost, law = np.ones(len(mdp.rows)), np.eye(mdp.num_states)[start]
    prob = mdp.prob if escape is None else mdp.prob * (1 - escape)
    mass = None if escape is None else np.full(len(mdp.rows), escape)
    return solve(mdp.rows, mdp.ptr, mdp.succ, prob, cost, np.array(pair), np.array(state), law, mass)


@pytest.mark.parametrize("need", [1, 28, 10**6, 2**61])
@pytest.mark.parametrize("p", [1e-9, 1e-12])
def test_departures_far_below_the_solvers_tolerance_are_made(p, need):
    """State 0 is left with chance p: `need` visits of it are need * p departures. The value was 0."""
    assert known([[[1 - p, p]], [[1, 0]]], [need, 0], [0, 0], 0).value == pytest.approx(need, rel=TOLERANCE)


@pytest.mark.parametrize("need", [10**3, 10**6, 10**12])
@pytest.mark.parametrize("p", [1e-10, 1e-12])
def test_visits_count_beside_those_of_an_action_that_hardly_ever_leaves(p, need):
    """What the second action needs is what the state needs. Its visits were left out beside the 1 / p of the first."""
    flow = known([[[1 - p, p], [0, 1]], [[1, 0], [0, 0]]], [0, need, 0], [need, 0], 0)
    assert flow.value == pytest.approx(2 * need - 1, rel=TOLERANCE)


@pytest.mark.parametrize("need", [2**30, 2**54, 2**61])
@pytest.mark.parametrize("first", [0, 1])
def test_small_numbers_beside_large_ones(first, need):
    """State 0 is seen once, on the way to state 1, which stays: a solution that could not be told from none."""
    P = [[[0, 1]], [[0, 1]]]
    assert known(P, [0, 0], [first, need], 0).value == pytest.approx(need + 1, rel=TOLERANCE)
    with pytest.raises(Infeasible):
        known(P, [2, 0], [0, need], 0)


@pytest.mark.parametrize("need", [10**6, 2**54, 2**61])
@pytest.mark.parametrize("escape", [1e-10, 1e-8])
def test_nothing_is_lost_of_what_hardly_ever_escapes(escape, need):
    """A cycle. A mass of 1e-10 that left it and arrived nowhere was more, in the end, than there was to start with."""
    flow = known([[[0, 1]], [[1, 0]]], [need, need], [0, 0], 0, escape)
    assert flow.value == pytest.approx(2 * need, rel=TOLERANCE)


def exact_least(c, A, b):
    """The least c x with A x = b, x >= 0, in rational arithmetic, by Bland's rule; None if there is no such x."""
    m, n = A.shape
    T = np.hstack([A, b[:, None]]) * np.where(b < 0, -1, 1)[:, None]
    T = np.vstack([T, np.append(c, 0), -T.sum(axis=0)])
    T = np.insert(T, [n] * m, np.eye(m + 2, m, dtype=int), axis=1) + Fraction(0)  # all are fractions: int / int is not
    basis = list(range(n, n + m))

    def pivot(r, j):
        T[r] = T[r] / T[r, j]
        for i in range(m + 2):
            if i != r and T[i, j] != 0:
                T[i] = T[i] - T[i, j] * T[r]
        basis[r] = j

    for costs in (m + 1, m):  # first that of the artificial variables
        while (j := next((j for j in range(n) if T[costs, j] < 0), None)) is not None:
            pivot(min((T[r, -1] / T[r, j], basis[r], r) for r in range(m) if T[r, j] > 0)[2], j)
        if T[m + 1, -1] != 0:
            return None
        for r in range(m):
            if basis[r] >= n and (j := next((j for j in range(n) if T[r, j] != 0), None)) is not None:
                pivot(r, j)
    return -T[m, -1]


def exact(model, pair, state, start):
    """The value for frequencies with 1/10 of a sample more for each candidate; None if there is no solution."""
    S, R = model.num_states, len(model.rows)
    ptr, succ, count, _ = model.stored(None)
    number = np.diff(ptr)
    leave, one, none = np.zeros((S, R), dtype=object), np.eye(S, dtype=object), np.zeros((S, S), dtype=object)
    leave[model.rows.state, np.arange(R)] = 1
    arrive = np.zeros((S, R), dtype=object)
    for i, r in enumerate(np.repeat(np.arange(R), number)):
        arrive[succ[i], r] = Fraction(10 * int(count[i]) + 1, 10 * int(model.visits[r]) + int(number[r]))
    A = np.vstack([np.hstack([leave - arrive, one, none]), np.hstack([leave, none, -one])[state > 0]])
    b = np.append((np.arange(S) == start).astype(int), state[state > 0]).astype(object)
    least = np.append(pair, np.zeros(2 * S, dtype=int)).astype(object)
    cost = np.append(np.ones(R, dtype=int), np.zeros(2 * S, dtype=int)).astype(object)
    rest = exact_least(cost, A, b - A @ least)
    return None if rest is None else float(rest + cost @ least)


def extreme(seed):
    """A closed model of few states with counts, and needs, from 0 to very many."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    candidate = rng.random((S, A, S)) < 0.4
    candidate[np.arange(S), :, (np.arange(S) + rng.integers(0, 2)) % S] = True
    count = candidate * rng.integers(0, 10, (S, A, S)) * 10 ** rng.integers(0, 7, (S, A, 1))
    stays = np.arange(S)
    count[stays, :, stays] *= 10 ** rng.integers(0, 7, (S, A))
    s, a, t = np.nonzero(count)
    model = EmpiricalModel.from_counts(s, a, t, count[s, a, t], states=S, actions=A, successors=candidate)
    pair = rng.integers(0, 2, S * A) * 2 ** rng.integers(0, 62, S * A)
    state = rng.integers(0, 2, S) * 2 ** rng.integers(0, 62, S)
    return model, pair * (rng.random() < 0.7), state * (rng.random() < 0.5), int(rng.integers(S))


@pytest.mark.parametrize("seed", range(60))
def test_values_are_those_of_exact_arithmetic(seed):
    """Also if begun at the solution for half of the need."""
    model, pair, state, start = extreme(seed)
    value = exact(model, pair, state, start)
    if value is None:
        with pytest.raises(Infeasible):
            fluid.solve_model(model, pair, state, start, None, 0.1)
        return
    cold = fluid.solve_model(model, pair, state, start, None, 0.1)
    half = fluid.solve_model(model, pair // 2, state // 2, start, None, 0.1)
    warm = fluid.solve_model(model, pair, state, start, None, 0.1, half.basis)
    assert [cold.value, warm.value] == pytest.approx([value, value], rel=TOLERANCE)


def test_a_program_that_interior_points_never_finished():
    """State 1 leads to 2, which has an action never tried: it leads back. State 0 is hardly ever left."""
    n = 10**12
    s, a, successor, count = [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 0], [0, 0, 2, 1, 0, 2], [n, n, 680076308649, n, 5, n]
    model = EmpiricalModel.from_counts(s, a, successor, count, states=3, actions=2)
    need = np.array([1638071827661214464, 0, 1155864469733639424, 0, 0, 491155960998526208])
    escape = np.where(model.visits == 0, 1.0, 1 / (model.visits + 1.0))
    flow = fluid.solve_model(model, need, np.zeros(3, dtype=np.int64), 1, escape)
    assert flow.value == pytest.approx(need[0] + 2.0 * need[2], rel=TOLERANCE)


@pytest.mark.parametrize(("S", "up"), [(30, 0.2), (40, 0.2), (30, 0.1)])
def test_a_need_that_takes_very_long_is_not_called_out_of_reach(S, up):
    """Against the stream: each state up the river takes (0.6 - up) / up times as long; beyond 1e12 it was "never"."""
    P = np.zeros((S, 2, S))
    s = np.arange(S)
    P[s, 0, np.maximum(s - 1, 0)] = 1
    P[s, 1, s] = 0.4
    P[s, 1, np.minimum(s + 1, S - 1)] += up
    P[s, 1, np.maximum(s - 1, 0)] += 0.6 - up
    try:
        value = known(P, np.full(2 * S, 10), np.zeros(S, dtype=int), 0).value
    except Infeasible:
        value = np.inf
    except GosprlError:  # too large for the solver, and it says so
        return
    assert 1e10 < value < np.inf


def test_an_attempt_ends_after_a_number_of_steps(monkeypatch):
    monkeypatch.setattr(fluid, "PIVOTS", (0, 0))
    mdp, prob, *rest = instance(3)
    with pytest.raises(GosprlError, match="Iteration limit"):
        solve(mdp.rows, mdp.ptr, mdp.succ, prob, *rest)


def test_what_the_solver_says_is_part_of_the_error(monkeypatch):
    monkeypatch.setattr("highspy.Highs.passModel", lambda self, lp: __import__("highspy").HighsStatus.kError)
    model, _ = lonely_pair(10)
    with pytest.raises(GosprlError, match=r"the solver refused the program; coefficients from .* needs up to"):
        fluid.solve_model(model, np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), 0, None, 0.1)
