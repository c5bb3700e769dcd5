"""EmpiricalModel: counts of the transitions observed so far, sparse and growing.

    N(s, a), N(s, a, s')       visits and transitions
    p_hat(s' | s, a)           N(s, a, s') / N(s, a)
    reward_sum, reward_sq      sums of rewards and of their squares, per row

An update costs O(successors of its row), independent of S. Memory is O(stored transitions).
"""

from bisect import bisect_left
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.mdp.rows import ROW_BYTES, Rows
from gosprl.mdp.tabular import MAX_DENSE
from gosprl.model import pool
from gosprl.model.arranged import Arrangement, arrange, rows_of
from gosprl.model.endings import with_endings
from gosprl.model.space import FEW, PLACES, StateSpace
from gosprl.model.successors import Candidates, as_candidates

if TYPE_CHECKING:
    from gosprl._kernels import Counts

T = TypeVar("T", bound=np.generic)

COUNT_BYTES = 82  # memory per row of an empty model: nine counts, a temporary one, two bools


class EmpiricalModel(StateSpace):
    """Counts of observed transitions over known numbers of states and actions.

    Parameters
    ----------
    states
        S, the number of states.
    actions
        A, the number of actions, or a bool mask [S, A] of those that exist.
    successors
        Candidates for the next state of each pair, if they are known: see `restrict`.

    Attributes
    ----------
    rows
        The existing pairs (R of them).
    states
        The observation of each state index.
    closed
        Whether candidates are known. Confidence sets then range over the candidates only, and a transition to any
        other state is an error.
    num_candidates
        The number of transitions (s, a, s_next) that may be possible.
    num_outcomes, num_pairs_bound
        Bounds on the numbers of next states and of pairs, for confidence sets; None: unknown.
    rank
        [S] the place, from 1, in the order of discovery, of each state with rows to learn; read if `num_outcomes` is
        None.
    actions
        What the system takes, by action index.
    enabled
        Mask [R] of the rows that can be taken, as far as is known.
    discovered
        States in which a walk started or arrived, in this order.
    terminal
        Mask [S] of the final states and the reset (`gosprl.model.states`). Only their first row is enabled.
    certain
        Mask [R] of the rows whose outcome is known: they lead to the reset.
    resets
        "never": there are none. "terminal": final states lead to the reset. "anytime": an action of all states does.
    max_states
        A bound on the number of observations that can be discovered; None if there is none.
    aliased
        States that did not always offer the same actions.
    unknown, unknown_until, pending
        Of the samples of a fleet: see `CommittedModel`. Empty elsewhere: no outcome is unknown.
    """

    def __init__(self, states: int | None, actions: ArrayLike, successors: Any = None) -> None:
        fixed = states is not None
        self._begin(Rows.build(FEW if states is None else states, actions, ROW_BYTES + COUNT_BYTES), fixed)
        if successors is not None:
            self._close(as_candidates(successors, self.rows))

    @classmethod
    def over(cls, rows: Rows) -> "EmpiricalModel":
        """Return an empty model over the given rows."""
        _checks.memory(f"rows: counts of {len(rows)} pairs", len(rows) * COUNT_BYTES, "try fewer states or actions")
        model = cls.__new__(cls)
        model._begin(rows, fixed=True)
        return model

    @property
    def returned(self) -> "EmpiricalModel":
        """The model of everything that returned: this one, but for a fleet's committed samples."""
        return self

    @property
    def counts(self) -> "Counts":
        """The arrays that compiled code counts in."""
        return self._counts

    @property
    def visits(self) -> NDArray[np.int64]:
        """N(s, a) of each row [R]; read-only."""
        return _read_only(self._counts.visits)

    @property
    def reward_sum(self) -> NDArray[np.float64]:
        """Sum of the rewards of each row [R]; read-only."""
        return _read_only(self._counts.reward_sum)

    @property
    def reward_sq(self) -> NDArray[np.float64]:
        """Sum of the squared rewards of each row [R]; read-only."""
        return _read_only(self._counts.reward_sq)

    def __repr__(self) -> str:
        """Return the numbers of states, pairs, visits and transitions on one line."""
        seen = np.count_nonzero(self._counts.number) if self.closed else self._counts.length.sum()
        possible = f" of {self.num_candidates} possible" if self.closed else ""
        return (
            f"EmpiricalModel({self.rows.num_states} states, {len(self.rows)} pairs, {self.visits.sum()} visits, "
            f"{seen} transitions{possible})"
        )

    def _repr_html_(self) -> str:
        from gosprl.report.notebook import of_model

        return of_model(self)

    def copy(self) -> "EmpiricalModel":
        """Return a copy that later transitions do not change."""
        other = copy(self)
        other._counts = pool.copied(self._counts)
        other.followers = []
        for name in PLACES:
            setattr(other, name, getattr(self, name).copy())
        other.discovered = self.discovered.copy()
        other.enabled, other.certain, other.terminal = self.enabled.copy(), self.certain.copy(), self.terminal.copy()
        other.is_discovered, other.rank = self.is_discovered.copy(), self.rank.copy()
        other.states, other.aliased, other.actions = self.states.copy(), self.aliased.copy(), self.actions[:]
        return other

    def arrangement(self) -> Arrangement:
        """Return which states and rows a result shows, in which order: live states first."""
        others = [self.states.reset] if self.states.reset >= 0 else []
        return arrange(self.rows, self.states.lives, [*others, *self.states.finals], self.enabled)

    def arranged(self, kept: Arrangement) -> "EmpiricalModel":
        """Return the model with the states and rows that are kept; the model itself if that are all, in this order."""
        states, rows, place = kept
        if len(rows) == len(self.rows) and np.array_equal(states, np.arange(self.rows.num_states)):
            return self
        from gosprl import _kernels

        other = copy(self)
        other.followers = []
        known = self.num_actions if self.all_actions else len(self.actions)  # the rows have room for more
        other.rows = rows_of(self.rows, kept, known)
        other.states = self.states.arranged(states.tolist())
        other.enabled, other.certain = self.enabled[rows], self.certain[rows]
        other.terminal, other.is_discovered = self.terminal[states], self.is_discovered[states]
        other.rank = self.rank[states]
        if self.unknown.size:
            for name in PLACES:
                setattr(other, name, getattr(self, name)[rows])
        other.discovered = place[self.discovered].tolist()
        other.aliased = set(place[list(self.aliased)].tolist())
        ptr, succ, number, first = self.stored(rows)
        length = np.diff(ptr)
        other._counts = counts = pool.empty(length)
        counts.length[:] = length
        counts.succ[: len(succ)], counts.number[: len(succ)], counts.first[: len(succ)] = place[succ], number, first
        counts.scalars[_kernels.CLOSED] = self._counts.scalars[_kernels.CLOSED]
        counts.visits[:] = self._counts.visits[rows]
        counts.reward_sum[:], counts.reward_sq[:] = self._counts.reward_sum[rows], self._counts.reward_sq[rows]
        changed = np.flatnonzero(self._counts.time[rows] > 0)
        _kernels.touch_many(counts, changed[np.argsort(self._counts.time[rows][changed])])
        return other

    def restrict(self, successors: Any) -> None:
        """Restrict the possible next states to candidates; the transitions counted so far must be among them.

        Parameters
        ----------
        successors
            A sparse matrix [S * A, S] with row s * A + a, or [S, S] for all actions of a state, non-zero at candidates;
            a bool array [S, A, S] or [S, S]; a `TabularMDP` with the same states and actions; or a callable
            (s, a) -> next states. Where episodes may end, any candidate may be the end of one.

        Raises
        ------
        InputError
            A pair has no candidate, or a transition counted so far leads to another state.
        """
        from gosprl import _kernels

        if self.growing:
            raise InputError("successors: expected a system whose number of states is known; here they are discovered")
        candidates = as_candidates(successors, self.known_rows)
        if self.resets != "never":
            for key in range(self.states.fixed):
                self.final(key)
            candidates = with_endings(candidates, self.states, self.known_rows, self.rows)
        self._close(candidates)
        self.restricted_to = id(successors)  # not the object: it may be a function, which cannot be pickled
        _kernels.touch_many(self._counts, np.arange(len(self.rows)))  # the confidence set of every row has changed

    def check(self, row: int, s_next: int) -> None:
        """Raise `foreign` if candidates are known and s_next is not one of them."""
        if self.closed:
            succ, begin = self._counts.succ, int(self._counts.start[row])
            end = begin + int(self._counts.length[row])
            j = bisect_left(succ, s_next, begin, end)
            if j == end or succ[j] != s_next:
                raise self.foreign(row, s_next)

    def foreign(self, row: int, s_next: int) -> GosprlError:
        """Return the error for a transition to a state that is not a candidate."""
        s, a = self.rows.pair(row)
        states, (_, succ, _, _) = self.states, self.stored(np.array([row]))
        pair = "the reset" if s == states.reset else f"(s, a) = ({s}, {a})"
        ended = " at the end of an episode" if states.kind(s_next) == "final" else ""
        lives = succ[succ < states.fixed]  # where episodes may end, any of them may be the end of one
        return GosprlError(
            f"successors: {pair} led to state {states.key(s_next)}{ended}, which is not among its candidates "
            f"{_short(lives)}"
        )

    def update(self, s: ArrayLike, a: ArrayLike, s_next: ArrayLike, reward: ArrayLike = 0.0) -> None:
        """Count transitions.

        Parameters
        ----------
        s, a, s_next
            Whole numbers, or arrays [n] of transitions in the order in which they were observed.
        reward
            A number, or an array [n].

        Raises
        ------
        InputError
            An argument is invalid; nothing is counted then.
        GosprlError
            A next state is not among the candidates; nothing is counted then.
        """
        from gosprl import _kernels

        row = np.atleast_1d(self.rows.index(s, a))
        successor = np.atleast_1d(_checks.integers("s_next", s_next, 0, self.rows.num_states, "states")).astype(
            np.int32
        )
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
        if self.closed:  # check all transitions before the first is counted
            i = _kernels.first_foreign(self._counts, row, successor)
            if i < len(row):
                raise self.foreign(int(row[i]), int(successor[i]))
        self.count(row, successor, rewards)

    def count(self, rows: NDArray[np.int64], s_next: NDArray[np.int32], rewards: NDArray[np.float64]) -> None:
        """Count transitions [n] by their rows, unchecked but for candidates."""
        from gosprl import _kernels

        done = 0
        while done < len(rows):
            done = _kernels.record_many(self._counts, done, rows, s_next, rewards)
            if done < len(rows):
                if self.closed:
                    raise self.foreign(int(rows[done]), int(s_next[done]))
                self.grow(int(self._counts.length[rows[done]]))

    def add_unknown_places(self, rows: NDArray[np.int64], number: NDArray[np.int64], until: NDArray[np.int64]) -> None:
        """Let so many more places of `rows` [n] be unknown, in what was there before the run: they stay so.

        Parameters
        ----------
        number, until
            [n] how many, and the last of them.
        """
        if not self.unknown.size:
            for name in PLACES:
                setattr(self, name, np.zeros(len(self.rows), dtype=np.int64))
        self.unknown[rows] += number
        self.unknown_until[rows] = until

    def transitions(
        self, *, resets: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return arrays (s, a, s_next, count), each [n], of the n distinct transitions observed, sorted.

        Parameters
        ----------
        resets
            Whether those to the reset state and from there are among them, which are no steps; see also `starts`.
        """
        ptr, succ, count, _ = self.stored()
        row = np.repeat(np.arange(len(self.rows)), np.diff(ptr))
        taken = count > 0
        if not resets and self.resets != "never":
            taken &= ~(self.certain | self.terminal[self.rows.state])[row]
        row, succ, count = row[taken], succ[taken], count[taken]
        order = np.lexsort((succ, row))
        row = row[order]
        return self.rows.state[row], self.rows.action[row], succ[order].astype(np.int64), count[order]

    def starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the states that resets led to, increasing, and how often: samples of the law of the start."""
        if self.states.reset < 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        _, succ, count, _ = self.stored(self.rows.ptr[self.states.reset : self.states.reset + 1])
        succ, count = succ[count > 0], count[count > 0]
        order = np.argsort(succ)
        return succ[order].astype(np.int64), count[order]

    def p_hat(self, s: int, a: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the next states seen from a pair [n], increasing, and their frequencies [n]; n = 0 before a visit."""
        _, succ, count, _ = self.stored(np.atleast_1d(self.rows.index(s, a)))
        succ, count = succ[count > 0], count[count > 0]
        order = np.argsort(succ)
        return succ[order].astype(np.int64), count[order] / max(1, count.sum())

    def dense(self) -> NDArray[np.float64]:
        """Return p_hat as an array [S, A, S], 0 where nothing was seen; `InputError` above 50 million entries."""
        S, A = self.rows.num_states, self.num_actions
        if S * A * S > MAX_DENSE:
            raise InputError(f"dense: expected at most {MAX_DENSE} entries, got {S} x {A} x {S}; use transitions()")
        s, a, s_next, count = self.transitions(resets=True)
        P = np.zeros((S, A, S))
        P[s, a, s_next] = count / self.visits[self.rows.index(s, a)]
        return P

    def usual_successor(self, row: int) -> int:
        """Return the next state that was seen most often, the first of them; -1 before a visit."""
        begin = int(self._counts.start[row])
        number = self._counts.number[begin : begin + int(self._counts.length[row])]
        i = int(number.argmax()) if len(number) else -1
        return int(self._counts.succ[begin + i]) if i >= 0 and number[i] > 0 else -1

    def mark(self) -> int:
        """Return the number of updates so far, to be passed to `changed` later."""
        return self._counts.updates

    def changed(self, mark: int) -> NDArray[np.int64]:
        """Return the rows whose counts changed since `mark`, the latest first, in time proportional to their number."""
        from gosprl import _kernels

        out = np.empty(max(0, min(len(self.rows), self.mark() - mark)), dtype=np.int64)
        return out[: _kernels.changed_since(self._counts, mark, out)]

    def stored(
        self, rows: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Return (ptr, succ, count, first) of the given rows, by default all.

        The stored successors of the i-th row are `succ[ptr[i] : ptr[i + 1]]` in order of appearance, with their counts
        and the visit at which each was first seen (-m: at visit m or before; 0: unknown). In a closed model all
        candidates are stored, in increasing order, with count 0 if not yet seen. Of rows with unknown places, -m speaks
        of places, and what was first seen at visit n was so at most at as many places more as are unknown.
        """
        return pool.stored(self._counts, rows)

    def surplus(self) -> NDArray[np.int64]:
        """Return how much more often each state [S] was left than reached, by the transitions counted."""
        ptr, succ, count, _ = self.stored()
        net = np.zeros(self.rows.num_states, dtype=np.int64)
        np.add.at(net, np.repeat(self.rows.state, np.diff(ptr)), count)
        np.subtract.at(net, succ, count)
        return net

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
        """Build a model from transitions.

        Parameters
        ----------
        s, a, s_next
            Arrays [n], in the order in which the transitions were observed.
        states, actions, successors
            As in the constructor.
        rewards
            A number, or an array [n].
        """
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
        """Build a model from counts of transitions.

        The order of the transitions is unknown, so confidence sets that use the order of appearance are slightly wider
        than those from `from_transitions`.

        Parameters
        ----------
        s, a, s_next, count
            Arrays [n] of triples, and how often each was observed; repeated triples are added.
        states, actions, successors
            As in the constructor.
        """
        from gosprl import _kernels

        model = cls(states, actions)
        row = np.atleast_1d(model.rows.index(s, a))
        successor = np.atleast_1d(_checks.integers("s_next", s_next, 0, model.rows.num_states, "states"))
        number = np.atleast_1d(_checks.integers("count", count, 0, None, "numbers of visits"))
        if not row.shape == successor.shape == number.shape or row.ndim != 1:
            shapes = (row.shape, successor.shape, number.shape)
            raise InputError(f"s, a, s_next, count: expected arrays of one length, got shapes {shapes}")
        if number.sum(dtype=float) >= 2.0**62:
            raise InputError(f"count: expected fewer than 2^62 visits in all, got {number.sum(dtype=float):g}")
        row, successor, number = row[number > 0], successor[number > 0], number[number > 0]
        keys, inverse = np.unique(row * model.rows.num_states + successor, return_inverse=True)
        row, successor = np.divmod(keys, model.rows.num_states)
        model._counts = counts = pool.empty(np.bincount(row, minlength=len(model.rows)))
        counts.length[:] = counts.capacity
        counts.succ[: len(keys)] = successor
        np.add.at(counts.number, inverse, number)
        np.add.at(counts.visits, row, counts.number[: len(keys)])
        _kernels.touch_many(counts, np.unique(row))
        if successors is not None:
            model._close(as_candidates(successors, model.rows))
        return model

    def _close(self, candidates: Candidates) -> None:
        """Store all candidates of each row, with the counts so far."""
        from gosprl._kernels import CLOSED, USED

        ptr, succ = candidates.ptr, candidates.succ
        number, first = np.zeros((2, len(succ)), dtype=np.int64)
        if self.mark():
            old_ptr, old_succ, old_number, old_first = self.stored()
            old = np.repeat(np.arange(len(self.rows)), np.diff(old_ptr)) * self.rows.num_states + old_succ
            old, old_number, old_first = (part[old_number > 0] for part in (old, old_number, old_first))
            new = np.repeat(np.arange(len(self.rows)), np.diff(ptr)) * self.rows.num_states + succ
            slot = np.minimum(np.searchsorted(new, old), len(new) - 1)
            outside = old[new[slot] != old]
            if outside.size:
                row, s_next = divmod(int(outside.min()), self.rows.num_states)
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
        self.closed = True


def _short(states: NDArray[np.int32]) -> str:
    """Return states as text, abbreviated if there are more than ten."""
    shown = states.tolist()
    return str(shown) if len(shown) <= 10 else f"[{shown[0]}, {shown[1]}, {shown[2]}, ..., {shown[-1]}]"


def _read_only(array: NDArray[T]) -> NDArray[T]:
    view = array.view()
    view.flags.writeable = False
    return view
