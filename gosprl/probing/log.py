"""Log: every step of a walk, as arrays, with the time that the system took for it.

`Watched` is the system of the user with an ear on it: a `System` that hands every call on and writes down what came
back. States get numbers of their own here, in order of their first sighting, so that nothing depends on how a model
numbers them.
"""

import math
import time
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.outcome import Start
from gosprl.collecting.requirements import Requirement
from gosprl.model.empirical import EmpiricalModel
from gosprl.systems.base import Outcome, System

LONGEST = 40  # characters of a name


class Log:
    """Steps in order; entry t of each column belongs to step t.

    Attributes
    ----------
    keys
        Observation (its key) of each state, in order of the first sighting.
    starts
        States that resets led to.
    seconds_of_resets
        What each reset took.
    """

    def __init__(self) -> None:
        self.keys: list[Hashable] = []
        self._number: dict[Hashable, int] = {}
        self.starts = array("q")
        self.seconds_of_resets = array("d")
        self._columns = {name: array("q") for name in ("state", "action", "next_state", "clock")}
        self._flags = {name: array("b") for name in ("terminated", "truncated")}
        self._numbers = {name: array("d") for name in ("reward", "seconds")}

    def __len__(self) -> int:
        return len(self._numbers["reward"])

    def number(self, key: Hashable) -> int:
        """Return the number of a state, a new one if it was never seen."""
        known = self._number.get(key)
        if known is None:
            known = self._number[key] = len(self.keys)
            self.keys.append(key)
        return known

    def add(self, state: int, action: int, clock: int, after: tuple[int, float, bool, bool], seconds: float) -> None:
        """Write one step: from where, which action, how many steps after the reset, (next state, ...), how long."""
        for column, value in zip(self._columns.values(), (state, action, after[0], clock), strict=True):
            column.append(value)
        for flag, told in zip(self._flags.values(), after[2:], strict=True):
            flag.append(told)
        self._numbers["reward"].append(after[1])
        self._numbers["seconds"].append(seconds)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column [n] as an array.

        state, action, next_state and clock (steps since the reset) are int64; terminated and truncated bool; reward
        and seconds (that the system took) float64.
        """
        if name in self._flags:
            return np.array(self._flags[name], dtype=bool)
        return np.array(self._columns[name] if name in self._columns else self._numbers[name])

    @property
    def bytes(self) -> int:
        """What the log itself takes."""
        return len(self) * (8 * (len(self._columns) + len(self._numbers)) + len(self._flags))


class Names:
    """Names of states and actions, as a message calls them.

    Parameters
    ----------
    log
        The log that numbers the states.
    decode
        Key of a state -> observation.
    actions
        What the system takes, by action index.
    """

    def __init__(self, log: Log, decode: Callable[[Any], Any], actions: Sequence[Any]) -> None:
        self._keys, self._decode, self._actions = log.keys, decode, actions

    def state(self, number: int) -> str:
        """Return a state by its number in the log: its observation, or where that is long, the number."""
        name = " ".join(str(self._decode(self._keys[number])).split())
        return name if len(name) <= LONGEST else f"state {number}"

    def action(self, index: int) -> str:
        """Return an action by its index."""
        name = " ".join(str(self._actions[index]).split())
        return name if len(name) <= LONGEST else f"action {index}"

    def pair(self, state: int, action: int) -> str:
        """Return a pair."""
        return f"({self.state(state)}, {self.action(action)})"

    def outcome(self, outcome: int) -> str:
        """Return an outcome: 2 * next state + whether the episode ended."""
        return self.state(outcome // 2) + (" (episode ended)" if outcome % 2 else "")


class Watched(System):
    """A system whose steps are written down.

    Parameters
    ----------
    system
        The system that makes them.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.all_states, self.ends, self.block, self.mdp = system.all_states, system.ends, system.block, system.mdp
        self.compiled = type(system).follow is not System.follow  # `collect` walks it by its own, faster loop
        self.log = Log()
        self._state, self._clock = -1, 0
        self.doing: tuple[int, int] | None = None  # (state, action) of the step that is being made, None: a reset
        self.raised: BaseException | None = None  # what the system raised

    def model(self) -> EmpiricalModel:
        """Return the model that the system makes."""
        return self.system.model()

    def seed(self, rng: np.random.Generator) -> None:
        """Hand the stream on."""
        self.system.seed(rng)

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        """Return what the system means by a need."""
        return self.system.requirement(need, model)

    def reset(self) -> Any:
        """Reset the system, and write down where it begins."""
        self.doing = None
        begin = time.perf_counter()
        with self._heard():
            answer = self.system.reset()
        self.log.seconds_of_resets.append(time.perf_counter() - begin)
        key = answer.state if isinstance(answer, Start) else answer
        self._state, self._clock = self.log.number(key), 0
        self.log.starts.append(self._state)
        return answer

    def step(self, action: int) -> Outcome:
        """Step the system, and write down what that led to; the engine refuses what is none."""
        self.doing = (self._state, action)
        begin = time.perf_counter()
        with self._heard():
            answer = self.system.step(action)
        seconds = time.perf_counter() - begin
        after = self._read(answer)
        if after is not None:
            self.log.add(self._state, action, self._clock, after, seconds)
            self._state, self._clock = after[0], self._clock + 1
        return answer

    @contextmanager
    def _heard(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.raised = error
            raise

    def _read(self, answer: Any) -> tuple[int, float, bool, bool] | None:
        """(next state, reward, terminated, truncated); None if that is not what the system returned."""
        if not isinstance(answer, (tuple, list)) or len(answer) not in (4, 5):
            return None
        key, reward, terminated, truncated = answer[:4]
        try:
            number = float(reward)
            state = self.log.number(key)
        except (TypeError, ValueError):
            return None
        return (state, number, bool(terminated), bool(truncated)) if math.isfinite(number) else None
