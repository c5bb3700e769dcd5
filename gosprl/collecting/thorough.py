"""Thorough: a need that is met only when nothing discovered hides much that was never seen.

At level delta, a pair visited n times has successors never seen of a total probability of at most some cap
(`gosprl.sets`). The samples asked for are those of another requirement and, of each pair discovered and of the reset,
as many as bring its cap down to `unseen`, if no new successor appears until then; if one does, more.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.requirements import NO_ROWS, Requirement, are_resets_possible, checked
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.kl import KL
from gosprl.sets.unseen import visits_for_unseen


class Thorough(Requirement):
    """What another requirement asks for, and enough of each pair to know its successors.

    Parameters
    ----------
    asked
        The other requirement.
    unseen
        The mass that a pair may hide, in (0, 1).
    delta
        The level at which it is known.
    model
        The counts.
    """

    def __init__(self, asked: Requirement, unseen: float, delta: float, model: EmpiricalModel) -> None:
        self.of_discovered = asked.of_discovered
        self.asked, self.unseen = asked, _checks.open_unit("unseen", unseen)
        self._family = KL(delta)
        pair, self.state = checked(asked, asked.pair, asked.state, model)
        self.pair = pair.copy()
        self._least = np.zeros(len(model.rows), dtype=np.int64)  # [R] by the caps alone
        self._known = np.zeros(model.rows.num_states, dtype=bool)  # [S] states taken into account
        self._seen = 0  # entries of `model.discovered` taken into account

    def remember(self) -> dict[str, Any] | None:
        """Return what the other requirement remembers: what the caps ask for is a function of the counts."""
        return self.asked.remember()

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Let the other requirement recall this."""
        self.asked.recall(memory)

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Ask for more of the rows that changed, where that is needed, and of those discovered."""
        asked, known = self.asked, len(self.asked.pair) == len(model.rows)
        changed = asked.update(model, rows if known else rows[rows < len(model.known_rows)])
        pair, self.state = checked(asked, asked.pair, asked.state, model)
        due = self._due(model, rows)
        self._known[self._new(model, rows)] = True
        self._seen = len(model.discovered)
        self._least[due] = visits_for_unseen(model, self._family, due, self.unseen)
        gone = rows[(self._least[rows] > 0) & ~model.enabled[rows]]  # it was not known that they are not offered
        self._least[gone] = 0
        if changed is None:
            self.pair = np.maximum(pair, self._least)
            return None
        every = np.unique(np.concatenate([changed, due, gone]))
        need = np.maximum(pair[every], self._least[every])
        differs = need != self.pair[every]
        self.pair[every] = need
        return np.union1d(every[differs], changed)

    def _due(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows whose cap may be another, of states discovered."""
        ptr, reset = model.rows.ptr, model.states.reset
        new = self._new(model, rows)
        state = model.rows.state[rows]
        counts = self._known[state] | np.isin(state, new)
        parts = [np.arange(ptr[s], ptr[s + 1]) for s in new]
        if reset >= 0 and are_resets_possible(model):
            counts |= state == reset
            parts.append(ptr[reset : reset + 1])
        due = np.unique(np.concatenate([NO_ROWS, rows[counts], *parts]))
        out: NDArray[np.int64] = due[model.enabled[due] & ~model.certain[due]]
        return out

    def _new(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the states discovered since the last update: compiled walks do not list them, but their counts do."""
        _, succ, count, _ = model.stored(rows)
        seen = np.unique(np.concatenate([model.discovered[self._seen :], model.rows.state[rows], succ[count > 0]]))
        states = seen.astype(np.int64)
        out: NDArray[np.int64] = states[~self._known[states] & ~model.terminal[states]]
        return out

    def resize(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Take over the model's number of states and rows."""
        self.asked.resize(model, rows)
        super().resize(model, rows)
        least = np.zeros(len(model.rows), dtype=np.int64)
        least[rows] = self._least
        self._least = least
        self._known = np.append(self._known, np.zeros(model.rows.num_states - len(self._known), dtype=bool))

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """With what the other requirement and the caps ask for as of now."""
        pair, state, num_states = self.asked.as_of_now(model)
        pair, state = checked(self.asked, pair, state, model)
        least = self._least.copy()
        due = self._due(model, np.flatnonzero(model.visits > 0))
        least[due] = visits_for_unseen(model, self._family, due, self.unseen)
        least[~model.enabled] = 0
        return np.maximum(pair, least), state, num_states + self._resets_more(model, pair, least)

    def num_states(self, model: EmpiricalModel) -> int:
        """Return that of the other requirement; the reset is one more if only the caps ask for it."""
        return self.asked.num_states(model) + self._resets_more(model, self.asked.pair, self._least)

    def _resets_more(self, model: EmpiricalModel, pair: NDArray[np.int64], least: NDArray[np.int64]) -> bool:
        """Whether the reset is needed, but not by the other requirement."""
        if model.states.reset < 0:
            return False
        row = int(model.rows.ptr[model.states.reset])
        return bool(least[row] > 0 and not pair[row : row + 1].any())
