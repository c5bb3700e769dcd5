"""Every strategy on every kind of system with every kind of need: what any combination must do.

The registries are in tests/kinds.py and `gosprl.strategies.STRATEGIES`.
"""

import numpy as np
import pytest
from kinds import NEEDS, SYSTEMS, Own, collector_of, river

import gosprl
from gosprl.strategies import Guarded
from gosprl.systems import Start

STEPS = 240  # some combinations never end: a random walk on a lake with holes


def bits(result):
    """Everything that two equal runs have in common, bit for bit."""
    model = result.model
    arrays = (*model.stored(), model.reward_sum, model.reward_sq, result.counts, result.curve, result.unmet)
    numbers = (result.steps, result.attempts, result.resets, result.met, result.unseen, result.unreachable)
    states = [(model.states.kind(s), model.states[s]) for s in range(model.rows.num_states)]
    return [array.tobytes() for array in arrays], numbers, states, str(result.guarantee), dict(result.work)


def whole(kind, need, strategy):
    system = kind.make()
    return collector_of(kind, system, need, strategy).run(system, STEPS)


def test_the_result_is_consistent(combination, strategy):
    result = whole(*combination, strategy)
    model = result.model
    assert result.steps == result.counts.sum() == model.transitions()[3].sum() <= STEPS
    if model.resets == "never":
        assert (model.starts()[1].sum(), model.states.reset) == (0, -1)
    else:
        assert model.starts()[1].sum() == result.resets + 1
    assert result.counts.shape[0] == model.num_states == sum(kind == "live" for kind in kinds_of(model))
    assert result.met == (len(result.unmet) == 0) == (result.stop == "met")
    assert result.stop in ("met", "max_steps")
    assert (result.unmet["have"] < result.unmet["needed"]).all()
    assert np.all(np.diff(result.curve["step"]) >= 0)
    assert np.all((result.curve["proportion"] >= 0) & (result.curve["proportion"] <= 1))
    assert 0 <= result.unseen <= 1


def kinds_of(model):
    return [model.states.kind(s) for s in range(model.rows.num_states)]


def test_pieces_are_the_whole(combination, strategy):
    """Resumed after random numbers of steps, a run makes the same steps."""
    expected = whole(*combination, strategy)
    kind, need = combination
    rng, system = np.random.default_rng(7), kind.make()
    collector = collector_of(kind, system, need, strategy)
    left = STEPS
    while left and not collector.done:
        piece = min(left, int(rng.integers(1, 90)))
        before = collector.record.steps + collector.record.quits
        collector.run(system, piece)
        left -= piece
        assert collector.record.steps + collector.record.quits - before <= piece
    assert bits(collector.result()) == bits(expected)


def test_ask_and_tell_are_the_run(combination, strategy):
    expected = whole(*combination, strategy)
    kind, need = combination
    system = kind.make()
    collector = collector_of(kind, system, need, strategy)
    system.seed(np.random.default_rng(np.random.SeedSequence(0).spawn(2)[1]))

    def begin():
        start = system.reset()
        return start if isinstance(start, Start) else Start(start)

    def made():
        return collector.record.steps + collector.record.quits

    (s, offered), over = begin(), False
    while not collector.done and made() < STEPS:
        a = collector.ask(s, offered)
        if a == gosprl.RESET:
            s, offered = begin()
            continue
        outcome = system.step(a)
        collector.tell(s, a, *outcome[:4])
        over = outcome.terminated or outcome.truncated
        s, offered = begin() if over else (outcome.state, outcome.actions)
    over = over or collector.engine.age == kind.horizon
    result = collector.result()
    assert result.counts.tobytes() == expected.counts[: len(result.counts)].tobytes()
    assert not expected.counts[len(result.counts) :].any()
    if not over:  # or a run makes one reset more
        assert result.curve.tobytes() == expected.curve.tobytes()
        assert result.unmet.tobytes() == expected.unmet.tobytes()
        if made() < STEPS and offered is None:  # or one plan less; or knows what the last state offers
            assert bits(result) == bits(expected)


def test_compiled_and_stepped_are_the_same(need_kind, strategy):
    compiled, stepped = (whole(SYSTEMS[kind], need_kind, strategy) for kind in ("compiled", "stepped"))
    assert bits(compiled) == bits(stepped)


def test_a_result_does_not_change_when_the_run_goes_on(system_kind, strategy):
    system = system_kind.make()
    collector = collector_of(system_kind, system, NEEDS["int"], strategy)
    first = collector.run(system, 40)
    before = bits(first)
    collector.run(system, 40)
    assert bits(first) == before


@pytest.mark.parametrize("wrong", [{"reset": 10**9}, {"reset": "0"}, {"step": None}, {"step": (0, 0.0, False)}])
def test_what_a_system_returns_is_checked(strategy, wrong):
    """The error names the method; what was collected before is kept."""

    class Wrong(Own):
        def reset(self):
            return wrong.get("reset", super().reset())

        def step(self, action):
            outcome = super().step(action)
            return wrong["step"] if "step" in wrong and len(self.log) > 20 else outcome

    system = Wrong(river())
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
