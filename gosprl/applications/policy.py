"""PAC policy learning (appendix "PAC-Policy Learning"): an epsilon-optimal policy for discounted rewards.

The method has phases, as BESPOKE (Zanette, Kochenderfer and Brunskill, 2019); the collector takes the samples that a
phase needs. The constants of BESPOKE were not available, and its guarantee is not used here. A phase:

1. Bounds. `policy` is optimal for the frequencies and the mean rewards. `upper` is the optimal value under the best
   dynamics and rewards in their sets, `lower` the policy's value under the worst. Stop if upper - lower <= epsilon in
   all states: with probability 1 - delta, lower <= V^policy <= V* <= upper.
2. Allocation. The next gap to aim at is half of the current one, or epsilon if that is larger. For a policy with
   discounted visits w, let CI be the largest error of a row's reward and expected value, which falls as
   A(s, a) / sqrt(n(s, a)), and loss the loss of value when a row is taken, for the frequencies. The policy's value has
   an error of at most sum w CI, and its estimate is sum w loss below the optimum. So: minimise the sum of n such that
   sum w (CI - loss), for all w and from every state, falls by the factor by which the gap should. That is BESPOKE's
   requirement on near-optimal policies, with each policy's distance from the optimum instead of one threshold. It is a
   convex program in 1 / sqrt(n) with one constraint for each w. Only constraints that may be violated are generated,
   by policy iteration for the rewards CI - loss.
3. Collect these samples, and start the next phase.

A pair that only bad policies visit gets no more samples: this is the saving over uniform sampling.

Discounting as a stochastic shortest path: every step ends in an extra goal with probability 1 - gamma. Costs are then
2 - r for the best case and 1 + r for the worst, both minimised by nature, so the planner's certificate bounds both.
Final states have value 0: plans do not continue after a reset, and choose none.

States not discovered have a value between 0 and 1 / (1 - gamma), since rewards are in [0, 1]: unseen mass may go to one
whose value is the largest for `upper`, and 0 for `lower`. So both bounds hold whatever was not discovered.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, dense, kept_on_disk, num_outcomes, streams_of
from gosprl.collecting.requirements import scattered
from gosprl.mdp.rows import Rows
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.exact import first_least
from gosprl.planning.solution import METHODS, solve
from gosprl.planning.workspace import as_sets
from gosprl.sets.certificates import average_errors, mean_intervals, slack
from gosprl.sets.intervals import Confidence, Intervals
from gosprl.sets.unknown import unknown_of

ALLOCATIONS = ("bespoke", "uniform")
CUTS = 30  # the largest number of rounds of generating constraints
STARTS = 5  # constraints generated in a round, one for each of the worst starting states
POLICIES = 100  # the largest number of iterations of policy iteration
ROUNDS, CLOSE = 2000, 1e-4  # of the convex program: the largest number of dual steps, and its relative precision
PLAY = 1.005  # the factor by which constraints not yet generated may be violated
GROWTH = 4.0  # the largest factor by which the need of a pair grows in a phase
ROUNDING = 1e-13  # residuals, relative to the largest value, that plans can reach
FIRST = 2.0  # samples of every pair in the first phase, as a multiple of log(S P / delta)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on values for the current counts."""

    rows: Ints  # [S] the policy
    value: Floats  # [S] its value for the frequencies
    lower: Floats  # [S] lower bound on its value
    upper: Floats  # [S] upper bound on the optimal value
    width: Floats  # [R] the largest error of a row's reward and expected value
    loss: Floats  # [R] loss of value if a row is taken instead of the policy's, for the frequencies


