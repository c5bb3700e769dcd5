"""Hitting times: exact rational solves of every policy on tiny MDPs, closed forms, another implementation's numbers."""

import io
import os
import signal
import sys
import threading
import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Problem, random_dynamics

from gosprl import KL, Bernstein, EmpiricalModel, InputError, PrecisionError, TabularMDP, plan
from gosprl.envs import make
from gosprl.envs.lower_bounds import epsilon_wheel, one_state_modification, two_state_chain
from gosprl.mdp.distances import OPTIMISTIC_ERROR, optimistic_times

PROMISED = 1e-9  # relative error of hitting_times


@st.composite
def weights(draw, states=4, actions=3, values=(0, 0, 0, 1, 2, 9)):
    """[S][A][S] whole numbers to be divided by their sum; a row of zeros is a missing action."""
    S, A = draw(st.integers(1, states)), draw(st.integers(1, actions))
    row = st.lists(st.sampled_from(values), min_size=S, max_size=S)
    w = draw(st.lists(st.lists(row, min_size=A, max_size=A), min_size=S, max_size=S))
    for s in range(S):
        if not any(any(row) for row in w[s]):
            w[s][draw(st.integers(0, A - 1))][draw(st.integers(0, S - 1))] = 1
    return w


def mdp_of(w):
    P = np.array(w, dtype=float)
    return TabularMDP(P / np.maximum(P.sum(axis=2, keepdims=True), 1))


def solve_exactly(M, b):
    """x with M x = b, by elimination over fractions; M is invertible."""
    n = len(b)
    rows = [[*M[i], b[i]] for i in range(n)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i] != 0:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def exact_times(chain, goal):
    """Expected steps to the goal in a Markov chain given by fractions, inf where it may never come."""
    S = len(chain)

    def ahead(s):
        found, todo = {s}, [s]
        while todo:
            x = todo.pop()
            new = {t for t in range(S) if x != goal and chain[x][t] > 0} - found
            found |= new
            todo += new
        return found

    sure = [s for s in range(S) if s != goal and all(goal in ahead(t) for t in ahead(s))]
    M = [[(s == t) - chain[s][t] for t in sure] for s in sure]
    times = dict(zip(sure, solve_exactly(M, [Fraction(1)] * len(sure)), strict=True))
    times[goal] = Fraction(0)
    return [times.get(s, np.inf) for s in range(S)]


def best_of_all_policies(w):
    S = len(w)
    laws = [[[Fraction(x, sum(row)) for x in row] for row in actions if any(row)] for actions in w]
    D = np.full((S, S), np.inf)
    for policy in product(*laws):
        for goal in range(S):
            times = exact_times(policy, goal)
            D[:, goal] = np.minimum(D[:, goal], [float(x) for x in times])
    return D


@given(weights())
@settings(max_examples=100, deadline=None)
def test_hitting_times_are_the_least_of_all_policies(w):
    np.testing.assert_allclose(mdp_of(w).hitting_times(), best_of_all_policies(w), rtol=PROMISED)


def assert_right_or_refused(mdp, expected, goals=slice(None)):
    """Times beyond what doubles can certify may be refused, but never be wrong."""
    try:
        D = mdp.hitting_times()
    except PrecisionError:
        return
    np.testing.assert_allclose(D[:, goals], expected, rtol=PROMISED)


@given(weights(actions=2, values=(0, 0, 1, 10**3, 10**6)))
@settings(max_examples=100, deadline=None)
def test_hitting_times_by_rare_events_are_right_or_refused(w):
    assert_right_or_refused(mdp_of(w), best_of_all_policies(w))


@given(weights())
@settings(max_examples=50, deadline=None)
def test_diameters_are_the_largest_hitting_times(w):
    mdp = mdp_of(w)
    D = best_of_all_policies(w)
    S = len(w)
    expected = [max([D[s, t] for s in range(S) if s != t], default=0) for t in range(S)]
    np.testing.assert_allclose(mdp.ssp_diameters(), expected, rtol=PROMISED)
    assert mdp.diameter() == pytest.approx(max(expected), rel=PROMISED)


@given(weights(states=8))
@settings(max_examples=100, deadline=None)
def test_triangle_inequality(w):
    D = mdp_of(w).hitting_times()
    for s, t, u in np.ndindex(len(w), len(w), len(w)):
        assert D[s, u] <= (D[s, t] + D[t, u]) * (1 + 2 * PROMISED)


