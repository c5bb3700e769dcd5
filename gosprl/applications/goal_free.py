"""Goal-free cost-free exploration (section and appendix of that name): explore once, then plan for any goal and costs.

After the walk, `policy(goal, costs)` is optimal for the frequencies, and its true cost is within epsilon of the
optimum, for every goal and all costs in [c_min, 1]. With c_min = 0, a policy that uses free steps forever and never
reaches the goal may be optimal. Then theta >= 1 must be given, and policies are compared with the best of those that
take at most theta D_{s,g} steps on average. Plans add omega = epsilon / (2 theta D) to each cost: half of epsilon is
for this, half for the errors of the model.

Two rules for how many samples are needed:

    certified  ours: until the sets prove epsilon.
    paper      alpha phi(D, omega) of every pair. The paper does not give the constant alpha, so only the certificate
               `proved` is guaranteed. D is given, or estimated first, as in `gosprl.applications.diameter`.

The certificate. Let costs be in [omega, C], and V the least cost of reaching g, for the frequencies or the true
dynamics. Going from i to j first costs at most C times the steps from i to j, so V(i) - V(j) <= C D(i, j). Hence the
error of a row's expectation of V is at most C e, where e is the cost of moving the row's plausible mass over the
distances D (`gosprl.sets.certificates.lipschitz_errors`). If D_hat are the distances of the frequencies, the true
distances are at most D_hat / (1 - e). Each step costs at least omega, so with x = C e / omega < 1

    the policy's true cost is at most V_hat / (1 - x), and the optimum is at least V_hat (1 - x / (1 - e)):
    their difference is at most C |D_hat| (x / (1 - x) + x / (1 - e)).

This holds for all costs and goals at once, and V_hat differs from the policy's true cost by no more. The bound is not
tight: it combines the largest distance with the largest row error.

Where episodes end, steps and distances are those of a loop (`gosprl.model.loop`): a reset after an ending is a step of
cost 1, a reset by choice one of cost `reset_cost`. D is measured in these, and costs are in [omega, C] times them. A
goal is an observation: it is reached alive, or as the end of an episode. The certificate holds for sets of goals as for
single ones, since V(i) - V(j) <= C D(i, j) does. It assumes that successors never seen are states discovered.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, kept_on_disk, num_outcomes, rounded_up
from gosprl.applications.diameter import CertifiedDiameter, ProofRule, Proved, grow, prove, without_others
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.exact import first_least, policy_iteration, policy_value
from gosprl.planning.workspace import as_sets
from gosprl.sets.intervals import Confidence
from gosprl.sets.known import Known

ESTIMATED = 1.25  # the largest ratio of the bounds on the diameter, if the paper's rule has to estimate it first
SPARE = 1e-3  # the part of epsilon reserved for rounding and for the precision of the hitting times


@dataclass(frozen=True)
class Task:
    """The arguments of `explore_all_goals` that define the objective; `diameter` is None if it is not known."""

    epsilon: float
    c_min: float
    theta: float
    diameter: float | None

    def perturbation(self, D: float) -> float:
        """Return the number that plans add to all costs, for an upper bound D on the diameter; 0 if c_min suffices."""
        omega = self.epsilon / (2 * self.theta * max(1.0, D))  # D is 0 if there is only one state
        return omega if omega > self.c_min else 0.0

    def omega(self, D: float) -> float:
        """Return the least cost that plans use, for an upper bound D on the diameter."""
        return max(self.c_min, self.perturbation(D))

    def proves(self, proved: Proved) -> float:
        """Return the epsilon that is proved; inf if there is none."""
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
        """Return the error e that would be small enough if every row had it."""
        D = self.diameter or min(proved.upper, 2 * proved.longest)
        added, omega = self.perturbation(D), self.omega(D)
        room = (1 - SPARE) * self.epsilon - (added * self.theta * D if added else 0.0)
        B = room / ((1 + added) * proved.longest)
        return B / (2 + B) * omega / (1 + added)


class CertifiedPolicies(ProofRule):
    """Samples until the sets prove epsilon."""

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence, task: Task) -> None:
        super().__init__(model, all_states, family)
        self.task = task

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Return more samples of the rows with large errors; None if epsilon is proved."""
        proved = prove(model, self.family, np.flatnonzero(self.counting))
        if self.task.proves(proved) <= (1 - SPARE) * self.task.epsilon:
            return None
        if not math.isfinite(proved.longest):
            return 2 * np.maximum(model.visits, self.first)
        need = grow(model.visits, proved.off / self.task.row_error(proved), self.first)
        return need if np.any(need > model.visits) else model.visits + 1


