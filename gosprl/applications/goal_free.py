"""Goal-free cost-free exploration (section and appendix of that name): explore once, then plan for any goal and costs.

After the walk, `policy(goal, costs)` is optimal in the frequencies seen, and within epsilon of the best in truth, for
every goal and all costs in [c_min, 1]. With c_min = 0 the best may be a policy that never arrives, where waiting is
free; then theta >= 1 must be given, and epsilon is by how much it may cost more than the best of the policies that
take at most theta D_{s,g} steps on average. Costs are planned for with omega added to each, omega = epsilon /
(2 theta D): half of epsilon pays for that, half for what is not known.

Two rules for how many samples that takes:

    certified  ours: until the sets themselves prove epsilon.
    paper      phi(D, omega) of every pair, with the paper's constant alpha, which it leaves open: nothing is promised
               by it but what the certificate `proved` says. D is given, or estimated first, as in
               `gosprl.applications.diameter`.

The certificate. Let costs be in [omega, C] and V the least cost of going to g, in the frequencies seen or in truth. A
way from i by j to g costs at most C times the steps from i to j more than V(j), so V(i) - V(j) <= C D(i, j): a row's
average of V is off by at most C e, where e is what moving the row's plausible mass over the distances D weighs
(`gosprl.sets.certificates.lipschitz_errors`). With D_hat the distances of the frequencies seen, the true ones are at
most D_hat / (1 - e). Each step costs omega at least, so with x = C e / omega < 1

    the policy costs at most V_hat / (1 - x) in truth, and the best at least V_hat (1 - x / (1 - e)):
    it is off by at most C |D_hat| (x / (1 - x) + x / (1 - e)).

That is for all costs and goals at once, and V_hat is as close to what the policy costs in truth. It is not tight:
distances and row errors are at their worst together.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, whole
from gosprl.applications.diameter import Certified as CertifiedDiameter
from gosprl.applications.diameter import Proved, Proving, among, grow, prove
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.exact import first_least, policy_iteration, policy_value
from gosprl.planning.ssp import costs_by_row
from gosprl.planning.workspace import as_sets
from gosprl.sets.intervals import Confidence
from gosprl.sets.known import Known

ESTIMATED = 1.25  # times the diameter at most, where the paper's rule has to estimate it first
SPARE = 1e-3  # the part of epsilon that is kept for rounding, and for the precision of the times between states


@dataclass(frozen=True)
class Task:
    """What is asked for."""

    epsilon: float
    c_min: float
    theta: float
    diameter: float | None  # if it is known

    def perturbation(self, D: float) -> float:
        """What is added to all costs, with D an upper bound on the diameter; 0 if c_min is enough."""
        omega = self.epsilon / (2 * self.theta * max(1.0, D))  # D is 0 if there is only one state
        return omega if omega > self.c_min else 0.0

    def omega(self, D: float) -> float:
        """The least cost that is planned with."""
        return max(self.c_min, self.perturbation(D))

    def proves(self, proved: Proved) -> float:
        """The epsilon that is proved; inf if nothing is."""
        D = proved.upper if self.diameter is None else self.diameter
        if not math.isfinite(D):
            return math.inf
        added, omega = self.perturbation(D), self.omega(D)
        C, e = 1 + added, proved.x
        x = C * e / omega
        if x >= 1 or e >= 1:
            return math.inf
        return C * proved.longest * (x / (1 - x) + x / (1 - e)) + (added * self.theta * D if added else 0.0)

    def row_error(self, proved: Proved) -> float:
        """The e of every row that would do."""
        D = self.diameter or min(proved.upper, 2 * proved.longest)
        added, omega = self.perturbation(D), self.omega(D)
        room = (1 - SPARE) * self.epsilon - (added * self.theta * D if added else 0.0)
        B = room / ((1 + added) * proved.longest)
        return B / (2 + B) * omega / (1 + added)


class Certified(Proving):
    """Until the sets prove epsilon."""

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence, task: Task) -> None:
        super().__init__(model, all_states, family)
        self.task = task

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        proved = prove(model, self.family, np.flatnonzero(self.counting))
        if self.task.proves(proved) <= (1 - SPARE) * self.task.epsilon:
            return None
        if not math.isfinite(proved.longest):
            return 2 * np.maximum(model.visits, self.first)
        need = grow(model.visits, proved.off / self.task.row_error(proved), self.first)
        return need if np.any(need > model.visits) else model.visits + 1


def phi(X: float, y: float, epsilon: float, delta: float, support: int, states: int, actions: int) -> float:
    """The paper's allocation, without its constant: samples of every pair for diameter X and least cost y."""
    log_eps, log = math.log(X * states * actions / (y * epsilon * delta)), math.log(X * states * actions / (y * delta))
    return (
        X**3 * support / (y * epsilon**2) * log_eps
        + X**2 * states / (y * epsilon) * log_eps
        + X**2 * support / y**2 * log**2
    )


