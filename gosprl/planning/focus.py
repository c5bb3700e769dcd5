"""Focused planning: an optimistic shortest path for the states that the next attempt is likely to visit.

A full plan (`gosprl.planning.ssp`) takes O(S) time, and Algorithm 1 plans before every attempt. An attempt towards a
near goal only needs the values of the states around it. This planner keeps values v between attempts and improves them
in the region of the next walk.

Invariant:

    v <= L v, up to a tolerance of 1e-9 of a step's cost, and v = 0 at the goals; so v / (1 + 1e-9) is at most the
    optimistic optimum (see the certificate in `gosprl.planning.ssp`).

v starts at the least cost of a step. Applying L to single states in place preserves v <= L v, since L is monotone.
Dropping a goal preserves it, since L v then only increases. When the counts of a row change, L v can decrease. Then v
is lowered at the state of the row, then at the states with rows that lead there, and so on while values decrease. If
that takes too long, all of v is scaled down until v <= L v. A new goal lowers v to 0 there.

Goals may have prices: costs of ending there. Then v is the price at the goals, and all of the above holds with it. If
prices are a potential of the program (`gosprl.planning.fluid`), they satisfy v <= c + p v at every state, not only at
goals: scaled to v <= L v, they are where v starts, and little is left to be raised. New prices take one application of
L to all states; a goal that is dropped keeps its price as its value, lowered where that exceeds L v.

Unseen successors are not enumerated. Their mass goes to goals, of value 0. With prices, it goes to the goals that cost
less than a step, the cheapest first. Mass that these cannot take is valued at the least cost of a step, which is at
most the value of any other state. So the computed value is at most L v, and depends only on the values of seen
successors.

An attempt from s follows the greedy policy along seen successors, to all states that the walk visits with a probability
of at least `LIKELY` (estimated from below: loops are not counted). L is applied in this region until no value there
rises by more than the precision. The policy is greedy in the region, and ends the attempt elsewhere. A full plan is
made instead after ten applications per row of the system (the goals are far away or cannot be reached), and on small
problems if the unseen mass of some row cannot be placed (see below).

Why the guarantee holds. The paper's analysis uses two properties of a plan: its values are at most the optimistic
optimum, and at each state the attempt visits, c + p v <= v + precision for the row taken and some p in its confidence
set. The first holds for v. The second holds for v in the region, if the goals can take the unseen mass of every row of
the policy. Otherwise it holds for v', which is v lowered to the least cost of a step at as many states as that mass
needs, outside of the region and not seen from any of its rows. Then v' <= v is also at most the optimum, and p puts the
rest of the mass on those states. If there are too few such states, the kernel returns `UNPLACED_MASS`, and a full plan
is made.

Attempts that end because the walk left its region are new in the analysis. Each costs at most D steps, as much as one
that ended by doubling a count. A walk can leave by a transition never seen before: this happens once per existing
transition, at most S^2 A times, and is part of the theorem's second term. Or it can leave by a transition that was seen
but is unlikely. `LIKELY` is used only while at most as many walks left their region as stayed in it, so the number of
attempts at most doubles, and so does, at worst, the leading term B D. Otherwise the region is closed under all seen
successors, and a walk can only leave it in the first way.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.certificate import roundoff
from gosprl.planning.nature import UNIT
from gosprl.planning.solution import seen_of
from gosprl.planning.workspace import Workspace
from gosprl.sets.known import Known

LIKELY = 0.0001  # least probability of a visit for a state to be in the region
TOLERANCE = 1e-9  # decreases below this, in units of the least cost, are not propagated
PATIENCE = 10  # applications per row of the system before a full plan
FALLS = 100_000  # rows that may be applied to propagate a decrease, even in small systems


class Focus:
    """Plans from the current state of the walk; see the head of this module."""

    def __init__(self, work: Workspace, cost: NDArray[np.float64]) -> None:
        from gosprl import _kernels

        rows = work.system.rows
        S, R = rows.num_states, len(rows)
        self.work, self.cost = work, cost
        self.floor = float(cost.min())
        self.tie = _kernels.TIE * min(1.0, self.floor)
        self._least = np.minimum.reduceat(cost, rows.ptr[:-1])  # [S] least cost of a step from each state
        self.goal = np.zeros(S, dtype=bool)
        self.goals = 0  # number of goals
        self.prices: NDArray[np.float64] | None = None  # [S] cost of ending at each goal, at least 0; None: 0
        self._potential: NDArray[np.float64] | None = None  # [S] what `prices` were made of
        self.stayed, self.left = 0, 0  # walks that ended inside of their region, and walks that left it
        self._rows = rows
        self._none_seen = seen_of(work.family.mdp) if isinstance(work.family, Known) else None
        self._closed = self._is_closed()
        self._linked = np.zeros(R, dtype=np.int64)  # number of each row's successors in the lists of predecessors
        self._longest = -1  # most stored successors of a row
        self._receivers = 1  # most states that the unseen mass of a row fills
        self._region = _kernels.Region(
            v=np.append(self._least, self.floor),
            best=np.full(S, -1),
            q=np.full(R, -np.inf),
            out=np.zeros(S),
            states=np.zeros(S, dtype=np.int64),
            todo=np.zeros(S, dtype=np.int64),
            todo_next=np.zeros(S, dtype=np.int64),
            weight=np.zeros(S),
            stamp=np.zeros(S, dtype=np.int64),
            policy=np.full(S, -1),
            head=np.full(S, -1),
            scalars=np.zeros(5, dtype=np.int64),
        )
        self._links = _kernels.Links(np.zeros(64, dtype=np.int32), np.zeros(64, dtype=np.int32))
        self._lowest = _kernels.Lowest(np.zeros(0, dtype=np.int64), np.full(S, S), np.zeros(1))
        self._listed = 0  # number of goals in `_lowest`
        self.spread = np.zeros(64, dtype=np.int64)  # plans by the bit length of the number of rows they applied
        self._add_rows(np.arange(R))

    @property
    def values(self) -> NDArray[np.float64]:
        """Lower bounds on the optimistic optimum, [S]."""
        values: NDArray[np.float64] = self._region.v[:-1] / (1 + TOLERANCE)
        return values

    @property
    def applied(self) -> int:
        """Number of rows applied so far."""
        return int(self._region.applied)

    @property
    def median_rows(self) -> int:
        """A power of two: half of the plans applied fewer rows."""
        return 1 << int(np.searchsorted(np.cumsum(self.spread), self.spread.sum() / 2))

    def attempt(
        self,
        goals: NDArray[np.bool_],
        rows: NDArray[np.int64],
        dropped: list[int] | None,
        s: int,
        precision: float,
        key: int,
        potential: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int64], float] | None:
        """Return (rows [S], cost of the plan from s), or None if a full plan is needed.

        Since the last call, the counts of `rows` changed and the goals `dropped` were removed (None: any change).
        Goals have the prices potential - min potential; a new potential takes time in proportion to all states.
        """
        if dropped is None:
            self.set_goals(goals)
        else:
            self.drop(dropped)
        self.refresh(rows)
        if not self._is_priced_by(potential):
            self.set_prices(potential)
        return self.plan(s, precision, key)

    def set_prices(self, potential: NDArray[np.float64] | None) -> None:
        """Make the cost of ending at each goal potential [S] - min potential; None: 0."""
        self._potential = potential
        self.prices = None if potential is None else potential - potential.min()
        self._region.v[:-1] = np.where(self.goal, self._at_goals(), self._least)
        self._list_lowest()
        if self.prices is not None:
            self._region.v[:-1] = self._scaled(self.prices)

    def _is_priced_by(self, potential: NDArray[np.float64] | None) -> bool:
        last = self._potential
        if potential is None or last is None:
            return potential is last
        return potential is last or bool(np.array_equal(potential, last))

    def _at_goals(self) -> NDArray[np.float64]:
        """Return the values of states if they are goals, [S]."""
        return np.zeros(len(self.goal)) if self.prices is None else self.prices

    def adopt(self) -> bool:
        """Raise v to the values of the last full plan; False if some states cannot reach the goals.

        The full plan values unseen successors more exactly than L here, so its values are scaled to v <= L v first.
        """
        solution = self.work.solution
        if solution is None or not solution.alive.all():
            return False
        np.maximum(self._region.v[:-1], self._scaled(solution.v), out=self._region.v[:-1])
        return True

    def _scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale any values [S] to v <= L v, [S]: divide by one plus the largest excess over L, in units of the costs.

        The maximum of two sub-solutions is a sub-solution, so v stays at least the cost of one step.
        """
        from gosprl import _kernels

        region, lowest, S = self._region, self._lowest, len(self.goal)
        at_goals = self._at_goals()
        least = np.where(self.goal, at_goals, self._least)
        v = np.append(np.where(self.goal, at_goals, np.maximum(values, least)), self.floor)
        excess = _kernels.sweep(
            *(self.work.sets, self.cost, self._enabled(), self.goal, v, np.arange(S), S),
            *(lowest.order, lowest.rank, lowest.prefix, len(lowest.order)),
            *(region.best, region.q, -np.inf, region.out, self._frozen),
        )[3]
        rounding = roundoff(self.work.sets, self.cost, float(v.max()))[0]
        if rounding > TOLERANCE:
            excess += rounding
        scaled: NDArray[np.float64] = np.maximum(v[:-1] / (1 + excess), least)
        return scaled

    def drop(self, states: list[int]) -> None:
        """Remove goals."""
        for s in states:
            self.goal[s] = False
            self._region.v[s] = self.floor if self.prices is None else max(self._region.v[s], self.floor)
        self.goals -= len(states)
        if any(self._lowest.rank[s] < len(self._lowest.order) for s in states):
            self._list_lowest()
        if self.prices is not None:
            self._lower(np.array(states, dtype=np.int64))

    def set_goals(self, goal: NDArray[np.bool_]) -> None:
        """Replace the goals by `goal` [S]."""
        added = np.flatnonzero(goal & ~self.goal)
        dropped = np.flatnonzero(self.goal & ~goal)
        few = self._listed < len(self._lowest.order)
        self.goal[:] = goal
        self.goals = int(goal.sum())
        at_goals, v = self._at_goals(), self._region.v
        v[dropped] = self.floor if self.prices is None else np.maximum(v[dropped], self.floor)
        v[added] = at_goals[added]
        if added.size and (few or added.size > len(goal) // 2):
            # unseen mass that the few old goals could not take can go to the new ones: any value may be too high
            v[:-1] = np.where(goal, at_goals, self._least)
            added = added[:0]
        self._list_lowest()
        self._lower(np.append(self._before(added), dropped if self.prices is not None else dropped[:0]))

    def refresh(self, rows: NDArray[np.int64]) -> None:
        """Update the sets and values for `rows`, whose counts changed."""
        if rows.size and not self.work.known:
            self.work.refresh(rows)
            if self._closed != self._is_closed():  # then all rows changed, and are stored in new slots
                from gosprl._kernels import LINKS

                self._closed = self._is_closed()
                self._linked[:], self._region.head[:], self._region.scalars[LINKS] = 0, -1, 0
            self._add_rows(rows)
            self._lower(self._rows.state[rows])

    def plan(self, s: int, precision: float, key: int) -> tuple[NDArray[np.int64], float] | None:
        """Return (rows [S], cost of the plan from s), or None if a full plan is needed."""
        from gosprl import _kernels

        likely = LIKELY if self.left <= self.stayed else 0.0
        seen, before = self._none_seen or seen_of(self.work.system), self.applied
        budget = PATIENCE * len(self.cost)
        status, cost = _kernels.focus(
            *(self.work.sets, self.cost, self._enabled(), self.goal, self.goals, self._lowest, self._receivers),
            *(self._frozen, self._region, seen, s, precision, likely, self.tie, key, budget),
        )
        self.spread[(self.applied - before).bit_length()] += 1
        # where values are so large that rounding exceeds the tolerance, only a full plan can certify them
        resolved = (2 * self._longest + 8) * UNIT * cost <= TOLERANCE * self.floor
        return (self._region.policy, cost / (1 + TOLERANCE)) if status == _kernels.CONVERGED and resolved else None

    def _is_closed(self) -> bool:
        return isinstance(self.work.system, EmpiricalModel) and self.work.system.closed

    def _enabled(self) -> NDArray[np.bool_]:
        system: Any = self.work.system
        enabled: NDArray[np.bool_] = system.enabled
        return enabled

    def _add_rows(self, rows: NDArray[np.int64]) -> None:
        """Add the new sets of `rows`: extend the lists of predecessors, the scratch arrays and the list of goals."""
        from gosprl import _kernels

        sets = self.work.sets
        longest = int((sets.end[rows] - sets.begin[rows]).max())
        if longest > self._longest:
            self._longest = 2 * longest + 4
            self._frozen = _kernels.new_frozen(0, 0, self._longest)
            self._list_lowest()
        source, start, end = self._stored(rows)
        begin, self._linked[rows] = start + self._linked[rows], end - start
        new = int((end - begin).sum())
        if new:
            used = int(self._region.scalars[_kernels.LINKS])
            if used + new > len(self._links.row):
                extra = np.zeros(max(new, used), dtype=np.int32)
                self._links = _kernels.Links(*(np.concatenate([part[:used], extra]) for part in self._links))
            _kernels.link(self._region, self._links, rows, source, begin, end)
        each, total = sets.each[rows], np.minimum(sets.total[rows], sets.slack[rows])
        shared = (each > 0) & (total > 0)
        if shared.any():
            receivers = int(np.ceil((total[shared] / each[shared]).max())) + 1
            if receivers > self._receivers:
                self._receivers = receivers
                self._list_lowest()

    def _stored(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Return (pool, begin, end) of the successors of `rows`; new successors are appended, so links stay valid."""
        if isinstance(self.work.family, Known):
            mdp = self.work.family.mdp
            return mdp.succ, mdp.ptr[rows], mdp.ptr[rows + 1]
        assert isinstance(self.work.system, EmpiricalModel)
        counts = self.work.system._counts
        return counts.succ, counts.start[rows], counts.start[rows] + counts.length[rows]

    def _list_lowest(self) -> None:
        """List the states that get unseen mass first: goals, then stand-ins valued at the least cost of a step.

        The list has goals with high numbers, and more than needed: then few dropped goals are on it, and few drops
        require a new list. With prices, it has the cheapest goals, up to the least cost of a step.
        """
        from gosprl import _kernels

        S = len(self.goal)
        self._lowest.rank[self._lowest.order[: self._listed]] = S
        most = 2 * (self._receivers + self._longest + 32)
        if self.prices is None:
            goals = np.flatnonzero(self.goal)[-most:]
        else:
            goals = np.flatnonzero(self.goal & (self.prices < self.floor))
            goals = goals[np.argsort(self.prices[goals], kind="stable")][:most]
        self._listed = len(goals)
        enough = self._receivers + self._longest  # a row may have seen some of them
        order = np.concatenate([goals, np.full(max(0, enough - len(goals)), S)])
        self._lowest.rank[goals] = np.arange(len(goals))
        prefix = np.append(0.0, np.cumsum(self._region.v[order]))
        self._lowest = _kernels.Lowest(order, self._lowest.rank, prefix)

    def _before(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the states with a row that may lead to one of `states`."""
        rows = []
        for s in states.tolist():
            i = int(self._region.head[s])
            while i >= 0:
                rows.append(int(self._links.row[i]))
                i = int(self._links.next[i])
        return np.unique(self._rows.state[np.array(rows, dtype=np.int64)])

    def _lower(self, states: NDArray[np.int64]) -> None:
        """Lower v until v <= L v, starting at the given states."""
        from gosprl import _kernels

        if states.size == 0:
            return
        states = np.unique(states)
        self._region.todo[: len(states)] = states
        done = _kernels.lower_values(
            *(self.work.sets, self.cost, self._enabled(), self.goal, self._rows.state, self._lowest, self._frozen),
            *(self._region, self._links, len(states), TOLERANCE * self.floor, max(PATIENCE * len(self.cost), FALLS)),
        )
        if not done:  # if goals are far, a decrease fades slowly along the path
            self._region.v[:-1] = self._scaled(self._region.v[:-1])