def phi(X: float, y: float, epsilon: float, delta: float, support: int, states: int, actions: int) -> float:
    """Return the paper's allocation without its constant: samples of every pair for diameter X and least cost y."""
    log_eps, log = math.log(X * states * actions / (y * epsilon * delta)), math.log(X * states * actions / (y * delta))
    return (
        X**3 * support / (y * epsilon**2) * log_eps
        + X**2 * states / (y * epsilon) * log_eps
        + X**2 * support / y**2 * log**2
    )


class PaperPolicies(CertifiedDiameter):
    """alpha phi(D, omega) samples of every pair; D is estimated first, unless it is given."""

    memory = ("allowed", "diameter")

    def __init__(
        self, model: EmpiricalModel, all_states: bool, family: Confidence, task: Task, delta: float, alpha: float
    ) -> None:
        super().__init__(model, all_states, family, ESTIMATED)
        self.task, self.delta, self.alpha = task, delta, alpha
        self.diameter = task.diameter

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Return the need of the diameter's estimate, then that of the allocation; None if the latter is met."""
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
        sizes = (support, num_outcomes(model), model.num_actions)
        asked = self.alpha * phi(D, task.omega(D), task.epsilon, self.delta, *sizes)
        need = rounded_up(np.full(len(model.rows), asked))
        return None if np.all(model.visits[self.counting] >= need[self.counting]) else need


def row_costs(costs: ArrayLike | None, rows: Rows, c_min: float, base: Floats, shape: tuple[int, int]) -> Floats:
    """Return the cost of each row [R] from costs [S] or [S, A], after checking them.

    Parameters
    ----------
    costs
        Costs of steps in live states; None: those of `base`.
    rows
        Rows of a loop.
    c_min
        The least cost allowed.
    base
        [R] costs of the rows that `costs` does not speak of: resets.
    shape
        (S, A), the numbers of live states and of actions.
    """
    if costs is None:
        return base.copy()
    given, (S, A) = _checks.floats("costs", costs), shape
    if given.shape not in ((S,), (S, A)):
        raise InputError(f"costs: expected [S] = ({S},) or [S, A] = ({S}, {A}), got shape {given.shape}")
    steps = np.flatnonzero((rows.state < S) & (rows.action < A))
    cost, s = base.copy(), rows.state[steps]
    cost[steps] = given[s] if given.ndim == 1 else given[s, rows.action[steps]]
    bad = steps[~((cost[steps] >= c_min) & (cost[steps] <= 1))]
    if bad.size:
        raise InputError(
            f"costs: expected costs in [c_min, 1] = [{c_min:g}, 1], got {cost[bad[0]]:g} at (s, a) = "
            f"{rows.pair(int(bad[0]))}; divide costs above 1 by their maximum, explore with a smaller c_min for "
            "smaller costs"
        )
    return cost


