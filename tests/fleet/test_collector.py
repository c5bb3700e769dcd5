"""A fleet of one is the run of `Collector`, bit for bit; many walkers collect what is needed, whatever goes wrong."""

import numpy as np
import pytest
from fleet_runs import Copy, exponential, fleet_of, walked
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


RIVER = gosprl.envs.make("riverswim6")


def lost_now_and_then(rng, report):
    return rng.random() < 0.05


@pytest.mark.parametrize("walkers", [2, 7, 40])
@pytest.mark.parametrize("name", ["riverswim6", "corridor24", "cliff48"])
def test_many_walkers_collect_what_is_needed(name, walkers):
    collector, _ = walked(gosprl.envs.make(name), 5, walkers, simulation={"duration": exponential})
    result, record = collector.result(), collector.record
    assert (result.met, result.stop, record.in_flight, record.waiting, record.lost) == (True, "met", 0, 0, 0)
    assert result.steps == result.counts.sum()
    assert (record.counts.visits == record.model.visits).all()


def test_needed_samples_are_never_issued_twice():
    """All walkers stand in one state that leads back to itself: what is in flight counts, so no step is too much."""
    mdp = gosprl.TabularMDP(np.ones((1, 4, 1)))
    collector, _ = walked(mdp, 7, 20, simulation={"duration": exponential})
    assert collector.result().counts.tolist() == [[7, 7, 7, 7]]


def test_walkers_that_are_not_needed_rest():
    """Nine walkers start far from the one sample that is missing: two of them go there, not all nine."""
    far = gosprl.TabularMDP(np.eye(12, k=1)[:, None] + np.eye(12)[:, None] * (np.arange(12) == 11)[:, None, None])
    needed = np.zeros((12, 1), dtype=int)
    needed[11] = 1
    known = {"strategy": gosprl.strategies.Guarded(dynamics=far), "simulation": {"duration": exponential}}
    alone, fleet = (walked(far, needed, walkers, **known)[0].result().steps for walkers in (1, 9))
    assert alone == 12
    assert fleet <= 2 * alone + 9


def test_one_sequence_of_events_is_one_run():
    runs = [walked(RIVER, 8, 5, seed=2, simulation={"duration": exponential, "lost": lost_now_and_then}) for _ in "ab"]
    (one, clock), (other, again) = runs
    assert bits(one.result(), one) == bits(other.result(), other)
    assert clock.now() == again.now()
    assert one.record.lost == other.record.lost > 0


@pytest.mark.parametrize("walkers", [1, 8])
def test_no_more_than_max_steps_are_issued_and_none_is_cut(walkers):
    collector, _ = walked(RIVER, 50, walkers, max_steps=33, simulation={"duration": exponential})
    result = collector.result()
    assert (result.steps, result.stop, collector.record.in_flight) == (33, "max_steps", 0)
    assert result.counts.sum() == 33


@pytest.mark.parametrize("depth", [0, 3, 20])
def test_deterministic_runs_do_not_depend_on_durations(depth):
    durations = [exponential, lambda rng, report: 1.0 + 9 * (report.key == 1), lambda rng, report: rng.pareto(1.5) + 1]
    runs = [
        walked(RIVER, 10, 6, deterministic=depth, late=None, simulation={"duration": duration})[0]
        for duration in durations
    ]
    assert all(bits(run.result(), run) == bits(runs[0].result(), runs[0]) for run in runs)
    assert runs[0].result().met


def wrong(rng, report):
    """Now and then a report that cannot be: another number, a state that does not exist, or no state at all."""
    kind = rng.integers(60)
    if kind == 0:
        return report._replace(number=report.number + 1)
    return report._replace(key=(99, "there", None)[kind - 1]) if kind < 4 else None


FAULTS = {
    "die": lambda rng, report: "die" if rng.random() < 0.05 else None,
    "hang": lambda rng, report: "hang" if rng.random() < 0.02 else None,
    "twice": lambda rng, report: "twice" if rng.random() < 0.05 else None,
    "wrong": wrong,
}


def test_deterministic_runs_survive_losses():
    simulation = {"duration": exponential, "lost": lost_now_and_then, "fault": FAULTS["twice"]}
    collector, _ = walked(RIVER, 5, 6, deterministic=4, simulation=simulation)
    assert collector.result().met
    assert collector.record.lost > 0


