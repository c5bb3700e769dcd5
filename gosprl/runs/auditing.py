"""Audit: whether the events of a log can follow each other, in one pass and in little memory.

    the first event is a reset; a reset has action -1 and reward 0
    an event begins in the state in which the last one ended
    an ending or a truncation is followed by a reset; any other reset was chosen, which takes resets="anytime", or
    begins a trajectory that the manifest lists
    numbers of states and actions exist, and a step takes an action that its state offered
    rewards are finite and in the range declared

The events of a fleet follow each other walker by walker (`gosprl.runs.fleet_auditing`).

This uses no model and no planner: it is independent of the code that wrote the log.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import CRASHED, LATE, TERMINATED, TRUNCATED, UNKNOWN
from gosprl.runs.events import RESET, Columns, is_ended, kinds_of
from gosprl.runs.fleet_auditing import FleetAudit, Impossible
from gosprl.runs.fleet_events import batches_of_leg, numbers
from gosprl.runs.manifests import DATA
from gosprl.runs.names import OFFER, STATE
from gosprl.runs.notes import Open
from gosprl.runs.opened import OpenRun

__all__ = ["Audit", "Impossible"]

KINDS = (RESET, 0, TERMINATED, TRUNCATED, TERMINATED | CRASHED)  # the flags that an event can have


class Audit:
    """Reads the events of a run, and counts what they say.

    Parameters
    ----------
    run
        The run; its names must have been read without an error.

    Attributes
    ----------
    events, steps, resets, crashes
        Numbers of the log.
    crashes_before
        Crashes in the data that the run began with.
    visits
        Steps by (number of the state, action), with those of the data that the run began with.
    transitions
        How many different transitions (state, action, next state, flags) there are.
    unknown
        Samples of fleets whose outcomes are unknown, by (number of the state, action); resets have (-1, -1).
    walkers, lost, in_flight
        Of fleets: walkers that joined, orders that were given up, and those open at the end.
    live
        Numbers of the states in which an episode went on, in the order of their first visit; those of data first.
    """

    def __init__(self, run: OpenRun) -> None:
        self._run, self._names = run, run.names
        system = run.manifest["system"]
        self._states: int = run.names.num_states
        self._actions: int = system["actions"] or len(run.names.actions)
        self._exists = None if system["exists"] is None else np.array(system["exists"], dtype=bool)
        self._known_from, self._offers = _known_from(run)
        self._breaks = run.breaks()
        self.events = self.steps = self.resets = self.crashes = self.crashes_before = 0
        self.walkers = self.lost = 0
        self.in_flight: tuple[Open, ...] = ()
        self.visits: Counter[tuple[int, int]] = Counter()
        self.unknown: Counter[tuple[int, int]] = Counter()
        self._seen: set[tuple[int, int, int, int]] = set()
        self.live: dict[int, None] = {}
        self._at, self._ended = -1, True
        self._count_data()

    def _count_data(self) -> None:
        """Begin with the data that the run began with."""
        data, names = self._run.data, self._names
        if data is None or not (names.fixed or names.keys):  # a run has named them before its first event
            return
        numbers = {key: i for i, key in enumerate(names.keys)}

        def number(key: Any) -> int:
            if key is None:  # of a crash
                return -1
            if key not in (range(names.fixed) if names.fixed else numbers):
                raise Impossible(0, f"the log does not know {key!s:.60}, a state of {DATA}")
            return int(key) if names.fixed else numbers[key]

        self.live |= dict.fromkeys(number(key) for key in data.lives(names.fixed))
        for s, a, s_next, ended, n in data.steps(names.fixed, self._actions):
            self.visits[number(s), a] += n
            self.crashes_before += n if s_next is None else 0
            self._seen.add((number(s), a, number(s_next), TERMINATED * ended))
        for s, a, n in data.unknown(names.fixed):
            self.unknown[number(s), a] += n

    @property
    def transitions(self) -> int:
        """How many different transitions there are."""
        return len(self._seen)

    def read(self) -> "Audit":
        """Read the whole log; `Impossible` at the first event that cannot be there, `Damaged` if one cannot be read."""
        legs = self._run.manifest["legs"]
        for leg, following in zip(legs, [*legs[1:], None], strict=True):
            end = self._run.contents.rows if following is None else following["first"]
            if "fleet" in leg:
                self._read_fleet(leg, end, is_last=following is None)
            else:
                self._read_leg(leg["first"], end)
        return self

    def _read_leg(self, begin: int, end: int) -> None:
        """Read the rows of a leg of one walker."""
        for first, columns, notes in self._run.contents.noted(begin) if begin < end else ():
            part = slice(max(0, begin - first), max(0, end - first))
            columns = {name: column[part] for name, column in columns.items()}
            if not len(columns["flags"]):
                continue
            if notes is not None:
                raise Impossible(self.events, "there is one walker, and its batch speaks of a fleet")
            self._read(columns)

    def _read_fleet(self, leg: Mapping[str, Any], end: int, is_last: bool) -> None:
        """Read the rows of a leg of a fleet."""
        fleet = FleetAudit(leg)
        try:
            for first, columns, notes in batches_of_leg(self._run.contents, leg["first"], end):
                counts, previous = fleet.read(first, columns, notes)
                with_outcome = columns["next_state"] >= 0
                self._check_numbers(columns)
                self._check_offers(columns, previous)
                self._check_rewards(columns)
                self._count_fleet(columns, counts, with_outcome)
            if not is_last:
                fleet.end(end)
        finally:
            self.walkers, self.lost = self.walkers + fleet.joined, self.lost + fleet.lost
        self.unknown.update(fleet.unknown)
        self._at, self._ended, self.in_flight = -1, True, fleet.in_flight
        if self.in_flight:
            self._leave_out_waiting(leg["first"], end)

    def _count_fleet(self, columns: Columns, counts: NDArray[np.bool_], with_outcome: NDArray[np.bool_]) -> None:
        flags, following = columns["flags"], columns["next_state"]
        is_reset, late = (flags & RESET) > 0, (flags & LATE) > 0
        self.steps += int((~is_reset & ~late).sum())
        self.resets += int((is_reset & ~late & ((flags & UNKNOWN) == 0)).sum())
        self.crashes += int((counts & ((flags & CRASHED) > 0)).sum())
        steps = {name: column[counts & ~is_reset] for name, column in columns.items()}
        for (s, a, s_next, kind), n in self._different(steps):
            self.visits[s, a] += n
            self._seen.add((s, a, s_next, kind & TERMINATED))
        self._discover(following[with_outcome & ((flags & TERMINATED) == 0)])
        self.events += len(flags)

    def _leave_out_waiting(self, begin: int, end: int) -> None:
        """Leave out samples that were issued after one of their pair that is in flight: they are not committed."""
        earliest: dict[tuple[int, int], int] = {}
        for order in self.in_flight:
            earliest.setdefault((order.state if order.action >= 0 else -1, order.action), order.number)
        waiting: dict[tuple[int, int, int], int] = {}  # (state, action, order) -> flags of its last row
        for first, columns, _ in batches_of_leg(self._run.contents, begin, end):
            number = numbers(first, columns)
            for (s, a), least in earliest.items():
                there = ((columns["state"] == s) | (a < 0)) & (columns["action"] == a) & (number > least)
                flags = columns["flags"][there].tolist()
                waiting |= {(s, a, n): kind for n, kind in zip(number[there].tolist(), flags, strict=True)}
        for (s, a, _), kind in waiting.items():
            if kind & UNKNOWN and not kind & CRASHED:
                self.unknown[s, a] -= self.unknown[s, a] > 0
            elif a >= 0:
                self.visits[s, a] -= 1
                self.crashes -= (kind & CRASHED) > 0

    def _read(self, columns: Columns) -> None:
        self._check_kinds(columns)
        self._check_order(columns)
        self._check_numbers(columns)
        self._check_offers(columns)
        self._check_rewards(columns)
        self._count(columns)

    def _refuse(self, wrong: NDArray[np.bool_], what: str) -> None:
        """Raise if any event of the batch is wrong."""
        if wrong.any():
            raise Impossible(self.events + int(np.argmax(wrong)), what)

    def _check_kinds(self, columns: Columns) -> None:
        flags, is_reset = columns["flags"], (columns["flags"] & RESET) > 0
        self._refuse(~np.isin(flags, KINDS), "its flags say what no event is")
        self._refuse(is_reset != (columns["action"] == -1), "a reset has action -1, and nothing else has")
        self._refuse(is_reset & (columns["reward"] != 0), "a reset has no reward")
        self._refuse((columns["walker"] != 0) | (columns["order"] != 0), "there is one walker, and order is 0")

    def _check_order(self, columns: Columns) -> None:
        flags, number = columns["flags"], np.arange(self.events, self.events + len(columns["flags"]))
        kinds = kinds_of(flags, self.events, self._ended, self._breaks)
        before = np.append(self._at, columns["next_state"][:-1])
        self._refuse(columns["state"] != before, "it does not begin where the event before it ended")
        self._refuse(kinds.after_ending & ~kinds.reset, "an episode had ended, and no reset follows")
        self._refuse(
            kinds.elsewhere & ~kinds.reset, "the manifest says that a new trajectory begins here, and it is no reset"
        )
        self._refuse(kinds.chosen & ~self._may_choose(number), "a reset that nothing allows")

    def _may_choose(self, number: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mask [n] of the events at which a reset is an action."""
        legs = self._run.manifest["legs"]
        anytime = np.array([leg["around"]["resets"] == "anytime" for leg in legs])
        leg = np.searchsorted([leg["first"] for leg in legs], number, side="right") - 1
        return anytime[leg]

    def _check_numbers(self, columns: Columns) -> None:
        flags, state, action, following = (columns[name] for name in ("flags", "state", "action", "next_state"))
        steps, crash = (flags & RESET) == 0, (flags & (CRASHED | UNKNOWN)) > 0  # or nobody knows
        self._refuse(crash != (following == -1), "a crash leads to state -1, and nothing else does")
        self._refuse((following < -1) | (following >= self._states), f"there are {self._states} states")
        self._refuse(steps & ((action < 0) | (action >= self._actions)), f"there are {self._actions} actions")
        if self._exists is not None:
            there = self._exists[np.where(steps, state, 0), np.where(steps, action, 0)]
            self._refuse(steps & ~there, "its state has no such action")
        if self._known_from is not None:
            number = np.arange(self.events, self.events + len(flags))
            named = self._known_from[np.where(crash, 0, following)] <= number
            self._refuse(~crash & ~named, "states.arrow names its next state only later")

    def _check_offers(self, columns: Columns, before: NDArray[np.int64] | None = None) -> None:
        """Compare each step with what its state offered when the event before led there, by default the last one."""
        before = np.arange(self.events - 1, self.events + len(columns["flags"]) - 1) if before is None else before
        for number, (events, offers) in self._offers.items():
            places = np.flatnonzero((columns["state"] == number) & ((columns["flags"] & RESET) == 0))
            last = np.searchsorted(events, before[places], side="right") - 1
            for place in np.unique(last[last >= 0]).tolist():
                offered = offers[place]
                if offered is not None:
                    wrong = np.zeros(len(columns["flags"]), dtype=bool)
                    at = places[last == place]
                    wrong[at] = ~np.isin(columns["action"][at], offered)
                    self._refuse(wrong, f"its state offered the actions {list(offered)!r:.60} only")

    def _check_rewards(self, columns: Columns) -> None:
        reward = columns["reward"]
        self._refuse(~np.isfinite(reward), "its reward is no finite number")
        number = np.arange(self.events, self.events + len(reward))
        for leg in self._run.manifest["legs"]:
            if leg["rewards"] is not None:
                low, high = leg["rewards"]
                outside = (number >= leg["first"]) & ((reward < low) | (reward > high))
                self._refuse(outside, f"its reward is not in [{low:g}, {high:g}]")

    def _count(self, columns: Columns) -> None:
        flags, following = columns["flags"], columns["next_state"]
        is_reset = (flags & RESET) > 0
        self.steps += int((~is_reset).sum())
        self.resets += int(is_reset.sum())
        self.crashes += int(((flags & CRASHED) > 0).sum())
        for (s, a, s_next, kind), n in self._different({name: column[~is_reset] for name, column in columns.items()}):
            self.visits[s, a] += n
            self._seen.add((s, a, s_next, kind & TERMINATED))
        self._discover(following[(flags & TERMINATED) == 0])
        self.events += len(flags)
        self._at, self._ended = int(following[-1]), is_ended(flags)

    def _discover(self, alive: NDArray[np.int64]) -> None:
        values, first = np.unique(alive, return_index=True)
        self.live |= dict.fromkeys(values[np.argsort(first)].tolist())

    def _different(self, steps: Columns) -> Iterator[tuple[tuple[int, int, int, int], int]]:
        """Return the different steps of a batch (state, action, next state, flags), and how many there are of each."""
        pair = steps["state"].astype(np.int64) * max(1, self._actions) + steps["action"]
        pair = np.unique(pair, return_inverse=True)[1]  # below the rows of a batch: the next product has room
        code = (pair * (self._states + 1) + steps["next_state"] + 1) * 64 + steps["flags"]
        _, first, number = np.unique(code, return_index=True, return_counts=True)
        columns = (steps[name][first].tolist() for name in ("state", "action", "next_state", "flags"))
        yield from zip(zip(*columns, strict=True), number.tolist(), strict=True)

    def counts(self, shape: tuple[int, int]) -> Mapping[tuple[int, int], int] | None:
        """Return the visits by index in a result, (state, action); None if they do not fit the shape.

        States known beforehand keep their numbers, others are numbered in the order in which they were discovered.
        """
        place = range(self._names.fixed) if self._names.fixed else {number: i for i, number in enumerate(self.live)}
        found = {(place[s], a): n for (s, a), n in self.visits.items()}
        return found if all(s < shape[0] and a < shape[1] for s, a in found) else None


def _known_from(run: OpenRun) -> tuple[NDArray[np.int64] | None, dict[int, tuple[NDArray[np.int64], list[Any]]]]:
    """Return from which event on each state has a name [S] (None: always), and what states offered from when on."""
    named: list[int] = []
    offers: dict[int, tuple[list[int], list[Sequence[int] | None]]] = {}
    for entry in run.contents.names():
        if entry.kind == STATE:
            named.append(entry.event)
        elif entry.kind == OFFER:
            events, actions = offers.setdefault(entry.index, ([], []))
            events.append(entry.event)
            actions.append(entry.actions)
    known = None if run.names.fixed else np.array(named, dtype=np.int64)
    return known, {number: (np.array(events), actions) for number, (events, actions) in offers.items()}
