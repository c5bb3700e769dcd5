"""GOSPRL: traces worked out by hand, logs followed line by line, another implementation's means, what is given up."""

import numpy as np
import pytest
from scipy import stats
from stepped import Untold
from walked import table_collector

import gosprl
from gosprl import Collector, Confidence, EmpiricalModel, InputError, Intervals, Requirement, TabularMDP
from gosprl.envs import make
from gosprl.planning.workspace import Workspace
from gosprl.strategies import Gosprl
from gosprl.strategies.gosprl import GosprlPlanner

LEVEL = 1e-4  # two-sided false-alarm rate of each comparison of means


# Tools


def ring(states):
    """0 -> 1 -> ... -> 0, one action."""
    s = np.arange(states)
    return TabularMDP((s, 0 * s, (s + 1) % states, np.ones(states)))


def drive(collector, mdp, rng=None):
    """Ask and tell until done; the transitions in order. Deterministic MDPs need no rng."""
    s, log = mdp.start, []
    while not collector.done:
        a = collector.ask(s)
        succ, p = mdp.p(s, a)
        s_next = int(succ[0] if len(succ) == 1 else rng.choice(succ, p=p))
        collector.tell(s, a, s_next)
        log.append((s, a, s_next))
        s = s_next
    return log


def over(mdp, need, **options):
    exists = mdp.rows.to_dense(np.ones(len(mdp.rows), dtype=bool))
    return table_collector(mdp.num_states, exists, need, strategy="gosprl", planning="full", **options)


class Believed(Confidence):
    """Sure of where each pair leads, rightly or not; the belief may change with the visits of the pair."""

    def __init__(self, successor):
        self.successor = successor  # (s, a, visits) -> state

    def intervals(self, model, rows=None):
        rows = np.arange(len(model.rows)) if rows is None else rows
        succ = [self.successor(*model.rows.pair(r), model.visits[r]) for r in rows]
        one, zero = np.ones(len(rows)), np.zeros(len(rows))
        return Intervals(np.arange(len(rows) + 1), np.array(succ, dtype=np.int32), one, one, zero, zero)


def greedy_actions(mdp, goals, costs=1.0):
    """[S, A] bool: actions of shortest paths to the goals (from a goal: from its non-goal copy), by value iteration."""
    P = mdp.dense()
    missing = np.where(P.sum(axis=2) > 0, 0.0, np.inf)
    v = np.zeros(mdp.num_states)
    while True:
        q = costs + P @ v + missing
        new = np.where(goals, 0.0, q.min(axis=1))
        if np.abs(new - v).max() < 1e-10:
            return q <= q.min(axis=1, keepdims=True) + 1e-5
        v = new


def follow(log, need, shape, greedy=None):
    """Follow a log through Algorithm 1 line by line; fails where it does something else. The number of attempts.

    `need` is [S, A], or [S] for any action; `greedy(goals)` are the actions allowed, if only some are.
    """
    N, t, attempts, place = np.zeros(shape, dtype=int), 0, 0, log[0][0]

    def step():
        nonlocal t, place
        s, a, s_next = log[t]
        assert s == place, "the log is no walk"
        N[s, a] += 1
        t, place = t + 1, s_next
        return s, a

    def gaps():
        return np.maximum(need - N, 0) if need.ndim == 2 else np.maximum(need - N.sum(axis=1), 0)[:, None]

    while gaps().any():
        attempts += 1
        remaining = gaps().sum(axis=1)
        goals = remaining == remaining.min() if remaining.all() else remaining > 0
        allowed = np.ones(shape, dtype=bool) if greedy is None else greedy(goals)
        U, nu, policy = N.copy(), np.zeros(shape, dtype=int), {}
        while True:
            s, a = step()
            nu[s, a] += 1
            assert policy.setdefault(s, a) == a, "an attempt has one action a state"
            assert allowed[s, a], f"action {a} is on no shortest path from {s}"
            if goals[place] or nu[s, a] > max(U[s, a], 1) or not gaps().any():
                break
        gap = gaps()[place]
        if need.ndim == 2 and goals[place] and gap.any():
            _, a = step()
            assert gap[a] == gap.max(), "the sample is not of the largest gap"
    assert t == len(log), "the log goes on when all is met"
    return attempts


