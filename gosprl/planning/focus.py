"""Focused planning: the optimistic shortest path where an attempt will walk, at the cost of that neighbourhood.

A full plan (`gosprl.planning.ssp`) costs O(S), and Algorithm 1 plans before every attempt. An attempt towards a near
goal needs the values of the states around it only. This planner keeps values v from attempt to attempt and improves
them where the next walk goes.

What is kept, at all times:

    v <= L v, up to a tolerance of 1e-9 of a step's cost, and v = 0 at the goals; so v / (1 + 1e-9) is at most the
    optimistic optimum (see the certificate in `gosprl.planning.ssp`).

v begins at the least cost of a step. Applying L to single states, in place, keeps v <= L v: L is monotone. Dropping a
goal keeps it, too: rises may come later. When a row's counts change, L v can fall, and v does so at once: the rows'
states are lowered, then the states with rows that lead there, as far as there is something to lower; where that takes
long, all of v is divided by what makes it v <= L v again. A new goal is a fall to 0.

Unseen successors are not followed one by one. Their mass goes to goals, of value 0; what the goals cannot take is
valued at the least cost of a step, which is at most the value of any other state. So what is computed is at most L v,
and depends on no value but those of seen successors.

An attempt from s: follow the greedy policy outwards along the successors that were seen, as far as the walk gets with a
probability of at least `LIKELY` (a low estimate: what comes back by loops does not count), and apply L until nothing in
that region rises by more than the precision. The policy is the greedy one in the region, and hands back elsewhere. A
full plan is made instead if the region was applied ten times as often as there are rows (goals far away, or out of
reach), and on small problems if some row's unseen mass has nowhere to go (below).

Why the guarantee survives. The paper's analysis uses two things of a plan: that its values are at most the optimistic
optimum, and that at each state the attempt visits, c + p v <= v + precision for the row taken and some p in its
confidence set. The first holds for v. The second holds for v in the region, if no row of the policy has more unseen
mass than goals to take it. If some has, it holds for v', which is v lowered to the least cost of a step at as many
states as that takes, outside of the region and not seen from any of its rows: v' <= v is at most the optimum as well,
and those states are where p puts the rest of the mass. Where there are too few such states, the kernel returns
`UNPLACED_MASS`, and a full plan is made.

What is new are attempts that end because the walk left its region, each of which costs the analysis as much as one
that ended by doubling a count, at most D steps. They are of two kinds. Along a transition never seen before: that
happens once for each transition that exists, at most S^2 A times, within the theorem's second term. Along one that was
seen but is unlikely: `LIKELY` counts only while all walks that left are no more than those that did not, so that the
number of attempts at most doubles, and with it, at worst, the leading term B D; otherwise, the region is closed under
all successors seen, and is only left in the first way.
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

LIKELY = 0.0001  # how likely the walk must get to a state for it to be in the region
TOLERANCE = 1e-9  # falls below this, in units of the least cost, are not followed
PATIENCE = 10  # applications of all rows before a full plan
FALLS = 100_000  # rows that may be applied for a fall in any case, however few there are


class Focus:
    """Plans from where the walk is; see the head of this module."""

    def __init__(self, work: Workspace, cost: NDArray[np.float64]) -> None:
        from gosprl import _kernels

        rows = work.system.rows
        S, R = rows.num_states, len(rows)
        self.work, self.cost = work, cost
        self.floor = float(cost.min())
        self.tie = _kernels.TIE * min(1.0, self.floor)
        self._least = np.minimum.reduceat(cost, rows.ptr[:-1])  # [S] of a step from there
        self.goal = np.zeros(S, dtype=bool)
        self.goals = 0  # how many
        self.stayed, self.left = 0, 0  # walks that ended in their region, and that left it
        self._rows = rows
        self._none_seen = seen_of(work.family.mdp) if isinstance(work.family, Known) else None
        self._closed = self._is_closed()
        self._linked = np.zeros(R, dtype=np.int64)  # successors of each row that are in the lists of predecessors
        self._longest, self._wanted = -1, 1  # successors of a row, and goals that one may want
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
        self._listed = 0  # goals among the lowest
        self.spread = np.zeros(64, dtype=np.int64)  # plans by the length, in bits, of the number of rows they applied
        self._take_in(np.arange(R))

    @property
    def values(self) -> NDArray[np.float64]:
        """[S] lower bounds on the optimistic optimum."""
        values: NDArray[np.float64] = self._region.v[:-1] / (1 + TOLERANCE)
        return values

    @property
    def applied(self) -> int:
        """Rows applied so far."""
        return int(self._region.applied)

    @property
    def median_rows(self) -> int:
        """Half of the plans applied fewer rows than this, a power of two."""
        return 1 << int(np.searchsorted(np.cumsum(self.spread), self.spread.sum() / 2))

    def attempt(
        self,
        goals: NDArray[np.bool_],
        rows: NDArray[np.int64],
        dropped: list[int] | None,
        s: int,
        precision: float,
        key: int,
    ) -> tuple[NDArray[np.int64], float] | None:
        """(policy [S], cost of the plan from s), or None where a full plan is needed.

        Since the last time, the counts of `rows` changed, and of the goals those were `dropped` (None: any change).
        """
        if dropped is None:
            self.set_goals(goals)
        else:
            self.drop(dropped)
        self.refresh(rows)
        return self.plan(s, precision, key)

    def adopt(self) -> bool:
        """Take over the values of a full plan just made; False if some states cannot reach the goals.

        They are lower bounds, but of an L that knows more of unseen successors than the one kept here.
        """
        solution = self.work.solution
        if solution is None or not solution.alive.all():
            return False
        np.maximum(self._region.v[:-1], self._scaled(solution.v), out=self._region.v[:-1])
        return True

    def _scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """[S] v <= L v from any values: divided by one plus their largest excess over L, in units of the rows' costs.

        The larger of two such v is such a v, too, so nothing need be below the cost of one step.
        """
        from gosprl import _kernels

        region, lowest, S = self._region, self._lowest, len(self.goal)
        least = np.where(self.goal, 0.0, self._least)
        v = np.append(np.where(self.goal, 0.0, np.maximum(values, least)), self.floor)
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
        """Drop goals."""
        for s in states:
            self.goal[s] = False
            self._region.v[s] = self.floor
        self.goals -= len(states)
        if any(self._lowest.rank[s] < len(self._lowest.order) for s in states):
            self._list_lowest()

    def set_goals(self, goal: NDArray[np.bool_]) -> None:
        """Any other goals."""
        added = np.flatnonzero(goal & ~self.goal)
        dropped = np.flatnonzero(self.goal & ~goal)
        few = self._listed < len(self._lowest.order)
        self.goal[:] = goal
        self.goals = int(goal.sum())
        self._region.v[dropped] = self.floor
        self._region.v[added] = 0.0
        if added.size and (few or added.size > len(goal) // 2):
            # Values that counted on the goals being few may be too high anywhere.
            self._region.v[:-1] = np.where(goal, 0.0, self._least)
            added = added[:0]
        self._list_lowest()
        self._lower(self._before(added))

    def refresh(self, rows: NDArray[np.int64]) -> None:
        """Take in the rows whose counts changed."""
        if rows.size and not self.work.known:
            self.work.refresh(rows)
            if self._closed != self._is_closed():  # all rows are among those that changed, and stored anew
                from gosprl._kernels import LINKS

                self._closed = self._is_closed()
                self._linked[:], self._region.head[:], self._region.scalars[LINKS] = 0, -1, 0
            self._take_in(rows)
            self._lower(self._rows.state[rows])

    def plan(self, s: int, precision: float, key: int) -> tuple[NDArray[np.int64], float] | None:
        """(rows [S], cost of the plan from s), or None where a full plan is needed."""
        from gosprl import _kernels

        likely = LIKELY if self.left <= self.stayed else 0.0
        seen, before = self._none_seen or seen_of(self.work.system), self.applied
        budget = PATIENCE * len(self.cost)
        status, cost = _kernels.focus(
            *(self.work.sets, self.cost, self._enabled(), self.goal, self.goals, self._lowest, self._wanted),
            *(self._frozen, self._region, seen, s, precision, likely, self.tie, key, budget),
        )
        self.spread[(self.applied - before).bit_length()] += 1
        # values so large that rounding exceeds the tolerance are left to full plans, which can certify them
        resolved = (2 * self._longest + 8) * UNIT * cost <= TOLERANCE * self.floor
        return (self._region.policy, cost / (1 + TOLERANCE)) if status == _kernels.CONVERGED and resolved else None

    def _is_closed(self) -> bool:
        return isinstance(self.work.system, EmpiricalModel) and self.work.system.closed

    def _enabled(self) -> NDArray[np.bool_]:
        system: Any = self.work.system
        enabled: NDArray[np.bool_] = system.enabled
        return enabled

    def _take_in(self, rows: NDArray[np.int64]) -> None:
        """Take in new sets of the given rows: links to predecessors, room, and the number of goals to list."""
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
            wanted = int(np.ceil((total[shared] / each[shared]).max())) + 1
            if wanted > self._wanted:
                self._wanted = wanted
                self._list_lowest()

    def _stored(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """(pool, begin, end) of the successors of rows, in an order that only grows."""
        if isinstance(self.work.family, Known):
            mdp = self.work.family.mdp
            return mdp.succ, mdp.ptr[rows], mdp.ptr[rows + 1]
        assert isinstance(self.work.system, EmpiricalModel)
        counts = self.work.system._counts
        return counts.succ, counts.start[rows], counts.start[rows] + counts.length[rows]

    def _list_lowest(self) -> None:
        """Return the states that unseen mass goes to first: goals, then stand-ins valued at the least cost of a step.

        Goals with high numbers are taken, and more of them than are wanted, so that few drops make a new list.
        """
        from gosprl import _kernels

        S = len(self.goal)
        self._lowest.rank[self._lowest.order[: self._listed]] = S
        goals = np.flatnonzero(self.goal)[-2 * (self._wanted + self._longest + 32) :]
        self._listed = len(goals)
        enough = self._wanted + self._longest  # some of them a row may have seen
        order = np.concatenate([goals, np.full(max(0, enough - len(goals)), S)])
        self._lowest.rank[goals] = np.arange(len(goals))
        prefix = np.append(0.0, np.cumsum(self._region.v[order]))
        self._lowest = _kernels.Lowest(order, self._lowest.rank, prefix)

    def _before(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the states with a row that may lead to one of the given ones."""
        rows = []
        for s in states.tolist():
            i = int(self._region.head[s])
            while i >= 0:
                rows.append(int(self._links.row[i]))
                i = int(self._links.next[i])
        return np.unique(self._rows.state[np.array(rows, dtype=np.int64)])

    def _lower(self, states: NDArray[np.int64]) -> None:
        """Let v fall where it must, beginning at the given states."""
        from gosprl import _kernels

        if states.size == 0:
            return
        states = np.unique(states)
        self._region.todo[: len(states)] = states
        done = _kernels.lower_values(
            *(self.work.sets, self.cost, self._enabled(), self.goal, self._rows.state, self._lowest, self._frozen),
            *(self._region, self._links, len(states), TOLERANCE * self.floor, max(PATIENCE * len(self.cost), FALLS)),
        )
        if not done:  # where goals are far, falls fade as slowly as the walk gets there
            self._region.v[:-1] = self._scaled(self._region.v[:-1])
