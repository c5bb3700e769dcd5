"""The interface between strategies and the engine: a strategy returns attempts, and the engine follows them.

A `Strategy` is a value: the options, as a frozen dataclass. It can be reused, and shared between runs and processes.
For each run it makes a `Planner` (`begin`), which has the state of that run.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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

    With `sample`, the policy is used only in states whose need is met. In other states, the under-sampled pair with the
    fewest visits is taken, and the attempt also ends when the need of a state is met. All rules are in
    `gosprl.collecting.rules`.

    The arrays are borrowed: valid until the next call of `attempt`, which may overwrite them.
    """

    policy: NDArray[np.int64] | NDArray[np.float64]  # [S] row to take, -1 to end the attempt; or [R] probabilities
    goals: NDArray[np.bool_]  # [S] tested after each step
    limit: NDArray[np.int64]  # [R] stop when N exceeds this
    horizon: int  # steps, at least 1
    sample: bool = False  # take needed samples on the way; only with a policy of rows


@dataclass(frozen=True)
class GivenUp:
    """The answer of a planner if no sample that is still needed can be reached: the run ends.

    A planner that gives up only some of the states calls `need.waive({state: test, ...})` and returns an `Attempt` for
    the others. From then on nothing is asked of a waived state, and the result lists it with its test.
    """

    states: Mapping[int, str]  # each state given up, and the test that decided it


class Planner(ABC):
    """Base class of planners: a strategy in one run. A planner of your own defines `attempt`."""

    @abstractmethod
    def attempt(self, s: int, t: int) -> Attempt | GivenUp:
        """Return the next attempt, in state s at time t (the number of the next step, from 1)."""

    @property
    def may_give_up(self) -> bool:
        """Whether `attempt` may ever return `GivenUp`."""
        return True

    @property
    def phase(self) -> int:
        """What the steps of the last attempt are accounted as; where it changes, all walkers of a fleet plan again."""
        return 0

    @property
    def serves_all(self) -> bool:
        """Whether other walkers of a fleet may follow the last attempt, from states for which its policy has rows.

        Only attempts that sample on the way and have no goals.
        """
        return False

    def place_walkers(self, states: Sequence[int]) -> None:
        """Take in where all walkers of a fleet are, the one that asks first; called before `attempt`."""

    def expected_steps(self) -> NDArray[np.float64] | None:
        """Return the expected steps from each state [S] to the next needed sample: walkers of a fleet may wait by them.

        None, the default: not known, and none of them waits.
        """
        return None

    def restart(self) -> None:
        """Forget the last attempt: the walk does not continue from its last state, or counts were added."""

    def resize(self) -> None:
        """Make arrays by state and row anew: the model has more of them, whose first ones are those that it had.

        Where the number of actions is unknown, rows can have other numbers. Nothing to do for planners that make their
        arrays for every attempt.
        """

    def remember(self) -> dict[str, Any] | None:
        """Return what a new planner of the strategy has to `recall` to take the place of this one: JSON values.

        Counts, need and random numbers are not part of it. From time to time every run replaces its planner in this
        way, so that an interrupted run can be resumed without all its history (`gosprl.runs`). None, the default: this
        planner cannot be replaced; such a run is resumed by following its log from the beginning.
        """
        return None

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take the place of the planner that remembered this; called once, before the first attempt."""

    def account(self, steps: int, collected: int, *, walked: bool) -> None:
        """Record the total steps and needed samples so far; not `walked`: they were observed outside of attempts."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the run."""
        return Guarantee.none(f"{type(self).__name__} states none")

    @property
    def given_up(self) -> Mapping[int, str]:
        """States given up so far without `need.waive`, and the test that decided it."""
        return {}

    @property
    def work(self) -> Mapping[str, float]:
        """The work of planning, and how steps were spent: numbers by name, for the result."""
        return {}


class Strategy(ABC):
    """Base class of the options of a strategy; derive a frozen dataclass from it.

    Attributes
    ----------
    delta
        The level of `unseen` in the result, whether or not the strategy uses a level.
    reach
        Each state farther away than this many steps is given up; None: no state is.
    dynamics
        The true `TabularMDP`; None if it is not known.
    successors
        The candidates for the next states, if they are known; None: all states.
    """

    delta: float = 0.1
    reach: float | None = None
    successors: Any = None
    dynamics: Any = None

    @abstractmethod
    def begin(self, model: "EmpiricalModel", need: "Need", rng: np.random.Generator) -> Planner:
        """Make the planner of a run.

        Parameters
        ----------
        model
            The counts; they change during the run.
        need
            The samples needed and missing; they change during the run.
        rng
            The strategy's stream of random numbers.
        """
