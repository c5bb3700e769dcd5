"""Several walkers with one planner: who asks it, and who follows the attempt of another."""

import numpy as np
import pytest

import gosprl
from gosprl.collecting.engine import Engine
from gosprl.collecting.sharing import Sharing
from gosprl.fleet.simulated import Simulated
from gosprl.strategies import Guarded, Practical
from gosprl.strategies.base import Attempt, Planner
from gosprl.strategies.guarded import GuardedPlanner


class Walk:
    def __init__(self, record):
        self.engine = Engine(record, np.random.default_rng(0))
        self.engine.broken, self.engine.state = False, 0


class Plans(Planner):
    """Says that its attempts serve all walkers."""

    serves_all = True

    def attempt(self, s, t):
        raise AssertionError


POLICY = [1, 2, -1, -1, -1, 11]  # rows: there are two actions


def three_walkers(serves_all=True, need=2):
    """Three walkers in state 0 who follow attempts; the one of the first serves all."""
    record = gosprl.Collector(6, 2, need=need, seed=0, resets="never").record
    record.update_need()
    walks = {name: Walk(record) for name in "abc"}
    sharing, planner = Sharing(walks), Plans()
    planner.serves_all = serves_all
    plan = Attempt(np.array(POLICY), np.zeros(6, dtype=bool), np.full(12, 100), 50, sample=True)
    for walk in walks.values():
        walk.engine.begin(plan)
        sharing.begun(walk.engine, planner)
    return record, sharing, [walk.engine for walk in walks.values()]


def test_walkers_whose_attempts_others_ended_follow_the_last_one():
    _, sharing, (a, b, c) = three_walkers()
    sharing.issued(a, is_step=True, settled=True)
    assert a.attempt is not None
    assert b.attempt is c.attempt is None
    assert sharing.join(b)
    assert b.attempt.policy.tolist() == POLICY
    assert sharing.left == 49
    assert not sharing.join(a)  # its attempt has not ended


def test_a_walker_whose_own_attempt_ended_asks_the_planner():
    _, sharing, (a, b, c) = three_walkers()
    b.end()
    assert not sharing.join(b)
    sharing.issued(a, is_step=True, settled=True)  # others that end now do not change that
    assert not sharing.join(b)
    assert sharing.join(c)


def meet(record):
    for a in (0, 1):
        for _ in range(2):
            record.observe(2 * 3 + a, 3, 0.0)  # state 3 has all it needs


CHANGES = {
    "the need is another": lambda record, sharing, engine: meet(record),
    "steps are used up": lambda record, sharing, engine: sharing.reserve(60),
    "it was elsewhere": lambda record, sharing, engine: setattr(engine, "broken", True),
    "something was discovered": lambda record, sharing, engine: setattr(record, "looked_for", True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nobody_follows_an_attempt_that_is_out_of_date(change):
    record, sharing, (a, b, _) = three_walkers()
    sharing.end_attempts(a)
    CHANGES[change](record, sharing, b)
    assert not sharing.join(b)


def test_an_attempt_that_does_not_serve_all_is_followed_by_one():
    _, sharing, (a, b, _) = three_walkers(serves_all=False)
    sharing.end_attempts(a)
    assert not sharing.join(b)


@pytest.mark.parametrize(("state", "need", "joins"), [(5, 2, True), (2, 2, True), (2, [2, 2, 0, 2, 2, 2], False)])
def test_where_the_plan_has_no_row_only_those_that_can_sample_follow_it(state, need, joins):
    """State 2 has no row: a walker there may sample what is missing, or asks."""
    pairs = need if isinstance(need, int) else np.repeat(np.array(need)[:, None], 2, axis=1)
    _, sharing, (a, b, _) = three_walkers(need=pairs)
    b.state = state
    sharing.end_attempts(a)
    assert sharing.join(b) is joins


@pytest.mark.parametrize("strategy", [Guarded(), Practical()])
def test_fleets_ask_the_planner_less_often_than_they_would_without(strategy, monkeypatch):
    """Whenever a state has all it needs, one walker of 16 asks; without joining, each of them does."""
    mdp, calls, run = gosprl.envs.make("four_room43"), [], []
    for serves_all in (True, False):
        if not serves_all:
            monkeypatch.setattr(Sharing, "join", lambda self, engine: False)
        executor = Simulated(mdp, 16, duration=lambda rng, report: float(rng.exponential()), entropy=0)
        run.append(gosprl.collect(mdp, 10, strategy=strategy, seed=0, workers=executor))
        calls.append(run[-1].attempts)
        assert run[-1].met
    assert calls[0] < 0.6 * calls[1]
    assert abs(run[0].steps - run[1].steps) < 0.1 * run[1].steps


def test_certified_attempts_serve_one_walker():
    collector = gosprl.Collector(6, 2, need=2, seed=0, strategy=Guarded())
    collector.ask(0)
    planner = collector.planner
    assert isinstance(planner, GuardedPlanner)
    planner._mode = gosprl.strategies.guarded.CERTIFIED
    assert not planner.serves_all
