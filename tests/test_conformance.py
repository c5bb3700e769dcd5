"""Every strategy on every kind of system with every kind of need: what any combination must do.

The registries are in tests/kinds.py and `gosprl.strategies.STRATEGIES`.
"""

import numpy as np
import pytest
from kinds import SYSTEMS

import gosprl
from gosprl.strategies import Guarded

STEPS = 240  # some combinations never end: a random walk on a lake with holes


def collector_of(system, need_kind, strategy, seed=0):
    model = system.model()
    need = system.requirement(need_kind(model), model)
    return gosprl.Collector(need=need, model=model, strategy=strategy, seed=seed)


def bits(result):
    """Everything that two equal runs have in common, bit for bit."""
    model = result.model
    arrays = (*model.stored(), model.reward_sum, model.reward_sq, result.counts, result.curve, result.unmet)
    numbers = (result.steps, result.attempts, result.resets, result.met, result.unseen, result.unreachable)
    return [array.tobytes() for array in arrays], numbers, str(result.guarantee), dict(result.work)


def whole(system_kind, need_kind, strategy):
    system = system_kind()
    return collector_of(system, need_kind, strategy).run(system, STEPS)


def test_the_result_is_consistent(system_kind, need_kind, strategy):
    result = whole(system_kind, need_kind, strategy)
    model = result.model
    count = model.transitions()[3]
    assert result.steps == result.counts.sum() <= STEPS
    assert count.sum() == result.steps + result.resets
    assert result.met == (len(result.unmet) == 0) == (result.stop == "met")
    assert result.stop in ("met", "max_steps")
    assert (result.unmet["have"] < result.unmet["needed"]).all()
    assert np.all(np.diff(result.curve["step"]) >= 0)
    assert 0 <= result.unseen <= 1


def test_pieces_are_the_whole(system_kind, need_kind, strategy):
    """Resumed after random numbers of steps, a run makes the same steps."""
    expected = whole(system_kind, need_kind, strategy)
    rng, system = np.random.default_rng(7), system_kind()
    collector = collector_of(system, need_kind, strategy)
    left = STEPS
    while left and not collector.done:
        piece = min(left, int(rng.integers(1, 90)))
        before = collector.record.steps
        collector.run(system, piece)
        left -= piece
        assert collector.record.steps - before <= piece
    assert bits(collector.result()) == bits(expected)


def test_ask_and_tell_are_the_run(system_kind, need_kind, strategy):
    expected = whole(system_kind, need_kind, strategy)
    system = system_kind()
    collector = collector_of(system, need_kind, strategy)
    system.seed(np.random.default_rng(np.random.SeedSequence(0).spawn(2)[1]))
    s = system.reset()
    while not collector.done and collector.record.steps < STEPS:
        a = collector.ask(s)
        outcome = system.step(a)
        collector.tell(s, a, *outcome)
        s = system.reset() if outcome.terminated or outcome.truncated else outcome.state
    result = collector.result()
    if collector.record.steps < STEPS:
        assert bits(result) == bits(expected)
    else:  # stopped by the user, perhaps before the reset that a run makes and after a plan that it does not
        assert result.counts.tobytes() == expected.counts.tobytes()
        assert result.curve.tobytes() == expected.curve.tobytes()


def test_compiled_and_stepped_are_the_same(need_kind, strategy):
    compiled, stepped = (whole(SYSTEMS[kind], need_kind, strategy) for kind in ("compiled", "stepped"))
    assert bits(compiled) == bits(stepped)


def test_a_result_does_not_change_when_the_run_goes_on(system_kind, strategy):
    system = system_kind()
    collector = collector_of(system, lambda model: 4, strategy)
    first = collector.run(system, 40)
    before = bits(first)
    collector.run(system, 40)
    assert bits(first) == before


@pytest.mark.parametrize("wrong", [{"reset": 10**9}, {"reset": "0"}, {"step": None}, {"step": (0, 0.0, False)}])
def test_what_a_system_returns_is_checked(strategy, wrong):
    """The error names the method; what was collected before is kept."""

    class Wrong(type(SYSTEMS["own"]())):
        def reset(self):
            return wrong.get("reset", super().reset())

        def step(self, action):
            outcome = super().step(action)
            return wrong["step"] if "step" in wrong and len(self.log) > 20 else outcome

    system = Wrong(SYSTEMS["own"]().table)
    if "reset" in wrong:
        with pytest.raises(gosprl.InputError, match=r"Wrong\.reset\(\)"):
            gosprl.collect(system, 4, strategy=strategy, seed=0)
        return
    with pytest.raises(gosprl.CollectionError, match=r"Wrong\.step") as caught:
        gosprl.collect(system, 10**6, strategy=strategy, seed=0)
    assert caught.value.result.steps == caught.value.result.counts.sum() == 20


def test_strategies_are_values():
    assert Guarded() == Guarded(delta=0.1)
    with pytest.raises(AttributeError):
        Guarded().delta = 0.2
