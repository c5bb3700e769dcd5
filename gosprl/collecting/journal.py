"""Journal: where the events of a run go before they are counted, if it is kept (`gosprl.runs`)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl.systems.base import System

TERMINATED, TRUNCATED, CRASHED = 2, 4, 8  # flags of a step; 1 is for resets
UNKNOWN, LATE = 16, 32  # of the events of a fleet: nobody waits for the outcome any more; it came after that


def rewards_of(
    rows: NDArray[np.int64], means: NDArray[np.float64], drawn: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the rewards [n] of a compiled walk, as `Journal.walk` is told of it."""
    rewards = means.take(rows)
    return rewards if drawn is None else (drawn < rewards).astype(float)


class Journal(ABC):
    """Takes every event of a run, in order; states and rows are those of the model.

    Attributes
    ----------
    due
        Whether `sync` should be called when the next event is complete.
    saved
        Steps that will survive whatever happens to this process.
    """

    due: bool = False
    saved: int = 0

    @abstractmethod
    def step(self, row: int, s_next: int, reward: float, flags: int) -> None:
        """Write a step by `row` to s_next: the state itself, or its final copy if the episode ended."""

    @abstractmethod
    def reset(self, s: int) -> None:
        """Write that the run began in s, or that a reset led there."""

    @abstractmethod
    def walk(
        self, rows: NDArray[np.int64], s: int, means: NDArray[np.float64], drawn: NDArray[np.float64] | None
    ) -> None:
        """Write a compiled walk.

        Parameters
        ----------
        rows
            [n] the rows that were taken.
        s
            Where it ended.
        means
            [R] the mean reward of each row.
        drawn
            [n] with Bernoulli rewards, the uniform number of each step: the reward is 1 if it is below the mean.
            None: the reward is the mean.
        """

    @abstractmethod
    def offer(self, s: int, actions: Sequence[int] | None) -> None:
        """Write which actions a state offers now; None: all."""

    @abstractmethod
    def sync(self, system: "System") -> None:
        """Save what was written, and with it the state of the system if it has one to tell."""

    @abstractmethod
    def checkpoint(self, memory: dict[str, Any]) -> None:
        """Save what a collector remembers at this moment."""
