"""Anything that can be reset and stepped: a Gymnasium environment, or an object with the same two methods.

Only `reset` and `step` are called, and `step` never after the end of an episode. A table `P` is not looked at, and no
space is sampled. The system is seeded at its first reset, if that takes a seed.
"""

import inspect
import math
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import Autoreset

from gosprl import _checks
from gosprl.collecting.requirements import Discovered, Requirement, as_requirement
from gosprl.errors import GosprlError, InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import FEW_ACTIONS
from gosprl.systems.base import Outcome, Start, System
from gosprl.systems.observations import ByKey, Key, encoder
from gosprl.systems.offers import Actions

MOST_PAIRS = 10**6  # up to which the states of a `Discrete` space are numbered as its elements are
RESET = ("observation", "info")
STEP = ("observation", "reward", "terminated", "truncated", "info")
OLD = (
    "; 4 values are the interface of Gym before 0.26: wrap the environment with shimmy.GymV21CompatibilityV0, or "
    "return terminated and truncated apart"
)


class Stepper(System):
    """Steps through a system, in Python.

    Parameters
    ----------
    system
        A Gymnasium environment, or any object with Gymnasium's `reset` and `step`.
    key
        A function (observation, info) -> hashable value: observations with equal values are one state. None: equal
        observations are.
    actions
        Their number, a list of their values, or a function observation -> values offered (or a mask). None: all
        actions of the action space.

    Attributes
    ----------
    encoder
        Makes states (keys) of observations, and observations of states.
    space_size
        Number of elements of a finite observation space (`Discrete` and products); else None.
    first
        The smallest observation of a `Discrete` space, else 0.
    numbered
        Whether states are the ints first .. first + space_size - 1, those of a `Discrete` space.
    steps, resets
        Calls so far; errors name them.
    """

    all_states = False

    def __init__(self, system: Any, key: Key | None = None, actions: Any = None) -> None:
        _refuse(system)
        self.system = system
        self.encoder = encoder(_space(system, "observation_space"), key)
        self._encode = self.encoder.encode
        self.space_size, self.first, self.numbered = self.encoder.size, self.encoder.first, self.encoder.numbered
        self._actions = Actions(_space(system, "action_space"), actions)
        self._takes_seed = isinstance(system, gymnasium.Env) or _takes_seed(system.reset)
        self._restorable = all(callable(getattr(system, name, None)) for name in ("get_state", "set_state"))
        self._seed: int | None = None
        self._over = True  # the next call is reset
        self.steps = self.resets = 0

    @property
    def num_actions(self) -> int | None:
        """Number of actions; None if only a function of the user's own knows them."""
        return self._actions.count

    @property
    def has_key(self) -> bool:  # type: ignore[override]
        """Whether a function of the user's own tells states apart."""
        return isinstance(self.encoder, ByKey)

    @property
    def action_values(self) -> Sequence[Any]:
        """What `step` of the system takes, by index; it grows where `num_actions` is None."""
        return self._actions.values

    @property
    def name(self) -> str:
        """The id of an environment, or the name of its class."""
        spec = getattr(self.system, "spec", None)
        return spec.id if isinstance(spec, gymnasium.envs.registration.EnvSpec) else self._name()

    @property
    def first_observation(self) -> int:
        """The smallest observation, where states are numbered as observations are."""
        return self.first if self._indexed else 0

    @property
    def layout(self) -> Any:
        """How keys of observations are read: as the space says."""
        return None if self._indexed else self.encoder.layout

    def know_actions(self, values: Sequence[Any]) -> None:
        """Give these action values the first numbers, where only a function of the user's own knows the actions."""
        for value in values:
            self._actions.index(value)

    def get_state(self) -> Any:
        """Return what the system's own `get_state` returns, if it has that and `set_state`: bytes or JSON values."""
        return self.system.get_state() if self._restorable else None

    def set_state(self, state: Any) -> None:
        """Let the system go on from a state."""
        self.system.set_state(state)
        self._over, self._seed = False, None

    def model(self) -> EmpiricalModel:
        """Return an empty model: of all observations of a `Discrete` space, or of those that will be discovered."""
        count = FEW_ACTIONS if self.num_actions is None else self.num_actions
        if self._indexed:
            model = EmpiricalModel(self.space_size, count)
            model.states.decode, model.actions = partial(operator.add, self.first), self._actions.shown
            return model
        model = EmpiricalModel(None, count)
        model.states.decode, model.actions = self.encoder.decode, self._actions.shown
        model.max_states = self.space_size if self._is_small(self.space_size) else None
        model.all_actions = self.num_actions is not None
        return model

    @property
    def _indexed(self) -> bool:
        """Whether states are numbered as observations are."""
        return self.numbered and self._is_small(self.space_size)

    def _is_small(self, states: int | None) -> bool:
        return states is not None and self.num_actions is not None and states * self.num_actions <= MOST_PAIRS

    def _state(self, key: Hashable) -> Hashable:
        return key - self.first if self._indexed and isinstance(key, int) else key

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        """Take an int for the states that will be discovered, anything else as given.

        A dict is by observation, or by value of `key`, and by action values.
        """
        if isinstance(need, (int, np.integer)) and not isinstance(need, bool):
            return Discovered(_checks.whole("need", need, 0), model)
        if isinstance(need, Mapping):
            need = {self._wanted(shown): self._by_action(shown, number) for shown, number in need.items()}
            if self.num_actions is None:
                model.widen(len(self.action_values))
        return as_requirement(need, model)

    def _wanted(self, shown: Any) -> Hashable:
        """Return the state that a need calls by its observation, or by its value of `key`."""
        try:
            return self.key_of(shown)
        except GosprlError as error:
            raise InputError(f"need: of {shown!r:.40}: {error}") from None

    def key_of(self, observation: Any) -> Hashable:
        """Return the state of an observation, or of a value of `key`."""
        return self._state(self.encoder.key_of(observation))

    def observed_key(self, observation: Any) -> Hashable:
        """Return the state of an observation; where `key` is given, it is called without an info."""
        return self._state(self.encoder.encode(observation))

    def action_index(self, value: Any) -> int:
        """Return the index of an action value, a new one if only a function of the user's own knows the actions."""
        return self._actions.index(value)

    def _by_action(self, shown: Any, number: Any) -> Any:
        """Return samples by action index, if they are given by action value; else the number as it is."""
        if not isinstance(number, Mapping):
            return number
        try:
            return {self._actions.index(action): samples for action, samples in number.items()}
        except GosprlError as error:
            raise InputError(f"need: of {shown!r:.40}: {error}") from None

    def seed(self, rng: np.random.Generator) -> None:
        """Seed the system at its next reset."""
        self._seed = int(rng.integers(2**31))

    def reset(self) -> Start:
        """Reset the system; the seed goes in the first time."""
        self._over = True
        seed, self._seed = self._seed, None
        self.resets += 1
        try:
            answer = self.system.reset() if seed is None or not self._takes_seed else self.system.reset(seed=seed)
            _check_parts("reset", answer, RESET)
            observation, info = answer
            start = Start(self._state(self._encode(observation, info)), self._offered(observation, info))
        except GosprlError as error:
            raise _at(f"{self._name()}, reset {self.resets}", error) from None
        self._over = False
        return start

    def step(self, action: int) -> Outcome:
        """Step the system."""
        if self._over:
            raise GosprlError("step() was called before reset(), or after the end of an episode")
        value = self._actions.value(action)
        self._over = True  # should the system raise, too
        self.steps += 1
        try:
            outcome = self._outcome(self.system.step(value))
        except GosprlError as error:
            raise _at(f"{self._name()}, step {self.steps} (action {self.action_values[action]!r:.80})", error) from None
        self._over = outcome.terminated or outcome.truncated
        return outcome

    def _outcome(self, answer: Any) -> Outcome:
        if type(answer) is not tuple or len(answer) != 5 or type(answer[4]) is not dict:
            _check_parts("step", answer, STEP)
        observation, reward, terminated, truncated, info = answer
        if type(reward) is not float or not math.isfinite(reward):
            reward = _reward(reward)
        if type(terminated) is not bool:
            terminated = _flag("terminated", terminated)
        if type(truncated) is not bool:
            truncated = _flag("truncated", truncated)
        state = self._state(self._encode(observation, info))
        # where an episode has terminated nothing is offered any more, and masks are often empty
        offered = None if terminated else self._offered(observation, info)
        return Outcome(state, reward, terminated, truncated, offered)

    def _offered(self, observation: Any, info: Mapping[str, Any]) -> tuple[int, ...] | None:
        try:
            return self._actions.offered(observation, info)
        except GosprlError as error:
            raise _at(f"observation {observation!r:.80}", error) from None

    def _name(self) -> str:
        return type(getattr(self.system, "unwrapped", self.system)).__name__


