"""Small systems with one or two features each, to be walked in pieces: rings of cells.

They are plain on purpose and do not change: runs of them are kept in tests/data/runs.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gosprl
from gosprl.systems import Outcome, System


class Fault(Exception):
    """What a system of these raises when it is told to fail."""


class Ring:
    """Cells 0 .. n - 1 in a circle; action 0 goes on, action 1 goes back, and either slips now and then.

    Parameters
    ----------
    cells, slip
        How many cells there are, and how often a step stays where it is.
    ends
        How often an episode ends in the last cell.
    limit
        Steps after which an episode is cut off.
    masks
        Whether cell 0 offers only action 0, and cell 1 only now and then action 1.
    starts
        A reset leads to one of so many cells.
    """

    def __init__(self, cells=5, slip=0.2, ends=0.0, limit=None, masks=False, starts=1):
        self.cells, self.slip, self.ends, self.limit, self.masks = cells, slip, ends, limit, masks
        self.starts = starts
        self.fail_at = -1  # number of the call, a step or a reset, that fails; -1: none
        self.calls, self.failed_in = 0, ""
        self.on_call = None

    def reset(self, *, seed=None):
        self.count("reset")
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.place, self.age = int(self.rng.integers(self.starts)), 0
        return self.place, self.told()

    def step(self, action):
        self.count("step")
        if self.rng.random() >= self.slip:
            self.place = (self.place + (1 if action == 0 else -1)) % self.cells
        self.age += 1
        last = self.place == self.cells - 1
        ended = bool(last and self.rng.random() < self.ends)
        return self.place, float(last), ended, self.limit is not None and self.age >= self.limit, self.told()

    def told(self):
        if not self.masks:
            return {}
        back = self.place > 1 or (self.place == 1 and self.rng.random() < 0.5)
        return {"action_mask": np.array([1, back], dtype=np.int8)}

    def count(self, what):
        self.calls += 1
        if self.on_call is not None:
            self.on_call(self.calls)
        if self.calls == self.fail_at:
            self.failed_in = what
            raise Fault(f"call {self.calls}")


class Named(Ring):
    """A ring whose cells have names: they are discovered on the way."""

    def reset(self, *, seed=None):
        return self.named(*super().reset(seed=seed))

    def step(self, action):
        place, *others, told = super().step(action)
        place, told = self.named(place, told)
        return place, *others, told

    def named(self, place, told):
        return f"cell {place}", told


class Restorable(Ring):
    """A ring that tells its state."""

    def get_state(self):
        return {"place": self.place, "age": self.age, "rng": json.dumps(self.rng.bit_generator.state)}

    def set_state(self, state):
        self.rng = np.random.default_rng()
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.place, self.age = state["place"], state["age"]


class Crashing(System):
    """A ring with known cells that crashes now and then in its last cell."""

    all_states = False

    def __init__(self, cells=5, crashes=0.3):
        self.ring, self.crashes = Ring(cells), crashes

    def model(self):
        return gosprl.EmpiricalModel(self.ring.cells, 2)

    def seed(self, rng):
        self.ring.rng = rng

    def reset(self):
        return self.ring.reset()[0]

    def step(self, action):
        place, reward, *_ = self.ring.step(action)
        if place == self.ring.cells - 1 and self.ring.rng.random() < self.crashes:
            return Outcome(gosprl.CRASH, reward, True)
        return Outcome(place, reward)


def doors(observation):
    """What a cell offers; only this function knows the actions."""
    return [0] if observation == "cell 0" else [1, 0]


def river():
    """A table."""
    return gosprl.envs.make("riverswim6")


@dataclass(frozen=True)
class Walked:
    """How to make a system, and what `collect` is told of it."""

    make: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)


TWO = {"actions": 2}
WALKED = {
    "table": Walked(river),
    "endless": Walked(Ring, TWO),
    "ends": Walked(lambda: Ring(ends=0.4), TWO),
    "masks": Walked(lambda: Ring(masks=True, ends=0.2), TWO),
    "masks, endless": Walked(lambda: Ring(masks=True), TWO),
    "contexts": Walked(lambda: Ring(starts=2, ends=0.3), TWO),
    "crashes": Walked(Crashing),
    "time limit": Walked(lambda: Ring(limit=7), TWO),
    "horizon": Walked(Ring, TWO | {"horizon": 6}),
    "anytime": Walked(lambda: Ring(masks=True, starts=2), TWO | {"resets": "anytime"}),
    "anytime, ends": Walked(lambda: Ring(ends=0.4, limit=9), TWO | {"resets": "anytime"}),
    "restorable": Walked(lambda: Restorable(ends=0.2), TWO),
    "restorable, endless": Walked(lambda: Restorable(masks=True, limit=8), TWO),
    "never": Walked(Ring, TWO | {"resets": "never"}),
    "discovered": Walked(lambda: Named(ends=0.3, masks=True), TWO),
    "discovered, endless": Walked(Named, TWO),
    "discovered, anytime": Walked(lambda: Named(masks=True, limit=9), TWO | {"resets": "anytime"}),
    "doors": Walked(lambda: Named(ends=0.2), {"actions": doors}),
    "unseen": Walked(lambda: Named(ends=0.4), TWO | {"unseen": 0.8}),
    "threshold": Walked(lambda: Ring(cells=6), TWO | {"threshold": 0.5}),
}