@given(weights(states=8))
@settings(max_examples=100, deadline=None)
def test_hitting_times_solve_bellmans_equation(w):
    mdp = mdp_of(w)
    D = mdp.hitting_times()
    S = len(w)
    assert np.all(np.diag(D) == 0)
    for s, t in np.ndindex(S, S):
        if s != t:
            rows = [np.array(row) / sum(row) for row in w[s] if any(row)]
            ahead = [1 + sum(p * D[x, t] for x, p in enumerate(row) if p > 0) for row in rows]
            assert D[s, t] == pytest.approx(min(ahead), rel=3 * PROMISED)


def test_reference_domains(reference_domains):
    for name, known in reference_domains.items():
        mdp = make(name)
        assert (mdp.num_states, mdp.num_actions, mdp.start) == (known["states"], known["actions"], known["start"])
        rounding = 5e-10  # the file's
        np.testing.assert_allclose(mdp.ssp_diameters(), known["D_s"], rtol=PROMISED, atol=rounding, err_msg=name)
        np.testing.assert_allclose(mdp.diameter(), known["D"], rtol=PROMISED, atol=rounding, err_msg=name)


def test_riverswim_as_printed():
    printed = [5, 4, 4.7619, 8.0612, 11.3897, 14.7223]
    np.testing.assert_array_equal(np.round(make("riverswim6").ssp_diameters(), 4), printed)
    assert round(make("riverswim36").diameter(), 4) == 114.7222


