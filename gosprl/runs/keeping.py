"""Keep a collection on disk: a new run, or one that goes on.

A run is a directory (docs/runs.md). Its manifest has *legs*: stretches with the same settings, each of which begins
with the counts of those before. A leg that was interrupted continues as if it had not been: the last checkpoint is
restored, the rest of the log is played back (`gosprl.runs.playback`), then the system makes new steps. A table, and a
system that tells its state (`System.get_state`), continue bit for bit. Any other system begins a new trajectory with a
reset.
"""

import contextlib
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.beginning import Beginning
from gosprl.collecting.collect import model_with
from gosprl.collecting.collector import Collector
from gosprl.collecting.result import Result
from gosprl.errors import CollectionError, GosprlError, InputError
from gosprl.fleet.collector import FleetCollector
from gosprl.model.content import thaw
from gosprl.model.origins import Origin, run_id
from gosprl.runs import describing
from gosprl.runs.begun import KeptData, data_in_words
from gosprl.runs.certificate import CERTIFICATE, certified
from gosprl.runs.chain import CHAIN, NAMES_FILE
from gosprl.runs.checking import check_undamaged
from gosprl.runs.files import write_json
from gosprl.runs.fleet_journal import FleetDiskJournal
from gosprl.runs.journal import DiskJournal
from gosprl.runs.locks import Lock, require_locks
from gosprl.runs.manifests import (
    CHECKPOINTS,
    DATA,
    FORMAT,
    MANIFEST,
    NOTHING,
    OF_ONE_WALKER,
    TABLE,
    WALKERS,
    is_unbegun,
    now,
)
from gosprl.runs.names import Names
from gosprl.runs.notes import closing, given_up
from gosprl.runs.opened import OpenRun
from gosprl.runs.places import Held, Place
from gosprl.runs.playback import Differs
from gosprl.runs.replay import Replay
from gosprl.runs.settings import Out, Settings, as_out, leg_described, system_described, versions
from gosprl.runs.writing import LogWriter
from gosprl.systems.base import System
from gosprl.systems.tabular import Tabular

Begin = Callable[[int, Beginning | None], Collector]


def keep(
    out: Any,
    begin: Begin,
    seed: int | None,
    system: System,
    settings: Settings,
    max_steps: int | None = None,
    progress: Any = None,
    data: Beginning | None = None,
) -> tuple[Collector, Result]:
    """Collect, and keep everything in a directory; go on if it has begun already.

    Parameters
    ----------
    out
        A directory, or an `Out`.
    begin
        Makes the collector of the run, for a seed and the data that it begins with.
    seed
        The seed asked for; None: any.
    system
        What is walked.
    settings
        What is asked for.
    max_steps
        Stop after so many steps, counted from the beginning of the run.
    progress
        As in `gosprl.collect`.
    data
        The samples that were given for it; a run that goes on has its own.

    Returns
    -------
    The collector and its result.
    """
    if max_steps is not None:
        _checks.whole("max_steps", max_steps, 1)
    if isinstance(out, Replay):
        return out.replayed(begin, system)
    kept = Keeper(as_out(out), system, settings, data)
    with kept:
        collector = kept.collector(begin, seed)
        collector.note_origin(Origin(str(kept.directory), (run_id(kept.manifest["run"]),)))
        try:
            kept.walk(collector, max_steps, progress)
            result = collector.last_result()
        except CollectionError as error:
            with contextlib.suppress(GosprlError):  # perhaps the same one
                kept.finish(collector, error.result)
            raise
        try:
            kept.finish(collector, result)
        except GosprlError as error:
            raise CollectionError(str(error), result) from error
    if collector.is_torn:
        warnings.warn(
            f"interrupted in the middle of a step: the result may have samples that {kept.directory} does not have",
            stacklevel=4,
        )
    return collector, result


