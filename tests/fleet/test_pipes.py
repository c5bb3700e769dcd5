"""Processes: whatever a walker does to its end of the line, the learner hears of it and is not stopped."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import fleet_systems as systems
import pytest
from fleet_talk import opened

from gosprl import InputError
from gosprl.fleet.orders import Joined, Lost, Report
from gosprl.fleet.pipes import Processes

TESTS = Path(__file__).parents[1]


class Rogues(Processes):
    run = staticmethod(systems.rogue)


class Chatty(Processes):
    run = staticmethod(systems.chatty)


class Rude(Processes):
    run = staticmethod(systems.rude)


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def is_over(pid, seconds=600.0):
    """Whether a process ends in time."""
    end = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(pid)


BROKEN = {
    systems.GARBAGE: "it broke the rules: ",
    systems.WRONG: r"it broke the rules: expected an answer to order (\d+), got one to \d+",
    systems.TWICE: "it broke the rules: it answered more than it was asked",
    systems.FLOOD: "it broke the rules: it answered more than it was asked",
    systems.HUGE: "it broke the rules: expected a message of 1 to 1,048,576 bytes, got one of 2,147,483,648",
    systems.LONG: "it broke the rules: expected a message of 1 to 1,048,576 bytes, got one of 1,048,577",
    systems.STALE: r"it broke the rules: expected an answer to order (\d+), got one to \d+",
    systems.KIND: "it broke the rules: expected a report, got a message of kind 77",
    systems.ILLEGAL: r"it broke the rules: expected actions in 0..10, got \[11\]",
    systems.CLOSED: "it closed its socket",
}


def test_a_walker_that_breaks_the_rules_is_ended_and_replaced():
    with opened(Rogues(systems.Faulty, 1, entropy=0)) as talk:
        for action, why in BROKEN.items():
            walker = talk.joined()
            pid = talk.executor.pid(walker)
            lost = talk.order(walker, action)
            assert isinstance(lost, Lost), action
            assert lost.walker == walker
            assert re.match(why, lost.why), lost
            assert talk.executor.pid(walker) is None
            assert is_over(pid)


def test_half_a_message_stops_nobody():
    with opened(Rogues(systems.Faulty, 2, entropy=0)) as talk:
        for event in talk.events(2):
            assert isinstance(talk.order(event.walker, -1), Report)
        talk.send(0, systems.PART)
        assert talk.executor.receive(0.1) == []
        assert talk.order(1, systems.WRONG).walker == 1
        talk.executor.dismiss(0)
        assert {type(event) for event in talk.events(2)} == {Joined}


def test_a_walker_that_speaks_without_being_asked_is_ended():
    with opened(Chatty(systems.Faulty, 1, entropy=0)) as talk:
        talk.joined()
        assert talk.event() == Lost(0, "it broke the rules: it wrote without being asked")


def test_a_walker_that_does_not_introduce_itself_is_refused():
    with opened(Rude(systems.Faulty, 1, entropy=0)) as talk, pytest.raises(Exception, match=r"a description of its"):
        talk.event()


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (systems.KILL, "its process was ended by the signal SIGKILL"),
        (systems.EXIT, "its process exited with status 3"),
    ],
)
def test_a_process_that_ends_is_lost_at_once(action, why):
    with opened(Processes(systems.Faulty, 1, entropy=0)) as talk:
        assert talk.order(talk.joined(), action)[:2] == (0, why)
        assert talk.joined() == 1


def test_killed_stopped_and_continued():
    with opened(Processes(systems.Faulty, 2, entropy=0)) as talk:
        assert {event.walker for event in talk.events(2)} == {0, 1}
        os.kill(talk.executor.pid(0), signal.SIGKILL)
        assert talk.event() == Lost(0, "its process was ended by the signal SIGKILL")
        assert talk.event() == Joined(2)

        stopped = talk.executor.pid(1)
        os.kill(stopped, signal.SIGSTOP)
        talk.send(1, -1)
        assert talk.executor.receive(0.1) == []
        talk.executor.dismiss(1)
        assert talk.event() == Joined(3)
        assert talk.executor.receive(1.2) == []  # SIGTERM has no effect on it, SIGKILL has
        assert is_over(stopped)


def test_a_late_answer_is_an_answer():
    with opened(Processes(systems.Faulty, 1, entropy=0)) as talk:
        pid = talk.executor.pid(talk.joined())
        os.kill(pid, signal.SIGSTOP)
        number = talk.send(0, systems.OK)
        assert talk.executor.receive(0.1) == []
        os.kill(pid, signal.SIGCONT)
        assert talk.event().number == number


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (systems.Odd, "InputError: the observation cannot be sent: an observation of type Colour"),
        (systems.Vast, "InputError: the observation cannot be sent: expected a message of at most 1,048,576 bytes"),
    ],
)
def test_observations_that_cannot_be_sent(factory, why):
    with opened(Processes(factory, 1, entropy=0)) as talk:
        assert talk.event() == Joined(0)
        lost = talk.order(0, -1)
        assert lost.walker == 0
        assert lost.why.startswith(why)


def test_a_message_in_pieces():
    with opened(Processes(systems.Large, 1, entropy=0)) as talk:
        talk.event()
        assert talk.order(0, -1).key == "x" * 1_000_000


def test_workers_ignore_ctrl_c_and_print_nothing_to_standard_output(capfd):
    with opened(Processes(systems.Faulty, 1, entropy=0)) as talk:
        walker = talk.joined()
        os.kill(talk.executor.pid(walker), signal.SIGINT)
        assert isinstance(talk.order(walker, systems.PRINT), Report)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("name", ["system", "key", "actions"])
def test_what_cannot_be_pickled_is_refused_before_anything_starts(name):
    given = {"system": systems.Faulty, "key": None, "actions": None, name: lambda *_: 1}
    with pytest.raises(InputError, match=rf"^{name}: expected something that can be sent.*functools.partial"):
        Processes(given.pop("system"), 2, **given)


def test_more_processes_than_files_can_be_opened_are_refused_before_anything_starts():
    with pytest.raises(InputError, match=r"^workers: expected at most [\d,]+ processes, got 100,000,000: .*ulimit -n"):
        Processes(systems.Faulty, 100_000_000)


def test_processes_are_started_no_more_once_the_run_is_interrupted(monkeypatch):
    monkeypatch.setattr("gosprl.fleet.crew.is_interrupted", lambda: True)
    with opened(Processes(systems.Faulty, 50, entropy=0)) as talk:
        assert talk.joined() == 0
        assert talk.executor.workers == 1
        assert talk.executor.pid(1) is None


def test_a_process_that_dies_while_it_makes_its_system():
    with (
        opened(Processes(systems.dying, 1, entropy=0)) as talk,
        pytest.raises(Exception, match=r"could not make it: its process exited with status 9; every process imports"),
    ):
        talk.event()


def test_systems_that_differ_among_each_other_are_refused():
    with (
        opened(Processes(systems.differing, 2, entropy=0)) as talk,
        pytest.raises(InputError, match=r"number of actions: expected \d+ as in the learner, got \d+"),
    ):
        talk.events(2)


SCRIPT = """
import sys, time
import fleet_systems as systems
from gosprl.fleet.orders import RESET, Order
from gosprl.fleet.pipes import Processes

if __name__ == "__main__":
    executor = Processes(systems.Faulty, 2, entropy=0)
    executor.open()
    joined = 0
    while joined < 2:
        joined += len(executor.receive())
    print(*[executor.pid(walker) for walker in (0, 1)], flush=True)
    executor.send(Order(0, 0, RESET))
    executor.receive()
    executor.send(Order(1, 0, systems.HANG))
    time.sleep(1000)
"""


def test_workers_end_when_the_learner_is_killed_even_in_a_step_that_hangs(tmp_path):
    script = tmp_path / "learner.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment) as learner:
        pids = [int(pid) for pid in learner.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(0.2)
        learner.kill()
    assert all(is_over(pid) for pid in pids)
