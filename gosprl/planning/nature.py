"""Nature's answer to values v: in each row's set, the distribution p with the least mean of v, and a rounding bound.

The compiled operator (`gosprl._kernels.sweep`) computes the same minimum, as c + p v. Where v is large, or where a row
stays in its state with a probability close to one, the subtraction c + p v - v(s) cancels, and mostly rounding error
remains. Here the same number is a sum over the transitions that leave the state,

    excess(s, a) = c(s, a) + sum_{s' != s} p(s') (v(s') - v(s)),

with a bound on its rounding error. The probability to stay is not used: it is one minus the others. This also defines
the meaning of a row whose probabilities sum to one only up to rounding.

The minimum is computed greedily, as in the operator: every stored successor gets its lower end, then the slack is
distributed in increasing order of v: to a stored successor up to its upper end, to an unseen one up to `each`, to all
unseen ones together up to `total`. This is NumPy code, with one pass for each position within the rows. It is used
where a compiled solution cannot be trusted, not in ordinary plans.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gosprl._kernels import Sets

UNIT = 2.0**-53  # unit roundoff of doubles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answer:
    """Distributions with the least mean of v, for all usable rows; the nnz stored successors are sorted by value."""

    excess: Floats  # [R] c + p v - v(s); inf where a row is not usable
    error: Floats  # [R] bound on the rounding error of `excess`
    resolution: Floats  # [R] the part of `excess` that rounding v to doubles can cause
    leaving: Floats  # [R] probability to leave the state
    state: Ints  # [R] the state of each row
    ptr: Ints  # [R + 1]
    succ: Ints  # [nnz]
    weight: Floats  # [nnz] probabilities of stored successors
    each: Floats  # [R] probability of each unseen successor among the first `full` states of `order`
    full: Ints  # [R]
    part: Floats  # [R] probability of the unseen state order[full]; 0: none
    order: Ints  # [number of alive states] the alive states by value, increasing
    rank: Ints  # [S] place in `order`; len(order) for states that are not alive

    def transitions(self, rows: Ints) -> tuple[Ints, Ints, Floats]:
        """Return (source, target, probability) of the moves to other states; sources are indices into `rows` [n].

        A target can occur twice, stored and among the first `full` states. The stored entry is then reduced by `each`.
        """
        length, full = self.ptr[rows + 1] - self.ptr[rows], self.full[rows]
        source, slot = spread(self.ptr[rows], length)
        target = self.succ[slot]
        weight = self.weight[slot] - np.where(self.rank[target] < full[source], self.each[rows][source], 0.0)
        unseen, place = spread(np.zeros_like(full), full)
        some = np.flatnonzero(self.part[rows] > 0)
        source = np.concatenate([source, unseen, some])
        target = np.concatenate([target, self.order[place], self.order[full[some]]])
        weight = np.concatenate([weight, self.each[rows][unseen], self.part[rows][some]])
        moves = target != self.state[rows][source]
        return source[moves], target[moves], weight[moves]


def respond(sets: "Sets", cost: Floats, v: Floats, alive: NDArray[np.bool_], usable: NDArray[np.bool_]) -> Answer:
    """Return nature's answer to v [S]; `cost` and `usable` are [R], `alive` [S] restricts states and successors."""
    S, R = len(v), len(cost)
    state = np.repeat(np.arange(S), np.diff(sets.row_ptr))
    usable = usable & alive[state]
    living = np.flatnonzero(alive)
    order = living[np.argsort(v[living], kind="stable")]
    rank = np.full(S, len(order))
    rank[order] = np.arange(len(order))
    row, slot = spread(sets.begin, np.where(usable, sets.end - sets.begin, 0))
    kept = alive[sets.succ[slot]]  # a usable row gives other successors no mass
    row, slot = row[kept], slot[kept]
    sort = np.lexsort((rank[sets.succ[slot]], row))
    row, slot = row[sort], slot[sort]
    succ, lower, upper = sets.succ[slot].astype(np.int64), sets.lower[slot], sets.upper[slot]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=R))])
    slack, others = _slack(row, lower, R)
    each = np.where(usable, sets.each, 0.0)
    unseen_left = np.where(each > 0, np.minimum(sets.total, slack), 0.0)
    amount, full, part = _distribute(ptr, rank[succ], upper - lower, slack, each, unseen_left, len(order))

    weight, rise = lower + amount, v[succ] - v[state[row]]  # the latter is 0 for the state itself
    stored = rank[succ] < full[row]
    prefix = np.append(0.0, np.cumsum(v[order]))
    unseen = prefix[full] - full * v[state] - sums(row, np.where(stored, rise, 0.0), R)
    next_state = order[np.minimum(full, len(order) - 1)]
    excess = sums(row, weight * rise, R) + each * unseen + part * (v[next_state] - v[state])
    excess = np.where(usable, cost + excess, np.inf)

    number = np.diff(ptr)
    error = (number + 4) * UNIT * sums(row, weight * np.abs(rise), R) + 2 * UNIT * cost
    error += (full + number + 8) * UNIT * (each * (prefix[full] + full * v[state]) + part * (v[next_state] + v[state]))
    slack_error = UNIT * (number * others + (number + 4) * slack)
    unseen_rise = np.where(unseen_left > 0, np.maximum(v[state], v[next_state]), 0.0)
    error += slack_error * _marginal_rise(row, amount, upper - lower, np.abs(rise), unseen_rise, slack_error)
    moves, own = succ != state[row], (rank[state] < full) & ~_holds_own(row, succ, state)
    leaving = sums(row[moves], weight[moves], R)
    leaving += each * (full - sums(row, stored, R) - own) + part * (next_state != state)
    resolution = sums(row[moves], (weight * v[succ])[moves], R) + leaving * v[state]
    resolution = 4 * UNIT * (resolution + each * prefix[full] + part * v[next_state])
    return Answer(excess, 1.1 * error, resolution, leaving, state, ptr, succ, weight, each, full, part, order, rank)


