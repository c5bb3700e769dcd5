"""Beginning: samples that are there before a run, and what is taken for granted of them."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl.collecting.record import ANY_REWARD
from gosprl.model.empirical import EmpiricalModel

if TYPE_CHECKING:
    from gosprl.systems.base import System

# parts of guarantees: of data in order, of data in any order, and of runs of a system that draws its numbers itself
VOUCHED = "the data in order, disjoint and independent of the walk"
UNSELECTED = "that the data were not selected by their outcome, are disjoint and independent of the walk"
APART = "runs that are independent of each other and of the walk"
OF_BEFORE = {
    "the data": VOUCHED,
    "that the data were not selected by their outcome": UNSELECTED,
}  # as runs once said it


class Beginning(ABC):
    """Samples that a run begins with."""

    def has_run(self, run: str) -> bool:
        """Whether the run on disk with this id is known to be among them."""
        return False

    @property
    def seed_alone(self) -> bool:
        """Whether the random numbers of the run follow from its seed alone (`gosprl.collecting.streams`)."""
        return False

    @abstractmethod
    def count_into(self, model: EmpiricalModel, system: "System", rewards: tuple[float, float] = ANY_REWARD) -> None:
        """Count everything into an empty model.

        Parameters
        ----------
        model
            The model of the system, prepared for its resets.
        system
            What will be walked: it says what observations and actions stand for.
        rewards
            The least and the largest reward allowed.

        Raises
        ------
        InputError
            Something is wrong with the data; the model is not to be used then.
        """

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return their order and where they come from, as JSON values; after they were counted."""


def enable_known(model: EmpiricalModel, actions: int) -> None:
    """Let states whose offer is not known yet have the first `actions` actions, and no room for others."""
    for s in model.discovered:
        if model.offered(s) is None:
            begin, end = int(model.rows.ptr[s]), int(model.rows.ptr[s + 1])
            model.enabled[begin:end] = model.rows.action[begin:end] < actions


def level_ranks(model: EmpiricalModel) -> None:
    """Let all states discovered so far be the last one, unless it is known in which order samples were drawn.

    Levels of confidence go by the order of discovery, which must not depend on the samples of the state itself
    (docs/theory/growing.md). In data that were put into another order it may: the true place of each state is not
    known, only that it is none after the last. The level of the last is the least.
    """
    _, _, number, first = model.stored()
    if model.discovered and np.any((first <= 0) & (number > 0)):
        model.rank[model.discovered] = model.rank.max()


def num_samples(model: EmpiricalModel) -> int:
    """Return how many steps a model has counted: resets, and the way there, are none."""
    return int(model.visits[~model.certain & ~model.terminal[model.rows.state]].sum())
