"""Time limits: states in which every arrival is cut off are named and given up; others are waited for."""

import gymnasium
import numpy as np
import pytest
from fleet_logs import fleet
from gymnasium.wrappers import TimeLimit

import gosprl
from gosprl import Collector
from gosprl.collecting.cut_off import ARRIVALS
from gosprl.runs import verify

ASSUMED = "given that the states given up at a time limit cannot be acted in"


class Corridor(gymnasium.Env):
    """Cells in a row, left and right; it never ends. `ticket`: with this probability an episode begins in cell 5."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, cells=20, ticket=0.0):
        self.cells, self.ticket = cells, ticket
        self.observation_space = gymnasium.spaces.Box(0, cells, (1,), np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 5 if self.np_random.random() < self.ticket else 0
        return np.array([self.cell]), {}

    def step(self, action):
        self.cell = min(max(self.cell + (1 if action else -1), 0), self.cells - 1)
        return np.array([self.cell]), 0.0, False, False, {}


def limited():
    return TimeLimit(Corridor(), 10)


def names_of(result):
    return {result.model.states[s][0]: why for s, why in result.unreachable.items()}


def by_hand():
    """A loop of one's own, which says when an episode was cut off."""
    collector, env = Collector(actions=2, need=5, seed=0), limited()
    (s,), _ = env.reset(seed=0)
    for _ in range(5_000):
        if collector.done:
            break
        (after,), _, _, truncated, _ = env.step(a := collector.ask((int(s),)))
        collector.tell((int(s),), a, (int(after),), truncated=truncated)
        s = after
        if truncated:
            (s,), _ = env.reset()
    return collector.result()


KINDS = {
    "one walker": lambda: gosprl.collect(limited(), 5, seed=0, max_steps=5_000),
    "reach": lambda: gosprl.collect(limited(), 5, seed=0, max_steps=5_000, reach=30),
    "horizon": lambda: gosprl.collect(Corridor(), 5, seed=0, max_steps=5_000, horizon=10),
    "a fleet": lambda: gosprl.collect(limited, 5, seed=0, max_steps=5_000, workers=fleet(limited, 3)),
    "by hand": by_hand,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_cell_behind_the_limit_is_named_and_given_up(kind):
    """After 10 steps from cell 0 the walk is in cell 10, and nowhere beyond; all before it can be collected."""
    result = KINDS[kind]()
    assert (result.stop, result.met) == ("unreachable", False)
    ((cell, why),) = names_of(result).items()
    assert cell == 10
    assert "cut off at once" in why
    assert "heuristic" in why
    assert sorted(observation[0] for observation in list(result.model.states)[: result.states]) == list(range(11))
    assert sorted({(row[0], row[3]) for row in result.unmet.tolist()}) == [(next(iter(result.unreachable)), 0)]
    assert ASSUMED in str(result.guarantee)
    assert result.steps < 10 * (ARRIVALS + 20 * 5)


def test_a_cell_that_can_be_acted_in_now_and_then_is_waited_for():
    """One episode in four begins half way: cell 10 is cut off in three of four arrivals, and its need is met."""
    result = gosprl.collect(TimeLimit(Corridor(11, ticket=0.25), 10), 5, seed=0, max_steps=20_000)
    assert result.met
    assert ASSUMED not in str(result.guarantee)


def test_resets_at_any_time_do_not_help_and_a_longer_limit_does():
    result = gosprl.collect(limited(), 2, seed=0, max_steps=5_000, resets="anytime")
    assert list(names_of(result)) == [10]
    assert gosprl.collect(TimeLimit(Corridor(), 25), 2, seed=0, max_steps=5_000).met


def test_on_disk_and_with_another_need(tmp_path):
    result = gosprl.collect(limited(), 2, seed=0, max_steps=5_000, out=tmp_path / "run", prior=False)
    assert list(names_of(result)) == [10]
    assert verify(tmp_path / "run").ok, verify(tmp_path / "run")
    more = gosprl.resume(tmp_path / "run", system=limited(), need=4, max_steps=5_000)
    assert (more.stop, list(names_of(more))) == ("unreachable", [10])
    assert np.sort(more.counts.min(axis=1))[1] >= 4  # all cells but one


def test_a_forecast_says_so():
    forecast = gosprl.probe(limited(), need=5, seed=0, max_steps=5_000).forecast
    assert "cannot be met under this time limit" in forecast.how
