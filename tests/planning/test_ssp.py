"""The planner against linear programs, brute force, Storm, and answers worked out by hand."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Given, Points, Problem, first_step, least_expectation, random_dynamics, random_problem, random_set
from scipy.stats import chi2

import gosprl
from gosprl import _kernels
from gosprl.planning.ssp import surely_reaching
from gosprl.planning.workspace import Workspace, as_sets

both_methods = pytest.mark.parametrize("method", ["value-iteration", "modified-policy-iteration"])
seeds = st.integers(0, 2**32 - 1)

ROUNDING = 1e-11  # relative; the expected values below stay under 1e4


def deterministic(*targets):
    """A TabularMDP from each state's list of successors, one per action."""
    s, a, s_next = zip(*((s, a, x) for s, row in enumerate(targets) for a, x in enumerate(row)), strict=True)
    return gosprl.TabularMDP((s, a, s_next, np.ones(len(s))), states=len(targets))


def instances(count, seed, farthest=1e4, **options):
    """Random problems with their vertices and optimum; goals are not very far, for time and rounding."""
    rng = np.random.default_rng(seed)
    while count:
        problem = random_problem(rng, **options)
        points = problem.points()
        optimum = points.optimum(problem.goals)
        if optimum[np.isfinite(optimum)].max() < farthest:
            count -= 1
            yield problem, points, optimum


def assert_certified(plan, points, goals, optimum, precision=1e-6):
    """Everything that `Plan` promises about its numbers, for a problem given by its vertices."""
    alive = np.isfinite(optimum)
    assert np.array_equal(np.isfinite(plan.values), alive)
    w, best = plan.values[alive], optimum[alive]
    assert np.all(w <= best * (1 + ROUNDING))
    assert np.all(best <= (1 + plan.gap) * w * (1 + ROUNDING))
    residual = np.abs(points.apply(plan.values, goals)[alive] - w).max()
    assert residual <= plan.residual + ROUNDING * best.max()
    assert plan.residual <= precision

    leave = first_step(points, optimum, goals)
    assert np.array_equal(np.isfinite(plan.start_cost), np.isfinite(leave))
    assert np.array_equal(plan.rows < 0, np.isinf(leave))
    assert np.array_equal(plan.policy < 0, np.isinf(leave))
    can = np.isfinite(leave)
    assert np.all(plan.start_cost[can] <= leave[can] * (1 + ROUNDING))
    assert np.all(leave[can] <= (1 + plan.gap) * plan.start_cost[can] * (1 + ROUNDING))

    own = points.of_rows(plan.rows[alive]).optimum(goals)
    tie = 2e-6  # actions within 1e-6 of the best, times the smallest cost, may be taken for it
    assert np.all(own[alive] <= best * (1 + plan.gap) * (1 + tie))


def row_values(rows, intervals, costs, v, kernel=_kernels.sweep):
    """[R] the package's value of each row for v, where inf marks states that must not be met."""
    sets = as_sets(rows, intervals)
    S, R = rows.num_states, len(rows)
    alive = np.isfinite(v)
    n_alive = int(alive.sum())
    usable = np.array([_kernels.stays_alive(sets, r, alive, n_alive) for r in range(R)])
    values = np.where(alive, v, _kernels.DEAD)
    order, rank, prefix = np.arange(S), np.arange(S), np.zeros(S + 1)
    _kernels.rank_states(values, order, rank)
    _kernels.accumulate(values, order, n_alive, prefix)
    q, best, nobody = np.full(R, np.inf), np.full(S, -1), np.zeros(S, dtype=bool)
    frozen = _kernels.new_frozen(S, *_kernels.frozen_room(sets, order, S))
    everything = (order, n_alive, order, rank, prefix, n_alive)
    q[usable] = -np.inf
    kernel(sets, costs, usable, nobody, values, *everything, best, q, 0.0, values.copy(), frozen)
    return q


def one_state_rows(sets):
    """Rows that all belong to state 0, whose value is least, plus a loop for every other state; as a Problem."""
    seen, lower, upper, each, total = (np.array(part) for part in zip(*sets, strict=True))
    S, R = seen.shape[1], len(seen)
    exists = np.zeros((S, R), dtype=bool)
    exists[0] = exists[:, 0] = True
    loops = np.eye(S)[1:]
    return Problem(
        exists,
        np.vstack([seen, loops > 0]),
        np.vstack([lower, loops]),
        np.vstack([upper, loops]),
        np.append(each, np.zeros(S - 1)),
        np.append(total, np.zeros(S - 1)),
        np.ones((S, R)),
        [0],
    )


# The operator


@pytest.mark.parametrize("dead", [False, True])
def test_a_row_is_worth_what_the_linear_program_says(dead):
    rng = np.random.default_rng(1)
    S = 8
    problem = one_state_rows([random_set(rng, S) for _ in range(250)])
    v = np.append(0.0, rng.choice([1.0, 2.0, *rng.uniform(0, 9, 5)], size=S - 1))  # some values are equal
    if dead:
        v[[2, 5]] = np.inf
    rows = problem.model().rows
    q = row_values(rows, problem.intervals(), problem.row_cost, v)[:250]
    parts = zip(problem.seen, problem.lower, problem.upper, problem.total, strict=True)
    expected = [1 + least_expectation(v, *row)[0] for row in itertools.islice(parts, 250)]
    assert q == pytest.approx(expected, abs=1e-9)  # HiGHS is asked for 1e-10
    assert np.isinf(expected).any() == dead
    assert np.isfinite(expected).sum() > 100


def test_a_row_is_worth_its_best_vertex():
    for problem, points, _ in instances(100, seed=2):
        v = np.random.default_rng(3).uniform(0, 9, len(problem.exists))
        q = row_values(problem.model().rows, problem.intervals(), problem.row_cost, v)
        expected = np.full(len(q), np.inf)
        np.minimum.at(expected, points.row, points.q(v))
        assert q == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dead", [False, True])
