"""A fleet of one is the run of `Collector`, bit for bit; many walkers collect what is needed, whatever goes wrong."""

import pytest
from fleet_runs import Copy, fleet_of, walked
from kinds import COMBINATIONS, NEEDS, SYSTEMS, collector_of

import gosprl
from gosprl.fleet.simulated import Simulated

STEPS = 180


def bits(result, collector):
    """Everything that two equal runs have in common."""
    model = result.model
    arrays = (*model.stored(), model.reward_sum, model.reward_sq, result.counts, result.curve, result.unmet)
    numbers = (result.steps, result.attempts, result.resets, result.met, result.unseen, result.unreachable)
    states = [(model.states.kind(s), model.states[s]) for s in range(model.rows.num_states)]
    random = str(collector.engine.rng.bit_generator.state)
    return [array.tobytes() for array in arrays], numbers, states, str(result.guarantee), dict(result.work), random


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "practical", "random"])
@pytest.mark.parametrize(("system", "need"), COMBINATIONS)
def test_one_walker_makes_the_run_of_a_collector(system, need, strategy):
    kind, asked = SYSTEMS[system], NEEDS[need]
    alone = kind.make()
    collector = collector_of(kind, alone, asked, strategy)
    expected = collector.run(alone, STEPS)
    own = kind.make()
    fleet = fleet_of(kind, own, asked, strategy)
    fleet.walk_fleet(Simulated(lambda: Copy(kind.make), 1, entropy=0), own, STEPS)
    assert bits(fleet.result(), fleet) == bits(expected, collector)


@pytest.mark.parametrize("name", ["riverswim6", "four_room43", "trap10"])
@pytest.mark.parametrize("need", [1, 10])
def test_one_walker_makes_the_whole_run_of_a_collector(name, need):
    mdp = gosprl.envs.make(name)
    fleet, _ = walked(mdp, need, 1, seed=3)
    collector = gosprl.Collector(need=need, seed=3, model=gosprl.EmpiricalModel.over(mdp.rows), resets="never")
    assert bits(fleet.result(), fleet) == bits(collector.run(mdp), collector)
