"""Counts from the log of a fleet: what its collector would have counted, without its planner.

Everything that returned is counted as it stands in the log. Committed samples are counted in the order of issue:
rows are held until all orders issued before are in the log, too. Rows of pairs without an unknown place are counted in
bulk. For the others, a sample is committed with the last event of the samples of its pair up to it, as by the
collector: an outcome that comes after that fills a place (`CommittedModel.fill`), one that comes before does not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import CRASHED, LATE, TERMINATED, TRUNCATED, UNKNOWN
from gosprl.collecting.record import Record
from gosprl.collecting.sharing import assume
from gosprl.fleet.record import FleetRecord
from gosprl.fleet.samples import Result
from gosprl.runs.counting import Counter
from gosprl.runs.events import RESET, Columns
from gosprl.runs.fleet_events import numbers
from gosprl.runs.names import Names
from gosprl.runs.notes import JOINED, Notes

NEW, ALIVE, ENDED, CUT = range(4)  # what the next reset of a walker follows
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Outcome(NamedTuple):
    """An outcome that came late, with the number of its event."""

    event: int
    next_state: int
    reward: float
    flags: int


class Place(NamedTuple):
    """An unknown place of a pair."""

    code: int
    state: int
    action: int
    place: int


class FleetCounter(Counter):
    """Counts the events of a run with legs of fleets, in the record of a fleet.

    Parameters
    ----------
    record, names, compiled, breaks
        As of `Counter`.
    """

    record: FleetRecord

    def __init__(self, record: FleetRecord, names: Names, compiled: bool, breaks: Iterable[int] = ()) -> None:
        super().__init__(record, names, compiled, breaks)
        self._is_fleet, self._is_table, self._independent = False, compiled, False
        self.joined = 0  # walkers
        self._begun = False  # whether a state is known in which everything began
        self._next = 0  # the first order whose row is not committed
        self._held: dict[str, NDArray[Any]] = {}  # rows that wait for earlier orders
        self._after: dict[int, int] = {}  # walker -> ALIVE, ENDED or CUT; NEW if it is not there
        self._crashed: set[int] = set()  # orders given up as crashes
        self._late: dict[int, Outcome] = {}  # by order
        self._last = np.zeros(0, dtype=np.int64)  # by code of a pair: the last event of its samples
        self._with_unknown: set[int] = set()  # codes of pairs
        self._places: dict[int, Place] = {}  # by order
        self._fills: defaultdict[int, list[int]] = defaultdict(list)  # code of a pair -> orders, by the event

    @property
    def beginning(self) -> int | None:
        """The state in which everything began; None if no walker has reported one yet."""
        return self.start if self._begun or (self.events and not self._is_fleet) else None

    def begin_leg(self, leg: Mapping[str, Any]) -> None:
        """Count a leg from here on."""
        self.end_leg()
        fleet = leg.get("fleet")
        self._is_fleet, self._compiled = fleet is not None, self._is_table and fleet is None
        self._independent = fleet is not None and fleet["lost"] == "independent"
        if fleet is not None and fleet.get("lease", 1) > 1:
            assume(self.record.model, "lease")
        self._begun = self._begun or self.events > 0
        self._next, self._after = self.events, {}

    def end_leg(self) -> None:
        """Count what is left of a fleet; `ValueError` if an order is missing."""
        if len(self._held.get("number", ())):
            raise ValueError(f"order {self._next} has no row")
        for code in list(self._fills):
            self._fill_before(code, None)
        self.record.committed.flush()

    def add_noted(self, columns: Columns, notes: Notes | None) -> None:
        """Count the next events of a fleet."""
        self.joined += sum(one.what == JOINED for one in (() if notes is None else notes.events))
        self.add(columns)
        self._release()

    def _discoveries(self, following: NDArray[np.int64], ended: Mask) -> Sequence[int]:
        places = super()._discoveries(following, ended)
        return [i for i in places if following[i] >= 0 or ended[i]] if self._is_fleet else places

    def _bulk(self, columns: Columns, begin: int, end: int) -> None:
        if not self._is_fleet:
            super()._bulk(columns, begin, end)
            return
        if begin == end:
            return
        part = {name: column[begin:end] for name, column in columns.items()}
        part["number"] = numbers(self.events, part)
        part["event"] = np.arange(self.events, self.events + end - begin)
        self._count_returned(part)
        self._hold(part)
        self.events += end - begin
        self.state, self.age = None, 0

    # what returned

    def _count_returned(self, part: Columns) -> None:
        """Count everything that returned; and in both records what is certain, the ways to the reset."""
        record, model, flags = self.record, self.record.model, part["flags"]
        is_step, late = (flags & RESET) == 0, (flags & LATE) > 0
        crashed, unknown = (flags & CRASHED) > 0, (flags & UNKNOWN) > 0
        self._crashed.update(part["number"][~late & unknown & crashed].tolist())
        counts = ~unknown | crashed
        counts[late] &= np.array([self._counts_late(number) for number in part["number"][late].tolist()], dtype=bool)
        rows, s_next = self._transitions(part)
        kept = counts & (rows >= 0)
        model.ended = model.ended or bool(np.any(flags[counts & ~unknown] & (TERMINATED | TRUNCATED)))
        Record.recount(record, rows[kept], s_next[kept], part["reward"][kept], (is_step & ~late)[kept])
        record.steps += int((is_step & ~late & ~counts).sum())  # places without an outcome
        record.lost += int((unknown & ~late).sum())
        if (unknown & crashed & is_step).any():
            assume(model, "state")
        if self._independent and (unknown & ~late & (rows >= 0)).any():
            assume(model, "independent")
        chosen, ended = self._follow(part), counts & ((flags & TERMINATED) > 0)
        if model.states.reset >= 0:
            at = self._mapped(self._live, part, "state")[chosen]
            certain = np.concatenate([model.rows.ptr[at + 1] - 1, model.rows.ptr[s_next[ended]]])
            nothing = np.zeros(len(certain))
            record.recount(certain, np.full(len(certain), model.states.reset), nothing, nothing > 0)

    def _counts_late(self, number: int) -> bool:
        """Whether a late outcome counts: the sample is neither left out nor a crash."""
        return not self._independent and number not in self._crashed

    def _transitions(self, part: Columns) -> tuple[Ints, Ints]:
        """Return (row, next state) of events [n]; row -1: no row is sampled."""
        model, flags = self.record.model, part["flags"]
        is_step, ended = (flags & RESET) == 0, (flags & TERMINATED) > 0
        rows = np.full(len(flags), -1, dtype=np.int64)
        rows[is_step] = model.rows.index(self._mapped(self._live, part, "state")[is_step], part["action"][is_step])
        if model.states.reset >= 0:
            rows[~is_step] = model.rows.ptr[model.states.reset]
        return rows, np.where(ended, self._mapped(self._final, part), self._mapped(self._live, part))

    def _follow(self, part: Columns) -> Mask:
        """Follow the walkers through events [n]; mask of the resets that were chosen, in the middle of an episode."""
        record, anytime = self.record, self.record.model.resets == "anytime"
        chosen = np.zeros(len(part["flags"]), dtype=bool)
        places = np.flatnonzero(part["flags"])  # a step without flags goes on
        for i in places.tolist():
            walker, flags = int(part["walker"][i]), int(part["flags"][i])
            if flags & RESET and not flags & LATE:
                # a new walker may have the number of one that was lost in the middle of an episode: it is nowhere yet
                chosen[i] = anytime and part["state"][i] >= 0 and self._after.get(walker) == ALIVE
                if not flags & UNKNOWN:
                    self._reset(walker)
            if flags & LATE or not flags & (UNKNOWN | RESET):
                ended = flags & (TERMINATED | TRUNCATED)
                of_step = ENDED if flags & TERMINATED and not flags & LATE else CUT
                self._after[walker] = of_step if ended else ALIVE
            if not self._begun and not flags & (UNKNOWN | TERMINATED | TRUNCATED):
                self._begun, self.start = True, self._live[int(part["next_state"][i])]
        record.quits += int(chosen.sum())
        return chosen

    def _reset(self, walker: int) -> None:
        """Follow a reset that a walker reported in time."""
        is_cut = self._after.get(walker, NEW) in (NEW, CUT)
        self.record.resets += self._begun or not is_cut
        self._after[walker] = ALIVE

    # what is committed

    def _hold(self, part: dict[str, NDArray[Any]]) -> None:
        """Keep rows until all orders before theirs are there."""
        late = (part["flags"] & LATE) > 0
        for i in np.flatnonzero(late).tolist():
            number = int(part["number"][i])
            if self._counts_late(number):
                values = (part[name][i].item() for name in ("event", "next_state", "reward", "flags"))
                self._late[number] = Outcome(*values)
                if number in self._places:
                    self._fills[self._places[number].code].append(number)
        part = {name: column[~late] for name, column in part.items()}
        held = self._held
        self._held = {name: np.concatenate([held[name], part[name]]) for name in part} if held else part

    def _release(self) -> None:
        """Commit the held rows before which no order is missing."""
        if not self._held:
            return
        place = np.argsort(self._held["number"], kind="stable")
        held = {name: column[place] for name, column in self._held.items()}
        ready = int((held["number"] == self._next + np.arange(len(place))).cumprod().sum())
        self._held = {name: column[ready:] for name, column in held.items()}
        self._next += ready
        if ready:
            self._commit({name: column[:ready] for name, column in held.items()})

    def _commit(self, part: Columns) -> None:
        """Commit samples [n] that are in the order of issue."""
        flags, actions = part["flags"], self.record.model.num_actions
        code = np.where(
            part["action"] < 0, 0, (part["state"].astype(np.int64) + 1) * (actions + 1) + part["action"] + 1
        )
        if len(self._last) <= code.max():
            self._last = np.append(self._last, np.zeros(int(code.max()) + 1 - len(self._last), dtype=np.int64))
        unknown = ((flags & UNKNOWN) > 0) & ((flags & CRASHED) == 0)
        rows, s_next = self._transitions(part)
        sampled = (rows >= 0) & ~(unknown & self._independent)
        of_data = (rows >= 0) & (self.record.counts.unknown[rows] > 0)  # there may be unknown places before the log
        slow = of_data | np.isin(code, [*self._with_unknown, *code[unknown & sampled].tolist()])
        fast = sampled & ~slow
        self.record.committed.recount(rows[fast], s_next[fast], part["reward"][fast], ((flags & RESET) == 0)[fast])
        np.maximum.at(self._last, code[~slow], part["event"][~slow])
        for i in np.flatnonzero(slow).tolist():
            when = self._last[code[i]] = max(int(self._last[code[i]]), int(part["event"][i]))
            self._fill_before(int(code[i]), int(when))
            if unknown[i]:
                where = int(part["state"][i]), int(part["action"][i])
                self._commit_unknown(int(part["number"][i]), int(code[i]), where, int(when))
            elif sampled[i]:
                self.record.recommit(int(rows[i]), Result(int(s_next[i]), float(part["reward"][i])))

    def _commit_unknown(self, number: int, code: int, where: tuple[int, int], when: int) -> None:
        """Commit a sample that was given up, with event `when`; its outcome may have come before or after that."""
        if self._independent:
            return
        late = self._late.get(number)
        if late is not None and late.event < when:
            self.record.recommit(*self._sample(*where, late))
            return
        place = self.record.recommit(self._row(*where), None)
        self._with_unknown.add(code)
        self._places[number] = Place(code, *where, place)
        if late is not None:
            self._fills[code].append(number)

    def _fill_before(self, code: int, event: int | None) -> None:
        """Fill the places of a pair whose outcomes came before an event; None: all."""
        fills = self._fills.get(code, [])
        while fills and (event is None or self._late[fills[0]].event < event):
            number = fills.pop(0)
            _, state, action, place = self._places[number]
            self.record.recommit(*self._sample(state, action, self._late[number]), place)

    def _row(self, state: int, action: int) -> int:
        model = self.record.model
        if action < 0:
            return int(model.rows.ptr[model.states.reset])
        return int(model.rows.index(self._live[state], action))

    def _sample(self, state: int, action: int, outcome: Outcome) -> tuple[int, Result]:
        table = self._final if outcome.flags & TERMINATED else self._live
        return self._row(state, action), Result(table[outcome.next_state], outcome.reward)
