"""Collector: ask and tell, runs that go on, one seeding rule, and what goes wrong."""

import contextlib

import numpy as np
import pytest
from kinds import NEEDS, collector_of
from walked import OPTIONS, REWARDING, RIVER, TOY, Drawn, Troubled, by_hand, everything, possible, ring, table_collector

import gosprl
from gosprl import CollectionError, Collector, EmpiricalModel, InputError, TabularMDP
from gosprl.envs import make
from gosprl.strategies import Gosprl, Planner, Strategy

# Runs that go on


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mdp", [RIVER, REWARDING], ids=["river", "rewards"])
def test_n_steps_and_then_m_are_n_plus_m(mdp, options):
    whole = gosprl.collect(mdp, 2, seed=3, **OPTIONS[options])
    total = whole.steps
    rng = np.random.default_rng(0)
    first = {*range(1, min(total, 12)), total - 1, *rng.integers(1, total, 12).tolist()}
    for n in sorted(first):
        collector = table_collector(6, 2, 2, seed=3, **OPTIONS[options])
        part = collector.run(mdp, max_steps=n)
        assert (part.steps, part.stop, part.met) == (n, "max_steps", False)
        middle = int(rng.integers(1, total - n + 1))
        collector.run(mdp, max_steps=middle)
        assert everything(collector.run(mdp)) == everything(whole)


@pytest.mark.parametrize("options", ["kl", "known", "random"])
def test_n_and_m_make_n_plus_m_for_needs_that_change_all_the_time(options):
    """A need is looked at when attempts begin, not when a run is paused."""

    def need(model):
        return 2 + int(model.visits.sum()) % 3

    whole = gosprl.collect(RIVER, need, seed=3, **OPTIONS[options])
    for n in range(1, min(whole.steps, 120), 4):
        collector = table_collector(6, 2, need, seed=3, **OPTIONS[options])
        collector.run(RIVER, max_steps=n)
        collector.result()
        assert everything(collector.run(RIVER)) == everything(whole)


def test_single_steps_are_a_run():
    collector = table_collector(6, 2, 2, seed=3)
    while not collector.done:
        result = collector.run(RIVER, max_steps=1)
    assert everything(result) == everything(gosprl.collect(RIVER, 2, seed=3))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mdp", [RIVER, REWARDING], ids=["river", "rewards"])
@pytest.mark.parametrize("need", [3, np.arange(6)], ids=["pairs", "states"])
def test_asking_and_telling_by_hand_is_a_run(mdp, options, need):
    collector, _ = by_hand(mdp, need, 5, **OPTIONS[options])
    run = gosprl.collect(mdp, need, seed=5, **OPTIONS[options])
    assert everything(collector.result()) == everything(run)


def test_asking_and_telling_by_hand_on_state_dependent_actions():
    collector, _ = by_hand(TOY, 3, 5)
    assert collector.result().counts.tolist() == gosprl.collect(TOY, 3, seed=5).counts.tolist()


def test_a_run_may_go_on_by_hand():
    collector = table_collector(6, 2, 3, seed=5)
    part = collector.run(RIVER, max_steps=40)
    assert part.stop == "max_steps"
    rng, s = np.random.default_rng(0), 0
    while not collector.done:
        a = collector.ask(s)
        s_next = int(rng.choice(RIVER.p(s, a)[0]))
        collector.tell(s, a, s_next)
        s = s_next
    result = collector.result()
    assert (result.stop, result.met) == ("met", True)
    assert result.steps == result.counts.sum() > 40


def test_a_collector_can_be_looked_at_while_it_runs():
    collector = table_collector(6, 2, 3, seed=0)
    fresh = collector.result()
    assert (fresh.stop, fresh.steps, fresh.met) == ("running", 0, False)
    assert fresh.curve.tolist() == [(0, 0.0)]
    collector.tell(0, collector.ask(0), 1)
    assert collector.result().counts[0].sum() == 1
    assert collector.model.visits.sum() == 1


# Ask and tell


