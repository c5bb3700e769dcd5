"""A Gymnasium environment as a system: `Discrete` observations and actions, any `start`.

What it publishes about itself (a table `P`, masks) is not looked at, nor is `action_space.sample()` ever called: it is
only stepped through. It is seeded at its first reset.

Terminal states: a state entered by a terminating step has one row, that of its first action, which stands for the
reset: planned with, no step, and not among the counts. Truncation is not a transition: the walk goes on elsewhere.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from gosprl import _checks
from gosprl.collecting.record import Ended, Record
from gosprl.collecting.requirements import Found, Requirement, as_requirement
from gosprl.errors import GosprlError, InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import Attempt


class Gymnasium:
    """Steps through an environment, in Python."""

    slice = 1000
    all_states = False

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env = env
        observations = _discrete("observation_space", env.observation_space)
        actions = _discrete("action_space", env.action_space)
        self._states, self._first_state = int(observations.n), int(observations.start)
        self._actions, self._first_action = int(actions.n), int(actions.start)
        self._seed: int | None = None
        self.state = 0

    def model(self) -> EmpiricalModel:
        model = EmpiricalModel(self._states, self._actions)
        model.states = range(self._first_state, self._first_state + self._states)
        return model

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        """An int is meant for the states that will be found; anything else as given."""
        if isinstance(need, (int, np.integer)) and not isinstance(need, bool):
            return Found(_checks.whole("need", need, 0), model)
        return as_requirement(need, model.rows)

    def seed(self, rng: np.random.Generator) -> None:
        self._seed = int(rng.integers(2**31))

    def reset(self, record: Record) -> int:
        return self._reset(record.model)

    def run(self, attempt: Attempt, s: int, record: Record, made: int, steps: int) -> tuple[int, int, Ended]:
        model, action = record.model, record.model.rows.action
        while True:
            if model.terminal[s]:
                row = int(model.rows.ptr[s])
                s = self._reset(model)
                record.add(row, s, 0.0, step=False)
            elif steps == 0 or record.interrupted:
                return s, made, Ended.STEPS
            else:
                row = record.choose(attempt, s)
                if row < 0:
                    return s, made, Ended.HANDED_BACK
                observation, reward, terminated, truncated, _ = self.env.step(self._first_action + action[row])
                s = self.state = self._index(observation)
                record.arrive(row, s, float(reward), bool(terminated))
                made, steps = made + 1, steps - 1
                if truncated and not terminated:
                    s = self._reset(model)
                    return s, made, Ended.TELEPORT
            ended = record.ended(attempt, row, s, made)
            if ended is not None:
                return s, made, ended

    def _reset(self, model: EmpiricalModel) -> int:
        observation, _ = self.env.reset(seed=self._seed)
        self._seed = None
        s = self.state = self._index(observation)
        if model.terminal[s]:
            raise model.ends_sometimes(s)
        model.find(s)
        return s

    def _index(self, observation: Any) -> int:
        if not self.env.observation_space.contains(observation):
            raise GosprlError(
                f"the environment left its observation space {self.env.observation_space}: {observation!r}"
            )
        return int(observation) - self._first_state


def _discrete(name: str, space: Any) -> spaces.Discrete:
    if isinstance(space, spaces.Discrete):
        return space
    if isinstance(space, spaces.Box):
        raise InputError(
            f"{name}: expected Discrete, got the continuous {space}; make it finite first: bound it if need be, then "
            "use gymnasium.wrappers.DiscretizeObservation or DiscretizeAction"
        )
    raise InputError(f"{name}: expected Discrete, got {space}; number its elements with a wrapper of your own")
