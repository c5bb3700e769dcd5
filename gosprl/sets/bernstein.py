"""The paper's empirical Bernstein sets (formulas in `gosprl.sets.intervals`)."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Intervals, _Family


class Bernstein(_Family):
    """The paper's empirical Bernstein sets."""

    def intervals(self, model: "EmpiricalModel", rows: NDArray[np.int64] | None = None) -> Intervals:
        """Return the sets of `rows` [n] in this order; None: of all R rows."""
        ptr, succ, count, _ = model.stored(rows)
        visits = model.visits if rows is None else model.visits[rows]
        N = np.maximum(1.0, visits)  # floats, since S A N can exceed the range of int64
        if model.closed:
            L = 0.5 * np.log(5 * model.num_candidates / self.delta) + np.log(N)
        else:
            L = np.log(2 * model.num_states * model.num_actions * N / self.delta)
        length = np.diff(ptr)
        n = np.repeat(N, length)
        p_hat = count / n
        each = self.scale * 6 * L / N
        radius = self.scale * 2 * np.sqrt(p_hat * (1 - p_hat) * np.repeat(L, length) / n)
        radius += np.repeat(each, length)
        lower, upper = np.maximum(p_hat - radius, 0), np.minimum(p_hat + radius, 1)
        if model.closed:
            upper[np.repeat(visits == 0, length)] = 1
            lower[np.repeat(length == 1, length)] = upper[np.repeat(length == 1, length)] = 1
            zeros = np.zeros(len(N))
            return Intervals(ptr, succ, lower, upper, zeros, zeros)
        each = np.where(visits == 0, 1, np.minimum(each, 1))
        return Intervals(ptr, succ, lower, upper, each, np.ones(len(N)))