class Printed(CertifiedDiameter):
    """alpha phi(D, omega) of every pair; D estimated first, unless it is given."""

    def __init__(
        self, model: EmpiricalModel, all_states: bool, family: Confidence, task: Task, delta: float, alpha: float
    ) -> None:
        super().__init__(model, all_states, family, ESTIMATED)
        self.task, self.delta, self.alpha = task, delta, alpha
        self.diameter = task.diameter

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        if self.diameter is None:
            need = super().proceed(model)
            if need is not None:
                return need
            assert self.proved is not None
            self.diameter = self.proved.upper
        ptr, _, count, _ = model.stored()
        row = np.repeat(np.arange(len(model.rows)), np.diff(ptr))
        support = int(np.bincount(row[count > 0]).max())
        task, D = self.task, max(1.0, self.diameter)
        sizes = (support, model.num_states, model.num_actions)
        asked = self.alpha * phi(D, task.omega(D), task.epsilon, self.delta, *sizes)
        need = whole(np.full(len(model.rows), asked))
        return None if np.all(model.visits[self.counting] >= need[self.counting]) else need


def row_costs(costs: ArrayLike | None, rows: Rows, c_min: float) -> Floats:
    """[R] the cost of each row, from costs [S] or [S, A], which are checked; by default 1."""
    if costs is None:
        return np.ones(len(rows))
    cost = costs_by_row(costs, rows)
    bad = np.flatnonzero(~((cost >= c_min) & (cost <= 1)))
    if bad.size:
        raise InputError(
            f"costs: expected costs in [c_min, 1] = [{c_min:g}, 1], got {cost[bad[0]]:g} at (s, a) = "
            f"{rows.pair(int(bad[0]))}; divide larger ones by their maximum, explore with a smaller c_min for "
            "smaller ones"
        )
    return np.ascontiguousarray(cost)


@dataclass(frozen=True, eq=False, repr=False)
class Explored(Answer):
    """Plans for any goal and costs, without another step."""

    model: EmpiricalModel
    epsilon: float  # asked for
    proved: float  # by how much policies may be worse than promised at most; inf if nothing is proved
    diameter: float  # D is at most this
    c_min: float
    theta: float
    _known: TabularMDP  # the frequencies seen
    _added: float  # to all costs

    def policy(self, goal: int, costs: ArrayLike | None = None) -> Ints:
        """[S] the action to take in each state to go to `goal`; -1 where no way there was seen.

        costs
            Of each step, [S] or [S, A], in [c_min, 1]; by default 1.
        """
        rows = self._plan(goal, costs)
        return np.where(rows < 0, -1, self._known.rows.action[rows])

    def values(self, goal: int, costs: ArrayLike | None = None) -> Floats:
        """[S] what `policy(goal, costs)` costs from each state on average, by the frequencies seen.

        With c_min, within `proved` of what it costs in truth.
        """
        rows = self._plan(goal, costs)
        values = np.where(rows < 0, np.inf, 0.0)
        inner = np.flatnonzero((rows >= 0) & (np.arange(len(rows)) != goal))
        cost = self._costs(costs)
        if inner.size:
            values[inner] = policy_value(self._sets, cost, inner, rows[inner], np.zeros(len(rows)))
        values[goal] = 0.0
        return values

    def lines(self) -> list[tuple[str, str]]:
        among = f" of those that take at most {self.theta:g} times as long as they must" if self._added else ""
        optimal = f"within {self.proved:.4g} of the best{among}" if math.isfinite(self.proved) else "nothing is proved"
        return [
            ("policies", f"{optimal}; {self.epsilon:g} was asked for"),
            ("goals, costs", f"any of {self.model.num_states} states, in [{self.c_min:g}, 1]"),
            ("diameter", f"at most {self.diameter:.4g}"),
        ]

    @cached_property
    def _sets(self) -> Any:
        return as_sets(self._known.rows, Known(self._known).intervals())

    def _costs(self, costs: ArrayLike | None) -> Floats:
        return row_costs(costs, self._known.rows, self.c_min)

    def _plan(self, goal: int, costs: ArrayLike | None) -> Ints:
        """[S] the rows to take, by linear solves: what `gosprl.plan` counts as equally good adds up on long ways."""
        from gosprl import _kernels

        S, sets = self._known.num_states, self._sets
        goal = _checks.index("goal", goal, S, "a state")
        cost = self._costs(costs) + self._added
        goals, alive, usable = np.arange(S) == goal, np.empty(S, dtype=bool), np.ones(len(cost), dtype=bool)
        _kernels.reach(sets, goals, alive, usable)
        v = np.zeros(S)
        rows = policy_iteration(sets, cost, goals, alive, usable, v).rows
        q = np.where(usable, cost + np.add.reduceat(sets.lower * v[sets.succ], sets.begin), np.inf)
        best = first_least(q, sets.row_ptr)
        rows[goal] = best[goal]
        return np.where(np.isfinite(q[best]), rows, -1)


