"""`watch`: looks at a run again and again, while another process, or another machine, makes it."""

import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gosprl import _checks
from gosprl.printing import printable
from gosprl.runs.certificate import CERTIFICATE
from gosprl.runs.files import Damaged, read_json, stamp_of
from gosprl.runs.locks import is_being_written
from gosprl.runs.showing import missing_pairs, progress
from gosprl.watching.following import Follower
from gosprl.watching.forecast import LEVEL, Forecast, forecast

WINDOW = 10.0  # seconds over which a rate is measured
SHARE = 0.1  # of the time that a forecast may take
GONE = 2  # looks without a writer after which a run without a certificate has stopped


@dataclass(frozen=True)
class Look:
    """What was seen of a run at one time.

    Attributes
    ----------
    facts
        As JSON values: `time`, `events`, `steps`, `resets`, `states`, `met` (the proportion), `missing` and `collected`
        samples, `rate` (steps a second, None before it is known), `forecast` (`steps` and `seconds` left, each with
        `low`, `middle` and `high`, at `level`), `missing_pairs`, `walkers`, `unknown`, `writer`, `finished`, `stop`.
    """

    facts: dict[str, Any] = field(repr=False)

    @property
    def finished(self) -> bool:
        """Whether the run has ended, or nobody writes to it any more."""
        return bool(self.facts["finished"])

    def lines(self) -> list[tuple[str, str]]:
        """Return the facts as (name, text), for people."""
        facts = self.facts
        texts = [
            ("met", _met(facts)),
            ("steps", f"{facts['steps']:,}" + ("" if facts["rate"] is None else f", {facts['rate']:,.0f} a second")),
            ("left", _left(facts["forecast"])),
            ("missing", _missing(facts["missing_pairs"])),
            (
                "walkers",
                "" if facts["walkers"] is None else f"{facts['walkers']:,}, {facts['unknown']:,} unknown places",
            ),
            ("run", _state(facts)),
        ]
        return [(name, printable(text)) for name, text in texts if text]


def watch(directory: str | os.PathLike[str], every: float = 1.0) -> Iterator[Look]:
    """Look at a run every so many seconds, until it ends or nobody writes to it any more.

    Parameters
    ----------
    directory
        The run; it is only read.
    every
        Seconds between two looks.

    Raises
    ------
    InputError
        It is no run, or one of a newer format.
    GosprlError
        It is damaged.

    Examples
    --------
    >>> import gosprl, tempfile
    >>> run = tempfile.mkdtemp()
    >>> result = gosprl.collect("riverswim6", need=10, seed=0, out=run)
    >>> [look.facts["met"] for look in gosprl.watching.watch(run)]
    [1.0]
    """
    _checks.positive("every", every)
    watcher = _Watcher(Path(directory))
    while True:
        look = watcher.look()
        yield look
        if look.finished:
            return
        time.sleep(every)