def test_unseen_states_that_share_the_cap_evenly(dead):
    """`each` times their number may exceed `total` by one rounding: nothing may be given to a state after the last.

    Without jit, so that an index beyond the end is an error and not somebody else's memory.
    """
    kernel = getattr(_kernels.sweep, "py_func", _kernels.sweep)
    for m, percent in itertools.product(range(2, 9), range(1, 100)):
        S, share = m + 2, percent / 100
        seen = np.arange(S) == 0
        if dead:
            seen[-1] = True
        lower = np.where(np.arange(S) == 0, 1 - share, 0.0)
        upper = np.where(np.arange(S) == 0, 1 - share, share / (m if dead else m + 1))
        problem = one_state_rows([(seen, lower, upper, upper[1], share)])
        v = np.append(0.0, np.ones(S - 1))
        if dead:
            v[-1] = np.inf
        q = row_values(problem.model().rows, problem.intervals(), problem.row_cost, v, kernel)
        assert q[0] == pytest.approx(1 + share, abs=1e-12)


# The optimum


@both_methods
def test_reference_plans(reference_plans, method):
    for instance in reference_plans:
        S, A = instance["states"], instance["actions"]
        seen = np.array(instance["counts"]).reshape(S * A, S) > 0
        lower, upper = (np.array(instance[end]).reshape(S * A, S) for end in ("lower", "upper"))
        each = np.where(seen, 0, upper).max(axis=1)
        total = np.array(instance["total"]).reshape(S * A)
        exists, costs = np.ones((S, A), dtype=bool), np.array(instance["costs"])
        problem = Problem(exists, seen, lower, upper, each, total, costs, instance["goals"])
        plan = problem.plan(method=method, precision=1e-9)
        assert plan.values == pytest.approx(instance["values"], rel=0, abs=1e-6)


@both_methods
def test_the_optimum_is_that_of_the_vertices(method):
    open_sets, closed_sets = instances(120, seed=4), instances(40, seed=18, A=1, closed=1, shares=[0.3, 0.5])
    unreachable = 0
    for problem, points, optimum in itertools.chain(open_sets, closed_sets):
        assert_certified(problem.plan(method=method), points, problem.goals, optimum)
        unreachable += np.isinf(optimum).any()
    assert unreachable > 5


@both_methods
@pytest.mark.parametrize("precision", [1e-2, 1e-9])
def test_precision_is_what_was_asked_for(method, precision):
    sweeps = 0
    for problem, points, optimum in instances(40, seed=5, farthest=100):
        plan = problem.plan(method=method, precision=precision)
        assert_certified(plan, points, problem.goals, optimum, precision)
        sweeps += plan.sweeps
    assert sweeps > 80  # so that it took some work


@both_methods
def test_known_dynamics_against_every_policy(method):
    rng = np.random.default_rng(6)
    for _ in range(40):
        S, A = rng.integers(2, 5), rng.integers(1, 4)
        P, costs = random_dynamics(rng, S, A), rng.uniform(0.5, 4, (S, A))
        goals = sorted(rng.choice(S, size=rng.integers(1, S), replace=False).tolist())
        points = Points.from_dense(P, costs)
        optimum = points.best_of_all_policies(goals)
        plan = gosprl.plan(gosprl.TabularMDP(P), goals, costs=costs, method=method)
        assert_certified(plan, points, goals, optimum)


@both_methods
@pytest.mark.parametrize("family", [gosprl.KL(0.1, 0.1), gosprl.Bernstein(0.1, 0.03)])
def test_counts_of_ten_states_against_linear_programs(method, family):
    rng = np.random.default_rng(17)
    for visits in (10, 100, 1000):
        P = random_dynamics(rng, 10, 2)
        s, a = np.nonzero(P.any(axis=2))
        counts = np.array([rng.multinomial(visits, row / row.sum()) for row in P[s, a]])
        row, s_next = np.nonzero(counts)
        model = gosprl.EmpiricalModel.from_counts(
            s[row], a[row], s_next, counts[row, s_next], states=10, actions=P.any(axis=2)
        )
        goals, costs = [3, 7], rng.uniform(1, 5, (10, 2))
        optimum = Problem.from_intervals(model.rows, family.intervals(model), goals, costs).optimum()
        plan = gosprl.plan(model, goals, costs=costs, confidence=family, method=method)
        assert np.all(plan.values <= optimum * (1 + 1e-9))
        assert np.all(optimum <= (1 + plan.gap) * plan.values * (1 + 1e-9))


@both_methods
@pytest.mark.parametrize("family", [gosprl.KL(0.1, 1.0), gosprl.KL(0.1, 0.1), gosprl.Bernstein(0.1, 0.1)])
def test_closed_models_against_every_vertex(method, family):
    """Candidates of which some were never seen, pairs never tried, states from which no goal can be reached."""
    rng = np.random.default_rng(23)
    unreached = untried = 0
    for _ in range(60):
        S, A = int(rng.integers(2, 6)), int(rng.integers(1, 3))
        possible = rng.random((S, A, S)) < 0.4
        possible[:, :, 0] |= ~possible.any(axis=2)
        counts = rng.multinomial(rng.choice([0, 5, 200], (S, A)), possible / possible.sum(axis=2, keepdims=True))
        s, a, s_next = np.nonzero(counts)
        options = {"states": S, "actions": A, "successors": possible}
        model = gosprl.EmpiricalModel.from_counts(s, a, s_next, counts[s, a, s_next], **options)
        goals, costs = [int(rng.integers(S))], rng.uniform(0.5, 4, (S, A))
        points = Problem.from_intervals(model.rows, family.intervals(model), goals, costs).points()
        optimum = points.optimum(goals)
        plan = gosprl.plan(model, goals, costs=costs, confidence=family, method=method)
        assert_certified(plan, points, goals, optimum)
        unreached += np.isinf(optimum).sum()
        untried += (model.visits == 0).sum()
    assert unreached > 20
    assert untried > 60


