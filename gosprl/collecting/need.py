"""Need: what is needed and not yet there, as strategies read it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.requirements import Requirement, checked, checked_rows, scattered
from gosprl.collecting.rules import COLLECTED, MISSING, UNMET_STATES, VERSION
from gosprl.model.empirical import EmpiricalModel

MANY = 2**26  # states and rows that a model which grows may come to have
ALL = 2**62  # samples that no walk will ever bring; the sum over all pairs and states must stay below it


class Need:
    """A view of what is missing; its arrays and numbers change as samples come in.

    An item is a pair, or a state with a need of its own ("any action"). A sample that serves both counts for both.

    Attributes
    ----------
    pair
        [R] samples needed of each row.
    state
        [S] samples needed of each state, with any action.
    state_visits
        [S] N(s), the samples of each state so far.
    unmet_items
        [S] items of each state that are unmet; positive: the state is under-sampled.
    missing_samples
        [S] samples that the items of each state lack.
    credit_at
        [S] credit of a needed sample that leads there; written by planners that keep accounts.
    """

    def __init__(self, model: EmpiricalModel, requirement: Requirement) -> None:
        from gosprl._kernels import Ledger

        S, R = model.rows.num_states, len(model.rows)
        self.requirement = requirement
        self._rows = model.rows
        self.waived: dict[int, str] = {}  # states that nothing is asked of any more, and why
        self.unmet_waived = 0  # how many of them lack samples
        self.ledger = Ledger(
            row_state=sampled_states(model),
            pair=np.zeros(R, dtype=np.int64),
            state=np.zeros(S, dtype=np.int64),
            state_visits=np.zeros(S, dtype=np.int64),
            unmet_items=np.zeros(S, dtype=np.int64),
            missing_samples=np.zeros(S, dtype=np.int64),
            totals=np.zeros(4, dtype=np.int64),
            credit_at=np.zeros(S),
            credit=np.zeros(1),
            began=np.full(1, -1),
        )
        self._name_arrays()
        self._totals = self.ledger.totals
        self.of_states = False  # whether some state has a need of its own
        self.settled: list[int] = []  # states that need no more than what is in flight, in this order; of a fleet
        self._model = model
        self._mark = -1  # of the model, at the last update
        self._most = ALL // max(R + S, MANY if model.growing else 0)
        self._exact: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # what was asked for, per row and per
        # state, where the ledger has other numbers: waived states, needs beyond `_most`

    def _name_arrays(self) -> None:
        ledger = self.ledger
        self.pair, self.state, self.state_visits = ledger.pair, ledger.state, ledger.state_visits
        self.unmet_items, self.missing_samples = ledger.unmet_items, ledger.missing_samples
        self.credit_at = ledger.credit_at

    def resize(self) -> None:
        """Take over the model's number of states and rows; nothing is asked of the new ones yet."""
        old, rows = self.ledger, self._model.rows
        S, R, row = rows.num_states, len(rows), rows.places(self._rows)
        self.ledger = old._replace(
            row_state=sampled_states(self._model),
            pair=scattered(old.pair, row, R),
            state=_padded(old.state, S),
            state_visits=_padded(old.state_visits, S),
            unmet_items=_padded(old.unmet_items, S),
            missing_samples=_padded(old.missing_samples, S),
            credit_at=_padded(old.credit_at, S),
        )
        self._rows = rows
        self._name_arrays()
        if self._exact is not None:
            self._exact = (scattered(self._exact[0], row, R), _padded(self._exact[1], S))
        self.requirement.resize(self._model, row)

    def take_offered(self, s: int) -> None:
        """Ask for nothing that a state does not offer; `asked` and `unmet` still list it."""
        begin, end = int(self._rows.ptr[s]), int(self._rows.ptr[s + 1])
        if np.any((self.pair[begin:end] > 0) & ~self._model.enabled[begin:end]):
            self._take(*self.taken())

    def not_offered(self) -> dict[int, str]:
        """Return the states of which actions are needed that they do not offer, and which."""
        if self._exact is None:
            return {}
        rows = self._model.rows
        out: dict[int, str] = {}
        for row in np.flatnonzero((self._exact[0] > 0) & ~self._model.enabled).tolist():
            out.setdefault(int(rows.state[row]), f"action {self._model.actions[rows.action[row]]} is not offered")
        return out

    @property
    def unmet_states(self) -> int:
        """The number of under-sampled states."""
        return int(self._totals[UNMET_STATES])

    @property
    def missing(self) -> int:
        """Samples missing in all."""
        return int(self._totals[MISSING])

    @property
    def collected(self) -> int:
        """Needed samples collected so far."""
        return int(self._totals[COLLECTED])

    @property
    def version(self) -> int:
        """Increased when the requirement, not a sample, changes which states are under-sampled."""
        return int(self._totals[VERSION])

    @property
    def credit(self) -> float:
        """The credit of all needed samples so far."""
        return float(self.ledger.credit[0])

    @property
    def began(self) -> int:
        """The first state of this episode: the one that the last needed sample led to; -1 if that is not known."""
        return int(self.ledger.began[0])

    @began.setter
    def began(self, s: int) -> None:
        self.ledger.began[0] = s

    def clear_credit(self) -> None:
        """Let no sample have a credit, and the sum be 0: another planner keeps accounts from now on."""
        self.credit_at[:] = 0.0
        self.ledger.credit[0] = 0.0

    @property
    def met(self) -> bool:
        """Whether nothing is missing, except what was waived."""
        return bool(self._totals[UNMET_STATES] == 0)

    @property
    def proportion_met(self) -> float:
        """Of the states that the requirement speaks of."""
        known = self.num_states
        return (known - self.unmet_waived - self.unmet_states) / known

    @property
    def num_states(self) -> int:
        """The states that the requirement speaks of, at least 1."""
        return max(1, self.requirement.num_states(self._model))

    def update(self) -> bool:
        """Let the requirement look at the counts; whether the number of unmet states may be another."""
        first, before, model = self._mark < 0, self.unmet_states, self._model
        answer = self.requirement.update(model, self._changed_rows())
        self._mark = model.mark()
        changed = checked_rows(self.requirement, answer, len(model.rows))
        if first or changed is None:
            self._take(*self._checked())
        elif changed.size:
            self._take_some(changed)
        else:
            return False
        return first or before != self.unmet_states

    def _changed_rows(self) -> NDArray[np.int64]:
        """Return the rows whose counts changed since the last update, of those that the requirement is about."""
        model = self._model
        rows = model.changed(max(0, self._mark))
        if len(self.requirement.pair) < len(model.rows):  # it is about the states known beforehand only
            rows = rows[rows < len(model.known_rows)]
        return rows

    def waive(self, states: Mapping[int, str]) -> None:
        """Ask nothing of these states any more, for the reasons given; `asked` and `unmet` still list them."""
        self.waived.update(_checks.reasons("need.waive: states", states, self._model.rows.num_states))
        self._take(*self.taken())

    def recall(self, waived: Mapping[int, str], collected: int) -> None:
        """Take over what was waived, and how many needed samples there were, where all counts are there already."""
        self.waived = dict(waived)
        self._mark = -1
        self.update()
        self._totals[COLLECTED] = collected

    def move_waiver(self, before: int, now: int) -> None:
        """Let `now` stand for what is not discovered: `before` was discovered, and nothing was tested of it."""
        if before != now and before in self.waived:
            self.waived[now] = self.waived.pop(before)
            self._take(*self.taken())

    def reconsider(self) -> None:
        """Waive nothing any more: the walk begins anew."""
        if self.waived:
            self.waived.clear()
            self._take(*self.taken())

    def asked(self) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Return what the requirement asks for now, per row [R] and per state [S], and of how many states it speaks.

        Waived states included. Nothing changes by it. Of a requirement that fails, what it last asked for.
        """
        try:
            pair, state, num_states = self.requirement.as_of_now(self._model)
            return *checked(self.requirement, pair, state, self._model), num_states
        except Exception:  # the next update says so, the last one has
            return *self.taken(), self.num_states

    def taken(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what was asked for at the last update, waived states included."""
        return (self.ledger.pair, self.ledger.state) if self._exact is None else self._exact

    def _checked(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        requirement = self.requirement
        return checked(requirement, requirement.pair, requirement.state, self._model)

    def _take(self, pair: NDArray[np.int64], state: NDArray[np.int64]) -> None:
        ledger = self.ledger
        enabled = self._model.enabled
        exact = not self.waived and max(pair.max(), state.max()) <= self._most and not np.any(pair[~enabled])
        self._exact = None if exact else (pair.copy(), state.copy())
        np.minimum(np.where(enabled, pair, 0), self._most, out=ledger.pair)
        np.minimum(state, self._most, out=ledger.state)
        if self.waived:
            out = np.fromiter(self.waived, dtype=np.int64)
            ledger.state[out] = 0
            ledger.pair[np.isin(ledger.row_state, out)] = 0
        self.of_states = bool(ledger.state.any())
        self._recount(np.arange(self._model.rows.num_states))
        self._count_waived()

    def _take_some(self, rows: NDArray[np.int64]) -> None:
        ledger, (R, S) = self.ledger, (len(self._model.rows), self._model.rows.num_states)
        pair, state = self.requirement.pair, self.requirement.state
        if not (_is_int64(pair, R) and _is_int64(state, S)):
            pair, state = self._checked()
        states = np.unique(ledger.row_state[rows])
        pair, state = pair[rows], state[states]
        if min(pair.min(), state.min()) < 0:
            self._checked()  # raises the error that says where
        offered = np.where(self._model.enabled[rows], pair, 0)
        if self._exact is None and (max(pair.max(), state.max()) > self._most or np.any(offered != pair)):
            self._exact = (ledger.pair.copy(), ledger.state.copy())
        if self._exact is not None:
            self._exact[0][rows], self._exact[1][states] = pair, state
        ledger.pair[rows], ledger.state[states] = np.minimum(offered, self._most), np.minimum(state, self._most)
        if self.waived:
            out = [s for s in states.tolist() if s in self.waived]
            ledger.state[out] = 0
            ledger.pair[rows[np.isin(ledger.row_state[rows], out)]] = 0
            if out:
                self._count_waived()
        self.of_states = self.of_states or bool(ledger.state[states].any())
        self._recount(states)

    def _count_waived(self) -> None:
        self.unmet_waived = 0
        if self.waived:
            (pair, state), short = self.taken(), np.zeros(self._model.rows.num_states, dtype=bool)
            short[self.ledger.row_state[self._model.visits < pair]] = True
            short |= self.state_visits < state
            self.unmet_waived = int(short[list(self.waived)].sum())

    def _recount(self, states: NDArray[np.int64]) -> None:
        from gosprl import _kernels

        _kernels.recount(self.ledger, self._model.rows.ptr, self._model.counts.visits, states)

    def unmet(self) -> NDArray[np.void]:
        """Return what is missing: (state, action or -1 for any, needed, have)."""
        pair, state, _ = self.asked()
        visits, rows = self._model.visits, self._model.rows
        short_rows = np.flatnonzero(visits < pair)
        short_states = np.flatnonzero(self.state_visits < state)
        kind = [("state", np.int64), ("action", np.int64), ("needed", np.int64), ("have", np.int64)]
        out = np.empty(len(short_rows) + len(short_states), dtype=kind)
        out["state"] = np.append(rows.state[short_rows], short_states)
        out["action"] = np.append(rows.action[short_rows], np.full(len(short_states), -1))
        out["needed"] = np.append(pair[short_rows], state[short_states])
        out["have"] = np.append(visits[short_rows], self.state_visits[short_states])
        return out


def sampled_states(model: EmpiricalModel) -> NDArray[np.int64]:
    """Return the state [R] that a sample of each row counts for: a chosen reset is no sample of its state."""
    state, ptr = model.rows.state, model.rows.ptr
    if model.resets == "anytime":
        state = state.copy()
        state[ptr[1:][np.diff(ptr) > 1] - 1] = model.states.reset  # the last row of a live state
    return state


def _padded(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array with zeros at its end, of the given size."""
    return np.append(array, np.zeros(size - len(array), dtype=array.dtype))


def _is_int64(array: object, size: int) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.int64 and array.shape == (size,)
