"""collect: one call from a system and a need to a result; what it refuses, and what goes wrong on the way."""

import doctest
import importlib
import inspect
import signal
import warnings

import numpy as np
import pytest
from walked import OPTIONS, RIVER, TOY, Drawn, Troubled, ctrl_c, everything, interrupt, stop_after, table_collector

import gosprl
from gosprl import CollectionError, Collector, EmpiricalModel, InputError, TabularMDP
from gosprl.envs import make
from gosprl.strategies import UNLIMITED, Attempt, GivenUp, Gosprl, Planner, Strategy
from gosprl.systems import Outcome
from gosprl.systems.tabular import Tabular

# One seeding rule


@pytest.mark.parametrize("options", OPTIONS)
def test_the_same_seed_is_the_same_run(options):
    runs = [gosprl.collect(RIVER, 3, seed=seed, **OPTIONS[options]) for seed in (1, 1, 2)]
    assert everything(runs[0]) == everything(runs[1])
    assert everything(runs[0]) != everything(runs[2])


def test_no_seed_is_another_run_every_time():
    runs = [gosprl.collect(RIVER, 3) for _ in range(4)]
    assert len({str(everything(run)) for run in runs}) > 1
    assert runs[0].seed is None


@pytest.mark.parametrize("other", [RIVER, TOY, make("wheel", states=9)], ids=lambda mdp: mdp.name)
def test_a_strategy_object_can_be_used_again(other):
    strategy = Gosprl(scale=0.5)
    gosprl.collect(RIVER, 3, strategy=strategy, seed=0)
    again = gosprl.collect(other, 3, strategy=strategy, seed=0, max_steps=5000)
    assert everything(again) == everything(gosprl.collect(other, 3, strategy="gosprl", scale=0.5, seed=0))


def test_a_run_may_end_on_its_last_allowed_step():
    steps = gosprl.collect(RIVER, 2, seed=0).steps
    result = gosprl.collect(RIVER, 2, seed=0, max_steps=steps)
    assert (result.met, result.stop, result.steps) == (True, "met", steps)
    assert gosprl.collect(RIVER, 2, seed=0, max_steps=steps - 1).stop == "max_steps"


# Bad input


class Untouched(Tabular):
    def follow(self, engine, steps):
        pytest.fail("a step was made")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "greedy"}, "strategy: 'greedy' is not known; known are .*gosprl.*random"),
        ({"strategy": 3}, "strategy: expected a name, one of .*gosprl.*random.*, got 3"),
        ({"alpha": 1}, "alpha: not an option of strategy 'guarded', which takes delta, confidence, .*kappa.*prior$"),
        ({"scale": 0.1}, "scale: not an option of strategy 'guarded', .*; scale is an option of gosprl, practical, "),
        ({"strategy": "random", "delta": 0.1}, "delta: not an option of strategy 'random', which takes no options"),
        ({"strategy": Gosprl(), "delta": 0.1}, "delta: a strategy object was given, which has its options already"),
        ({"max_steps": 0}, "max_steps: expected a whole number >= 1, got 0"),
        ({"max_steps": -3}, "max_steps: .* got -3"),
        ({"max_steps": 1.5}, "max_steps: .* got 1.5"),
        ({"seed": -1}, "seed"),
        ({"seed": "zero"}, "seed"),
    ],
)
def test_bad_options_are_refused_before_any_step(options, words):
    with pytest.raises(InputError, match=words):
        gosprl.collect(Untouched(RIVER), 1, **options)


def test_names_and_functions_are_systems():
    expected = gosprl.collect(gosprl.envs.make("riverswim6"), 2, seed=3)
    for system in ("riverswim6", lambda: gosprl.envs.make("riverswim6")):
        result = gosprl.collect(system, 2, seed=3)
        assert (result.steps, result.counts.tolist()) == (expected.steps, expected.counts.tolist())
    with pytest.raises(InputError, match=r"^env: 'riverswimming' is not one of our domains \(.*riverswim.*\), and Gym"):
        gosprl.collect("riverswimming", 1)


@pytest.mark.parametrize("system", [3, None, RIVER.dense()])
def test_what_is_no_system(system):
    words = (
        r"^system: expected a TabularMDP, a Gymnasium environment, an object .* or a gosprl\.systems\.System, got \w+$"
    )
    with pytest.raises(InputError, match=words):
        gosprl.collect(system, 1)