# Algorithm 1


@pytest.mark.parametrize("seed", range(5))
def test_an_attempt_that_starts_on_a_goal_makes_a_step_first(seed):
    # 0 --a0--> 1 --> 0 is two steps, 0 --a1--> 2 --> 1 --> 0 three; only (0, a1) is needed
    mdp = TabularMDP(([0, 0, 1, 2], [0, 1, 0, 0], [1, 2, 0, 1], np.ones(4)))
    collector = over(mdp, [[0, 1], [0, 0], [0, 0]], dynamics=mdp, seed=seed)
    assert drive(collector, mdp) == [
        (0, 0, 1),  # state 0 is the goal, but the attempt starts in its copy: the shortest way back to 0
        (1, 0, 0),  # reached
        (0, 1, 2),  # the sample
    ]
    assert (collector.attempts, collector.result().steps) == (1, 3)


@pytest.mark.parametrize("seed", range(5))
def test_without_the_duplicate_the_sample_is_taken_at_once(seed):
    mdp = TabularMDP(([0, 0, 1, 2], [0, 1, 0, 0], [1, 2, 0, 1], np.ones(4)))
    collector = over(mdp, [[0, 1], [0, 0], [0, 0]], dynamics=mdp, seed=seed, duplicate_start=False)
    assert drive(collector, mdp) == [(0, 1, 2)]
    assert collector.attempts == 0


@pytest.mark.parametrize("seed", range(5))
def test_an_attempt_ends_by_doubling_and_samples_at_goals_count_before(seed):
    # 0 --a0--> 1 --> 0 and 0 --a1--> 3 --> 2 --> 0; needed are two samples of 1 and one of 2.
    # Believed is the truth, but for (0, a0): after two visits it is thought to lead to 2, after five no longer.
    mdp = TabularMDP(([0, 0, 1, 2, 3], [0, 1, 0, 0, 0], [1, 3, 0, 0, 2], np.ones(5)))

    def belief(s, a, visits):
        return 2 if (s, a) == (0, 0) and 2 <= visits < 5 else int(mdp.p(s, a)[0][0])

    collector = over(mdp, [[0, 0], [2, 0], [1, 0], [0, 0]], confidence=Believed(belief), seed=seed)
    assert drive(collector, mdp) == [
        (0, 0, 1),  # attempt 1: a goal
        (1, 0, 0),  # its sample
        (0, 0, 1),  # attempt 2: a goal
        (1, 0, 0),  # its sample. Now N(0, a0) = N(1, a0) = 2, and only 2 is a goal, which a0 is thought to lead to
        (0, 0, 1),  # attempt 3: nu(0, a0) = 1
        (1, 0, 0),  # nu(1, a0) = 1
        (0, 0, 1),  # nu(0, a0) = 2
        (1, 0, 0),  # nu(1, a0) = 2, not above U = 2, both of which were samples at a goal
        (0, 0, 1),  # nu(0, a0) = 3 > 2: over, in state 1
        (1, 0, 0),  # attempt 4, with the truth
        (0, 1, 3),
        (3, 0, 2),  # reached
        (2, 0, 0),  # its sample
    ]
    assert (collector.attempts, collector.result().steps) == (4, 13)


