"""Reach: which needed states are farther away than L steps, each with its own certificate (`reach=L`, GOSPRL-L).

The test. Let s be the state that the walk is in, and v_g(s) the optimistic distance to g: the least expected number of
steps over all policies and all dynamics in the confidence sets (`gosprl.planning.ssp`). Ways through endings and resets
count: a reset after an ending as one step, though the result counts none for it, a chosen one as `reset_cost` steps. A
needed state g is given up only if a certified lower bound on v_g(s) exceeds L. What is compared is the value of a plan
divided by 1 + rho, which is never above the optimum, so an imprecise plan gives up too little.

The promise. On the event that all sets hold at all times, v_g(s) is at most the true distance. So with probability
1 - delta, in the whole run, no state is given up whose true shortest expected hitting time, from the state that the
walk was in when it was given up, with resets counted as above, is at most L. This is for unscaled sets: smaller ones
(`scale` below 1) promise nothing, and the guarantee says so. States may be kept that are beyond L, as long as nearer
ones are left.

One plan for many goals. The distance to a set of goals is at most that to any member, so a plan for a set G with
v_G(s) > L certifies all of G. Two tests use this:

    all     If the plan for all goals has a value above L, all of them are given up, and the run ends. It is made
            whenever the strategy's own plan is that long, so a run never goes on with states that are all beyond L.
    groups  While nearer goals are left, a group G of goals is given up if v_G > L at s and at every other goal that the
            walk is likely to come to. So a long corridor whose cells are all needed is walked to its end, although its
            end is beyond L at first. The walk is likely to come to goals that are linked to s by hops of at most L from
            goal to goal; hops are estimated by shortest paths over the stored transitions, where a transition of
            probability at most u takes 1 / u steps. First all goals that are not linked are tested at once, then halves
            of the groups that fail; then linked ones, one by one, since the estimate may be far too low.

Cost. The second test is not needed for a run to end, so it may be late: it gets a tenth of the work of the strategy's
plans and of the steps, and it is skipped while no pair has L visits and any state may follow any other. (With n visits
of every pair, no optimistic distance is much above n.) Plans that give up something are not counted: there are at most
two for each state in a run.

A state given up is waived: `Need.waive` takes it out of the need for all planners of the run, and the result lists it.

The paper's threshold is another test, an option of `gosprl` only: all needed states are given up when the steps so far
exceed alpha (j L + L^{3/2} S^2 A) in the j-th episode (the j-th needed sample). The theorem gives neither alpha nor its
logarithms, so this test certifies nothing: it is off by default, and a run that it stopped has no guarantee. (The paper
prints j before both terms; its lemma needs it before the first only.)
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gosprl.collecting.need import Need
from gosprl.errors import PrecisionError
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.solution import SLOW
from gosprl.planning.workspace import Workspace
from gosprl.sets import Confidence, Known
from gosprl.strategies.knowledge import KNOWN_PRECISION

SHARE = 0.1  # part of the work of plans, attempts and steps that tests of groups may take; work is counted in rows
STEP, ATTEMPT = 10, 1000  # rows that can be applied while a step or an attempt is made, or fewer
PLAN = 3000  # the same for what a plan does besides applying rows
PLANS = 4  # groups that fail in one test at most
EACH = 20  # up to this number of states given up together, each gets a plan and so a distance of its own
PRECISION = 1e-3
NO_GOALS = np.empty(0, dtype=np.int64)
NO_PATH = "no path that surely gets there, whatever the dynamics in the sets"
THRESHOLD = "paper's threshold"


class Reach:
    """Gives up needed states beyond L; see the head of this module.

    Parameters
    ----------
    limit
        L, in steps.
    family
        The confidence sets that distances are measured in.
    model, need
        The counts and what is missing; both change during the run.
    """

    def __init__(self, limit: float, family: Confidence, model: EmpiricalModel, need: Need) -> None:
        self.limit, self.family, self.model, self.need = float(limit), family, model, need
        self._space: Workspace | None = None  # made for the first test: most runs need none for long
        self._groups: list[NDArray[np.int64]] = []  # goals to be tested together; the last ones first
        self._singles = NO_GOALS  # goals to be tested one by one; the last ones first
        self._credit = 0.0  # rows that tests of groups may apply
        self._time = 0  # t when they were last allowed some

    @property
    def space(self) -> Workspace:
        """The sets that distances are measured in; not those of other plans, which start from their last solution."""
        if self._space is None:
            self._space = Workspace(self.model, self.family)
        return self._space

    def resize(self) -> None:
        """Make arrays anew: the model has more states."""
        self._space = None
        self._groups, self._singles = [], NO_GOALS

    def remember(self) -> dict[str, float]:
        """Return what a new one has to recall: the work that tests may take. Groups are listed anew."""
        return {"credit": self._credit, "time": self._time}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on with this credit."""
        self._credit, self._time = memory["credit"], memory["time"]

    def distances(self, goals: NDArray[np.bool_], t: int) -> NDArray[np.float64]:
        """Return lower bounds [S] on the optimistic distance to the nearest of `goals` [S], at time t."""
        precision = KNOWN_PRECISION if isinstance(self.family, Known) else min(PRECISION, 1 / (2 * t))
        try:
            return self.space.plan(goals, self.model.costs(ending=1.0), precision, -1)[1]
        except PrecisionError:  # distances that doubles cannot hold; nothing is given up without a certificate
            self._credit -= SLOW * len(self.model.rows)
            return np.zeros(len(goals))

    def give_up(self, goals: NDArray[np.int64], distance: float, s: int, t: int) -> None:
        """Waive `goals` [n], all of which are at least `distance` > L away from s."""
        if len(goals) > EACH:
            tests = dict.fromkeys(goals.tolist(), self._test(distance, f" to the nearest of {len(goals)} states"))
        elif len(goals) == 1:
            tests = {int(goals[0]): self._test(distance)}
        else:
            tests = {g: self._test(max(distance, float(self.distances(self._mask(g), t)[s]))) for g in goals.tolist()}
        self.need.waive(tests)

    def all_beyond(self, s: int, t: int) -> bool:
        """Give up everything needed if all of it is beyond L; whether that is so."""
        goals = self.need.unmet_items > 0
        if goals[s]:
            return False
        distance = float(self.distances(goals, t)[s])
        if distance > self.limit:
            self.give_up(np.flatnonzero(goals), distance, s, t)
        return distance > self.limit

    def examine(self, s: int, t: int, rows: int) -> None:
        """Give up groups of goals beyond L, if a test is due; the strategy applied `rows` rows since the last call."""
        self._credit += SHARE * (rows + STEP * (t - self._time) + ATTEMPT)
        self._time = t
        if self._credit < 0:
            return
        self._credit -= len(self.model.rows)  # for the maximum
        if not (isinstance(self.family, Known) or self.model.closed) and self.model.visits.max() < self.limit:
            return
        self._test_groups(s, t)

    def _test_groups(self, s: int, t: int) -> None:
        goals = self.need.unmet_items > 0
        linked = self._linked(s, goals)
        goals[s] = False
        linked[s] = True
        self._list_groups(goals, linked)
        failed = 0
        while failed < PLANS and (self._groups or len(self._singles)):
            if self._groups:
                group = self._groups.pop()
            else:
                group, self._singles = self._singles[-1:], self._singles[:-1]
            before, mask = self.space.applied, self._mask(group)
            values = self.distances(mask, t)
            if values[linked & ~mask].min() > self.limit:
                self.give_up(group, float(values[s]), s, t)
                linked[group] = False
            else:
                self._groups += np.array_split(group, 2) if len(group) > 1 else []
                self._credit -= PLAN + self.space.applied - before
                failed += 1

    def _list_groups(self, goals: NDArray[np.bool_], linked: NDArray[np.bool_]) -> None:
        """Keep what is still to be tested of `goals` [S]; if that is nothing, list all, those with few visits last."""
        far, near = goals & ~linked, goals & linked
        groups = [group[far[group]] for group in self._groups]
        self._groups = [group for group in groups if len(group)]
        self._singles = self._singles[near[self._singles]]
        if not self._groups and not len(self._singles):
            self._groups = [np.flatnonzero(far)] if far.any() else []
            singles = np.flatnonzero(near)
            self._singles = singles[np.argsort(-self.need.state_visits[singles], kind="stable")]

    def _linked(self, s: int, goals: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the goals [S] that hops of at most L lead to, from s and from goal to goal, along stored transitions.

        An estimate: it decides what is tested, never what is given up.
        """
        graph, linked, new = self._graph(), np.zeros(len(goals), dtype=bool), np.array([s])
        self._credit -= PLAN
        while new.size:
            hops = dijkstra(graph, indices=new, min_only=True, limit=self.limit)
            new = np.flatnonzero(goals & (hops <= self.limit) & ~linked)
            linked[new] = True
            self._credit -= len(self.model.rows)
        return linked

    def _graph(self) -> csr_array:
        """Return the stored transitions, with the number of trials that each takes at its largest probability."""
        space, model = self.space, self.model
        space.refresh(space.stale())
        sets, S = space.sets, model.rows.num_states
        number = sets.end - sets.begin
        row = np.repeat(np.arange(len(number)), number)
        slot = np.arange(len(row)) + np.repeat(sets.begin - (np.cumsum(number) - number), number)
        row, slot = row[possible := model.enabled[row] & (sets.upper[slot] > 0)], slot[possible]
        begin = np.searchsorted(model.rows.state[row], np.arange(S + 1))
        return csr_array((1 / sets.upper[slot], sets.succ[slot], begin), shape=(S, S))

    def _mask(self, states: NDArray[np.int64] | int) -> NDArray[np.bool_]:
        mask = np.zeros(self.model.rows.num_states, dtype=bool)
        mask[states] = True
        return mask

    def _test(self, distance: float, of: str = "") -> str:
        """Return the words of a result."""
        if distance == np.inf:
            return NO_PATH
        return f"optimistic distance{of} {distance:.4g} > L = {self.limit:g}"


def exceeds_threshold(L: float, alpha: float, model: EmpiricalModel, need: Need, t: int) -> str:
    """Return the words of the paper's threshold if it is exceeded at time t, otherwise ""."""
    pair, state = need.taken()
    j = 1 + np.minimum(model.visits, pair).sum() + np.minimum(need.state_visits, state).sum()
    bound = alpha * (j * L + L**1.5 * model.rows.num_states**2 * model.num_actions)
    return f"{THRESHOLD}: {t - 1} steps > {bound:.4g}" if t - 1 > bound else ""
