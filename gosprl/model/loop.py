"""A model as a loop: an episode that ended begins again, and the way from an ending to the start is one step.

Distances are defined on the loop. Its states are the live states, in the order in which results number them, and then
the final ones. A final state has one row: it costs 1, and its outcome is that of the reset. A reset by choice is a row
of each live state with the same outcome, and costs `reset_cost`. So the reset is no state here, only a law.
"""

import numpy as np
from numpy.typing import NDArray

from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.arranged import arrange, rows_of
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Confidence, Intervals


class Loop:
    """The states and rows of a model at one time.

    Attributes
    ----------
    lives
        Number of live states: they are 0 .. lives - 1.
    final
        [n - lives] index in the model of each final state.
    place
        [S] index here of each state of the model; -1 for the reset and for room not in use.
    rows
        The rows that can be taken, over n states.
    law
        [m] row of the model that has the outcome of each row.
    cost
        [m] cost of each row, in steps.
    open
        Whether steps may lead to states or endings that are not among these.
    """

    def __init__(self, model: EmpiricalModel) -> None:
        states = model.states
        kept = arrange(model.rows, states.lives, states.finals, model.enabled)
        self.model, self.lives, self.place = model, len(states.lives), kept.place
        self.final = kept.states[self.lives :]
        self.rows: Rows = rows_of(model.rows, kept, model.num_actions)
        certain = model.certain[kept.rows]
        reset = model.rows.ptr[states.reset] if certain.any() else -1
        self.law: NDArray[np.int64] = np.where(certain, reset, kept.rows)
        self.cost = np.where(certain & (self.rows.state < self.lives), model.reset_cost, 1.0)
        self.open = not model.closed and (model.num_outcomes is None or model.num_outcomes > states.used)

    @property
    def num_states(self) -> int:
        """The number of states, live and final."""
        return self.rows.num_states

    def seen(self) -> NDArray[np.int64]:
        """Return the indices of the final states that an episode ended in."""
        ended = self.model.visits[self.model.rows.ptr[self.final]] > 0
        return self.lives + np.flatnonzero(ended)

    def frequencies(self) -> TabularMDP:
        """Return the MDP whose dynamics are the frequencies; a state never left has a self-loop."""
        ptr, succ, count, _ = self.model.stored(self.law)
        row = np.repeat(np.arange(len(self.law)), np.diff(ptr))[count > 0]
        s, a, s_next = self.rows.state[row], self.rows.action[row], self.place[succ[count > 0]]
        p = count[count > 0] / self.model.visits[self.law[row]]
        idle = np.setdiff1d(np.arange(self.num_states), s)
        first = self.rows.action[self.rows.ptr[idle]]
        parts = (np.append(s, idle), np.append(a, first), np.append(s_next, idle), np.append(p, np.ones(len(idle))))
        actions = self.rows.num_actions
        return TabularMDP(parts, states=self.num_states, actions=actions, name="the frequencies seen")

    def costs_of(self, rows: Rows) -> NDArray[np.float64]:
        """Return the costs of some of the rows, those of `frequencies()`."""
        return self.cost[self.rows.index(rows.state, rows.action)]

    def sets(self, family: Confidence) -> tuple[Rows, Intervals]:
        """Return the rows and their sets; if the loop is open, with one state more.

        That state stands for everything undiscovered (docs/theory/growing.md, section 8): it takes all of the mass
        that a row may have on successors never seen, and must be a goal of plans that are to be optimistic.
        """
        every = len(self.law) == len(self.model.rows) and np.array_equal(self.law, np.arange(len(self.law)))
        given = family.intervals(self.model, None if every else self.law)
        succ = self.place[given.succ].astype(np.int32)
        if not self.open:
            return self.rows, Intervals(given.ptr, succ, given.lower, given.upper, given.each, given.total)
        rows = Rows(np.append(self.rows.ptr, len(self.rows) + 1), np.append(self.rows.action, 0), self.rows.num_actions)
        total = np.append(given.total, 0.0)
        return rows, Intervals(
            np.append(given.ptr, given.ptr[-1] + 1),
            np.append(succ, np.int32(self.num_states)),
            np.append(given.lower, 1.0),
            np.append(given.upper, 1.0),
            total.copy(),
            total,
        )
