"""Systems of a user's own: what they must have, and what they get."""

import numpy as np
import pytest
from walked import RIVER

import gosprl
from gosprl import EmpiricalModel, InputError
from gosprl.systems import Outcome, System, Tabular, as_system


class Least(System):
    """No more than is asked for: a ring of 5 that can be walked both ways."""

    def model(self):
        return EmpiricalModel(5, 2)

    def reset(self):
        self.s, self.log = 0, []
        return 0

    def step(self, action):
        before, self.s = self.s, (self.s + (1 if action else -1)) % 5
        self.log.append((before, action, self.s))
        return Outcome(self.s)


def test_three_methods_are_enough(strategy):
    system = Least()
    result = gosprl.collect(system, 2, seed=0, strategy=strategy)
    assert (result.met, result.stop) == (True, "met")
    assert (result.states, result.pairs, result.steps) == (5, 10, len(system.log))
    triples, number = np.unique(system.log, axis=0, return_counts=True)
    assert np.column_stack(result.model.transitions()).tolist() == np.column_stack([triples, number]).tolist()
    assert result.limit_of == "the learnt model, an estimate"


@pytest.mark.parametrize("missing", ["model", "reset", "step"])
def test_none_of_the_three_may_be_missing(missing):
    methods = {name: getattr(Least, name) for name in ("model", "reset", "step") if name != missing}
    with pytest.raises(TypeError, match=missing):
        type("Incomplete", (System,), methods)()


def test_an_outcome_has_defaults():
    assert Outcome(3) == (3, 0.0, False, False, None)
    assert Outcome(3, 1.0, truncated=True) == (3, 1.0, False, True, None)


def test_a_system_may_say_what_a_number_means():
    class Halved(Least):
        def requirement(self, need, model):
            return super().requirement(need // 2, model)

    assert gosprl.collect(Halved(), 8, seed=0, max_steps=400).counts.min() == 4


def test_a_system_may_know_its_dynamics():
    class Told(Tabular):
        def follow(self, engine, steps):
            engine.follow(self, steps)

    own, simulated = (gosprl.collect(system, 3, seed=0) for system in (Told(RIVER), RIVER))
    assert own.counts.tolist() == simulated.counts.tolist()
    assert (own.limit, own.limit_of) == (simulated.limit, "the true dynamics")


@pytest.mark.parametrize("ends", [False, True])
def test_states_without_a_path_in_the_dynamics_told_are_given_up_at_once(ends):
    class Told(Tabular):  # two states, and an island
        def follow(self, engine, steps):
            engine.follow(self, steps)

    system = Told(gosprl.TabularMDP(([0, 1, 2], [0] * 3, [1, 0, 2], np.ones(3))))
    system.ends = ends
    result = gosprl.collect(system, 3, seed=0, max_steps=20)
    if ends:  # a reset could lead there
        assert (result.stop, result.unreachable) == ("max_steps", {})
    else:
        assert (result.stop, result.unreachable) == ("unreachable", {2: "no path from state 0"})


def test_what_is_made_of_what():
    system = Least()
    assert as_system(system) is system
    assert as_system(RIVER).mdp is RIVER
    for other in (None, 3, Least, "FrozenLake-v1", RIVER.dense()):
        with pytest.raises(InputError, match="system: expected a TabularMDP, a Gymnasium environment, an object"):
            as_system(other)