def test_an_untried_pair_of_a_closed_model_leads_to_its_candidates_only():
    """A line of cells: without a single sample, the optimistic way is as long as the line."""
    model = gosprl.EmpiricalModel(20, 2, lambda s, a: {max(0, s - 1), s, min(19, s + 1)})
    np.testing.assert_allclose(gosprl.plan(model, [19]).values, np.arange(19, -1, -1))
    island = gosprl.EmpiricalModel(4, 1, lambda s, a: [s, s ^ 1])  # 0 and 1, and apart from them 2 and 3
    np.testing.assert_allclose(gosprl.plan(island, [0]).values, [0, 1, np.inf, np.inf])


@pytest.fixture(scope="module")
def never_seen():
    """A model of twelve states whose one action each was tried often and never led to state 3 but from state 11."""
    transitions = [(0, 1, 1198), (0, 9, 17350), (1, 4, 28171), (2, 6, 2267), (2, 8, 7673), (3, 6, 5996)]
    transitions += [(3, 9, 12178), (4, 8, 26406), (5, 7, 42469), (6, 4, 19608), (7, 7, 35290), (8, 6, 9811)]
    transitions += [(8, 9, 66), (9, 10, 43688), (10, 4, 35117), (10, 7, 4402), (11, 3, 2161), (11, 10, 16213)]
    s, s_next, count = zip(*transitions, strict=True)
    return gosprl.EmpiricalModel.from_counts(s, [0] * len(s), s_next, count, states=12, actions=1)


@both_methods
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_a_goal_that_is_only_not_ruled_out(never_seen, method, scale):
    """Only what the caps leave leads there: tens of thousands of steps away, where sweeps change little."""
    plan = gosprl.plan(never_seen, [3], scale=scale, method=method)
    optimum = Problem.from_intervals(never_seen.rows, gosprl.KL(0.1, scale).intervals(never_seen), [3]).optimum()
    assert optimum.max() > 3000 / scale
    assert np.all(plan.values <= optimum * (1 + 1e-9))
    assert np.all(optimum <= (1 + plan.gap) * plan.values * (1 + 1e-9))


@both_methods
def test_a_cheap_way_to_wait_does_not_hide_the_way_out(method):
    """Waiting costs 0.6, trying to leave 5 and works once in 10^4: waiting looks better until values reach 44000."""
    p = 1e-4
    intervals = gosprl.Intervals(
        ptr=np.array([0, 1, 2, 4]),
        succ=np.array([0, 1, 0, 1], dtype=np.int32),
        lower=np.array([1.0, 0.97, 0.0, 1 - p]),
        upper=np.array([1.0, 1.0, 0.2, 1 - p]),
        each=np.zeros(3),
        total=np.zeros(3),
    )
    model = gosprl.EmpiricalModel(2, np.array([[True, False], [True, True]]))
    plan = gosprl.plan(model, [0], costs=[[1, 1], [0.6, 5]], confidence=Given(intervals), method=method)
    assert plan.values == pytest.approx([0, 50000], rel=1e-5)
    assert plan.policy[1] == 1


@both_methods
def test_a_geometric_wait(method):
    """The goal is hit once in 10^5 steps; or at most once, as far as is known."""
    p = 1e-5
    mdp = gosprl.TabularMDP(np.array([[[1, 0]], [[p, 1 - p]]]))
    assert gosprl.plan(mdp, [0], method=method).values == pytest.approx([0, 1e5], rel=2e-6)
    lower, upper = np.array([1, 0, 0.5]), np.array([1, p, 1])
    zeros = np.zeros(2)
    intervals = gosprl.Intervals(np.array([0, 1, 3]), np.array([0, 0, 1], dtype=np.int32), lower, upper, zeros, zeros)
    plan = gosprl.plan(gosprl.EmpiricalModel(2, 1), [0], confidence=Given(intervals), method=method)
    assert plan.values == pytest.approx([0, 1e5], rel=2e-6)


@both_methods
def test_smallest_problems(method):
    assert gosprl.plan(gosprl.EmpiricalModel(1, 2), [0], method=method).values.tolist() == [0]
    mdp = gosprl.envs.make("riverswim6")
    everything = gosprl.plan(mdp, np.ones(6, dtype=bool), method=method)
    assert everything.values.tolist() == [0] * 6
    assert everything.start_cost.tolist() == [1] * 6


@both_methods
def test_costs_per_state_are_costs_of_all_its_actions(method):
    rng = np.random.default_rng(7)
    for _ in range(20):
        P, costs, goals = random_dynamics(rng, 4, 2), rng.uniform(1, 9, 4), [int(rng.integers(4))]
        points = Points.from_dense(P, costs[:, None])
        plan = gosprl.plan(gosprl.TabularMDP(P), goals, costs=costs, method=method)
        assert_certified(plan, points, goals, points.optimum(goals))


def test_costs_of_actions_that_do_not_exist_do_not_matter():
    mdp = deterministic([1, 0], [1])
    plan = gosprl.plan(mdp, [1], costs=[[2.0, 1.0], [1.0, np.nan]])
    assert plan.values == pytest.approx([2, 0])


# Storm


@pytest.fixture(scope="module")
def storm():
    pytest.importorskip("stormpy")
    import storm_oracle

    return storm_oracle


def test_storm_agrees_on_bounded_steps(storm):
    """k steps cost what k applications of the operator to zero say, sets open to all states and zero ends included."""
    for problem, _, _ in instances(40, seed=8, caps=False):
        goals, S = problem.goals, len(problem.exists)
        rows, intervals = problem.model().rows, problem.intervals()
        v, steps = np.zeros(S), 0
        for k in (1, 2, 5, 20):
            while steps < k:
                q = row_values(rows, intervals, problem.row_cost, v)
                v = np.minimum.reduceat(q, rows.ptr[:-1])
                v[goals] = 0
                steps += 1
            lower, upper = problem.dense(problem.lower), problem.dense(problem.upper)
            expected = storm.bounded_values(lower, upper, problem.costs, goals, k)
            assert v == pytest.approx(expected, rel=1e-12)


