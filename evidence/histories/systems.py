"""Small systems whose law is known, and which write down themselves what happens.

The diary of a system is the oracle: nothing of the package takes part in it.
"""

import json
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import gosprl
from gosprl.systems.child import Ended

CRASHED = "crash"
MOST = 6000  # steps and resets of one call; all needs of these systems take less


class Step(NamedTuple):
    """A step, by observations and action values; a crash leads to `CRASHED`."""

    state: Any
    action: Any
    next_state: Any
    reward: float
    terminated: bool
    truncated: bool


class Reset(NamedTuple):
    """A reset."""

    state: Any


class Endless(BaseException):
    """A call makes more steps than anything here can take; no handler of errors catches it."""


class Diary:
    """What happened to the copies of a system during one call, in this process.

    Parameters
    ----------
    at
        Number of the step or reset, from 0 -> what is called before it is made.
    """

    def __init__(self, at=None):
        self.entries: list[Step | Reset] = []
        self.draws: list[float] = []
        self.at: dict[int, Callable[[], None]] = dict(at or {})
        self.begun = 0
        self.lost = 0
        self.endless = False
        self._lock = threading.Lock()

    def begin(self):
        """A step or a reset begins."""
        with self._lock:
            number, self.begun = self.begun, self.begun + 1
        if number >= MOST:
            if not self.endless:
                self.endless = True
                signal.raise_signal(signal.SIGINT)
            elif number >= MOST + 500:
                raise Endless(f"{number} steps and resets")
        if number in self.at:
            self.at[number]()

    def note(self, entry, draw):
        with self._lock:
            self.entries.append(entry)
            self.draws.append(draw)


@dataclass(frozen=True)
class Law:
    """The law of a system.

    Parameters
    ----------
    moves
        [s][a] -> ((probability, next state, whether the episode ends), ...); () where s does not offer a. The next
        state of a crash is `CRASHED`.
    rewards
        [s] the mean of the reward, 0 or 1, of whatever is done in s.
    starts
        ((probability, state), ...)
    limit
        Steps of an episode.
    """

    moves: tuple
    rewards: tuple
    starts: tuple = ((1.0, 0),)
    limit: int | None = None

    @property
    def states(self):
        return len(self.moves)

    @property
    def actions(self):
        return len(self.moves[0])

    def offered(self, s):
        return [a for a in range(self.actions) if self.moves[s][a]]

    def table(self):
        """The same as a `TabularMDP`; only where nothing ends."""
        p = np.zeros((self.states, self.actions, self.states))
        for s, a in np.ndindex(self.states, self.actions):
            for probability, following, _ in self.moves[s][a]:
                p[s, a, following] += probability
        return gosprl.TabularMDP(
            p, rewards=np.repeat(np.array(self.rewards)[:, None], self.actions, axis=1), noise="bernoulli"
        )