@pytest.mark.parametrize("threshold", [np.nan, np.inf, "much", True, [1.0]])
def test_thresholds_are_numbers(threshold):
    with pytest.raises(InputError, match="threshold: expected a finite number"):
        gosprl.collect(RIVER, 1, threshold=threshold)


# What goes wrong on the way


def test_a_system_that_raises_loses_nothing():
    with pytest.raises(CollectionError, match="the run failed after 37 steps: the plant is down") as caught:
        gosprl.collect(Troubled(RIVER, {37: OSError("the plant is down")}), 20, seed=0)
    result = caught.value.result
    assert (result.stop, result.met, result.steps) == ("failed", False, 37)
    assert result.counts.sum() == 37
    assert isinstance(caught.value.__cause__, OSError)


def test_a_system_that_raises_before_the_first_step():
    with pytest.raises(CollectionError, match="after 0 steps") as caught:
        gosprl.collect(Troubled(RIVER, {0: OSError("not plugged in")}), 20, seed=0)
    assert caught.value.result.stop == "failed"


def test_an_interrupted_system_loses_nothing():
    result = gosprl.collect(Troubled(RIVER, {37: KeyboardInterrupt()}), 20, seed=0)
    assert (result.stop, result.met, result.steps, result.counts.sum()) == ("interrupted", False, 37, 37)


# 0 <-> 1, and 2 -> 0: no way leads to 2
ISLAND = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 0, 0], np.ones(3)))


@pytest.mark.parametrize("how", [ctrl_c, interrupt])
def test_a_run_that_may_never_end_says_so_once_and_can_be_stopped(impatient, how):
    with pytest.warns(UserWarning, match=r"still needed are states such as 2, .*cannot be reached.*") as caught:
        result = gosprl.collect(Drawn(ISLAND), 3, seed=0, progress=stop_after(2000, how))
    assert len(caught) == 1
    assert "max_steps= or reach=" in str(caught[0].message)
    assert (result.stop, result.met) == ("interrupted", False)
    assert result.steps == result.counts.sum() >= 2000
    assert result.counts[:2].min() >= 3
    assert result.unmet.tolist() == [(2, 0, 3, 0)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("limit", [{"max_steps": 2000}, {"reach": 4.0}, {"strategy": "gosprl", "reach": 4.0}])
def test_a_run_that_will_end_says_nothing(impatient, limit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = gosprl.collect(Drawn(ISLAND), 3, seed=0, **limit)
    assert result.stop == ("unreachable" if "reach" in limit else "max_steps")


def test_a_long_run_may_wait_longer(impatient):
    result = gosprl.collect(Drawn(ISLAND), [1000, 1000, 3], seed=0, progress=stop_after(2600, ctrl_c))
    assert result.stop == "interrupted"
    assert 2600 <= result.steps < 4000  # after 2000 steps nothing needed was sampled, which is less than half


def test_a_need_that_grows_is_no_reason_to_worry(impatient):
    """Samples are gained all the time, though more are missing than once."""

    def need(model):
        return [[1], [1], [0]] if model.visits[:2].min() == 0 else [[1500], [1500], [0]]

    result = gosprl.collect(ISLAND, need, seed=0)
    assert result.met


# Successors known


def test_knowing_what_is_possible_saves_steps():
    """Means of 10 runs: at scale 1 with the candidates it is close to what no collector can beat."""
    known, blind = (
        np.mean([gosprl.collect(RIVER, 10, seed=seed, **options).steps for seed in range(10)])
        for options in ({"successors": RIVER, "strategy": "gosprl"}, {"strategy": "gosprl"})
    )
    limit = gosprl.fluid_limit(RIVER, 10)
    assert known < 1.2 * limit
    assert blind > 1.1 * known


# Stopping at a reward


def test_what_meets_the_need_and_is_found_was_found():
    mdp = TabularMDP([[[1.0]]], rewards=[[2.0]])
    result = gosprl.collect(mdp, 1, threshold=1)
    assert (result.stop, result.met, result.found) == ("found", True, (0, 0, 0, 2.0, 1))
    assert gosprl.collect(mdp, 1, threshold=2).stop == "met"
    collector = table_collector(1, 1, 1, threshold=1)
    collector.tell(0, collector.ask(0), 0, 2.0)
    assert collector.result().stop == "found"


# Goals and plans where the need changes


class Goals(Strategy):
    """Algorithm 1, and at every plan of it whether its goals are the under-sampled states."""

    def __init__(self, **options):
        self.inner, self.plans, self.versions = Gosprl(**options), 0, set()

    def begin(self, model, need, rng):
        return GoalsPlanner(self, need, self.inner.begin(model, need, rng))


class GoalsPlanner(Planner):
    def __init__(self, seen, need, inner):
        self.seen, self.need, self.inner = seen, need, inner

    def restart(self):
        self.inner.restart()

    def attempt(self, s, t):
        need, answer = self.need, self.inner.attempt(s, t)
        self.seen.versions.add(need.version)
        if answer.horizon > 1:
            self.seen.plans += 1
            under = need.unmet_items > 0
            # the initial phase: all are under-sampled
            least = under & (need.missing_samples == need.missing_samples.min())
            assert answer.goals.tolist() == (least if under.all() else under).tolist()
        return answer


@pytest.mark.parametrize("planning", ["focused", "full"])
@pytest.mark.parametrize("seed", range(4))
def test_goals_are_what_is_under_sampled_whatever_the_need_does(seed, planning):
    """States come and go, with and without a sample in between; most often only numbers change."""
    rng = np.random.default_rng(seed)

    def need(model):
        wanted = model.visits.reshape(6, 2) + rng.integers(0, 3, (6, 2))
        return np.where(rng.random((6, 1)) < 0.9, wanted, 0) * (model.visits.sum() < 400)

    strategy = Goals(planning=planning)
    result = gosprl.collect(RIVER, need, seed=seed, strategy=strategy)
    assert result.met
    assert strategy.plans > 20
    assert len(strategy.versions) > 5


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "practical"])
def test_a_need_that_is_asked_for_and_stays_is_a_fixed_one(strategy):
    """Plans are for sets of states: looking at the need again is no reason for another plan."""
    fixed = gosprl.collect(RIVER, 30, seed=0, strategy=strategy)
    asked = gosprl.collect(RIVER, lambda model: 30, seed=0, strategy=strategy)
    assert everything(asked) == everything(fixed)
    assert asked.work == fixed.work
    assert asked.work["plans"] > 5