@both_methods
def test_storm_agrees_on_intervals_with_positive_lower_ends(storm, method):
    rng = np.random.default_rng(9)
    for _ in range(30):
        S, A = rng.integers(2, 9), rng.integers(1, 4)
        P, costs = random_dynamics(rng, S, A), rng.uniform(1, 5, (S, A))
        width = rng.uniform(0, 0.5, P.shape)
        lower = np.where(P > 0, np.maximum(P - width, np.minimum(P, 0.01)), 0)
        upper = np.where(P > 0, np.minimum(P + width, 1), 0)
        goals = sorted(rng.choice(S, size=rng.integers(1, S), replace=False).tolist())
        expected = storm.shortest_path_values(lower, upper, costs, goals)
        exists = P.any(axis=2)
        zeros = np.zeros(exists.sum())
        problem = Problem(exists, P[exists] > 0, lower[exists], upper[exists], zeros, zeros, costs, goals)
        plan = problem.plan(method=method, precision=1e-9)
        assert np.all(plan.values <= expected * (1 + 1e-10))
        assert plan.values == pytest.approx(expected, rel=plan.gap + 1e-10)


@both_methods
def test_storm_agrees_on_known_dynamics(storm, method):
    rng = np.random.default_rng(10)
    for _ in range(30):
        S, A = rng.integers(2, 13), rng.integers(1, 4)
        P, costs = random_dynamics(rng, S, A), rng.uniform(1, 5, (S, A))
        goals = sorted(rng.choice(S, size=rng.integers(1, S), replace=False).tolist())
        expected = storm.known_values(P, costs, goals)
        plan = gosprl.plan(gosprl.TabularMDP(P), goals, costs=costs, method=method, precision=1e-9)
        assert np.all(plan.values <= expected * (1 + ROUNDING))
        assert plan.values == pytest.approx(expected, rel=plan.gap + ROUNDING)


# Warm starts


@both_methods
@pytest.mark.parametrize("family", [gosprl.KL(0.1, 0.2), gosprl.Bernstein(0.1, 0.05)])
def test_warm_starts_keep_the_certificate_while_everything_changes(method, family):
    """A chain of plans, each from the last: with other goals, other costs, and counts that grew in between."""
    rng = np.random.default_rng(11)
    checked = 0
    for _ in range(8):
        P = random_dynamics(rng, 4, 2)
        model = gosprl.EmpiricalModel(4, P.any(axis=2))
        warm = None
        for _ in range(8):
            for _ in range(rng.choice([0, 3, 100])):
                row = rng.integers(len(model.rows))
                s, a = model.rows.pair(row)
                model.update(s, a, rng.choice(4, p=P[s, a]))
            goals = sorted(rng.choice(4, size=rng.integers(1, 4), replace=False).tolist())
            costs = rng.uniform(1, 5, (4, 2))
            plan = gosprl.plan(model, goals, costs=costs, confidence=family, method=method, warm=warm)
            points = Problem.from_intervals(model.rows, family.intervals(model), goals, costs).points()
            optimum = points.optimum(goals)
            if optimum[np.isfinite(optimum)].max() < 1e4:
                assert_certified(plan, points, goals, optimum)
                checked += 1
            warm = plan
    assert checked > 50


@both_methods
@pytest.mark.parametrize("wrong", [0, 1e-3, 1e3, 1e12, -50, "mixed"])
def test_wildly_wrong_values_are_no_harm(method, wrong):
    rng = np.random.default_rng(12)
    for problem, points, optimum in instances(25, seed=13, farthest=1000):
        S = len(optimum)
        values = rng.choice([0, np.inf, 1e9, 3.0], size=S) if wrong == "mixed" else wrong * rng.random(S)
        warm = dataclasses.replace(problem.plan(precision=1.0), values=values)
        assert_certified(problem.plan(method=method, warm=warm), points, problem.goals, optimum)


def test_a_warm_start_from_its_own_solution_is_quick():
    mdp = gosprl.envs.make("riverswim", states=20)
    for method, most in (("value-iteration", 2), ("modified-policy-iteration", 3)):
        cold = gosprl.plan(mdp, [19], method=method)
        warm = gosprl.plan(mdp, [19], method=method, warm=cold)
        assert cold.sweeps > 20
        assert warm.sweeps <= most


def test_only_changed_rows_are_computed_again():
    class Spy(gosprl.Bernstein):
        asked = ()

        def intervals(self, model, rows=None):
            object.__setattr__(self, "asked", (*self.asked, None if rows is None else sorted(rows.tolist())))
            return super().intervals(model, rows)

    model = gosprl.EmpiricalModel.from_transitions([0, 1, 2], [0, 1, 0], [1, 2, 0], states=3, actions=2)
    spy = Spy(0.1, 0.1)
    plan = gosprl.plan(model, [2], confidence=spy)
    plan = gosprl.plan(model, [1], confidence=spy, warm=plan)
    assert spy.asked == (None,)
    model.update([0, 2, 0], [1, 0, 1], [2, 2, 2])
    plan = gosprl.plan(model, [2], confidence=spy, warm=plan)
    assert spy.asked == (None, [1, 4])
    model.update(1, 0, 0)
    plan = gosprl.plan(model, [2], confidence=spy, warm=plan)
    assert spy.asked == (None, [1, 4], [2])
    other = gosprl.EmpiricalModel(3, 2)
    gosprl.plan(other, [2], confidence=spy, warm=plan)
    assert spy.asked == (None, [1, 4], [2], None)


def test_another_family_starts_from_its_own_sets(never_seen):
    """Even if the plan to start from is over the same model, whose counts did not change."""
    warm = gosprl.plan(never_seen, [3], scale=1.0)
    for options in ({"scale": 2.0}, {"delta": 0.5}, {"confidence": "bernstein"}):
        cold = gosprl.plan(never_seen, [3], **options)
        again = gosprl.plan(never_seen, [3], warm=warm, **options)
        assert again.values == pytest.approx(cold.values, rel=cold.gap + again.gap)
        assert again.values != pytest.approx(warm.values, rel=1e-2)


def test_the_arrays_of_a_confidence_object_stay_as_they_are():
    for problem, _, _ in instances(20, seed=19):
        confidence = Given(problem.intervals())
        before = [part.copy() for part in vars(confidence.all).values()]
        plan = gosprl.plan(problem.model(), problem.goals, confidence=confidence)
        gosprl.plan(problem.model(), problem.goals, confidence=confidence, warm=plan)
        assert all(map(np.array_equal, before, vars(confidence.all).values()))


