"""Progress of a run, to a callable or to the terminal; and Ctrl-C, heard where nothing can be lost."""

import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gosprl.errors import InputError

if TYPE_CHECKING:
    from gosprl.collecting.collector import Collector
    from gosprl.collecting.engine import Engine

PERIOD = 0.1  # seconds between two reports, at least
LINE_PERIOD = 5.0  # seconds between two lines where they cannot be written over
LOG_PERIOD = 60.0  # seconds between two lines of a log
FORECAST_LINES = 5  # over which a forecast looks back


class _Reports(ABC):
    """Calls the user's function at most ten times a second, and at the end.

    `True` writes to stderr: on a terminal one line that is written over, elsewhere (notebooks, logs) a line from time
    to time.
    """

    def __init__(self, progress: Any) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise InputError(f"progress: expected True, False, None or a callable, got {progress!r:.80}")
        self._call = self._write if progress is True else progress if callable(progress) else None
        self._on_terminal = progress is True and sys.stderr.isatty()
        self._period = PERIOD if self._on_terminal or progress is not True else LINE_PERIOD
        self._begin = self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on_terminal:
            sys.stderr.write("\n")

    def __call__(self, last: bool = False) -> None:
        now = time.monotonic()
        if self._call is not None and (last or now - self._last >= self._period):
            self._last = now
            self._call(self._status())

    def _write(self, status: dict[str, Any]) -> None:
        line = self._line(status)
        sys.stderr.write(f"\r{line}" if self._on_terminal else f"{line}\n")
        sys.stderr.flush()

    def _seconds(self) -> float:
        return max(1e-9, time.monotonic() - self._begin)

    @abstractmethod
    def _status(self) -> dict[str, Any]: ...

    @abstractmethod
    def _line(self, status: dict[str, Any]) -> str: ...


class Progress(_Reports):
    """Of a collector's run."""

    def __init__(self, progress: Any, collector: "Collector") -> None:
        super().__init__(progress)
        self._collector, self._before = collector, collector.record.steps

    def _status(self) -> dict[str, Any]:
        record = self._collector.record
        return {
            "steps": record.steps,
            "attempts": self._collector.attempts,
            "met": record.need.proportion_met,
            "states": record.need.num_states,
            "of_discovered": record.need.requirement.of_discovered,
            "missing": record.need.missing,
            "collected": record.need.collected,
            "saved": None if record.journal is None else record.journal.saved,
            "rate": (record.steps - self._before) / self._seconds(),  # of this call: a run may have been resumed
            **self._collector.fleet_status(),
        }

    def _line(self, status: dict[str, Any]) -> str:
        return (
            f"{status['met']:7.1%} of {states_of(status)} met  {status['steps']:>10,} steps  "
            f"{status['attempts']:>8,} plans  {status['rate']:>9,.0f} steps/s{fleet_of(status)}"
        )


def fleet_of(status: dict[str, Any]) -> str:
    """Return the walkers that a status speaks of, in words; nothing if there is one walker."""
    if "walkers" not in status:
        return ""
    lost = f", {status['lost']:,} lost" if status["lost"] else ""
    return f", {status['walkers']:,} walkers, {status['in_flight']:,} in flight{lost}"


def states_of(status: dict[str, Any]) -> str:
    """Return the states that a status speaks of, in words."""
    return f"the {status['states']:,} states {'discovered' if status['of_discovered'] else 'known'}"


class LogLines:
    """Writes a line to stderr from time to time, for runs that nobody watches; given to `collect(progress=)`.

    A line has the time, the proportion met, the steps made and saved, the rate since the last line, and a forecast:
    the samples missing, at the rate at which needed samples came in during the last lines.
    """

    def __init__(self) -> None:
        self._past: deque[tuple[float, int, int]] = deque(maxlen=FORECAST_LINES + 1)  # (time, steps, collected)

    def __call__(self, status: dict[str, Any]) -> None:
        """Take what a run says of itself; a line is written when one is due."""
        now = time.monotonic()
        point = (now, status["steps"], status["collected"])
        if not self._past:
            self._past.append(point)
        elif now - self._past[-1][0] >= LOG_PERIOD:
            rate = (point[1] - self._past[-1][1]) / (now - self._past[-1][0])
            line = f"{_clock()} {_logged(status, rate)}, {_forecast(status['missing'], self._past[0], point)}"
            self._past.append(point)
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()