# What cannot be reached, where the dynamics say so

# 0 -> 1, through a door that does not open again, and 1 -> 2 -> 3 -> 1
DOOR = TabularMDP(([0, 1, 2, 3], [0] * 4, [1, 2, 3, 1], np.ones(4)))


def test_what_cannot_be_reached_is_listed_before_the_first_step(strategy):
    collector = table_collector(3, 1, 3, seed=0, strategy=strategy)
    first = collector.run(ISLAND, max_steps=1)
    assert (first.stop, first.unreachable) == ("max_steps", {2: "no path from state 0"})
    result = collector.run()
    assert (result.stop, result.met) == ("unreachable", False)
    assert result.unreachable == {2: "no path from state 0"}
    assert result.unmet.tolist() == [(2, 0, 3, 0)]
    assert result.counts.ravel().tolist() == [3, 3, 0]  # the rest, and not a step more
    assert (result.states, result.pairs, result.missing) == (3, 3, 3)


def test_no_step_is_made_if_nothing_can_be_reached(strategy):
    result = gosprl.collect(ISLAND, [0, 0, 3], seed=0, strategy=strategy)
    assert (result.stop, result.met, result.steps) == ("unreachable", False, 0)
    assert result.unreachable == {2: "no path from state 0"}


def test_what_cannot_be_reached_costs_nothing(strategy):
    """The same walk as if it were not needed, on a larger system: riverswim6, and a state that leads into it."""
    P = np.zeros((7, 2, 7))
    P[:6, :, :6], P[6, :, 3] = RIVER.dense(), 1
    mdp = TabularMDP(P)
    asked, spared = (gosprl.collect(mdp, need, seed=1, strategy=strategy) for need in (3, [[3, 3]] * 6 + [[0, 0]]))
    assert (asked.stop, spared.stop) == ("unreachable", "met")
    assert asked.unreachable == {6: "no path from state 0"}
    assert spared.unreachable == {}
    assert asked.counts.tolist() == spared.counts.tolist()