@pytest.mark.parametrize("family", [gosprl.KL(0.1, 0.2), gosprl.Bernstein(0.1, 0.05)])
def test_a_workspace_plans_as_from_scratch(family):
    """Counts, goals, costs and which rows can be taken change between plans; rows outgrow their room more than once."""
    rng = np.random.default_rng(20)
    checked = 0
    for _ in range(8):
        P = random_dynamics(rng, 4, 2, successors=4)
        model = gosprl.EmpiricalModel(4, P.any(axis=2))
        work = Workspace(model, family)
        for _ in range(8):
            row = rng.integers(len(model.rows), size=rng.choice([0, 3, 100]))
            s, a = model.rows.state[row], model.rows.action[row]
            model.update(s, a, [rng.choice(4, p=P[pair]) for pair in zip(s, a, strict=True)])
            model.enabled[:] = rng.random(len(model.rows)) < 0.8
            goals = sorted(rng.choice(4, size=rng.integers(1, 4), replace=False).tolist())
            costs = rng.uniform(1, 5, (4, 2))
            goal = np.isin(np.arange(4), goals)
            rows, leave = work.plan(goal, costs[P.any(axis=2)], 1e-6, -1)
            points = (
                Problem.from_intervals(model.rows, family.intervals(model), goals, costs)
                .points()
                .of_rows(np.flatnonzero(model.enabled))
            )
            optimum = points.optimum(goals)
            expected = first_step(points, optimum, goals)
            can = np.isfinite(expected)
            assert np.array_equal(np.isfinite(leave), can)
            assert np.array_equal(rows >= 0, can)
            assert np.all(model.enabled[rows[can]])
            if expected[can].max(initial=0) < 1e4:
                assert np.all(leave[can] <= expected[can] * (1 + ROUNDING))
                assert np.all(leave[can] >= expected[can] * (1 - 2e-6))  # the residual is 1e-6, costs are at least 1
                own = points.of_rows(rows[can]).optimum(goals)
                assert np.all(own <= optimum * (1 + 1e-5))
                checked += 1
    assert checked > 50


def surprises(rng, model, P, goals, costs, what=None):
    """What may happen between two plans with the same costs: other goals, a few samples, doubled rows, rows off."""
    S = len(P)
    what = what or rng.choice(["drop", "add", "others", "sample", "double", "nothing", "costs", "enabled"])
    if what == "drop" and len(goals) > 1:
        goals = goals[1:]
    elif what == "add":
        goals = sorted({*goals, int(rng.integers(S))})
    elif what == "others":
        goals = sorted(rng.choice(S, size=rng.integers(1, S), replace=False).tolist())
    elif what in ("sample", "double"):
        row = rng.integers(len(model.rows), size=3 if what == "sample" else 1)
        row = np.repeat(row, 1 if what == "sample" else max(4, int(model.visits[row[0]])))
        s, a = model.rows.state[row], model.rows.action[row]
        model.update(s, a, [rng.choice(S, p=P[pair]) for pair in zip(s, a, strict=True)])
    elif what == "costs":
        costs = rng.uniform(1, 5, costs.shape)
    elif what == "enabled":
        model.enabled[:] = rng.random(len(model.rows)) < 0.8
    return goals, costs


@pytest.mark.parametrize("family", [gosprl.KL(0.1, 0.2), gosprl.KL(0.1, 0.01), gosprl.Bernstein(0.1, 0.01)])
@pytest.mark.parametrize("closed", [False, True])
def test_what_is_known_of_rows_from_the_last_plan_never_hides_a_better_one(family, closed):
    """Bounds on the rows' values are carried over where costs stay; some plans between ask for too much and fail.

    Both by a workspace and by `plan(warm=...)`, and both methods: their certified intervals overlap.
    """
    rng = np.random.default_rng(24)
    checked = failed = 0
    for _ in range(9):
        P = random_dynamics(rng, 5, 3)
        exists = P.any(axis=2)
        model = gosprl.EmpiricalModel(5, exists, P > 0 if closed else None)
        for s, a in np.argwhere(exists):
            model.update([s] * 30, [a] * 30, rng.choice(5, size=30, p=P[s, a]))
        work, warm, goals, costs = Workspace(model, family), None, [0], rng.uniform(1, 5, exists.shape)
        for _ in range(12):
            goals, costs = surprises(rng, model, P, goals, costs)
            goal = np.isin(np.arange(5), goals)
            if rng.random() < 0.3:
                surprises(rng, model, P, goals, costs, "double")
                with pytest.raises(gosprl.PrecisionError):
                    work.plan(goal, costs[exists], -1.0, -1)
                failed += 1
            points = Problem.from_intervals(model.rows, family.intervals(model), goals, costs).points()
            points = points.of_rows(np.flatnonzero(model.enabled))
            optimum = points.optimum(goals)
            if optimum[np.isfinite(optimum)].max() > 1e4:
                continue
            rows, leave = work.plan(goal, costs[exists], 1e-6, -1)
            expected = first_step(points, optimum, goals)
            can = np.isfinite(expected)
            assert np.array_equal(np.isfinite(leave), can)
            assert np.all(leave[can] <= expected[can] * (1 + ROUNDING))
            assert np.all(leave[can] >= expected[can] * (1 - 2e-6))
            assert np.all(points.of_rows(rows[can]).optimum(goals)[can] <= optimum[can] * (1 + 1e-5))
            options = {"costs": costs, "confidence": family}
            plain = gosprl.plan(model, goals, method="value-iteration", warm=warm, **options)
            warm = gosprl.plan(model, goals, warm=warm, **options)
            for one, other in ((plain, warm), (warm, plain), (gosprl.plan(model, goals, **options), warm)):
                alive = np.isfinite(optimum)
                assert np.array_equal(np.isfinite(one.values), alive)
                assert np.all(one.values[alive] <= (1 + other.gap) * other.values[alive] * (1 + ROUNDING))
                assert np.all(one.values[alive] <= optimum[alive] * (1 + ROUNDING))
            checked += 1
    assert checked > 60
    assert failed > 2


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("forget", [1, 3, 10_000])
def test_a_row_that_was_bad_and_is_good_now_is_seen(monkeypatch, fails, forget):
    """Of two actions, one seemed to stay where it is, and then led to the goal very often; elsewhere nothing changed.

    Also if a plan in between fails, and if so much changed that nothing is known any more.
    """
    monkeypatch.setattr("gosprl.planning.workspace.FORGET", forget)
    model = gosprl.EmpiricalModel(3, 2, lambda s, a: [0, s])
    goal, family, cost = np.array([True, False, False]), gosprl.KL(0.1, 0.1), np.ones(6)
    model.update([1] * 1000, [0] * 1000, [0] * 200 + [1] * 800)
    model.update([1] * 1000, [1] * 1000, [1] * 1000)
    work = Workspace(model, family)
    assert 4 < work.plan(goal, cost, 1e-6, -1)[1][1] < 5.5
    warm = gosprl.plan(model, goal, confidence=family)
    for samples in (10**4, 10**5):
        model.update([1] * samples, [1] * samples, [0] * samples)
        work.refresh(work.stale())
    if fails:
        with pytest.raises(gosprl.PrecisionError):
            work.plan(goal, cost, -1.0, -1)
    rows, leave = work.plan(goal, cost, 1e-6, -1)
    assert 1 < leave[1] < 1.02
    assert rows[1] == 3
    assert gosprl.plan(model, goal, confidence=family, warm=warm).values[1] == pytest.approx(leave[1], abs=2e-6)