def _clock() -> str:
    return datetime.now().isoformat(timespec="seconds")


def _logged(status: dict[str, Any], rate: float) -> str:
    saved = "" if status["saved"] is None else f", {status['saved']:,} saved"
    met = f"{100 * status['met']:.1f} % of {states_of(status)} met"
    return f"{met}, {status['steps']:,} steps{saved}, {rate:,.0f} steps/s{fleet_of(status)}"


def _forecast(missing: int, then: tuple[float, int, int], now: tuple[float, int, int]) -> str:
    """Return how long the missing samples would take at the rate between two points (time, steps, collected)."""
    collected, seconds = now[2] - then[2], now[0] - then[0]
    if collected <= 0:
        return "time left unknown: no needed sample was collected lately"
    left = missing * seconds / collected
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if left >= 2 * size:
            return f"about {left / size:,.0f} {unit} left"
    return f"about {left:,.0f} s left"


class GoalProgress(_Reports):
    """Of shortest-path problems solved one goal after the other."""

    def __init__(self, progress: Any, goals: int) -> None:
        super().__init__(progress)
        self._goals, self._done = goals, 0

    def one_more(self) -> None:
        """Report that one more goal is done."""
        self._done += 1
        self(last=self._done == self._goals)

    def _status(self) -> dict[str, Any]:
        return {"done": self._done, "goals": self._goals, "rate": self._done / self._seconds()}

    def _line(self, status: dict[str, Any]) -> str:
        left = (status["goals"] - status["done"]) / max(1e-9, status["rate"])
        return (
            f"{status['done']:>9,} of {status['goals']:,} goals  {status['rate']:>9,.1f} goals/s  {left:>7,.0f} s left"
        )


_walking: list["Engine"] = []  # those that a flag stops, in the main thread
_asked = False  # whether an end was asked for while nothing walked


def interrupt() -> bool:
    """Let the run of the main thread stop where nothing can be lost; whether there is one that was not told before."""
    if not _walking or _walking[-1].interrupted:
        return False
    _walking[-1].interrupted = True
    return True


def raise_interrupt() -> None:
    """Let the run of the main thread stop, or raise `KeyboardInterrupt` where there is none, or it was told before.

    An exception that a signal raises in a destructor or in a callback of another library is lost. Therefore it is
    noted, and the next run does not begin (`interrupts_heard`).
    """
    global _asked
    if not interrupt():
        _asked = True
        raise KeyboardInterrupt


def is_interrupted() -> bool:
    """Whether the run of the main thread was told to stop."""
    return bool(_walking) and _walking[-1].interrupted


@contextmanager
def interrupts_heard(engine: "Engine") -> Iterator[None]:
    """Let Ctrl-C raise a flag, not an exception, which could fall between a step and its record; a second one raises.

    Only the main thread hears signals, and Ctrl-C only where it is not to be ignored; elsewhere nothing changes.
    """
    global _asked
    engine.interrupted = False
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if _asked:
        _asked = False
        raise KeyboardInterrupt

    def heard(number: int, frame: Any) -> None:
        if not interrupt():
            raise KeyboardInterrupt

    _walking.append(engine)
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    before = None if ignored else signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        _walking.remove(engine)
        if not ignored:
            signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let Ctrl-C raise at the end, not where it would leave half a file; a second one raises at once."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    heard = False

    def defer(number: int, frame: Any) -> None:
        nonlocal heard
        if heard:
            raise KeyboardInterrupt
        heard = True

    before = signal.signal(signal.SIGINT, defer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        signal.raise_signal(signal.SIGINT)  # as the handler before would have taken it
