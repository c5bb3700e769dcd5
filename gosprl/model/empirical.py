"""EmpiricalModel: what was observed so far, as growing sparse counts.

    N(s, a), N(s, a, s')       visits and transitions
    p_hat(s' | s, a)           N(s, a, s') / N(s, a)
    reward_sum, reward_sq      per row, sums of rewards and of their squares

An update costs O(successors of its row), whatever S is; memory is O(stored transitions).
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.mdp.rows import ROW_BYTES, Rows
from gosprl.mdp.tabular import DENSE_LIMIT
from gosprl.model.successors import Candidates, as_candidates

T = TypeVar("T", bound=np.generic)

COUNT_BYTES = 81  # of a row in an empty model: nine counts, a tenth on the way, a bool


class EmpiricalModel:
    """Counts of observed transitions over known numbers of states and actions.

    Parameters
    ----------
    states
        S, the number of states.
    actions
        A, the number of actions, or a bool mask [S, A] of those that exist.
    successors
        Which next states are possible at all, if that is known: see `restrict`.

    Attributes
    ----------
    closed
        Whether that is known: confidence sets then are sets over the candidates only, and a transition to any other
        state is an error.
    """

    def __init__(self, states: int, actions: ArrayLike, successors: Any = None) -> None:
        self._begin(Rows.build(states, actions, ROW_BYTES + COUNT_BYTES))
        if successors is not None:
            self._close(as_candidates(successors, self.rows))

    @classmethod
    def over(cls, rows: Rows) -> "EmpiricalModel":
        """An empty model over the given rows."""
        _checks.memory(f"rows: counts of {len(rows)} pairs", len(rows) * COUNT_BYTES, "try fewer states or actions")
        model = cls.__new__(cls)
        model._begin(rows)
        return model

    def _begin(self, rows: Rows) -> None:
        self.rows = rows
        self.states: Sequence[Any] = range(self.num_states)  # index -> observation
        self.enabled = np.ones(len(rows), dtype=bool)  # [R] rows that can be taken, as far as is known
        self.discovered: list[int] = []  # states that a walk started from or came to, in that order
        self.found = np.zeros(rows.num_states, dtype=bool)  # [S] the same as a mask
        self.terminal = np.zeros(rows.num_states, dtype=bool)  # [S] their first row stands for a reset, others are off
        self.closed = False
        self.num_candidates = len(rows) * rows.num_states  # transitions (s, a, s_next) that may be possible
        self._allocate(np.zeros(len(rows), dtype=np.int64))

    @property
    def num_states(self) -> int:
        return self.rows.num_states

    @property
    def num_actions(self) -> int:
        return self.rows.num_actions

    @property
    def visits(self) -> NDArray[np.int64]:
        """[R] N(s, a) of each row; read-only."""
        return _read_only(self._counts.visits)

    @property
    def reward_sum(self) -> NDArray[np.float64]:
        """[R] sum of the rewards of each row; read-only."""
        return _read_only(self._counts.reward_sum)

    @property
    def reward_sq(self) -> NDArray[np.float64]:
        """[R] sum of the squared rewards of each row; read-only."""
        return _read_only(self._counts.reward_sq)

    def __repr__(self) -> str:
        seen = np.count_nonzero(self._counts.number) if self.closed else self._counts.length.sum()
        possible = f" of {self.num_candidates} possible" if self.closed else ""
        return (
            f"EmpiricalModel({self.num_states} states, {len(self.rows)} pairs, {self.visits.sum()} visits, "
            f"{seen} transitions{possible})"
        )

    def restrict(self, successors: Any) -> None:
        """From now on only these next states are possible; all transitions counted so far must be among them.

        successors
            A sparse matrix [S * A, S], row s * A + a, or [S, S] for any action, non-zero where it is possible; a bool
            array [S, A, S] or [S, S]; a `TabularMDP` with the same states and actions; or a callable (s, a) -> next
            states. Of a terminal state, the first action's are those that a reset leads to.
        """
        from gosprl import _kernels

        self._close(as_candidates(successors, self.rows))
        _kernels.touch_many(self._counts, np.arange(len(self.rows)))  # every row's set is another one now

    def check(self, row: int, s_next: int) -> None:
        """Raise the error for a transition to a state that is no candidate, if candidates are known."""
        if self.closed:
            succ, begin = self._counts.succ, int(self._counts.start[row])
            end = begin + int(self._counts.length[row])
            j = bisect_left(succ, s_next, begin, end)
            if j == end or succ[j] != s_next:
                raise self.foreign(row, s_next)

    def foreign(self, row: int, s_next: int) -> GosprlError:
        """The error for a transition to a state that is no candidate."""
        s, a = self.rows.pair(row)
        reset = ", which stands for the reset of a terminal state," if self.terminal[s] else ""
        return GosprlError(
            f"successors: (s, a) = ({s}, {a}){reset} led to state {s_next}, which is not among its candidates "
            f"{_short(self.stored(np.array([row]))[1])}"
        )

    def update(self, s: ArrayLike, a: ArrayLike, s_next: ArrayLike, reward: ArrayLike = 0.0) -> None:
        """Count transitions: numbers, or arrays [n] taken in order."""
        from gosprl import _kernels

        row = np.atleast_1d(self.rows.index(s, a))
        successor = np.atleast_1d(_checks.integers("s_next", s_next, 0, self.num_states, "states")).astype(np.int32)
        if successor.shape != row.shape or row.ndim != 1:
            raise InputError(
                f"s, a, s_next: expected numbers or arrays of one length, got {row.shape}, {successor.shape}"
            )
        rewards = _checks.floats("reward", reward)
        if rewards.ndim and rewards.shape != row.shape:
            raise InputError(f"reward: expected a number or one per transition, got {rewards.shape} for {len(row)}")
        if not np.all(np.isfinite(rewards)):
            raise InputError("reward: expected finite numbers, got nan or inf")
        rewards = np.array(np.broadcast_to(rewards, row.shape), order="C")
        if self.closed:  # before anything is counted
            i = _kernels.first_foreign(self._counts, row, successor)
            if i < len(row):
                raise self.foreign(int(row[i]), int(successor[i]))
        done = 0
        while done < len(row):
            done = _kernels.record_many(self._counts, done, row, successor, rewards)
            if done < len(row):
                self._grow(int(self._counts.length[row[done]]))

    def find(self, s: int) -> None:
        """A walk started from state s, or came to it."""
        if not self.found[s]:
            self.found[s] = True
            self.discovered.append(s)

    def end_in(self, s: int) -> None:
        """State s is terminal: of its rows only the first is left, and stands for the reset."""
        first, last = self.rows.ptr[s], self.rows.ptr[s + 1]
        if self._counts.visits[first:last].any():
            raise self.ends_sometimes(s)
        self.terminal[s] = True
        self.enabled[first + 1 : last] = False

    def ends_sometimes(self, s: int) -> GosprlError:
        """The error for a state that is terminal and is not."""
        return GosprlError(
            f"state {self.states[s]} was entered both with and without termination; what ends an episode must be part "
            "of the state"
        )

    def transitions(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Arrays (s, a, s_next, count) of everything observed, sorted."""
        ptr, succ, count, _ = self.stored()
        row = np.repeat(np.arange(len(self.rows)), np.diff(ptr))
        if self.closed:
            row, succ, count = row[count > 0], succ[count > 0], count[count > 0]
        order = np.lexsort((succ, row))
        row = row[order]
        return self.rows.state[row], self.rows.action[row], succ[order].astype(np.int64), count[order]

    def p_hat(self, s: int, a: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The next states seen from a pair, increasing, and their frequencies; empty if it was never visited."""
        _, succ, count, _ = self.stored(np.atleast_1d(self.rows.index(s, a)))
        succ, count = succ[count > 0], count[count > 0]
        order = np.argsort(succ)
        return succ[order].astype(np.int64), count[order] / max(1, count.sum())

    def dense(self) -> NDArray[np.float64]:
        """p_hat as an array [S, A, S], zeros where nothing was seen; small models only."""
        S, A = self.num_states, self.num_actions
        if S * A * S > DENSE_LIMIT:
            raise InputError(f"dense: {S} x {A} x {S} entries are too many (limit {DENSE_LIMIT}); use transitions()")
        s, a, s_next, count = self.transitions()
        P = np.zeros((S, A, S))
        P[s, a, s_next] = count / self.visits[self.rows.index(s, a)]
        return P

    def mark(self) -> int:
        """The present moment, to ask later what changed since."""
        return self._counts.updates

    def changed(self, mark: int) -> NDArray[np.int64]:
        """The rows whose counts changed since `mark`, last first; costs as many steps as there are."""
        from gosprl import _kernels

        out = np.empty(max(0, min(len(self.rows), self.mark() - mark)), dtype=np.int64)
        return out[: _kernels.changed_since(self._counts, mark, out)]

    def stored(
        self, rows: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """(ptr, succ, count, first) of the given rows (all): successors as they appeared, counts, first visits.

        Of a closed model all candidates, increasing, with zeros for those not yet seen.
        """
        counts = self._counts
        start, length = (counts.start, counts.length) if rows is None else (counts.start[rows], counts.length[rows])
        ptr = np.concatenate([[0], np.cumsum(length)])
        slot = np.repeat(start - ptr[:-1], length) + np.arange(ptr[-1])
        return ptr, counts.succ[slot], counts.number[slot], counts.first[slot]

    @classmethod
    def from_transitions(
        cls,
        s: ArrayLike,
        a: ArrayLike,
        s_next: ArrayLike,
        *,
        states: int,
        actions: ArrayLike,
        rewards: ArrayLike = 0.0,
        successors: Any = None,
    ) -> "EmpiricalModel":
        """From arrays [n] of transitions in the order in which they were observed."""
        model = cls(states, actions, successors)
        model.update(s, a, s_next, rewards)
        return model

    @classmethod
    def from_counts(
        cls,
        s: ArrayLike,
        a: ArrayLike,
        s_next: ArrayLike,
        count: ArrayLike,
        *,
        states: int,
        actions: ArrayLike,
        successors: Any = None,
    ) -> "EmpiricalModel":
        """From COO parts: arrays [n] of triples and how often each was seen (repeated triples add up).

        When a successor was first seen is not known then, so confidence sets that use the order of appearance are a
        little wider than from transitions.
        """
        from gosprl import _kernels

        model = cls(states, actions)
        row = np.atleast_1d(model.rows.index(s, a))
        successor = np.atleast_1d(_checks.integers("s_next", s_next, 0, model.num_states, "states"))
        number = np.atleast_1d(_checks.integers("count", count, 0, None, "numbers of visits"))
        if not row.shape == successor.shape == number.shape or row.ndim != 1:
            shapes = (row.shape, successor.shape, number.shape)
            raise InputError(f"s, a, s_next, count: expected arrays of one length, got shapes {shapes}")
        if number.sum(dtype=float) >= 2.0**62:
            raise InputError(f"count: expected fewer than 2^62 visits in all, got {number.sum(dtype=float):g}")
        row, successor, number = row[number > 0], successor[number > 0], number[number > 0]
        keys, inverse = np.unique(row * model.num_states + successor, return_inverse=True)
        row, successor = np.divmod(keys, model.num_states)
        model._allocate(np.bincount(row, minlength=len(model.rows)))
        counts = model._counts
        counts.length[:] = counts.capacity
        counts.succ[: len(keys)] = successor
        np.add.at(counts.number, inverse, number)
        np.add.at(counts.visits, row, counts.number[: len(keys)])
        _kernels.touch_many(counts, np.unique(row))
        if successors is not None:
            model._close(as_candidates(successors, model.rows))
        return model

    def _allocate(self, capacity: NDArray[np.int64]) -> None:
        """Empty counts with room for `capacity` [R] successors a row."""
        from gosprl._kernels import Counts

        R = len(self.rows)
        pool = max(64, int(capacity.sum()))
        self._counts = Counts(
            visits=np.zeros(R, dtype=np.int64),
            start=np.cumsum(capacity) - capacity,
            length=np.zeros(R, dtype=np.int64),
            capacity=capacity.astype(np.int64),
            succ=np.zeros(pool, dtype=np.int32),
            number=np.zeros(pool, dtype=np.int64),
            first=np.zeros(pool, dtype=np.int64),
            reward_sum=np.zeros(R),
            reward_sq=np.zeros(R),
            time=np.zeros(R, dtype=np.int64),
            newer=np.full(R, -1, dtype=np.int64),
            older=np.full(R, -1, dtype=np.int64),
            scalars=np.array([0, capacity.sum(), -1, 0], dtype=np.int64),
        )

    def _close(self, candidates: Candidates) -> None:
        """Store all candidates, with the counts so far."""
        from gosprl._kernels import CLOSED, USED

        ptr, succ = candidates.ptr, candidates.succ
        number, first = np.zeros((2, len(succ)), dtype=np.int64)
        if self.mark():
            old_ptr, old_succ, old_number, old_first = self.stored()
            old = np.repeat(np.arange(len(self.rows)), np.diff(old_ptr)) * self.num_states + old_succ
            old, old_number, old_first = (part[old_number > 0] for part in (old, old_number, old_first))
            new = np.repeat(np.arange(len(self.rows)), np.diff(ptr)) * self.num_states + succ
            slot = np.minimum(np.searchsorted(new, old), len(new) - 1)
            outside = old[new[slot] != old]
            if outside.size:
                row, s_next = divmod(int(outside.min()), self.num_states)
                s, a = self.rows.pair(row)
                raise InputError(
                    f"successors: the model has seen (s, a, s_next) = ({s}, {a}, {s_next}), which is not among the "
                    f"candidates {_short(succ[ptr[row] : ptr[row + 1]])} of ({s}, {a})"
                )
            number[slot], first[slot] = old_number, old_first
        length = np.diff(ptr)
        self._counts = self._counts._replace(
            start=ptr[:-1].copy(), length=length, capacity=length, succ=succ, number=number, first=first
        )
        self._counts.scalars[[USED, CLOSED]] = len(succ), 1
        self.closed, self.num_candidates = True, len(succ)

    def _grow(self, length: int) -> None:
        """Make the pool larger: at least double, and enough for a row of `length` to double."""
        extra = max(len(self._counts.succ), 4 * length + 64)
        pools = {
            name: np.concatenate([pool, np.zeros(extra, dtype=pool.dtype)])
            for name in ("succ", "number", "first")
            for pool in [getattr(self._counts, name)]
        }
        self._counts = self._counts._replace(**pools)


def _short(states: NDArray[np.int32]) -> str:
    """A list of states to be read by people: a long one is cut."""
    shown = states.tolist()
    return str(shown) if len(shown) <= 10 else f"[{shown[0]}, {shown[1]}, {shown[2]}, ..., {shown[-1]}]"


def _read_only(array: NDArray[T]) -> NDArray[T]:
    view = array.view()
    view.flags.writeable = False
    return view
