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
from gosprl.collecting.requirements import Discovered, Requirement, as_requirement
from gosprl.errors import GosprlError, InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.systems.base import Outcome, System

STEP = ("observation", "reward", "terminated", "truncated", "info")


class Gymnasium(System):
    """Steps through an environment, in Python."""

    all_states = False

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env = env
        observations = _discrete("observation_space", env.observation_space)
        actions = _discrete("action_space", env.action_space)
        self._states, self._first_state = int(observations.n), int(observations.start)
        self._actions, self._first_action = int(actions.n), int(actions.start)
        self._seed: int | None = None

    def model(self) -> EmpiricalModel:
        """Return an empty model with the environment's observations and actions."""
        model = EmpiricalModel(self._states, self._actions)
        model.states = range(self._first_state, self._first_state + self._states)
        return model

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        """Take an int for the states that will be discovered, anything else as given."""
        if isinstance(need, (int, np.integer)) and not isinstance(need, bool):
            return Discovered(_checks.whole("need", need, 0), model)
        return as_requirement(need, model.rows)

    def seed(self, rng: np.random.Generator) -> None:
        """Seed the environment at its next reset."""
        self._seed = int(rng.integers(2**31))

    def reset(self) -> int:
        """Reset the environment; the seed goes in the first time."""
        observation, _ = _parts("reset", self.env.reset(seed=self._seed), ("observation", "info"))
        self._seed = None
        return self._index(observation)

    def step(self, action: int) -> Outcome:
        """Step the environment."""
        made: Any = self.env.step(self._first_action + action)
        observation, reward, terminated, truncated, _ = _parts("step", made, STEP)
        return Outcome(self._index(observation), reward, terminated, truncated)

    def _index(self, observation: Any) -> int:
        if type(observation) in (int, np.int64):  # nearly always: the space's own test takes longer than many a step
            s = int(observation) - self._first_state
            if 0 <= s < self._states:
                return s
        if not self.env.observation_space.contains(observation):
            raise GosprlError(
                f"the environment left its observation space {self.env.observation_space}: {observation!r}"
            )
        return int(observation) - self._first_state


def _parts(method: str, answer: Any, names: tuple[str, ...]) -> Any:
    """Return what a method of the environment returned, if it has as many parts as it must."""
    if not isinstance(answer, (tuple, list)) or len(answer) != len(names):
        raise GosprlError(f"the environment's {method}(): expected ({', '.join(names)}), got {answer!r:.80}")
    return answer


def _discrete(name: str, space: Any) -> spaces.Discrete:
    if isinstance(space, spaces.Discrete):
        return space
    if isinstance(space, spaces.Box):
        raise InputError(
            f"{name}: expected Discrete, got the continuous {space}; make it finite first: bound it if need be, then "
            "use gymnasium.wrappers.DiscretizeObservation or DiscretizeAction"
        )
    raise InputError(f"{name}: expected Discrete, got {space}; number its elements with a wrapper of your own")