def explore_all_goals(
    system: Any,
    epsilon: float,
    *,
    c_min: float = 0.0,
    theta: float = math.inf,
    rule: str = "certified",
    diameter: float | None = None,
    alpha: float | None = None,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: Any = None,
    **options: Any,
) -> Explored:
    """Explore until near-optimal policies for any goal and any costs can be planned without another step.

    Parameters
    ----------
    epsilon
        How much more than the best a policy may cost, from any state.
    c_min, theta
        The least cost that will be asked for, in (0, 1]; or, for costs that may be 0, theta >= 1: policies are compared
        with those that take at most theta times the fewest steps on average. One of the two must be given.
    rule
        `"certified"` (until the sets prove epsilon) or `"paper"` (alpha phi(D, omega) samples of every pair).
    diameter
        The diameter or an upper bound on it, if it is known. Without, it is bounded by what was collected.
    alpha
        The constant of the paper's allocation, by default 1; the paper does not say which is enough. What is needed
        grows in proportion: phi itself is of the order of D^3 / (omega epsilon^2) samples of every pair.
    delta, confidence, options
        Level and family of the confidence sets, which collector and certificate share; other options of the collector.

    A system that does not have all its states in advance (a Gymnasium environment) is taken to have those found. The
    reset from a terminal state counts as a step.
    """
    task = _task(epsilon, c_min, theta, diameter)
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    family = walk.family()
    if alpha is not None and rule == "certified":
        raise InputError("alpha: the constant of the paper's allocation; with rule='certified' there is none")
    constant = 1.0 if alpha is None else _checks.positive("alpha", alpha)
    rules: dict[str, Callable[[EmpiricalModel, bool], Rule]] = {
        "certified": lambda model, all_states: Certified(model, all_states, family, task),
        "paper": lambda model, all_states: Printed(model, all_states, family, task, delta, constant),
    }
    made, result = walk.run(system, _checks.choice("rule", rule, rules))
    proved = prove(result.model, family, np.flatnonzero(made.counting))
    D = proved.upper if task.diameter is None else task.diameter
    usable = D if math.isfinite(D) else max(1.0, 2 * proved.longest) if math.isfinite(proved.longest) else 1.0
    return Explored(
        model=result.model,
        epsilon=task.epsilon,
        proved=task.proves(proved) + SPARE * task.epsilon,
        diameter=D,
        c_min=task.c_min,
        theta=task.theta,
        _known=proved.hat,
        _added=task.perturbation(usable),
        collected=result,
        guarantee=walk.level.about(f"every policy is within `proved` of the best{among(made, result.model)}"),
    )


def _task(epsilon: float, c_min: float, theta: float, diameter: float | None) -> Task:
    epsilon = _checks.positive("epsilon", epsilon)
    c_min = _checks.number("c_min", c_min)
    if not 0 <= c_min <= 1:
        raise InputError(f"c_min: expected the least cost, in [0, 1], got {c_min:g}")
    if isinstance(theta, bool) or not isinstance(theta, (int, float, np.integer, np.floating)) or not theta >= 1:
        raise InputError(f"theta: expected a number >= 1, or inf, got {theta!r}")
    if c_min == 0 and math.isinf(theta):
        raise InputError(
            "c_min, theta: with c_min = 0 and theta = inf, the best policy may be one that waits for ever where that "
            "is free and never arrives, which no number of samples leads to; give c_min > 0, or a finite theta >= 1"
        )
    if diameter is not None and _checks.positive("diameter", diameter) < 1:
        raise InputError(f"diameter: expected at least 1 step, got {diameter:g}")
    return Task(epsilon, c_min, float(theta), diameter)