def test_what_is_behind_a_door_that_closed_is_listed_after_it(strategy):
    collector = table_collector(4, 1, [5, 2, 2, 2], seed=0, strategy=strategy)
    assert collector.run(DOOR, max_steps=1).unreachable == {}  # nobody knew: the door is passed
    assert collector.run(max_steps=1).unreachable == {0: "no path from state 1"}
    result = collector.run()
    assert (result.stop, result.met) == ("unreachable", False)
    assert result.unreachable == {0: "no path from state 1"}
    assert result.counts.ravel().tolist() == [1, 2, 2, 2]  # not a step is wasted
    assert result.unmet.tolist() == [(0, -1, 5, 1)]


def test_doors_one_after_the_other(strategy):
    """0 <-> 1, doors to 2 <-> 3 and from there to 4 <-> 5: at random, states are left for good before they are met."""
    s = [0, 0, 1, 1, 2, 2, 3, 3, 4, 5]
    a = [0, 1, 0, 1, 0, 1, 0, 1, 0, 0]
    mdp = TabularMDP((s, a, [1, 1, 0, 2, 3, 3, 2, 4, 5, 4], np.ones(10)))
    for seed in range(3):
        result = gosprl.collect(mdp, 4, seed=seed, strategy=strategy)
        unmet = set(result.unmet["state"].tolist())
        assert result.stop == ("unreachable" if unmet else "met")
        assert set(result.unreachable) == unmet
        assert unmet <= {0, 1, 2, 3}
        assert (result.counts[[4, 5], 0] >= 4).all()
        for state, reason in result.unreachable.items():
            after = int(reason.removeprefix("no path from state "))
            assert after // 2 > state // 2
        assert result.steps < 400


def test_unreachable_is_only_what_is_unmet():
    """State 2 cannot be reached, but has what it needs, or needs nothing."""
    model = EmpiricalModel(3, 1)
    model.update([2, 2], [0, 0], [0, 0])
    collector = Collector(need=2, model=model, seed=0)
    result = collector.run(ISLAND)
    assert (result.stop, result.met, result.unreachable) == ("met", True, {})
    result = gosprl.collect(ISLAND, [[2], [2], [0]], seed=0)
    assert (result.stop, result.met, result.unreachable, result.steps) == ("met", True, {}, 4)


def test_a_need_may_grow_where_nothing_can_be_reached():
    def need(model):
        return [[3], [3], [0 if model.visits.sum() < 4 else 3]]

    result = gosprl.collect(ISLAND, need, seed=0, max_steps=1000)
    assert (result.stop, list(result.unreachable), result.counts.ravel().tolist()) == ("unreachable", [2], [3, 3, 0])


def test_a_need_may_shrink_where_nothing_can_be_reached():
    def need(model):
        return [[3], [3], [3 if model.visits.sum() < 4 else 0]]

    collector = table_collector(3, 1, need, seed=0)
    assert list(collector.run(ISLAND, max_steps=1).unreachable) == [2]
    result = collector.run()
    assert (result.stop, result.met, result.unreachable) == ("met", True, {})


def test_the_curve_counts_no_state_that_was_given_up():
    told = []
    result = gosprl.collect(ISLAND, 3, seed=0, progress=told.append)
    assert result.curve.tolist() == [(0, 0.0), (5, pytest.approx(1 / 3)), (6, pytest.approx(2 / 3))]
    assert told[-1]["met"] == pytest.approx(2 / 3)


def test_a_walk_that_begins_anew_may_reach_what_was_given_up():
    collector = table_collector(4, 1, [3, 2, 2, 2], seed=0)
    assert collector.run(DOOR).unreachable == {0: "no path from state 1"}
    again = [TabularMDP(DOOR.dense()) for _ in range(2)]
    result = collector.run(again[0])
    assert (result.stop, result.counts[0, 0]) == ("unreachable", 2)
    result = collector.run(again[1])
    assert (result.stop, result.met, result.counts.ravel().tolist()) == ("met", True, [3, 2, 2, 2])


