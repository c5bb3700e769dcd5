"""Ray actors on two simulated nodes: the same steps, and what becomes of actors and nodes that are killed.

Not part of `make test`, since Ray is large: `make ray` installs it and runs these.
"""

import socket
import sys
import types

import fleet_systems as systems
import pytest
import ray
from fleet_talk import opened
from ray.cluster_utils import Cluster

import gosprl
from gosprl import GosprlError, InputError
from gosprl.fleet.orders import RESET, Joined, Lost, Report
from gosprl.fleet.ray_actors import RayActors
from gosprl.fleet.walking import describe, stream
from gosprl.systems import as_system


@pytest.fixture(scope="module")
def cluster():
    nodes = {"num_cpus": 2, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=nodes)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_walkers_make_the_steps_of_the_system_with_their_own_seeds(cluster):
    with opened(RayActors(systems.noisy_river, entropy=11)) as talk:
        assert talk.executor.workers == 2  # the CPUs of the cluster
        assert sorted(event.walker for event in talk.events(2)) == [0, 1]
        for walker in (0, 1):
            system = systems.noisy_river()
            system.seed(stream(11, walker))
            assert talk.order(walker, RESET) == Report(talk.number, walker, system.reset())
            for i in range(100):
                assert talk.order(walker, i // 9 % 2) == Report(talk.number, walker, *system.step(i // 9 % 2)[:2])


def test_any_key_a_lambda_and_outcomes_that_end_episodes(cluster):
    with opened(RayActors(lambda: systems.Texts(), 1, entropy=0)) as talk:
        system = as_system(systems.Texts())
        assert talk.event() == Joined(0)
        start = system.reset()
        assert talk.order(0, RESET) == Report(talk.number, 0, start.state, actions=start.actions)
        for _ in range(4):
            assert talk.order(0, 0) == Report(talk.number, 0, *system.step(0))
    with opened(RayActors(systems.Faulty, 1, entropy=0)) as talk:
        walker = talk.joined()
        assert talk.order(walker, systems.CRASH) == Report(talk.number, walker, gosprl.CRASH, 0.0, True)


def test_losses_and_replacements(cluster):
    with opened(RayActors(systems.Faulty, 1, entropy=0)) as talk:
        assert talk.order(talk.joined(), systems.RAISE)[:2] == (0, "ZeroDivisionError: division by zero")
        assert talk.joined() == 1
        lost = talk.order(1, systems.KILL)
        assert (lost.walker, lost.why[:19]) == (1, "its actor is gone: ")
        assert talk.joined() == 2
        ray.kill(talk.executor.handle(2))
        while isinstance(event := talk.order(2, systems.OK), Report):  # it may answer before it is killed
            pass
        assert isinstance(event, Lost)
        assert talk.joined() == 3
        talk.send(3, systems.HANG)
        assert talk.executor.receive(0.3) == []
        talk.executor.dismiss(3)
        assert talk.joined() == 4
        assert isinstance(talk.order(4, systems.OK), Report)


@pytest.mark.parametrize(
    ("factory", "error", "message"),
    [
        (systems.raising, GosprlError, "could not make it: KeyError: 'there is no such thing'"),
        (systems.river, InputError, "their number of states: expected 3 as in the learner, got 6"),
    ],
)
def test_systems_that_cannot_begin(cluster, factory, error, message):
    executor = RayActors(factory, 1, entropy=0, describe=describe(systems.Faulty()))
    with opened(executor) as talk, pytest.raises(error, match=message):
        talk.event()


def test_what_ray_cannot_pickle_is_refused(cluster):
    with (
        socket.socket() as unpicklable,
        pytest.raises(InputError, match=r"^system: expected a function that can be sent to an actor, got <function"),
    ):
        RayActors(lambda: unpicklable, 1, entropy=0)


def test_what_a_node_cannot_import(cluster, monkeypatch):
    monkeypatch.setitem(sys.modules, "only_here", types.ModuleType("only_here"))
    exec("def make():\n    return 1", sys.modules["only_here"].__dict__)
    with (
        opened(RayActors(sys.modules["only_here"].make, 1, entropy=0)) as talk,
        pytest.raises(GosprlError, match=r"could not make it: ModuleNotFoundError: No module named 'only_here'"),
    ):
        talk.event()


def test_no_room(cluster):
    with (
        opened(RayActors(systems.Faulty, 1, options={"num_cpus": 50}, start_timeout=1.0)) as talk,
        pytest.raises(GosprlError, match=r"no actor began within 1 s; the cluster has room for CPU 2"),
    ):
        talk.event()


def test_a_node_that_is_killed_is_survived_and_one_that_joins_is_used(cluster):
    with opened(RayActors(systems.Faulty, 4, entropy=0)) as talk:
        first = {talk.joined() for _ in range(2)}  # the others wait for room
        assert talk.executor.receive(1.0) == []
        node = cluster.add_node(num_cpus=2)
        later = {talk.joined() for _ in range(2)}
        assert first | later == {0, 1, 2, 3}

        for walker in range(4):
            talk.send(walker, systems.HANG if walker in later else systems.OK)
        assert {report.walker for report in talk.events(2)} == first
        cluster.remove_node(node, allow_graceful=False)
        lost = talk.events(2)
        assert {event.walker for event in lost} == later
        assert {type(event) for event in lost} == {Lost}
        for walker in first:  # those on the other node go on
            assert isinstance(talk.order(walker, systems.OK), Report)

        cluster.add_node(num_cpus=2)
        assert {talk.joined(), talk.joined()} == {4, 5}
