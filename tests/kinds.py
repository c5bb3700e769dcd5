"""Registries that drive the conformance tests: every kind of system, every kind of need.

Add a name here, or a strategy to `gosprl.strategies.STRATEGIES`, and tests/test_conformance.py covers it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from stepped import Stepped

import gosprl
from gosprl.collecting.surroundings import Surroundings
from gosprl.envs import make
from gosprl.systems import Outcome, System, Tabular
from gosprl.systems.stepper import Stepper


def river():
    """RiverSwim with noisy rewards: a stochastic chain where the far end is hard to reach."""
    return make("riverswim6").with_rewards(np.linspace(0, 1, 6), noise="bernoulli")


class SteppedTabular(Tabular):
    """A simulated MDP without compiled code: the same uniform numbers, one step at a time."""

    block = 50
    follow = System.follow


class Own(Stepped):
    """A system of a user's own."""

    def take(self, s, action):
        succ, prob = self.table.p(s, action)
        return int(succ[np.searchsorted(np.cumsum(prob), self.rng.random())]), float(self.rng.random() < 0.5)


class Episodes(Own):
    """Ends now and then, in any state, and begins in one of two; sometimes an episode is cut off."""

    ends = True

    def reset(self):
        self.state = int(self.rng.integers(2))
        return self.state

    def step(self, action):
        u = self.rng.random()
        return Outcome(*super().step(action)[:2], terminated=u < 0.1, truncated=0.05 < u < 0.2)


class Maze:
    """Rooms (context, column, row) that tell apart two contexts, which a reset draws; some doors may be locked.

    `masks`: which doors there are is told; one room is aliased, it does not always have the same. `ends`: the far
    corner ends an episode, but not always.
    """

    side = 3

    def __init__(self, masks=False, contexts=1, ends=False):
        self.masks, self.contexts, self.ends = masks, contexts, ends

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.place = (int(self.rng.integers(self.contexts)), 0, 0)
        return self.told()

    def told(self):
        _, x, y = self.place
        offered = np.array([True, x > 0, True, y > 0])
        offered[2] = (x, y) != (1, 1) or self.rng.random() < 0.5
        return f"room {self.place}", {"action_mask": offered.astype(np.int8)} if self.masks else {}

    def step(self, action):
        c, x, y = self.place
        dx, dy = ((1, 0), (-1, 0), (0, 1), (0, -1))[action]
        if self.rng.random() < 0.85:
            x, y = (min(max(z, 0), self.side - 1) for z in (x + dx, y + dy))
        self.place = (c, x, y)
        corner = x == y == self.side - 1
        observation, info = self.told()
        return observation, float(corner), self.ends and corner and self.rng.random() < 0.5, False, info


def maze(**options):
    return lambda: Stepper(Maze(**options), actions=4)


class Growing(gosprl.Requirement):
    """Twice as much of the last state's pairs when everything is met, up to twelve."""

    def __init__(self, model):
        self.pair = np.full(len(model.known_rows), 2)
        self.state = np.zeros(model.num_states, dtype=np.int64)
        self.state[0] = 3

    def update(self, model, rows):
        last = np.arange(model.known_rows.ptr[-2], model.known_rows.ptr[-1])
        if np.any(model.visits[: len(self.pair)] < self.pair) or self.pair[-1] >= 12:
            return np.empty(0, dtype=np.int64)
        self.pair[last] *= 2
        return last


def waves(model):
    """More and more of changing states, then less."""
    t = int(model.transitions()[3].sum())
    return np.where(np.arange(model.num_states) % 2 == t // 40 % 2, 4, 2) if t < 200 else np.ones(model.num_states)


def by_pair(model):
    """An array [S, A] with zeros, for the pairs that exist."""
    rows = model.known_rows
    need = np.arange(rows.num_states * rows.num_actions).reshape(rows.num_states, rows.num_actions) % 4
    return rows.to_dense(need[rows.state, rows.action])


def by_room(model):
    """Much of some rooms, little of others, of one only a door; one that is never seen, in a system that has others."""
    return {"room (0, 1, 0)": 6, "room (0, 2, 1)": 3, "room (0, 1, 1)": {0: 4, 3: 2}, "room (1, 0, 0)": 1}


@dataclass(frozen=True)
class Kind:
    """A kind of system: how to make one, and what `collect` is told of it."""

    make: Callable[[], Any]
    growing: bool = False  # states are discovered on the way
    resets: str = "never"
    reset_cost: float = 1.0
    horizon: int | None = None

    def around(self, unseen):
        return Surroundings(self.resets, self.reset_cost, self.horizon, unseen=unseen)


@dataclass(frozen=True)
class Need:
    """A kind of need: model -> what `collect` takes, and for which systems it makes sense."""

    make: Callable[[Any], Any]
    table: bool = True  # systems whose states are known
    growing: bool = False
    unseen: float | None = None


SYSTEMS = {
    "compiled": Kind(lambda: Tabular(river())),
    "stepped": Kind(lambda: SteppedTabular(river())),
    "own": Kind(lambda: Own(river())),
    "episodes": Kind(lambda: Episodes(river()), resets="terminal"),
    "gymnasium": Kind(lambda: Stepper(gymnasium.make("FrozenLake-v1", max_episode_steps=9)), resets="terminal"),
    "discovered": Kind(maze(), growing=True),
    "masks": Kind(maze(masks=True, ends=True), growing=True, resets="terminal"),
    "contexts": Kind(maze(contexts=2, ends=True), growing=True, resets="terminal"),
    "horizon": Kind(maze(contexts=2), growing=True, resets="terminal", horizon=11),
    "anytime": Kind(maze(masks=True, contexts=2), growing=True, resets="anytime", reset_cost=2.0),
    "own anytime": Kind(lambda: Episodes(river()), resets="anytime", horizon=30),
}
NEEDS = {
    "int": Need(lambda model: 4, growing=True),
    "states": Need(lambda model: np.arange(model.num_states) % 5),
    "pairs": Need(by_pair),
    "callable": Need(lambda model: waves),
    "requirement": Need(Growing),
    "observations": Need(by_room, table=False, growing=True),
    "unseen": Need(lambda model: 2, growing=True, unseen=0.6),
}
COMBINATIONS = [
    (system, need)
    for system, kind in SYSTEMS.items()
    for need, asked in NEEDS.items()
    if (asked.growing if kind.growing else asked.table)
]


def collector_of(kind, system, need, strategy, seed=0, samples=None):
    """As `collect` makes it; `samples` instead of what the need asks for."""
    model, around = system.model(), kind.around(need.unseen)
    around.prepare(model)
    asked = system.requirement(need.make(model) if samples is None else samples, model)
    return gosprl.Collector(need=asked, model=model, strategy=strategy, seed=seed, around=around)
