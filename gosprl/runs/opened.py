"""OpenRun: a run on disk that was read and checked; and how a collector is put where its log ends."""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from gosprl.collecting.collector import Collector
from gosprl.collecting.journal import CRASHED, LATE, TERMINATED, TRUNCATED
from gosprl.collecting.record import Record
from gosprl.collecting.streams import entropy_of
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.record import FleetRecord
from gosprl.runs.begun import KeptData
from gosprl.runs.beside import Beside
from gosprl.runs.counting import Counter
from gosprl.runs.events import RESET, is_ended, kinds_of
from gosprl.runs.files import Damaged, read_json
from gosprl.runs.fleet_counting import FleetCounter
from gosprl.runs.fleet_legs import count_legs, replay
from gosprl.runs.journal import SYSTEM_STATE, DiskJournal
from gosprl.runs.manifests import CHECKPOINTS, ENDING, EXACT, MANIFEST, NEW_TRAJECTORY, NOTHING, no_run, read_manifest
from gosprl.runs.names import Names
from gosprl.runs.notes import Open
from gosprl.runs.places import Place
from gosprl.runs.playback import Comparison, Cursor, Differs, Recorded
from gosprl.runs.reading import Contents, read_log
from gosprl.systems.base import Start, System
from gosprl.systems.tabular import Tabular

FORGED = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)  # from a stranger's values
SYSTEM_STREAM = 1  # spawn key of the system's random numbers; later trajectories have 2, 3, ...


@dataclass
class Totals:
    """Totals over the events of a log."""

    steps: int = 0
    resets: int = 0
    chosen: int = 0  # resets that the planner chose
    crashes: int = 0
    last_state: int = -1
    ended: bool = True  # whether the last event ended an episode, or there is none


