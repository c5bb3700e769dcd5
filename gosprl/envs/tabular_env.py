"""TabularEnv: a `TabularMDP` as a Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gosprl.envs import make
from gosprl.envs.gridworld import WALL
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP

AGENT = "@"


class TabularEnv(gymnasium.Env[np.int64, np.int64]):
    """A simulated finite MDP.

    ## Description
    A step draws one uniform u and moves to the first of the pair's next states, in increasing order, whose cumulative
    probability exceeds u. All random numbers come from `self.np_random`.

    ## Observation Space
    `Discrete(S)`: the state.

    ## Action Space
    `Discrete(A)`. Where the set of actions depends on the state, `info["action_mask"]`, an int8 array [A] given by
    `reset` and `step`, is 1 for those that exist in the current state. Taking another one is not an error, as in
    Gymnasium's Taxi: the state does not change, the reward is 0, and no uniform is drawn.

    ## Rewards
    0 if the MDP has no rewards. Otherwise the pair's mean with `noise="none"`. With `noise="bernoulli"`, 1 with the
    mean as its probability, else 0: a second uniform decides.

    ## Starting State
    `mdp.start`, always.

    ## Episode End
    Never: no state terminates, as the terminal tiles of the gridworlds are states whose actions all lead to the start.
    Episodes are truncated only if `gymnasium.make` is given `max_episode_steps`.

    ## Arguments
    - `name_or_mdp`: a `TabularMDP`, or a name that `gosprl.envs.make` knows.
    - `render_mode`: None, or `"ansi"`: the map with the agent as `@`, or a line like `state 3 of 6` if there is no map.
    - `**parameters`: those of a domain given by name, as in `gymnasium.make("gosprl/riverswim-v0", states=12)`.

    ## Version History
    - v0: first version.
    """

    # Gymnasium declares `metadata` as an instance attribute, so a ClassVar would not be a valid override.
    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, name_or_mdp: str | TabularMDP, render_mode: str | None = None, **parameters: Any) -> None:
        if isinstance(name_or_mdp, TabularMDP):
            if parameters:
                raise InputError(
                    f"{next(iter(parameters))}: expected no parameters with a TabularMDP, only with a name"
                )
            self.mdp = name_or_mdp
        else:
            self.mdp = make(name_or_mdp, **parameters)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"render_mode: expected None or 'ansi', got {render_mode!r}")
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(self.mdp.num_states)
        self.action_space = spaces.Discrete(self.mdp.num_actions)
        self._state = self.mdp.start

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Go to the start; return it and the info, as Gymnasium specifies."""
        super().reset(seed=seed)
        self._state = self.mdp.start
        return np.int64(self._state), self._info()

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take an action; return what Gymnasium specifies: state, reward, False, False, info."""
        if not self.action_space.contains(action):
            raise InputError(f"action: expected a whole number in 0..{self.mdp.num_actions - 1}, got {action!r}")
        reward = 0.0
        exists = np.flatnonzero(self._actions() == action)
        if exists.size:
            row = int(self.mdp.rows.ptr[self._state] + exists[0])
            self._state = self._draw(row)
            reward = self._reward(row)
        return np.int64(self._state), reward, False, False, self._info()

    def get_state(self) -> dict[str, Any]:
        """Return the state and that of `np_random`, for runs on disk that go on exactly there."""
        return {"state": self._state, "rng": self.np_random.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self._state = int(state["state"])
        self.np_random.bit_generator.state = state["rng"]

    def render(self) -> str | None:
        """Return the map with the agent, or a line with the number of the state."""
        if self.render_mode is None:
            gymnasium.logger.warn("render: expected an environment made with render_mode='ansi'; nothing is drawn")
            return None
        if self.mdp.map is None:
            return f"state {self._state} of {self.mdp.num_states}"
        lines = list(self.mdp.map)
        state = self._state
        for i, line in enumerate(lines):
            cells = [column for column, character in enumerate(line) if character != WALL]
            if state < len(cells):
                lines[i] = line[: cells[state]] + AGENT + line[cells[state] + 1 :]
                break
            state -= len(cells)
        return "\n".join(lines)

    def _actions(self) -> NDArray[np.int64]:
        """Return the actions that exist in the current state."""
        ptr = self.mdp.rows.ptr
        return self.mdp.rows.action[ptr[self._state] : ptr[self._state + 1]]

    def _info(self) -> dict[str, Any]:
        mask = np.zeros(self.mdp.num_actions, dtype=np.int8)
        mask[self._actions()] = 1
        return {"action_mask": mask}

    def _draw(self, row: int) -> int:
        entries = slice(self.mdp.ptr[row], self.mdp.ptr[row + 1])
        cumulative = np.cumsum(self.mdp.prob[entries])
        j = int(np.searchsorted(cumulative, self.np_random.random(), side="right"))
        # By rounding, the last cumulative probability may be slightly below one, and u above it.
        return int(self.mdp.succ[entries][min(j, len(cumulative) - 1)])

    def _reward(self, row: int) -> float:
        if self.mdp.rewards is None:
            return 0.0
        mean = float(self.mdp.rewards[row])
        return mean if self.mdp.noise == "none" else float(self.np_random.random() < mean)