def spread(begin: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Return (i, begin[i] + k) for all i and all k < length[i], as two arrays."""
    end = np.cumsum(length)
    index = np.repeat(np.arange(len(length)), length)
    return index, np.arange(len(index)) - np.repeat(end - length - begin, length)


def sums(row: Ints, values: NDArray[Any], R: int) -> Floats:
    """Return the sum of each row's values, [R]."""
    return np.bincount(row, weights=values, minlength=R).astype(np.float64)  # bincount of empty arrays is int


def _slack(row: Ints, lower: Floats, R: int) -> tuple[Floats, Floats]:
    """Return 1 - the sum of each row's lower ends [R], and that sum without the largest end [R].

    The largest end is subtracted from 1 first: the rounding error is then relative to the difference, not to 1.
    """
    most = np.zeros(R)
    np.maximum.at(most, row, lower)
    largest = np.flatnonzero(lower == most[row])
    largest = largest[np.unique(row[largest], return_index=True)[1]]  # one in each row
    rest = lower.copy()
    rest[largest] = 0.0
    others = sums(row, rest, R)
    return np.maximum((1 - most) - others, 0.0), others


def _marginal_rise(
    row: Ints, amount: Floats, room: Floats, rise: Floats, unseen_rise: Floats, slack_error: Floats
) -> Floats:
    """Return the largest `rise` [R] among the successors whose mass changes if the slack changes by `slack_error` [R].

    That is the first successor that is not full. If it is nearly empty, also the one before it; if it is nearly full,
    also the one after it; in both cases also unseen successors, whose rise is at most `unseen_rise` [R].
    """
    R = len(slack_error)
    takes = np.flatnonzero(room > 0)
    row, amount, room, rise = row[takes], amount[takes], room[takes], rise[takes]
    number = np.bincount(row, minlength=R)
    end = np.cumsum(number)
    last = end - 1
    short = np.flatnonzero(amount < room)
    np.minimum.at(last, row[short], short)
    some = np.flatnonzero(number > 0)
    at = last[some]
    nearly_empty, nearly_full = amount[at] <= slack_error[some], room[at] - amount[at] <= slack_error[some]
    largest = rise[at]
    before, after = np.maximum(at - 1, end[some] - number[some]), np.minimum(at + 1, end[some] - 1)
    largest = np.maximum(largest, np.where(nearly_empty, rise[before], 0.0))
    largest = np.maximum(largest, np.where(nearly_full, rise[after], 0.0))
    marginal = unseen_rise.copy()
    marginal[some] = np.maximum(largest, np.where(nearly_empty | nearly_full, unseen_rise[some], 0.0))
    return marginal


def _distribute(
    ptr: Ints, place: Ints, room: Floats, slack: Floats, each: Floats, unseen_left: Floats, n: int
) -> tuple[Floats, Ints, Floats]:
    """Give the slack [R] to the successors of least value: (amount [nnz] for stored ones, full [R], part [R]).

    `place` [nnz] are the successors' ranks among n states, increasing within a row; `room` [nnz] is the mass that each
    can take; `unseen_left` [R] is the mass that all unseen ones together can take.
    """
    amount, length = np.zeros(len(place)), np.diff(ptr)
    rest, unseen_left = slack.copy(), unseen_left.copy()
    position, full, part = np.zeros_like(length), np.zeros_like(length), np.zeros(len(length))

    def to_unseen(r: Ints, end: Ints) -> None:
        """Give mass to the unseen states from `position` to `end`."""
        gap = end - position[r]
        some = (gap > 0) & (unseen_left[r] > 0)
        r, end, gap = r[some], end[some], gap[some]
        cut = each[r] * gap > unseen_left[r]
        last = np.where(cut, position[r] + np.floor(np.minimum(unseen_left[r] / each[r], gap)).astype(np.int64), end)
        full[r] = np.minimum(last, end)
        part[r] = np.where(full[r] < end, np.maximum(unseen_left[r] - each[r] * (full[r] - position[r]), 0.0), 0.0)
        spent = np.where(cut, unseen_left[r], each[r] * gap)
        rest[r] -= spent
        unseen_left[r] -= spent

    by_length = np.argsort(-length, kind="stable")
    for k in range(int(length.max(initial=0))):
        r = by_length[: np.searchsorted(-length[by_length], -k)]
        j = ptr[r] + k
        to_unseen(r, place[j])
        amount[j] = np.minimum(room[j], rest[r])
        rest[r] -= amount[j]
        unseen_left[r] = np.minimum(unseen_left[r], rest[r])
        position[r] = place[j] + 1
    to_unseen(np.arange(len(length)), np.full(len(length), n))
    return amount, full, part


def _holds_own(row: Ints, succ: Ints, state: Ints) -> NDArray[np.bool_]:
    """Return whether each row has its own state among its stored successors, [R]."""
    held = np.zeros(len(state), dtype=bool)
    held[row[succ == state[row]]] = True
    return held