class _Watcher:
    """Follows a run, and remembers what a rate and a forecast need."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._follower = Follower(directory)
        self._times: deque[tuple[float, int]] = deque()  # (when, steps) of looks that found something
        self._forecast: Forecast | None = None
        self._forecast_at = -1  # the steps that it was made at
        self._busy_until = 0.0
        self._without_writer = 0
        self._certified: dict[str, Any] = {}
        self._read: tuple[int, ...] | None = None  # the stamp of the certificate that was read

    def look(self) -> Look:
        """Read what is new, and say how far the run is."""
        certificate = self._certificate()  # before the log: then all of it is there
        writer = is_being_written(self._directory)
        new, now = self._follower.look(), time.monotonic()
        record, known = self._follower.record, self._follower.needs_are_known
        if new or not self._times:
            self._times.append((now, record.steps))
        while len(self._times) > 2 and now - self._times[1][0] > WINDOW:
            self._times.popleft()
        self._without_writer = self._without_writer + 1 if writer is False and not new else 0
        ended = certificate is not None and self._follower.is_at(certificate)
        facts: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "events": self._follower.events,
            "steps": record.steps,
            "resets": record.resets,
            "states": None,
            "of_discovered": None,
            "met": None,
            "missing": None,
            "unmet": None,
            **(progress(record.counted) if known else {}),
            "missing_pairs": missing_pairs(record.counted) if known else [],
            "rate": self._rate(now),
            "walkers": self._follower.walkers if self._follower.run.has_fleet else None,
            "unknown": int(record.counted.model.unknown.sum()),
            "writer": writer,
            "finished": ended or self._without_writer >= GONE,
            "stop": certificate["stop"] if ended and certificate is not None else None,
        }
        self._foresee(bool(facts["finished"]) or not known)
        return Look({**facts, "forecast": self._as_facts(facts["rate"])})

    def _certificate(self) -> dict[str, Any] | None:
        path = self._directory / CERTIFICATE
        stamp = stamp_of(path)
        if stamp != self._read:
            try:
                self._certified = read_json(path, root=self._directory)
            except (Damaged, OSError):
                self._certified = {}  # there is none, or it is damaged: verify says which
            self._read = stamp
        return self._certified if isinstance(self._certified.get("events"), int) else None

    def _rate(self, now: float) -> float | None:
        (first, before), (_, steps) = self._times[0], self._times[-1]
        return (steps - before) / (now - first) if steps > before else None

    def _foresee(self, pointless: bool) -> None:
        """Forecast anew, if there is something new and the last one did not take too much of the time."""
        follower, begin = self._follower, time.monotonic()
        steps = follower.record.steps
        if pointless or steps == 0:
            self._forecast = None
        elif steps != self._forecast_at and begin >= self._busy_until:
            then = min(follower.past, key=lambda one: abs(one.step - steps / 2))
            strategy = follower.run.manifest["legs"][-1]["strategy"].get("name", "")
            self._forecast = forecast(follower.record.counted.model, follower.left(), then, strategy)
            self._forecast_at = steps
            took = time.monotonic() - begin
            self._busy_until = begin + took / SHARE

    def _as_facts(self, rate: float | None) -> dict[str, Any] | None:
        if self._forecast is None:
            return None
        made = self._follower.record.steps - self._forecast_at
        names = {"low": self._forecast.low, "middle": self._forecast.steps, "high": self._forecast.high}
        steps = {name: max(0.0, value - made) for name, value in names.items()}
        seconds = None if not rate else {name: value / rate for name, value in steps.items()}
        return {"level": LEVEL, "steps": steps, "seconds": seconds}


def _met(facts: dict[str, Any]) -> str:
    if facts["met"] is None:
        return "not known here: the need is computed during the run"
    kind = "discovered" if facts["of_discovered"] else "known"
    return f"{facts['met']:.1%} of the {facts['states']:,} states {kind}, {facts['missing']:,} samples missing"


def _left(forecast: dict[str, Any] | None) -> str:
    if forecast is None:
        return ""
    steps = forecast["steps"]
    text = f"about {steps['middle']:,.0f} steps ({forecast['level']:.0%}: {steps['low']:,.0f} to {steps['high']:,.0f})"
    if forecast["seconds"] is None:
        return text
    low, middle, high = (duration(forecast["seconds"][name]) for name in ("low", "middle", "high"))
    return f"{text}, about {middle} ({low} to {high})"


def duration(seconds: float) -> str:
    """Return a time as text, with one unit."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 1 else "less than 1 s"


def _missing(pairs: list[dict[str, Any]]) -> str:
    listed = [f"{one['have']} of {one['needed']} of {one['state']}, action {one['action']}" for one in pairs]
    return "\n".join(listed)


def _state(facts: dict[str, Any]) -> str:
    if facts["stop"] is not None:
        return f"finished: {facts['stop']}"
    if facts["finished"]:
        return "nobody writes, and it has no certificate: gosprl resume goes on with it"
    return {True: "a process is writing", False: "nobody writes", None: "who writes cannot be known here"}[
        facts["writer"]
    ]
