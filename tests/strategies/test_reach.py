"""States beyond reach: gosprl, guarded and practical give up each by itself, and only if sets that hold say so.

What is held against their decisions is the optimistic distance of `gosprl.plan` to each goal alone, made anew from the
counts, and the true hitting times.
"""

import numpy as np
import pytest
from scipy import stats
from stepped import Untold
from walked import table_collector

import gosprl
from gosprl import KL, Collector, EmpiricalModel, InputError, TabularMDP
from gosprl.envs import make
from gosprl.strategies import GivenUp, Gosprl, Guarded, Planner, Practical, Strategy

LEVEL = 1e-4  # false-alarm rate of each test of a law
NAMES = ["gosprl", "guarded", "practical"]
KINDS = {"gosprl": Gosprl, "guarded": Guarded, "practical": Practical}
RIVER = make("riverswim6")
CHAIN = make("two_state_chain", q=0.02)  # state 1 is 50 steps away


def weakly_communicating():
    """RiverSwim(3), and 3 -> 4 -> 0, where no way leads to. From 0, 1, 2, state 2 is 4.76 steps away at most."""
    P = np.zeros((5, 2, 5))
    P[:3, :, :3] = make("riverswim", states=3).dense()
    P[3, :, 4] = P[4, :, 0] = 1
    return TabularMDP(P)


def corridor(cells):
    """A row of cells; the actions lead to the left and to the right, surely."""
    s = np.arange(cells)
    s_next = np.concatenate([np.maximum(s - 1, 0), np.minimum(s + 1, cells - 1)])
    return TabularMDP((np.tile(s, 2), np.repeat([0, 1], cells), s_next, np.ones(2 * cells)))


def well_known(mdp, visits=100_000):
    """Counts in proportion to the dynamics."""
    s, a, s_next = np.nonzero(mdp.dense())
    counts = np.round(visits * mdp.dense()[s, a, s_next]).astype(int)
    return EmpiricalModel.from_counts(s, a, s_next, counts, states=mdp.num_states, actions=mdp.num_actions)


def distance(model, goals, s, delta=0.1):
    """The optimistic number of steps from s, in sets that hold."""
    return float(gosprl.plan(model, goals, confidence=KL(delta), precision=1e-6).values[s])


# Decisions


class Compared(Strategy):
    """Holds every decision of a strategy against the distances of single goals."""

    def __init__(self, options):
        self.options = options

    def begin(self, model, need, rng):
        return ComparedPlanner(self.options, model, need, self.options.begin(model, need, rng))


class ComparedPlanner(Planner):
    def __init__(self, options, model, need, planner):
        self.options, self.model, self.need, self.planner = options, model, need, planner
        self.plans = 0  # made in a state that has all it needs, and not given up
        self.log = []  # (state, goal, distance stated) of each goal given up
        self.kept = 0  # attempts returned together with goals given up

    def restart(self):
        self.planner.restart()

    def account(self, *given, **named):
        self.planner.account(*given, **named)

    def attempt(self, s, t):
        before, L, unmet = self.planner.work["plans"], self.options.reach, self.need.unmet_items > 0
        waived = set(self.need.waived)
        answer = self.planner.attempt(s, t)
        new = set(self.need.waived) - waived
        for g in new:
            own = distance(self.model, [g], s)
            stated = float(self.need.waived[g].split()[-5])
            assert own > L * (1 - 1e-6)
            assert stated * 1.001 > L  # rounded to four digits
            assert 0.99 * own < stated < 1.001 * own  # few goals: each has a plan of its own
            self.log.append((s, g, stated))
        assert not unmet[s] or s not in new
        if isinstance(answer, GivenUp):
            assert new == set(np.flatnonzero(unmet))
            assert set(answer.states) == set(self.need.waived)
        elif self.planner.work["plans"] > before and not unmet[s]:
            left = np.flatnonzero(self.need.unmet_items)
            assert distance(self.model, left, s) < L * 1.02  # plans have a precision
            self.plans += 1
        self.kept += bool(new) and not isinstance(answer, GivenUp)
        return answer