def test_asking_about_another_state_starts_a_new_attempt():
    # 0 -> 1 -> 2 -> 3 -> 0, only state 3 is needed
    collector = table_collector(4, 1, [[0], [0], [0], [2]], strategy="gosprl", dynamics=ring(4), seed=0)
    collector.tell(0, collector.ask(0), 1)
    assert collector.attempts == 1
    collector.tell(1, collector.ask(1), 2)
    assert collector.attempts == 1  # still the same
    collector.ask(0)  # not 2: a teleport
    assert collector.attempts == 2
    collector.tell(0, 0, 1)
    assert collector.result().counts.ravel().tolist() == [2, 1, 0, 0]


def test_a_teleport_to_a_goal_starts_at_its_copy():
    # 0 -> 1 -> 2 -> 3 -> 0; put down on the goal, the agent did not reach it by the attempt
    collector = table_collector(4, 1, [[0], [0], [0], [2]], strategy="gosprl", dynamics=ring(4), seed=0)
    collector.tell(0, collector.ask(0), 1)
    collector.ask(3)
    assert collector.attempts == 2


def test_observing_counts_and_starts_a_new_attempt():
    collector = table_collector(4, 1, [[0], [0], [0], [2]], strategy="gosprl", dynamics=ring(4), seed=0)
    collector.tell(0, collector.ask(0), 1)
    collector.observe(3, 0, 0, reward=0.5)
    result = collector.result()
    assert result.steps == 2
    assert result.counts.ravel().tolist() == [1, 0, 0, 1]
    assert result.unmet.tolist() == [(3, 0, 2, 1)]
    assert result.model.reward_sum.tolist() == [0, 0, 0, 0.5]
    collector.ask(1)  # where the last told transition ended
    assert collector.attempts == 2


def test_observing_all_that_is_needed_is_enough():
    collector = table_collector(2, 1, 1, seed=0)
    collector.observe(0, 0, 1)
    assert not collector.done
    collector.observe(1, 0, 0)
    assert collector.done
    assert collector.result().stop == "met"


def test_a_question_stays_open_while_something_else_is_observed():
    collector = table_collector(2, 1, 1, seed=0)
    a = collector.ask(0)
    collector.observe(1, 0, 0)
    collector.tell(0, a, 1)
    assert collector.done
    assert collector.result().counts.tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.ask(6), "s: expected a state in 0..5, got 6"),
        (lambda c: c.ask(-1), "s: expected a state in 0..5, got -1"),
        (lambda c: c.ask(0.5), "s: expected whole numbers"),
        (lambda c: c.tell(0, 0, 0), r"tell: expected the \(s, a\) of the last ask\(\), nothing, got \(0, 0\)"),
        (lambda c: c.observe(6, 0, 0), "s: expected a state in 0..5, got 6"),
        (lambda c: c.observe(0, 2, 0), "a: expected actions in 0..1, got 2"),
        (lambda c: c.observe(0, 0, 9), "s_next: expected a state in 0..5, got 9"),
    ],
)
def test_what_is_outside_is_refused(call, words):
    collector = table_collector(6, 2, 3, seed=0)
    with pytest.raises(InputError, match=words):
        call(collector)
    assert collector.result().steps == 0


def test_only_what_was_asked_can_be_told():
    collector = table_collector(6, 2, 3, seed=0)
    a = collector.ask(2)
    for s, other in ((2, 1 - a), (1, a)):
        words = rf"tell: expected the \(s, a\) of the last ask\(\), \(2, {a}\), got \({s}, {other}\)"
        with pytest.raises(InputError, match=words):
            collector.tell(s, other, 0)
    with pytest.raises(InputError, match=r"s_next: expected a state in 0\.\.5, got 6"):
        collector.tell(2, a, 6)
    assert collector.result().steps == 0
    collector.tell(2, a, 0)
    with pytest.raises(InputError, match=r"of the last ask\(\), nothing"):
        collector.tell(2, a, 0)
    assert collector.result().steps == 1


def test_numpy_integers_are_states_and_actions():
    collector = table_collector(6, 2, 3, seed=0)
    s = np.int64(2)
    collector.tell(s, np.int32(collector.ask(s)), np.int64(1))
    assert collector.result().counts[2].sum() == 1


def test_asking_when_done():
    collector, _ = by_hand(RIVER, 1, 0)
    with pytest.raises(InputError, match="nothing left to collect"):
        collector.ask(0)


