"""Thorough: a need that is met only when nothing discovered hides much that was never seen.

At level delta, a pair visited n times has successors never seen of a total probability of at most some cap
(`gosprl.sets`). The samples asked for are those of another requirement and, of each pair discovered and of the reset,
as many as bring its cap down to `unseen`, if no new successor appears until then; if one does, more.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.requirements import NO_ROWS, Requirement, are_resets_possible
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
    """

    def __init__(self, asked: Requirement, unseen: float, delta: float) -> None:
        self.of_discovered = asked.of_discovered
        self.asked, self.unseen = asked, _checks.open_unit("unseen", unseen)
        self._family = KL(delta)
        self.pair, self.state = asked.pair.copy(), asked.state
        self._least = np.zeros(len(self.pair), dtype=np.int64)  # [R] by the caps alone
        self._seen = 0  # entries of `model.discovered` taken into account

    def update(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ask for more of the rows that changed, where that is needed, and of those discovered."""
        changed = self.asked.update(model, rows)
        due = self._due(model, rows)
        self._seen = len(model.discovered)
        self._least[due] = visits_for_unseen(model, self._family, due, self.unseen)
        every = np.arange(len(self.pair)) if changed is None else np.union1d(changed, due)
        need = np.maximum(self.asked.pair[every], self._least[every])
        differs = need != self.pair[every]
        self.pair[every], self.state = need, self.asked.state
        return every[differs] if changed is None else np.union1d(every[differs], changed)

    def _due(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows whose cap may be another, of states discovered."""
        ptr, reset = model.rows.ptr, model.states.reset
        new = [np.arange(ptr[s], ptr[s + 1]) for s in model.discovered[self._seen :]]
        state = model.rows.state[rows]
        counts = model.is_discovered[state]
        if reset >= 0 and are_resets_possible(model):
            counts |= state == reset
            new.append(ptr[reset : reset + 1])
        due = np.unique(np.concatenate([NO_ROWS, rows[counts], *new]))
        out: NDArray[np.int64] = due[model.enabled[due] & ~model.certain[due]]
        return out

    def resize(self, model: EmpiricalModel, rows: NDArray[np.int64]) -> None:
        """Take over the model's number of states and rows."""
        self.asked.resize(model, rows)
        super().resize(model, rows)
        least = np.zeros(len(model.rows), dtype=np.int64)
        least[rows] = self._least
        self._least, self.state = least, self.asked.state

    def as_of_now(self, model: EmpiricalModel) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """With what the other requirement and the caps ask for as of now."""
        pair, state, num_states = self.asked.as_of_now(model)
        least = self._least.copy()
        due = self._due(model, np.flatnonzero(model.visits > 0))
        least[due] = visits_for_unseen(model, self._family, due, self.unseen)
        return np.maximum(pair, least), state, num_states

    def num_states(self, model: EmpiricalModel) -> int:
        """Return that of the other requirement."""
        return self.asked.num_states(model)
