"""Tours: the order of the last goals with known dynamics, by expected times between them.

Prices of the fluid program (`gosprl.planning.fluid`) ignore that samples are whole numbers, so they say little about
the order of the last few goals. For at most GOALS of them, the price of ending at a goal g is instead

    to_go(g, all),    to_go(g, left) = min over h in left - {g} of d(g, h) + to_go(h, left - {g}),    to_go(g, {g}) = 0,

the least expected time of a tour through all others that starts there (Held and Karp). d(g, h) is the expected time
from a sample of g to h by the shortest path: the mean over the rows of g that miss a sample. A goal that misses samples
of several rows has to be visited again, which is ignored. So tours are used only while no pair misses more than one.

Work: a plan for all states for each of the last goals, kept as long as it is one of them; and a program of
GOALS^2 2^GOALS steps each time the missing rows change. With unknown dynamics, times that the learnt prior expects gave
no better orders than the nearest goal first, in trials on eight systems.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.need import Need
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.workspace import Workspace
from gosprl.sets.known import Known

GOALS = 8
PRECISION = 1e-4


def to_go(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least time of a tour through all goals from each of them, [n]; `times` [n, n] from one to another."""
    n = len(times)
    sets = np.arange(1 << n)
    has = (sets[:, None] >> np.arange(n)) & 1 == 1  # [2^n, n]
    size = has.sum(axis=1)
    least = np.zeros((1 << n, n))  # [visited, last goal]
    for number in range(n - 1, 0, -1):
        visited = sets[size == number]
        later = least[visited[:, None] | (1 << np.arange(n)), np.arange(n)]  # [visited, next goal]
        later[has[visited]] = np.inf
        least[visited] = (times + later[:, None, :]).min(axis=2)
    tours: NDArray[np.float64] = least[1 << np.arange(n), np.arange(n)]
    return tours


class Tours:
    """The prices of the last goals in one run.

    Parameters
    ----------
    model, need
        Counts and missing samples, which change during the run.
    mdp
        The true dynamics.
    """

    def __init__(self, model: EmpiricalModel, need: Need, mdp: TabularMDP) -> None:
        self._model, self._need, self._mdp = model, need, mdp
        self._space: Workspace | None = None  # made for the first tour
        self._after: dict[int, NDArray[np.float64]] = {}  # by goal: [R] expected time to it after a step of each row
        self._rows = np.zeros(0, dtype=np.int64)  # the rows that missed a sample at the last tour
        self._prices: NDArray[np.float64] | None = None  # of that tour

    def prices(self) -> NDArray[np.float64] | None:
        """Return the price of each state [S]; None if there are too many goals, or one of them cannot be reached."""
        need, model = self._need, self._model
        if not 1 < need.unmet_states <= GOALS or need.of_states or need.missing > GOALS * model.num_actions:
            return None
        rows = np.flatnonzero(model.enabled & (need.pair > model.visits))
        if need.missing != len(rows):
            return None
        if not np.array_equal(rows, self._rows):
            self._rows, self._prices = rows, self._tour(rows)
        return self._prices

    def _tour(self, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        state = self._mdp.rows.state[rows]
        goals = np.unique(state)
        self._after = {g: self._after[g] if g in self._after else self._times(g) for g in goals.tolist()}
        after = np.stack([self._after[g][rows] for g in goals.tolist()], axis=1)  # [rows, goals]
        times = np.stack([after[state == g].mean(axis=0) for g in goals])
        if not np.isfinite(times).all():
            return None
        prices = np.zeros(self._mdp.rows.num_states)
        prices[goals] = to_go(times)
        return prices

    def _times(self, g: int) -> NDArray[np.float64]:
        """Return the expected time to g after a step of each row, [R]."""
        mdp = self._mdp
        if self._space is None:
            self._space = Workspace(mdp, Known(mdp))
        goal = np.arange(mdp.rows.num_states) == g
        values = self._space.plan(goal, self._model.costs(ending=1.0), PRECISION, -1)[1]
        expected: NDArray[np.float64] = np.add.reduceat(mdp.prob * values[mdp.succ], mdp.ptr[:-1])
        return expected