def test_actions_that_do_not_exist_are_never_asked_for():
    _, log = by_hand(TOY, 5, 0)
    assert {(s, a) for s, a, _ in log} == {(0, 0), (1, 0), (2, 0), (2, 1)}
    with pytest.raises(InputError, match="a: action 1 does not exist in state 0"):
        table_collector(3, np.array([[1, 0], [1, 0], [1, 1]], dtype=bool), 1).observe(0, 1, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "actions: expected their number, or a mask"),
        ({"states": 3}, "actions: expected their number, or a mask"),
        ({"states": 0, "actions": 1}, "states: expected a whole number >= 1, got 0"),
        ({"states": 2, "actions": 0}, "actions: expected a whole number >= 1, got 0"),
        ({"states": 2, "actions": np.ones((3, 1), dtype=bool)}, "actions: .* mask"),
        ({"states": 2, "actions": np.array([[True], [False]])}, "every state needs at least one action"),
    ],
)
def test_collectors_of_nothing(given, words):
    with pytest.raises(InputError, match=words):
        Collector(**given)


# The loop of the README


ISLAND = TabularMDP(([0, 1, 2], [0, 0, 0], [1, 0, 0], np.ones(3)))  # 0 <-> 1, and 2 -> 0: no way leads to 2


def loop(collector, mdp, steps=5000):
    """The loop that users write; what it walked."""
    rng, s, log = np.random.default_rng(0), mdp.start, []
    while not collector.done:
        a = collector.ask(s)
        succ, p = mdp.p(s, a)
        s_next = int(rng.choice(succ, p=p))
        collector.tell(s, a, s_next)
        log.append((s, a, s_next))
        assert len(log) < steps
        s = s_next
    return log


def counted(log):
    """The transitions of a log as `EmpiricalModel.transitions` has them."""
    triples, number = np.unique(log, axis=0, return_counts=True)
    return np.column_stack([triples, number]).tolist()


@pytest.mark.filterwarnings("ignore:goals are taken nearest first")  # the fluid program cannot be solved for 2
@pytest.mark.parametrize(
    "options",
    [
        {"reach": 4.0},
        {"reach": 4.0, "strategy": "gosprl"},
        {"reach": 4.0, "strategy": "practical"},
        {"successors": ISLAND},
        {"successors": ISLAND, "strategy": "gosprl"},
        {"successors": ISLAND, "strategy": "practical"},
        {"dynamics": ISLAND},
        {"dynamics": ISLAND, "strategy": "gosprl"},
        {"dynamics": ISLAND, "strategy": "practical"},
    ],
    ids=str,
)
def test_the_loop_ends_when_the_strategy_gives_up(options):
    collector = table_collector(3, 1, 3, seed=0, **options)
    log = loop(collector, ISLAND)
    result = collector.result()
    assert (result.stop, result.met) == ("unreachable", False)
    assert list(result.unreachable) == [2]
    assert result.unmet.tolist() == [(2, 0, 3, 0)]
    assert np.column_stack(result.model.transitions()).tolist() == counted(log)
    with pytest.raises(InputError, match="ask: there is nothing left to collect; look at `done` first"):
        collector.ask(log[-1][2])


@pytest.mark.filterwarnings("ignore:goals are taken nearest first")
@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "practical"])
def test_what_cannot_be_known_before_the_first_question_ends_the_loop_after_it(strategy):
    """That nothing is within reach is known only where the walk begins: any action answers, and then it is done."""
    collector = table_collector(3, 1, [[0], [0], [3]], seed=0, strategy=strategy, successors=ISLAND)
    assert not collector.done
    a = collector.ask(0)
    assert collector.done
    collector.tell(0, a, 1)
    result = collector.result()
    assert (result.stop, result.steps, list(result.unreachable)) == ("unreachable", 1, [2])


def test_the_loop_ends_when_the_need_shrinks(strategy):
    collector = table_collector(6, 2, lambda model: 50 if model.visits.sum() < 25 else 0, seed=0, strategy=strategy)
    log = loop(collector, RIVER, steps=20_000)
    result = collector.result()
    assert (result.stop, result.met) == ("met", True)
    assert 25 <= result.steps == len(log) == result.counts.sum()


def test_the_loop_ends_when_the_need_grows_and_is_met(strategy):
    collector = table_collector(6, 2, lambda model: 1 + (model.visits.min() > 0), seed=0, strategy=strategy)
    loop(collector, RIVER, steps=100_000)
    assert collector.result().stop == "met"
    assert collector.result().counts.min() >= 2