@dataclass(frozen=True, eq=False, repr=False)
class Explored(Answer):
    """Near-optimal policies for any goal and costs, without another step.

    Attributes
    ----------
    model
        The `EmpiricalModel` of the walk.
    epsilon
        As given.
    proved
        Upper bound on the difference between a policy's true cost and the optimum, for all goals and costs; inf if
        nothing is proved.
    diameter
        An upper bound on D.
    c_min, theta
        As given.
    """

    model: EmpiricalModel
    epsilon: float
    proved: float
    diameter: float
    c_min: float
    theta: float
    _known: TabularMDP  # the frequencies of the loop
    _base: Floats  # [R] costs of its rows: 1, or what a reset by choice costs
    _added: float  # the number that plans add to the cost of a step

    def policy(self, goal: int, costs: ArrayLike | None = None) -> Ints:
        """Return a near-optimal policy for reaching a goal.

        Parameters
        ----------
        goal
            Index of a state in ``model.states``, live or final: the goal is its observation, whether the episode goes
            on from there or ends.
        costs
            Costs of a step, [S] or [S, A], in [c_min, 1]; by default 1.

        Returns
        -------
        [S] int64, the action to take in each live state; -1 where the samples have no path to the goal. With
        ``resets="anytime"``, the number after the last action stands for a reset.
        """
        rows = self._plan(goal, costs)[: self.model.num_states]
        return np.where(rows < 0, -1, self._known.rows.action[rows])

    def values(self, goal: int, costs: ArrayLike | None = None) -> Floats:
        """Return the expected cost of `policy(goal, costs)` from each state, for the frequencies.

        With c_min > 0, the true cost differs by at most `proved`.

        Parameters
        ----------
        goal, costs
            As in `policy`.

        Returns
        -------
        [S] float64, inf where the samples have no path to the goal.
        """
        rows, goals = self._plan(goal, costs), self._goals(goal)
        values = np.where(rows < 0, np.inf, 0.0)
        inner = np.flatnonzero((rows >= 0) & ~goals)
        cost = self._costs(costs)
        if inner.size:
            values[inner] = policy_value(self._sets, cost, inner, rows[inner], np.zeros(len(rows)))
        values[goals] = 0.0
        return values[: self.model.num_states]

    def lines(self) -> list[tuple[str, str]]:
        """Return the bounds on the policies' loss and on the diameter, as (name, value)."""
        among = f" of those that take at most {self.theta:g} times the fewest steps" if self._added else ""
        optimal = f"within {self.proved:.4g} of the best{among}" if math.isfinite(self.proved) else "nothing is proved"
        return [
            ("policies", f"{optimal}; {self.epsilon:g} was asked for"),
            ("goals, costs", f"any of {self._goals_in_words()}, in [{self.c_min:g}, 1]"),
            ("diameter", f"at most {self.diameter:.4g}"),
        ]

    @cached_property
    def _sets(self) -> Any:
        return as_sets(self._known.rows, Known(self._known).intervals())

    def _goals_in_words(self) -> str:
        finals = len(self.model.states.finals)
        return f"{self.model.num_states} states" + (f" and {finals} endings" if finals else "")

    def _costs(self, costs: ArrayLike | None) -> Floats:
        shape = (self.model.num_states, self.model.num_actions - (self.model.resets == "anytime"))
        return row_costs(costs, self._known.rows, self.c_min, self._base, shape)

    def _goals(self, goal: int) -> NDArray[np.bool_]:
        """Return which states of the loop have the observation of a state of the model."""
        states = self.model.states
        goal = _checks.index("goal", goal, self.model.rows.num_states, "a state")
        if goal == states.reset:
            raise InputError(f"goal: expected a live or a final state, got {goal}, which stands for the reset")
        live, final = states.live(states.key(goal)), states.final(states.key(goal))
        goals = np.zeros(self._known.num_states, dtype=bool)
        if live >= 0:
            goals[live] = True
        if final >= 0:
            goals[final - 1] = True  # the reset comes between live and final states
        return goals

    def _plan(self, goal: int, costs: ArrayLike | None) -> Ints:
        """Return the rows to take in each state of the loop; -1 if there is no path.

        Uses exact policy iteration: the tie tolerance of `gosprl.plan` would add up on long paths.
        """
        from gosprl import _kernels

        S, sets = self._known.num_states, self._sets
        goals = self._goals(goal)
        cost = self._costs(costs) + self._added * self._base
        alive, usable = np.empty(S, dtype=bool), np.ones(len(cost), dtype=bool)
        _kernels.reach(sets, goals, alive, usable)
        v = np.zeros(S)
        rows = policy_iteration(sets, cost, goals, alive, usable, v).rows
        q = np.where(usable, cost + np.add.reduceat(sets.lower * v[sets.succ], sets.begin), np.inf)
        best = first_least(q, sets.row_ptr)
        rows[goals] = best[goals]
        return np.where(np.isfinite(q[best]), rows, -1)


