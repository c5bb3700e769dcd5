"""Selection of goals: which under-sampled states are the goals of an attempt (appendix "Algorithmic Variants").

    all             every under-sampled state (Algorithm 1). While all states are under-sampled, only those with the
                    least remaining budget sum_a max(b(s, a) - N(s, a), 0): the paper's initial phase
    all-always      every under-sampled state, without an initial phase
    least-sampled   one state with the fewest visits
    easiest         one state with the largest success rate of attempts to sample it; a state never tried has rate 1
                    (optimism). The paper's formula has argmin, but its text describes argmax
    random          one state at random

Where one state is selected, ties are broken at random. The selection does not change the order of the guarantee.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError


@dataclass
class History:
    """The data that a selection may use."""

    visits: NDArray[np.int64]  # [S] N(s)
    remaining: NDArray[np.int64]  # [S] samples still needed there
    tried: NDArray[np.int64] = field(init=False)  # [S] attempts with the state as their only goal
    succeeded: NDArray[np.int64] = field(init=False)  # [S] those that reached it

    def __post_init__(self) -> None:
        self.tried = np.zeros(len(self.visits), dtype=np.int64)
        self.succeeded = np.zeros(len(self.visits), dtype=np.int64)


Select = Callable[[NDArray[np.bool_], History, np.random.Generator], NDArray[np.bool_]]


def every(under: NDArray[np.bool_], history: History, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Select every under-sampled state; in the initial phase those with the least remaining budget."""
    if not under.all():
        return under
    result: NDArray[np.bool_] = history.remaining == history.remaining.min()
    return result


def every_from_the_start(under: NDArray[np.bool_], history: History, rng: np.random.Generator) -> NDArray[np.bool_]:
    """As `every`, without the initial phase."""
    return under


def least_sampled(under: NDArray[np.bool_], history: History, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Select one under-sampled state with the fewest visits."""
    return _one(under, -history.visits.astype(float), rng)


def easiest(under: NDArray[np.bool_], history: History, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Select one under-sampled state with the largest success rate of attempts to sample it."""
    ratio = np.where(history.tried > 0, history.succeeded / np.maximum(history.tried, 1), 1.0)
    return _one(under, ratio, rng)


def at_random(under: NDArray[np.bool_], history: History, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Select one under-sampled state at random."""
    return _one(under, np.zeros(len(under)), rng)


def _one(under: NDArray[np.bool_], score: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a mask [S] of one under-sampled state with the largest score, ties at random."""
    candidates = np.flatnonzero(under)
    best = candidates[score[candidates] == score[candidates].max()]
    chosen = np.zeros(len(under), dtype=bool)
    chosen[best[int(rng.random() * len(best))]] = True
    return chosen


GOALS: dict[str, Select] = {
    "all": every,
    "all-always": every_from_the_start,
    "least-sampled": least_sampled,
    "easiest": easiest,
    "random": at_random,
}


def selected(select: Select, under: NDArray[np.bool_], history: History, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the goals of a selection [S], after checking them."""
    shown = under
    if select is not every:
        shown = under.view()
        shown.flags.writeable = False  # a user's function must not change the planner's array
    goals = select(shown, history, rng)
    if goals is shown:
        return under
    if not isinstance(goals, np.ndarray) or goals.dtype != bool or goals.shape != under.shape or not goals.any():
        got = f"{goals.dtype} {goals.shape}" if isinstance(goals, np.ndarray) else repr(goals)
        raise InputError(f"goals: expected a bool mask [S] = {under.shape} with at least one goal, got {got:.80}")
    if np.any(goals & ~under):
        s = int(np.flatnonzero(goals & ~under)[0])
        raise InputError(f"goals: expected some of the under-sampled states, got state {s}, which is none")
    return goals if type(goals) is np.ndarray and goals.flags.carray else np.array(goals)