@pytest.mark.parametrize("options", OPTIONS)
def test_looking_whether_it_is_done_changes_nothing(options):
    whole, log = by_hand(RIVER, 2, 5, **OPTIONS[options])
    collector = table_collector(6, 2, 2, seed=5, **OPTIONS[options])
    for s, _, s_next in log:
        assert not any(collector.done for _ in range(3))
        a = collector.ask(s)
        assert not any(collector.done for _ in range(3))
        collector.tell(s, a, s_next, RIVER.rewards[RIVER.rows.index(s, a)])
        collector.result()
    assert all(collector.done for _ in range(3))
    assert everything(collector.result()) == everything(whole.result())


# Episodes in the user's loop


class Spied(Strategy):
    """Algorithm 1; what its planner is told, in order."""

    def __init__(self, **options):
        self.inner, self.calls = Gosprl(**options), []

    def begin(self, model, need, rng):
        return SpiedPlanner(self.calls, self.inner.begin(model, need, rng))


class SpiedPlanner(Planner):
    def __init__(self, calls, inner):
        self.calls, self.inner = calls, inner

    def restart(self):
        self.calls.append("restart")
        self.inner.restart()

    def attempt(self, s, t):
        self.calls.append(s)
        return self.inner.attempt(s, t)


@pytest.mark.parametrize("after", [1, 3], ids=["same state", "another"])
@pytest.mark.parametrize("truncated", [False, True])
def test_after_a_truncation_the_walk_does_not_go_on(truncated, after):
    """0 -> 1 -> 2 -> 3 -> 0, only 3 is needed: one attempt, unless the episode is cut off or continues elsewhere."""
    strategy = Spied(dynamics=ring(4))
    collector = table_collector(4, 1, [[0], [0], [0], [2]], strategy=strategy, seed=0)
    collector.tell(0, collector.ask(0), 1, truncated=truncated)
    assert strategy.calls == ["restart", 0]
    collector.tell(after, collector.ask(after), (after + 1) % 4)
    if truncated or after == 3:
        assert strategy.calls == ["restart", 0, "restart", after]
    else:
        assert strategy.calls == ["restart", 0]
    rows = np.column_stack(collector.model.transitions()).tolist()
    assert rows == [[0, 0, 1, 1], [after, 0, (after + 1) % 4, 1]]
    assert collector.result().resets == truncated


def test_the_reset_after_a_truncation_is_a_sample_of_the_start():
    collector = Collector(4, 1, [[0], [0], [0], [2]], seed=0)
    collector.tell(0, collector.ask(0), 1, truncated=True)
    collector.tell(3, collector.ask(3), 0)
    model = collector.result().model
    assert np.column_stack(model.transitions()).tolist() == [[0, 0, 1, 1], [3, 0, 0, 1]]
    assert np.column_stack(model.starts()).tolist() == [[0, 1], [3, 1]]


def test_a_goal_where_a_truncated_episode_begins_again_was_not_reached():
    """Put down on the goal, the agent did not reach it by the attempt: it starts at the copy, by a plan."""
    for truncated, attempts in ((False, 1), (True, 2)):
        collector = table_collector(2, 1, [[0], [9]], strategy="gosprl", dynamics=ring(2), seed=0)
        collector.tell(0, collector.ask(0), 1, truncated=truncated)
        collector.ask(1)
        assert collector.attempts == attempts


def test_a_step_that_terminates_and_truncates_has_terminated():
    collector = Collector(3, 1, 2, seed=0)
    collector.tell(0, collector.ask(0), 2, terminated=True, truncated=True)
    collector.ask(1)
    result = collector.result()
    assert (result.resets, result.model.terminal.tolist()) == (1, [False] * 3 + [True] * 2)
    assert [result.model.states.kind(s) for s in (3, 4)] == ["reset", "final"]
    assert np.column_stack(result.model.transitions()).tolist() == [[0, 0, 4, 1]]
    assert np.column_stack(result.model.starts()).tolist() == [[0, 1], [1, 1]]