@pytest.mark.parametrize("start", [0, 1])
def test_another_system_may_have_another_graph(start):
    """From 0 and 1 all that is needed can be reached, in the other system only these two."""
    one = TabularMDP(([0, 1, 2, 3], [0] * 4, [1, 2, 0, 0], np.ones(4)), start)
    other = TabularMDP(([0, 1, 2, 3], [0] * 4, [1, 0, 0, 0], np.ones(4)), start)
    collector = table_collector(4, 1, [5, 5, 5, 0], seed=0)
    assert collector.run(one, max_steps=2).unreachable == {}
    result = collector.run(other, max_steps=100)
    assert (result.stop, list(result.unreachable)) == ("unreachable", [2])


def test_a_system_of_ones_own_may_know_its_graph():
    class Knowing(Drawn):
        ends = False

        def __init__(self, mdp):
            super().__init__(mdp)
            self.mdp = mdp

    for mdp, need in ((ISLAND, 3), (DOOR, [5, 2, 2, 2])):
        own, simulated = (gosprl.collect(system, need, seed=0) for system in (Knowing(mdp), mdp))
        assert (own.stop, own.unreachable) == (simulated.stop, simulated.unreachable)
        assert own.counts.tolist() == simulated.counts.tolist()


# Needs that no walk will ever meet

HUGE = 2**62
ONE_PAIR = np.zeros((6, 2), dtype=np.int64)
ONE_PAIR[4, 1] = HUGE
HUGE_NEEDS = {  # what is asked for, and of which pairs or states
    "number": (HUGE, np.full((6, 2), HUGE)),
    "pairs": (np.full((6, 2), HUGE), np.full((6, 2), HUGE)),
    "states": (np.full(6, HUGE), np.full(6, HUGE)),
    "one pair": (ONE_PAIR, ONE_PAIR),
    "callable": (lambda model: HUGE, np.full((6, 2), HUGE)),
    "the largest": (2**63 - 1, np.full((6, 2), 2**63 - 1)),
}


@pytest.mark.filterwarnings("ignore:goals are taken nearest first")  # the solver gives up at such numbers
@pytest.mark.parametrize("kind", HUGE_NEEDS)
def test_nothing_overflows(kind, strategy):
    need, by_item = HUGE_NEEDS[kind]
    result = gosprl.collect(RIVER, need, seed=0, strategy=strategy, max_steps=40)
    have = result.counts.sum(axis=1) if by_item.ndim == 1 else result.counts
    missing = sum(b - n for b, n in zip(by_item.ravel().tolist(), have.ravel().tolist(), strict=True) if b > 0)
    assert (result.stop, result.met, result.steps) == ("max_steps", False, 40)
    assert result.missing == missing > 0
    assert f"{missing} samples missing" in repr(result)
    assert set(result.unmet["needed"].tolist()) == {int(by_item.max())}
    assert result.curve["proportion"][-1] == (by_item.reshape(6, -1).max(axis=1) == 0).mean()


# Systems that do not do what they should


class Bad(Drawn):
    """From some step on, answers otherwise: `bad` are {method: what it returns or raises}."""

    block = 1000

    def __init__(self, mdp, after, **bad):
        super().__init__(mdp)
        self.after, self.bad, self.resets = after, bad, 0

    def answer(self, name, otherwise):
        if name not in self.bad or len(self.log) < self.after:
            return otherwise()
        made = otherwise() if name == "step" else None  # a step is made, whatever it returns
        if isinstance(self.bad[name], Exception):
            raise self.bad[name]
        return self.bad[name](made) if callable(self.bad[name]) else self.bad[name]

    def model(self):
        return self.answer("model", super().model)

    def requirement(self, need, model):
        return self.answer("requirement", lambda: super(Bad, self).requirement(need, model))

    def seed(self, rng):
        super().seed(rng)
        self.answer("seed", lambda: None)

    def reset(self):
        self.resets += 1
        return self.answer("reset", super().reset)

    def step(self, action):
        return self.answer("step", lambda: super(Bad, self).step(action))