class Keeper:
    """Writes a new run, or continues one."""

    def __init__(self, out: Out, system: System, settings: Settings, data: Beginning | None = None) -> None:
        self._out, self._system, self._settings, self._given = out, system, settings, data
        self._data: KeptData | None = None  # what the run begins with
        self._asked = out, system, settings
        self.directory: Place = Path(out.directory)
        self.manifest: dict[str, Any] = {}
        self._run: OpenRun | None = None
        self._journal: DiskJournal | None = None
        self._held: Held | None = None  # while it writes: the directory, wherever it is renamed to
        self._lock = Lock(self.directory)

    def __enter__(self) -> "Keeper":
        if not is_unbegun(self.directory):
            try:
                self._hold()
                self._run = OpenRun.read(self.directory)
                check_undamaged(self._run)
                self.manifest = self._run.manifest
            except OSError as error:
                self._let_go()
                raise InputError(f"out: {self.directory} cannot be read and written: {error}") from None
            except BaseException:
                self._let_go()
                raise
        return self

    def _hold(self) -> None:
        """Hold the directory, and take its lock: from here on nothing else is meant, whatever its path becomes."""
        require_locks()
        assert isinstance(self.directory, Path)
        self.directory = self._held = Held.open(self.directory)
        self._lock = Lock(self.directory)
        self._lock.acquire()

    def _let_go(self) -> None:
        self._lock.release()
        if self._held is not None:
            self._held.close()

    def __exit__(self, kind: Any, error: Any, at: Any) -> None:
        try:
            if self._journal is not None:
                journal, self._journal = self._journal, None
                journal.close()  # without a certificate: what was collected is kept
                if self._run is None and journal.events == 0:
                    self._undo()
        except GosprlError:
            if error is None:
                raise
        finally:
            self._let_go()

    def _undo(self) -> None:
        """Remove a run in which nothing happened, because an argument was wrong."""
        for name in (MANIFEST, TABLE, DATA, NAMES_FILE, CHAIN, "log/000001.arrow"):
            (self.directory / name).unlink(missing_ok=True)

    def collector(self, begin: Begin, seed: int | None) -> Collector:
        """Return the collector, where the run is now; the run is begun if it is new."""
        run = self._run
        if run is None:
            return self._begun(begin, seed)
        if seed is not None and seed != run.seed:
            raise InputError(f"out: {self.directory} is a run with seed {run.seed}, got {seed}; give another directory")
        self._system.know_actions([thaw(key) for key in run.names.actions])
        run.check_system(system_described(model_with(self._system, self._settings.around, None), *self._asked))
        self._data = run.data
        self._check_data()
        collector = begin(run.seed_of_leg(), self._data)
        described = leg_described(collector, *self._asked)
        differences = run.differences(described)
        if differences and not self._out.change:
            listed = "; ".join(differences)
            raise InputError(
                f"out: {self.directory} is a run with other settings: {listed}. Give another directory, or go on with "
                "these settings by gosprl.resume"
            )
        if run.contents.rows == 0:  # nothing has happened yet: it begins now
            self.manifest["legs"] = [described]
            self._mark_format()
            return collector
        if "fleet" in described or run.has_fleet:
            return self._of_fleet(begin, collector, again=not differences)
        if differences:
            return self._next_leg(begin, "")
        try:
            run.restore(collector, self._system)
        except Differs as error:
            warnings.warn(
                f"{self.directory}: its log cannot be followed exactly ({error}), as after a change of versions; all "
                "samples are kept, and planning begins anew",
                stacklevel=4,
            )
            return self._next_leg(begin, str(error))
        collector.seed = run.seed
        return collector

    def _of_fleet(self, begin: Begin, collector: Collector, again: bool) -> Collector:
        """Return a collector for the walkers of a fleet: they are reset, and planning begins anew.

        `again`: whether the settings are those of the last leg. If the run is finished with them, it stays as it is.
        """
        run = self._run
        assert run is not None
        if not isinstance(collector, FleetCollector):
            raise InputError(
                f"workers: {self.directory} is a run of a fleet, and goes on with one: give workers=, which may be 1"
            )
        if again and not run.in_flight and (self.directory / CERTIFICATE).exists():
            with contextlib.suppress(Differs):
                run.restore(collector, self._system)
                collector.seed = run.seed
                if collector.is_finished:
                    return collector
        return self._next_leg(begin, "")

    def _mark_format(self) -> None:
        fleet = any("fleet" in leg for leg in self.manifest["legs"])
        self.manifest["format"] = FORMAT if fleet else OF_ONE_WALKER

    def _check_data(self) -> None:
        """Raise `InputError` if the run began with other data than those given."""
        if self._given is None and self._out.change:
            return
        if self._given is not None and self._given.has_run(self.manifest["run"]):
            raise InputError(
                f"out, data: the run in {self.directory} is among the data, or is part of them, and its samples count "
                "anyway; leave out data, or give another directory as out"
            )
        given = self._counted_data()
        if (given and given.counts) != (self._data and self._data.counts):
            raise InputError(
                f"out: {self.directory} is a run that began with other data: {_said(self._data)} there, {_said(given)} "
                "here; give another directory, or the same data. gosprl.resume goes on with what the run has"
            )

    def _counted_data(self) -> KeptData | None:
        """Return what is kept of the data given."""
        if self._given is None:
            return None
        model = model_with(self._system, self._settings.around, self._given, self._settings.rewards)
        return KeptData.of(self._given, model)

    def _begun(self, begin: Begin, seed: int | None) -> Collector:
        entropy = int(np.random.SeedSequence().generate_state(2, np.uint64)[0]) if seed is None else seed
        self._data = self._counted_data()
        collector = begin(entropy, self._data)  # as it will be resumed: from what is kept
        try:
            Path(self._out.directory).mkdir(parents=True, exist_ok=True)
            self._hold()
        except OSError as error:
            raise InputError(f"out: {self.directory} cannot be written: {error}") from None
        if not is_unbegun(self.directory):
            raise InputError(f"out: another process has begun a run in {self.directory} meanwhile")
        model = collector.model
        self.manifest = {
            "format": OF_ONE_WALKER,
            "run": uuid.uuid4().hex,
            "created": now(),
            "seed": collector.seed,
            "system": system_described(model, *self._asked),
            "legs": [leg_described(collector, *self._asked)],
            "continued": [],
        }
        if self._data is not None:
            self.manifest["data"] = dict(self._data.entry)
        self._mark_format()
        return collector

    def _next_leg(self, begin: Begin, because: str) -> Collector:
        """Return a collector with all counts so far, for a new leg."""
        run = self._run
        assert run is not None
        legs = self.manifest["legs"]
        legs.append({})
        collector = begin(run.seed_of_leg(), self._data)
        legs[-1] = {**leg_described(collector, *self._asked), "first": run.next_row, "because": because}
        self._mark_format()
        run.begin_leg(collector, self._system)
        collector.seed = run.seed
        return collector

    def walk(self, collector: Collector, max_steps: int | None, progress: Any) -> None:
        """Walk until done; what happens is written."""
        left = None if max_steps is None else max_steps - collector.record.steps - collector.record.quits
        if self._run is not None and (collector.is_finished or (left is not None and left <= 0)):
            if self._run.in_flight:
                self._give_up()
            return collector.conclude()
        run = self._run
        if isinstance(collector, FleetCollector) and left is not None:
            made = collector.record.steps + collector.record.quits
            self.manifest["legs"][-1]["fleet"]["until"] = made + left
        begins = run is None or run.contents.rows == 0
        self._journal = journal = self._new_journal(collector, begins)
        if run is None or begins:
            (self.directory / CERTIFICATE).unlink(missing_ok=True)  # of a run that failed before its first event
            collector.record.journal = journal
            journal.start(self._begin_files if run is None else self._go_on_with_files)
            return collector.walk(self._system, left, progress)
        how, walked = WALKERS, None
        if isinstance(collector, FleetCollector):
            collector.record.journal, walked = journal, self._system
        else:
            how = run.take_up(collector, self._system, journal)
        (self.directory / CERTIFICATE).unlink(missing_ok=True)
        for entry in self.manifest["continued"]:
            if entry["event"] == run.next_row:  # an earlier continuation ended before it wrote an event
                entry["how"] = NOTHING
        entry = {"event": run.next_row, "how": how, "when": now(), "versions": versions()}
        self.manifest["continued"].append(entry)
        journal.start(self._go_on_with_files)
        collector.walk(walked, left, progress)

    def _give_up(self) -> None:
        """Write that nobody waits for what was in flight, where nothing more is collected."""
        (self.directory / CERTIFICATE).unlink(missing_ok=True)
        self._go_on_with_files().close()
        self._run = OpenRun.read(self.directory)

    def _new_journal(self, collector: Collector, begins: bool) -> DiskJournal:
        run, out, model = self._run, self._out, collector.model
        names = Names(model.states.fixed) if run is None else run.names
        already = (0, 0, -1) if run is None else (run.next_row, run.steps, run.last_state)
        given = (self.directory, self.manifest["run"], model, names, *already, out.sync_steps, out.sync_seconds)
        stretch = {"legs": len(self.manifest["legs"]), "continued": len(self.manifest["continued"]) + (not begins)}
        if isinstance(collector, FleetCollector):
            return FleetDiskJournal(*given, stretch=stretch)
        return DiskJournal(*given, state_at_once=not isinstance(self._system, Tabular), stretch=stretch)

    def _begin_files(self) -> LogWriter:
        """Write what a run begins with."""
        for folder in ("log", CHECKPOINTS):
            (self.directory / folder).mkdir(exist_ok=True)
        if self.manifest["system"]["stored"]:
            assert self._system.mdp is not None
            write_json(self.directory / TABLE, describing.table_described(self._system.mdp))
        if self._data is None:
            (self.directory / DATA).unlink(missing_ok=True)  # of a run that was about to begin here
        else:
            self._data.write(self.directory)  # before the manifest: a run is never without its data
        write_json(self.directory / MANIFEST, self.manifest)
        return LogWriter(self.directory, self.manifest["run"])

    def _go_on_with_files(self) -> LogWriter:
        """Write that the run goes on."""
        assert self._run is not None
        (self.directory / CHECKPOINTS).mkdir(exist_ok=True)
        contents, in_flight = self._run.contents, self._run.in_flight
        if not in_flight:
            write_json(self.directory / MANIFEST, self.manifest)
            return LogWriter(self.directory, self.manifest["run"], contents)
        # before the manifest, which says that the next leg begins after these rows
        writer = LogWriter(self.directory, self.manifest["run"], contents)
        writer.append(given_up(in_flight, contents.rows), closing(in_flight, contents.rows))
        writer.sync()
        write_json(self.directory / MANIFEST, self.manifest)
        return writer

    def finish(self, collector: Collector, result: Result) -> None:
        """Write everything that is pending, and the certificate unless a step was interrupted."""
        journal, self._journal = self._journal, None
        if journal is None:
            try:
                return self._certify_late(result)
            except OSError as error:
                raise GosprlError(f"out: the certificate of {self.directory} cannot be written: {error}") from error

        def certify() -> None:
            if not collector.is_torn:
                written = certified(result, journal.digest, journal.events, self._data)
                write_json(self.directory / CERTIFICATE, written, lasting_name=False)

        journal.close(certify)

    def _certify_late(self, result: Result) -> None:
        """Certify a run that ended before it was certified, or that meets what is asked for now without a step."""
        assert self._run is not None
        contents = self._run.contents
        if self.manifest["legs"][-1]["first"] == contents.rows:
            (self.directory / CERTIFICATE).unlink(missing_ok=True)
            write_json(self.directory / MANIFEST, self.manifest)
        if not (self.directory / CERTIFICATE).exists():
            write_json(self.directory / CERTIFICATE, certified(result, contents.digest, contents.rows, self._data))


def _said(data: KeptData | None) -> str:
    return "none" if data is None else f"{data_in_words(data.entry)}, counts {data.entry['counts'][:8]}"
