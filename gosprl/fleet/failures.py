"""Failures: pairs whose walkers are lost again and again, and what the last one said.

A walker that is lost is replaced, and its sample is issued again: a fleet survives machines that go away. A pair that
never has an outcome would be issued for ever. So a pair, or the reset, that has lost `ENOUGH` walkers since the fleet
began, and had no outcome in that time, ends the run. If a pair loses a walker with probability p, and that has nothing
to do with the pair, the run is ended by mistake with probability p^20 at most.
"""

import warnings

from gosprl.errors import GosprlError
from gosprl.fleet.orders import Lost
from gosprl.fleet.record import FleetRecord

ENOUGH = 20  # walkers that one pair has lost, without an outcome


class Failures:
    """Counts how many walkers each pair has lost.

    Parameters
    ----------
    record
        Of the fleet that begins now.

    Attributes
    ----------
    last
        Why the last walker with an order was lost, and the traceback below it; "" if none was.
    """

    def __init__(self, record: FleetRecord) -> None:
        self._record, self.last, self._is_warned = record, "", False
        self._rows, self._before = record.model.rows, record.model.visits.copy()  # what was there before
        self._lost: dict[tuple[int, int], int] = {}  # by (state, action)
        self._suspect = -1  # the row that has lost so many walkers; -1: there is none

    def note(self, event: Lost, row: int) -> None:
        """Note that a walker was lost while it sampled a row; -1: while it was reset, and that is no sample."""
        if event.trace and not self._is_warned:
            self._is_warned = True
            warnings.warn(
                f"a walker is gone, and the outcome of its step is lost: {event.why}. The fleet goes on with a new "
                f"walker; `lost=` says what becomes of such samples\n{event.trace}",
                stacklevel=6,
            )
        self.last = f"{event.why}\n{event.trace}".rstrip()
        if row >= 0:
            pair = self._record.model.rows.pair(row)
            self._lost[pair] = self._lost.get(pair, 0) + 1
            self._suspect = row if self._lost[pair] >= ENOUGH else self._suspect

    def check(self) -> None:
        """Raise `GosprlError` if a pair has lost many walkers and had no outcome."""
        row, self._suspect = self._suspect, -1
        if row < 0 or self._record.visits(row) > self._visits_before(row):
            return
        model = self._record.model
        s, a = model.rows.pair(row)
        what = "the reset" if s == model.states.reset else f"state {model.states.name(s)}, action {model.actions[a]}"
        raise GosprlError(
            f"{what}: expected an outcome, but all of {self._lost[s, a]} walkers that tried were lost; the last one: "
            f"{self.last}"
        )

    def _visits_before(self, row: int) -> int:
        places = self._record.model.rows.places(self._rows)
        return int(self._before[places == row].sum())
