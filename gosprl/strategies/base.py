"""The seam between strategies and systems: a strategy says what to do until when, a system does it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError

if TYPE_CHECKING:
    from gosprl._kernels import Ledger
    from gosprl.model.empirical import EmpiricalModel


@dataclass(frozen=True, eq=False)
class Attempt:
    """Follow `policy` until a goal is reached, a count exceeds its limit, or `horizon` steps were made.

    With `sample`, the policy is for the states that have all they need; at others, of the pairs that are under-sampled
    the one with the fewest visits is taken (the first of these). It also ends when a state gets all it needs.

    The arrays are as they are meant until the strategy is asked for the next attempt: it may write the next one there.
    """

    policy: NDArray[np.int64] | NDArray[np.float64]  # [S] row to take, -1 = hand back; or [R] probabilities
    goals: NDArray[np.bool_]  # [S] tested after each step
    limit: NDArray[np.int64]  # [R] stop when N exceeds this
    horizon: int
    sample: bool = (
        False  # (with rows) on the way, take what is needed wherever the walk comes; stop when a state has all it needs
    )

    def __post_init__(self) -> None:
        if self.sample and self.policy.dtype != np.int64:
            raise InputError("sample: expected a policy of rows; probabilities cannot be combined with it")


@dataclass(frozen=True)
class GivenUp:
    """A strategy's word that what is still needed is out of reach."""

    states: dict[int, str]  # each state, and which test said so


class Strategy(Protocol):
    """Decides how to walk; made anew for every run."""

    @property
    def guarantee(self) -> str:
        """Which promise holds for the run."""
        ...

    def restart(self) -> None:
        """Told when the walk does not go on from where the last attempt ended: a teleport. May be left out."""
        ...

    def attempt(
        self, model: "EmpiricalModel", need: "Ledger", s: int, t: int, rng: np.random.Generator
    ) -> Attempt | GivenUp:
        """What to do in state s at time t (the number of the next step, from 1).

        `need` says what is needed (`pair` [R], `state` [S]) and what of it is missing (`unmet`, `missing` [S]).
        """
        ...
