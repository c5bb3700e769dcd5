"""Counts from a log: what a collector would have counted, without its planner."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import CRASHED, TERMINATED, TRUNCATED
from gosprl.collecting.record import Record
from gosprl.model.states import CRASH
from gosprl.runs.events import RESET, Columns, is_ended, kinds_of
from gosprl.runs.names import Names


class Counter:
    """Counts the events of a log in a record, in bulk between two discoveries.

    Parameters
    ----------
    record
        Where to count; it must have counted nothing yet.
    names
        What the numbers of states stand for, and what they offered.
    compiled
        Whether the events were made by a compiled walk, which discovers no states.
    breaks
        Numbers of the events at which the walk went on elsewhere: the resets there were not chosen.

    Attributes
    ----------
    events
        Events counted.
    state
        State of the model in which they end; the reset if an episode has just ended, None if it was cut off.
    start
        State in which they begin.
    age
        Steps since the last reset.
    """

    def __init__(self, record: Record, names: Names, compiled: bool, breaks: Iterable[int] = ()) -> None:
        self.record, self._names, self._compiled, self._breaks = record, names, compiled, set(breaks)
        self.events = self.start = self.age = 0
        self.state: int | None = None
        self._ended = True  # whether the last event ended an episode, or there is none
        self._live: dict[int, int] = {}  # state of the model by number in the log
        self._final: dict[int, int] = {}

    def add(self, columns: Columns) -> None:
        """Count the next events."""
        flags, following = columns["flags"], columns["next_state"]
        actions = len(self._names.actions) or self.record.model.num_actions
        if columns["action"].max(initial=-1) >= actions:
            raise ValueError(f"expected actions in 0..{actions - 1}, got {columns['action'].max()}")
        ended = (flags & TERMINATED) > 0
        begin = 0
        for i in self._discoveries(following, ended):
            self._bulk(columns, begin, i)
            self._discover(int(following[i]), bool(ended[i]), bool(flags[i] & CRASHED), self.events)
            begin = i
        self._bulk(columns, begin, len(flags))

    def _discoveries(self, following: NDArray[np.int64], ended: NDArray[np.bool_]) -> Sequence[int]:
        """Return the places where a state is new, or offers other actions than before."""
        if self._compiled:
            return [0] if not self._live else []
        code = following.astype(np.int64) * 2 + ended
        known = [2 * s for s in self._live] + [2 * s + 1 for s in self._final]
        values, first = np.unique(code, return_index=True)
        new = first[~np.isin(values, known)]
        offered = np.array(self._names.offers_between(self.events, self.events + len(code)), dtype=np.int64)
        return sorted({*new.tolist(), *(offered - self.events).tolist()})

    def _discover(self, number: int, ended: bool, crashed: bool, event: int) -> None:
        key: Hashable = CRASH if crashed else self._names.key(number)
        if self.record.model.states.fixed and not crashed and not isinstance(key, int):
            raise ValueError(f"expected a number for state {number}, got {key!r:.80}")
        if ended:
            if number not in self._final:
                self._final[number] = self.record.end_at(key)
        else:
            self._live[number] = self.record.arrive_at(key, self._names.offered(number, event))
            self.start = self._live[number] if event == 0 else self.start

    def _bulk(self, columns: Columns, begin: int, end: int) -> None:
        """Count events whose states are all in the model."""
        if begin == end:
            return
        part = {name: column[begin:end] for name, column in columns.items()}
        if self._compiled and self.record.model.states.reset < 0:
            self._count_plain(part)
        else:
            self._count_all(part)
        self.events += end - begin
        resets = np.flatnonzero(part["flags"] & RESET)
        self.age = end - begin - 1 - int(resets[-1]) if resets.size else self.age + end - begin
        self._ended = is_ended(part["flags"])
        last = int(part["next_state"][-1])
        self.state = last if self._compiled else self._live.get(last)
        if self._ended:
            self.state = self.record.model.states.reset if part["flags"][-1] & TERMINATED else None

    def _count_plain(self, part: Columns) -> None:
        """Count steps of a table: there are no endings, and its resets are no samples."""
        following, states = part["next_state"], self.record.model.num_states
        if following.min() < 0 or following.max() >= states:  # kernels do not check that
            raise ValueError(f"expected states in 0..{states - 1}, got {following.min()} .. {following.max()}")
        steps = (part["flags"] & RESET) == 0
        rows = self.record.model.rows.index(part["state"][steps], part["action"][steps])
        self.record.recount(rows, part["next_state"][steps], part["reward"][steps], np.ones(len(rows), dtype=bool))

    def _count_all(self, part: Columns) -> None:
        """Count steps, endings and resets; a chosen reset is also a sample of the action that chooses it."""
        model = self.record.model
        rows, ptr, reset = model.rows, model.rows.ptr, model.states.reset
        flags = part["flags"]
        model.ended = model.ended or bool(np.any(flags & (TERMINATED | TRUNCATED)))
        kinds = kinds_of(flags, self.events, self._ended, self._breaks)
        is_reset, chosen, ended = kinds.reset, kinds.chosen, (flags & TERMINATED) > 0
        live, final = self._mapped(self._live, part), self._mapped(self._final, part)
        s, s_next = self._mapped(self._live, part, "state"), np.where(ended, final, live)
        first = np.empty(len(flags), dtype=np.int64)  # the row of each event: of a reset, the reset's
        first[~is_reset] = rows.index(s[~is_reset], part["action"][~is_reset])
        first[is_reset] = ptr[reset]
        # an ending is followed by the way to the reset; a chosen reset follows that way
        where = np.concatenate([np.flatnonzero(chosen) - 0.5, np.arange(len(flags)), np.flatnonzero(ended) + 0.5])
        order = np.argsort(where, kind="stable")
        all_rows = np.concatenate([ptr[s[chosen] + 1] - 1, first, ptr[final[ended]]])[order]
        to_reset = np.full(int(chosen.sum()), reset), np.full(int(ended.sum()), reset)
        all_next = np.concatenate([to_reset[0], s_next, to_reset[1]])[order]
        reward = np.concatenate([np.zeros(len(to_reset[0])), part["reward"], np.zeros(len(to_reset[1]))])[order]
        steps = np.concatenate([np.zeros(len(to_reset[0]), bool), ~is_reset, np.zeros(len(to_reset[1]), bool)])[order]
        if reset < 0:
            keep = ~np.concatenate([chosen[chosen], is_reset, ended[ended]])[order]
            all_rows, all_next, reward, steps = all_rows[keep], all_next[keep], reward[keep], steps[keep]
        self.record.recount(all_rows, all_next, reward, steps)
        self.record.quits += int(chosen.sum())
        self.record.resets += int(is_reset.sum()) - (self.events == 0)

    def _mapped(self, table: dict[int, int], part: Columns, name: str = "next_state") -> NDArray[np.int64]:
        """Return the states of the model [n] for numbers of the log [n]; 0 where there is none."""
        values, place = np.unique(part[name], return_inverse=True)
        return np.array([table.get(value, 0) for value in values.tolist()], dtype=np.int64)[place]
