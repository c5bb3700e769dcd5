"""What a user declares about a system that is not a table: resets, episodes, how many states there can be."""

from dataclasses import dataclass

from gosprl import _checks
from gosprl.collecting.requirements import Requirement
from gosprl.collecting.thorough import Thorough
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import UNLIMITED

RESETS = {"terminal": None, "never": None, "anytime": None}


@dataclass(frozen=True)
class Surroundings:
    """The arguments of `gosprl.collect` that declare what a system is like.

    Parameters
    ----------
    resets
        "terminal": the system is reset only when an episode ended. "never": an ending is an error. "anytime": a reset
        is an action of every state.
    reset_cost
        What such a reset costs, in steps, above 0; it makes none.
    horizon
        Episodes are cut off after so many steps.
    max_states
        No more observations than this can be discovered.
    unseen
        Go on until no pair discovered hides more next-state mass than this, at level delta.
    """

    resets: str = "terminal"
    reset_cost: float = 1.0
    horizon: int | None = None
    max_states: int | None = None
    unseen: float | None = None

    def __post_init__(self) -> None:
        _checks.choice("resets", self.resets, RESETS)
        _checks.positive("reset_cost", self.reset_cost)
        if self.horizon is not None:
            _checks.whole("horizon", self.horizon, 1)
            if self.resets == "never":
                raise InputError("horizon, resets: episodes of at most H steps end with a reset; leave out 'never'")
        if self.max_states is not None:
            _checks.whole("max_states", self.max_states, 1)
        if self.unseen is not None:
            _checks.open_unit("unseen", self.unseen)

    @property
    def steps(self) -> int:
        """The longest episode."""
        return UNLIMITED if self.horizon is None else self.horizon

    def prepare(self, model: EmpiricalModel) -> None:
        """Let an empty model have the states and rows that are needed for this."""
        if self.max_states is not None:
            if not model.growing:
                raise InputError(
                    f"max_states: expected None where the number of states is known, here {model.states.fixed}, got "
                    f"{self.max_states}"
                )
            model.max_states = self.max_states
        model.allow_resets(self.resets)
        model.reset_cost = float(self.reset_cost)

    def requirement(self, asked: Requirement, delta: float, model: EmpiricalModel) -> Requirement:
        """Return what is asked for, with what `unseen` adds to it."""
        return asked if self.unseen is None else Thorough(asked, self.unseen, delta, model)
