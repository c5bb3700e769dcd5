"""Leases: a walker makes up to four steps by itself, and its samples keep their places in the order of issue."""

import fleet_systems
import numpy as np
import pytest
from fleet_runs import exponential, walked
from fleet_talk import opened

import gosprl
from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.orders import STEP, Executor, Joined, Order, Report, next_of_lease
from gosprl.fleet.pipes import Processes
from gosprl.runs import verify
from gosprl.systems import as_system

RING = np.zeros((3, 1, 3))  # 0 -> 1 -> 2 -> 0: a lease foresees every step
RING[[0, 1, 2], 0, [1, 2, 0]] = 1.0


class Scripted(Executor):
    """Walkers in the hands of a test: it says which of them reports next, and where it is then."""

    leases = True

    def __init__(self, script):
        self.script, self.orders, self.sent, self.steps = list(script), {}, 0, 0

    def open(self):
        pass

    def send(self, order):
        self.sent += 1
        self.goes_on(order)

    def goes_on(self, order):
        self.steps += 1
        self.orders[order.walker] = order

    def receive(self, timeout=None):
        walker, key = self.script.pop(0)
        return [Joined(walker) if key is None else Report(self.orders[walker].number, walker, key)]

    def dismiss(self, walker):
        pass

    def now(self):
        return 0.0

    def close(self):
        pass


def test_what_follows_is_used_once_and_ends_with_the_episode():
    order = Order(7, 0, 1, ((4, 2), (5, 3)))
    assert next_of_lease(order, Report(7, 0, 5)) == Order(7 + STEP, 0, 3, ((4, 2),))
    for report in (Report(7, 0, 6), Report(7, 0, 5, terminated=True), Report(7, 0, 5, truncated=True)):
        assert next_of_lease(order, report) is None
    assert next_of_lease(Order(7, 0, 1), Report(7, 0, 5)) is None


def test_a_step_that_a_walker_makes_by_itself_has_its_place_when_it_begins():
    """Walker 0 goes on to the row of state 1; walker 1 takes the same row later and returns first: it has to wait."""
    mdp, rounds = gosprl.TabularMDP(RING), 5
    script = [(0, None), (0, 0), *((0, s) for s in [1, 2, 0] * rounds), (0, 1), (1, None), (1, 1), (1, 2)]
    executor, system = Scripted(script), as_system(mdp)
    collector = FleetCollector(need=30, seed=0, model=system.model(), resets="never", lease=4)
    with pytest.raises(gosprl.CollectionError):  # the script ends
        collector.walk_fleet(executor, system)
    record, ours = collector.record, collector.walks[0]
    record.flush()
    assert executor.sent < executor.steps, "walker 0 went on by itself"
    assert (ours.engine.state, ours.order.number, record.in_flight, record.waiting) == (1, 3 * rounds + 2, 2, 1)
    assert record.model.visits.tolist() == [rounds + 1, rounds + 1, rounds]  # returned
    assert record.counts.visits.tolist() == [rounds + 1, rounds, rounds]  # committed


@pytest.mark.parametrize("walkers", [1, 3, 16])
def test_runs_with_leases_collect_what_is_needed_and_lose_nothing(walkers):
    mdp = gosprl.envs.make("corridor24")
    collector, _ = walked(mdp, 5, walkers, simulation={"duration": exponential}, lease=4)
    result, record = collector.result(), collector.record
    assert (result.met, record.in_flight, record.leased, record.waiting, record.lost) == (True, 0, 0, 0, 0)
    assert result.steps == result.counts.sum() == record.steps
    assert "makes by itself" in str(result.guarantee)


def test_a_budget_is_kept_whoever_goes_on_by_himself():
    mdp = gosprl.envs.make("four_room43")
    for steps in (1, 2, 50, 51):
        collector, _ = walked(mdp, 50, 7, max_steps=steps, simulation={"duration": exponential}, lease=4)
        assert collector.result().steps == steps


def test_a_run_with_leases_is_replayed_from_its_log(tmp_path):
    directory = tmp_path / "run"
    gosprl.collect(gosprl.envs.make("four_room43"), 3, seed=1, workers=2, lease=4, out=directory)
    checked = verify(directory)
    assert not checked.damaged, checked


def test_fewer_orders_are_sent_and_each_step_is_reported():
    factory = fleet_systems.river
    with opened(Processes(factory, 1, entropy=0)) as talk:
        walker = talk.joined()
        executor = talk.executor
        executor.send(Order(talk.number, walker, 0, ((0, 0),)))
        first = talk.event()
        assert (first.number, first.key) == (talk.number, 0)  # the left bank of the river
        executor.goes_on(Order(99, walker, 0))
        second = talk.event()
        assert (second.number, second.key) == (99, 0)


def test_a_report_that_is_said_twice_is_no_step_of_a_lease():
    class Rogue(Processes):
        run = staticmethod(fleet_systems.twice_in_a_lease)

    with opened(Rogue(fleet_systems.river, 1, entropy=0)) as talk:
        walker = talk.joined()
        talk.executor.send(Order(talk.number, walker, 0, ((1, 0),)))
        assert isinstance(talk.event(), Report)
        talk.executor.goes_on(Order(99, walker, 0))
        assert "expected an answer to order" in talk.event().why


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"lease": 0}, "lease: expected a whole number >= 1"),
        ({"lease": 5}, "lease: expected 1 to 4 steps, got 5"),
        ({"lease": 2, "deterministic": 0}, "lease: expected 1 with deterministic=0"),
        ({"lease": 2, "workers": "threads:2"}, "lease: expected 1, as the walkers of Threads wait"),
    ],
)
def test_leases_that_cannot_be(options, why):
    with pytest.raises(gosprl.InputError, match=why):
        gosprl.collect("riverswim6", 1, **{"workers": 2, **options})
