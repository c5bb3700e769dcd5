"""The need of a fleet: what is in flight counts as if it were there, so that nothing is collected twice.

There are two views of one requirement. That of the committed samples decides what is met; adaptive requirements are
evaluated on it. That of the planners (`FleetNeed`) counts everything that returned, and asks for as many samples less
as are in flight.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.need import Need
from gosprl.collecting.record import Record
from gosprl.collecting.requirements import NO_ROWS, Requirement
from gosprl.collecting.rules import COLLECTED, MISSING, UNMET_STATES, VERSION
from gosprl.model.empirical import EmpiricalModel


class Heard(Requirement):
    """A requirement that remembers what its last update changed."""

    def __init__(self, inner: Requirement) -> None:
        self.inner, self.of_discovered, self.is_fixed = inner, inner.of_discovered, inner.is_fixed
        self.changed: NDArray[np.int64] | None = None

    @property
    def pair(self) -> NDArray[np.int64]:  # type: ignore[override]
        """[R] samples needed of each row."""
        return self.inner.pair

    @property
    def state(self) -> NDArray[np.int64]:  # type: ignore[override]
        """[S] samples needed of each state."""
        return self.inner.state

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Let the requirement look at the committed samples."""
        self.changed = self.inner.update(model, rows)
        return self.changed

    def remember(self) -> dict[str, Any] | None:
        """Return what the requirement remembers."""
        return self.inner.remember()

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Let the requirement recall."""
        self.inner.recall(memory)

    def resize(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Take over the model's number of states and rows."""
        self.inner.resize(model, rows)

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """(`pair`, `state`, `num_states`) as a result reports them."""
        return self.inner.as_of_now(model)

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of states that the requirement speaks of."""
        return self.inner.num_states(model)


class Mirrored(Heard):
    """The same needs, evaluated on the committed samples, for planners that count everything returned."""

    def __init__(self, committed: Record, heard: Heard) -> None:
        super().__init__(heard)
        self._committed, self._heard = committed, heard

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Let the requirement look at the committed samples; what changed there changed here."""
        self._committed.update_need()
        return self._heard.changed

    def resize(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Nothing to do: the other view has done it."""

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """(`pair`, `state`, `num_states`) as a result reports them."""
        return self.inner.as_of_now(self._committed.model)

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of states that the requirement speaks of."""
        return self.inner.num_states(self._committed.model)


class FleetNeed(Need):
    """What is missing, and not in flight.

    Parameters
    ----------
    model
        The counts of everything returned.
    requirement
        What is needed.
    counted
        The view of the committed samples: what is waived here is waived there.
    flush
        Lets the model count everything that landed. In between, the numbers of this need are ahead of the model's, and
        `visits` are those of the model with what it has not counted yet.
    """

    def __init__(
        self, model: EmpiricalModel, requirement: Requirement, counted: Need, flush: Callable[[], None]
    ) -> None:
        super().__init__(model, requirement)
        self.counted, self._flush = counted, flush
        self.in_flight: dict[int, int] = {}  # row -> samples
        self._asked: dict[int, int] = {}  # row in flight -> samples needed
        self._of_state: dict[int, list[int]] = {}  # state with samples in flight -> how many, and samples needed

    def reserve(self, row: int, visits: int) -> bool:
        """Ask for one sample less of a row: it is in flight. Whether its state has all that it needs by that."""
        ledger = self.ledger
        number, s = self.in_flight.get(row, 0), int(ledger.row_state[row])
        was = ledger.unmet_items[s]
        if not number:
            self._asked[row] = int(ledger.pair[row])
        self.in_flight[row] = number + 1
        if self.of_states:
            self._of_state.setdefault(s, [0, int(ledger.state[s])])[0] += 1
        self._hide(row, s, visits)
        if was and not ledger.unmet_items[s]:
            self.settled.append(s)
            return True
        return False

    def release(self, row: int, visits: int) -> None:
        """Ask for one sample more of a row: one that was in flight is lost."""
        s = int(self.ledger.row_state[row])
        was = self.unmet_items[s]
        self.in_flight[row] -= 1
        if s in self._of_state:
            self._of_state[s][0] -= 1
        self._hide(row, s, visits)
        self._forget(row, s)
        if self.unmet_items[s] and not was:
            self.ledger.totals[VERSION] += 1  # planners have dropped this goal

    def land(self, row: int, visits: int, s_next: int, was_in_flight: bool) -> None:
        """Count one more sample of a row; otherwise it was given up before, or never issued."""
        ledger = self.ledger
        s, pair, state = int(ledger.row_state[row]), ledger.pair, ledger.state
        of_pair = self._asked.get(row, pair[row])
        of_state = self._of_state[s][1] if s in self._of_state else state[s]
        of_any = ledger.state_visits[s]
        needed = int(visits < of_pair) + int(of_any < of_state)
        if needed:
            ledger.totals[COLLECTED] += needed
            ledger.credit[0] += ledger.credit_at[s_next]
            ledger.began[0] = s_next
        ledger.state_visits[s] = of_any + 1
        if was_in_flight:  # one more sample and one less in flight: as much is missing as before
            number = self.in_flight[row] = self.in_flight[row] - 1
            pair[row] = max(0, of_pair - number)
            if s in self._of_state:
                self._of_state[s][0] -= 1
                state[s] = max(0, of_state - self._of_state[s][0])
            self._forget(row, s)
        else:
            self._miss(s, -int(visits < pair[row]), -int(visits + 1 == pair[row]))
            self._miss(s, -int(of_any < state[s]), -int(of_any + 1 == state[s]))

    def _forget(self, row: int, s: int) -> None:
        """Forget what is needed of a row and of a state of which nothing is in flight."""
        if not self.in_flight[row]:
            del self.in_flight[row], self._asked[row]
        if s in self._of_state and not self._of_state[s][0]:
            del self._of_state[s]

    def _hide(self, row: int, s: int, visits: int) -> None:
        """Ask for as many samples less of a row as are in flight."""
        self._ask(self.ledger.pair, row, max(0, self._asked[row] - self.in_flight[row]), visits, s)
        if s in self._of_state:
            number, asked = self._of_state[s]
            self._ask(self.ledger.state, s, max(0, asked - number), int(self.state_visits[s]), s)

    def _ask(self, needed: NDArray[np.int64], i: int, number: int, visits: int, s: int) -> None:
        """Let `needed[i]` be this number: of a row of s, or of s itself, which has so many visits."""
        before = int(needed[i])
        if number != before:
            needed[i] = number
            more = max(0, number - visits) - max(0, before - visits)
            self._miss(s, more, int(visits < number) - int(visits < before))

    def _miss(self, s: int, samples: int, items: int) -> None:
        """Let so many more samples be missing in a state, and so many more of its items be unmet."""
        ledger = self.ledger
        if samples:
            ledger.missing_samples[s] += samples
            ledger.totals[MISSING] += samples
        if items:
            before = int(ledger.unmet_items[s])
            ledger.unmet_items[s] = before + items
            ledger.totals[UNMET_STATES] += int(before + items > 0) - int(before > 0)

    def _changed_rows(self) -> NDArray[np.int64]:
        """Return none: the requirement looks at the committed samples, whose need knows which rows changed."""
        return NO_ROWS

    def _recount(self, states: NDArray[np.int64]) -> None:
        self._flush()  # what is not counted yet has been taken into account here
        super()._recount(states)

    @contextmanager
    def _nothing_in_flight(self) -> Iterator[None]:
        """Show the whole need, while it is changed."""
        self._flush()
        ledger, visits = self.ledger, self._model.counts.visits
        of_row = [(row, int(ledger.row_state[row])) for row in self.in_flight]
        before = {s: bool(ledger.unmet_items[s]) for _, s in of_row}
        for row, s in of_row:
            self._ask(ledger.pair, row, self._asked[row], int(visits[row]), s)
            if s in self._of_state:
                self._ask(ledger.state, s, self._of_state[s][1], int(self.state_visits[s]), s)
        yield
        self._of_state.clear()
        for row, s in of_row:
            self._asked[row] = int(ledger.pair[row])
            if self.of_states:
                self._of_state.setdefault(s, [0, int(ledger.state[s])])[0] += self.in_flight[row]
        for row, s in of_row:
            self._hide(row, s, int(visits[row]))
        now = {s: bool(ledger.unmet_items[s]) for s in before}
        self.settled += [s for s in now if before[s] and not now[s]]
        if any(now[s] and not before[s] for s in now):
            ledger.totals[VERSION] += 1

    def renumber(self, row: NDArray[np.int64]) -> None:
        """Let the rows in flight have the numbers that `row` [R] has for them; call it before `resize`."""
        self.in_flight = {int(row[r]): number for r, number in self.in_flight.items()}
        self._asked = {int(row[r]): number for r, number in self._asked.items()}

    def taken(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what was asked for at the last update, what is in flight and waived states included."""
        pair, state = super().taken()
        if self._exact is None and self.in_flight:
            pair, state = pair.copy(), state.copy()
            pair[list(self._asked)] = list(self._asked.values())
            for s, (_, asked) in self._of_state.items():
                state[s] = asked
        return pair, state

    def _take(self, pair: NDArray[np.int64], state: NDArray[np.int64]) -> None:
        with self._nothing_in_flight():
            super()._take(pair, state)

    def _take_some(self, rows: NDArray[np.int64]) -> None:
        with self._nothing_in_flight():
            super()._take_some(rows)

    def waive(self, states: Mapping[int, str]) -> None:
        """Ask nothing of these states any more, in both views."""
        super().waive(states)
        self.counted.waive(states)

    def move_waiver(self, before: int, now: int) -> None:
        """Let `now` stand for what is not discovered, in both views."""
        super().move_waiver(before, now)
        self.counted.move_waiver(before, now)

    def reconsider(self) -> None:
        """Waive nothing any more, in both views."""
        super().reconsider()
        self.counted.reconsider()

    def take_offered(self, s: int) -> None:
        """Ask for nothing that a state does not offer, in both views."""
        super().take_offered(s)
        self.counted.take_offered(s)
