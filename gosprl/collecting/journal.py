"""Journal: where the events of a run go before they are counted, if it is kept (`gosprl.runs`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl.systems.base import System

TERMINATED, TRUNCATED, CRASHED = 2, 4, 8  # flags of a step; 1 is for resets


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
    def walk(self, rows: NDArray[np.int64], s: int, rewards: NDArray[np.float64]) -> None:
        """Write a compiled walk by `rows` [n] that ended in s, with its rewards [n]."""

    @abstractmethod
    def offer(self, s: int, actions: Sequence[int] | None) -> None:
        """Write which actions a state offers now; None: all."""

    @abstractmethod
    def sync(self, system: "System") -> None:
        """Save what was written, and with it the state of the system if it has one to tell."""

    @abstractmethod
    def checkpoint(self, memory: Callable[[], dict[str, Any] | None]) -> None:
        """Save what a collector remembers at this moment."""
