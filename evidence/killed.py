"""What evidence/kills.py kills: kinds of runs, and systems that write every step to a journal of their own.

The journal is written to a file with one system call a step, before the step is answered: it survives the process.
"""

import os
import shutil
import subprocess
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gosprl
from gosprl.collecting import collector as collecting
from gosprl.runs import Out
from gosprl.systems import Outcome, Process, System

EXAMPLES = Path(__file__).parents[1] / "examples" / "processes"
WIDTH = 6
RENEWAL = collecting.RENEWAL
SHELL = ("sh", "-c", 'trap "" PIPE; exec "$0" journal')  # so that it writes its journal when nobody reads its answers


class Journal:
    """Lines `observation action next-observation reward terminated truncated`, in a file."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        weakref.finalize(self, os.close, self._fd)

    def write(self, *fields):
        os.write(self._fd, (" ".join(map(str, fields)) + "\n").encode())


class Lake(gymnasium.Wrapper):
    """FrozenLake with a journal."""

    def __init__(self, path):
        super().__init__(gymnasium.make("FrozenLake-v1", max_episode_steps=30))
        self._journal, self._at = Journal(path), None

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        self._at = observation
        return observation, info

    def step(self, action):
        answer = observation, reward, terminated, truncated, _ = self.env.step(action)
        self._journal.write(self._at, action, observation, float(reward), int(terminated), int(truncated))
        self._at = observation
        return answer


class Floors:
    """A house that gets known on the way: rooms are texts, and a room's doors are known when it is entered.

    The roof ends an episode, a fall cuts it off, and a reset leads to one of two doors.
    """

    def __init__(self, path):
        self._journal = Journal(path)

    def _said(self):
        return f"floor {self._floor}, room {self._room}"

    def reset(self, *, seed=None):
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._floor, self._room = 0, int(self._rng.integers(2))
        return self._said(), {}

    def step(self, action):
        before, u = self._said(), self._rng.random()
        if action == "up" and u < 0.8:
            self._floor += 1
        elif action.startswith("to "):
            self._room = int(action[3:]) if u < 0.9 else self._room
        terminated, truncated = self._floor == WIDTH, 0.97 < u < 0.99
        reward = round(u, 3)
        named = action.replace(" ", "_")
        self._journal.write(
            before.replace(" ", "_"), named, self._said().replace(" ", "_"), reward, int(terminated), int(truncated)
        )
        return self._said(), reward, terminated, truncated, {}


def doors(room):
    """The actions of a room: upper floors have more."""
    floor = int(room.split(",")[0].split()[1])
    return ["up", *(f"to {other}" for other in range(min(2 + floor, WIDTH)))]


class Ring(System):
    """A ring that tells its state, random numbers included: a run on it can be restored exactly."""

    all_states, ends, size = True, True, 12

    def model(self):
        return gosprl.EmpiricalModel(self.size, 2)

    def seed(self, rng):
        self._noise, self._at = int(rng.integers(2**31)), 0

    def _uniform(self):
        self._noise = (1103515245 * self._noise + 12345) % 2**31
        return (self._noise >> 8) / 2**23

    def reset(self):
        self._at = int(self._uniform() * 3)
        return self._at

    def step(self, action):
        u = self._uniform()
        move = (1, 3)[action] if u < 0.8 else 0
        self._at = (self._at + move) % self.size
        return Outcome(self._at, u, terminated=u > 0.97, truncated=0.94 < u < 0.95)

    def get_state(self):
        return {"noise": self._noise, "at": self._at}

    def set_state(self, state):
        self._noise, self._at = state["noise"], state["at"]


@cache
def grid():
    """The compiled example in C; None where there is no compiler."""
    target = Path("/tmp") / f"gosprl-grid-{os.getuid()}" / "grid"
    target.parent.mkdir(exist_ok=True)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    own = target.with_name(f"grid-{os.getpid()}")
    subprocess.run([compiler, "-O2", "-o", str(own), str(EXAMPLES / "grid.c")], check=True)
    own.replace(target)
    return str(target)


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes
    ----------
    make
        A path for the journal -> system.
    need
        What it needs; of an application, its own argument.
    exact
        Whether an interrupted run gives the same result as one that is not.
    journal
        "all" (steps with rewards and endings), "steps" (of the example in C), or None.
    application
        The name of an application; None: `collect`.
    renewal
        Steps between two checkpoints; None: as in the package.
    typical
        Steps that it takes, about.
    functions
        Arguments of `collect` that cannot be stored with a run, and are given again.
    data
        Samples (s, a, s_next) that it begins with, in order; None: there are none.
    """

    make: Callable[[Path], Any]
    need: Any
    exact: bool = False
    journal: str | None = None
    application: str | None = None
    renewal: int | None = None
    typical: int = 5000
    functions: dict[str, Any] = field(default_factory=dict)
    data: Any = None

    def go(self, directory, journal, seed, way="collect", sync=(1000, 0.02)):
        """Begin a run, or go on with it, until its end; `way`: "collect" or "resume", if there is something to."""
        collecting.RENEWAL = self.renewal or RENEWAL
        system = self.make(journal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there may well be more states
            try:
                if way == "resume" and (directory / "manifest.json").exists():
                    own = {} if isinstance(system, gosprl.TabularMDP) else {"system": system}
                    names = ("sync_steps", "sync_seconds")
                    return gosprl.resume(directory, **own, **self.functions, **dict(zip(names, sync, strict=True)))
                function = gosprl.collect
                if self.application is not None:
                    function = getattr(gosprl.applications, self.application)
                data = {} if self.data is None else {"data": self.data, "data_order": "collected"}
                return function(system, self.need, seed=seed, out=Out(directory, *sync), **self.functions, **data)
            finally:
                if isinstance(system, Process):
                    system.close()


AT_THE_BANK = ([0, 0, 0, 1] * 5, [0, 1, 1, 0] * 5, [0, 0, 1, 0] * 5)  # samples that a run begins with

KINDS = {
    "table, long": Kind(lambda _: gosprl.envs.make("four_room43"), 2000, exact=True, typical=600_000),
    "table, often renewed": Kind(lambda _: gosprl.envs.make("corridor24"), 40, exact=True, renewal=500),
    "table, with data": Kind(
        lambda _: gosprl.envs.make("riverswim6"), 60, exact=True, renewal=500, typical=2000, data=AT_THE_BANK
    ),
    "Gymnasium": Kind(Lake, 40, journal="all", renewal=1000),
    "program in C": Kind(lambda path: Process([*SHELL, grid()], cwd=path.parent), 40, journal="steps", renewal=500),
    "growing": Kind(Floors, 15, journal="all", renewal=700, functions={"actions": doors}),
    "own, with its state": Kind(lambda _: Ring(), 150, exact=True, renewal=500),
    "estimate_model": Kind(
        lambda _: gosprl.envs.make("riverswim6"), 0.15, exact=True, application="estimate_model", renewal=500
    ),
}
