"""Taker: counts the rows of a source into a model, as a run would have counted them."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import GosprlError, InputError
from gosprl.exchange.adding import add_counts, count_in_order
from gosprl.exchange.columns import INDEX, KEY, NUMBER, RAW, SHOWN, TEXT, VALUE, Batch, Values
from gosprl.exchange.decoding import Allowance
from gosprl.exchange.fingerprint import Fingerprint
from gosprl.exchange.meanings import meanings
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import UNSAID
from gosprl.model.states import CRASH
from gosprl.systems.base import System

NONE = -1


class Taker:
    """Counts one source into a model; `allowance` bounds what the source may make it hold."""

    def __init__(
        self,
        model: EmpiricalModel,
        system: System,
        rewards: tuple[float, float],
        in_order: bool = True,
        allowance: Allowance | None = None,
    ) -> None:
        self._model, self._system, self._rewards, self._in_order = model, system, rewards, in_order
        self._allowance = Allowance("", None) if allowance is None else allowance
        self._plain = system.mdp is not None and model.states.reset < 0  # all states are known, and never end
        fixed = model.states.fixed
        self._keys: list[Hashable] = [CRASH, *range(fixed)]  # by id
        self._ids: dict[tuple[str, Hashable], int] = {}
        self._id_of_key: dict[Hashable, int] = {key: i for i, key in enumerate(self._keys)}
        self._states = np.full(2 * fixed + 16, NONE, dtype=np.int64)  # [2 id + (final)] state of the model
        if self._plain:
            self._states[2 : 2 * fixed + 2 : 2] = np.arange(fixed)
        self.content = Fingerprint()
        self._ended: dict[int, int] = {}  # walker -> how its last row ended: 0 not at all, 1 cut off, 2 terminated

    def take(self, batch: Batch) -> None:
        """Count the rows of a batch."""
        flags = batch.flags
        if not len(batch.reward):
            return
        if batch.count is not None and not batch.count.all():
            batch = _without_zeros(batch)
            return self.take(batch)
        reset, crash = flags["reset"], flags["crash"]
        ended = flags["terminated"] | crash
        self._check(batch, ended)
        after = self._after_ending(batch, reset, ended)
        action = self._action_indices(batch, reset)
        s_id = self._ids_of(batch, batch.state, ~reset)
        next_id = self._ids_of(batch, batch.next_state, ~crash)
        next_id[crash] = 0
        self._discover(batch, s_id, next_id, ended, reset)
        s, s_next = self._states[2 * np.maximum(s_id, 0)], self._states[2 * next_id + ended]
        self._count(batch, s, action, s_next, s_id >= 0, after, ended)
        self._note_content(batch, s_id, action, next_id)

    def _note_content(
        self, batch: Batch, s_id: NDArray[np.int64], action: NDArray[np.int64], next_id: NDArray[np.int64]
    ) -> None:
        """Take the rows into the digest of the source."""
        flags, keys, fixed = batch.flags, self._keys, self._model.states.fixed
        reset = flags["reset"]
        begin = self.content.marks(np.where(reset, 0, s_id), keys, fixed)  # 0 stands for no state
        end = self.content.marks(next_id, keys, fixed)
        bits = reset + 2 * (flags["terminated"] | flags["crash"]) + 4 * flags["truncated"]
        number = np.ones(len(reset), dtype=np.int64) if batch.count is None else batch.count.astype(np.int64)
        reward = np.where(reset, 0.0, batch.reward) + 0.0  # of -0.0, too
        self.content.add(begin, action, end, reward, bits.astype(np.int64), number)

    def _check(self, batch: Batch, ended: NDArray[np.bool_]) -> None:
        if self._model.resets == "never" and ended.any():
            what = "an episode ended, but the system is never reset (resets='never')"
            raise batch.wrong(int(np.argmax(ended)), "terminated", what)
        low, high = self._rewards
        outside = ~((batch.reward >= low) & (batch.reward <= high)) & ~batch.flags["reset"]
        if outside.any():
            row = int(np.argmax(outside))
            raise batch.wrong(row, "reward", f"expected a number in [{low:g}, {high:g}], got {batch.reward[row]}")

    def _after_ending(self, batch: Batch, reset: NDArray[np.bool_], ended: NDArray[np.bool_]) -> NDArray[np.int64]:
        """[n] how the row before ended, of the same walker: NONE if there is none, 0 not at all, 1 cut off, 2 ended.

        Where rows have no order, every reset is one after an ending: whether any was chosen is not known.
        """
        if not self._in_order or batch.count is not None:
            return np.full(len(reset), 2)
        how = np.where(ended, 2, np.where(batch.flags["truncated"], 1, 0))
        before = np.empty(len(how), dtype=np.int64)
        for walker in np.unique(batch.walker).tolist():
            rows = np.flatnonzero(batch.walker == walker)
            before[rows] = np.append(self._ended.get(walker, NONE), how[rows[:-1]])
            self._ended[walker] = int(how[rows[-1]])
        beyond = (before == 2) & ~reset
        if batch.resets_told and beyond.any():
            what = "a transition out of a terminal state: the row before ended an episode, and no reset followed"
            raise batch.wrong(int(np.argmax(beyond)), batch.state.name, what)
        return before

    def _action_indices(self, batch: Batch, reset: NDArray[np.bool_]) -> NDArray[np.int64]:
        """[n] indices of actions; 0 for resets."""
        model, given = self._model, batch.action
        known = model.all_actions
        codes = np.where(reset, NONE, given.codes)
        if given.form == INDEX and known:
            count = model.num_actions - (model.resets == "anytime")
            wrong = ~reset & ((codes < 0) | (codes >= count))
            if wrong.any():
                row = int(np.argmax(wrong))
                raise batch.wrong(row, given.name, f"expected the index of an action, 0..{count - 1}, got {codes[row]}")
            return np.where(reset, 0, codes)
        if given.form == INDEX:  # only a function of the user's own knows the actions: their values
            values, places = np.unique(codes, return_inverse=True)
            given = Values(places.ravel(), values.tolist(), VALUE, given.name)
            codes = np.where(reset, NONE, given.codes)
        assert given.values is not None
        index = np.full(len(given.values) + 1, NONE, dtype=np.int64)
        for code, row in _first_rows(codes, ~reset):
            if code < 0:
                raise batch.wrong(row, given.name, "expected an action, got nothing")
            index[code] = self._action(batch, row, given, given.values[code])
        if not known:
            model.widen(int(index.max(initial=0)) + 1)
        return np.where(reset, 0, index[codes])

    def _action(self, batch: Batch, row: int, given: Values, value: Any) -> int:
        options = meanings(value) if given.form == TEXT else [value]
        for option in options:
            try:
                return self._system.action_index(option)
            except GosprlError as error:
                last = error
        raise batch.wrong(row, given.name, f"{last}") from None

    def _ids_of(self, batch: Batch, given: Values, needed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """[n] numbers of observations; NONE where there is none, and none is needed."""
        missing = needed & (given.codes < 0) if given.values is not None or given.form == NUMBER else ~needed & False
        if missing.any():
            row = int(np.argmax(missing))
            what = "nothing" if given.values is not None else given.codes[row]
            raise batch.wrong(row, given.name, f"expected {_called(given.form)}, got {what}")
        if given.values is None:
            return self._numbered(batch, given, needed)
        ids = np.full(len(given.values) + 1, NONE, dtype=np.int64)
        for code, row in _first_rows(given.codes, needed & (given.codes >= 0)):
            ids[code] = self._id(batch, row, given, given.values[code])
        return ids[given.codes]

    def _numbered(self, batch: Batch, given: Values, needed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the ids of states that are given by number."""
        fixed = self._model.states.fixed
        if not fixed:
            raise batch.wrong(
                0,
                given.name,
                "the system has no numbers for its states, since they are discovered; give their observations, in the "
                "columns observation and next_observation",
            )
        wrong = needed & (given.codes >= fixed)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise batch.wrong(row, given.name, f"expected a state in 0..{fixed - 1}, got {given.codes[row]}")
        return np.where(needed, given.codes + 1, NONE)

    def _id(self, batch: Batch, row: int, given: Values, value: Any) -> int:
        memo = (given.form, value) if type(value) in (int, str) else None
        if memo is not None and memo in self._ids:
            return self._ids[memo]
        if isinstance(value, str):
            self._allowance.text(len(value))
        try:
            key = self._key(given.form, value)
        except GosprlError as error:
            raise batch.wrong(row, given.name, str(error)) from None
        found = self._id_for(key)
        if memo is not None:
            self._ids[memo] = found
        return found

    def _id_for(self, key: Hashable) -> int:
        found = self._id_of_key.setdefault(key, len(self._keys))
        if found == len(self._keys):
            self._allowance.state()
            self._keys.append(key)
            if 2 * found + 1 >= len(self._states):
                self._states = np.append(self._states, np.full(len(self._states), NONE))
        return found

    def _key(self, form: str, value: Any) -> Hashable:
        """Return the key that the system has for an observation."""
        fixed = self._model.states.fixed
        if form == KEY:
            return value  # type: ignore[no-any-return]
        if form == TEXT:
            return self._key_of_text(value)
        if form == RAW:
            return self._checked(self._system.observed_key(value))
        if form == SHOWN and fixed:
            return self._checked(value)
        return self._checked(self._system.key_of(value))

    def _checked(self, key: Any) -> Hashable:
        fixed = self._model.states.fixed
        if fixed:
            return _checks.index("observation", key, fixed, "a state")
        return key  # type: ignore[no-any-return]

    def _key_of_text(self, text: str) -> Hashable:
        """Return the key of an observation that is written as text: the first meaning that the system knows."""
        found, last = [], None
        for option in meanings(text):
            try:
                found.append(self._checked(self._system.key_of(option)))
            except GosprlError as error:
                last = last or error
        if not found:
            assert last is not None
            raise last
        states = self._model.states
        if states.fixed:
            return found[0]
        return next((key for key in found if states.live(key) >= 0 or states.final(key) >= 0), found[0])

    def _discover(
        self,
        batch: Batch,
        s_id: NDArray[np.int64],
        next_id: NDArray[np.int64],
        ended: NDArray[np.bool_],
        reset: NDArray[np.bool_],
    ) -> None:
        """Add the states that are new, in the order in which the rows have them."""
        places = np.empty(2 * len(s_id), dtype=np.int64)
        places[0::2], places[1::2] = np.where(reset, 2 * next_id, 2 * s_id), 2 * next_id + ended
        new = np.flatnonzero(self._states[places] < 0)
        values, first = np.unique(places[new], return_index=True)
        for i in np.argsort(first, kind="stable").tolist():
            place, row = int(values[i]), int(new[first[i]]) // 2
            key = self._keys[place // 2]
            try:
                model = self._model
                self._states[place] = model.final(key) if place % 2 else model.locate(key, UNSAID)
            except GosprlError as error:
                raise batch.wrong(row, batch.next_state.name, str(error)) from None

    def _count(
        self,
        batch: Batch,
        s: NDArray[np.int64],
        action: NDArray[np.int64],
        s_next: NDArray[np.int64],
        has_state: NDArray[np.bool_],
        before: NDArray[np.int64],
        ended: NDArray[np.bool_],
    ) -> None:
        """Count steps, endings and resets as a run does; a chosen reset is a sample of its action, too."""
        model, is_reset = self._model, batch.flags["reset"]
        model.ended = model.ended or bool(ended.any() or batch.flags["truncated"].any())
        ptr, reset = model.rows.ptr, model.states.reset
        steps = ~is_reset
        elsewhere = is_reset & (before == NONE)
        if batch.elsewhere is not None:
            elsewhere |= is_reset & batch.elsewhere
        chosen = is_reset & (before == 0) & ~elsewhere & has_state
        if model.resets != "anytime":
            chosen = np.zeros_like(chosen)
        main = np.zeros(len(s), dtype=np.int64)
        main[steps] = self._rows(batch, s, action, steps)
        kept = steps.copy()
        if reset >= 0:
            main[is_reset], kept = ptr[reset], np.ones_like(kept)
        where = np.concatenate([np.flatnonzero(chosen) - 0.5, np.flatnonzero(kept), np.flatnonzero(ended) + 0.5])
        order = np.argsort(where, kind="stable")
        all_rows = np.concatenate([ptr[s[chosen] + 1] - 1, main[kept], ptr[s_next[ended]]])[order]
        all_next = np.concatenate([np.full(int(chosen.sum()), reset), s_next[kept], np.full(int(ended.sum()), reset)])[
            order
        ]
        reward = np.concatenate([np.zeros(int(chosen.sum())), batch.reward[kept], np.zeros(int(ended.sum()))])[order]
        if batch.count is None:
            count_in_order(model, all_rows, all_next, reward)
            return
        number = np.concatenate([batch.count[chosen], batch.count[kept], batch.count[ended]])[order]
        add_counts(model, all_rows, all_next, number)
        np.add.at(model.counts.reward_sum, all_rows, reward * number)
        np.add.at(model.counts.reward_sq, all_rows, reward * reward * number)

    def _rows(
        self, batch: Batch, s: NDArray[np.int64], action: NDArray[np.int64], steps: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        rows = self._model.rows
        try:
            return rows.index(s[steps], action[steps])
        except InputError:
            for row in np.flatnonzero(steps).tolist():
                try:
                    rows.index(s[row], action[row])
                except InputError as error:
                    raise batch.wrong(row, batch.action.name, str(error).partition(": ")[2]) from None
            raise


def _first_rows(codes: NDArray[np.int64], among: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the different codes among some rows, and the first row of each: errors name it."""
    rows = np.flatnonzero(among)
    values, first = np.unique(codes[rows], return_index=True)
    return list(zip(values.tolist(), rows[first].tolist(), strict=True))


def _called(form: str) -> str:
    return "the number of a state" if form == NUMBER else "an observation"


def _without_zeros(batch: Batch) -> Batch:
    """Return the rows of a batch that stand for samples."""
    assert batch.count is not None
    kept = batch.count > 0
    return replace(
        batch,
        state=batch.state._replace(codes=batch.state.codes[kept]),
        action=batch.action._replace(codes=batch.action.codes[kept]),
        next_state=batch.next_state._replace(codes=batch.next_state.codes[kept]),
        reward=batch.reward[kept],
        flags={name: flag[kept] for name, flag in batch.flags.items()},
        walker=batch.walker[kept],
        count=batch.count[kept],
    )
