"""`verify`: check a run that may come from anybody, from its files alone.

Digests show that the files are those that were written, not that what was written is true. Therefore each event must be
able to follow the one before (`gosprl.runs.auditing`), and the run is made again from its log with its own settings
(`gosprl.runs.remaking`), which recomputes the confidence sets, the plans, the accounts and the stop. The steps of a
simulated table are made again, too. The certificate has to be that of the run made again.

Nothing in the directory is executed, nothing is written to it, and no environment is made.
"""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gosprl.collecting.result import Result
from gosprl.mdp.tabular import TabularMDP
from gosprl.printing import printable
from gosprl.runs.auditing import Audit, Impossible
from gosprl.runs.begun import data_in_words
from gosprl.runs.certificate import CERTIFICATE
from gosprl.runs.checking import of_other_moments
from gosprl.runs.comparing import compared, entries, explained, fields, listed, missing
from gosprl.runs.files import Damaged
from gosprl.runs.locks import is_being_written
from gosprl.runs.looking import id_in_damaged
from gosprl.runs.manifests import MANIFEST, read_manifest
from gosprl.runs.opened import OpenRun
from gosprl.runs.playback import Differs
from gosprl.runs.reading import read_log
from gosprl.runs.remaking import Remaking, Unknown
from gosprl.runs.replay import FromCheckpoint, Replay


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes
    ----------
    name
        What was checked.
    ok
        True: confirmed; False: damaged or wrong; None: cannot be known here.
    text
        What was found.
    """

    name: str
    ok: bool | None
    text: str


@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    Attributes
    ----------
    directory
        The run.
    checks
        All checks, in order.
    """

    directory: Path
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is confirmed: nothing is wrong, and nothing is unknown."""
        return all(check.ok is True for check in self.checks)

    @property
    def damaged(self) -> bool:
        """Whether something is damaged or wrong."""
        return any(check.ok is False for check in self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        return "confirmed" if self.ok else "NOT confirmed" if self.damaged else "not all can be known"

    def __repr__(self) -> str:
        words = {True: "ok", False: "WRONG", None: "unknown"}
        width = max(len(check.name) for check in self.checks)
        lines = [f"  {check.name:<{width}}  {words[check.ok]:<7}  {check.text}" for check in self.checks]
        return "\n".join([f"Verification of {self.directory}: {self.verdict}", *lines])


def verify(
    directory: str | os.PathLike[str],
    *,
    system: Any = None,
    need: Any = None,
    strategy: Any = None,
    key: Any = None,
    actions: Any = None,
    **options: Any,
) -> Verification:
    """Check a run: its files, its events, its counts, and its certificate.

    Nothing is written, and nothing that the directory names is imported, made or started. A run that is being written
    can be checked, too.

    Parameters
    ----------
    directory
        The run.
    system
        What was walked, if the run does not contain it: a table too large to be stored, or a `System` of your own
        that tells its dynamics. It is not stepped.
    need, strategy, key, actions, **options
        As in `gosprl.resume`; only what was a function or an object of your own, which cannot be stored.

    Returns
    -------
    The checks. `ok` says whether everything was confirmed.

    Raises
    ------
    InputError
        It is no run, or one of a newer format.

    Examples
    --------
    >>> import gosprl, tempfile
    >>> run = tempfile.mkdtemp()
    >>> result = gosprl.collect(gosprl.envs.make("riverswim6"), need=10, seed=0, out=run)
    >>> gosprl.runs.verify(run).ok
    True
    """
    place = Path(directory)
    given = {"need": need, "strategy": strategy, **options}
    given = {name: value for name, value in given.items() if value is not None}
    verifier = _Verifier(place, system, given, {"key": key, "actions": actions})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a run made again: they were given when it was made
        verifier.check()
    return Verification(place, tuple(verifier.checks))


class _Verifier:
    """Does the checks in order; those that need the success of an earlier one are left out if it failed."""

    def __init__(self, directory: Path, system: Any, settings: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self.directory, self._system, self._settings, self._given = directory, system, settings, given
        self.checks: list[Check] = []

    def _say(self, name: str, ok: bool | None, text: str) -> bool:
        self.checks.append(Check(name, ok, printable(text)))
        return ok is True

    def check(self) -> None:
        if is_being_written(self.directory):
            self._say("writer", None, "a process is writing the run now: this is about what it has acknowledged so far")
        try:
            manifest = read_manifest(self.directory)
        except (Damaged, OSError) as error:
            self._say("manifest", False, str(error))
            return self._without_manifest()
        self._say("manifest", True, f"format {manifest['format']}, {len(manifest['legs'])} leg(s)")
        self._run = OpenRun.of(self.directory, manifest)
        self._remaking = Remaking(self._run, self._system, self._settings, self._given)
        sound = self._log()
        sound = self._names() and sound
        self._checkpoints()
        self._table()
        sound = self._data() and sound
        certificate = self._read_certificate()
        audit = self._events() if sound else None
        if audit is None:
            self._say("made again", None, "the run cannot be made again: it is damaged; gosprl repair keeps the rest")
            return
        self._moments()
        if certificate is not None:
            self._counts(certificate, audit)
            self._need(certificate)
        self._legs(certificate)

    def _without_manifest(self) -> None:
        run_id = id_in_damaged(self.directory)
        if run_id is None:
            self._say("log", None, "without the id in the manifest, its digests cannot be checked")
            return
        contents = read_log(self.directory, run_id)
        for problem in contents.problems:
            self._say("log", False, str(Damaged(*problem)))
        if not contents.problems:
            self._say("log", True, f"{contents.rows:,} events, by the id that the damaged manifest names")

    # files

    def _log(self) -> bool:
        contents = self._run.contents
        for problem in contents.problems:
            self._say("log", False, str(Damaged(*problem)))
        left = sum(contents.unacknowledged.values())
        tail = f"; {left:,} bytes after them were never acknowledged" if left else ""
        known = "the first " if contents.problems else ""
        text = (
            f"{known}{contents.rows:,} events in {len(contents.links):,} batches, digest {contents.digest[:16]}{tail}"
        )
        return self._say("batches", True, text) and not contents.problems

    def _names(self) -> bool:
        try:
            names = self._run.names
        except Damaged as error:
            return self._say("names", False, str(error))
        what = "known beforehand" if names.fixed else "discovered"
        return self._say("names", True, f"{names.num_states:,} states {what}")

    def _checkpoints(self) -> None:
        found = self._run.beside.checkpoints
        for saved in found:
            if saved.wrong:
                self._say("checkpoint", False, f"{saved.file}: {saved.wrong}; it can be deleted: it only saves time")
        if found and not any(saved.wrong for saved in found):
            self._say("checkpoints", True, f"{len(found)} file(s)")

    def _table(self) -> None:
        if self._run.is_table:
            mdp = self._remaking.table_or_why
            if isinstance(mdp, TabularMDP):
                self._say("table", True, f"{mdp.name}, {mdp.num_states:,} states, {len(mdp.rows):,} pairs")
            else:
                self._say("table", None if mdp.endswith("system=...") else False, mdp)

    def _data(self) -> bool:
        if "data" not in self._run.manifest:
            return True
        try:
            data = self._run.data
        except (Damaged, OSError) as error:
            return self._say("data", False, str(error))
        assert data is not None
        what = data_in_words(data.entry)
        return self._say("data", True, f"{what}: the counts are those that were kept, not whether the data were true")

    def _read_certificate(self) -> dict[str, Any] | None:
        wrong = self._run.beside.wrong
        if wrong is not None:
            self._say("certificate", False, str(wrong))
        return self._run.beside.certificate

    # what the log says

    def _events(self) -> Audit | None:
        try:
            audit = Audit(self._run).read()
        except Impossible as error:
            self._say("events", False, f"the log: {error}")
            return None
        except Damaged as error:
            self._say("events", False, str(error))
            return None
        numbers = f"{audit.steps:,} steps, {audit.resets:,} resets, {audit.crashes:,} crashes"
        self._say("events", True, f"{numbers}: each can follow the one before")
        return audit

    def _moments(self) -> None:
        """Say which files speak of more than the log or the manifest has."""
        for wrong in of_other_moments(self._run):
            if wrong is not self._run.beside.wrong:  # said already
                self._say("length", False, str(wrong))

    def _counts(self, certificate: Mapping[str, Any], audit: Audit) -> None:
        """Compare the numbers of the certificate with those counted here."""
        log = self._run.contents
        crashes = audit.crashes + audit.crashes_before
        mine: dict[str, Any] = {"steps": audit.steps, "resets": max(0, audit.resets - 1), "crashes": crashes}
        mine |= {"events": log.rows, "log": log.digest}
        if not self._run.manifest["system"]["ends"]:
            del mine["resets"]
        if self._run.data is not None:
            mine["data"] = {name: self._run.data.entry[name] for name in ("samples", "order", "counts")}
        if self._run.has_fleet:
            fleet = certificate.get("fleet")
            of_fleet = {"walkers": audit.walkers, "lost": audit.lost, "unknown": sum(audit.unknown.values())}
            mine["fleet"] = {**fleet, **of_fleet} if isinstance(fleet, dict) else of_fleet
        wrong = [
            f"{name} {certificate.get(name)!r:.70}, not {value}"
            for name, value in mine.items()
            if certificate.get(name) != value
        ]
        table = entries(certificate.get("counts"))
        if table is None or audit.counts(table[0]) != table[1]:
            wrong.append("the counts of pairs are not those of the log and of the data")
        counted = "the log" if self._run.data is None else "the data and the log"
        text = (
            "; ".join(wrong) or f"those of {len(audit.visits):,} pairs, recounted from {counted}, are the certificate's"
        )
        self._say("counts", not wrong, f"{CERTIFICATE}: {text}" if wrong else text)

    def _need(self, certificate: Mapping[str, Any]) -> None:
        """Compare what the certificate says is missing with its need and counts."""
        try:
            lacking = missing(certificate)
            stated = {tuple(entry) for entry in certificate["unmet"] if entry[0] >= 0}
            others = [entry for entry in certificate["unmet"] if entry[0] < 0]
            given_up = [f"{s}: {why}" for s, why in certificate["unreachable"]]
            has_begun = certificate["events"] > 0 or certificate["states"] > 0 or not certificate["of discovered"]
            met = has_begun and not stated and not others
            sound = explained(stated, lacking, certificate) and certificate["met"] == met
        except (KeyError, TypeError, ValueError, IndexError):
            self._say("need", False, f"{CERTIFICATE}: no certificate says its need like this")
            return
        text = "met" if certificate["met"] else f"not met: {listed(certificate['unmet'])} (state, action, needed, have)"
        text += f"; given up: {listed(given_up)}" if given_up else ""
        self._say("need", sound, text if sound else f"{CERTIFICATE}: what is unmet is not what need and counts say")

    # made again

    def _legs(self, certificate: dict[str, Any] | None) -> None:
        legs = self._run.manifest["legs"]
        results = [self._leg(number, len(legs), certificate) for number in range(len(legs))]
        last = results[-1]
        if last is not None:
            self._from_checkpoint(last, len(legs) - 1, certificate)
        self._certificate(certificate, last)

    def _leg(self, number: int, legs: int, certificate: Mapping[str, Any] | None) -> Result | None:
        """Make a leg again; the certificate is about the last one."""
        name = "made again" if legs == 1 else f"leg {number + 1}"
        if self._run.contents.rows == 0 and certificate is None:
            self._say(name, True, "nothing has happened yet")
            return None
        try:
            result = self._remaking.result(Replay(self._run, number, certificate if number == legs - 1 else None))
        except Unknown as error:
            self._say(name, None, str(error))
        except Differs as error:
            self._say(name, *self._remaking.why_different(error, number))
        except Exception as error:  # whatever is raised is about the settings that the manifest names
            self._say(
                name,
                False,
                f"{MANIFEST}: a run with these settings cannot be made: {type(error).__name__}: {error!s:.200}",
            )
        else:
            how = "every step, every plan" if self._run.is_table else "every choice of the planner, given the outcomes"
            if "fleet" in self._run.manifest["legs"][number]:
                how = "every order, given the sequence of events; outcomes are taken from the log, not drawn again"
            self._say(name, True, f"the same from its settings and seed: {how}")
            return result
        return None

    def _from_checkpoint(self, result: Result, leg: int, certificate: Mapping[str, Any] | None) -> None:
        """Make sure that resuming from the newest checkpoint leads to the same."""
        first = self._run.manifest["legs"][leg]["first"]
        if self._run.checkpoint_of(first, self._run.contents.rows) is None:
            return
        try:
            same = fields(self._remaking.result(FromCheckpoint(self._run, leg, certificate))) == fields(result)
        except Exception as error:  # as above, about the checkpoint
            self._say(
                "checkpoint", False, f"the newest one leads elsewhere ({error!s:.120}); delete the directory checkpoint"
            )
            return
        text = "going on from the newest one leads to the same"
        self._say(
            "checkpoint", same, text if same else "the newest one leads elsewhere; delete the directory checkpoint"
        )

    def _certificate(self, certificate: dict[str, Any] | None, result: Result | None) -> None:
        if certificate is None:
            if not any(check.name == "certificate" for check in self.checks):
                self._say(
                    "certificate",
                    None,
                    "there is none: the run is unfinished. What is there is what was checked; whether more was "
                    "acknowledged and cut off at the end of a batch cannot be known",
                )
            return
        if result is None:
            self._say("certificate", None, "delta, guarantee, plans and accounts could not be recomputed")
            return
        wrong, note = compared(certificate, result, self._run)
        self._say("certificate", not wrong, f"{CERTIFICATE}: {'; '.join(wrong)}" if wrong else note)