# Ties


def fan(states):
    """All states but the last have five actions that lead to the last; their costs decide."""
    P = np.zeros((states, 5, states))
    P[:, :, -1] = 1
    return gosprl.TabularMDP(P)


TIED = [1 + 5e-7, 1 + 1e-5, 1.0, 1.0, 2.0]  # actions 0, 2 and 3 are within 1e-6 of the best


def test_ties_are_broken_evenly():
    """Pearson's test on 3000 draws; false alarms once in 10^6 changes of the random stream."""
    mdp = fan(3001)
    plan = gosprl.plan(mdp, [3000], costs=np.tile(TIED, (3001, 1)), rng=5)
    counts = np.bincount(plan.policy[:3000], minlength=5)
    assert counts[[1, 4]].tolist() == [0, 0]
    statistic = ((counts[[0, 2, 3]] - 1000) ** 2 / 1000).sum()
    assert statistic < chi2.isf(1e-6, df=2)


def test_the_first_tied_action_without_rng_and_the_same_with_the_same_seed():
    mdp = fan(40)
    costs = np.tile(TIED, (40, 1))
    assert np.all(gosprl.plan(mdp, [39], costs=costs).policy == 0)
    one, same = (gosprl.plan(mdp, [39], costs=costs, rng=seed).policy for seed in (7, np.random.default_rng(7)))
    other = gosprl.plan(mdp, [39], costs=costs, rng=8).policy
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_small_costs_make_small_ties():
    """A difference of 1e-6 is no tie where a step costs 1e-3."""
    mdp = fan(100)
    costs = np.tile(1e-3 * np.array([1 + 1e-5, 1, 1 + 1e-3, 2, 2]), (100, 1))
    assert np.all(gosprl.plan(mdp, [99], costs=costs, rng=0).policy == 1)


# Goals


def test_leaving_a_goal_costs_a_way_back_to_a_goal():
    ring = deterministic([1], [2], [0])
    plan = gosprl.plan(ring, [0])
    assert plan.values == pytest.approx([0, 2, 1])
    assert plan.start_cost == pytest.approx([3, 2, 1])
    assert plan.policy.tolist() == [0, 0, 0]


def test_the_action_at_a_goal_is_that_of_its_copy():
    # from the goal 0: a detour of three steps, then one of two
    mdp = deterministic([1, 2], [2], [0])
    plan = gosprl.plan(mdp, [0])
    assert plan.start_cost == pytest.approx([2, 2, 1])
    assert plan.policy.tolist() == [1, 0, 0]
    assert plan.rows.tolist() == [1, 2, 3]


def test_a_goal_that_only_loops_is_back_at_once():
    plan = gosprl.plan(deterministic([0], [0]), [0], costs=[5, 2])
    assert plan.values == pytest.approx([0, 2])
    assert plan.start_cost == pytest.approx([5, 2])
    assert plan.policy.tolist() == [0, 0]


def test_a_goal_from_which_no_goal_can_be_reached():
    plan = gosprl.plan(deterministic([1], [1], [0]), [0])
    assert plan.values == pytest.approx([0, np.inf, 1])
    assert plan.start_cost == pytest.approx([np.inf, np.inf, 1])
    assert plan.policy.tolist() == [-1, -1, 0]


def test_goals_as_indices_and_as_mask():
    mdp = gosprl.envs.make("riverswim6")
    mask = np.array([True, False, False, False, False, True])
    expected = gosprl.plan(mdp, mask).values
    for goals in ([0, 5], (5, 0, 5), np.array([0.0, 5.0])):
        assert np.array_equal(gosprl.plan(mdp, goals).values, expected)
    assert np.array_equal(gosprl.plan(mdp, 5).values, gosprl.plan(mdp, [5]).values)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_a_set_of_goals_is_no_farther_than_its_easiest_member(seed):
    """max over s outside G of D_sG <= min over g in G of D_g."""
    rng = np.random.default_rng(seed)
    mdp = gosprl.TabularMDP(random_dynamics(rng, 6, 2))
    goals = rng.choice(6, size=rng.integers(1, 6), replace=False)
    farthest = np.delete(gosprl.plan(mdp, goals).values, goals).max()
    assert farthest <= mdp.ssp_diameters()[goals].min() * (1 + 1e-8)  # hitting times are certified to 1e-9


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_more_goals_never_cost_more(seed):
    rng = np.random.default_rng(seed)
    problem, _, optimum = next(instances(1, seed, S=5, farthest=1000))
    more = dataclasses.replace(problem, goals=sorted({*problem.goals, int(rng.integers(5))}))
    assert np.all(more.plan().values <= optimum * (1 + ROUNDING))


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_wider_sets_never_cost_more(seed):
    rng = np.random.default_rng(seed)
    problem, _, optimum = next(instances(1, seed, farthest=1000))
    shape = problem.lower.shape
    each = np.minimum(problem.each * rng.uniform(1, 2) + rng.choice([0, 0.1]), 1)
    upper = np.where(problem.seen, problem.upper + rng.random(shape) * (1 - problem.upper), each[:, None])
    wider = dataclasses.replace(
        problem,
        lower=problem.lower * rng.random(shape),
        upper=upper,
        each=each,
        total=np.minimum(problem.total + rng.choice([0, 0.1]), 1),
    )
    assert np.all(wider.plan().values <= optimum * (1 + ROUNDING))