STEPS = {
    "nothing": (None, r"system: expected Bad\.step to return an Outcome"),
    "three": ((0, 0.0, False), r"system: expected Bad\.step to return an Outcome"),
    "outside": (Outcome(6), r"system: the state that Bad\.step\(\) returned: expected a state in 0\.\.5, got 6"),
    "negative": (Outcome(-1), r"system: the state that Bad\.step\(\) returned: expected a state in 0\.\.5, got -1"),
    "word": (Outcome("left"), r"system: the state that Bad\.step\(\) returned: expected whole numbers"),
    "nan": (lambda made: made._replace(reward=np.nan), r"rewards: expected finite numbers, got nan at \(s, a\) = "),
    "reward in words": (lambda made: made._replace(reward="much"), "reward: expected a finite number, got 'much'"),
    "raises": (OSError("the plant is down"), "the plant is down"),
}


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("after", [0, 1, 30])
def test_a_step_that_makes_no_sense_loses_nothing(kind, after):
    answer, words = STEPS[kind]
    system, collector = Bad(RIVER, after, step=answer), table_collector(6, 2, 20, seed=0)
    if after == 0 and kind != "raises":
        with pytest.raises(InputError, match=words):
            collector.run(system)
    else:
        with pytest.raises(CollectionError, match=rf"^the run failed after {after} steps: {words}") as caught:
            collector.run(system)
        result = caught.value.result
        assert (result.stop, result.met, result.steps) == ("failed", False, after)
        assert result.counts.sum() == after
        assert caught.value.__cause__ is not None
    assert len(system.log) == after + 1
    system.bad = {}
    result = collector.run()
    walked = system.log[:after] + system.log[after + 1 :]
    triples, number = np.unique(walked, axis=0, return_counts=True)
    assert result.met
    assert np.column_stack(result.model.transitions()).tolist() == np.column_stack([triples, number]).tolist()
    assert (system.resets, system.log[after + 1][0]) == (2, 0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("zero", r"system: the state that Bad\.reset\(\) returned: expected whole numbers"),
        (6, r"system: the state that Bad\.reset\(\) returned: expected a state in 0\.\.5, got 6"),
        ((0, {}), r"system: the state that Bad\.reset\(\) returned: "),
        (OSError("no connection"), "no connection"),
    ],
    ids=["word", "outside", "tuple", "raises"],
)
def test_a_reset_that_makes_no_sense(answer, words):
    error = CollectionError if isinstance(answer, Exception) else InputError
    system = Bad(RIVER, 0, reset=answer)
    with pytest.raises(error, match=words):
        gosprl.collect(system, 3)
    assert system.log == []
    # later, after a step that failed: what was collected is kept
    system, collector = Bad(RIVER, 9, step=OSError("down"), reset=answer), table_collector(6, 2, 20, seed=0)
    with pytest.raises(CollectionError, match="the run failed after 9 steps: down"):
        collector.run(system)
    with pytest.raises(CollectionError, match=f"^the run failed after 9 steps: {words}") as caught:
        collector.run()
    assert caught.value.result.steps == caught.value.result.counts.sum() == 9


def test_a_system_that_cannot_be_seeded():
    with pytest.raises(CollectionError, match="the run failed after 0 steps: locked") as caught:
        gosprl.collect(Bad(RIVER, 0, seed=OSError("locked")), 3)
    assert (caught.value.result.stop, caught.value.result.steps) == ("failed", 0)


@pytest.mark.parametrize("model", [None, RIVER, (6, 2)], ids=["nothing", "mdp", "tuple"])
def test_a_system_without_a_model(model):
    words = rf"^system: expected Bad\.model\(\) to return an EmpiricalModel, got {type(model).__name__}$"
    with pytest.raises(InputError, match=words):
        gosprl.collect(Bad(RIVER, 0, model=model), 3)


def test_a_system_whose_requirement_fails():
    with pytest.raises(ArithmeticError, match="no idea"):
        gosprl.collect(Bad(RIVER, 0, requirement=ArithmeticError("no idea")), 3)
    with pytest.raises(InputError, match="need: expected"):
        gosprl.collect(Bad(RIVER, 0, requirement={"much"}), 3)


# Strategies that do not do what they should


class Wrong(Strategy):
    """Algorithm 1, until its planner returns something else."""

    def __init__(self, answer, after=20):
        self.answer, self.after = answer, after

    def begin(self, model, need, rng):
        return WrongPlanner(self, Gosprl().begin(model, need, rng))