@pytest.mark.parametrize("seed", range(5))
def test_an_untried_pair_is_taken_twice_before_an_attempt_ends(seed):
    # (0, a0) stays but is thought to lead to 1 until it was visited twice; (0, a1) leads to 2 and from there to 1
    mdp = TabularMDP(([0, 0, 1, 2], [0, 1, 0, 0], [0, 2, 0, 1], np.ones(4)))

    def belief(s, a, visits):
        return 1 if (s, a) == (0, 0) and visits < 2 else int(mdp.p(s, a)[0][0])

    collector = over(mdp, [[0, 0], [1, 0], [0, 0]], confidence=Believed(belief), seed=seed)
    assert drive(collector, mdp) == [
        (0, 0, 0),  # nu = 1, not above max(0, 1)
        (0, 0, 0),  # nu = 2: over
        (0, 1, 2),
        (2, 0, 1),  # reached
        (1, 0, 0),  # the sample
    ]
    assert (collector.attempts, collector.result().steps) == (2, 5)


def test_with_a_need_per_state_the_next_attempts_first_step_is_the_sample():
    collector = over(ring(2), [0, 2], dynamics=ring(2), seed=0)
    assert drive(collector, ring(2)) == [
        (0, 0, 1),  # attempt 1: reached
        (1, 0, 0),  # attempt 2: the first sample
        (0, 0, 1),  # reached
        (1, 0, 0),  # attempt 3: the second, and met
    ]
    assert collector.attempts == 3


def test_the_sample_is_skipped_when_nothing_is_needed_there_any_more():
    class Moves(Requirement):
        """One sample of state 1; once a step was made, of state 2 instead."""

        def __init__(self):
            self.pair, self.state = np.array([0, 1, 0]), np.zeros(3, dtype=np.int64)

        def update(self, model, rows):
            if model.visits.sum():
                self.pair = np.array([0, 0, 1])

    collector = over(ring(3), Moves(), dynamics=ring(3), seed=0)
    log = drive(collector, ring(3))
    assert log == [(0, 0, 1), (1, 0, 2), (2, 0, 0)]
    assert collector.attempts == 2  # (1, 0, 2) is a walk of its own, not a sample


GARNET = make("garnet", states=8, actions=3, branching=3, seed=1)


@pytest.mark.parametrize("mdp", [make("riverswim6"), make("trap10"), make("toy3"), GARNET], ids=lambda mdp: mdp.name)
@pytest.mark.parametrize("kind", ["pairs", "states", "sparse"])
@pytest.mark.parametrize("seed", range(2))
def test_logs_are_runs_of_algorithm_1_with_known_dynamics(mdp, kind, seed):
    shape, rng = (mdp.num_states, mdp.num_actions), np.random.default_rng([seed, 7])
    exists = mdp.dense().sum(axis=2) > 0
    need = {
        "pairs": rng.integers(1, 6, shape) * exists,  # everything is under-sampled at first: the initial phase
        "states": rng.integers(0, 5, shape[0]),
        "sparse": rng.integers(0, 5, shape) * exists * (rng.random(shape) < 0.6),
    }[kind]
    collector = over(mdp, need, dynamics=mdp, seed=seed)
    log = drive(collector, mdp, rng)
    assert collector.attempts == follow(log, need, shape, lambda goals: greedy_actions(mdp, goals))


@pytest.mark.parametrize("options", [{}, {"confidence": "bernstein", "scale": 0.1}], ids=["kl", "bernstein"])
@pytest.mark.parametrize("kind", ["pairs", "states"])
def test_logs_are_runs_of_algorithm_1_with_unknown_dynamics(options, kind):
    mdp, rng = make("riverswim6"), np.random.default_rng(3)
    need = rng.integers(0, 4, (6, 2) if kind == "pairs" else 6)
    collector = over(mdp, need, seed=1, **options)
    log = drive(collector, mdp, rng)
    assert collector.attempts == follow(log, need, (6, 2))


def test_costs_change_the_shortest_paths():
    mdp, rng = make("trap10"), np.random.default_rng(5)
    costs = rng.integers(1, 8, (10, 4)).astype(float)
    need = np.full((10, 4), 2)
    log = drive(over(mdp, need, dynamics=mdp, costs=costs, seed=0), mdp, rng)
    follow(log, need, (10, 4), lambda goals: greedy_actions(mdp, goals, costs))
    with pytest.raises(AssertionError, match="no shortest path"):
        follow(log, need, (10, 4), lambda goals: greedy_actions(mdp, goals))