def test_episodes_of_three_steps_by_hand_are_those_of_a_run():
    """A ring of 5 whose episodes are cut off after 3 steps and begin in 0."""
    collector, s, age, log = table_collector(5, 1, [3, 3, 3, 1, 0], seed=0), 0, 0, []
    while not collector.done:
        a = collector.ask(s)
        s_next, age = (s + 1) % 5, age + 1
        collector.tell(s, a, s_next, truncated=age == 3)
        log.append((s, a, s_next))
        s, age = (0, 0) if age == 3 else (s_next, age)
        if len(log) == 30:
            break
    assert not collector.done  # 3 is come to, and never left
    assert np.column_stack(collector.model.transitions()).tolist() == counted(log)
    assert collector.result().unmet.tolist() == [(3, -1, 1, 0)]


# What cannot be told


@pytest.mark.parametrize("reward", ["x", "1", None, [1.0, 2.0], float("nan"), float("-inf"), 1j, b"1"])
def test_rewards_are_numbers(reward):
    collector = table_collector(6, 2, 3, seed=0)
    a = collector.ask(2)
    for call in (lambda: collector.tell(2, a, 0, reward=reward), lambda: collector.observe(2, a, 0, reward=reward)):
        with pytest.raises(InputError, match=r"^reward: expected a finite number, got"):
            call()
    assert (collector.result().steps, collector.model.visits.sum()) == (0, 0)
    collector.tell(2, a, 1, reward=np.float32(0.5))  # the question is still open
    assert collector.model.reward_sum.sum() == 0.5


@pytest.mark.parametrize("by", ["tell", "observe"])
def test_rewards_in_their_range(by):
    collector = table_collector(6, 2, 3, seed=0, rewards=(0.0, 1.0))
    a = collector.ask(2)
    words = rf"^rewards: expected rewards in \[0, 1\], got 1\.5 at \(s, a\) = \(2, {a}\)"
    with pytest.raises(InputError, match=words):
        getattr(collector, by)(2, a, 0, reward=1.5)
    assert (collector.result().steps, collector.model.visits.sum()) == (0, 0)


def test_a_step_that_is_refused_is_as_if_it_had_not_been_told():
    """The attempt goes on from where it was: the same plan, and the same end."""
    calls = []
    for refused in (False, True):
        strategy = Spied(successors=lambda s, a: [(s + 1) % 4])
        collector = table_collector(4, 1, [[0], [0], [0], [2]], strategy=strategy, seed=0)
        collector.tell(0, collector.ask(0), 1)
        a = collector.ask(1)
        if refused:
            with pytest.raises(gosprl.GosprlError, match="led to state 3"):
                collector.tell(1, a, 3)
        collector.tell(1, a, 2)
        for s in (2, 3, 0, 1, 2, 3):
            collector.tell(s, collector.ask(s), (s + 1) % 4)
        calls.append((strategy.calls, everything(collector.result())))
    assert calls[0] == calls[1]


# What is observed


def test_what_is_observed_is_on_no_side_of_the_account():
    """Guarded: neither practical nor certified steps, and the bound holds for those that were walked."""
    collector = table_collector(6, 2, 3, seed=0)
    s = 0
    for _ in range(10):
        a = collector.ask(s)
        s_next = min(s + 1, 5)
        collector.tell(s, a, s_next)
        collector.observe(3, 1, 4)
        s = s_next
    work = collector.result().work
    assert collector.result().steps == 20
    assert work["practical steps"] + work["certified steps"] == 10


def test_what_is_observed_may_let_a_need_grow_that_was_met():
    collector = table_collector(6, 2, lambda model: 1 + (model.visits.sum() > 150), seed=0)
    assert collector.run(RIVER).stop == "met"
    while not (result := collector.result()).steps > 150:
        assert (result.stop, result.met) == ("met", True)
        collector.observe(0, 0, 0)
    assert (result.stop, result.met, collector.done) == ("running", False, False)
    assert collector.run().stop == "met"


def test_what_is_observed_after_a_termination_is_no_reset():
    collector = Collector(3, 1, 2, seed=0)
    collector.tell(0, collector.ask(0), 2, terminated=True)
    collector.observe(1, 0, 0)
    collector.ask(1)
    result = collector.result()
    assert np.column_stack(result.model.transitions()).tolist() == [[0, 0, 4, 1], [1, 0, 0, 1]]
    assert np.column_stack(result.model.starts()).tolist() == [[0, 1], [1, 1]]
    assert result.resets == 1


# Runs on one system and on another


