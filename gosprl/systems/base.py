"""What a collector walks on."""

from typing import Protocol

import numpy as np

from gosprl.collecting.record import Ended, Record
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import Attempt


class System(Protocol):
    """Something that can be stepped through. States and rows are those of the model it makes."""

    slice: int  # steps between two looks at the clock
    all_states: bool  # whether all states can be come to; otherwise, those that are needed are those found
    state: int  # where it is: where the last transition led, recorded or not

    def model(self) -> EmpiricalModel:
        """An empty model of the right size."""
        ...

    def seed(self, rng: np.random.Generator) -> None:
        """Take the stream of randomness for the run."""
        ...

    def reset(self, record: Record) -> int:
        """Begin; the state it begins in."""
        ...

    def run(self, attempt: Attempt, s: int, record: Record, made: int, steps: int) -> tuple[int, int, Ended]:
        """Follow an attempt, of which `made` steps were made, for at most `steps` more from state s.

        Returns the state, the steps of the attempt made by now, and why it stopped.
        """
        ...
