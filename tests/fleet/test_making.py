"""What a user may write for workers and system, and what is refused."""

import functools
import sys

import fleet_systems as systems
import gymnasium
import numpy as np
import pytest
from fleet_talk import opened
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gosprl import InputError
from gosprl.fleet.making import executor_of
from gosprl.fleet.pipes import Processes
from gosprl.fleet.simulated import Simulated
from gosprl.fleet.threads import Threads
from gosprl.fleet.vector import Vector
from gosprl.systems import Process, as_system
from gosprl.systems.named import factory_of


@pytest.mark.parametrize(
    ("workers", "kind", "count"),
    [
        (8, Processes, 8),
        (np.int64(3), Processes, 3),
        ("2", Processes, 2),
        ("processes:5", Processes, 5),
        ("threads:8", Threads, 8),
    ],
)
def test_kinds_of_workers(workers, kind, count):
    executor = executor_of(workers, systems.Faulty)
    assert type(executor) is kind
    assert executor.workers == count
    executor.close()


def test_an_executor_is_itself():
    executor = Simulated(systems.river(), 1)
    assert executor_of(executor, None) is executor


def frozen_lakes(count):
    make = functools.partial(gymnasium.make, "FrozenLake-v1")
    return SyncVectorEnv([make] * count, autoreset_mode=AutoresetMode.DISABLED)


def test_a_vector_environment_has_its_own_number():
    for workers in (None, 3):
        executor = executor_of(workers, frozen_lakes(3), entropy=0)
        assert type(executor) is Vector
        with opened(executor) as talk:
            assert [event.walker for event in talk.events(3)] == [0, 1, 2]
    for workers in (2, "threads:3", True):
        with pytest.raises(InputError, match=r"^workers: expected 3 or None for a vector environment of 3, got"):
            executor_of(workers, frozen_lakes(3))


@pytest.mark.parametrize("workers", [0, -1, True, False])
def test_numbers_that_are_none(workers):
    with pytest.raises(InputError, match=r"^workers: expected a whole number >= 1, got"):
        executor_of(workers, systems.Faulty)


@pytest.mark.parametrize(
    "workers", [None, 1.5, "", "0", "-1", "many", "threads", "threads:0", "ray:", "ray:0", "rays", "mpi:4", [8], "8 "]
)
def test_what_is_no_number_and_no_known_text(workers):
    with pytest.raises(InputError, match=r'^workers: expected a number of processes, "threads:8", "ray".* got'):
        executor_of(workers, systems.Faulty)


@pytest.mark.parametrize("workers", ["ray", "ray:2", "ray://127.0.0.1:1"])
def test_without_ray_the_line_to_type(workers, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"^workers: a fleet on Ray needs Ray, .* type: pip install 'gosprl\[ray\]'"):
        executor_of(workers, systems.Faulty)


@pytest.mark.parametrize(
    "system",
    [
        systems.Faulty,
        functools.partial(systems.Faulty, 11),
        systems.river,
        systems.river(),
        "FrozenLake-v1",
        gymnasium.make("FrozenLake-v1"),
    ],
)
def test_what_can_be_copied(system):
    factory = factory_of(system)
    one, other = as_system(factory()), as_system(factory())
    assert one is not other
    assert one.model().rows.same(other.model().rows)


def test_copies_of_an_environment_walk_apart():
    with opened(executor_of(2, gymnasium.make("gosprl/riverswim-v0", states=6), entropy=1)) as talk:
        talk.events(2)
        walks = {walker: [talk.order(walker, action).key for action in [-1] + [1] * 40] for walker in (0, 1)}
        assert walks[0][0] == walks[1][0]
        assert walks[0] != walks[1]


class Open(gymnasium.Env):
    def __init__(self):
        self.file = open(__file__)  # noqa: SIM115

    def close(self):
        self.file.close()


def test_what_cannot_be_copied():
    env = Open()
    with pytest.raises(InputError, match=r"^system: expected an environment that can be copied, .* give a function"):
        factory_of(env)
    env.close()
    for system in (systems.Texts(), as_system(systems.river()), 3):
        with pytest.raises(InputError, match=r"^system: expected a system that can be copied, got .* give a function"):
            factory_of(system)
    assert factory_of(functools.partial(Process, "cat"))