@pytest.mark.parametrize(
    "options",
    [{"duplicate_start": False}, {"goals": "random"}, {"confidence": "bernstein", "scale": 1e-3}],
    ids=["no duplicate", "other goals", "not the dynamics"],
)
def test_following_a_log_notices_other_algorithms(options):
    mdp = make("riverswim6")
    options = options if "confidence" in options else {"dynamics": mdp} | options
    log = drive(over(mdp, 4, seed=0, **options), mdp, np.random.default_rng(1))
    with pytest.raises((AssertionError, IndexError)):
        follow(log, np.full((6, 2), 4), (6, 2), lambda goals: greedy_actions(mdp, goals))


# The sample at a goal


def sampled_at_one(need, seed):
    """The actions taken in state 1 of 0 -> 1 -> 0, where all three actions of 1 are the same."""
    mdp = TabularMDP(([0, 1, 1, 1], [0, 0, 1, 2], [1, 0, 0, 0], np.ones(4)))
    log = drive(over(mdp, [[0, 0, 0], need], dynamics=mdp, seed=seed), mdp)
    return [a for s, a, _ in log if s == 1]


def test_the_sample_has_the_largest_gap():
    first = set()
    for seed in range(20):
        taken = sampled_at_one([1, 3, 2], seed)
        assert taken[0] == 1  # gaps 1, 3, 2
        assert sorted(taken[1:3]) == [1, 2]  # then 1, 2, 2: the two in any order
        assert sorted(taken[3:]) == [0, 1, 2]  # then 1, 1, 1
        first.add(tuple(taken[1:3]))
    assert len(first) == 2  # both orders occur; one of them is missing with probability 2^-19


def test_ties_of_the_sample_are_broken_uniformly():
    taken = [sampled_at_one([2, 2, 0], seed)[0] for seed in range(300)]
    assert set(taken) == {0, 1}
    assert stats.binomtest(taken.count(0), 300).pvalue > LEVEL
    taken = [sampled_at_one([1, 1, 1], seed)[0] for seed in range(300)]
    assert stats.chisquare(np.bincount(taken, minlength=3)).pvalue > LEVEL


# Another implementation's means


REFERENCE = {"riverswim6": 244.1, "corridor24": 3153.8, "four_room43": 3333.1}  # steps for need 10, 600 runs each
REFERENCE_RUNS = 600


def agrees(name, runs, **options):
    """Whether the mean steps of some runs are those of the reference, by a t-test of level LEVEL."""
    mdp = make(name)
    steps = [
        gosprl.collect(mdp, 10, strategy="gosprl", dynamics=mdp, seed=seed, **options).steps for seed in range(runs)
    ]
    error = np.std(steps, ddof=1) * np.sqrt(1 / runs + 1 / REFERENCE_RUNS)
    return abs(np.mean(steps) - REFERENCE[name]) < stats.t.isf(LEVEL / 2, runs - 1) * error


@pytest.mark.parametrize("name", REFERENCE)
def test_known_dynamics_take_as_many_steps_as_the_reference(name):
    assert agrees(name, 60)


@pytest.mark.parametrize(
    ("options", "runs"), [({"random_ties": False}, 8), ({"duplicate_start": False}, 20)], ids=["ties", "duplicate"]
)
def test_the_comparison_notices_a_wrong_knob(options, runs):
    assert not agrees("four_room43", runs, **options)


# GOSPRL-L


def weakly_communicating():
    """RiverSwim(3), and 3 -> 4 -> 0, where no way leads to. From 0, 1, 2, state 2 is 4.76 steps away at most."""
    P = np.zeros((5, 2, 5))
    P[:3, :, :3] = make("riverswim", states=3).dense()
    P[3, :, 4] = P[4, :, 0] = 1
    return TabularMDP(P)