class Walked(gymnasium.Env):
    """A system with this law, Gymnasium's methods and a diary. Texts as observations, if `texts`."""

    broken = None  # a pair that always raises

    def __init__(self, law, diary, texts=False, spaces=True):
        self.law, self.diary, self.texts = law, diary, texts
        if spaces:
            self.observation_space = gymnasium.spaces.Discrete(law.states)
            self.action_space = gymnasium.spaces.Discrete(law.actions)

    def shown(self, s):
        return f"room {s}" if self.texts else s

    def told(self):
        mask = np.array([bool(moves) for moves in self.law.moves[self.at]], dtype=np.int8)
        return self.shown(self.at), {} if mask.all() else {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        self.diary.begin()
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        u = self.rng.random()
        self.at, self.made = drawn(self.law.starts, u)[0], 0
        self.diary.note(Reset(self.shown(self.at)), u)
        return self.told()

    def step(self, action):
        self.diary.begin()
        if (self.at, int(action)) == self.broken:
            raise ZeroDivisionError("a bug of the system")
        before, u = self.at, self.rng.random()
        self.at, terminated = drawn(self.law.moves[before][action], u)
        reward = float(self.rng.random() < self.law.rewards[before])
        self.made += 1
        if self.at == CRASHED:
            self.diary.note(Step(self.shown(before), action, CRASHED, 0.0, True, False), u)
            raise Ended("it crashed")
        truncated = not terminated and self.made == self.law.limit
        self.diary.note(Step(self.shown(before), action, self.shown(self.at), reward, terminated, truncated), u)
        observation, info = self.told()
        return observation, reward, terminated, False, {} if terminated else info  # the wrapper says the rest


class Broken(Walked):
    """A ring with a bug in one of its actions."""

    broken = 1, 0

    def __init__(self, diary):
        super().__init__(Kinds["ring"].law, diary)


def drawn(choices, u):
    """What follows the probability, for a uniform number."""
    for probability, *what in choices:
        u -= probability
        if u < 0:
            return what
    return what


class Program:
    """In the place of `gosprl.systems.child.Child`: a program that speaks the line protocol, without a process."""

    walked: dict[str, Callable[[], Walked]] = {}  # noqa: RUF012 - command -> what it walks on

    def __init__(self, command, *how):
        self.system, self.lines, self.answers, self.over = self.walked[command[1]](), 0, [], False

    def write(self, line):
        request = json.loads(line)
        try:
            answer = self.answer(request)
        except Ended:
            self.over = True
            return
        self.answers.append(json.dumps({**answer, "id": request["id"]}).encode() + b"\n")

    def answer(self, request):
        system = self.system
        if request["type"] == "hello":
            return {"type": "hello", "protocol": 1, "actions": system.law.actions}
        if request["type"] == "reset":
            observation, _ = system.reset(seed=request.get("seed"))
            return {"observation": observation, "actions": system.law.offered(observation)}
        observation, reward, terminated, truncated, _ = system.step(request["action"])
        told = {"observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated}
        return told if terminated else {**told, "actions": system.law.offered(observation)}

    def read(self, timeout):
        if not self.answers:
            raise Ended("it exited with status 3")
        self.lines += 1
        return self.answers.pop()

    def unasked(self):
        return b""

    def last_words(self):
        return ""

    def leave(self, farewell):
        return ""

    def end(self):
        pass


def slipping(s, target, slip=0.2, ends=False):
    return ((1 - slip, target, ends), (slip, s, False))


def ring(size, ends=None):
    """Forwards or backwards, with a slip; one cell may end the episode."""
    return tuple(
        tuple(slipping(s, (s + move) % size, ends=(s + move) % size == ends) for move in (1, -1)) for s in range(size)
    )


def corridor(size, slip=0.2):
    """Forwards, or back to the first cell."""
    return tuple(
        (slipping(s, min(s + 1, size - 1), slip) if slip else ((1.0, min(s + 1, size - 1), False),), ((1.0, 0, False),))
        for s in range(size)
    )


COIN = tuple((((0.5, 0, False), (0.5, 1, False)),) * 2 for _ in range(2))
DOORS = (
    (slipping(0, 1), slipping(0, 2)),
    (slipping(1, 2), ()),
    (slipping(2, 3, ends=True), slipping(2, 0)),
    ((), ((1.0, 0, False),)),
)
MOTOR = (
    (slipping(0, 1), ((1.0, 0, False),)),
    (slipping(1, 2), slipping(1, 0)),
    (slipping(2, 0), ((0.7, 0, False), (0.3, CRASHED, True))),
)


@dataclass(frozen=True)
class Kind:
    """A kind of system, and how it is given to the package."""

    law: Law
    how: str = "spaces"  # or "table", "texts" (discovered on the way, actions by a function), "program"
    meetable: bool = True
    given: dict[str, Any] = field(default_factory=dict)  # arguments that cannot be stored, and are given again

    @property
    def is_table(self):
        return self.how == "table"

    @property
    def ends(self):
        """Whether an episode may end, be cut off, or crash."""
        return self.law.limit is not None or any(
            ends for moves in self.law.moves for choices in moves for _, _, ends in choices
        )


def doors_of(observation):
    return Kinds["growing"].law.offered(int(observation.split()[1]))


Kinds = {
    "table": Kind(Law(COIN, (0.6, 0.5)), "table"),
    "ring": Kind(Law(ring(4), (0.2, 0.6, 0.55, 0.5))),
    "time limit": Kind(Law(corridor(3), (0.3, 0.55, 0.6), limit=6)),
    "short limit": Kind(Law(corridor(5, slip=0), (0.3, 0.3, 0.5, 0.5, 0.6), limit=4), meetable=False),
    "masks": Kind(Law(DOORS, (0.2, 0.6, 0.55, 0.5))),
    "program": Kind(Law(MOTOR, (0.3, 0.55, 0.6)), "program"),
    "growing": Kind(
        Law(DOORS, (0.2, 0.6, 0.55, 0.5), starts=((0.5, 0), (0.5, 1))), "texts", given={"actions": doors_of}
    ),
    "growing ring": Kind(Law(ring(5), (0.2, 0.6, 0.55, 0.5, 0.5)), "texts", given={"actions": 2}),
    "ending ring": Kind(Law(ring(5, ends=4), (0.2, 0.6, 0.55, 0.5, 0.5))),
}


def made(name, diary):
    """What makes a copy of a kind of system."""
    kind = Kinds[name]
    if kind.is_table:
        return kind.law.table

    def make():
        walked = Walked(kind.law, diary, texts=kind.how == "texts", spaces=kind.how == "spaces")
        return gymnasium.wrappers.TimeLimit(walked, kind.law.limit) if kind.law.limit else walked

    if kind.how == "program":
        Program.walked[name] = make
        return lambda: gosprl.systems.Process(["program", name])
    return make
