"""Collector: ask and tell, runs that go on, one seeding rule, and what goes wrong."""

import contextlib

import numpy as np
import pytest
from walked import OPTIONS, REWARDING, RIVER, TOY, Troubled, by_hand, everything, possible, ring

import gosprl
from gosprl import CollectionError, Collector, EmpiricalModel, InputError
from gosprl.envs import make

# Runs that go on


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mdp", [RIVER, REWARDING], ids=["river", "rewards"])
def test_n_steps_and_then_m_are_n_plus_m(mdp, options):
    whole = gosprl.collect(mdp, 2, seed=3, **OPTIONS[options])
    total = whole.steps
    rng = np.random.default_rng(0)
    first = {*range(1, min(total, 12)), total - 1, *rng.integers(1, total, 12).tolist()}
    for n in sorted(first):
        collector = Collector(6, 2, 2, seed=3, **OPTIONS[options])
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
        collector = Collector(6, 2, need, seed=3, **OPTIONS[options])
        collector.run(RIVER, max_steps=n)
        collector.result()
        assert everything(collector.run(RIVER)) == everything(whole)


def test_single_steps_are_a_run():
    collector = Collector(6, 2, 2, seed=3)
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
    collector = Collector(6, 2, 3, seed=5)
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
    collector = Collector(6, 2, 3, seed=0)
    fresh = collector.result()
    assert (fresh.stop, fresh.steps, fresh.met) == ("running", 0, False)
    assert fresh.curve.tolist() == [(0, 0.0)]
    collector.tell(0, collector.ask(0), 1)
    assert collector.result().counts[0].sum() == 1
    assert collector.model.visits.sum() == 1


# Ask and tell


def test_asking_about_another_state_starts_a_new_attempt():
    # 0 -> 1 -> 2 -> 3 -> 0, only state 3 is needed
    collector = Collector(4, 1, [[0], [0], [0], [2]], strategy="gosprl", dynamics=ring(4), seed=0)
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
    collector = Collector(4, 1, [[0], [0], [0], [2]], strategy="gosprl", dynamics=ring(4), seed=0)
    collector.tell(0, collector.ask(0), 1)
    collector.ask(3)
    assert collector.attempts == 2


def test_observing_counts_and_starts_a_new_attempt():
    collector = Collector(4, 1, [[0], [0], [0], [2]], strategy="gosprl", dynamics=ring(4), seed=0)
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
    collector = Collector(2, 1, 1, seed=0)
    collector.observe(0, 0, 1)
    assert not collector.done
    collector.observe(1, 0, 0)
    assert collector.done
    assert collector.result().stop == "met"


def test_a_question_stays_open_while_something_else_is_observed():
    collector = Collector(2, 1, 1, seed=0)
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
        (lambda c: c.observe(6, 0, 0), "s: expected states in 0..5, got 6"),
        (lambda c: c.observe(0, 2, 0), "a: expected actions in 0..1, got 2"),
        (lambda c: c.observe(0, 0, 9), "s_next: expected a state in 0..5, got 9"),
    ],
)
def test_what_is_outside_is_refused(call, words):
    collector = Collector(6, 2, 3, seed=0)
    with pytest.raises(InputError, match=words):
        call(collector)
    assert collector.result().steps == 0


def test_only_what_was_asked_can_be_told():
    collector = Collector(6, 2, 3, seed=0)
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


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_rewards_are_finite(reward):
    collector = Collector(6, 2, 3, seed=0)
    a = collector.ask(2)
    with pytest.raises(InputError, match="reward"):
        collector.tell(2, a, 0, reward=reward)
    with pytest.raises(InputError, match="reward"):
        collector.observe(2, a, 0, reward=reward)
    assert collector.result().steps == 0


def test_numpy_integers_are_states_and_actions():
    collector = Collector(6, 2, 3, seed=0)
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
        Collector(3, np.array([[1, 0], [1, 0], [1, 1]], dtype=bool), 1).observe(0, 1, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "states, actions: both are needed"),
        ({"states": 3}, "states, actions: both are needed"),
        ({"states": 0, "actions": 1}, "states: expected a whole number >= 1, got 0"),
        ({"states": 2, "actions": 0}, "actions: expected a whole number >= 1, got 0"),
        ({"states": 2, "actions": np.ones((3, 1), dtype=bool)}, "actions: .* mask"),
        ({"states": 2, "actions": np.array([[True], [False]])}, "every state needs at least one action"),
    ],
)
def test_collectors_of_nothing(given, words):
    with pytest.raises(InputError, match=words):
        Collector(**given)


# What goes wrong on the way


def test_an_mdp_with_other_pairs_is_refused():
    """Of the 6 pairs that the collector knows the MDP has 4: a row of the one is another of the other, or none."""
    mdp = make("toy3")
    collector = Collector(3, 2, 5, seed=0)
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
        system, collector = Troubled(mdp, {at: trouble}), Collector(5, 1, [0, 0, 0, 0, 3], seed=0)
        with contextlib.suppress(CollectionError):
            collector.run(system)
        assert collector.result().steps == at
        result = collector.run(system)
        assert result.met
        assert possible(result, mdp)


def test_a_run_that_failed_may_end_well():
    system, collector = Troubled(RIVER, {37: OSError()}), Collector(6, 2, 3, seed=0)
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
    collector = Collector(6, 2, 5, seed=0, successors=next_door)
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
        collector = Collector(6, 2, 500, seed=0, threshold=0.5, strategy="gosprl")
        part = collector.run(REWARDING, max_steps=n)
        assert (part.stop, part.found) == ("max_steps", None)
        rest = collector.run(REWARDING)
        assert everything(rest) == everything(whole)
        assert rest.found == whole.found
    last = Collector(6, 2, 500, seed=0, threshold=0.5, strategy="gosprl").run(REWARDING, max_steps=whole.steps)
    assert (last.stop, last.found) == ("found", whole.found)


def test_what_was_found_stays_the_first():
    collector = Collector(6, 2, 5, seed=0, threshold=0.5)
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
    assert (collector.done, collector.result().found) == (True, (0, 0, 1, 1.0, 1))
