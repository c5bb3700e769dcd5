"""Nature's answer to values v: in each row's set, the distribution p with the least mean of v; with a rounding bound.

The compiled operator (`gosprl._kernels.sweep`) computes the same minimum as c + p v. Where v is large, or where a row
stays in its state with a probability close to one, the subtraction c + p v - v(s) then cancels, and what is left of it
is rounding. Here the same number is a sum over what leaves the state,

    excess(s, a) = c(s, a) + sum_{s' != s} p(s') (v(s') - v(s)),

with a bound on its rounding error. The probability to stay never enters: it is what is missing to one. That also says
what is meant by a row whose probabilities sum to one only up to rounding.

The minimum is the greedy one of the operator: lower ends first, then the slack in increasing order of v, a stored
successor up to its upper end, an unseen one up to `each`, all unseen ones together up to `total`. NumPy, one pass for
each position within the rows; it is used where a compiled solution cannot be trusted, not in ordinary plans.
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
    """Distributions that attain the least mean of v, of all usable rows; nnz stored successors, sorted by value."""

    excess: Floats  # [R] c + p v - v(s); inf where a row is not usable
    error: Floats  # [R] bound on the rounding error of `excess`
    resolution: Floats  # [R] how much of `excess` may be due to v being doubles, and not real numbers
    leaving: Floats  # [R] probability to leave the state
    state: Ints  # [R] the state of each row
    ptr: Ints  # [R + 1]
    succ: Ints  # [nnz]
    weight: Floats  # [nnz] probabilities of stored successors
    each: Floats  # [R] probability of each unseen successor among the `full` states of least value
    full: Ints  # [R]
    part: Floats  # [R] probability of the state of next least value, which is unseen
    order: Ints  # [alive] the states by value
    rank: Ints  # [S] place in `order`, or the number of those

    def transitions(self, rows: Ints) -> tuple[Ints, Ints, Floats]:
        """(source, target, probability) of the moves to other states, source being an index into `rows` [n].

        A target may occur twice: what it gets as one of the `full` states is taken off where it is stored.
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
    """Return the answer to v [S] on the alive states [S], for the usable rows [R] of these, of cost [R]."""
    S, R = len(v), len(cost)
    state = np.repeat(np.arange(S), np.diff(sets.row_ptr))
    usable = usable & alive[state]
    living = np.flatnonzero(alive)
    order = living[np.argsort(v[living], kind="stable")]
    rank = np.full(S, len(order))
    rank[order] = np.arange(len(order))
    row, slot = spread(sets.begin, np.where(usable, sets.end - sets.begin, 0))
    kept = alive[sets.succ[slot]]  # of a usable row, others have no mass
    row, slot = row[kept], slot[kept]
    sort = np.lexsort((rank[sets.succ[slot]], row))
    row, slot = row[sort], slot[sort]
    succ, lower, upper = sets.succ[slot].astype(np.int64), sets.lower[slot], sets.upper[slot]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=R))])
    slack, others = _slack(row, lower, R)
    each = np.where(usable, sets.each, 0.0)
    purse = np.where(each > 0, np.minimum(sets.total, slack), 0.0)
    amount, full, part = _hand_out(ptr, rank[succ], upper - lower, slack, each, purse, len(order))

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
    doubt = UNIT * (number * others + (number + 4) * slack)
    unseen_rise = np.where(purse > 0, np.maximum(v[state], v[next_state]), 0.0)
    error += doubt * _last_served(row, amount, upper - lower, np.abs(rise), unseen_rise, doubt)
    moves, own = succ != state[row], (rank[state] < full) & ~_holds_own(row, succ, state)
    leaving = sums(row[moves], weight[moves], R)
    leaving += each * (full - sums(row, stored, R) - own) + part * (next_state != state)
    resolution = sums(row[moves], (weight * v[succ])[moves], R) + leaving * v[state]
    resolution = 4 * UNIT * (resolution + each * prefix[full] + part * v[next_state])
    return Answer(excess, 1.1 * error, resolution, leaving, state, ptr, succ, weight, each, full, part, order, rank)


def spread(begin: Ints, length: Ints) -> tuple[Ints, Ints]:
    """(i, begin[i] + k) for all k < length[i], as two arrays."""
    end = np.cumsum(length)
    index = np.repeat(np.arange(len(length)), length)
    return index, np.arange(len(index)) - np.repeat(end - length - begin, length)