# Goals out of reach


@both_methods
def test_traps(method):
    # 0: goal; 1: goes to 0, or risks the trap; 2: must risk the trap; 3: the trap; 4: to 1 surely, or to 3 surely
    P = np.zeros((5, 2, 5))
    P[0, 0, 0] = P[3, 0, 3] = 1
    P[1, 0, 0] = 1
    P[1, 1, [0, 3]] = 0.9, 0.1
    P[2, 0, [0, 3]] = 0.9, 0.1
    P[4, 0, 3] = P[4, 1, 1] = 1
    plan = gosprl.plan(gosprl.TabularMDP(P), [0], costs=[[1, 1], [10, 1], [1, 1], [1, 1], [1, 1]], method=method)
    assert plan.values == pytest.approx([0, 10, np.inf, np.inf, 11])
    assert plan.policy.tolist() == [0, 0, -1, -1, 1]


def test_a_probability_however_small_of_the_trap_is_a_risk():
    P = np.array([[[1, 0, 0]], [[1 - 1e-12, 0, 1e-12]], [[0, 0, 1]]])
    assert gosprl.plan(gosprl.TabularMDP(P), [0]).values.tolist() == [0, np.inf, np.inf]


@both_methods
def test_sure_reachability_against_graph_search(method):
    rng = np.random.default_rng(14)
    shares = []
    for _ in range(150):
        S = int(rng.integers(2, 12))
        P = random_dynamics(rng, S, rng.integers(1, 3), successors=2)
        goals = rng.choice(S, size=rng.integers(1, 3)).tolist()
        expected, _ = Points.from_dense(P).surely_reaching(goals)
        plan = gosprl.plan(gosprl.TabularMDP(P), goals, method=method, precision=1.0)
        assert np.array_equal(np.isfinite(plan.values), expected)
        assert np.array_equal(surely_reaching(gosprl.TabularMDP(P), goals), expected)
        shares.append(expected.mean())
    assert sum(0 < share < 1 for share in shares) > 40


@both_methods
def test_optimistic_reachability_against_graph_search(method):
    """Nature helps, and may leave out what has a lower end of zero, but cannot go beyond what the sets allow."""
    mixed = 0
    for problem, _, optimum in instances(150, seed=15, S=5, A=1, goals=[0], closed=1, shares=[0.3, 0.5]):
        plan = problem.plan(method=method, precision=1.0)
        assert np.array_equal(np.isfinite(plan.values), np.isfinite(optimum))
        mixed += np.isinf(optimum).any()
    assert mixed > 30


def test_a_pair_never_visited_can_go_anywhere():
    model = gosprl.EmpiricalModel.from_counts([0, 1], [0, 0], [0, 1], [10**6, 10**6], states=3, actions=2)
    for confidence in ("kl", "bernstein"):
        assert gosprl.plan(model, [2], confidence=confidence).values == pytest.approx([1, 1, 0])


def test_a_terminal_state_has_only_its_reset():
    """Its other actions were never visited, but that does not mean that they can go anywhere: they do not exist."""
    model = gosprl.EmpiricalModel(None, 2)
    model.allow_resets("terminal")
    a, b, end, reset = model.locate("a"), model.locate("b"), model.final("end"), model.states.reset
    for s, s_next in ((a, b), (b, end), (reset, a)):
        model.update([s] * 1000, [0] * 1000, [s_next] * 1000)
    plan = gosprl.plan(model, [b])
    assert plan.policy[[end, reset]].tolist() == [0, 0]
    assert plan.values[end] == pytest.approx(1 + plan.values[reset])
    assert 1.9 < plan.values[reset] <= 2  # the start is a, from where b is one step away


def test_a_cap_of_zero_closes_a_row():
    """State 1 was only seen to loop; whether it can leave is up to the cap on what was not seen."""

    def values(each, total):
        parts = np.array([0.5, 0.5]), np.array([1.0, 1.0]), np.array([0.5, each]), np.array([0.5, total])
        intervals = gosprl.Intervals(np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32), *parts)
        return gosprl.plan(gosprl.EmpiricalModel(2, 1), [0], confidence=Given(intervals)).values

    assert values(0.5, 0.25) == pytest.approx([0, 4], rel=2e-6)
    assert values(0.2, 0.25) == pytest.approx([0, 5], rel=2e-6)
    assert values(0.5, 0.0).tolist() == [0, np.inf]
    assert values(0.0, 0.5).tolist() == [0, np.inf]


def test_what_was_seen_may_be_ruled_out_by_its_interval():
    """State 1 knows the goal with an upper end of zero; the only state it does not know is a trap."""
    intervals = gosprl.Intervals(
        ptr=np.array([0, 1, 3, 4]),
        succ=np.array([0, 0, 1, 2], dtype=np.int32),
        lower=np.array([1, 0, 0.5, 1]),
        upper=np.array([1.0, 0, 1, 1]),
        each=np.array([0, 0.5, 0]),
        total=np.array([0, 0.5, 0]),
    )
    plan = gosprl.plan(gosprl.EmpiricalModel(3, 1), [0], confidence=Given(intervals))
    assert plan.values.tolist() == [0, np.inf, np.inf]


# Errors