def transitions(result):
    return np.column_stack(result.model.transitions()).tolist()


class Watched(Drawn):
    """Counts its resets; begins where it is told to."""

    def __init__(self, mdp, start=0):
        super().__init__(mdp)
        self.start, self.resets = start, 0

    def reset(self):
        self.resets += 1
        self.state = self.start
        return self.start


def test_a_run_goes_on_without_a_system_bit_for_bit(system_kind):
    around = {"resets": system_kind.resets, "reset_cost": system_kind.reset_cost, "horizon": system_kind.horizon}
    around["resets"] = around["resets"] if system_kind.make().ends else None
    whole = gosprl.collect(system_kind.make(), 2, seed=1, max_steps=250, **around)
    for n in (1, 2, 3, 10, 100):
        system = system_kind.make()
        collector = collector_of(system_kind, system, NEEDS["int"], "guarded", 1, samples=2)
        collector.run(system, max_steps=n)
        collector.run(max_steps=5)
        assert everything(collector.run(max_steps=250 - n - 5)) == everything(whole)


def test_there_is_nothing_to_go_on_with_before_anything_was_walked():
    collector = table_collector(6, 2, 3, seed=0)
    for _ in range(2):
        with pytest.raises(InputError, match=r"^system: expected a system to walk: nothing was walked yet$"):
            collector.run()
        collector.tell(0, collector.ask(0), 1)  # by hand is no system
    assert collector.result().steps == 2


@pytest.mark.parametrize("again", [RIVER, Watched(RIVER)], ids=["mdp", "own"])
def test_the_same_system_goes_on(again):
    collector = table_collector(6, 2, 5, seed=0)
    collector.run(again, max_steps=20)
    while (s := collector.engine.state) == 0:
        collector.run(again, max_steps=1)
    before = collector.result().counts
    result = collector.run(again, max_steps=1)
    assert np.argwhere(result.counts - before)[:, 0].tolist() == [s]
    if isinstance(again, Watched):
        assert again.resets == 1
        assert transitions(result) == counted(again.log)


def test_another_system_begins_with_a_reset():
    one, other = Watched(RIVER), Watched(RIVER, start=4)
    collector = table_collector(6, 2, 20, seed=0)
    collector.run(one, max_steps=15)
    for system, resets in ((other, 1), (one, 2), (other, 2)):
        result = collector.run(system, max_steps=15)
        assert system.resets == resets
    assert transitions(result) == counted(one.log + other.log)
    assert [other.log[0][0], one.log[15][0]] == [4, 0]


def test_another_mdp_begins_where_it_begins():
    collector = table_collector(6, 2, 100, seed=0)
    collector.run(RIVER, max_steps=10)
    other = TabularMDP(RIVER.dense(), start=5)
    before = collector.result().counts
    result = collector.run(other, max_steps=1)
    assert (result.counts - before)[5].sum() == 1
    assert collector.run(RIVER, max_steps=1).counts[0].sum() > before[0].sum()


def test_after_steps_by_hand_a_system_begins_with_a_reset():
    """Only the collector moved: the system is where it was."""
    system, collector = Watched(ring(5)), table_collector(5, 1, 20, seed=0)
    collector.run(system, max_steps=2)
    by_hand_ = []
    for s in (3, 4):
        collector.tell(s, collector.ask(s), (s + 1) % 5)
        by_hand_.append((s, 0, (s + 1) % 5))
    result = collector.run(max_steps=7)
    assert system.resets == 2
    assert transitions(result) == counted(system.log + by_hand_)
    collector.ask(3)  # a question that nobody answers
    result = collector.run(system, max_steps=7)
    assert system.resets == 3
    assert transitions(result) == counted(system.log + by_hand_)
    with pytest.raises(InputError, match=r"of the last ask\(\), nothing"):
        collector.tell(3, 0, 4)


def test_after_steps_by_hand_a_simulation_goes_on_from_there():
    collector = table_collector(5, 1, 20, seed=0)
    collector.run(ring(5), max_steps=2)
    collector.tell(2, collector.ask(2), 4)  # not what it does
    result = collector.run(max_steps=1)
    assert transitions(result) == [[0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 4, 1], [4, 0, 0, 1]]