def sums(row: Ints, values: NDArray[Any], R: int) -> Floats:
    """[R] the sum of each row's values."""
    return np.bincount(row, weights=values, minlength=R).astype(np.float64)  # of nothing at all it is integers


def _slack(row: Ints, lower: Floats, R: int) -> tuple[Floats, Floats]:
    """(1 - the sum of each row's lower ends, that sum without the largest of them), [R].

    The largest one is subtracted first: the error is then relative to what it leaves, not to one.
    """
    most = np.zeros(R)
    np.maximum.at(most, row, lower)
    largest = np.flatnonzero(lower == most[row])
    largest = largest[np.unique(row[largest], return_index=True)[1]]  # one in each row
    rest = lower.copy()
    rest[largest] = 0.0
    others = sums(row, rest, R)
    return np.maximum((1 - most) - others, 0.0), others


def _last_served(row: Ints, amount: Floats, room: Floats, rise: Floats, unseen_rise: Floats, doubt: Floats) -> Floats:
    """[R] the largest `rise` among the successors that get more or less if the slack is off by `doubt` [R].

    That is the first one not filled up; if it got next to nothing also the one before, if it is next to full the one
    after, and in both cases unseen ones, whose rise is at most `unseen_rise` [R].
    """
    R = len(doubt)
    takes = np.flatnonzero(room > 0)
    row, amount, room, rise = row[takes], amount[takes], room[takes], rise[takes]
    number = np.bincount(row, minlength=R)
    end = np.cumsum(number)
    last = end - 1
    short = np.flatnonzero(amount < room)
    np.minimum.at(last, row[short], short)
    some = np.flatnonzero(number > 0)
    at = last[some]
    little, nearly = amount[at] <= doubt[some], room[at] - amount[at] <= doubt[some]
    largest = rise[at]
    before, after = np.maximum(at - 1, end[some] - number[some]), np.minimum(at + 1, end[some] - 1)
    largest = np.maximum(largest, np.where(little, rise[before], 0.0))
    largest = np.maximum(largest, np.where(nearly, rise[after], 0.0))
    served = unseen_rise.copy()
    served[some] = np.maximum(largest, np.where(little | nearly, unseen_rise[some], 0.0))
    return served


def _hand_out(
    ptr: Ints, place: Ints, room: Floats, slack: Floats, each: Floats, purse: Floats, n: int
) -> tuple[Floats, Ints, Floats]:
    """Give the slack [R] to the successors of least value: (amount [nnz] of those stored, full [R], part [R]).

    `place` [nnz] are the successors' ranks, increasing within a row, among n states; `room` [nnz] is how much each can
    take, `purse` [R] what unseen ones can take together.
    """
    amount, length = np.zeros(len(place)), np.diff(ptr)
    rest, purse = slack.copy(), purse.copy()
    position, full, part = np.zeros_like(length), np.zeros_like(length), np.zeros(len(length))

    def to_unseen(r: Ints, end: Ints) -> None:
        """To the unseen states from `position` to `end`."""
        gap = end - position[r]
        some = (gap > 0) & (purse[r] > 0)
        r, end, gap = r[some], end[some], gap[some]
        cut = each[r] * gap > purse[r]
        last = np.where(cut, position[r] + np.floor(np.minimum(purse[r] / each[r], gap)).astype(np.int64), end)
        full[r] = np.minimum(last, end)
        part[r] = np.where(full[r] < end, np.maximum(purse[r] - each[r] * (full[r] - position[r]), 0.0), 0.0)
        spent = np.where(cut, purse[r], each[r] * gap)
        rest[r] -= spent
        purse[r] -= spent

    by_length = np.argsort(-length, kind="stable")
    for k in range(int(length.max(initial=0))):
        r = by_length[: np.searchsorted(-length[by_length], -k)]
        j = ptr[r] + k
        to_unseen(r, place[j])
        amount[j] = np.minimum(room[j], rest[r])
        rest[r] -= amount[j]
        purse[r] = np.minimum(purse[r], rest[r])
        position[r] = place[j] + 1
    to_unseen(np.arange(len(length)), np.full(len(length), n))
    return amount, full, part


def _holds_own(row: Ints, succ: Ints, state: Ints) -> NDArray[np.bool_]:
    """[R] whether a row has its own state among the stored successors."""
    held = np.zeros(len(state), dtype=bool)
    held[row[succ == state[row]]] = True
    return held