class Discounted:
    """The discounted problem for the counts of a model; room not in use stands for states that are not discovered."""

    def __init__(self, model: EmpiricalModel, family: Confidence, gamma: float, delta: float, scale: float) -> None:
        self.model, self.family, self.gamma, self.delta, self.scale = model, family, gamma, delta, scale

    def of(self, model: EmpiricalModel) -> "Discounted":
        """Return the same problem for the counts of another model."""
        return Discounted(model, self.family, self.gamma, self.delta, self.scale)

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """[R] the rows that a policy may take: no resets, except those that final states lead to."""
        model = self.model
        return model.enabled & (~model.certain | model.terminal[model.rows.state])

    def bounds(self, precision: float) -> Bounds:
        """Return the policy and the bounds for the current counts; plans have the given relative precision."""
        model, gamma = self.model, self.gamma
        lower_r, mean, upper_r = self.rewards()
        sets = self._sets(self.family.intervals(model))
        seen = self._sets(self._frequencies())
        allowed = self.allowed
        every = np.append(allowed, True)
        # costs are in [1, 3], so values are at most 3 / (1 - gamma): all states are near the goal
        v, q = self._least(seen, 2 - mean, every, precision)
        policy = first_least(np.where(allowed, q, np.inf), model.rows.ptr)
        value = 2 / (1 - gamma) - v
        upper = 2 / (1 - gamma) - self._least(sets, 2 - upper_r, every, precision)[0]
        chosen = np.zeros(len(every), dtype=bool)
        chosen[policy] = chosen[-1] = True
        lower = self._least(sets, 1 + lower_r, chosen, precision)[0] - 1 / (1 - gamma)
        moves = slack(model, self.family, np.arange(len(model.rows)))
        # unseen mass may go to states never visited, for which `value` is meaningless: use the largest, or 0
        never = ~model.terminal & ~np.isin(np.arange(model.rows.num_states), model.rows.state[model.visits > 0])
        above, _ = average_errors(moves, np.where(never, 1 / (1 - gamma), value))
        _, below = average_errors(moves, np.where(never, 0.0, value))
        width = gamma * np.maximum(above, below) + np.maximum(upper_r - mean, mean - lower_r)
        width[model.terminal[model.rows.state]] = 0.0
        loss = np.where(allowed, np.maximum(q - v[model.rows.state], 0.0), 0.0)
        return Bounds(policy, value, np.maximum(lower, 0.0), np.minimum(upper, 1 / (1 - gamma)), width, loss)

    def rewards(self) -> tuple[Floats, Floats, Floats]:
        """Return lower end, estimate and upper end of each row's mean reward, [R] each.

        The estimate is 1/2 for a row never visited; all three are 0 in terminal states.
        """
        model = self.model
        visits, unknown = model.visits, unknown_of(model, None)
        levels = self.delta, self.scale, streams_of(model, np.arange(len(model.rows)))
        lower, upper = mean_intervals(visits, model.reward_sum, model.reward_sq, *levels, unknown)
        mean = np.where(visits > 0, model.reward_sum / np.maximum(visits, 1), 0.5)
        ended = model.terminal[model.rows.state]
        return np.where(ended, 0.0, lower), np.where(ended, 0.0, mean), np.where(ended, 0.0, upper)

    def transitions(self) -> Any:
        """Return the frequencies as a sparse matrix [R, S]."""
        from scipy.sparse import csr_array

        sets = self._frequencies()
        return csr_array((sets.lower, sets.succ, sets.ptr), shape=(len(sets.each), self.model.rows.num_states))

    def _frequencies(self) -> Intervals:
        """Return the frequencies as sets of one point; rows never visited and terminal states have self-loops."""
        model, R = self.model, len(self.model.rows)
        ptr, succ, count, _ = model.stored()
        row = np.repeat(np.arange(R), np.diff(ptr))
        stay = (model.visits == 0) | model.terminal[model.rows.state]
        keep = (count > 0) & ~stay[row]
        row = np.append(row[keep], np.flatnonzero(stay))
        succ = np.append(succ[keep], model.rows.state[stay]).astype(np.int32)
        p = np.append(count[keep] / model.visits[row[: keep.sum()]], np.ones(stay.sum()))
        order = np.argsort(row, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=R))])
        zeros = np.zeros(R)
        return Intervals(ptr, succ[order], p[order], p[order], zeros, zeros)

    def _sets(self, given: Intervals) -> Any:
        """Return the sets with the extra goal, state S, as a successor of each row; terminal states have self-loops."""
        gamma, model = self.gamma, self.model
        S, R = model.rows.num_states, len(model.rows)
        ended = np.flatnonzero(model.terminal[model.rows.state])
        length = np.diff(given.ptr)
        keep = ~np.isin(np.repeat(np.arange(R), length), ended)
        length[ended] = 0
        row = np.repeat(np.arange(R), length)
        rows = np.concatenate([row, ended, np.arange(R + 1)])
        succ = np.concatenate([given.succ[keep], model.rows.state[ended], np.full(R + 1, S)]).astype(np.int32)
        stop, stay = np.full(R + 1, 1 - gamma), np.full(len(ended), gamma)
        stop[R] = 1.0
        lower = np.concatenate([gamma * given.lower[keep], stay, stop])
        upper = np.concatenate([gamma * given.upper[keep], stay, stop])
        each, total = np.append(gamma * given.each, 0.0), np.append(gamma * given.total, 0.0)
        each[ended] = total[ended] = 0.0
        order = np.argsort(rows, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=R + 1))])
        with_goal = Rows(np.append(model.rows.ptr, R + 1), np.append(model.rows.action, 0), model.num_actions)
        return as_sets(with_goal, Intervals(ptr, succ[order], lower[order], upper[order], each, total))

    def _least(self, sets: Any, cost: Floats, enabled: NDArray[np.bool_], precision: float) -> tuple[Floats, Floats]:
        """Return lower bounds on the least cost to the goal, of states [S] and of rows [R]."""
        S = self.model.rows.num_states
        goal = np.arange(S + 1) == S
        costs = np.append(cost, 1.0)
        solution = solve(
            *(sets, costs, goal, None, METHODS["modified-policy-iteration"]), precision=precision, enabled=enabled
        )
        return solution.v[:S] / (1 + solution.fall_ratio), solution.q[:-1]