def collect(mdp, need, strategy="gosprl", **options):
    """A run on a system that does not say what can be reached."""
    return gosprl.collect(Untold(mdp), need, strategy=strategy, **options)


def given_up(mdp, need, runs=200, **options):
    return [collect(mdp, need, seed=seed, max_steps=10**6, **options) for seed in range(runs)]


@pytest.mark.parametrize(("L", "runs"), [(5, 200), (20, 40)])
def test_states_that_cannot_be_reached_are_given_up_and_no_others(L, runs):
    wrong = 0
    for result in given_up(weakly_communicating(), 5, runs, reach=L):
        assert result.stop == "unreachable"
        assert not result.met
        assert {3, 4} <= set(result.unreachable)
        assert all(test.startswith("optimistic distance") for test in result.unreachable.values())
        assert result.counts.sum() == result.steps == result.model.visits.sum()
        if set(result.unreachable) == {3, 4}:
            assert (result.counts[:3] >= 5).all()
            assert set(result.unmet["state"]) == {3, 4}
        else:
            wrong += 1
    assert stats.binomtest(wrong, runs, 0.1, alternative="greater").pvalue > LEVEL


def test_a_state_far_beyond_reach_is_given_up():
    for result in given_up(make("toy3", nu=1e-3), 3, runs=50, reach=20):  # state 1 is 1000 steps away
        if result.met:  # it can be met by luck
            continue
        assert result.stop == "unreachable"
        assert set(result.unreachable) == {1}
        assert result.counts[0, 0] >= 3 <= result.counts[2].min()
        assert result.unmet.tolist() == [(1, 0, 3, result.counts[1, 0])]
        assert "given up   state 1" in repr(result)


@pytest.mark.parametrize(("scale", "valid"), [(1.0, True), (0.1, False)])
def test_a_state_as_far_as_reach_is_given_up_with_probability_delta_at_most(scale, valid):
    # D = 50 exactly; the sets scaled down are not valid, and show that the test can fail
    chain = make("two_state_chain", q=0.02)
    wrong = sum(result.stop == "unreachable" for result in given_up(chain, 3, reach=50, scale=scale))
    assert (stats.binomtest(wrong, 200, 0.1, alternative="greater").pvalue > LEVEL) == valid


def test_a_state_within_reach_is_not_given_up_while_it_is_left():
    # D of state 1 is 2: from 1 back to 1 it takes 1 + 2 steps, but after the first the agent is where 2 are enough
    chain = make("two_state_chain", q=0.5)
    assert chain.ssp_diameters()[1] == 2
    result = collect(chain, [0, 3], dynamics=chain, reach=2, seed=0, max_steps=10_000)
    assert result.unreachable == {}
    assert result.met


def test_costs_do_not_make_a_state_unreachable():
    # state 1 is 2 steps away, at a cost of 20
    chain = make("two_state_chain", q=0.5)
    result = collect(chain, [0, 3], dynamics=chain, reach=3, costs=[10, 10], seed=0, max_steps=10_000)
    assert result.unreachable == {}
    assert result.met


@pytest.mark.parametrize("goals", ["all", "least-sampled", "easiest", "random"])
@pytest.mark.parametrize("reach", [None, 5.0])
def test_one_goal_out_of_reach_is_no_reason_to_give_up_the_others(goals, reach):
    # 0 <-> 1, and 2 -> 0; state 2 has the least remaining need, and the fewest visits
    mdp = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 0, 0], np.ones(3)))
    result = collect(mdp, [10, 10, 1], dynamics=mdp, goals=goals, reach=reach, seed=0, max_steps=10_000)
    assert result.stop == "unreachable"
    assert set(result.unreachable) == {2}
    assert result.unmet.tolist() == [(2, -1, 1, 0)]