@pytest.mark.parametrize("system", [3, "riverswim6", RIVER.dense(), make("toy3")], ids=["int", "str", "array", "toy3"])
def test_a_wrong_system_is_refused_after_steps_too(system):
    collector = table_collector(6, 2, 20, seed=0)
    collector.run(RIVER, max_steps=10)
    with pytest.raises(InputError, match=r"^system: "):
        collector.run(system)
    assert (collector.result().stop, collector.result().steps) == ("max_steps", 10)
    collector.run(max_steps=5)
    assert possible(collector.result(), RIVER)


class Gone(Watched):
    """Cannot be seeded, or cannot say what its dynamics are."""

    def __init__(self, mdp, fails):
        super().__init__(mdp)
        self.fails = fails

    def seed(self, rng):
        if self.fails == "seed":
            raise OSError("no connection")
        super().seed(rng)

    @property
    def ends(self):
        if self.fails == "ends":
            raise OSError("no connection")
        return False


@pytest.mark.parametrize("fails", ["seed", "ends"])
def test_a_system_that_cannot_be_taken_over(fails):
    first, other, collector = Watched(RIVER), Gone(RIVER, fails), table_collector(6, 2, 20, seed=0)
    collector.run(first, max_steps=10)
    with pytest.raises(CollectionError, match="the run failed after 10 steps: no connection") as caught:
        collector.run(other)
    assert caught.value.result.counts.sum() == 10
    result = collector.run(max_steps=10)
    assert transitions(result) == counted(first.log)
    assert (len(first.log), other.log) == (20, [])


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), OSError("down")], ids=["interrupted", "failed"])
def test_after_a_step_that_failed_the_run_begins_with_a_reset(trouble):
    class Slipping(Troubled):
        """Moves before it fails, and nobody knows."""

        resets = 0

        def reset(self):
            self.resets += 1
            return super().reset()

        def take(self, s, action):
            if len(self.log) in self.troubles:
                self.state = 3
            return super().take(self.state, action)

    system, collector = Slipping(ring(5), {7: trouble}), table_collector(5, 1, 5, seed=0)
    with contextlib.suppress(CollectionError):
        collector.run(system)
    assert (collector.result().steps, system.resets) == (7, 1)
    result = collector.run()
    assert (result.met, system.resets) == (True, 2)
    assert system.log[7] == (0, 0, 1)
    assert transitions(result) == counted(system.log)


# What goes wrong on the way


def test_an_mdp_with_other_pairs_is_refused():
    """Of the 6 pairs that the collector knows the MDP has 4: a row of the one is another of the other, or none."""
    mdp = make("toy3")
    collector = table_collector(3, 2, 5, seed=0)
    with pytest.raises(InputError, match=r"toy3 has 3 states and 4 pairs, .* of the collector, 3 and 6"):
        collector.run(mdp)
    assert Collector(model=EmpiricalModel.over(mdp.rows), need=5, seed=0).run(mdp).met
    begun = Collector(model=EmpiricalModel.over(mdp.rows), need=50, seed=0)
    begun.run(mdp, max_steps=3)
    with pytest.raises(InputError, match="system: riverswim6 has 6 states"):
        begun.run(make("riverswim6"))
    assert begun.run(mdp).met


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), OSError()], ids=["interrupted", "failed"])
def test_going_on_after_trouble_records_nothing_that_did_not_happen(trouble):
    mdp = ring(5)
    for at in range(1, 8):
        system, collector = Troubled(mdp, {at: trouble}), table_collector(5, 1, [0, 0, 0, 0, 3], seed=0)
        with contextlib.suppress(CollectionError):
            collector.run(system)
        assert collector.result().steps == at
        result = collector.run(system)
        assert result.met
        assert possible(result, mdp)


def test_a_run_that_failed_may_end_well():
    system, collector = Troubled(RIVER, {37: OSError()}), table_collector(6, 2, 3, seed=0)
    with pytest.raises(CollectionError):
        collector.run(system)
    result = collector.run(system)
    assert (result.stop, result.met) == ("met", True)
    assert result.steps == result.counts.sum() > 37


# Successors known


def next_door(s, a):
    return range(max(0, s - 1), min(6, s + 2))