def _at(where: str, error: GosprlError) -> GosprlError:
    return (InputError if isinstance(error, InputError) else GosprlError)(f"{where}: {error}")


def _refuse(system: Any) -> None:
    """Raise `InputError` for what cannot be stepped through transition by transition."""
    if isinstance(system, gymnasium.vector.VectorEnv):
        raise InputError(
            f"system: expected one environment, got a vector environment ({type(system).__name__}), whose automatic "
            "resets hide transitions; give one of its environments"
        )
    methods = callable(getattr(system, "reset", None)) and callable(getattr(system, "step", None))
    if isinstance(system, type) or not methods:
        what = f"the class {system.__name__}" if isinstance(system, type) else type(system).__name__
        raise InputError(
            "system: expected a TabularMDP, a Gymnasium environment, an object with Gymnasium's reset and step, or a "
            f"gosprl.systems.System, got {what}"
        )
    layer = system
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, Autoreset):
            raise InputError(
                "system: expected an environment without gymnasium.wrappers.Autoreset, whose automatic resets hide "
                "transitions; unwrap it (env.env), resets are made where an episode ends"
            )
        layer = layer.env


def _space(system: Any, name: str) -> Any:
    space = getattr(system, name, None)
    return space if isinstance(space, gymnasium.Space) else None