class WrongPlanner(Planner):
    def __init__(self, wrong, inner):
        self.wrong, self.inner = wrong, inner

    def attempt(self, s, t):
        if t <= self.wrong.after:
            return self.inner.attempt(s, t)
        if isinstance(self.wrong.answer, Exception):
            raise self.wrong.answer
        return self.wrong.answer(s) if callable(self.wrong.answer) else self.wrong.answer


def handing_back(s):
    return Attempt(np.full(6, -1), np.zeros(6, dtype=bool), np.full(12, UNLIMITED), 1)


def elsewhere(s):
    return Attempt(np.full(6, 2 * ((s + 1) % 6)), np.zeros(6, dtype=bool), np.full(12, UNLIMITED), 1)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, r"strategy: expected WrongPlanner\.attempt to return an Attempt or GivenUp, got None"),
        ((1, 2), r"strategy: expected WrongPlanner\.attempt to return an Attempt or GivenUp, got \(1, 2\)"),
        (
            Attempt(np.zeros(3), None, None, 1),
            r"attempt\.policy: expected .*float64 \[R\] = \(12,\), got float64 \(3,\)",
        ),
        (handing_back, r"attempt\.policy: expected a row for state \d, where the attempt begins, got -1"),
        (elsewhere, r"attempt\.policy: expected a row of state \d, "),
        (GivenUp(None), r"GivenUp\.states: expected a dict \{state: reason\}, got None"),
        (GivenUp({9: "far"}), r"GivenUp\.states: expected a state in 0\.\.5, got 9"),
        (ArithmeticError("no plan"), "no plan"),
    ],
    ids=["nothing", "tuple", "no attempt", "hands back", "elsewhere", "nothing given up", "no state", "raises"],
)
@pytest.mark.parametrize("system", [RIVER, Drawn(RIVER)], ids=["compiled", "stepped"])
def test_a_planner_that_makes_no_sense_loses_nothing(answer, words, system):
    with pytest.raises(CollectionError, match=words) as caught:
        gosprl.collect(system, 20, seed=0, strategy=Wrong(answer))
    result = caught.value.result
    assert result.stop == "failed"
    assert result.steps == result.counts.sum() >= 20
    if not isinstance(answer, Exception):
        with pytest.raises(InputError, match=words):
            gosprl.collect(system, 20, seed=0, strategy=Wrong(answer, after=0))


@pytest.mark.parametrize("planner", [None, Gosprl(), "gosprl"])
def test_a_strategy_that_makes_no_planner(planner):
    class Empty(Strategy):
        def begin(self, model, need, rng):
            return planner

    with pytest.raises(
        InputError, match=r"^strategy: expected Empty\.begin to return a gosprl\.strategies\.Planner, got"
    ):
        gosprl.collect(RIVER, 3, strategy=Empty())


# What it does not take, and what it says


@pytest.mark.parametrize("given", [{"model": EmpiricalModel(6, 2)}, {"states": 6}, {"rewards": (0, 1)}])
def test_what_only_a_collector_takes(given):
    (name,) = given
    words = rf"^{name}: not an argument of collect, .*; use Collector\({name}=\.\.\., need=\.\.\.\)\.run\(system\)$"
    with pytest.raises(InputError, match=words):
        gosprl.collect(Untouched(RIVER), 3, **given)


@pytest.mark.parametrize("name", ["key", "actions"])
def test_what_only_systems_that_are_no_tables_take(name):
    with pytest.raises(InputError, match=rf"^{name}: expected None for a Untouched, which numbers its own$"):
        gosprl.collect(Untouched(RIVER), 3, **{name: 2})


@pytest.mark.parametrize("function", [gosprl.collect, Collector, Collector.ask, Collector.tell, Collector.run])
def test_every_parameter_is_documented(function):
    """In the section `Parameters`, one after the other or several on a line."""
    text = inspect.getdoc(function)
    section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    named = [name.lstrip("*") for line in section.splitlines() if line[0] != " " for name in line.split(", ")]
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    assert sorted(named) == sorted(parameters)


@pytest.mark.parametrize("of", [gosprl.collect, Collector])
def test_the_examples_in_the_documentation_run(of):
    module = importlib.import_module(of.__module__)
    (test,) = [
        test for test in doctest.DocTestFinder().find(of, of.__name__, globs=vars(module).copy()) if test.examples
    ]
    assert len(test.examples) >= 3
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
