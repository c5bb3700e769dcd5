"""The prices of goals: what it costs to end at one goal instead of another, by the fluid program.

The potential v of the program (`gosprl.planning.fluid`) is the difference between states in the cost of collecting all
missing samples. So ending at a goal g costs v(g) - min v, in addition to the steps of the path. Where the program
circulates far from the walk, the potential is constant, and the nearest goal is taken.

Prices are only as good as the model that they are computed with, and the program ignores that samples are whole
numbers. Both matter while counts are small. So:

1. With unknown dynamics there are no prices before some needed samples were collected, on average over all pairs of
   needed states: 1, but 6 where the successors are known. There, wider sets without prices are better for longer.
   Where successors are known, all pairs count; where states are discovered, all that are known or that there is room
   for.
2. Where successors are known, goals without prices are already reached well. So only prices that are certain to help
   are used: differences of less than BELIEVED[0] steps are ignored, and none is larger than BELIEVED[1].
3. The program is often indifferent between a near goal and a far one. While few samples are missing, the near one is
   better: prices are a little smaller then.

With known dynamics, the last few goals of one walk are priced by the tours through them (`gosprl.planning.tours`), if
there are at most FLUID_STATES states; the very last samples of pairs need no prices (`gosprl.planning.endgame`).

A program is solved exactly if it is small: FLUID_STATES states, or CHOICES choices in at most FORCED states. A choice
is a pair beyond the first one of its state. The solver removes states without a choice, so these cost little, and the
first-order method takes longest to send prices along them. Larger programs are solved approximately
(`gosprl.planning.approximate`). Each solution may visit WORK entries of the program for each step since the last one,
and is not used if its gap is large. With unknown dynamics that did not pay in trials, so it has to be asked for.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.need import Need
from gosprl.errors import GosprlError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning import approximate
from gosprl.planning.fluid import Flow, solve, solve_model
from gosprl.planning.tours import Tours

FLUID_STATES = 500
CHOICES, FORCED = 1_500, 2_000  # 500 states with four actions have as many choices
AGAIN, OFTEN, STEPS = 0.2, 0.03, 150  # when the program is solved again: see `at`
WORK = 20_000  # with many states: entries of the program that its solution may visit, per step of the walk
TRUSTED = 0.1  # largest gap of a solution whose potential is used
PSEUDO = {False: 0.5, True: 0.1}  # by whether successors are known: additional samples of each stored one of a row
COLLECTED = {False: 1, True: 6}  # by whether successors are known: needed samples a pair before there are prices
BELIEVED = (1, 5)  # if successors are known: steps taken off each price; its largest value then
FEW, SMALLER = 3, 0.9  # below so many missing samples a missing item, prices are multiplied by this


class Prices:
    """The prices of goals in one run.

    Parameters
    ----------
    model, need
        Counts and missing samples, which change during the run.
    use
        Whether there are any; None: if the program is small, or the dynamics are known.
    dynamics
        The true dynamics, if they are known.

    Attributes
    ----------
    programs
        Solved so far.
    walkers
        The states that all walkers of a fleet are in; empty: there is one, and the caller says where.
    """

    def __init__(self, model: EmpiricalModel, need: Need, use: bool | None, dynamics: TabularMDP | None) -> None:
        self._model, self._need, self._use, self._dynamics = model, need, use, dynamics
        self.programs, self.warned = 0, False
        self.walkers: Sequence[int] = ()
        self._again, self._missing = -np.inf, np.inf  # time and missing samples at which the program is solved again
        self._solved = 0  # time at which the program was last solved
        self._potential: NDArray[np.float64] | None = None
        self._visits: NDArray[np.float64] | None = None  # [R] of each row at the end, by the last solution
        self._basis: Any = None
        self._of_program = False  # whether the last prices were those of the program
        few = model.rows.num_states <= FLUID_STATES
        self._tours = Tours(model, need, dynamics) if dynamics is not None and few else None

    @property
    def _is_large(self) -> bool:
        """Whether the program is too large for an exact solution."""
        rows = self._model.rows
        S, choices = rows.num_states, len(rows) - rows.num_states
        return S > FLUID_STATES and (choices > CHOICES or S > FORCED)

    def resize(self) -> None:
        """Forget the prices of fewer states."""
        self._again = -np.inf if self._potential is not None else self._again
        self._potential, self._basis, self._visits = None, None, None

    @property
    def used(self) -> bool:
        """Whether goals have prices by now."""
        model, known = self._model, self._dynamics is not None
        use = self._use if self._use is not None else known or not self._is_large
        if not use or known:
            return use
        return self._need.collected >= COLLECTED[model.closed] * self._needed_pairs()

    def _needed_pairs(self) -> int:
        """Return the number of pairs of states that something is needed of."""
        model, need, state = self._model, self._need, self._model.rows.state
        if model.closed or model.growing or need.requirement.of_discovered:
            return int(np.count_nonzero(model.enabled))
        needed = need.state > 0
        needed[state[need.pair > 0]] = True
        return int(np.count_nonzero(model.enabled & needed[state]))

    def at(self, s: int, t: int, unseen: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """Return the price of each state [S] up to a constant, for a walk in s at time t; None if there are none.

        The program is solved again after a fifth of the steps that it predicted, at most STEPS of them, but at least 3
        percent; and if far more samples are missing than at the last time. `unseen` returns the mass of unseen
        successors in each row [R].
        """
        self._of_program = False
        if not self.used:
            return None
        if self._tours is not None and len(self.walkers) < 2 and (prices := self._tours.prices()) is not None:
            return prices
        missing = float(self._need.missing)
        if t >= self._again or missing > self._missing:
            self._solve_again(s, t, unseen, missing)
        if self._potential is None:
            return None
        self._of_program = True
        few = missing < FEW * float(self._need.unmet_items.sum())
        prices = SMALLER * self._potential if few else self._potential
        return self._believed(prices) if self._model.closed and self._dynamics is None else prices

    def visits_left(self) -> NDArray[np.float64] | None:
        """Return the visits of each row [R] that the program still asks for.

        None if the last prices were not those of the program, or if it was solved approximately.
        """
        return self._visits - self._model.visits if self._of_program and self._visits is not None else None

    def _believed(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return prices [S] of which small differences are ignored, and large ones cut."""
        goals, (ignored, most) = self._need.unmet_items > 0, BELIEVED
        least = prices[goals].min() if goals.any() else prices.min()
        believed: NDArray[np.float64] = np.clip(prices - least - ignored, 0.0, most)
        return believed

    def _solve_again(self, s: int, t: int, unseen: Callable[[], NDArray[np.float64]], missing: float) -> None:
        try:
            flow = self._solve(s, unseen, t - self._solved if self._basis is not None else AGAIN * missing)
        except GosprlError as error:
            if not self.warned:
                warnings.warn(f"goals are taken nearest first for now: {error}", stacklevel=2)
            self.warned, self._basis, self._potential, self._visits = True, None, None, None
            self._again, self._missing = t + AGAIN * missing, np.inf
            return
        self.programs, self._solved = self.programs + 1, t
        self._potential, self._basis = flow.potential if flow.gap <= TRUSTED else None, flow.basis
        self._visits = None if flow.visits is None else self._model.visits + flow.visits
        wait = max(OFTEN * flow.value, min(AGAIN * flow.value, STEPS))
        if self._model.rows.num_states > FLUID_STATES:  # so that there is work for a hundred iterations
            wait = max(wait, self._model.rows.num_states / 10)
        self._again, self._missing = t + wait, (1 + AGAIN) * missing

    def _solve(self, s: int, unseen: Callable[[], NDArray[np.float64]], steps: float) -> Flow:
        """Solve the program; with many states, as well as the work allowed for `steps` steps of the walk can."""
        model, need, mdp = self._model, self._need, self._dynamics
        starts = self.walkers or [s]
        pair = np.where(model.enabled, np.maximum(need.pair - model.visits, 0), 0)
        state = np.maximum(need.state - need.state_visits, 0)
        of_mdp: Callable[..., Flow] = solve
        of_model: Callable[..., Flow] = solve_model
        if self._is_large:
            of_mdp = partial(approximate.solve, work=WORK * steps)
            of_model = partial(approximate.solve_model, work=WORK * steps)
        if mdp is not None:
            law = np.bincount(starts, minlength=model.rows.num_states).astype(float)
            return of_mdp(mdp.rows, mdp.ptr, mdp.succ, mdp.prob, model.costs(), pair, state, law, basis=self._basis)
        if model.closed:
            return of_model(model, pair, state, starts, None, PSEUDO[True], self._basis)
        escape = np.where(model.enabled, unseen(), 0.0)
        return of_model(model, pair, state, starts, escape, PSEUDO[False], self._basis)
