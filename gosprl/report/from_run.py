"""Findings of a run on disk: its log is counted once; nothing is planned, made or written.

Of a damaged run everything before the first damage is shown; of a run that is being written, what was acknowledged when
the chain was read.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import UNKNOWN
from gosprl.collecting.record import Record
from gosprl.collecting.requirements import Fixed, Requirement
from gosprl.collecting.result import GREW, UNDISCOVERED, counts_of, shown_unmet
from gosprl.collecting.surroundings import Surroundings
from gosprl.errors import GosprlError
from gosprl.fleet.record import FleetRecord
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.arranged import Arrangement
from gosprl.model.empirical import EmpiricalModel
from gosprl.report.commands import command_of
from gosprl.report.findings import DELTA, MOST_LIMIT, UNMET, Findings, Walker
from gosprl.runs import describing
from gosprl.runs.certificate import CERTIFICATE, unfit
from gosprl.runs.files import Damaged
from gosprl.runs.fleet_counting import FleetCounter
from gosprl.runs.manifests import read_manifest
from gosprl.runs.models import begun_model
from gosprl.runs.opened import FORGED, OpenRun
from gosprl.runs.resuming import table_of
from gosprl.runs.showing import Shown, show

ABOUT_FILES = ("created", "legs", "continued", "rate", "disk", "writer", "data")
MORE = 1.01  # states discovered until the need takes notice, as a ratio
CANNOT = (GosprlError, OSError, *FORGED)


class _Record(Record):
    """A record whose need takes notice of states as they are discovered, so that the curve has them in time."""

    _noticed = 0

    def arrive_at(self, key: Any, actions: Sequence[int] | None = None) -> int:
        """As of `Record`; of many states, each per cent is noticed at once."""
        state = super().arrive_at(key, actions)
        if len(self.model.discovered) > MORE * self._noticed:
            self._noticed = len(self.model.discovered)
            self.update_need()
        return state


class _FleetRecord(_Record, FleetRecord):
    """The same, of a fleet; its samples are committed after the states of their batch are discovered."""

    @property
    def counted(self) -> Record:
        """As of `FleetRecord`, but the committed samples alone count as steps."""
        steps = self.committed.steps
        counted = super().counted
        counted.steps = steps
        return counted


class Counted(NamedTuple):
    """The log of a run, counted: the record, and which states and rows are shown in which order."""

    record: Record
    kept: Arrangement
    model: EmpiricalModel  # arranged
    computed: bool  # whether the need was computed during the run, so that the log does not have it
    start: int | None


def of_run(directory: str | os.PathLike[str]) -> Findings:
    """Return what there is to show of a run on disk; `InputError` if it is none, or of a newer format."""
    place = Path(directory)
    shown = show(place)
    try:
        manifest = read_manifest(place)
    except (Damaged, OSError):
        return _without_manifest(place, shown)
    run = OpenRun.of(place, manifest)
    return _Reader(run, shown).findings()


def _without_manifest(place: Path, shown: Shown) -> Findings:
    """Return what can be said of a run whose manifest is damaged."""
    return Findings(
        **_nothing(),
        system=place.name,
        stop="unknown",
        guarantee="unknown",
        delta=DELTA,
        asked=[],
        strategy="unknown",
        seed=None,
        directory=str(place),
        facts=[(name, text) for name, text in shown.lines() if name in ("events", *ABOUT_FILES)],
        problems=list(shown.problems),
        remarks=["The manifest says what the run is. Without it, its numbers have no meaning."],
    )


def _nothing() -> dict[str, Any]:
    """Return the findings of a log that could not be counted."""
    return {
        "model": None,
        "counts": np.zeros((0, 0), dtype=np.int64),
        "need": None,
        "curve": None,
        "unmet": np.empty(0, dtype=UNMET),
        "unreachable": {},
        "steps": 0,
        "attempts": None,
        "resets": 0,
        "crashes": 0,
        "unseen": None,
        "of_discovered": False,
        "states": 0,
        "pairs": 0,
    }


class _Reader:
    """Collects the findings of one run."""

    def __init__(self, run: OpenRun, shown: Shown) -> None:
        self._run, self._shown = run, shown
        self._leg: Mapping[str, Any] = run.manifest["legs"][-1]
        self._problems = list(shown.problems)
        self._remarks: list[str] = []
        self._certificate = self._read_certificate()
        self._truth = self._table()

    def findings(self) -> Findings:
        run, facts = self._run, self._shown.facts
        texts = dict(self._shown.lines())
        found = _nothing()
        counted = self._counted()
        if counted is not None:
            found |= self._of_log(counted)
        found |= {"steps": facts.get("steps") or 0, "resets": facts.get("resets") or 0}
        found["crashes"] = facts.get("crashes") or 0
        certificate = self._certificate or {}
        delta = self._leg["strategy"].get("options", {}).get("delta", DELTA)
        if self._leg["application"] is not None:
            self._remarks.append(
                "This page shows the samples. Their answer is computed from them: "
                f"gosprl resume {run.directory} --report FILE.html"
            )
        if self._problems:
            self._remarks.append(self._say_damaged(found["counts"], certificate))
        if not self._certificate:
            self._say_unfinished(bool(facts.get("writer")))
        return Findings(
            **found,
            system=str(run.manifest["system"]["name"]),
            stop=str(certificate.get("stop", "unfinished")),
            guarantee=self._promised(certificate),
            delta=delta if isinstance(delta, float) and 0 < delta < 1 else DELTA,
            asked=[("need", texts.get("need", "unknown")), ("system", texts.get("system", "unknown"))],
            strategy=str(certificate.get("strategy") or texts.get("strategy")),
            seed=run.manifest["seed"],
            limit=None if counted is None else (None, GREW) if counted.computed else self._limit(counted),
            paid=None if counted is None else counted.record.steps + counted.model.reset_cost * counted.record.quits,
            work=_numbers(certificate.get("work")),
            truth=self._truth,
            start=None if counted is None else counted.start,
            fleet=facts.get("fleet"),
            walkers=self._walkers() if run.has_fleet else [],
            facts=[(name, texts[name]) for name in ABOUT_FILES if name in texts and self._is_news(name)],
            certificate=self._certificate,
            configuration={name: run.manifest[name] for name in ("run", "format", "system", "legs", "continued")},
            command=command_of(run.manifest, certificate),
            directory=str(run.directory),
            problems=list(dict.fromkeys(self._problems)),
            remarks=self._remarks,
        )

    def _is_news(self, name: str) -> bool:
        """Whether a fact is more than that a run began once and went on to its end."""
        manifest = self._run.manifest
        return {"legs": len(manifest["legs"]) > 1, "continued": bool(manifest["continued"])}.get(name, True)

    def _promised(self, certificate: Mapping[str, Any]) -> str:
        if "guarantee" not in certificate:
            return "none yet: the run is unfinished"
        said = str(certificate["guarantee"])
        return f"{said}, says the certificate; of a damaged run it cannot be checked" if self._problems else said

    def _say_damaged(self, counts: NDArray[np.int64], certificate: Mapping[str, Any]) -> str:
        """Return what a page of a damaged run counts."""
        steps = certificate.get("steps")
        of = f" of the {steps:,} that the certificate names" if isinstance(steps, int) else ""
        return f"This page counts what comes before the damage: {int(counts.sum()):,} steps{of}."

    def _say_unfinished(self, writer: bool) -> None:
        now = "A process is writing to it now." if writer else f"To go on: gosprl resume {self._run.directory}"
        self._remarks.append(f"This run is unfinished: the page shows what was acknowledged so far. {now}")

    def _read_certificate(self) -> dict[str, Any] | None:
        certificate = self._run.beside.certificate
        if certificate is None or unfit(certificate, self._run.contents) is not None:
            return None  # `show` says why, if it is there
        try:
            return _as_certificate(certificate)
        except Damaged as error:
            self._problems.append(str(error))
            return None

    def _table(self) -> TabularMDP | None:
        if not self._run.is_table:
            return None
        try:
            return table_of(self._run)
        except CANNOT as error:
            self._remarks.append(
                f"The table that was walked is not at hand, so its map and limit are not shown: {error}"
            )
            return None

    def _counted(self) -> Counted | None:
        """Count the log; None if that is not possible."""
        run = self._run
        try:
            model = begun_model(run, self._truth)
            computed = describing.is_given(self._leg["need"])
            need = self._nothing_needed(model) if computed else self._requirement(model)
            every = _FleetRecord(model, need) if run.has_fleet else _Record(model, need)
            every.update_need()
            counter = run.count_into(every, run.is_table)
            every.update_need()
        except CANNOT as error:
            self._problems.append(str(error) or type(error).__name__)
            return None
        record = every.committed if isinstance(every, FleetRecord) else every
        kept = record.model.arrangement()
        begin = counter.beginning if isinstance(counter, FleetCounter) else counter.start
        start = int(kept.place[begin]) if run.contents.rows and begin is not None else None
        return Counted(record, kept, record.model.arranged(kept), computed, start)

    def _requirement(self, model: EmpiricalModel) -> Requirement:
        delta = self._leg["strategy"].get("options", {}).get("delta", DELTA)
        return Surroundings(**self._leg["around"]).requirement(
            describing.need_restored(self._leg["need"], model), delta, model
        )

    def _nothing_needed(self, model: EmpiricalModel) -> Requirement:
        self._remarks.append(
            "The need was computed during the run. The page shows it as it was at the end, from the certificate; how "
            "much of it was met over time is not in the log."
            if self._certificate
            else "The need is computed during the run. Until the run ends, what is missing is not known here."
        )
        rows, states = len(model.known_rows), model.num_states
        return Fixed(np.zeros(rows, dtype=np.int64), np.zeros(states, dtype=np.int64))

    def _of_log(self, counted: Counted) -> dict[str, Any]:
        record, kept, model = counted.record, counted.kept, counted.model
        counts = counts_of(model, int((~model.terminal).sum()))
        if counted.computed:
            needed = self._certified_need(counts.shape)
        else:
            pair, state, _ = record.need.asked()
            needed = (
                model.rows.to_dense(pair[kept.rows])[: len(counts), : counts.shape[1]],
                state[kept.states][: len(counts)],
            )
        certificate = self._certificate if not self._problems else None
        unmet = np.empty(0, dtype=UNMET)
        if not counted.computed:
            unmet = shown_unmet(record.model, record.need.unmet(), kept)
        elif certificate is not None:
            unmet = _unmet_of(certificate)
        pairs = 0 if needed is None else int((needed[0] > 0).sum())
        states = 0 if needed is None else int(((needed[0] > 0).any(axis=1) | (needed[1] > 0)).sum())
        return {
            "model": model,
            "counts": counts,
            "need": needed,
            "curve": None if counted.computed else _curve(record, self._shown.facts.get("steps")),
            "unmet": unmet,
            "unreachable": dict((certificate or {}).get("unreachable", [])),
            "attempts": (certificate or {}).get("attempts"),
            "unseen": (certificate or {}).get("unseen"),
            "of_discovered": record.need.requirement.of_discovered,
            "pairs": pairs,
            "states": states,
        }

    def _certified_need(self, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the need of the certificate, if it fits the log."""
        need: Any = (self._certificate or {}).get("need")
        try:
            pair = np.array(need["pairs"], dtype=np.int64).reshape(shape)
            return pair, np.array(need["states"], dtype=np.int64).reshape(shape[:1])
        except FORGED:
            return None

    def _limit(self, counted: Counted) -> tuple[float | None, str] | None:
        """Return the fluid limit of the need, from what was there before the run on; None if it would take long."""
        from gosprl.theory.limits import limit_of_walks_in

        model, start = counted.model, counted.start
        if start is None or model.rows.num_states > MOST_LIMIT or self._run.data is not None:
            return None
        if not counted.record.need.requirement.is_fixed:
            return None, GREW
        pair, state, _ = counted.record.need.asked()
        return limit_of_walks_in(self._truth, model, pair[counted.kept.rows], state[counted.kept.states], start)

    def _walkers(self) -> list[Walker]:
        """Return the steps of each walker, from the log."""
        steps, lost = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        try:
            for columns in self._run.contents.batches():
                walker, gone = columns["walker"].astype(np.int64), (columns["flags"] & UNKNOWN) > 0
                made = (columns["action"] >= 0) & ~gone
                size = max(len(steps), int(walker.max(initial=0)) + 1)
                steps, lost = np.pad(steps, (0, size - len(steps))), np.pad(lost, (0, size - len(lost)))
                steps += np.bincount(walker[made], minlength=size)
                lost += np.bincount(walker[gone], minlength=size)
        except CANNOT as error:
            self._problems.append(str(error))
        used = np.flatnonzero(steps + lost).tolist()
        return [Walker(w, int(steps[w]), int(lost[w])) for w in used]


