"""A `TabularMDP` stepped in plain Python, many copies at a time: the same steps as `gosprl.systems.Tabular` makes.

All copies share one table of lists, since single elements of arrays are slow to read.
"""

from bisect import bisect_right
from itertools import pairwise

import numpy as np

from gosprl.errors import InputError
from gosprl.fleet.orders import RESET, Order, Report
from gosprl.mdp.tabular import TabularMDP

BLOCK = 256  # uniform numbers drawn at a time


class Table:
    """The dynamics of an MDP, by state and action."""

    def __init__(self, mdp: TabularMDP) -> None:
        rows = mdp.rows
        self.start, self.noisy = mdp.start, mdp.noise == "bernoulli"
        self.rewards = [0.0] * len(rows) if mdp.rewards is None else mdp.rewards.tolist()
        pairs = zip(rows.state.tolist(), rows.action.tolist(), strict=True)
        self.row = {pair: row for row, pair in enumerate(pairs)}
        ptr = mdp.ptr.tolist()
        self.successors = [mdp.succ[a:b].tolist() for a, b in pairwise(ptr)]
        # cumsum adds one by one, as `Tabular` does; the last one takes whatever rounding leaves
        self.cumulative = [np.cumsum(mdp.prob[a:b])[:-1].tolist() for a, b in pairwise(ptr)]


class TableWalker:
    """A walker on a table."""

    def __init__(self, table: Table, rng: np.random.Generator) -> None:
        self._table, self._rng, self._state = table, rng, table.start
        self._uniforms: list[float] = []  # the next one last

    def answer(self, order: Order) -> Report:
        """Carry out an order."""
        number, walker, action = order[:3]
        table = self._table
        if action == RESET:
            self._state = table.start
            return Report(number, walker, self._state)
        row = table.row.get((self._state, action))
        if row is None:
            raise InputError(f"a: action {action} does not exist in state {self._state}")
        successor = bisect_right(table.cumulative[row], self._uniform())
        self._state = table.successors[row][successor]
        reward = table.rewards[row]
        if table.noisy:
            reward = float(self._uniform() < reward)
        return Report(number, walker, self._state, reward)

    def close(self) -> None:
        """Nothing is to be closed."""

    def _uniform(self) -> float:
        if not self._uniforms:
            self._uniforms = self._rng.random(BLOCK)[::-1].tolist()
        return self._uniforms.pop()
