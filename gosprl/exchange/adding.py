"""Add transitions, counts and whole models to the counts of a model."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import UNSAID
from gosprl.model.states import CRASH
from gosprl.systems.base import System

NONE = -1


def count_in_order(
    model: EmpiricalModel, rows: NDArray[np.int64], s_next: NDArray[np.int64], reward: NDArray[np.float64]
) -> None:
    """Count transitions [n] in their order."""
    from gosprl import _kernels

    rows, s_next, reward = np.ascontiguousarray(rows), s_next.astype(np.int32), np.array(reward, order="C")
    done = 0
    while done < len(rows):
        done = _kernels.record_many(model.counts, done, rows, s_next, reward)
        if done < len(rows):
            model.grow(int(model.counts.length[rows[done]]))


def add_counts(
    model: EmpiricalModel,
    rows: NDArray[np.int64],
    s_next: NDArray[np.int64],
    number: NDArray[np.int64],
    first: NDArray[np.int64] | None = None,
) -> None:
    """Add counts of transitions [n], without their rewards.

    Parameters
    ----------
    model
        The model to add to.
    rows, s_next, number
        Rows, successors, and how often each was seen.
    first
        The visit at which each was first seen, among those added, as in `EmpiricalModel.stored`; None: unknown.

    What is negative in rows with unknown places speaks of places, as there.
    """
    from gosprl import _kernels

    if number.sum(dtype=float) + model.visits.sum(dtype=float) >= 2.0**62:
        raise InputError(f"data: expected fewer than 2^62 samples in all, got {number.sum(dtype=float):g}")
    before, hidden = model.visits[rows], _unknown_places(model)[rows]
    if first is None:  # when the last of them was counted
        after = model.visits + np.bincount(rows, weights=number, minlength=len(model.rows)).astype(np.int64)
        seen = -after[rows] - hidden
    else:
        seen = np.where(first == 0, 0, np.where(first > 0, before + first, first - before - hidden))
    rows, s_next, number = rows.astype(np.int64), s_next.astype(np.int32), number.astype(np.int64)
    done = 0
    while done < len(rows):
        done = _kernels.add_many(model.counts, done, rows, s_next, number, seen)
        if done < len(rows):
            model.grow(int(model.counts.length[rows[done]]))


def forget_order(model: EmpiricalModel) -> None:
    """Keep of the order of appearance only that all successors seen so far were seen by now."""
    counts = model.counts
    row = np.repeat(np.arange(len(counts.length)), counts.length)
    ends = np.cumsum(counts.length)
    slot = np.arange(len(row)) + np.repeat(counts.start - (ends - counts.length), counts.length)
    places = counts.visits + _unknown_places(model)
    counts.first[slot] = np.where(counts.number[slot] > 0, -places[row], 0)


def _unknown_places(model: EmpiricalModel) -> NDArray[np.int64]:
    """Return how many outcomes of each row [R] are not known: places without one, and samples in flight."""
    return model.unknown + model.pending if model.unknown.size else np.zeros(len(model.rows), dtype=np.int64)


class ModelTaker:
    """Adds the counts of one model to another.

    Parameters
    ----------
    model, system, rewards
        As in `Beginning.count_into`.
    key_of
        Returns the key that the system has for a key of the other model; None: states are found by observation.
    """

    def __init__(
        self,
        model: EmpiricalModel,
        system: System,
        rewards: tuple[float, float],
        key_of: Callable[[Any], Hashable] | None = None,
    ) -> None:
        self._model, self._rewards, self._key_of = model, rewards, key_of
        self._system = system
        self._plain = system.mdp is not None and model.states.reset < 0  # all states are known, and never end

    def take(self, given: EmpiricalModel) -> None:
        """Add all counts."""
        if given is self._model:
            raise InputError("data: expected another model than that of the run")
        self._check_rewards(given)
        visited = (given.visits > 0) | (_unknown_places(given) > 0)
        state = self._states(given, visited)
        action = self._actions(given)
        model, rows = self._model, given.rows
        kinds = [given.states.kind(i) for i in range(rows.num_states)]
        place = np.full(len(rows), NONE, dtype=np.int64)  # the row here of each row there
        for row in np.flatnonzero(visited).tolist():
            s, a = rows.pair(row)
            here = state[s]
            if kinds[s] != "live":
                place[row] = model.rows.ptr[here] if here >= 0 else NONE
            elif given.certain[row]:
                place[row] = model.rows.ptr[here + 1] - 1 if model.resets == "anytime" else NONE
            else:
                place[row] = self._row(here, action, a, s)
        self._add(given, visited & (place >= 0), place, state)
        model.ended = model.ended or given.ended

    def _row(self, here: int, action: list[int], a: int, s: int) -> int:
        try:
            return int(self._model.rows.index(here, action[a]))
        except InputError as error:
            raise InputError(f"data: the model, state {s}, action {a}: {error}") from None

    def _add(
        self, given: EmpiricalModel, taken: NDArray[np.bool_], place: NDArray[np.int64], state: NDArray[np.int64]
    ) -> None:
        rows = np.flatnonzero(taken)
        ptr, succ, number, first = given.stored(rows)
        row = np.repeat(rows, np.diff(ptr))
        seen = number > 0
        row, succ, number, first = row[seen], succ[seen], number[seen], first[seen]
        if given.closed:  # stored by number, not by appearance
            unknown = np.isin(row, row[first == 0])
            first = np.where(unknown, 0, first)
            order = np.lexsort((first, row))
            row, succ, number, first = row[order], succ[order], number[order], first[order]
        hidden = _unknown_places(given)
        # of rows with unknown places, only that it was at this place or before
        first = np.where((hidden[row] > 0) & (first > 0), -first - hidden[row], first)
        before = self._model.visits + _unknown_places(self._model)
        add_counts(self._model, place[row], state[succ], number, first)
        lost = rows[hidden[rows] > 0]
        if lost.size:  # what was in flight will not come here: its places are unknown, too, and the last ones
            until = np.where(given.pending[lost] > 0, given.visits[lost] + hidden[lost], given.unknown_until[lost])
            self._model.add_unknown_places(place[lost], hidden[lost], before[place[lost]] + until)
        np.add.at(self._model.counts.reward_sum, place[rows], given.reward_sum[rows])
        np.add.at(self._model.counts.reward_sq, place[rows], given.reward_sq[rows])

    def _check_rewards(self, given: EmpiricalModel) -> None:
        low, high = self._rewards
        steps = ~given.certain & ~given.terminal[given.rows.state]
        mean = given.reward_sum[steps] / np.maximum(given.visits[steps], 1)
        mean = np.where(given.visits[steps] > 0, mean, max(low, 0.0))
        if not np.all(np.isfinite(mean) & (mean >= low - 1e-9) & (mean <= high + 1e-9)):
            raise InputError(f"data: the model: expected rewards in [{low:g}, {high:g}], got a mean outside of that")

    def _states(self, given: EmpiricalModel, visited: NDArray[np.bool_]) -> NDArray[np.int64]:
        """[S] the state here of each state there; NONE for those that nothing led to."""
        model, states = self._model, given.states
        used = np.zeros(given.rows.num_states, dtype=bool)
        used[given.rows.state[visited]] = True
        _, succ, number, _ = given.stored(np.flatnonzero(visited))
        used[succ[number > 0]] = True
        if model.states.fixed and states.fixed not in (0, model.states.fixed):
            raise InputError(
                f"data: the model has {states.fixed} states, and the system {model.states.fixed}; expected the same"
            )
        found = np.full(given.rows.num_states, NONE, dtype=np.int64)
        inner = [s for s in given.discovered if used[s]]
        for s in [*inner, *sorted(set(np.flatnonzero(used).tolist()) - set(inner))]:
            kind = states.kind(s)
            try:
                if kind == "reset":
                    found[s] = model.states.reset
                elif kind == "live":
                    key: Any = s if model.states.fixed and states.fixed else self._key(given, s)
                    found[s] = key if self._plain else model.locate(key, UNSAID)
                elif kind in ("final", "crash"):
                    if model.resets == "never":
                        raise InputError("an episode ended, but the system is never reset (resets='never')")
                    found[s] = model.final(CRASH if kind == "crash" else self._key(given, s))
            except GosprlError as error:
                raise InputError(f"data: the model, state {states.name(s)}: {error}") from None
        return found

    def _key(self, given: EmpiricalModel, s: int) -> Hashable:
        states = given.states
        key: Any = self._system.key_of(states[s]) if self._key_of is None else self._key_of(states.key(s))
        fixed = self._model.states.fixed
        return _checks.index("observation", key, fixed, "a state") if fixed else key

    def _actions(self, given: EmpiricalModel) -> list[int]:
        """Return the index here of each action there."""
        count = given.num_actions - (given.resets == "anytime")
        if isinstance(given.actions, range) and given.actions.start == 0 and self._model.all_actions:
            return list(range(count))
        try:
            found = [self._system.action_index(value) for value in given.actions]
        except GosprlError as error:
            raise InputError(f"data: the model: {error}") from None
        if not self._model.all_actions:
            self._model.widen(max(found, default=0) + 1)
        return found
