"""The seam between strategies and the engine: a strategy says what to do until when, the engine does it.

A `Strategy` is a value: the options, as a frozen dataclass. It can be reused, and shared between runs and processes.
For each run it makes a `Planner` (`begin`), which has the state of that run.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.guarantee import Guarantee

if TYPE_CHECKING:
    from gosprl.collecting.need import Need
    from gosprl.model.empirical import EmpiricalModel

UNLIMITED = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, eq=False)
class Attempt:
    """Follow `policy` until a goal is reached, a count exceeds its limit, or `horizon` steps were made.

    With `sample`, the policy is for the states that have all they need. In others, of the under-sampled pairs the one
    with the fewest visits is taken, and the attempt also ends when a state got all it needs. All rules are in
    `gosprl.collecting.rules`.

    The arrays are borrowed: valid until the next call of `attempt`, which may write the next ones there.
    """

    policy: NDArray[np.int64] | NDArray[np.float64]  # [S] row to take, -1 = hand back; or [R] probabilities
    goals: NDArray[np.bool_]  # [S] tested after each step
    limit: NDArray[np.int64]  # [R] stop when N exceeds this
    horizon: int  # steps, at least 1
    sample: bool = False  # take what is needed on the way; only with a policy of rows


@dataclass(frozen=True)
class GivenUp:
    """The answer of a planner that nothing of what is still needed is within reach."""

    states: Mapping[int, str]  # each state, and which test said so


class Planner(ABC):
    """A strategy at work in one run; the base class of planners of your own. Only `attempt` is needed."""

    may_give_up: bool = True  # whether `attempt` may ever return GivenUp

    @abstractmethod
    def attempt(self, s: int, t: int) -> Attempt | GivenUp:
        """Return what to do in state s at time t (the number of the next step, from 1)."""

    def restart(self) -> None:
        """Forget the last attempt: the walk does not go on from where it ended, or counts were added."""

    def account(self, steps: int, collected: int, *, walked: bool) -> None:
        """Take into account the steps made and the needed samples collected so far; not walked: observed elsewhere."""

    @property
    def guarantee(self) -> Guarantee:
        """What holds for the run."""
        return Guarantee.none(f"{type(self).__name__} states none")

    @property
    def given_up(self) -> Mapping[int, str]:
        """States given up so far, and which test said so."""
        return {}

    @property
    def work(self) -> Mapping[str, float]:
        """What planning took, and how steps were spent: numbers by name, for the result."""
        return {}


class Strategy(ABC):
    """Options of a strategy; derive a frozen dataclass from it.

    Attributes
    ----------
    delta
        The level at which the result states `unseen`, whether or not the strategy uses one.
    reach
        Steps beyond which states are given up; None if never.
    successors
        What is known of the possible successors; None if nothing.
    """

    delta: float = 0.1
    reach: float | None = None
    successors: Any = None

    @abstractmethod
    def begin(self, model: "EmpiricalModel", need: "Need", rng: np.random.Generator) -> Planner:
        """Make the planner of a run.

        Parameters
        ----------
        model
            The counts; they grow as the run goes on.
        need
            What is needed and missing; it changes as the run goes on.
        rng
            The strategy's stream of random numbers.
        """