@pytest.mark.parametrize("goals", ["least-sampled", "easiest", "random"])
def test_single_goals_are_given_up_one_by_one(goals):
    wrong = 0
    for result in given_up(weakly_communicating(), 5, 30, reach=6, goals=goals):
        assert result.stop == "unreachable"
        assert set(result.unreachable) == set(result.unmet["state"]) >= {3, 4}
        wrong += set(result.unreachable) != {3, 4}
    assert stats.binomtest(wrong, 30, 0.1, alternative="greater").pvalue > LEVEL


def test_what_was_given_up_is_said_however_the_run_ends():
    # 0 <-> 1, and 2 -> 0: the first look shows that there is no way to 2
    mdp = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 0, 0], np.ones(3)))
    result = collect(mdp, [100, 100, 1], dynamics=mdp, seed=0, max_steps=50)
    assert result.stop == "max_steps"
    assert set(result.unreachable) == {2}


def test_a_state_given_up_and_then_sampled_by_luck_is_not_unreachable():
    # the toy, whose state 1 is 200 steps away, and a state 3 where no way leads to; many visits of 0 are wanted too
    toy = make("toy3", nu=0.005).dense()
    P = np.zeros((4, 2, 4))
    P[:3, :, :3] = toy
    P[3, 0, 0] = 1
    lucky = 0
    for seed in range(15):
        need = [[1000, 0], [1, 0], [1, 1], [1, 0]]
        collector = Collector(
            model=EmpiricalModel.over(TabularMDP(P).rows),
            need=need,
            strategy=Gosprl(reach=10, goals="least-sampled"),
            seed=seed,
        )
        result = collector.run(Untold(TabularMDP(P)), max_steps=10**6)
        assert result.stop == "unreachable"
        assert set(result.unreachable) == set(result.unmet["state"])
        lucky += 1 in collector.record.need.waived and result.counts[1, 0] > 0
    assert lucky > 0  # the case does occur


@pytest.mark.parametrize("options", [{}, {"dynamics": True}, {"reach": 3.0}, {"dynamics": True, "reach": 3.0}])
@pytest.mark.parametrize("need", [[1, 0], [[1], [0]], [2, 0]])
def test_the_state_where_the_agent_stands_is_sampled_before_it_is_given_up(options, need):
    # 0 -> 1 -> 1: there is no way back to 0, but a first sample of it can be had
    mdp = TabularMDP(([0, 1], [0, 0], [1, 1], np.ones(2)))
    options = options | ({"dynamics": mdp} if "dynamics" in options else {})
    result = collect(mdp, need, seed=0, max_steps=1000, **options)
    assert result.counts[0, 0] == 1
    assert result.met == (np.sum(need) == 1)


@pytest.mark.parametrize("options", [{}, {"dynamics": True}, {"reach": 3.0}, {"dynamics": True, "reach": 3.0}])
@pytest.mark.parametrize("need", [[0, 1, 0], [[0], [1], [0]]], ids=["states", "pairs"])
def test_a_goal_that_was_reached_is_sampled_before_it_is_given_up(options, need):
    # 0 -> 1 -> 2 -> 2: once 1 is left there is no way back
    mdp = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 2, 2], np.ones(3)))
    options = options | ({"dynamics": mdp} if "dynamics" in options else {})
    result = collect(mdp, need, seed=0, max_steps=1000, **options)
    assert (result.met, result.steps) == (True, 2)


class Watched(Gosprl):
    """Remembers, for each plan, the steps made and the needed samples that were there."""

    def begin(self, model, need, rng):
        return WatchedPlanner(self, model, need, rng)


class WatchedPlanner(GosprlPlanner):
    def __init__(self, *given):
        super().__init__(*given)
        self.made = []

    def attempt(self, s, t):
        answer = super().attempt(s, t)
        if getattr(answer, "horizon", 2) > 1:
            there = int(np.minimum(self.model.visits, self.need.pair).sum())
            self.made.append((t - 1, there))
        return answer