@kept_on_disk
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
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> Explored:
    """Explore until near-optimal policies for any goal and any costs can be planned without another step.

    Parameters
    ----------
    system
        A communicating `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`.
        A reset after the end of an episode is a step of cost 1, a reset at any time one of cost `reset_cost`.
    epsilon
        The largest difference allowed between a policy's expected cost and the optimum, from any state.
    c_min, theta
        The least cost of a step that plans may use later, in (0, 1]; or, if costs may be 0, theta >= 1: policies are
        then compared with those that take at most theta times the fewest steps on average. One of the two must be
        given.
    rule
        `"certified"` (until the sets prove epsilon) or `"paper"` (alpha phi(D, omega) samples of every pair).
    diameter
        The diameter or an upper bound on it, if it is known. By default, an upper bound is computed from the samples.
    alpha
        The constant of the paper's allocation, by default 1; the paper does not give it. The need is proportional to
        it: phi itself is of the order of D^3 / (omega epsilon^2) samples of every pair.
    delta, confidence
        Level and family (`"kl"`, `"bernstein"` or a `Confidence`) of the confidence sets, for the strategy and for the
        certificate.
    seed
        Seed of all random numbers.
    max_steps
        Stop after this many steps; the answer says what is proved by then.
    progress
        True for a line on stderr, or a callable that takes a dict, as in `gosprl.collect`.
    **options
        Further arguments of `gosprl.collect`: `strategy` and its options; `key`, `actions`, `resets`, `reset_cost`,
        `horizon`, `max_states`, `unseen` and `out`.

    Returns
    -------
    An `Explored`, with `policy(goal, costs)` and `values(goal, costs)`. Its guarantee: at level delta, every policy is
    within `proved` of the best. If states are discovered on the way, this is about the states discovered, and holds if
    there are no others; the guarantee says so.

    Raises
    ------
    InputError
        An argument is wrong; no step was made.
    CollectionError
        The system or the strategy failed; `error.result` has everything collected.

    Examples
    --------
    >>> import gosprl
    >>> toy = gosprl.envs.make("toy3", nu=0.5)
    >>> explored = gosprl.applications.explore_all_goals(toy, 3.0, c_min=1.0, seed=0)
    >>> bool(explored.proved <= 3), explored.policy(goal=1).tolist()
    (True, [0, 0, 0])
    """
    task = _task(epsilon, c_min, theta, diameter)
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    family = walk.family()
    if alpha is not None and rule == "certified":
        raise InputError("alpha: expected rule='paper', whose allocation it multiplies, got 'certified'")
    constant = 1.0 if alpha is None else _checks.positive("alpha", alpha)
    rules: dict[str, Callable[[EmpiricalModel, bool], Rule]] = {
        "certified": lambda model, all_states: CertifiedPolicies(model, all_states, family, task),
        "paper": lambda model, all_states: PaperPolicies(model, all_states, family, task, delta, constant),
    }
    run = walk.run(system, _checks.choice("rule", rule, rules))
    proved = prove(run.model, family, np.flatnonzero(run.rule.counting))
    D = proved.upper if task.diameter is None else task.diameter
    usable = D if math.isfinite(D) else max(1.0, 2 * proved.longest) if math.isfinite(proved.longest) else 1.0
    return Explored(
        model=run.result.model,
        epsilon=task.epsilon,
        proved=task.proves(proved) + SPARE * task.epsilon,
        diameter=D,
        c_min=task.c_min,
        theta=task.theta,
        _known=proved.hat,
        _base=proved.loop.costs_of(proved.hat.rows),
        _added=task.perturbation(usable),
        collected=run.result,
        guarantee=without_others(run, walk.level.about("every policy is within `proved` of the best")),
    )


def _task(epsilon: float, c_min: float, theta: float, diameter: float | None) -> Task:
    """Return the objective, after checking its arguments."""
    epsilon = _checks.positive("epsilon", epsilon)
    c_min = _checks.number("c_min", c_min)
    if not 0 <= c_min <= 1:
        raise InputError(f"c_min: expected the least cost, in [0, 1], got {c_min:g}")
    if isinstance(theta, bool) or not isinstance(theta, (int, float, np.integer, np.floating)) or not theta >= 1:
        raise InputError(f"theta: expected a number >= 1, or inf, got {theta!r}")
    if c_min == 0 and math.isinf(theta):
        raise InputError(
            "c_min, theta: expected c_min > 0 or a finite theta >= 1; with c_min = 0 and theta = inf, a policy that "
            "uses free steps forever and never reaches the goal may be optimal"
        )
    if diameter is not None and _checks.positive("diameter", diameter) < 1:
        raise InputError(f"diameter: expected at least 1 step, got {diameter:g}")
    return Task(epsilon, c_min, float(theta), diameter)