class OpenRun:
    """A run that was read.

    Parameters
    ----------
    directory
        Where it is.
    manifest
        What it is.
    contents
        Its log, verified.
    beside
        What stands beside the log; None: it is read when it is asked for.
    """

    def __init__(
        self, directory: Place, manifest: dict[str, Any], contents: Contents, beside: Beside | None = None
    ) -> None:
        self.directory, self.manifest, self.contents, self._beside = directory, manifest, contents, beside

    @classmethod
    def read(cls, directory: Place) -> "OpenRun":
        """Read a run; `Damaged` if that is not possible at all, `InputError` if it is none, or of a newer format."""
        if not (directory / MANIFEST).is_file():
            raise no_run(directory)
        return cls.of(directory, read_manifest(directory))

    @classmethod
    def of(cls, directory: Place, manifest: dict[str, Any]) -> "OpenRun":
        """Read the rest of a run with this manifest."""
        beside = Beside.read(directory, manifest["run"])  # before the log, which may grow meanwhile
        return cls(directory, manifest, read_log(directory, manifest["run"]), beside)

    @property
    def beside(self) -> Beside:
        """What stands beside the log."""
        return Beside.read(self.directory, self.manifest["run"]) if self._beside is None else self._beside

    @property
    def path(self) -> Path:
        """Its path, also where the directory is held."""
        return Path(str(self.directory))

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.manifest["seed"])

    @property
    def is_table(self) -> bool:
        """Whether a simulated table was walked."""
        return bool(self.manifest["system"]["kind"] == "table")

    @property
    def has_fleet(self) -> bool:
        """Whether walkers of a fleet made a part of the run."""
        return any("fleet" in leg for leg in self.manifest["legs"])

    @cached_property
    def in_flight(self) -> tuple[Open, ...]:
        """The orders of a fleet that were open when the last batch was written."""
        notes = self.contents.last_notes() if self.has_fleet else None
        return () if notes is None else notes.in_flight

    @property
    def next_row(self) -> int:
        """The number of rows, once what was in flight is given up: there the next leg begins."""
        return self.contents.rows + len(self.in_flight)

    @cached_property
    def names(self) -> Names:
        """What the numbers of the log stand for."""
        try:
            described = self.manifest["system"]
            names = Names(described["states"] or 0, self.contents.names(), described.get("observations"))
            names.always_offers = described["actions"] is None
            names.check_offers(described["actions"] or len(names.actions))
            return names
        except ValueError as error:
            raise Damaged("states.arrow", None, str(error)) from None

    @cached_property
    def data(self) -> KeptData | None:
        """The data that the run began with; None if there are none."""
        return KeptData.read(self.directory, self.manifest) if "data" in self.manifest else None

    @cached_property
    def totals(self) -> Totals:
        """Totals of the whole log."""
        return self._totals(self.contents.rows)

    def _totals(self, end: int) -> Totals:
        """Return totals of the first `end` events."""
        totals, event = Totals(), 0
        for columns in self.contents.batches(0, end):
            flags = columns["flags"]
            kinds = kinds_of(flags, event, totals.ended, self.breaks())
            totals.steps += int((~kinds.reset & ((flags & LATE) == 0)).sum())
            totals.resets += int(kinds.reset.sum())
            totals.chosen += int(kinds.chosen.sum())
            totals.crashes += int(((flags & CRASHED) > 0).sum())
            totals.last_state, totals.ended = int(columns["next_state"][-1]), is_ended(flags)
            event += len(flags)
        return totals

    @property
    def steps(self) -> int:
        """Steps in the log."""
        return self.totals.steps

    @property
    def last_state(self) -> int:
        """Number of the state in which the log ends; -1 if it is empty."""
        return self.totals.last_state

    def breaks(self) -> list[int]:
        """Return the numbers of the events at which another trajectory began."""
        return [entry["event"] for entry in self.manifest["continued"] if entry["how"] == NEW_TRAJECTORY]

    def seed_of_leg(self, leg: int = -1) -> int:
        """Return the seed of the collector of a leg: that of the run for the first, others are derived from it."""
        number = leg % len(self.manifest["legs"])
        if number == 0:
            return self.seed
        return int(np.random.SeedSequence(self.seed, spawn_key=(0, number)).generate_state(1, np.uint64)[0])

    def stream(self, number: int) -> np.random.Generator:
        """Return the random numbers of the system, for its first trajectory (0) or a later one."""
        entropy = entropy_of(self.seed, "" if self.data is None else self.data.digest)
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(SYSTEM_STREAM + number,)))

    def check_system(self, system: Mapping[str, Any]) -> None:
        """Raise `InputError` if the run walks another system than the one described."""
        before = self.manifest["system"]
        for name, value in system.items():
            if name not in ("source", "stored") and before.get(name, value) != value:  # runs of before have less
                raise InputError(
                    f"out: {self.directory} is a run of another system: {name} {before[name]!r:.60} there, "
                    f"{value!r:.60} here; give another directory"
                )

    def differences(self, leg: Mapping[str, Any]) -> list[str]:
        """Return in which settings the last leg differs from `leg`, in words."""
        last, leg = ({**one, "fleet": _options(one)} for one in (self.manifest["legs"][-1], leg))
        names = ("need", "strategy", "threshold", "rewards", "around", "application", "fleet")
        return [
            f"{name} {_short(last[name], leg[name])} there, {_short(leg[name], last[name])} here"
            for name in names
            if last[name] != leg[name]
        ]

    def restore(self, collector: Collector, system: System, leg: int = -1, checkpoints: bool = True) -> None:
        """Put a new collector, with the settings of a leg, where that leg ends; `Differs` if the log says otherwise.

        Parameters
        ----------
        collector
            Just begun, with the seed of the leg.
        system
            What was walked, or a system with the same model.
        leg
            Its number; the last by default.
        checkpoints
            Whether they are used; otherwise everything since the beginning of the leg is made again.
        """
        legs = self.manifest["legs"]
        leg %= len(legs)
        first = legs[leg]["first"]
        end = legs[leg + 1]["first"] if leg + 1 < len(legs) else self.contents.rows
        if "fleet" in legs[leg]:
            self._replay(collector, system, legs[leg], end)
            return
        saved = self.checkpoint_of(first, end) if checkpoints else None
        begin = first if saved is None else saved["events"]
        counter = self._counted(collector, begin, system)
        try:
            if saved is not None:
                collector.recall(saved["memory"])
                collector.try_out()  # whatever is wrong with it is wrong now, not at the end of the run
            elif first > 0:
                self._begin_leg(collector, counter, first)
            self._play(collector, system, begin, end)
        except GosprlError:
            raise
        except FORGED as error:
            where = MANIFEST if saved is None else f"{CHECKPOINTS}/{begin:015d}.json"
            raise Damaged(where, None, f"leads to {type(error).__name__}: {error}") from error

    def begin_leg(self, collector: Collector, system: System) -> None:
        """Let a new collector begin a leg where the log ends."""
        counter = self._counted(collector, self.next_row, system)
        self._begin_leg(collector, counter, self.next_row)

    def _counted(self, collector: Collector, events: int, system: System) -> Counter:
        """Count the first events in the record of a collector."""
        return self.count_into(collector.record, isinstance(system, Tabular), events)

    def count_into(self, record: Record, compiled: bool, events: int | None = None) -> Counter:
        """Count the first events in a record; by default all, and what is in flight is given up.

        Parameters
        ----------
        record
            Where to count; that of a fleet, if there was one.
        compiled
            Whether a table was walked.
        events
            How many: those of whole legs, if there was a fleet.
        """
        events = self.next_row if events is None else events
        if isinstance(record, FleetRecord):
            counter: Counter = FleetCounter(record, self.names, compiled, self.breaks())
        else:
            counter = Counter(record, self.names, compiled, self.breaks())
        try:
            if isinstance(counter, FleetCounter):
                count_legs(self, counter, events)
            else:
                for columns in self.contents.batches(0, events):
                    counter.add(columns)
        except Damaged:
            raise
        except (GosprlError, *FORGED) as error:
            raise Damaged("log", None, f"near event {counter.events}: {error}") from None
        return counter

    def _replay(self, collector: Collector, system: System, leg: Mapping[str, Any], end: int) -> None:
        """Make a leg of a fleet again, from its events."""
        first = leg["first"]
        if not isinstance(collector, FleetCollector):
            raise InputError(f"workers: {self.directory} is a run of a fleet: give workers=, which may be 1")
        try:
            counter = self._counted(collector, first, system)
            if first > 0:
                self._begin_leg(collector, counter, first)
            replay(self, collector, system, leg, end)
        except GosprlError:
            raise
        except FORGED as error:
            raise Damaged("log", None, f"leads to {type(error).__name__}: {error}") from error

    def _begin_leg(self, collector: Collector, counter: Counter, first: int) -> None:
        if isinstance(collector, FleetCollector):
            assert isinstance(counter, FleetCounter)
            collector.take_counts(None, counter.beginning)
            collector.number_from(first)
            collector.joined = counter.joined
            return
        collector.take_counts(counter.state, counter.start, counter.age)

    def checkpoint_of(self, first: int, end: int) -> dict[str, Any] | None:
        """Return the newest checkpoint of a leg that can be trusted.

        None at the last event, nor where another trajectory begins: it was made when the next attempt was planned, and
        that attempt was never made.
        """
        folder, breaks = self.directory / CHECKPOINTS, self.breaks()
        names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
        for name in sorted((name for name in names if fnmatch(name, "0*.json")), reverse=True):
            try:
                saved = read_json(folder / name, root=self.directory)
            except (Damaged, OSError):
                continue  # a checkpoint only saves time
            events = saved.get("events")
            if saved.get("run") != self.manifest["run"] or type(events) is not int:
                continue
            if first < events < end and events not in breaks:
                return saved
        return None

    def _play(self, collector: Collector, system: System, begin: int, end: int) -> None:
        """Make the events begin .. end - 1 again."""
        if end == 0:
            return
        cursor = Cursor(self.contents.batches(begin, end), begin)
        breaks = [event for event in self.breaks() if begin <= event < end]
        if isinstance(system, Tabular):
            collector.record.journal = Comparison(cursor, collector.model)
            self._put(collector, system, begin)
            collector.play(None if begin else system, self._made(end), partial(cursor.left, end))
            collector.record.journal = None
        else:
            recorded, again = Recorded(cursor, self.names, system), self._taken_up(begin, end)
            for until in (*again[begin in again :], end):
                where = cursor.event
                if where > 0:
                    collector.take_up(recorded, where_it_was=where not in breaks)
                cursor.stop_at(until)
                collector.play(recorded if where == 0 else None, self._made(until), partial(cursor.left, until))
                if cursor.event != until:
                    break
        if cursor.event != end:
            raise Differs(cursor.event, "the run made again ends here, and the log goes on")

    def _taken_up(self, begin: int, end: int) -> list[int]:
        """Return the numbers of the events begin .. end - 1 with which the walk was taken up by another process."""
        entries = self.manifest["continued"]
        return [entry["event"] for entry in entries if begin <= entry["event"] < end and entry["how"] != NOTHING]

    def _put(self, collector: Collector, system: Tabular, begin: int) -> None:
        """Put a table where the collector is after the first events."""
        system.seed(self.stream(0))
        if begin:
            assert collector.engine.state is not None
            system.go_to(collector.engine.state, collector.record.steps)
            collector.take_up(system, where_it_was=True)

    def _made(self, end: int) -> int:
        """Return the steps and chosen resets among the first events."""
        totals = self.totals if end == self.contents.rows else self._totals(end)
        return totals.steps + totals.chosen

    def take_up(self, collector: Collector, system: System, journal: DiskJournal) -> str:
        """Continue with a system where the log ends; return how: exactly, after an ending, or with a new trajectory."""
        collector.record.journal = journal
        engine = collector.engine
        if isinstance(system, Tabular):
            system.seed(self.stream(0))
            assert engine.state is not None
            system.go_to(engine.state, self.steps)
            collector.take_up(system, where_it_was=True)
            return EXACT
        if self._set_state(system):
            collector.take_up(system, where_it_was=True)
            return EXACT
        system.seed(self.stream(1 + len(self.manifest["continued"])))
        begins_again = self.next_row in self.breaks()  # as a continuation that ended before it wrote an event
        how = ENDING if (engine.state is None and not begins_again) or engine.at_reset else NEW_TRAJECTORY
        collector.take_up(system, where_it_was=False)
        return how

    def _set_state(self, system: System) -> bool:
        """Put a system where the log ends, if its state was saved; whether that was possible."""
        try:
            saved = read_json(self.directory / CHECKPOINTS / SYSTEM_STATE, root=self.directory)
            events = int(saved["events"])
            state = b64decode(saved["bytes"]) if "bytes" in saved else saved["json"]
        except (Damaged, OSError, KeyError, TypeError, ValueError):
            return False
        if saved.get("run") != self.manifest["run"] or not 0 < events <= self.contents.rows:
            return False
        try:
            system.set_state(state)
            return all(self._does(system, event, row) for event, row in self._rows(events))
        except Damaged:
            raise
        except Exception as error:
            raise InputError(
                f"system: set_state failed, or steps after it: {type(error).__name__}: {error}; without {CHECKPOINTS}/ "
                "in the run, the system is reset instead"
            ) from error

    def _rows(self, begin: int) -> Iterator[tuple[int, tuple[int, int, int, float, int]]]:
        cursor = Cursor(self.contents.batches(begin), begin)
        while (row := cursor.peek()) is not None:
            yield cursor.event, row
            cursor.advance()

    def _does(self, system: System, event: int, row: tuple[int, int, int, float, int]) -> bool:
        """Whether a system repeats an event of the log."""
        _, action, following, reward, flags = row
        if flags & RESET:
            start = system.reset()
            return bool((start.state if isinstance(start, Start) else start) == self.names.key(following))
        outcome = system.step(action)
        terminated, truncated = bool(flags & TERMINATED), bool(flags & TRUNCATED)
        key = None if following < 0 else self.names.key(following)
        said = (outcome.state, outcome.reward, outcome.terminated, outcome.truncated)
        return said[1:3] == (reward, terminated) and (key is None or said[0] == key) and (truncated or not said[3])


def _options(leg: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings of a fleet; the number of walkers and of steps is none."""
    fleet = leg.get("fleet")
    return None if fleet is None else {name: fleet[name] for name in fleet if name not in ("workers", "until")}


def _short(value: Any, other: Any) -> str:
    """Return a setting for a message: of an object only the parts that differ."""
    if isinstance(value, dict) and isinstance(other, dict):
        value = {name: part for name, part in value.items() if other.get(name, value) != part} or value
    return f"{value!r:.80}"
