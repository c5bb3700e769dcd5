"""What a batch of a fleet's log says besides its rows: who joined and left, and which orders were open at its end.

It is JSON in the custom metadata of the record batch, under the key `gosprl.fleet`, so the chain of digests covers it::

    {"in flight": [[number, walker, state, action], ...], "events": [[row, what, walker], ...]}

`row` is the number of rows of the log before it happened, `what` one of "joined", "left", "stopped" and "killed"; the
walker of the last two is 0. The metadata may come from a stranger: everything is checked here.
"""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.journal import UNKNOWN
from gosprl.fleet.orders import RESET as RESET_ORDER
from gosprl.runs.events import RESET

KEY = b"gosprl.fleet"
MOST_BYTES = 2**23  # of the metadata of a batch
MOST_WALKERS = 2**16  # at a time: the column has 16 bits
JOINED, LEFT, STOPPED, KILLED = "joined", "left", "stopped", "killed"
KINDS = (JOINED, LEFT, STOPPED, KILLED)


class Open(NamedTuple):
    """An order that was open at the end of a batch; states and walkers have their numbers in the log."""

    number: int
    walker: int
    state: int
    action: int


class Aside(NamedTuple):
    """Something that happened and is no row of the log."""

    row: int  # the number of rows before it
    what: str
    walker: int


@dataclass(frozen=True)
class Notes:
    """What a batch says besides its rows."""

    in_flight: tuple[Open, ...] = ()
    events: tuple[Aside, ...] = field(default=())

    def metadata(self) -> dict[bytes, bytes]:
        """Return the custom metadata of the batch."""
        value = {"in flight": [list(order) for order in self.in_flight], "events": [list(one) for one in self.events]}
        return {KEY: json.dumps(value, separators=(",", ":")).encode()}


def notes_of(metadata: Mapping[bytes, bytes] | None) -> Notes | None:
    """Return the notes of a batch, None if it has none; `ValueError` if they are not what a fleet writes."""
    if not metadata:
        return None
    if set(metadata) != {KEY} or len(metadata[KEY]) > MOST_BYTES:
        raise ValueError(f"expected metadata with the key {KEY.decode()!r} only, of at most {MOST_BYTES} bytes")
    value = json.loads(metadata[KEY])
    if type(value) is not dict or set(value) != {"in flight", "events"}:
        raise ValueError("expected the metadata of a fleet: in flight and events")
    in_flight = tuple(_open(entry) for entry in _list(value["in flight"]))
    events = tuple(_aside(entry) for entry in _list(value["events"]))
    if any(b.number <= a.number for a, b in itertools.pairwise(in_flight)):
        raise ValueError("in flight: expected orders with increasing numbers")
    if any(b.row < a.row for a, b in itertools.pairwise(events)):
        raise ValueError("events: expected them in order")
    return Notes(in_flight, events)


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueError("expected lists in the metadata of a fleet")
    return value


def _open(entry: Any) -> Open:
    if type(entry) is not list or len(entry) != 4 or not all(type(part) is int for part in entry):
        raise ValueError(f"in flight: expected [number, walker, state, action], got {entry!r:.60}")
    order = Open(*entry)
    fits = 0 <= order.number < 2**62 and 0 <= order.walker < MOST_WALKERS
    if not (fits and -1 <= order.state < 2**31 and -1 <= order.action < 2**31):
        raise ValueError(f"in flight: expected numbers that a log holds, got {entry!r:.60}")
    return order


def _aside(entry: Any) -> Aside:
    sound = type(entry) is list and len(entry) == 3 and type(entry[0]) is int and type(entry[2]) is int
    if not sound or entry[1] not in KINDS or not (0 <= entry[0] < 2**62 and 0 <= entry[2] < MOST_WALKERS):
        raise ValueError(f"events: expected [row, what, walker], got {entry!r:.60}")
    return Aside(*entry)


def given_up(in_flight: tuple[Open, ...], row: int) -> dict[str, NDArray[Any]]:
    """Return rows of the log that give up orders: they are appended from `row` on where a learner was ended."""
    n = len(in_flight)
    number, walker, state, action = (np.array(part, dtype=np.int64) for part in zip(*in_flight, strict=True))
    return {
        "walker": walker.astype(np.uint16),
        "order": (number - row - np.arange(n)).astype(np.int32),
        "state": state.astype(np.int32),
        "action": action.astype(np.int32),
        "next_state": np.full(n, -1, dtype=np.int32),
        "reward": np.zeros(n),
        "flags": np.where(action == RESET_ORDER, UNKNOWN | RESET, UNKNOWN).astype(np.uint8),
    }


def closing(in_flight: tuple[Open, ...], row: int) -> Notes:
    """Return the notes of that batch."""
    return Notes((), (Aside(row, KILLED, 0),) if in_flight else ())