@pytest.mark.parametrize("alpha", [0.4, 0.7, 1.0, 1.3, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_papers_threshold(alpha, seed):
    # alpha (j L + L^{3/2} S^2 A), the sets being too wide for the other test to say anything
    mdp, L = TabularMDP(([0, 1], [0, 0], [0, 0], np.ones(2))), 4.0  # no way leads from 0 to 1
    strategy = Watched(reach=L, reach_constant=alpha, scale=1e6)
    collector = Collector(model=EmpiricalModel.over(mdp.rows), need=3, strategy=strategy, seed=seed)
    result = collector.run(Untold(mdp), max_steps=10**5)
    assert result.stop == "unreachable"
    assert all(test.startswith("paper's threshold") for test in result.unreachable.values())
    assert set(result.unreachable) == set(result.unmet["state"])
    late = [steps > alpha * ((there + 1) * L + 8 * 2**2 * 1) for steps, there in collector.planner.made]
    assert late == [False] * (len(late) - 1) + [True]
    assert collector.planner.made[-1][0] == result.steps


def test_without_its_constant_the_papers_threshold_never_fires():
    options = {"scale": 1e6, "reach": 1.0, "seed": 0, "max_steps": 5000}
    assert collect(weakly_communicating(), 1, reach_constant=1e-9, **options).steps < 20
    assert collect(weakly_communicating(), 1, reach_constant=None, **options).stop == "max_steps"


def test_a_state_within_reach_is_always_collected_by_default():
    # D = 2 = L: nothing may be given up, however long a run is; the paper's threshold, which certifies nothing, is off
    chain = make("two_state_chain", q=0.5)
    for seed in range(100):
        result = gosprl.collect(chain, np.array([0, 50]), strategy="gosprl", reach=2.0, seed=seed)
        assert result.met
        assert result.unreachable == {}
        assert str(result.guarantee) == "delta=0.1"


def test_a_run_that_the_papers_threshold_ended_has_no_guarantee():
    # a sample takes 3 steps on average, the threshold allows 2 for each and 11 more
    chain, ended = make("two_state_chain", q=0.5), 0
    for seed in range(100):
        options = {"strategy": "gosprl", "reach": 2.0, "reach_constant": 1.0, "seed": seed}
        result = gosprl.collect(chain, np.array([0, 8]), **options)
        by_threshold = any(test.startswith("paper's threshold") for test in result.unreachable.values())
        if by_threshold:
            ended += 1
            assert result.stop == "unreachable"
            assert not result.guarantee.holds
            assert str(result.guarantee).startswith("heuristic: stopped by the paper's threshold")
        else:
            assert result.met
            assert str(result.guarantee) == "delta=0.1"
    assert 0 < ended < 100  # both occur


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.05}, "delta=0.05"),
        ({}, "delta=0.1"),
        ({"confidence": "bernstein"}, "delta=0.1"),
        ({"scale": 0.1}, "heuristic: scale 0.1"),
        ({"confidence": "bernstein", "scale": 0.5}, "heuristic: scale 0.5"),
        ({"confidence": "bernstein", "scale": 0.1, "linear_scale": 0.01}, "heuristic: scale 0.1, linear scale 0.01"),
        ({"confidence": "bernstein", "linear_scale": 0.5}, "heuristic: scale 1, linear scale 0.5"),
        ({"confidence": "bernstein", "linear_scale": 2.0}, "delta=0.1"),
        ({"scale": 2.0}, "delta=0.1"),
        ({"dynamics": ring(2)}, "known dynamics"),
        ({"confidence": gosprl.KL(0.01)}, "that of KL"),
    ],
)
def test_guarantee(options, words):
    assert str(gosprl.collect(ring(2), 1, seed=0, strategy="gosprl", **options).guarantee) == words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0}, "delta: expected a number strictly between 0 and 1, got 0"),
        ({"delta": 1.0}, "delta: .* got 1.0"),
        ({"delta": float("nan")}, "delta: .* got nan"),
        ({"scale": 0.0}, "scale: expected a positive finite number, got 0.0"),
        ({"scale": -1}, "scale: .* got -1"),
        ({"scale": "wide"}, "scale: .* got 'wide'"),
        ({"confidence": "bernstein", "linear_scale": 0.0}, "linear_scale: expected a positive finite number, got 0.0"),
        ({"confidence": "bernstein", "linear_scale": "thin"}, "linear_scale: .* got 'thin'"),
        ({"linear_scale": 0.1}, 'linear_scale: only with confidence="bernstein"'),
        ({"linear_scale": 0.1, "confidence": gosprl.Bernstein()}, 'linear_scale: only with confidence="bernstein"'),
        ({"dynamics": ring(3), "linear_scale": 0.1}, "dynamics, linear_scale: .* one of the two"),
        ({"reach": 0}, "reach: expected a positive finite number, got 0"),
        ({"reach": float("inf")}, "reach: .* got inf"),
        ({"reach": 5.0, "reach_constant": -1.0}, "reach_constant: .* got -1.0"),
        ({"precision": 0.0}, "precision: .* got 0.0"),
        ({"precision": float("nan")}, "precision: .* got nan"),
        ({"confidence": "hoeffding"}, "confidence: 'hoeffding' is not known; known are bernstein, kl"),
        ({"confidence": 3}, "confidence: expected .*bernstein.*kl.* or an object"),
        (
            {"goals": "nearest"},
            "goals: 'nearest' is not known; known are all, all-always, easiest, least-sampled, random",
        ),
        ({"goals": 3}, "goals: 3 is not known"),
        ({"dynamics": ring(3), "confidence": "bernstein"}, "dynamics, confidence: .* one of the two"),
        ({"dynamics": ring(3), "confidence": gosprl.KL(0.1)}, "dynamics, confidence: .* one of the two"),
        ({"reach_constant": 1.0}, "reach_constant: only with reach="),
        ({"dynamics": ring(3).dense()}, "dynamics: expected a TabularMDP, got ndarray"),
        ({"dynamics": ring(4)}, "dynamics: expected the same states and actions"),
        ({"dynamics": ring(3), "successors": ring(3)}, "dynamics, successors: .* one of the two"),
        ({"successors": ring(4)}, "successors: expected an MDP with S = 3 states and A = 1 actions"),
        ({"successors": lambda s, a: [s + 1]}, r"successors: .* \(s, a\) = \(2, 0\), whole numbers in 0..2, got 3"),
    ],
)
def test_options_are_checked_before_any_step(options, words):
    class Untouched(gosprl.systems.tabular.Tabular):
        def follow(self, *given):
            pytest.fail("a step was made")

    with pytest.raises(InputError, match=words):
        gosprl.collect(Untouched(ring(3)), 1, strategy="gosprl", **options)


