"""collect: one call from a system and a need to a result; what it refuses, and what goes wrong on the way."""

import signal
import warnings

import numpy as np
import pytest
from walked import OPTIONS, RIVER, TOY, Drawn, Troubled, ctrl_c, everything, interrupt, stop_after

import gosprl
from gosprl import CollectionError, Collector, InputError, TabularMDP
from gosprl.envs import make
from gosprl.strategies import Gosprl, Planner, Strategy
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
        ({"alpha": 1}, "alpha: not an option of strategy 'guarded', which takes delta, confidence, .*kappa.*fluid$"),
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


@pytest.mark.parametrize("system", [3, "riverswim6", None, RIVER.dense()])
def test_what_is_no_system(system):
    words = r"^system: expected a TabularMDP, a Gymnasium environment or a gosprl\.systems\.System, got \w+$"
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
    collector = Collector(1, 1, 1, threshold=1)
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
