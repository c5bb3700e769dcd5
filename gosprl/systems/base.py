"""What a collector walks on."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.outcome import Outcome, Start
from gosprl.collecting.requirements import Requirement, as_requirement
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel

if TYPE_CHECKING:
    from gosprl.collecting.engine import Engine

__all__ = ["Outcome", "Start", "System"]


class System(ABC):
    """Something that can be stepped through; the base class of systems of your own.

    States are numbered 0 .. S - 1 and actions 0 .. A - 1, as in the model that the system makes. `model`, `reset` and
    `step` are needed, all else has a default.

    Attributes
    ----------
    all_states
        Whether every state of the model is meant by ``need=10``; otherwise the states discovered are.
    ends
        Whether episodes may end: then each state of the model may also be the last one of an episode.
    block
        Steps between two looks at the clock, at Ctrl-C and at the budget.
    mdp
        The true dynamics, if the system tells them: results then compare with the fluid limit, and states without a
        path are given up at once.
    has_key
        Whether a function of the user's own (`key=`) tells its states apart.
    """

    all_states: bool = True
    ends: bool = True
    block: int = 1000
    mdp: TabularMDP | None = None
    has_key: bool = False

    @property
    def name(self) -> str:
        """What it is called in manifests and messages."""
        return type(self).__name__

    @property
    def first_observation(self) -> int:
        """The observation of state 0, where states are numbered as observations are."""
        return 0

    @property
    def layout(self) -> Any:
        """How keys of states are read, as JSON for `gosprl.systems.observations.decoder`; None: by content."""
        return None

    @abstractmethod
    def model(self) -> EmpiricalModel:
        """Return an empty model with the system's states and actions."""

    @abstractmethod
    def reset(self) -> Any:
        """Begin, or begin again; the state it begins in, or a `Start`."""

    @abstractmethod
    def step(self, action: int) -> Outcome:
        """Take an action in the present state."""

    def seed(self, rng: np.random.Generator) -> None:
        """Take the stream of random numbers of the run; called once, before the first reset."""

    def know_actions(self, values: Sequence[Any]) -> None:
        """Give these action values the first numbers, where only a function of the user's own knows the actions."""

    def get_state(self) -> Any:
        """Return all that decides how the system goes on, as bytes or JSON values; None, the default: it cannot tell.

        A run on disk (`gosprl.runs`) whose system tells its state goes on exactly there when it is resumed.
        """
        return None

    def set_state(self, state: Any) -> None:
        """Go on from a state that `get_state` of a system of the same kind returned."""

    def requirement(self, need: Any, model: EmpiricalModel) -> Requirement:
        """Return what `collect(system, need)` means by `need`."""
        return as_requirement(need, model)

    def key_of(self, observation: Any) -> Hashable:
        """Return what `reset` and `step` return for an observation that needs or data call by name; itself, by default.

        `GosprlError` if there is no such observation.
        """
        return observation  # type: ignore[no-any-return]

    def observed_key(self, observation: Any) -> Hashable:
        """Return the same for an observation as the system made it, where what is shown of it is something else."""
        return self.key_of(observation)

    def action_index(self, value: Any) -> int:
        """Return the index of an action that data call by its value; `GosprlError` if there is none."""
        return _checks.whole("actions", value, 0)

    def follow(self, engine: "Engine", steps: int) -> None:
        """Follow the engine's attempt until it ends, or for at most `steps` steps.

        The default steps through the system in Python. Override it only to do the same faster.
        """
        engine.follow(self, steps)