@pytest.mark.parametrize("q", [1, 0.9, 0.5, 0.3, 1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
def test_two_state_chain(q):
    mdp = two_state_chain(q)
    np.testing.assert_array_equal(mdp.hitting_times(), [[0, 1 / q], [1, 0]])
    np.testing.assert_array_equal(mdp.ssp_diameters(), [1, 1 / q])
    assert mdp.diameter() == 1 / q


@pytest.mark.parametrize("nu", [0.9, 0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12])
def test_toy3(nu):
    """States 0 and 2 alternate until state 1 comes up, with nu each time."""
    from_0_to_2 = (1 + nu) / (1 - nu)  # x = 1 + nu (1 + x)
    expected = [[0, 1 / nu, from_0_to_2], [1, 0, 1 + from_0_to_2], [1 + nu, 1 / nu, 0]]
    mdp = make("toy3", nu=nu)
    assert_right_or_refused(mdp, expected)
    if nu >= 1e-6:
        assert mdp.diameter() == pytest.approx(np.max(expected), rel=PROMISED)


def test_epsilon_wheel():
    """From rim to rim by the center: one step, then 1 / epsilon."""
    mdp = epsilon_wheel([0.5, 1e-3, 1e-6])
    np.testing.assert_allclose(
        mdp.hitting_times(),
        [[0, 2, 1e3, 1e6], [1, 0, 1e3 + 1, 1e6 + 1], [1, 3, 0, 1e6 + 1], [1, 3, 1e3 + 1, 0]],
        rtol=PROMISED,
    )


def against_the_stream(length):
    """A walk on 0 .. length: up with 1/4, else down; both ends reflect."""
    s = np.arange(length + 1)
    down, up = np.maximum(s - 1, 0), np.minimum(s + 1, length)
    return TabularMDP((np.tile(s, 2), np.tile(0 * s, 2), np.append(down, up), np.repeat([0.75, 0.25], length + 1)))


@pytest.mark.parametrize("length", [1, 5, 9, 15, 18, 22, 30])
def test_a_walk_against_the_stream(length):
    """The steps h_i from i to i + 1: h_0 = 4, h_i = 4 + 3 h_{i-1}, so h_i = 6 3^i - 2; from 0 to n 3^(n+1) - 3 - 2n."""
    mdp = against_the_stream(length)
    from_0 = [3 ** (n + 1) - 3 - 2 * n for n in range(length + 1)]
    assert_right_or_refused(mdp, np.array([float(from_0[-1] - x) for x in from_0]), length)
    if length <= 9:
        assert mdp.diameter() == pytest.approx(from_0[-1], rel=PROMISED)


@pytest.mark.parametrize("length", [4, 12, 24, 40])
def test_runs_of_successes(length):
    """Fair coins until n heads in a row: 2^(n + 1) - 2 tosses, 2^(k + 1) - 2 less when k of them are there."""
    k = np.arange(length + 1)
    parts = (
        np.tile(k, 2),
        np.tile(0 * k, 2),
        np.append(0 * k, np.minimum(k + 1, length)),
        np.full(2 * length + 2, 0.5),
    )
    mdp = TabularMDP(parts)
    assert_right_or_refused(mdp, 2.0 ** (length + 1) - 2.0 ** (k + 1), length)
    if length <= 12:
        assert mdp.diameter() == pytest.approx(2 ** (length + 1) - 2, rel=PROMISED)


def test_a_random_chain_against_an_exact_solve():
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, size=(12, 12)) * (rng.random((12, 12)) < 0.3)
    w[np.arange(12), np.roll(np.arange(12), -1)] += 1  # a ring makes it communicating
    chain = [[Fraction(int(x), int(row.sum())) for x in row] for row in w]
    D = TabularMDP((w / w.sum(axis=1, keepdims=True))[:, None]).hitting_times()
    for goal in range(12):
        np.testing.assert_allclose(D[:, goal], [float(x) for x in exact_times(chain, goal)], rtol=PROMISED)


@pytest.mark.parametrize("risk", [0.5, 1e-8, 1e-12, 1e-15])
def test_nothing_leads_surely_to_a_state_that_chance_may_miss(risk):
    """0 goes to 1 or, with the risk, to 2; both stay."""
    D = TabularMDP([[[0, 1 - risk, risk]], [[0, 1, 0]], [[0, 0, 1]]]).hitting_times()
    np.testing.assert_array_equal(D, [[0, np.inf, np.inf], [np.inf, 0, np.inf], [np.inf, np.inf, 0]])


def test_a_risky_shortcut_is_not_taken():
    """From 0, action 0 goes to 1 or, once in 1e12, into the trap 2; action 1 goes round by 3 and 4."""
    s, a, s_next = [0, 0, 0, 1, 2, 3, 4], [0, 0, 1, 0, 0, 0, 0], [1, 2, 3, 1, 2, 4, 1]
    mdp = TabularMDP((s, a, s_next, [1 - 1e-12, 1e-12, 1, 1, 1, 1, 1]))
    np.testing.assert_array_equal(mdp.hitting_times()[:, 1], [3, 0, np.inf, 2, 1])


def test_one_state_modification_of_four_rooms(reference_domains):
    """The hitting times to the changed state stay as they are; all its actions lead to the state farthest from it."""
    mdp = make("four_room43")
    D = mdp.hitting_times()
    modified = one_state_modification(mdp)
    changed = np.flatnonzero(np.any(modified.dense() != mdp.dense(), axis=(1, 2)))
    assert len(changed) == 1
    far = modified.p(changed[0], 0)[0]
    assert len(far) == 1
    assert D[far[0], changed[0]] == pytest.approx(reference_domains["four_room43"]["D"], rel=2 * PROMISED)
    np.testing.assert_allclose(modified.hitting_times()[:, changed[0]], D[:, changed[0]], rtol=2 * PROMISED)


def test_results_are_copies():
    mdp = two_state_chain(0.5)
    mdp.hitting_times()[:] = 7
    mdp.ssp_diameters()[:] = 7
    np.testing.assert_array_equal(mdp.hitting_times(), [[0, 2], [1, 0]])
    np.testing.assert_array_equal(mdp.ssp_diameters(), [1, 2])
    assert mdp.diameter() == 2


def test_one_state():
    mdp = TabularMDP(np.ones((1, 2, 1)))
    np.testing.assert_array_equal(mdp.hitting_times(), [[0]])
    np.testing.assert_array_equal(mdp.ssp_diameters(), [0])
    assert mdp.diameter() == 0


LARGE = {  # not communicating, communicating, far
    "cliffs": lambda: TabularMDP(np.eye(40)[np.minimum(np.arange(40)[:, None] + [0, 1, 2], 39)]),
    "grid": lambda: make("open_grid", rows=9, columns=11),
    "garnet": lambda: make("garnet", states=150, actions=3, branching=3),
    "river": lambda: make("riverswim120"),
    "full rows": lambda: make("noisy_riverswim60"),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_number_of_workers_changes_no_bit(name):
    alone = LARGE[name]().hitting_times(workers=1)
    for workers in (2, 5, None):
        np.testing.assert_array_equal(LARGE[name]().hitting_times(workers=workers), alone)
    np.testing.assert_array_equal(LARGE[name]().ssp_diameters(), alone.max(axis=0))


@pytest.mark.parametrize("length", [2, 7, 400])
def test_riverswim_in_closed_form(length):
    """The steps e_i from i to i + 1: e_0 = 1 / 0.6 and e_i = 1 + 0.6 e_i + 0.05 (e_{i-1} + e_i)."""
    up = [1 / 0.6]
    for _ in range(length - 2):
        up.append((1 + 0.05 * up[-1]) / 0.35)
    mdp = make("riverswim", states=length)
    goal = length - 1
    expected = np.append(np.cumsum(up[::-1])[::-1], 0)
    np.testing.assert_allclose(mdp.hitting_times()[:, goal], expected, rtol=PROMISED)
    np.testing.assert_allclose(mdp.hitting_times()[:, 0], np.arange(length), rtol=PROMISED)


@pytest.mark.parametrize("name", LARGE)
def test_diameters_of_some_goals(name):
    goals = [3, 0, 17, 3]
    whole = LARGE[name]().ssp_diameters()
    mdp = LARGE[name]()
    np.testing.assert_array_equal(mdp.ssp_diameters(goals), whole[goals])
    mdp.hitting_times()
    np.testing.assert_array_equal(mdp.ssp_diameters(goals), whole[goals])  # looked up


def test_a_sampled_diameter_is_a_lower_bound_that_seeds_repeat():
    mdp = LARGE["garnet"]()
    sampled = [mdp.diameter(sample=5, seed=seed) for seed in range(8)]
    assert sampled == [LARGE["garnet"]().diameter(sample=5, seed=seed) for seed in range(8)]
    assert len(set(sampled)) > 1
    assert set(sampled) <= set(mdp.ssp_diameters())
    assert max(sampled) <= mdp.diameter()
    assert mdp.diameter(sample=mdp.num_states) == mdp.diameter(sample=10**9) == mdp.diameter()


def test_each_result_is_computed_once(monkeypatch):
    mdp = LARGE["grid"]()
    times, diameters = mdp.hitting_times(), LARGE["grid"]().ssp_diameters()
    monkeypatch.setattr("gosprl.mdp.distances._for_each_goal", None)
    np.testing.assert_array_equal(mdp.hitting_times(), times)
    np.testing.assert_array_equal(mdp.ssp_diameters(), diameters)
    assert mdp.diameter() == mdp.diameter(sample=mdp.num_states) == diameters.max()


def test_a_large_grid_of_which_a_few_goals_are_solved():
    """The corner's opposite is 2 * 99 moves away, each of which takes 1 / 0.9 steps or more."""
    diameter = make("open_grid", rows=100, columns=100).ssp_diameters([0])[0]
    assert 2 * 99 / 0.9 < diameter < 2 * 99 / 0.8


def test_progress_counts_the_goals(monkeypatch):
    monkeypatch.setattr("gosprl.progress.PERIOD", 0.0)
    told = []
    mdp = LARGE["river"]()
    mdp.hitting_times(progress=told.append)
    assert [status["done"] for status in told] == list(range(1, 121))
    assert {status["goals"] for status in told} == {120}
    mdp.hitting_times(progress=told.append)
    assert len(told) == 120
    LARGE["river"]().ssp_diameters([4, 5], progress=told.append)
    assert told[-1]["done"] == told[-1]["goals"] == 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_progress_is_written_over_on_a_terminal_and_one_line_elsewhere(monkeypatch, stream):
    monkeypatch.setattr("sys.stderr", stream())
    LARGE["river"]().diameter(sample=3, progress=True)
    shown = sys.stderr.getvalue()
    assert "3 of 3 goals" in shown
    assert shown.endswith("left\n")
    assert shown.count("\n") == 1
    assert ("\r" in shown) == (stream is Terminal)


@pytest.mark.parametrize("wrong", ["yes", 1, 0.5, []])
def test_progress_that_is_none(wrong):
    with pytest.raises(InputError, match="progress: expected True, False, None or a callable, got"):
        make("riverswim6").diameter(progress=wrong)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_ends_it_at_once_and_nothing_half_done_is_kept():
    mdp = make("open_grid", rows=45, columns=45)
    mdp.ssp_diameters([0])
    over = threading.Event()

    def interrupt():  # again if need be: Python drops what a callback raises, and it may be in one just then
        while not over.wait(0.2 if time.monotonic() < begin + 0.2 else 2.0):
            os.kill(os.getpid(), signal.SIGINT)

    begin = time.monotonic()
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        mdp.hitting_times()
    over.set()
    interrupter.join()
    assert time.monotonic() - begin < 3  # in full it takes more than that
    deadline = time.monotonic() + 10
    while any(thread.name.startswith("ThreadPool") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert mdp._times is None


def test_an_error_is_that_of_the_first_goal_and_ends_the_others(monkeypatch):
    monkeypatch.setattr("gosprl.mdp.distances.RELATIVE_ERROR", 0.0)
    with pytest.raises(PrecisionError, match=r"a relative error of 0\.0 was not reached"):
        LARGE["garnet"]().hitting_times()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda mdp: mdp.hitting_times(workers=0), "^workers: expected a whole number >= 1, got 0"),
        (lambda mdp: mdp.diameter(sample=0), "^sample: expected a whole number >= 1, got 0"),
        (lambda mdp: mdp.ssp_diameters([]), "^goals: expected an array of at least one state, got shape"),
        (lambda mdp: mdp.ssp_diameters(3), "^goals: expected an array of at least one state, got shape"),
        (lambda mdp: mdp.ssp_diameters([0, 6]), "^goals: expected states in 0..5, got 6 at index 1"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call(make("riverswim6"))


def test_linear_solves_are_for_many_sweeps_not_for_many_pieces_of_work(monkeypatch):
    expected = LARGE["grid"]().ssp_diameters([0])
    monkeypatch.setattr("gosprl.planning.solution.WORK_PER_CALL", 40_000)  # some twenty sweeps a piece
    monkeypatch.setattr("gosprl.planning.solution.policy_iteration", None)
    np.testing.assert_allclose(LARGE["grid"]().ssp_diameters([0]), expected, rtol=PROMISED)


@pytest.mark.parametrize("rare", [1e-17, 1e-160, 1e-299, 1e-309, 5e-324])
def test_ways_that_nobody_waits_for_are_avoided_or_refused(rare):
    """From 0 to 1 rarely, else to 2; from 2 back, or, by another action, to 1 with a hundredth."""
    s, a, s_next = [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1], [1, 2, 1, 0, 1, 0]
    mdp = TabularMDP((s, a, s_next, [rare, 1, 1, 1, 0.01, 0.99]))
    np.testing.assert_allclose(mdp.hitting_times()[:, 1], [200, 0, 199], rtol=PROMISED)
    without = TabularMDP((s[:4], a[:4], s_next[:4], [rare, 1, 1, 1]))
    with pytest.raises(PrecisionError, match="too rarely for doubles"):
        without.hitting_times()


def counted(rng, S, A, share=0.7, closed=False):
    """Counts of random dynamics, of some of the pairs only; and the dynamics."""
    P = random_dynamics(rng, S, A)
    model = EmpiricalModel(S, P.sum(axis=2) > 0, successors=P > 0 if closed else None)
    for row in range(len(model.rows)):
        s, a = model.rows.pair(row)
        n = int(rng.choice([1, 20, 2000]))
        if rng.random() < share:
            model.update(np.full(n, s), np.full(n, a), rng.choice(S, size=n, p=P[s, a]))
    return model, P


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("family", [KL(0.1), KL(0.1, scale=0.01), Bernstein(0.1, scale=0.1)])
def test_optimistic_times_are_plans_to_every_goal(closed, family):
    rng = np.random.default_rng(0)
    for _ in range(15):
        model, _ = counted(rng, int(rng.integers(1, 7)), int(rng.integers(1, 4)), closed=closed)
        times = optimistic_times(model, family)
        for g in range(model.num_states):
            expected = plan(model, [g], confidence=family, precision=1e-9).values
            np.testing.assert_allclose(times[:, g], expected, rtol=2 * OPTIMISTIC_ERROR)
        assert np.all(np.diag(times) == 0)


def test_optimistic_times_begun_anywhere_are_the_same():
    """From other times, from nonsense, from infinities; never more than the optimum, nor less by more than 1e-6."""
    rng = np.random.default_rng(1)
    for _ in range(15):
        model, _ = counted(rng, int(rng.integers(2, 7)), 2, closed=bool(rng.random() < 0.3))
        S, family = model.num_states, KL(0.1, scale=0.1)
        sets = Problem.from_intervals(model.rows, family.intervals(model), [])
        cold = optimistic_times(model, family)
        for warm in (
            cold,
            50 * rng.random((S, S)),
            np.full((S, S), np.inf),
            np.where(rng.random((S, S)) < 0.5, np.inf, 7),
        ):
            before = warm.copy()
            times = optimistic_times(model, family, warm)
            np.testing.assert_array_equal(warm, before)
            for g in range(S):
                sets.goals = [g]
                best = (
                    sets.points().optimum([g]) if S < 5 else plan(model, [g], confidence=family, precision=1e-10).values
                )
                assert np.all(times[:, g] <= best * (1 + 1e-9))
                assert np.all(times[:, g] >= best * (1 - 2 * OPTIMISTIC_ERROR))


def test_optimistic_times_are_at_most_the_true_ones():
    """Where the truth is in the sets, which is looked at first."""
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(30):
        model, P = counted(rng, 5, 2)
        sets = Problem.from_intervals(model.rows, KL(0.1).intervals(model), [])
        truth = P[model.rows.state, model.rows.action]
        unseen = np.where(sets.seen, 0, truth).sum(axis=1)
        if np.all((truth >= sets.lower) & (truth <= sets.upper)) and np.all(unseen <= sets.total):
            inside += 1
            assert np.all(optimistic_times(model, KL(0.1)) <= TabularMDP(P).hitting_times() * (1 + 2 * PROMISED))
    assert inside > 15


def test_optimistic_times_of_states_never_found_and_of_resets():
    """State 3 was never found, and may lead anywhere in a step; an episode ends in 2, the reset leads to 0."""
    model = EmpiricalModel(4, 2)
    model.allow_resets("terminal")
    final, reset = model.final(2), model.states.reset
    n = 100_000
    for s, a, s_next in ((0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, final), (final, 0, reset), (reset, 0, 0)):
        model.update(np.full(n, s), np.full(n, a), np.full(n, s_next))
    times = optimistic_times(model, KL(0.1))
    known = np.ix_([0, 1, 4], [0, 1, 4])  # the last is the ending: from there one step leads to the start
    np.testing.assert_allclose(times[known], [[0, 1, 2], [1, 0, 1], [1, 2, 0]], rtol=1e-3)
    np.testing.assert_allclose(times[3], [1, 1, 1, 0, 1])
    assert np.all(times[[0, 1, 4], 3] > 100)  # nothing led there in so many tries
    assert np.all(np.isfinite(times))


@pytest.mark.parametrize("cost", [0.5, 1.0, 3.0])
def test_optimistic_times_with_resets_at_any_time(cost):
    """0 -> 1 -> 2 -> 2, and resets lead to 0; what is not discovered may be the goal itself, at worst."""
    model = EmpiricalModel(None, 1)
    model.allow_resets("anytime")
    model.reset_cost = cost
    places, n = [model.locate(key) for key in "abc"], 100_000
    for s, s_next in ((0, 1), (1, 2), (2, 2)):
        model.update(np.full(n, places[s]), np.full(n, 0), np.full(n, places[s_next]))
    model.update(np.full(n, model.states.reset), np.full(n, 0), np.full(n, places[0]))
    times = optimistic_times(model, KL(0.1))
    exact = np.array([[0, 1, 2], [cost, 0, 1], [cost, cost + 1, 0]])
    assert np.all(times <= exact + 1e-9)
    np.testing.assert_allclose(times, exact, rtol=1e-2)


def test_optimistic_times_where_candidates_leave_no_way():
    """0 and 1 lead to each other or to 2, from which nothing leads back."""
    model = EmpiricalModel(3, 1, successors=lambda s, a: [[1, 2], [0, 2], [2]][s])
    times = optimistic_times(model, KL(0.1))
    np.testing.assert_allclose(times, [[0, 1, 1], [1, 0, 1], [np.inf, np.inf, 0]])
    model.update([0] * 1000, [0] * 1000, [1, 2] * 500)
    times = optimistic_times(model, KL(0.1))
    assert np.isinf(times[0, 1])  # it may be missed now
    assert np.all(times[:2, 2] < 3)
