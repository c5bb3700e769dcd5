"""Systems with a bug, walked by a fleet: what is said of it, and that no pair is tried for ever."""

import functools

import gymnasium
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import gosprl
from gosprl import CollectionError
from gosprl.fleet.failures import ENOUGH
from gosprl.fleet.simulated import Simulated
from gosprl.runs import Out, verify


class Buggy(gymnasium.Env):
    """Four rooms in a ring; one action of room 2 raises, at first or always."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)
    error = KeyError

    def __init__(self, of_reset=False, is_mended=False):
        self.of_reset, self.is_mended = of_reset, is_mended

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.of_reset:
            self.look_up()
        self.room = 0
        return 0, {}

    def step(self, action):
        if self.room == 2 and action == 1:
            self.look_up()
        self.room = (self.room + (1 if action else -1)) % 4
        return self.room, 0.0, False, False, {}

    def look_up(self):
        if not self.is_mended:
            raise self.error("the key to room 3")


class Interrupted(Buggy):
    error = KeyboardInterrupt


def workers_of(kind, make):
    return Simulated(make, 2, entropy=[0, 7]) if kind == "simulated" else kind


@pytest.mark.parametrize("lost", ["unknown", "independent"])
@pytest.mark.parametrize("kind", ["simulated", "threads:2"])
def test_a_pair_that_always_raises_ends_the_run(kind, lost):
    with (
        pytest.warns(UserWarning, match="a walker is gone.*KeyError(.|\n)*line .* in look_up"),
        pytest.raises(CollectionError, match=r"state 2, action 1: expected an outcome(.|\n)*in look_up") as caught,
    ):
        gosprl.collect(Buggy, 3, seed=0, workers=workers_of(kind, Buggy), lost=lost, max_steps=5_000)
    result = caught.value.result
    assert result.stop == "failed"
    assert ENOUGH <= result.fleet["lost"] <= ENOUGH + 2
    assert f"lost       {result.fleet['lost']} samples; the last walker: KeyError" in repr(result)
    assert "in look_up" in repr(result)


@pytest.mark.filterwarnings("ignore:a walker is gone")
def test_in_processes():
    with pytest.raises(CollectionError, match=r"state 2, action 1: expected an outcome(.|\n)*in look_up"):
        gosprl.collect(Buggy, 1, seed=0, workers=2, max_steps=500)


@pytest.mark.filterwarnings("ignore:a walker is gone")
@pytest.mark.parametrize("kind", ["simulated", "threads:2", 2])
def test_a_reset_that_always_raises_ends_the_run(kind):
    make = functools.partial(Buggy, True)
    with pytest.raises(CollectionError, match="key to room 3") as caught:
        gosprl.collect(make, 1, seed=0, workers=workers_of(kind, make))
    assert caught.value.result.stop == "failed"
    assert not caught.value.result.met


@pytest.mark.filterwarnings("ignore:a walker is gone")
def test_a_vector_environment_is_over_when_one_of_its_environments_raises():
    vector = SyncVectorEnv([Buggy] * 2, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(CollectionError, match=r"no walker is left: KeyError(.|\n)*in look_up"):
        gosprl.collect(vector, 1, seed=0, max_steps=500)


@pytest.mark.filterwarnings("ignore:a walker is gone")
def test_what_a_thread_raises_is_heard_whatever_it_is():
    with pytest.raises(CollectionError, match="KeyboardInterrupt"):
        gosprl.collect(Interrupted, 1, seed=0, workers="threads:2", max_steps=500)


def test_a_pair_that_works_at_times_is_tried_on():
    """Seven of ten walkers die on their way to room 2: more than those that end a run, but not all."""
    fleet = Simulated(
        gosprl.envs.make("riverswim6"),
        *(2,),
        entropy=[0, 7],
        lost=lambda rng, report: report.key == 2 and rng.random() < 0.7,
    )
    result = gosprl.collect(gosprl.envs.make("riverswim6"), 20, seed=0, workers=fleet)
    assert result.met
    assert result.fleet["lost"] > 3 * ENOUGH
    assert result.losses == f"{result.fleet['lost']} samples; the last walker: it died"


@pytest.mark.filterwarnings("ignore:a walker is gone")
def test_a_pair_that_always_raises_after_the_run_went_on(tmp_path):
    """What an earlier part of the run collected is no sign that it works now."""
    out, rooms = Out(tmp_path / "run"), functools.partial(Buggy, is_mended=True)
    gosprl.collect(rooms, 2, seed=0, workers=Simulated(rooms, 2, entropy=[0, 7]), out=out)
    with pytest.raises(CollectionError, match="state 2, action 1: expected an outcome"):
        gosprl.resume(
            tmp_path / "run", system=Buggy, need=4, workers=Simulated(Buggy, 2, entropy=[0, 8]), max_steps=5_000
        )
    found = verify(tmp_path / "run")
    assert not found.damaged, found
