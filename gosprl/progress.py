"""Progress of a run, to a callable or to the terminal; and Ctrl-C, heard where nothing can be lost."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

PERIOD = 0.1  # seconds between two reports, at least


class Progress:
    """Calls the user's function at most ten times a second, and at the end; `True` writes a line to the terminal."""

    def __init__(self, progress: Any, collector: Any) -> None:
        self._call = _line if progress is True else progress if callable(progress) else None
        self._collector = collector
        self._begin = self._last = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._call is _line and sys.stderr.isatty():
            sys.stderr.write("\n")

    def __call__(self, last: bool = False) -> None:
        now = time.monotonic()
        if self._call is not None and (last or now - self._last >= PERIOD):
            self._last = now
            self._call(self._status())

    def _status(self) -> dict[str, Any]:
        record = self._collector.record
        S = record.model.num_states
        return {
            "steps": record.steps,
            "attempts": self._collector.attempts,
            "met": (S - int(record.ledger.scalars[0])) / S,
            "rate": record.steps / max(1e-9, time.monotonic() - self._begin),
        }


def _line(status: dict[str, Any]) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(
            f"\r{status['met']:7.1%} of states met  {status['steps']:>10,} steps  "
            f"{status['attempts']:>8,} plans  {status['rate']:>9,.0f} steps/s"
        )
        sys.stderr.flush()


@contextmanager
def interrupts_heard(record: Any) -> Iterator[None]:
    """Let Ctrl-C raise a flag, not an exception, which could fall between a step and its record; a second one raises.

    Only the main thread hears signals, and only where they are not to be ignored; elsewhere nothing changes.
    """
    record.interrupted = False
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: Any) -> None:
        if record.interrupted:
            raise KeyboardInterrupt
        record.interrupted = True

    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
