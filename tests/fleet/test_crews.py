"""What processes and threads have in common: the same steps as the system itself, losses, replacements, refusals."""

import functools

import fleet_systems as systems
import numpy as np
import pytest
from fleet_talk import opened

import gosprl
from gosprl import GosprlError, InputError
from gosprl.fleet.orders import RESET, Joined, Lost, Report
from gosprl.fleet.pipes import Processes
from gosprl.fleet.threads import Threads
from gosprl.fleet.walking import describe, stream
from gosprl.systems import as_system


@pytest.fixture(params=[Processes, Threads])
def kind(request):
    return request.param


def test_walkers_make_the_steps_of_the_system_with_their_own_seeds(kind):
    with opened(kind(systems.noisy_river, 3, entropy=11)) as talk:
        assert sorted(event.walker for event in talk.events(3)) == [0, 1, 2]
        for walker in (0, 1, 2):
            system = systems.noisy_river()
            system.seed(stream(11, walker))
            assert talk.order(walker, RESET) == Report(talk.number, walker, system.reset())
            for i in range(200):
                report = talk.order(walker, i // 9 % 2)
                assert report == Report(talk.number, walker, *system.step(i // 9 % 2)[:2])
                assert type(report.key) is int


def test_any_key_and_what_is_offered_arrive(kind):
    with opened(kind(systems.Texts, 1, entropy=0)) as talk:
        system = as_system(systems.Texts())
        assert talk.event() == Joined(0)
        for _ in range(2):
            start = system.reset()
            report = talk.order(0, RESET)
            assert report == Report(talk.number, 0, start.state, actions=start.actions)
            for _ in range(4):
                outcome = system.step(0)
                assert talk.order(0, 0) == Report(talk.number, 0, *outcome)
            assert outcome.terminated


def test_a_key_of_the_user(kind):
    with opened(kind(systems.Texts, 1, key=first_word, actions=[0, 2], entropy=0)) as talk:
        assert talk.event() == Joined(0)
        assert talk.order(0, RESET).key == "seen"


def first_word(observation, info):
    return observation[0].split()[0]


def test_outcomes_that_end_an_episode(kind):
    with opened(kind(systems.Faulty, 1, entropy=0)) as talk:
        walker = talk.joined()
        assert talk.order(walker, systems.END)[3:] == (0.5, True, False, None)
        assert talk.order(walker, systems.CUT)[3:] == (0.5, False, True, None)
        report = talk.order(walker, systems.CRASH)
        assert report == Report(talk.number, walker, gosprl.CRASH, 0.0, True)
        assert report.key is gosprl.CRASH


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (systems.RAISE, "ZeroDivisionError: division by zero"),
        (systems.NAN, "InputError: reward: expected a finite number, got nan"),
        (systems.FOREIGN, "InputError: the state that the system returned: expected a state in 0..2, got 7"),
    ],
)
def test_an_exception_in_a_step_loses_the_walker_which_is_replaced(kind, action, why):
    with opened(kind(systems.Faulty, 1, entropy=0)) as talk:
        assert talk.order(talk.joined(), action)[:2] == Lost(0, why)[:2]
        assert talk.joined() == 1
        assert isinstance(talk.order(1, systems.OK), Report)


def test_orders_to_walkers_that_are_gone_are_dropped(kind):
    with opened(kind(systems.Faulty, 1, entropy=0)) as talk:
        assert isinstance(talk.order(talk.joined(), systems.RAISE), Lost)
        talk.send(0, systems.OK)
        assert talk.event() == Joined(1)


def test_a_walker_that_hangs_is_dismissed_and_replaced(kind):
    with opened(kind(systems.Faulty, 1, entropy=0)) as talk:
        talk.send(talk.joined(), systems.HANG)
        assert talk.executor.receive(0.05) == []
        talk.executor.dismiss(0)
        talk.executor.dismiss(0)
        assert talk.joined() == 1


def test_a_place_is_given_up_after_replacements_without_a_report(kind):
    with opened(kind(systems.Faulty, 1, entropy=0)) as talk:
        for walker in range(4):
            assert talk.event() == Joined(walker)
            assert talk.order(walker, systems.RAISE)[:2] == (walker, "ZeroDivisionError: division by zero")
        with pytest.raises(GosprlError, match=r"^no walker is left; .* ZeroDivisionError: division by zero\nTraceback"):
            talk.event()


def test_a_second_order_before_the_first_is_answered_is_refused(kind):
    with opened(kind(systems.Faulty, 1, entropy=0)) as talk:
        talk.send(talk.joined(), systems.HANG)
        with pytest.raises(GosprlError, match=r"walker 0 has an open order, \d+"):
            talk.send(0, systems.OK)


@pytest.mark.parametrize(
    ("factory", "error", "message"),
    [
        (systems.raising, GosprlError, r"^system: a walker could not make it: KeyError: 'there is no such thing'"),
        (functools.partial(int, 3), InputError, r"^system: a walker could not make it: InputError: system: expected"),
        (systems.sleeping, GosprlError, r"^system: a walker could not make it: no system within 0.3 s of its start"),
    ],
)
def test_a_function_that_does_not_make_a_system(kind, factory, error, message):
    limit = 0.3 if factory is systems.sleeping else 100.0
    with opened(kind(factory, 2, entropy=0, start_timeout=limit)) as talk, pytest.raises(error, match=message):
        talk.events(2)


def test_what_cannot_begin_later_is_a_loss_and_no_error(kind, tmp_path):
    lab = tmp_path / "lab"
    lab.touch()
    with opened(kind(systems.Failing(str(lab)), 2, entropy=0)) as talk:
        for _ in range(2):
            assert isinstance(talk.event(), Joined)
        lab.unlink()
        talk.order(0, RESET)
        assert isinstance(talk.order(0, systems.RAISE), Lost)
        assert talk.executor.receive(0.5) == []  # its place is given up
        assert isinstance(talk.order(1, RESET), Report)
        assert isinstance(talk.order(1, systems.RAISE), Lost)
        with pytest.raises(GosprlError, match=r"^no walker is left.*OSError: the lab is closed"):
            talk.event()


@pytest.mark.parametrize(
    ("factory", "difference"),
    [
        (functools.partial(systems.Faulty, 10), "number of actions: expected 11 as in the learner, got 10"),
        (systems.river, "number of states: expected 3 as in the learner, got 6"),
        (systems.Texts, "number of states: expected 3 as in the learner, got none known beforehand"),
    ],
)
def test_systems_that_differ_from_the_learners_are_refused(kind, factory, difference):
    executor = kind(factory, 1, entropy=0, describe=describe(systems.Faulty()))
    with (
        opened(executor) as talk,
        pytest.raises(InputError, match=f"^system: expected copies of one system, but their {difference}$"),
    ):
        talk.event()


def test_actions_that_only_a_function_knows_are_refused(kind):
    with (
        opened(kind(functools.partial(Spaceless), 1, actions=some, entropy=0)) as talk,
        pytest.raises(InputError, match=r"actions: expected their number or a list of their values, got a function"),
    ):
        talk.event()


class Spaceless(systems.Texts):
    action_space = None


def some(observation):
    return [0, 2]


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, None])
def test_bad_numbers_of_workers(kind, workers):
    with pytest.raises(InputError, match=r"^workers: expected a whole number >= 1, got"):
        kind(systems.Faulty, workers)


def test_close_may_be_called_twice_and_ends_everything(kind):
    executor = kind(systems.Faulty, 2, entropy=0)
    with opened(executor) as talk:
        talk.events(2)
        executor.open()  # is open
    executor.close()
    with pytest.raises(GosprlError, match=r"the fleet was closed"):
        executor.receive()


def test_a_timeout_is_kept(kind):
    with opened(kind(systems.Faulty, 1, entropy=0)) as talk:
        talk.event()
        before = talk.executor.now()
        assert talk.executor.receive(0.2) == []
        assert 0.19 < talk.executor.now() - before < 10.0
        assert talk.executor.receive(0.0) == []


def test_entropy_of_several_numbers(kind):
    big = np.random.SeedSequence().entropy
    with opened(kind(systems.noisy_river, 1, entropy=big)) as talk:
        talk.joined()
        system = systems.noisy_river()
        system.seed(stream(big, 0))
        system.reset()
        keys = [talk.order(0, 1).key for _ in range(100)]
        assert keys == [system.step(1).state for _ in range(100)]