def allocate(problem: Discounted, bounds: Bounds, ratio: float) -> Floats:
    """Return samples of each row [R] with the smallest sum such that the errors of all policies fall by `ratio`."""
    visits = np.maximum(problem.model.visits, 1).astype(float)
    A = bounds.width * np.sqrt(visits)
    cuts: list[tuple[Floats, float]] = []
    n, target, P = visits, 0.0, problem.transitions()
    for _ in range(CUTS):
        reward = np.where(problem.allowed, A / np.sqrt(n) - bounds.loss, -np.inf)
        worst, new = _worst_visits(P, problem.gamma, reward, bounds.rows, problem.model.rows.ptr)
        target = target or ratio * worst
        if worst <= PLAY * target:
            break
        cuts += [(w * A, target + float(w @ bounds.loss)) for w in new]
        n = _fewest(np.array([a for a, _ in cuts]), np.array([most for _, most in cuts]), visits)
    return n


def _worst_visits(P: Any, gamma: float, reward: Floats, policy: Ints, row_ptr: Ints) -> tuple[float, list[Floats]]:
    """Return the largest w @ reward over discounted visits w [R], and the w of the STARTS worst starting states.

    They are the visits of one policy, computed by policy iteration that starts from `policy` [S]; P [R, S], reward [R].
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    R, S = P.shape
    for _ in range(POLICIES):
        factors = splu((eye_array(S) - gamma * P[policy]).tocsc())
        v = factors.solve(reward[policy])
        q = reward + gamma * (P @ v)
        best = first_least(-q, row_ptr)
        better = q[best] > v + 1e-9 * np.abs(v)
        if not better.any():
            break
        policy = np.where(better, best, policy)
    worst = []
    for s in np.argsort(-v)[:STARTS]:
        w = np.zeros(R)
        w[policy] = factors.solve((np.arange(S) == s).astype(float), trans="T")
        worst.append(w)
    return float(v.max()), worst


def _fewest(a: Floats, most: Floats, least: Floats) -> Floats:
    """Return the n >= `least` [R] with the smallest sum such that a @ (1 / sqrt(n)) <= `most`.

    In x = 1 / sqrt(n) the program is convex. Its dual has one variable for each cut, and x for given duals has a closed
    form. A dual increases while its cut is violated and decreases while it is slack: with one cut, x falls as
    dual^(-1/3), so an exponent of 3 would be exact. At the end, all n are multiplied by one factor so that every cut
    holds.

    Parameters
    ----------
    a
        [cuts, R]
    most
        [cuts]
    least
        [R]
    """
    largest = 1 / np.sqrt(least)
    duals = 2 * least.sum() / most / len(a)
    for _ in range(ROUNDS):
        x = np.minimum(np.cbrt(2 / np.maximum(duals @ a, 1e-300)), largest)
        used = a @ x / most
        room = float(duals @ (most * np.abs(1 - used)))
        if used.max() < 1 + CLOSE and room < CLOSE * float(np.sum(x**-2.0)):
            break
        duals *= used**2.5
    return np.asarray(np.maximum(x**-2.0 * max(1.0, float(used.max())) ** 2, least))


class Phases(Rule):
    """Samples until upper - lower <= epsilon in all states that count."""

    def __init__(
        self,
        model: EmpiricalModel,
        all_states: bool,
        problem: Discounted,
        epsilon: float,
        allocation: str,
    ) -> None:
        super().__init__(model, all_states)
        self.problem, self.epsilon, self.allocation = problem, epsilon, allocation
        self.first = 1
        self.samples: list[Ints] = []  # [R] visits at the end of each phase

    def resize(self, model: EmpiricalModel, rows: Ints) -> None:
        """Take over the model's number of states and rows."""
        super().resize(model, rows)
        self.samples = [scattered(visits, rows, len(model.rows)) for visits in self.samples]

    def remember(self) -> dict[str, Any]:
        """Return the need, and the samples at the end of each phase."""
        return {**super().remember(), "samples": [visits.tolist() for visits in self.samples]}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Ask for the same as the rule that remembered this."""
        super().recall(memory)
        self.samples = [np.array(visits, dtype=np.int64) for visits in memory["samples"]]

    def newly_counting(self, model: EmpiricalModel) -> Ints:
        """Add the rows of the states discovered since the last call; the more there are, the more samples of each."""
        rows = super().newly_counting(model)
        pairs = max(1, int(self.counting.sum()))
        self.first = max(1, math.ceil(FIRST * math.log(num_outcomes(model) * pairs / self.problem.delta)))
        return rows

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Return the samples needed in total of each of `rows`: at least those of the first phase."""
        return np.maximum(self.pair[rows], self.first)

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Return the need of the next phase; None if epsilon is proved."""
        problem = self.problem.of(model)  # of a fleet, what is committed: the rule was made for all that returned
        bounds = problem.bounds(self.precision)
        states = np.unique(model.rows.state[self.counting])
        gap = float((bounds.upper - bounds.lower)[states].max())
        self.samples.append(model.visits.copy())
        if gap <= self.epsilon:
            return None
        visits = np.maximum(model.visits, self.first)
        if self.allocation == "uniform":
            fewest = int(visits[self.counting].min())
            return np.full(len(visits), math.ceil(fewest * min(GROWTH, max(1.05, (gap / self.epsilon) ** 2))))
        bounds.width[~self.counting] = 0.0  # rows of states not discovered cannot be sampled
        n = allocate(problem, bounds, max(0.99 * self.epsilon, gap / 2) / gap)
        need = np.ceil(np.minimum(n, GROWTH * visits)).astype(np.int64)
        if not np.any(need[self.counting] > model.visits[self.counting]):  # the bounds did not shrink as predicted
            wide = self.counting & (bounds.width > 0)
            need[wide] = np.ceil(1.02 * visits[wide]).astype(np.int64)
        return need

    @property
    def precision(self) -> float:
        """The relative precision of plans: a thousandth of epsilon, limited to what doubles can resolve."""
        highest = 1 / (1 - self.problem.gamma)
        return max(1e-3 * min(self.epsilon, highest) / highest, ROUNDING * highest)


@dataclass(frozen=True, eq=False, repr=False)
class LearntPolicy(Answer):
    """A policy, with bounds on its value and on the optimal value.

    Attributes
    ----------
    policy
        [S] int64, the action of each live state; -1 in states that were not discovered.
    lower
        [S] lower bounds on the policy's value.
    upper
        [S] upper bounds on the optimal value.
    value
        [S] the policy's value for the frequencies and mean rewards; nan in states that were not discovered.
    gap
        The largest upper - lower: the policy is optimal to within this.
    epsilon, gamma
        As given.
    phases
        A list of [S, A] int64, the samples at the end of each phase.
    requested
        [S, A] int64, the need of the last phase; the walk collects further samples on its way.
    """

    policy: Ints
    lower: Floats
    upper: Floats
    value: Floats
    gap: float
    epsilon: float
    gamma: float
    phases: list[NDArray[np.int64]]
    requested: NDArray[np.int64]

    def lines(self) -> list[tuple[str, str]]:
        """Return the gap, the values and the phases, as (name, value)."""
        known = self.policy >= 0
        best = f"{self.value[known].min():.4g} to {self.value[known].max():.4g}" if known.any() else "unknown"
        asked = self.requested[self.requested > 0]
        spread = f"{asked.min():,} to {asked.max():,} samples a pair asked for" if asked.size else "nothing asked for"
        return [
            ("policy", f"within {self.gap:.4g} of the best; {self.epsilon:g} was asked for"),
            ("value", best),
            ("phases", f"{len(self.phases)}, in the last {spread}"),
        ]


@kept_on_disk
def learn_policy(
    system: Any,
    gamma: float,
    epsilon: float,
    *,
    allocation: str = "bespoke",
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> LearntPolicy:
    """Learn a policy whose discounted value is within `epsilon` of the best, with probability 1 - delta.

    Parameters
    ----------
    system
        A communicating `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`.
        Rewards must be in [0, 1], so values are at most 1 / (1 - gamma).
    gamma
        Discount factor, in (0, 1).
    epsilon
        The largest loss of value allowed against the optimal policy, from any state.
    allocation
        `"bespoke"`: samples where near-optimal policies need them; `"uniform"`: the same number of every pair, for
        comparison.
    delta, confidence
        Level and family (`"kl"`, `"bernstein"` or a `Confidence`) of the confidence sets. Half of delta is for the
        dynamics, half for the rewards; a `Confidence` has its own level for the dynamics. The strategy plans with sets
        of the same family.
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
    A `LearntPolicy`. Its guarantee: at level delta, lower <= V^policy <= V* <= upper. If states are discovered on the
    way, this is about the states discovered, whatever the policy does in others.

    Raises
    ------
    InputError
        An argument is wrong; no step was made.
    CollectionError
        The system or the strategy failed, or a reward was not in [0, 1]; `error.result` has everything collected.

    Examples
    --------
    >>> import gosprl
    >>> learnt = gosprl.applications.learn_policy(gosprl.envs.make("riverswim6"), gamma=0.5, epsilon=0.5, seed=0)
    >>> bool(learnt.gap <= 0.5), learnt.policy.tolist()
    (True, [0, 1, 1, 1, 1, 1])
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    gamma, epsilon = _checks.open_unit("gamma", gamma), _checks.positive("epsilon", epsilon)
    if allocation not in ALLOCATIONS:
        raise _checks.unknown("allocation", allocation, ALLOCATIONS)

    def rule_of(model: EmpiricalModel, all_states: bool) -> Phases:
        problem = Discounted(model, walk.family(0.5), gamma, delta / 2, walk.scale)
        return Phases(model, all_states, problem, epsilon, allocation)

    run = walk.run(system, rule_of, rewards=True)
    rule, model = run.rule, run.model
    bounds = rule.problem.of(model).bounds(rule.precision)
    states, lives = np.unique(model.rows.state[rule.counting]), model.states.lives
    of_sets = rule.problem.family.delta
    level = None if of_sets is None else delta / 2 + of_sets
    action = np.where(np.isin(np.arange(model.rows.num_states), states), model.rows.action[bounds.rows], -1)
    return LearntPolicy(
        policy=action[lives],
        lower=bounds.lower[lives],
        upper=bounds.upper[lives],
        value=np.where(action < 0, np.nan, bounds.value)[lives],
        gap=float((bounds.upper - bounds.lower)[states].max()) if states.size else 1 / (1 - gamma),
        epsilon=epsilon,
        gamma=gamma,
        phases=[dense(model, visits, 0) for visits in rule.samples],
        requested=dense(model, rule.pair, 0),
        collected=run.result,
        guarantee=run.qualified(walk.at(level, dynamics=True).about("lower <= V^policy <= V* <= upper")),
    )
