"""The simulated clock: events in the order of their time, faults as asked for, the same steps as the real system."""

import numpy as np
import pytest
from kinds import river

import gosprl
from gosprl import GosprlError, InputError
from gosprl.fleet.orders import RESET, Joined, Lost, Order, Report
from gosprl.fleet.simulated import Simulated
from gosprl.fleet.walking import stream
from gosprl.systems import Tabular


def opened(*arguments, **options):
    executor = Simulated(*arguments, **options)
    executor.open()
    return executor


def joined(executor):
    """The numbers of the walkers that have joined; all of them are reset."""
    numbers = [event.walker for event in executor.receive(0)]
    for i, walker in enumerate(numbers):
        executor.send(Order(i, walker, RESET))
    assert [event.number for event in executor.receive(0)] == list(range(len(numbers)))
    return numbers


@pytest.mark.parametrize("walker", [0, 1, 2])
def test_walkers_of_an_mdp_make_the_steps_of_a_tabular_system(walker):
    mdp, system = river(), Tabular(river())
    executor = opened(mdp, 3, entropy=5)
    joined(executor)
    seeds = np.random.SeedSequence(5).spawn(2)[1]
    system.seed(np.random.default_rng(seeds if walker == 0 else np.random.SeedSequence(5, spawn_key=(1, walker))))
    system.reset()
    for i in range(600):
        executor.send(Order(i + 3, walker, i // 7 % 2))
        (report,) = executor.receive()
        assert report == Report(i + 3, walker, *system.step(i // 7 % 2)[:2])


def test_another_system_gets_the_same_random_numbers():
    one, other = opened(river(), 1, entropy=8), opened(lambda: Tabular(river()), 1, entropy=8)
    for executor in (one, other):
        joined(executor)
    for i in range(1, 300):
        for executor in (one, other):
            executor.send(Order(i, 0, 1))
        assert one.receive() == other.receive()


def test_reports_come_in_the_order_of_their_time_not_of_issue():
    durations = iter([3.0, 1.0, 2.0])
    executor = opened(river(), 3, duration=lambda rng, report: next(durations), entropy=0)
    for walker in joined(executor):
        executor.send(Order(10 + walker, walker, 1))
    assert executor.receive(0.5) == []
    assert executor.now() == 0.5
    seen = []
    for _ in range(3):
        (report,) = executor.receive()
        seen.append((report.number, executor.now()))
    assert seen == [(11, 1.0), (12, 2.0), (10, 3.0)]


def test_events_of_one_moment_come_together_in_the_order_of_issue():
    executor = opened(river(), 3, entropy=0)
    for walker in reversed(joined(executor)):
        executor.send(Order(12 - walker, walker, 1))
    assert [report.number for report in executor.receive()] == [10, 11, 12]
    assert executor.now() == 1.0


def test_a_lost_walker_is_replaced_under_a_new_number_and_takes_no_orders():
    executor = opened(river(), 2, lost=lambda rng, report: report.walker == 0, restart=5.0, entropy=0)
    joined(executor)
    executor.send(Order(2, 0, 1))
    assert executor.receive() == [Lost(0, "it died")]
    executor.send(Order(3, 0, 1))
    assert executor.receive() == [Joined(2)]
    assert executor.now() == 6.0


def test_loss_may_depend_on_the_outcome():
    executor = opened(river(), 1, lost=lambda rng, report: report.key == 1, entropy=0)
    walker, (order, lost, seen) = 0, (0, 0, set())
    events = executor.receive()
    while order < 500:
        for event in events:
            if isinstance(event, Lost):
                lost += 1
                continue
            seen.add(getattr(event, "key", None))
            walker = event.walker
            executor.send(Order(order, walker, RESET if isinstance(event, Joined) else 1))
            order += 1
        events = executor.receive()
    assert lost > 5
    assert seen == {None, 0}  # state 1 was reached, and never reported


def test_a_walker_that_hangs_is_dismissed_and_replaced():
    executor = opened(river(), 1, fault=lambda rng, report: "hang" if report.walker == 0 else None, entropy=0)
    joined(executor)
    executor.send(Order(1, 0, 1))
    assert executor.receive(20.0) == []
    assert executor.now() == 20.0
    with pytest.raises(GosprlError, match="gone or hangs"):
        executor.receive()
    executor.dismiss(0)
    executor.dismiss(0)
    assert executor.receive() == [Joined(1)]


def test_what_a_dismissed_walker_would_have_said_is_dropped():
    executor = opened(river(), 2, duration=lambda rng, report: 9.0 - report.walker, restart=None, entropy=0)
    for walker in joined(executor):
        executor.send(Order(2 + walker, walker, 1))
    executor.dismiss(1)
    (report,) = executor.receive()
    assert (report.walker, executor.now()) == (0, 9.0)


def test_a_report_may_come_twice_or_be_forged():
    said = iter(["twice", Report(99, 7, "nonsense")])
    executor = opened(river(), 1, fault=lambda rng, report: next(said), entropy=0)
    joined(executor)
    executor.send(Order(1, 0, 1))
    (first,) = executor.receive()
    assert executor.receive() == [first]
    executor.send(Order(2, 0, 1))
    with pytest.raises(GosprlError, match="gone or hangs"):
        executor.receive()  # there is no walker 7


def test_walkers_may_join_later():
    executor = opened(river(), 1, joins=[4.0, 2.0], entropy=0)
    times = [(event, executor.now()) for _ in range(3) for event in executor.receive()]
    assert times == [(Joined(0), 0.0), (Joined(1), 2.0), (Joined(2), 4.0)]


def test_an_exception_in_a_system_loses_the_walker():
    class Broken(Tabular):
        def step(self, action):
            raise ZeroDivisionError("of its own")

    executor = opened(lambda: Broken(river()), 1, restart=None, entropy=0)
    joined(executor)
    executor.send(Order(1, 0, 1))
    (lost,) = executor.receive()
    assert lost[:2] == (0, "ZeroDivisionError: of its own")
    assert "test_simulated.py" in lost.trace
    with pytest.raises(GosprlError, match="ZeroDivisionError: of its own"):
        executor.receive()
    executor.close()
    executor.close()


def test_a_second_order_before_the_first_is_answered_is_refused():
    executor = opened(river(), 1, entropy=0)
    joined(executor)
    executor.send(Order(1, 0, 1))
    with pytest.raises(GosprlError, match="walker 0 has an open order, 1"):
        executor.send(Order(2, 0, 1))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((3, 1), {}, "system: expected a TabularMDP or a function"),
        ((river(), 0), {}, "workers: expected a whole number >= 1, got 0"),
        ((river(), True), {}, "workers: expected"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(InputError, match=message):
        Simulated(*arguments, **options)


def test_an_unknown_fault_is_refused():
    executor = opened(river(), 1, fault=lambda rng, report: "sleepy", entropy=0)
    joined(executor)
    with pytest.raises(InputError, match="fault: expected None, a Report or one of die, hang, twice, got 'sleepy'"):
        executor.send(Order(1, 0, 1))


def test_walker_0_has_the_stream_of_collect():
    expected = np.random.default_rng(np.random.SeedSequence(3).spawn(2)[1]).random(4)
    assert np.array_equal(stream(3, 0).random(4), expected)
    assert not np.array_equal(stream(3, 1).random(4), expected)


@pytest.mark.filterwarnings("ignore:a walker is gone")
@pytest.mark.parametrize("workers", [1, 3])
def test_a_fleet_that_can_never_begin_ends_with_the_reason(workers):
    river = gosprl.envs.make("riverswim6")

    class Closed(Tabular):
        def reset(self):
            raise OSError("the lab is closed")

    with pytest.raises(gosprl.GosprlError, match="every walker is gone or hangs; the last reason: OSError: the lab is"):
        gosprl.collect(river, 1, seed=0, workers=Simulated(lambda: Closed(river), workers, entropy=0))
