"""States beyond reach: gosprl, guarded and practical give up each by itself, and only if sets that hold say so.

What is held against their decisions is the optimistic distance of `gosprl.plan` to each goal alone, made anew from the
counts, and the true hitting times.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from stepped import Untold
from walked import by_hand, everything, table_collector

import gosprl
from evidence.reach import hub, with_rare_transitions
from gosprl import KL, CollectionError, Collector, EmpiricalModel, InputError, TabularMDP
from gosprl.envs import make
from gosprl.strategies import GivenUp, Gosprl, Guarded, Planner, Practical, Strategy
from gosprl.strategies.random import RandomPlanner
from gosprl.strategies.reach import Reach

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
@pytest.mark.parametrize("known", [None, "dynamics", "successors"])
@pytest.mark.parametrize(("mdp", "need", "L"), [(RIVER, 300, 60.0), (make("room20"), 80, 100.0)], ids=["river", "room"])
def test_tests_that_give_up_nothing_change_nothing(mdp, need, L, known, name, monkeypatch):
    """Nothing is given up, but distances are measured."""
    plans, distances = [], Reach.distances
    monkeypatch.setattr(Reach, "distances", lambda *given: plans.append(given) or distances(*given))
    options = {} if known is None else {known: mdp}
    plain, tested = (gosprl.collect(mdp, need, strategy=name, seed=0, reach=reach, **options) for reach in (None, L))
    assert plain.met
    assert len(plans) > 1
    assert (tested.steps, tested.unreachable) == (plain.steps, {})
    assert tested.counts.tolist() == plain.counts.tolist()


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
    chain, met = make("two_state_chain", q=0.5), 0
    for seed in range(60):
        result = gosprl.collect(chain, np.array([0, 50]), strategy=name, reach=2.0, seed=seed)
        met += result.met
        assert result.met == (result.unreachable == {})
    assert stats.binomtest(60 - met, 60, 0.1, alternative="greater").pvalue > LEVEL


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


# Goal by goal


def compared_run(options, mdp, need, seed, max_steps=20_000):
    """A run whose decisions are held against the distances of single goals; its planner, and the result."""
    model = EmpiricalModel.over(mdp.rows)
    collector = Collector(model=model, need=need, strategy=Compared(options), seed=seed)
    result = collector.run(Untold(mdp), max_steps=max_steps)
    return collector.planner, result


@pytest.mark.parametrize("name", NAMES)
def test_each_goal_given_up_is_beyond_reach_in_random_systems(name):
    """Successors are known: distances are learnt soon. By the truth, a run errs with probability 0.1 at most."""
    wrong = kept = given_up = ended = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        mdp, L = with_rare_transitions(rng), 40.0
        true = mdp.hitting_times()  # [s, g]
        need = rng.integers(0, 300, 7)
        planner, result = compared_run(KINDS[name](reach=L, successors=mdp), mdp, need, seed)
        ended += result.stop in ("met", "unreachable")
        assert set(result.unreachable) == set(result.unmet["state"]) or result.stop == "max_steps"
        wrong += any(true[s, g] <= L for s, g, _ in planner.log)
        kept += planner.kept
        given_up += len(planner.log)
    assert ended > 12  # others have goals a little farther away than L, which takes long to know
    assert given_up > 10
    assert kept > 3  # some were given up while others were collected
    assert stats.binomtest(wrong, 25, 0.1, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize("name", NAMES)
def test_far_goals_are_given_up_while_near_ones_go_on(name):
    """29 is 29 steps from the start, and not nearer to any other goal than 26; L = 20."""
    mdp, need = corridor(30), np.zeros(30, dtype=int)
    need[1:4], need[29] = 50, 5
    options = {"strategy": name, "dynamics": mdp, "reach": 20, "seed": 0}
    early = gosprl.collect(mdp, need, max_steps=5, **options)
    assert (early.stop, early.unreachable) == ("max_steps", {29: "optimistic distance 29 > L = 20"})
    result = gosprl.collect(mdp, need, **options)
    assert (result.stop, result.unreachable) == ("unreachable", {29: "optimistic distance 29 > L = 20"})
    assert result.unmet.tolist() == [(29, -1, 5, 0)]
    assert result.counts[5:].sum() == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("L", [50.0, 90.0])
def test_goals_each_beyond_reach_are_given_up_although_some_of_them_are_soon_met(name, L):
    """From 0, each takes 300 trials, of which 9 lead elsewhere and back: 309 steps. For some one of ten, 30 do."""
    mdp = hub(10, 1 / 300)
    need = np.array([400, 400] + [20] * 10)
    result = gosprl.collect(Untold(mdp), need, strategy=name, dynamics=mdp, reach=L, seed=0)
    assert result.stop == "unreachable"
    assert set(result.unreachable) == set(range(2, 12))
    assert (result.counts.sum(axis=1)[:2] >= 400).all()
    for g, test in result.unreachable.items():
        assert float(test.split()[2]) in (309, 310), (g, test)
    assert result.steps < 3000  # to collect them takes 20 * 300 steps and more


@pytest.mark.parametrize("name", ["guarded", "practical"])
def test_what_is_linked_by_goals_is_walked_to_the_end(name):
    """The end of the corridor is 29 steps away at first, but there is always a goal within 5 steps."""
    mdp = corridor(30)
    for system, dynamics in ((mdp, mdp), (Untold(mdp), None)):
        result = gosprl.collect(system, 3, strategy=name, dynamics=dynamics, reach=5, seed=0)
        assert (result.met, result.unreachable) == (True, {})


@pytest.mark.parametrize("name", NAMES)
def test_the_chain_whose_next_state_was_given_up_collects_everything(name):
    """Either state is one step from the other."""
    mdp = TabularMDP(([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], np.ones(4)))
    for seed, need in [(0, 30), (1, [0, 40]), (2, [[0, 0], [50, 3]])]:
        result = gosprl.collect(Untold(mdp), need, strategy=name, reach=1.0, seed=seed, max_steps=5000)
        assert (result.met, result.unreachable) == (True, {})


@pytest.mark.parametrize("name", NAMES)
def test_needs_of_pairs_in_a_system_that_is_known_well(name):
    """0 and 1 lack samples of one action each, 2 .. 4 are 500 steps away; what is known are counts, not the truth."""
    mdp = hub(3, 1 / 500)
    model = well_known(mdp)
    need = np.where(mdp.rows.action == 0, model.visits + 30, 0).reshape(5, 2)
    result = Collector(model=model, need=need, strategy=name, reach=200.0, seed=0).run(Untold(mdp), max_steps=5000)
    assert (result.stop, sorted(result.unreachable)) == ("unreachable", [2, 3, 4])
    assert result.unmet.tolist() == [(g, 0, 100_030, 100_000) for g in (2, 3, 4)]


@pytest.mark.parametrize("name", NAMES)
def test_many_goals_given_up_together_share_one_test(name):
    mdp = hub(40, 1e-3)
    result = gosprl.collect(Untold(mdp), 5, strategy=name, dynamics=mdp, reach=20, seed=0)
    assert set(result.unreachable) == set(range(2, 42))
    assert set(result.unreachable.values()) == {"optimistic distance to the nearest of 40 states 25 > L = 20"}


@pytest.mark.filterwarnings("ignore:goals are taken nearest first")
@pytest.mark.parametrize("name", NAMES)
def test_distances_that_doubles_cannot_hold_end_no_run(name):
    """The end is 9^59 steps away, or so; what is near is collected meanwhile."""
    s = np.arange(60)
    up = (s, 0 * s, np.minimum(s + 1, 59), np.full(60, 0.1))
    down = (s, 0 * s, np.maximum(s - 1, 0), np.full(60, 0.9))
    back = (s, 0 * s + 1, np.maximum(s - 1, 0), np.ones(60))
    mdp = TabularMDP(tuple(np.concatenate(part) for part in zip(up, down, back, strict=True)))
    need = np.zeros(60, dtype=int)
    need[[0, 1, 59]] = 1500, 20, 1
    result = gosprl.collect(Untold(mdp), need, strategy=name, dynamics=mdp, reach=100, seed=0, max_steps=1000)
    assert (result.stop, result.steps) == ("max_steps", 1000)
    assert set(result.unreachable) <= {59}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_run_by_ask_and_tell(name):
    mdp = hub(4, 1 / 300)
    need = np.array([100, 100] + [20] * 4)
    options = {"strategy": name, "reach": 80.0, "successors": mdp}
    collector, _ = by_hand(mdp, need, 3, **options)
    assert collector.done
    run = table_collector(6, 2, need, seed=3, **options).run(Untold(mdp))
    assert everything(collector.result()) == everything(run)
    assert run.stop == "unreachable"
    assert len(run.unreachable) > 0


# States that are discovered on the way


class Rooms:
    """Two rooms; action 0 leads to the other one, action 1 stays."""

    def reset(self):
        self.room = 0
        return self.room, {}

    def step(self, action):
        self.room = (self.room + 1 - action) % 2
        return self.room, 0.0, False, False, {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("resets", ["terminal", "anytime"])
def test_an_observation_that_is_never_made_is_given_up_and_the_others_are_collected(name, resets):
    need = {0: 700, 1: 700, "nowhere": 1, "never": 1}
    options = {"actions": 2, "seed": 0, "reach": 3.0, "resets": resets, "strategy": name}
    result = gosprl.collect(Rooms(), need, max_steps=20_000, **options)
    assert result.stop == "unreachable"
    assert list(result.unreachable) == [-2]
    assert result.unreachable[-2].startswith("optimistic distance ")
    assert result.unmet.tolist() == [(-2, -1, 2, 0)]
    assert (result.counts >= 700).all()


@pytest.mark.parametrize("rooms", [1, 40])  # with room for more states, and without
def test_a_state_discovered_after_what_is_not_discovered_was_given_up_is_collected(rooms):
    """The state that stands for undiscovered ones has the number that the next state discovered gets."""
    collector = Collector(actions=1, need={0: 200, "late": 4, "nowhere": 1}, seed=0)
    model, need, s = collector.record.model, collector.record.need, 0
    for step in range(600):
        if collector.done:
            break
        a = collector.ask(s)
        if step == 5:
            need.waive({model.states.used: "not here"})
            assert need.unmet_states == 1
        s_next = step - 9 if 10 <= step < 9 + rooms else "late" if step == 9 + rooms or (s == 0 and step > 60) else 0
        collector.tell(s, a, s_next)
        assert step < 5 or list(need.waived) == [model.states.used]
        s = s_next
    result = collector.result()
    assert result.stop == "unreachable"
    assert result.unreachable == {-2: "not here"}
    assert result.counts[result.model.states[:].index("late")] >= 4


# Waiving, as a strategy of one's own does it


class Waiving(Strategy):
    """Random steps; at the second attempt it gives up what it is told to."""

    def __init__(self, states):
        self.states = states

    def begin(self, model, need, rng):
        return WaivingPlanner(self.states, RandomPlanner(model), need)


class WaivingPlanner(Planner):
    def __init__(self, states, planner, need):
        self.states, self.planner, self.need, self.calls = states, planner, need, 0

    def attempt(self, s, t):
        self.calls += 1
        if self.calls == 2:
            self.need.waive(self.states)
        return replace(self.planner.attempt(s, t), horizon=5)


def test_a_planner_may_give_up_some_states_and_go_on():
    result = gosprl.collect(RIVER, 3, strategy=Waiving({4: "steep", 5: "steeper"}), seed=0)
    assert result.stop == "unreachable"
    assert set(result.unreachable.items()) <= {(4, "steep"), (5, "steeper")}
    assert result.unreachable
    assert (result.counts[:4] >= 3).all()


@pytest.mark.parametrize(
    ("states", "message"),
    [(None, "a dict"), ({9: "far"}, "a state in 0..5, got 9"), ({1: 2}, "a reason in words for state 1, got 2")],
)
def test_what_cannot_be_waived(states, message):
    with pytest.raises(CollectionError, match=f"need.waive: states: expected {message}"):
        gosprl.collect(RIVER, 3, strategy=Waiving(states), seed=0)


# Errors


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reach", [0, -1.0, np.inf, np.nan, "far"])
def test_a_wrong_reach(name, reach):
    with pytest.raises(InputError, match="reach: expected a positive finite number, got "):
        gosprl.collect(RIVER, 1, strategy=name, reach=reach)