def _as_certificate(value: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate whose parts that a page shows are what they should be; `Damaged` if one is not."""
    numbers = [value.get(name) for name in ("steps", "attempts")]
    unseen = value.get("unseen")
    try:
        fits = (
            all(isinstance(number, int) and number >= 0 for number in numbers)
            and isinstance(value["stop"], str)
            and (unseen is None or isinstance(unseen, int | float))
            and bool((_unmet_of(value)["state"] >= UNDISCOVERED).all())
            and all(
                isinstance(s, int) and s >= UNDISCOVERED and isinstance(why, str) for s, why in value["unreachable"]
            )
        )
    except FORGED:
        fits = False
    if not fits:
        raise Damaged(CERTIFICATE, None, "no certificate is like this")
    return value


def _unmet_of(certificate: Mapping[str, Any]) -> NDArray[np.void]:
    return np.array([tuple(entry) for entry in certificate["unmet"]], dtype=UNMET)


def _curve(record: Record, steps: int | None) -> NDArray[np.void]:
    curve = np.empty(len(record.curve), dtype=[("step", np.int64), ("proportion", np.float64)])
    curve[:] = record.curve
    curve["step"] = np.minimum(curve["step"], record.steps if steps is None else steps)
    return curve


def _numbers(work: Any) -> dict[str, float]:
    """Return the numbers of a certificate's account of work, whoever wrote it."""
    known = work.items() if isinstance(work, Mapping) else ()
    return {str(name): float(value) for name, value in known if isinstance(value, int | float)}
