"""The learnt prior: what unseen successors are like, by those that were new when they came.

A row (s, a) with N visits and counts C is expected to behave as

    p(s' | s, a) = (C(s') + c_a base(s' | s, a)) / (N + c_a).

The concentration c_a says how often a repeated row leads to a new successor: a visit after n others does with
probability c_a / (n + c_a). It is chosen so that as many new successors were to be expected as came. Actions that never
brought any get a small one, so plans do not test them again. In rows that have shown one successor so far, it is
multiplied by a factor for their kind, learnt in the same way: the row has only stayed, another action of the state led
to the same successor (one of the two may have slipped), or no other did.

A row *jumps* if each of its successors is a step away that hardly any other row made. Such rows have a concentration of
their own. Where it says that most second visits bring a new successor, they are taken to lead anywhere: the new one is
any state alike, whatever the base says.

The base says where the new successor is. It is a mixture of experts: the state itself; successors of its other actions;
its predecessors; a step s' - s that this action, or any action, often makes; a state that many rows lead to; any known
state; any unknown state. Weights are learnt online: each new successor is divided among the experts by the
probabilities that they gave it, before they learn from it (EM with one pass). Steps are differences of the numbers that
the system gives its states, or of the coordinates that observations consist of (`gosprl.model.coordinates`), never of
the order of discovery. Where states are discovered, a step may lead to where no state is known. There may be one, for
which the first free state of the model stands, or none. How often there was one is learnt, too, from the most frequent
step of each action that was tried.

A plan is optimistic where that costs little: the mass of successors and predecessors goes to the best of them. What is
expected of steps and popular states is their mean. Any other state is worth `optimism` times the best one plus the rest
of the mean: at one sample a pair, nobody hopes for a shortcut from everywhere.

A plan is made for a region around the walk: a breadth-first search over seen successors and expected steps, to the
nearest goals and a little farther. It is widened until its radius is at least the value of the plan, so that no goal
outside is nearer (to at most FARTHEST times the distance of the nearest goal). Inside, values are solved as if nothing
led out of the region. What a plan has to know of all states (the means above, missing pairs, how well rows are known)
is looked at once in S / SHARE plans. So a plan takes time in proportion to its region, not to the states.

The prior has to earn its use on every system (`leads`). Steps must explain a part of what was new, otherwise numbers
of states mean nothing here. Or a goal must be known to exist, and most successors that were new to a repeated row must
have been those of other actions of its state: then the goal is looked for at the actions beside those that led there.
And the rows that a plan walks over must not be known well already.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.model.coordinates import NONE, code_of
from gosprl.model.empirical import EmpiricalModel

if TYPE_CHECKING:
    from gosprl._kernels.prior import Layout
    from gosprl._kernels.steps import Steps
    from gosprl.collecting.need import Need

EARNED = 0.2  # part of the new successors that steps have to explain
BESIDE = 0.5  # or, of those new to a repeated row, the part that other actions of the state have to explain
UNSEEN = 0.03  # mean mass of unseen successors below which rows are known well
BEGIN, TRUSTED = 0.5, 1.0  # weights at the beginning: of an expert; of those that know steps
PSEUDO, FIRST = 4.0, 0.5  # events by which concentrations are drawn together; the concentration without data
ROUNDS, SWEEPS, PRECISION = 3, 300, 1e-3
BATCH = 4096  # rows learnt from at once: the table of steps has room for all that they may have
SHARE = 500  # with S states, all of them are looked at once in S / SHARE plans
FARTHEST = 16  # a region's radius is at most so many times the distance of the nearest goal


class Prior:
    """The learnt prior of one run.

    Parameters
    ----------
    model
        The counts.
    """

    def __init__(self, model: EmpiricalModel) -> None:
        from gosprl._kernels import DEAD, Around, plan_around, take_in
        from gosprl._kernels.prior import ANY_STEP, BUCKETS, COMMON, EXPERTS, KINDS, NEAR, STEP, Learnt

        S, R, A = model.rows.num_states, len(model.rows), model.num_actions
        weight = np.full(EXPERTS, BEGIN)
        weight[[STEP, ANY_STEP]] = TRUSTED
        self._take_in, self._plan_around = take_in, plan_around  # to import them again takes time in each plan
        self._model, self._mark, self._placed = model, 0, model.states.fixed
        self._has_steps = model.states.fixed > 0  # whether a state has a code
        self._learnt: Learnt = Learnt(
            weight=weight,
            again=np.zeros(EXPERTS),
            taken=np.zeros(R, dtype=np.int64),
            visited=np.zeros(R, dtype=np.int64),
            found=np.zeros(S, dtype=bool),
            into=np.zeros(S, dtype=np.int64),
            head=np.full(S, -1),
            before=np.zeros(NEAR * S, dtype=np.int64),
            next=np.zeros(NEAR * S, dtype=np.int64),
            steps=_no_steps(model),
            common=np.zeros((A + 1, COMMON), dtype=np.int64),
            times=np.zeros((A + 1, COMMON), dtype=np.int64),
            total=np.zeros(A + 1, dtype=np.int64),
            kind=np.zeros(R, dtype=np.int64),
            new=np.zeros((A, KINDS)),
            repeats=np.zeros((A, KINDS, BUCKETS)),
            concentration=np.full(A + 1, FIRST),
            factor=np.ones(KINDS),
            jumps=np.zeros(R, dtype=bool),
            jump_new=np.zeros(1),
            jump_repeats=np.zeros(BUCKETS),
            jump_concentration=np.full(1, FIRST),
            scalars=np.zeros(5, dtype=np.int64),
        )
        self._around = Around(
            v=np.full(S, DEAD),
            last=np.full(S, DEAD),
            policy=np.full(S, -1),
            states=np.zeros(S, dtype=np.int64),
            order=np.zeros(S, dtype=np.int64),
            place=np.zeros(S, dtype=np.int64),
            after=np.zeros(S * (A + 1) * COMMON, dtype=np.int32),  # memory is taken as regions become large
            depth=np.zeros(S, dtype=np.int64),
            mark=np.zeros(S, dtype=np.int64),
            scalars=np.zeros(6, dtype=np.int64),
        )
        self._nothing = np.zeros(S)  # what goals cost without prices
        self._chance, self._sums = np.zeros(EXPERTS), np.zeros(2 * A)
        self._seen, self._means = np.ones(4), np.zeros(4)  # by the last survey and overview
        self._goals = (-1, -1)  # unmet states and version of the need at the last plan
        self._wait, self._version, self._due = 0, -1, True
        self._cost, self._floor = np.ones(0), 1.0  # costs of the last plan, and the least of them
        self.plans = 0

    @staticmethod
    def is_possible(model: EmpiricalModel) -> bool:
        """Whether unseen successors are possible in a model."""
        return model.states.fixed != 1 and not model.closed

    def update(self, need: "Need | None" = None, judging: bool = True) -> None:
        """Learn from what happened since the last call; not `judging`: weights stay what they are.

        With a need, look at all states as well, if more plans were made since the last time than one in SHARE states.
        """
        model, into = self._model, self._learnt.into
        rows = model.changed(self._mark)
        self._mark = model.mark()
        self._place_states()
        look = need is not None and self._is_due(need)
        unmet, missing = (into, into) if need is None else (need.unmet_items, need.missing_samples)
        for end in range(len(rows), min(len(rows), 1) - 1, -BATCH):  # the last ones changed first
            begin = max(end - BATCH, 0)
            how = (judging, begin == 0, look, ROUNDS, PSEUDO, FIRST, self._chance)
            given = (model.counts, self._layout(), rows[begin:end], *how, unmet, missing, model.states.used, self._seen)
            if slots := self._take_in(self._learnt, *given):
                self._make_room(int(slots))
                self._take_in(self._learnt, *given)

    def _is_due(self, need: "Need") -> bool:
        """Whether to look at all states now."""
        if self._wait > 0 and self._version == need.version:
            self._wait -= 1
            return False
        self._version, self._wait, self._due = need.version, self._model.rows.num_states // SHARE, True
        return True

    def _place_states(self) -> None:
        """Take in the states discovered since the last call."""
        from gosprl._kernels.steps import SPARE, place_state

        states, steps = self._model.states, self._learnt.steps
        if self._model.growing:  # elsewhere, states without numbers are copies of others, for endings
            for s in range(self._placed, states.used):
                code = code_of(states[s]) if states.kind(s) == "live" else NONE
                if code != NONE:
                    place_state(steps, s, code)
                    self._has_steps = True
        self._placed = steps.scalars[SPARE] = states.used

    def _make_room(self, slots: int) -> None:
        """Enlarge the table of steps."""
        from gosprl._kernels.steps import move_steps

        larger = _with_slots(self._learnt.steps, slots)
        move_steps(self._learnt.steps, larger)
        self._learnt = self._learnt._replace(steps=larger)

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
        from gosprl._kernels.prior import ANYWHERE

        N, learnt = self._model.visits, self._learnt
        c = learnt.concentration[self._model.rows.action] * learnt.factor[learnt.kind]
        if learnt.jump_concentration[0] >= ANYWHERE:
            c = np.where(learnt.jumps, learnt.jump_concentration[0], c)
        mass: NDArray[np.float64] = np.where(N > 0, c / (N + c), 1.0)
        return mass

    def leads(self) -> bool:
        """Whether plans should be made with the prior."""
        from gosprl._kernels import ANY_STEP, FOUND_GOALS, STEP, UNSEEN_MASS
        from gosprl._kernels.prior import SIBLING

        again = self._learnt.again
        weights = self.weights
        earned = self._has_steps and weights[STEP] + weights[ANY_STEP] >= EARNED
        earned = earned or (self._seen[FOUND_GOALS] > 0 and again[SIBLING] >= BESIDE * (again.sum() + PSEUDO))
        return bool(earned and self._seen[UNSEEN_MASS] >= UNSEEN)

    @property
    def optimism(self) -> float:
        """How much is hoped for from successors that nothing is known of: 0 if one sample a pair is missing.

        States that are to be discovered do not count.
        """
        from gosprl._kernels import ITEMS, SAMPLES

        samples = float(self._seen[SAMPLES])
        return 1 - float(self._seen[ITEMS]) / samples if samples > 0 else 0.0

    def spare(self, need: "Need") -> int:
        """Return the free state that stands for those to be discovered, if whatever is discovered is needed; or -1."""
        model = self._model
        return model.states.used if model.growing and need.requirement.of_discovered else -1

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
        model, states, around = self._model, self._model.states, self._around
        unmet, spare, before = need.unmet_items, self.spare(need), self._goals
        self._goals = (need.unmet_states, need.version)
        price = self._nothing if prices is None else prices
        farthest = FARTHEST if prices is None else model.rows.num_states
        try:
            if spare >= 0:
                unmet[spare] = 1  # during this plan: a copy would take time in proportion to the states
            if self._due and cost is not self._cost:
                self._cost, self._floor = cost, float(cost.min())
            known = states.used + model.growing if self._due else 0
            value = self._plan_around(
                *(self._learnt, model.counts, self._layout(), cost, self._floor, max(states.reset, 0), unmet, price),
                *(around, s, before == self._goals, self.weights, self._means, float(optimism), known, farthest),
                *(SWEEPS, PRECISION, need.of_states, self._sums),
            )
            self._due = False
        finally:  # also if the run is interrupted: the need is not ours
            if spare >= 0:
                unmet[spare] = 0
        self.plans += 1
        return around.policy, value

    def remember(self) -> dict[str, Any]:
        """Return what the counts do not say: weights, kinds of rows when they were taken, concentrations, and more."""
        from gosprl._kernels.prior import NOT_THERE, THERE

        learnt = self._learnt
        return {
            "weight": learnt.weight.tolist(),
            "again": learnt.again.tolist(),
            "factor": learnt.factor.tolist(),
            "jump new": float(learnt.jump_new[0]),
            "jump repeats": _entries(learnt.jump_repeats),
            "jump concentration": float(learnt.jump_concentration[0]),
            "new": _entries(learnt.new),
            "repeats": _entries(learnt.repeats),
            "there": learnt.scalars[[THERE, NOT_THERE]].tolist(),
            "concentration": learnt.concentration.tolist(),
            "plans": self.plans,
        }

    def resized(self) -> "Prior":
        """Return the prior for a model that has more states and rows now."""
        other = Prior(self._model)
        other.recall(self.remember())
        return other

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on after the prior that remembered this; the rest is learnt from the counts.

        There may be more states and actions now.
        """
        from gosprl._kernels.prior import NOT_THERE, THERE, find_jumps

        self._learnt.weight[:], self._learnt.again[:] = memory["weight"], memory["again"]
        self._learnt.scalars[[THERE, NOT_THERE]] = memory["there"]
        self.update(judging=False)
        learnt = self._learnt
        for name, part in (("new", learnt.new), ("repeats", learnt.repeats), ("jump repeats", learnt.jump_repeats)):
            entries, part[:] = memory[name], 0
            for *index, number in entries:
                part[tuple(map(int, index))] = number
        *each, together = memory["concentration"]
        self._learnt.concentration[: len(each)], self._learnt.concentration[-1] = each, together
        learnt.factor[:] = memory["factor"]
        find_jumps(learnt, self._model.counts, self._layout())
        learnt.jump_new[0], learnt.jump_concentration[0] = memory["jump new"], memory["jump concentration"]
        self.plans = memory["plans"]


def _entries(part: NDArray[np.float64]) -> list[list[float]]:
    """Return the entries of an array that are not 0, each as its indices and its value."""
    return [[*index, float(part[tuple(index)])] for index in np.argwhere(part).tolist()]


def _no_steps(model: EmpiricalModel) -> "Steps":
    """Return empty tables of steps, with room for all states of a model."""
    from gosprl._kernels.steps import Steps

    S, fixed = model.rows.num_states, model.states.fixed
    code = np.full(S, NONE)
    code[:fixed] = np.arange(fixed)
    table, none = np.full(1 if fixed else _power(2 * S), -1), np.zeros(0, dtype=np.int64)
    scalars = np.array([fixed, model.states.used, 0])
    return _with_slots(Steps(code, table, none, none, none, scalars), 1)


def _with_slots(steps: "Steps", number: int) -> "Steps":
    """Return the same codes with an empty table of at least so many steps."""
    size, scalars = _power(number), steps.scalars.copy()
    scalars[-1] = 0
    kind, step, count = np.full(size, -1), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    return steps._replace(kind=kind, step=step, number=count, scalars=scalars)


def _power(number: int) -> int:
    """Return the least power of two that is no less than a positive number."""
    return 1 << (number - 1).bit_length()