@pytest.mark.parametrize("options", ["kl", "bernstein", "least-sampled"])
def test_knowing_what_is_possible_by_hand_and_in_a_run(options):
    options = OPTIONS[options] | {"successors": next_door}
    whole = gosprl.collect(RIVER, 5, seed=2, **options)
    collector, log = by_hand(RIVER, 5, 2, **options)
    assert everything(collector.result()) == everything(whole)
    assert whole.model.num_candidates == 2 * (2 + 4 * 3 + 2)
    assert len(log) == whole.steps


def test_telling_what_is_not_possible():
    collector = table_collector(6, 2, 5, seed=0, successors=next_door)
    a = collector.ask(2)
    words = rf"^successors: \(s, a\) = \(2, {a}\) led to state 5, which is not among its candidates \[1, 2, 3\]$"
    with pytest.raises(gosprl.GosprlError, match=words):
        collector.tell(2, a, 5)
    assert (collector.result().steps, collector.model.visits.sum()) == (0, 0)
    collector.tell(2, a, 3)  # what was meant
    with pytest.raises(gosprl.GosprlError, match=r"\(1, 0\) led to state 4"):
        collector.observe(1, 0, 4)
    assert (collector.result().steps, collector.model.visits.sum()) == (1, 1)


def test_a_model_that_knows_needs_no_option():
    for strategy in ("gosprl", "random"):
        collector = Collector(need=50, seed=0, model=EmpiricalModel(6, 2, lambda s, a: [0, 1, 2]), strategy=strategy)
        with pytest.raises(
            CollectionError, match=r"\(2, 1\) led to state 3, which is not among .* \[0, 1, 2\]"
        ) as caught:
            collector.run(RIVER)
        assert caught.value.result.counts.sum() == caught.value.result.steps
        assert not caught.value.result.counts[3:].any()


# Stopping at a reward


@pytest.mark.parametrize("options", OPTIONS)
def test_a_reward_above_the_threshold_ends_the_run_and_the_loop(options):
    for seed in range(4):
        run = gosprl.collect(REWARDING, 50, seed=seed, threshold=0.5, **OPTIONS[options])
        collector, log = by_hand(REWARDING, 50, seed, threshold=0.5, **OPTIONS[options])
        assert (run.stop, run.met) == ("found", False)
        assert run.found == (*log[-1], 1.0, len(log))
        assert run.steps == len(log)
        assert run.model.reward_sum.sum() == 1
        assert collector.done
        assert everything(collector.result()) == everything(run)
        assert collector.result().found == run.found


def test_n_steps_and_then_m_find_the_same():
    whole = gosprl.collect(REWARDING, 500, seed=0, threshold=0.5, strategy="gosprl")
    assert whole.steps > 3
    for n in range(1, whole.steps):
        collector = table_collector(6, 2, 500, seed=0, threshold=0.5, strategy="gosprl")
        part = collector.run(REWARDING, max_steps=n)
        assert (part.stop, part.found) == ("max_steps", None)
        rest = collector.run(REWARDING)
        assert everything(rest) == everything(whole)
        assert rest.found == whole.found
    last = table_collector(6, 2, 500, seed=0, threshold=0.5, strategy="gosprl").run(REWARDING, max_steps=whole.steps)
    assert (last.stop, last.found) == ("found", whole.found)


def test_what_was_found_stays_the_first():
    collector = table_collector(6, 2, 5, seed=0, threshold=0.5)
    a = collector.ask(0)
    collector.tell(0, a, 1, reward=0.5)
    assert not collector.done
    collector.observe(3, 1, 4, reward=0.75)
    assert collector.done
    collector.observe(4, 1, 5, reward=9.0)
    result = collector.result()
    assert (result.stop, result.found, result.steps) == ("found", (3, 1, 4, 0.75, 2), 3)
    assert "found      reward 0.75 at state 3, action 1" in repr(result)
    with pytest.raises(InputError, match="there is nothing left to collect"):
        collector.ask(5)
    again = collector.run(RIVER)
    assert (again.stop, again.steps) == ("found", 3)


def test_a_terminating_reward_is_found_by_hand():
    collector = Collector(2, 1, 3, seed=0, threshold=0.5)
    collector.tell(0, collector.ask(0), 1, 1.0, terminated=True)
    assert collector.done
    result = collector.result()
    assert result.found == (0, 0, 3, 1.0, 1)
    assert (result.model.states.kind(3), result.model.states[3]) == ("final", 1)
