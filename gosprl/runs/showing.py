"""`show`: what a run is and how far it is, from its files alone; nothing is planned, made or written.

The log is read once, batch by batch. Of a damaged run, everything before the first damage is shown.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gosprl.collecting.record import Record
from gosprl.collecting.surroundings import Surroundings
from gosprl.errors import GosprlError
from gosprl.fleet.record import FleetRecord
from gosprl.model.empirical import EmpiricalModel
from gosprl.printing import printable
from gosprl.runs import describing
from gosprl.runs.auditing import Audit, Impossible
from gosprl.runs.begun import data_in_words
from gosprl.runs.certificate import CERTIFICATE, unfit
from gosprl.runs.chain import CHAIN
from gosprl.runs.files import Damaged
from gosprl.runs.locks import is_being_written
from gosprl.runs.looking import id_in_damaged, sizes
from gosprl.runs.manifests import read_manifest
from gosprl.runs.models import begun_model
from gosprl.runs.opened import OpenRun
from gosprl.runs.reading import read_log

SHOWN = 5  # pairs that are listed
SHORTEST = 2.0  # seconds from which on there is a rate: times in a manifest are whole seconds
DELTA = 0.1
CANNOT = (GosprlError, Impossible, OSError, TypeError, ValueError, KeyError, IndexError, MemoryError, OverflowError)


@dataclass(frozen=True)
class Shown:
    """What `show` found.

    Attributes
    ----------
    directory
        The run.
    facts
        Everything by name, as JSON values; None where it is not known.
    problems
        What is damaged.
    """

    directory: Path
    facts: dict[str, Any] = field(repr=False)
    problems: tuple[str, ...] = ()

    def lines(self) -> list[tuple[str, str]]:
        """Return the facts as (name, text), for people."""
        texts = [(name, _TEXTS[name](self.facts[name])) for name in _TEXTS if self.facts.get(name) is not None]
        lines = [*texts, *(("damaged", problem) for problem in self.problems)]
        return [(name, printable(text)) for name, text in lines]

    def __repr__(self) -> str:
        lines = self.lines()
        width = max(len(name) for name, _ in lines)
        return "\n".join([f"Run in {self.directory}", *(f"  {name:<{width}}  {text}" for name, text in lines)])


def show(directory: str | os.PathLike[str]) -> Shown:
    """Look at a run: what it is, how far it is, what is missing, its model and its files.

    Parameters
    ----------
    directory
        The run; it may be damaged, or be written at the moment.

    Returns
    -------
    Facts, and what is damaged.

    Raises
    ------
    InputError
        It is no run, or one of a newer format.

    Examples
    --------
    >>> import gosprl, tempfile
    >>> run = tempfile.mkdtemp()
    >>> result = gosprl.collect(gosprl.envs.make("riverswim6"), need=10, seed=0, out=run)
    >>> gosprl.runs.show(run).facts["progress"]["met"]
    1.0
    """
    place = Path(directory)
    try:
        manifest = read_manifest(place)
    except (Damaged, OSError) as error:
        return _without_manifest(place, str(error))
    run = OpenRun.of(place, manifest)
    return _Viewer(run).shown()


def _without_manifest(directory: Path, problem: str) -> Shown:
    run_id, problems = id_in_damaged(directory), [problem]
    facts: dict[str, Any] = {"disk": _disk(directory, 0), "writer": is_being_written(directory)}
    if run_id is not None:
        contents = read_log(directory, run_id)
        facts["events"] = contents.rows
        problems += [str(Damaged(*found)) for found in contents.problems]
    return Shown(directory, facts, tuple(problems))


class _Viewer:
    """Collects facts; those that cannot be found are reported as problems."""

    def __init__(self, run: OpenRun) -> None:
        self._run = run
        self._facts: dict[str, Any] = {}
        self._problems = [str(Damaged(*problem)) for problem in run.contents.problems]

    def shown(self) -> Shown:
        run, facts = self._run, self._facts
        manifest, leg = run.manifest, run.manifest["legs"][-1]
        facts["system"] = {name: manifest["system"][name] for name in ("name", "kind", "source")}
        facts["need"] = _need_of(leg)
        facts["strategy"] = leg["strategy"].get("name") or leg["strategy"]["given"]
        facts["data"] = manifest.get("data")
        facts["seed"], facts["created"] = manifest["seed"], manifest["created"]
        facts["legs"] = [
            {"first": one["first"], "need": _need_of(one), "because": one["because"]} for one in manifest["legs"]
        ]
        facts["continued"] = [
            {name: entry[name] for name in ("event", "how", "when")} for entry in manifest["continued"]
        ]
        self._try(self._read_log)
        self._try(self._measure)
        self._try(self._read_certificate)
        facts["disk"] = _disk(run.path, run.contents.rows)
        facts["rate"] = self._rate()
        facts["writer"] = is_being_written(run.directory)
        return Shown(run.path, facts, tuple(dict.fromkeys(self._problems)))

    def _try(self, part: Callable[[], None]) -> None:
        try:
            part()
        except CANNOT as error:
            self._problems.append(str(error) or type(error).__name__)

    def _read_log(self) -> None:
        audit = Audit(self._run)
        try:
            audit.read()
        finally:  # if an event is impossible, show what was counted before it
            self._facts |= {"events": audit.events, "steps": audit.steps}
            self._facts |= {"resets": max(0, audit.resets - 1), "crashes": audit.crashes}
            if self._run.has_fleet:
                self._facts["fleet"] = {
                    "workers": self._run.manifest["legs"][-1].get("fleet", {}).get("workers"),
                    "joined": audit.walkers,
                    "lost": audit.lost,
                    "unknown": sum(audit.unknown.values()),
                    "in flight": len(audit.in_flight),
                }
            self._facts["model"] = {
                "states": len(audit.live),
                "pairs": len(audit.visits),
                "transitions": audit.transitions,
            }

    def _measure(self) -> None:
        """Find out what is met and what is missing, by the requirement itself."""
        run, leg = self._run, self._run.manifest["legs"][-1]
        if describing.is_given(leg["need"]):
            return  # it is computed during the run; the certificate has its last value
        model, around = begun_model(run), Surroundings(**leg["around"])
        delta = leg["strategy"].get("options", {}).get("delta", DELTA)
        need = around.requirement(describing.need_restored(leg["need"], model), delta, model)
        record = (FleetRecord if run.has_fleet else Record)(model, need)
        record.update_need()
        run.count_into(record, run.is_table)
        record.update_need()
        self._facts["progress"] = progress(record.counted)
        self._facts["missing"] = missing_pairs(record.counted) or None

    def _read_certificate(self) -> None:
        beside = self._run.beside
        self._facts["certificate"] = {"there": False}
        self._problems += [] if beside.wrong is None else [str(beside.wrong)]
        value = beside.certificate
        if value is None:
            return
        wrong = unfit(value, self._run.contents)
        if wrong is not None:  # what it says is not about what is shown here
            self._problems.append(str(Damaged(CERTIFICATE, None, wrong)))
            self._facts["certificate"] = {"there": True, "of this log": False}
            return
        names = ("met", "stop", "guarantee", "unseen", "states", "pairs", "of discovered")
        fitting = {"there": True, "of this log": True}
        self._facts["certificate"] = fitting | {name: value.get(name) for name in names}
        self._facts["unreachable"] = value.get("unreachable") or None

    def _rate(self) -> dict[str, Any] | None:
        """Return events a second since the run was begun or last taken up, from times in the manifest and of files."""
        chain, last = self._run.path / CHAIN, self._run.manifest["continued"][-1:]
        since = last[0]["when"] if last else self._run.manifest["created"]
        events = self._run.contents.rows - (last[0]["event"] if last else 0)
        try:
            seconds = os.lstat(chain).st_mtime - datetime.fromisoformat(since).timestamp()
        except (OSError, ValueError, OverflowError):
            return None
        if events <= 0 or seconds < SHORTEST:
            return None
        return {"events a second": events / seconds, "since": since, "seconds": seconds}


def progress(record: Record) -> dict[str, Any]:
    """Return how far a record is, as `show` says it."""
    need, unmet, model = record.need, record.need.unmet(), record.model
    states = need.requirement.num_states(model)  # 0 before the first is discovered
    reset = model.states.reset
    is_reset_asked = need.requirement.of_discovered and reset >= 0 and need.pair[model.rows.ptr[reset]] > 0
    return {
        "met": need.proportion_met if states else 0.0,
        "states": states - int(is_reset_asked),  # as in the result: the reset is none, although it has its need
        "of_discovered": need.requirement.of_discovered,
        "missing": int((unmet["needed"] - unmet["have"]).sum()),
        "unmet": len(unmet),
    }


def missing_pairs(record: Record) -> list[dict[str, Any]]:
    """Return the pairs that lack most samples."""
    model, unmet = record.model, record.need.unmet()
    unmet = unmet[np.argsort(unmet["have"] - unmet["needed"], kind="stable")][:SHOWN]
    return [
        {"state": _named(model, s), "action": _action(model, a), "needed": needed, "have": have}
        for s, a, needed, have in unmet.tolist()
    ]


def _action(model: EmpiricalModel, a: int) -> str:
    return "any" if a < 0 else f"{model.actions[a]!s:.40}"


def _named(model: EmpiricalModel, s: int) -> str:
    if s == model.states.reset:
        return "the reset"
    return "observations not made yet" if s >= model.states.used else model.states.name(s)


def _need_of(leg: Mapping[str, Any]) -> str:
    """Return what a leg needs, in words."""
    if leg["application"] is not None:
        given = ", ".join(f"{name}={value!s:.20}" for name, value in leg["application"]["arguments"].items())
        return f"{leg['application']['name']}({given})"
    kind, value = next(iter(leg["need"].items()))
    if kind in ("of each pair", "of each discovered"):
        return f"{value} samples {kind}" + ("" if kind == "of each pair" else " pair")
    return {"by key": "by observation", "given": f"{value!s:.60}"}.get(kind, "by pair and state")


def _disk(directory: Path, events: int) -> dict[str, Any]:
    found = sizes(directory)
    chain = directory / CHAIN
    log = sum(size for name, size in found.items() if name.startswith("log/"))
    synced = (
        datetime.fromtimestamp(chain.stat().st_mtime, UTC).isoformat(timespec="seconds") if chain.is_file() else None
    )
    return {
        "bytes": sum(found.values()),
        "bytes a transition": log / events if events else None,
        "segments": sum(name.startswith("log/") and name.endswith(".arrow") for name in found),
        "last sync": synced,
    }


def _text_of_system(system: Mapping[str, Any]) -> str:
    source = system["source"]
    if source is None:
        return f"{system['name']}" + (", stored with the run" if system["kind"] == "table" else ", made by the caller")
    if "process" in source:
        return f"the program {' '.join(source['process'])}"
    settings = ", ".join(f"{name}={value!r}" for name, value in source.get("settings", {}).items())
    return f"{source['env']}" + (f" with {settings}" if settings else "")


def _text_of_progress(progress: Mapping[str, Any]) -> str:
    kind = "discovered" if progress["of_discovered"] else "known"
    met = f"{progress['met']:.1%} of the {progress['states']:,} states {kind} met"
    return f"{met}, {progress['missing']:,} samples missing"


def _text_of_missing(pairs: list[Any]) -> str:
    listed = [f"{pair['have']} of {pair['needed']} of {pair['state']}, action {pair['action']}" for pair in pairs]
    return "; ".join(listed) + ("; ..." if len(pairs) == SHOWN else "")


def _text_of_disk(disk: Mapping[str, Any]) -> str:
    each = (
        ""
        if disk["bytes a transition"] is None
        else f", {disk['bytes a transition']:.2f} bytes a transition in the log"
    )
    return f"{disk['bytes']:,} bytes{each}, {disk['segments']} segment(s), last sync {disk['last sync'] or 'never'}"


def _text_of_certificate(certificate: Mapping[str, Any]) -> str:
    if not certificate["there"]:
        return "none: the run is unfinished"
    if not certificate["of this log"]:
        return "not that of this run as it is here"
    return f"{certificate['stop']}, {'met' if certificate['met'] else 'not met'}, {certificate['guarantee']}"


def _text_of_fleet(fleet: Mapping[str, Any]) -> str:
    workers = f"workers={fleet['workers']}, " if fleet["workers"] is not None else ""
    lost = f"{fleet['lost']:,} samples lost or late, {fleet['unknown']:,} outcomes unknown"
    return f"{workers}{fleet['joined']:,} walkers joined, {lost}, {fleet['in flight']:,} in flight at the last sync"


def _text_of_legs(legs: list[Any]) -> str:
    return "; ".join(f"{leg['need']} from event {leg['first']:,}" for leg in legs)


def _text_of_continued(continued: list[Any]) -> str:
    more = f" and {len(continued) - SHOWN} before" if len(continued) > SHOWN else ""
    return "; ".join(f"{entry['how']} at event {entry['event']:,}" for entry in continued[-SHOWN:]) + more


_TEXTS: dict[str, Callable[[Any], str]] = {
    "system": _text_of_system,
    "need": str,
    "strategy": str,
    "data": data_in_words,
    "seed": str,
    "created": str,
    "legs": lambda legs: _text_of_legs(legs) if len(legs) > 1 else "one",
    "continued": lambda entries: _text_of_continued(entries) if entries else "never",
    "progress": _text_of_progress,
    "missing": _text_of_missing,
    "fleet": _text_of_fleet,
    "steps": "{:,}".format,
    "resets": "{:,}".format,
    "crashes": "{:,}".format,
    "rate": lambda rate: f"{rate['events a second']:,.0f} steps and resets/s, from {rate['since']} to the last sync",
    "model": lambda model: (
        f"{model['states']:,} states, {model['pairs']:,} pairs, {model['transitions']:,} transitions"
    ),
    "disk": _text_of_disk,
    "certificate": _text_of_certificate,
    "writer": lambda held: "a process is writing now" if held else "nobody writes now",
}