CASES = {
    "toy, far": (make("toy3", nu=1e-3), 3, 20),
    "toy, at the limit": (make("toy3", nu=0.02), 6, 40),
    "chain, far": (CHAIN, [0, 3], 10),
    "chain, near": (CHAIN, [0, 6], 60),
    "river, far end": (RIVER, [5, 5, 0, 0, 0, 50], 3),
    "weakly, 5": (weakly_communicating(), 5, 5),
    "weakly, 20": (weakly_communicating(), 5, 20),
    "garnet": (make("garnet", states=15, actions=2, branching=2, seed=3), np.arange(15) % 5 // 4 * 40, 4),
}
SOME_GIVE_UP = ["toy, far", "chain, far", "weakly, 5", "weakly, 20"]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_needed_is_given_up_where_its_distance_exceeds_reach_and_nowhere_else(case, name):
    mdp, need, L = CASES[case]
    plans, gave_up = 0, 0
    for seed in range(6):
        strategy = Compared(KINDS[name](reach=L))
        collector = Collector(model=EmpiricalModel.over(mdp.rows), need=need, strategy=strategy, seed=seed)
        result = collector.run(Untold(mdp), max_steps=20_000)
        assert result.stop in ("met", "unreachable")
        assert set(result.unreachable) == set(result.unmet["state"])
        plans += collector.planner.plans
        gave_up += result.stop == "unreachable"
    assert plans > 10
    assert gave_up > 0 or case not in SOME_GIVE_UP


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("mdp", "within", "beyond"), [(RIVER, 20, 8), (corridor(30), 40, 20)], ids=["river", "corridor"]
)
def test_near_states_are_collected_and_far_ones_given_up_if_beyond_reach(mdp, within, beyond, name):
    """In a system that is well known: what is needed are samples of the two ends, and the walk begins at one."""
    last = mdp.num_states - 1
    for reach in (within, beyond):
        model = well_known(mdp)
        had = np.bincount(mdp.rows.state, weights=model.visits).astype(int)
        far = distance(model, np.arange(last + 1) == last, 0)
        assert beyond < 0.9 * far < 1.1 * far < within
        need = np.zeros(last + 1, dtype=int)
        need[[0, last]] = had[[0, last]] + 5
        result = Collector(model=model, need=need, strategy=name, reach=float(reach), seed=0).run(mdp, max_steps=50_000)
        gained = result.counts.sum(axis=1) - had
        assert gained[0] >= 5
        if reach == within:
            assert result.met
            assert result.unreachable == {}
            assert gained[last] >= 5
        else:
            assert result.stop == "unreachable"
            assert list(result.unreachable) == [last]
            assert result.unreachable[last].startswith("optimistic distance ")
            assert result.unreachable[last].endswith(f" > L = {beyond}")
            assert gained[last] == 0
            assert result.unmet.tolist() == [(last, -1, had[last] + 5, had[last])]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("mdp", "need"), [(RIVER, 5), (make("room20"), 3), (CHAIN, [0, 10])], ids=["river", "room", "chain"]
)
def test_a_reach_without_end_changes_nothing(mdp, need, name):
    for seed in range(3):
        plain, wide = (gosprl.collect(mdp, need, strategy=name, seed=seed, reach=L) for L in (None, 1e9))
        assert plain.met
        assert wide.unreachable == {}
        assert (wide.steps, wide.counts.tolist()) == (plain.steps, plain.counts.tolist())
        assert str(wide.guarantee) == str(plain.guarantee)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("L", "runs"), [(5, 60), (20, 20)])
def test_states_that_cannot_be_reached_are_given_up_and_no_others(L, runs, name):
    wrong = 0
    for seed in range(runs):
        options = {"strategy": name, "reach": L, "seed": seed, "max_steps": 10**6}
        result = gosprl.collect(Untold(weakly_communicating()), 5, **options)
        assert result.stop == "unreachable"
        assert {3, 4} <= set(result.unreachable)
        assert all(test.startswith("optimistic distance") for test in result.unreachable.values())
        if set(result.unreachable) == {3, 4}:
            assert (result.counts[:3] >= 5).all()
        else:
            wrong += 1
    assert stats.binomtest(wrong, runs, 0.1, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize("name", NAMES)
def test_a_state_as_far_as_reach_is_given_up_with_probability_delta_at_most(name):
    runs = [gosprl.collect(CHAIN, 3, strategy=name, reach=50, seed=seed, max_steps=10**6) for seed in range(200)]
    wrong = sum(run.stop == "unreachable" for run in runs)
    assert stats.binomtest(wrong, 200, 0.1, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize("name", NAMES)
def test_a_state_within_reach_is_not_given_up_while_it_is_left(name):
    # from 1 back to 1 it takes 1 + 2 steps, but after the first the walk is where 2 are enough
    chain = make("two_state_chain", q=0.5)
    for seed in range(20):
        result = gosprl.collect(chain, np.array([0, 50]), strategy=name, reach=2.0, seed=seed)
        assert result.met
        assert result.unreachable == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_guarantee_with_reach(name):
    """What was given up is certified by sets that hold; of practical steps nothing is."""
    words = "heuristic: scale 0.01" if name == "practical" else "delta=0.1"
    for result in (
        gosprl.collect(CHAIN, [0, 3], strategy=name, reach=1.01, seed=0),
        gosprl.collect(CHAIN, [0, 3], strategy=name, reach=1000, seed=0),
    ):
        assert str(result.guarantee) == words
    assert result.met


@pytest.mark.parametrize("name", NAMES)
def test_a_loop_of_ones_own_hears_that_what_is_needed_was_given_up(name):
    mdp, rng = weakly_communicating(), np.random.default_rng(0)
    collector, s = table_collector(5, 2, 3, strategy=name, reach=6, seed=0), 0
    for _ in range(20_000):
        if collector.done:
            break
        a = collector.ask(s)
        succ, p = mdp.p(s, a)
        s_next = int(rng.choice(succ, p=p))
        collector.tell(s, a, s_next)
        s = s_next
    result = collector.result()
    assert result.stop == "unreachable"
    assert {3, 4} <= set(result.unreachable)
    with pytest.raises(InputError, match="ask: there is nothing left to collect"):
        collector.ask(s)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reach", [0, -1.0, np.inf, np.nan, "far"])
def test_a_wrong_reach(name, reach):
    with pytest.raises(InputError, match="reach: expected a positive finite number, got "):
        gosprl.collect(RIVER, 1, strategy=name, reach=reach)