@pytest.mark.parametrize("lost", ["unknown", "independent"])
@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_walkers_are_replaced_and_the_run_goes_on(fault, lost):
    simulation = {"duration": lambda rng, report: min(4.0, rng.exponential()), "fault": FAULTS[fault]}  # none is late
    collector, _ = walked(RIVER, 10, 12, lost=lost, late=20, simulation=simulation)
    result, record = collector.result(), collector.record
    unknown = int(record.counts.unknown.sum())
    assert result.met
    assert record.lost > 0
    assert unknown == (record.lost if lost == "unknown" else 0)
    assert result.steps == result.counts.sum() + record.lost  # each step is a sample, or was given up
    assert (record.counts.visits == record.model.visits).all()


def test_late_samples_fill_their_places():
    slow = {"duration": lambda rng, report: 100.0 if rng.random() < 0.02 else 1.0}
    collector, _ = walked(gosprl.envs.make("four_room43"), 10, 8, late=10, simulation=slow)
    record = collector.record
    filled = record.lost - int(record.counts.unknown.sum())
    assert collector.result().met
    assert filled > 0
    assert collector.result().steps == record.counts.visits.sum() + record.counts.unknown.sum()


def test_a_fleet_whose_walkers_are_all_gone_fails_with_what_it_has():
    simulation = {"duration": exponential, "lost": lambda rng, report: rng.random() < 0.3, "restart": None}
    with pytest.raises(gosprl.CollectionError, match="every walker is gone") as caught:
        walked(RIVER, 100, 4, simulation=simulation)
    result = caught.value.result
    assert (result.stop, result.met) == ("failed", False)
    assert result.counts.sum() > 0


def test_walkers_may_join_later():
    collector, executor = walked(RIVER, 20, 1, simulation={"joins": [5.0, 10.0, 20.0]})
    assert collector.result().met
    assert len(collector.walks) == 4
    assert executor.now() < collector.result().steps


def test_the_first_reset_may_be_late():
    collector, _ = walked(RIVER, 3, 3, late="100ms", simulation={"duration": lambda *_: 0.01, "reset_duration": 1.0})
    assert collector.result().met
    assert collector.start == RIVER.start


NO_BOUND = "confidence sets and certificates; the bound on the steps is proven for one walker"


@pytest.mark.parametrize(
    ("walkers", "options", "simulation", "expected"),
    [
        (1, {}, {}, "delta=0.1"),
        (4, {}, {}, f"delta=0.1: {NO_BOUND}"),
        (1, {}, {"lost": lost_now_and_then}, f"delta=0.1: {NO_BOUND}"),
        (
            4,
            {"lost": "independent"},
            {"lost": lost_now_and_then},
            f"delta=0.1, given that losses do not depend on outcomes: {NO_BOUND}",
        ),
        (4, {"strategy": "random"}, {}, "none: a random walk"),
    ],
)
def test_the_guarantee_claims_the_bound_on_steps_for_one_walker_only(walkers, options, simulation, expected):
    collector, _ = walked(RIVER, 30, walkers, simulation=simulation, **options)
    assert str(collector.result().guarantee) == expected


def test_thrift_saves_steps_and_takes_longer():
    mdp = gosprl.envs.make("corridor24")
    runs = [walked(mdp, 10, 64, thrift=thrift, simulation={"duration": exponential}) for thrift in (None, 5)]
    (all_move, soon), (few_move, later) = runs
    assert few_move.result().met
    assert few_move.result().steps < 0.9 * all_move.result().steps
    assert later.now() > soon.now()


@pytest.mark.parametrize(
    ("option", "value"), [("lost", "never"), ("late", "soon"), ("thrift", 0), ("deterministic", -1), ("lost", "state")]
)
def test_bad_options(option, value):
    with pytest.raises(gosprl.InputError, match=option):
        walked(RIVER, 1, 2, **{option: value})


@pytest.mark.parametrize("options", [{}, {"strategy": "gosprl"}, {"strategy": "gosprl", "dynamics": True}], ids=str)
def test_a_walker_behind_a_one_way_door_waits_for_the_others(options):
    """Most is needed of the states 0 and 1. Behind a door are 2 and 3: who is there can do nothing for the others."""
    P = np.zeros((4, 2, 4))
    P[0, 0, 0] = P[0, 1, 1] = P[1, 0, 0] = P[2, 0, 2] = P[2, 1, 3] = P[3, 0, 2] = P[3, 1, 3] = 1
    P[1, 1, 1:3] = 0.5
    mdp, need = gosprl.TabularMDP(P), np.array([[9, 9], [9, 0], [1, 1], [1, 1]])
    options = options | ({"dynamics": mdp} if "dynamics" in options else {})
    for seed in range(4):
        collector, _ = walked(mdp, need, 3, seed=seed, simulation={"duration": exponential}, **options)
        result = collector.result()
        if not result.met:
            assert result.stop == "unreachable"
            assert all(walk.engine.state >= 2 for walk in collector.walks.values())