def test_dynamics_of_another_shape_are_refused_even_with_as_many_pairs():
    other = TabularMDP(([0, 0, 1], [0, 1, 0], [1, 0, 0], np.ones(3)))  # 2 states, 3 pairs
    with pytest.raises(InputError, match="dynamics"):
        gosprl.collect(ring(3), 2, strategy="gosprl", dynamics=other, max_steps=100)


@pytest.mark.parametrize(
    ("options", "precision"),
    [
        ({}, lambda t: 1 / (2 * t)),
        ({"dynamics": make("riverswim6")}, lambda t: 1e-7),
        ({"precision": 0.3}, lambda t: 0.3),
    ],
    ids=["unknown", "known", "given"],
)
def test_precision_of_the_plans(monkeypatch, options, precision):
    asked, plan = [], Workspace.plan

    def spy(self, goal, cost, precision, *more):
        asked.append((int(self.system.visits.sum()) + 1, precision))
        return plan(self, goal, cost, precision, *more)

    monkeypatch.setattr(Workspace, "plan", spy)
    result = gosprl.collect(make("riverswim6"), 2, seed=0, strategy="gosprl", planning="full", **options)
    assert len(asked) == result.attempts
    assert asked[-1][0] > 10
    assert all(given == precision(t) for t, given in asked)