@pytest.fixture(scope="module")
def model():
    return gosprl.EmpiricalModel.from_transitions([0, 1, 2], [0, 0, 0], [1, 2, 0], states=3, actions=2)


BAD_OPTIONS = [
    ({"delta": 0}, "delta: expected a number strictly between 0 and 1, got 0"),
    ({"delta": 1.0}, "delta.*got 1.0"),
    ({"delta": np.nan}, "delta.*got nan"),
    ({"scale": 0.0}, "scale: expected a positive finite number, got 0.0"),
    ({"scale": -1}, "scale.*got -1"),
    ({"precision": 0.0}, "precision: expected a positive finite number, got 0.0"),
    ({"precision": np.nan}, "precision.*got nan"),
    ({"costs": [1, 1, 0]}, r"costs.*got 0.0 at \(s, a\) = \(2, 0\)"),
    ({"costs": [1, -2, 1]}, r"costs.*got -2.0 at \(s, a\) = \(1, 0\)"),
    ({"costs": [[1, 1], [1, np.nan], [1, 1]]}, r"costs.*got nan at \(s, a\) = \(1, 1\)"),
    ({"costs": [np.inf, 1, 1]}, r"costs.*got inf at \(s, a\) = \(0, 0\)"),
    ({"costs": [1, 1]}, r"costs: expected \[S\] = \(3,\) or \[S, A\] = \(3, 2\), got shape \(2,\)"),
    ({"costs": np.ones((2, 3))}, r"costs.*got shape \(2, 3\)"),
    ({"costs": 1.0}, r"costs.*got shape \(\)"),
    ({"goals": []}, "goals: expected at least one goal state"),
    ({"goals": np.zeros(3, dtype=bool)}, "goals: expected at least one goal state"),
    ({"goals": [3]}, r"goals: expected states in 0\.\.2, got 3"),
    ({"goals": [0, -1]}, "goals.*got -1"),
    ({"goals": [0.5]}, "goals.*whole numbers"),
    ({"goals": [True, False]}, r"goals.*mask \[S\] with S = 3, got a mask \(2,\)"),
    ({"confidence": "hoeffding"}, "confidence: 'hoeffding' is not known; known are bernstein, kl"),
    ({"confidence": 3}, "confidence: expected .*bernstein.*kl.*got 3"),
    ({"method": "lp"}, "method: 'lp' is not known; known are modified-policy-iteration, value-iteration"),
    ({"confidence": gosprl.KL(), "scale": 0.1}, "scale, delta: only with a named family"),
    ({"confidence": gosprl.KL(), "delta": 0.1}, "scale, delta: only with a named family"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(model, options, message):
    with pytest.raises(gosprl.InputError, match=message):
        gosprl.plan(model, options.pop("goals", [0]), **options)


@pytest.mark.parametrize("option", [{"confidence": "kl"}, {"scale": 1.0}, {"delta": 0.1}])
def test_known_dynamics_take_no_confidence(option):
    with pytest.raises(gosprl.InputError, match="confidence, scale, delta: not with a TabularMDP"):
        gosprl.plan(gosprl.envs.make("riverswim6"), [0], **option)


def test_neither_counts_nor_dynamics():
    with pytest.raises(gosprl.InputError, match="system: expected an EmpiricalModel or a TabularMDP, got list"):
        gosprl.plan([[1.0]], [0])


def test_warm_of_another_size_or_kind(model):
    for warm in (gosprl.plan(deterministic([1], [0]), [0]), [0.0, 0.0, 0.0]):
        with pytest.raises(gosprl.InputError, match="warm: expected a Plan over the same 3 states"):
            gosprl.plan(model, [0], warm=warm)


@pytest.mark.parametrize(
    ("lower", "upper", "each", "total"),
    [
        ([0.6, 0.5], [0.7, 0.6], 0.1, 0.1),  # lower ends sum to more than one
        ([0.1, 0.1], [0.4, 0.4], 0.5, 0.1),  # not enough room: the cap
        ([0.1, 0.1], [0.4, 0.4], 0.1, 0.5),  # not enough room: one unseen state
        ([0.5, 0.5], [0.4, 0.6], 1.0, 1.0),  # an end on the wrong side
        ([-0.1, 0.5], [0.6, 0.6], 1.0, 1.0),
        ([0.5, 0.5], [0.5, 1.1], 1.0, 1.0),
        ([np.nan, 0.5], [0.6, 0.6], 1.0, 1.0),
        ([0.5, 0.5], [np.nan, 0.6], 1.0, 1.0),
        ([0.5, 0.5], [0.5, 0.5], np.nan, 1.0),
        ([0.5, 0.5], [0.5, 0.5], 1.0, np.nan),
        ([0.5, 0.5], [0.5, 0.5], -0.1, 1.0),
        ([0.5, 0.5], [0.5, 0.5], 1.0, -0.1),
    ],
)
def test_sets_without_a_distribution(lower, upper, each, total):
    """The row of (1, 0) saw two of three states."""
    intervals = gosprl.Intervals(
        ptr=np.array([0, 0, 2, 2]),
        succ=np.array([0, 2], dtype=np.int32),
        lower=np.array(lower),
        upper=np.array(upper),
        each=np.array([1, each, 1]),
        total=np.array([1, total, 1]),
    )
    with pytest.raises(gosprl.InputError, match=r"intervals of \w+ at \(s, a\) = \(1, 0\) hold no distribution"):
        gosprl.plan(gosprl.EmpiricalModel(3, 1), [0], confidence=Given(intervals))


def test_sets_of_another_number_of_rows(model):
    intervals = gosprl.KL().intervals(gosprl.EmpiricalModel(3, 1))
    with pytest.raises(gosprl.InputError, match=r"expected 7 entries in \w+\.intervals\.ptr, got 4"):
        gosprl.plan(model, [0], confidence=Given(intervals))


@both_methods
def test_a_precision_that_doubles_cannot_show(never_seen, method):
    """Values of 4000 are known to 10^-12 at best."""
    with pytest.raises(gosprl.PrecisionError, match=r"precision=1e-20 was not reached, only .* with values up to"):
        gosprl.plan(never_seen, [3], method=method, precision=1e-20)
