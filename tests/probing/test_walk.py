"""The walk of a probe is that of `collect`, within its budget, and everything in it is written down."""

import numpy as np
import pytest
from stepped import Stepped

import gosprl
from evidence.probed import TEN, Slow
from evidence.systems import SYSTEMS
from gosprl.collecting.collect import declared
from gosprl.collecting.requirements import as_requirement
from gosprl.model.empirical import EmpiricalModel
from gosprl.probing.log import Watched
from gosprl.probing.walk import LEAST, Adjusted, resident_bytes, walk
from gosprl.systems import System, as_system


def begun(system, need, seed=0):
    watched = Watched(as_system(system))
    model = watched.model()
    around = declared(watched)
    around.prepare(model)
    asked = Adjusted(watched.requirement(need, model), model)
    return watched, gosprl.Collector(None, None, asked, seed=seed, model=model, around=around), asked


@pytest.mark.parametrize(
    "make",
    [SYSTEMS["FrozenLake 4x4"], SYSTEMS["Dict of lamps"], lambda: (gosprl.envs.make("riverswim6"), {})],
    ids=["FrozenLake", "Dict of lamps", "a TabularMDP"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_system_is_collected_as_collect_does(make, seed):
    result = gosprl.collect(make()[0], 4, seed=seed)
    watched, collector, asked = begun(make()[0], 4, seed)
    walked = walk(watched, collector, asked, 100_000, 60)
    assert walked.direct
    assert walked.met.steps == result.steps
    assert walked.failure == ""


def test_what_is_written_down_is_what_was_counted():
    watched, collector, asked = begun(SYSTEMS["FrozenLake 4x4"]()[0], 3)
    walk(watched, collector, asked, 2000, 60)
    log, result = watched.log, collector.result()
    counted = np.zeros_like(result.counts)
    keys = np.array(log.keys)
    np.add.at(counted, (keys[log.column("state")], log.column("action")), 1)
    assert np.array_equal(counted, result.counts)
    assert len(log) == result.steps == 2000
    assert len(log.starts) == result.resets + 1
    assert log.column("terminated").sum() + log.column("truncated").sum() == result.resets
    clock, over = log.column("clock"), log.column("terminated") | log.column("truncated")
    assert clock[0] == 0
    assert np.array_equal(clock[1:], np.where(over[:-1], 0, clock[:-1] + 1))
    assert np.array_equal(log.column("state")[1:][~over[:-1]], log.column("next_state")[:-1][~over[:-1]])


def test_a_walk_goes_on_for_the_tests_after_the_need_is_met():
    watched, collector, asked = begun(SYSTEMS["FrozenLake 4x4"]()[0], 3)
    walked = walk(watched, collector, asked, 100_000, 60)
    assert walked.met.steps < walked.samples[-1].steps == LEAST


def test_the_budget_of_steps():
    watched, collector, asked = begun(TEN["Blackjack"]()[0], 10)
    walked = walk(watched, collector, asked, 1500, 60)
    assert (len(watched.log), walked.met, walked.direct) == (1500, None, False)


def test_the_budget_of_seconds():
    """A step takes a millisecond at least; the last block of steps began before the time was over."""
    watched, collector, asked = begun(Slow(), 1000)
    walked = walk(watched, collector, asked, 10**6, 0.3)
    assert 0 < len(watched.log) <= 1000 * walked.samples[-1].seconds
    assert walked.met is None
    assert walked.samples[-2].seconds <= 0.3


class Cycle(Stepped):
    """Every action leads to the next state of three."""

    def take(self, s, action):
        return (s + 1) % 3, 0.0


def test_a_large_need_is_preceded_by_one_sample_of_every_pair():
    mdp = gosprl.TabularMDP(np.eye(3)[[[1, 1], [2, 2], [0, 0]]])
    watched, collector, asked = begun(Cycle(mdp), 1000)
    walked = walk(watched, collector, asked, 300, 60)
    assert walked.met is None
    assert len(watched.log) == 300
    assert np.bincount(watched.log.column("state"), minlength=3).tolist() == [100, 100, 100]


def test_adjusted_needs():
    model = EmpiricalModel(3, 2)
    asked = Adjusted(as_requirement(7, model), model)
    every = np.arange(6)
    for options, expected in (({}, 7), ({"cap": 1}, 1), ({"cap": 20}, 7), ({"times": 10}, 70), ({}, 7)):
        asked.adjust(**options)
        assert asked.update(model, every) is None
        assert asked.pair.tolist() == [expected] * 6
        assert asked.as_of_now(model)[0].tolist() == [7] * 6
        assert asked.update(model, every) is not None


def test_watching_hides_nothing_of_a_system():
    inner = as_system(gosprl.envs.make("riverswim6"))
    watched = Watched(inner)
    assert (watched.all_states, watched.ends, watched.mdp) == (inner.all_states, inner.ends, inner.mdp)
    assert watched.compiled
    assert not Watched(as_system(Slow())).compiled
    assert isinstance(watched, System)


def test_memory_is_that_of_the_process():
    before = resident_bytes()
    kept = np.ones(20_000_000)
    assert resident_bytes() - before == pytest.approx(8 * len(kept), rel=0.2)
