"""The endgame: the last samples in the best order, with known dynamics.

Prices say where to end next, but not what to sample first where several samples are missing. In a river, a step down
at once loses the way up; after all that is needed above was sampled, it costs nothing. The fluid program
(`gosprl.planning.fluid`) does not see the difference, since it has no order.

The best collector is found exactly as soon as little is missing. A *level* is what is missing of each pair, in mixed
radix; a sample lowers it, nothing raises it. Each level is a shortest path problem over the states whose steps down
lead to levels solved before. The expected cost obeys

    V(level, s) = min over rows r of s of c(r) + sum over s' of p(s' | r) V(level after r, s'),    V(0, s) = 0.

Work: the levels times the successors stored of all rows, at most ENTRIES, a few dozen times; once, when they are few
enough for the first time.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.need import Need
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel

ENTRIES = 200_000
PRECISION, SWEEPS = 1e-4, 1_000  # of expected costs; a level that takes more sweeps cannot be ended from everywhere


class Endgame:
    """The best order of the last samples in one run.

    Parameters
    ----------
    model, need
        Counts and missing samples, which change during the run.
    mdp
        The true dynamics.

    Attributes
    ----------
    farthest
        The most expected steps from any state to one more sample of any row that missed one when it was solved.
    """

    def __init__(self, model: EmpiricalModel, need: Need, mdp: TabularMDP) -> None:
        self._model, self._need, self._mdp = model, need, mdp
        self.farthest = 0.0
        self._version = -1  # of the need, when it was last solved
        self._items = self._size = self._stride = np.zeros(0, dtype=np.int64)  # rows, missing samples + 1, of each item
        self._policy: NDArray[np.int64] | None = None  # [levels, S]

    def policy(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return (rows [S] to take until the next needed sample, rows that miss one); None if too much is missing."""
        need, model = self._need, self._model
        if not 0 < need.missing * len(self._mdp.succ) <= ENTRIES or need.of_states:
            return None
        missing = np.where(model.enabled, np.maximum(need.pair - model.visits, 0), 0)
        rows = np.flatnonzero(missing)
        if missing.sum() != need.missing:  # something else is asked for
            return None
        if not self._is_solved(missing) and not self._solve(rows, missing[rows] + 1):
            return None
        if self._policy is None:
            return None
        return self._policy[int(missing[self._items] @ self._stride)], rows

    def _is_solved(self, missing: NDArray[np.int64]) -> bool:
        """Return whether the last solution is about this need; an adaptive one may ask for more of the same states."""
        if self._version != self._need.version or self._policy is None:
            return self._version == self._need.version
        known = missing[self._items]
        return bool((known < self._size).all() and known.sum() == self._need.missing)

    def _solve(self, rows: NDArray[np.int64], size: NDArray[np.int64]) -> bool:
        """Solve all levels, if they are few; return whether that was tried."""
        from gosprl._kernels import solve_levels

        mdp, model = self._mdp, self._model
        if float(np.prod(size, dtype=float)) * len(mdp.succ) > ENTRIES:
            return False
        self._version = self._need.version
        self._items, self._size, self._stride = rows, size, np.append(1, np.cumprod(size))[:-1]
        item = np.full(len(mdp.rows), -1)
        item[rows] = np.arange(len(rows))
        shape = (int(np.prod(size)), mdp.rows.num_states)
        values, policy = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        arrays = (mdp.rows.ptr, mdp.ptr, mdp.succ, mdp.prob)
        how = (item, self._size, self._stride, values, policy, PRECISION, SWEEPS)
        solved = solve_levels(arrays, model.enabled, model.costs(), *how)
        self._policy, self.farthest = policy if solved else None, float(values[self._stride].max())
        return True