def _takes_seed(reset: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(reset).parameters.values()
    except (TypeError, ValueError):  # methods of compiled classes may have no signature
        return False
    return any(p.kind is p.VAR_KEYWORD or (p.name == "seed" and p.kind is not p.POSITIONAL_ONLY) for p in parameters)


def _check_parts(method: str, answer: Any, names: tuple[str, ...]) -> None:
    """Check that what a method of the system returned has as many parts as it must, the last a dict."""
    if not isinstance(answer, (tuple, list)) or len(answer) != len(names):
        old = method == "step" and isinstance(answer, (tuple, list)) and len(answer) == 4
        raise GosprlError(f"{method}(): expected ({', '.join(names)}), got {answer!r:.80}{OLD if old else ''}")
    if not isinstance(answer[-1], Mapping):
        raise GosprlError(
            f"{method}(): expected ({', '.join(names)}) with info a dict, which may be empty, got {answer!r:.80}"
        )


def _reward(reward: Any) -> float:
    """Return a reward as a float: a finite number, of whatever type."""
    real = type(reward) is int or isinstance(reward, (int, float, np.bool_, np.integer, np.floating))
    if isinstance(reward, np.ndarray) and reward.shape == () and reward.dtype.kind in "biuf":
        real = True
    try:
        if real and math.isfinite(reward):
            return float(reward)
    except OverflowError:  # ints may be larger than any float
        pass
    raise GosprlError(f"reward: expected a finite number, got {reward!r:.80}")


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise GosprlError(f"{name}: expected a bool, got {value!r:.80}")
