"""The learnt prior: what unseen successors are like, by those that were new when they came.

A row (s, a) with N visits and counts C is expected to behave as

    p(s' | s, a) = (C(s') + c_a base(s' | s, a)) / (N + c_a).

The concentration c_a says how often a repeated row leads to a new successor: a visit after n others does with
probability c_a / (n + c_a). It is chosen so that as many new successors were to be expected as came. Actions that never
brought any get a small one, so plans do not test them again.

The base says where the new successor is. It is a mixture of experts: the state itself; successors of its other actions;
its predecessors; a step s' - s that this action, or any action, often makes; a state that many rows lead to; any known
state; any unknown state. Weights are learnt online: each new successor is divided among the experts by the
probabilities that they gave it, before they learn from it (EM with one pass). Steps are differences of the numbers that
the system gives its states, never of the order of discovery.

A plan is optimistic where that costs little: the mass of successors and predecessors goes to the best of them. What is
expected of steps and popular states is their mean. Any other state is worth `optimism` times the best one plus the rest
of the mean: at one sample a pair, nobody hopes for a shortcut from everywhere.

A plan is made for a region around the walk: a breadth-first search over seen successors and expected steps, to the
nearest goals and a little farther. It is widened until its radius is at least the value of the plan, so that no goal
outside is nearer (to at most FARTHEST times the distance of the nearest goal). Inside, values are solved as if nothing
led out of the region. What a plan has to know of all states (the means above, missing pairs, how well rows are known)
is looked at once in S / SHARE plans. So a plan takes time in proportion to its region, not to the states.

The prior has to earn its use on every system (`leads`). Steps must explain a part of what was new, otherwise numbers
of states mean nothing here. And the rows that a plan walks over must not be known well already.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.model.empirical import EmpiricalModel

if TYPE_CHECKING:
    from gosprl._kernels.prior import Layout
    from gosprl.collecting.need import Need

EARNED = 0.2  # part of the new successors that steps have to explain
UNSEEN = 0.03  # mean mass of unseen successors below which rows are known well
BEGIN, TRUSTED = 0.5, 1.0  # weights at the beginning: of an expert; of those that know steps
PSEUDO, FIRST = 4.0, 0.5  # events by which concentrations are drawn together; the concentration without data
ROUNDS, SWEEPS, PRECISION = 3, 300, 1e-3
SHARE = 500  # with S states, all of them are looked at once in S / SHARE plans
FARTHEST = 16  # a region's radius is at most so many times the distance of the nearest goal


class Prior:
    """The learnt prior of one run.

    Parameters
    ----------
    model
        The counts; numbers of states are known.
    """

    def __init__(self, model: EmpiricalModel) -> None:
        from gosprl._kernels import DEAD, Around
        from gosprl._kernels.prior import ANY_STEP, BUCKETS, COMMON, EXPERTS, NEAR, STEP, Learnt

        S, R, A, F = model.rows.num_states, len(model.rows), model.num_actions, model.states.fixed
        weight = np.full(EXPERTS, BEGIN)
        weight[[STEP, ANY_STEP]] = TRUSTED
        self._model, self._mark = model, 0
        self._learnt: Learnt = Learnt(
            weight=weight,
            taken=np.zeros(R, dtype=np.int64),
            visited=np.zeros(R, dtype=np.int64),
            found=np.zeros(S, dtype=bool),
            into=np.zeros(S, dtype=np.int64),
            head=np.full(S, -1),
            before=np.zeros(NEAR * S, dtype=np.int64),
            next=np.zeros(NEAR * S, dtype=np.int64),
            steps=np.zeros((A + 1, 2 * F - 1), dtype=np.int64),
            common=np.zeros((A + 1, COMMON), dtype=np.int64),
            times=np.zeros((A + 1, COMMON), dtype=np.int64),
            total=np.zeros(A + 1, dtype=np.int64),
            new=np.zeros(A),
            repeats=np.zeros((A, BUCKETS)),
            concentration=np.full(A + 1, FIRST),
            scalars=np.zeros(3, dtype=np.int64),
        )
        self._around = Around(
            v=np.full(S, DEAD),
            last=np.full(S, DEAD),
            policy=np.full(S, -1),
            states=np.zeros(S, dtype=np.int64),
            order=np.zeros(S, dtype=np.int64),
            depth=np.zeros(S, dtype=np.int64),
            mark=np.zeros(S, dtype=np.int64),
            scalars=np.zeros(6, dtype=np.int64),
        )
        self._nothing = np.zeros(S)  # what goals cost without prices
        self._chance, self._scratch = np.zeros(EXPERTS), np.zeros(4)
        self._seen, self._means = np.ones(3), np.zeros(3)  # by the last survey and overview
        self._goals = (-1, -1)  # unmet states and version of the need at the last plan
        self._wait, self._version, self._due, self._floor = 0, -1, True, 1.0
        self.plans = 0

    @staticmethod
    def is_possible(model: EmpiricalModel) -> bool:
        """Whether the states of a model have numbers of their own, and unseen successors are possible."""
        return model.states.fixed > 1 and not model.closed and model.all_actions

    def update(self, judging: bool = True) -> None:
        """Learn from what happened since the last call; not `judging`: weights stay what they are."""
        from gosprl._kernels import prior

        rows = self._model.changed(self._mark)
        self._mark = self._model.mark()
        prior.learn(self._learnt, self._model.counts, self._layout(), rows, judging, self._chance)
        prior.concentrate(self._learnt, ROUNDS, PSEUDO, FIRST)

    def _layout(self) -> "Layout":
        from gosprl._kernels.prior import Layout

        model, rows = self._model, self._model.rows
        return Layout(rows.ptr, rows.state, rows.action, model.enabled, model.certain, model.terminal)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The part of new successors that each expert explains, [EXPERTS]."""
        weight = self._learnt.weight
        parts: NDArray[np.float64] = weight / weight.sum()
        return parts

    @property
    def concentration(self) -> NDArray[np.float64]:
        """The concentration of each action, [A]."""
        return self._learnt.concentration[:-1].copy()

    def unseen(self) -> NDArray[np.float64]:
        """Return the mass of unseen successors in each row, [R]; 1 before the first visit."""
        N, c = self._model.visits, self._learnt.concentration[self._model.rows.action]
        mass: NDArray[np.float64] = np.where(N > 0, c / (N + c), 1.0)
        return mass

    def survey(self, need: "Need") -> None:
        """Look at all states, if more plans were made since the last time than one in SHARE states."""
        from gosprl._kernels import survey

        if self._wait > 0 and self._version == need.version:
            self._wait -= 1
            return
        survey(self._learnt, self._model.counts, self._layout(), need.unmet_items, self._seen)
        self._version, self._wait, self._due = need.version, self._model.rows.num_states // SHARE, True

    def leads(self) -> bool:
        """Whether plans should be made with the prior."""
        from gosprl._kernels import ANY_STEP, STEP, UNSEEN_MASS

        return bool(self.weights[[STEP, ANY_STEP]].sum() >= EARNED and self._seen[UNSEEN_MASS] >= UNSEEN)

    def optimism(self, missing: int) -> float:
        """Return how much is hoped for from successors that nothing is known of: 0 if one sample a pair is missing."""
        from gosprl._kernels import ITEMS

        return max(0.0, 1 - float(self._seen[ITEMS]) / missing)

    @property
    def hidden(self) -> bool:
        """Whether no goal is known to exist."""
        from gosprl._kernels import FOUND_GOALS

        return bool(self._seen[FOUND_GOALS] == 0)

    def plan(
        self,
        s: int,
        need: "Need",
        cost: NDArray[np.float64],
        prices: NDArray[np.float64] | None,
        optimism: float,
    ) -> tuple[NDArray[np.int64], float]:
        """Return (rows [S], value in s) of shortest paths to goals; the rows are overwritten by the next plan.

        Parameters
        ----------
        s
            Where the walk is.
        need
            Paths end where it is unmet. If it is about states, goals get rows as well, to walk on from there.
        cost
            [R] of a step.
        prices
            [S] what it costs to end in a goal; None: nothing.
        optimism
            From 0 to 1: how much is hoped for from the successors that nothing is known of.
        """
        from gosprl._kernels import overview, plan_around

        model, states, around = self._model, self._model.states, self._around
        unmet, before = need.unmet_items, self._goals
        self._goals = (need.unmet_states, need.version)
        price = self._nothing if prices is None else prices
        if self._due:
            self._due = False
            known = max(states.fixed, states.used)
            overview(self._learnt, unmet, price, around.last, float(optimism), known, self._means)
            self._floor = float(cost.min())
        farthest = FARTHEST if prices is None else model.rows.num_states
        value = plan_around(
            *(self._learnt, model.counts, self._layout(), cost, self._floor, max(states.reset, 0), unmet, price),
            *(around, s, before == self._goals, self.weights, self._means, farthest, SWEEPS, PRECISION),
            *(need.of_states, self._scratch),
        )
        self.plans += 1
        return around.policy, value

    def remember(self) -> dict[str, Any]:
        """Return what the counts do not say: weights, concentrations and values."""
        learnt = self._learnt
        return {
            "weight": learnt.weight.tolist(),
            "concentration": learnt.concentration.tolist(),
            "plans": self.plans,
        }

    def resized(self) -> "Prior":
        """Return the prior for a model that has more states and rows now."""
        other = Prior(self._model)
        other.recall(self.remember())
        return other

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on after the prior that remembered this; the rest is learnt from the counts."""
        learnt = self._learnt
        learnt.weight[:] = memory["weight"]
        self.update(judging=False)
        learnt.concentration[:] = memory["concentration"]
        self.plans = memory["plans"]
