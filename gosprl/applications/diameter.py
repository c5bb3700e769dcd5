"""Diameter estimation (appendix "Diameter Estimation"): D_hat with D <= D_hat <= (1 + 2 eps (1 + eps)) (1 + eps) D.

    doubling   the paper's algorithm. For W = 1, 2, 4, ...: estimate the model to eta / 2 in the l1 norm, eta = eps / W,
               and plan optimistically for every goal. Stop when no optimistic time exceeds W. The estimation is
               certified (`gosprl.applications.modest`).
    paper      the same with the printed requirement Phi.
    certified  ours: no W. Stop as soon as the sets prove a lower and an upper bound that are close enough.

The bounds. The hitting times v of the optimistic model are at most the true ones. The true hitting time of the policy
that attains them is at most v / (1 - eta v / 2): its optimistic dynamics are within eta of the true ones, so the
expectation of v after a step has an error of at most eta / 2 times the span of v, and a step costs 1. With |v| the
largest of them, and the plans' own precision far below eps, D_hat = |v| / (1 - eta |v| / 2). This never exceeds the
printed (1 + 2 eta |v|) |v|, whose proof needs the factor 1 + eps twice more.

`certified` needs far fewer samples, because a row's set can move probability mass mostly between nearby states. Let
D_hat be the hitting times of the frequencies. The function h = D_hat(., g) changes by at most D_hat(i, j) from j to i,
so the error of a row's expectation of h is at most the cost of moving its plausible mass over these distances
(`gosprl.sets.certificates.lipschitz_errors`). If that is at most x < 1 for every row, D_{sg} <= D_hat(s, g) / (1 - x).

Episodes that end are a loop (`gosprl.model.loop`): distances lead through resets, and D is the largest distance between
live states and endings seen. Rows of cost c other than 1 may have an error of at most x c.

Undiscovered states. Optimistic times hold without any assumption about them, so `lower` <= D. Upper bounds assume that
the mass of successors never seen goes to states discovered: nothing bounds how long the way back from others is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gosprl import _checks
from gosprl.applications import modest
from gosprl.applications.common import (
    Answer,
    Floats,
    Ints,
    Rule,
    Run,
    Walk,
    dense,
    kept_on_disk,
    num_outcomes,
    rounded_up,
)
from gosprl.errors import PrecisionError
from gosprl.guarantee import Guarantee
from gosprl.mdp.distances import OPTIMISTIC_ERROR, hitting_times, optimistic_times
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.loop import Loop
from gosprl.sets.certificates import lipschitz_errors, model_errors, slack
from gosprl.sets.intervals import Confidence

SPREAD = 1.5  # the need grows as error^1.5: errors fall as visits^(-1/2) for random rows, as 1 / visits for others
GROWTH = 2.0  # the largest factor by which the need of a row grows in one round


@dataclass(frozen=True, eq=False)
class Proved:
    """Bounds on the hitting times between the counting states that follow from the sets.

    Attributes
    ----------
    loop
        The model as a loop, whose n states have the times.
    hat
        Its frequencies, as an MDP.
    times
        [n, n] its hitting times D_hat between counting states, inf if there is no path.
    longest
        The largest of them.
    off
        [R] the largest error of a row's expectation of a function that changes by at most these distances, over the
        cost of the row; inf for a counting row that was never visited.
    """

    loop: Loop
    hat: TabularMDP
    times: Floats
    longest: float
    off: Floats

    @property
    def x(self) -> float:
        """The largest error of a row."""
        return float(self.off.max())

    @property
    def upper(self) -> float:
        """An upper bound on D."""
        return self.longest / (1 - self.x) if self.x < 1 else math.inf


def prove(model: EmpiricalModel, family: Confidence, counting: Ints) -> Proved:
    """Return the bounds that follow from the sets of the rows `counting` [n], for the current counts."""
    loop = Loop(model)
    hat = loop.frequencies()
    cost = loop.costs_of(hat.rows)
    try:
        times = hat.hitting_times() if np.all(cost == 1) else hitting_times(hat, cost=cost)
    except PrecisionError:  # the times are too large for doubles: there is no bound yet, and the run continues
        times = np.full((loop.num_states, loop.num_states), np.inf)
    np.fill_diagonal(times, 0.0)
    states = counted(loop, counting)
    inside = np.full_like(times, np.inf)
    inside[np.ix_(states, states)] = times[np.ix_(states, states)]
    off = np.zeros(len(model.rows))
    longest = float(inside[np.ix_(states, states)].max()) if states.size else math.inf
    off[counting] = math.inf
    if math.isfinite(longest):
        moves = slack(model, family, counting)
        moves = replace(moves, succ=loop.place[moves.succ].astype(np.int32))
        off[counting] = np.maximum(*lipschitz_errors(moves, inside))
        off[counting] /= least_cost(loop)[counting]
        off[counting[model.visits[counting] == 0]] = math.inf
    return Proved(loop, hat, inside, longest, off)


def least_cost(loop: Loop) -> Floats:
    """Return the least cost [R] of the loop's rows with the outcome of each row of the model."""
    cost = np.ones(len(loop.model.rows))
    np.minimum.at(cost, loop.law, loop.cost)
    return cost


def counted(loop: Loop, counting: Ints) -> Ints:
    """Return the states of a loop that distances are between: those of the rows `counting` [n], and endings seen."""
    places = np.unique(loop.place[loop.model.rows.state[counting]])
    return np.append(places[places >= 0], loop.seen())


def grow(visits: Ints, ratio: Floats, first: int) -> Ints:
    """Return the samples needed in total of rows whose errors are `ratio` times the error allowed.

    No more are needed where the ratio is at most 1; at least `first` where a row was never visited.

    Parameters
    ----------
    visits
        [n] int64, samples so far.
    ratio
        [n] error over the error allowed.
    first
        Samples of a row that was never visited.
    """
    with np.errstate(over="ignore"):
        factor = np.minimum(ratio**SPREAD, GROWTH)
    more = np.ceil(np.maximum(visits, first) * factor).astype(np.int64)
    return np.where(ratio <= 1, 0, np.where(visits == 0, first, np.maximum(more, visits + 1)))


class DiameterRule(Rule):
    """A rule that uses the optimistic hitting times between all states."""

    resets = True
    values: Floats | None = None  # [n, n] as last computed

    def remember(self) -> dict[str, Any]:
        """Return what decides how it goes on; the hitting times are computed anew."""
        self.values = None
        return super().remember()


class ProofRule(DiameterRule):
    """A rule that needs a few samples of every pair first, and then samples of the rows whose errors are too large."""

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence) -> None:
        super().__init__(model, all_states)
        self.family = family
        self.first = 2

    def newly_counting(self, model: EmpiricalModel) -> Ints:
        """Add the rows of the states discovered since the last call; the more there are, the more samples of each."""
        rows = super().newly_counting(model)
        self.first = math.ceil(math.log(max(1, self.counting.sum()) * num_outcomes(model))) + 2
        return rows

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Return the samples needed in total of each of `rows`."""
        return np.maximum(self.pair[rows], self.first)


class CertifiedDiameter(ProofRule):
    """Samples until the sets prove upper <= factor * lower."""

    memory: ClassVar[tuple[str, ...]] = ("allowed",)

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence, factor: float) -> None:
        super().__init__(model, all_states, family)
        self.factor = factor
        self.allowed = (1 - 1 / factor) / 2  # the x to aim at; the other half of the error is for the lower bound
        self.proved: Proved | None = None

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Return more samples of the rows with large errors; None if the bounds are close enough."""
        counting = np.flatnonzero(self.counting)
        self.proved = proved = prove(model, self.family, counting)
        if proved.x < 2 * self.allowed:
            self.values = optimistic_times(model, self.family, proved.times)
            if proved.upper <= self.factor * largest(self.values, counted(proved.loop, counting)):
                return None
            if proved.x <= self.allowed:
                self.allowed *= 0.8
        return grow(model.visits, proved.off / self.allowed, self.first)


class DoublingDiameter(DiameterRule):
    """The paper's algorithm: the model to eta / 2 for W = 1, 2, 4, ...

    Parameters
    ----------
    printed
        delta of the printed requirement Phi; None for the certified estimation of the model.
    """

    memory = ("W",)

    def __init__(
        self, model: EmpiricalModel, all_states: bool, family: Confidence, epsilon: float, printed: float | None
    ) -> None:
        super().__init__(model, all_states)
        self.family, self.epsilon, self.printed = family, epsilon, printed
        self.W = 1.0

    @property
    def eta(self) -> float:
        """Twice the error of the model that is allowed for the current W."""
        return self.epsilon / self.W

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Return the samples needed in total of each of `rows`."""
        if self.printed is not None:
            return rounded_up(modest.requirement(model, rows, self.eta / 2, "l1", self.printed))
        errors = model_errors(slack(model, self.family, rows), "l1")
        return modest.more_samples(model.visits[rows], errors / (self.eta / 2))

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Return the need for the next W; None if no optimistic time exceeds the current one."""
        self.values = optimistic_times(model, self.family, self.values)
        if largest(self.values, counted(Loop(model), np.flatnonzero(self.counting))) <= self.W:
            return None
        self.W *= 2
        return self.demand(model, np.arange(len(self.pair)))


def largest(values: Floats, states: Ints) -> float:
    """Return the largest of `values` [n, n] between `states`; 0 if there are none."""
    return float(values[np.ix_(states, states)].max()) if states.size else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class DiameterEstimate(Answer):
    """Bounds on the diameter, and the optimistic hitting times between all states.

    Attributes
    ----------
    diameter
        D_hat, an upper bound on D; inf if there is none yet.
    lower
        A lower bound on D.
    values
        [n, n] optimistic hitting times from s to s': at most the true ones. The first S states are live, as results
        number them; then follow the final states, in the order in which they come in ``collected.model.states``.
    eta
        The l1 error of the model is at most eta / 2, for every pair, and for the law of the start if resets matter.
    errors
        [S, A] the same for each pair; nan where the pair does not exist or its state was not discovered.
    epsilon
        As given, at most 1.
    """

    diameter: float
    lower: float
    values: Floats
    eta: float
    errors: Floats
    epsilon: float

    def lines(self) -> list[tuple[str, str]]:
        """Return the bounds and how close they are, as (name, value)."""
        allowed = factor(self.epsilon)
        got = 1.0 if self.diameter == self.lower else self.diameter / max(self.lower, 1e-300)
        return [
            ("diameter", f"between {self.lower:.4g} and {self.diameter:.4g}"),
            ("asked for", f"within a factor of {allowed:.4g}, got {got:.4g}"),
            ("eta", f"{self.eta:.3g}"),
        ]


def factor(epsilon: float) -> float:
    """Return (1 + 2 epsilon (1 + epsilon)) (1 + epsilon), the largest ratio of the upper to the lower bound."""
    return (1 + 2 * epsilon * (1 + epsilon)) * (1 + epsilon)


@kept_on_disk
def estimate_diameter(
    system: Any,
    epsilon: float,
    *,
    rule: str = "doubling",
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> DiameterEstimate:
    """Estimate the diameter from above: D <= D_hat <= (1 + 2 eps (1 + eps)) (1 + eps) D, with probability 1 - delta.

    Parameters
    ----------
    system
        A communicating `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`.
        A reset after the end of an episode counts as a step, a reset at any time as `reset_cost` steps; endings are
        states, which distances are measured from and to.
    epsilon
        The accuracy; larger than 1 means 1.
    rule
        `"doubling"` (the paper's algorithm), `"paper"` (the same with the printed requirement, which is enormous) or
        `"certified"` (far fewer steps for the same guarantee).
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
    A `DiameterEstimate`. Its guarantee: at level delta, lower <= D <= diameter. If states are discovered on the way, D
    is that of the states discovered, and the upper bound holds if there are no others; the guarantee says so.

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
    >>> answer = gosprl.applications.estimate_diameter(toy, 1.0, rule="certified", seed=0)
    >>> bool(answer.lower <= toy.diameter() <= answer.diameter), str(answer.guarantee)
    (True, 'delta=0.1: lower <= D <= diameter')
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    epsilon, family = min(1.0, _checks.positive("epsilon", epsilon)), walk.family()
    rules: dict[str, Callable[[EmpiricalModel, bool], DiameterRule]] = {
        "certified": lambda model, all_states: CertifiedDiameter(model, all_states, family, factor(epsilon)),
        "doubling": lambda model, all_states: DoublingDiameter(model, all_states, family, epsilon, None),
        "paper": lambda model, all_states: DoublingDiameter(model, all_states, family, epsilon, delta),
    }
    run = walk.run(system, _checks.choice("rule", rule, rules))
    model, counting = run.model, np.flatnonzero(run.rule.counting)
    errors = modest.certificate(model, family, run.rule.counting, "l1")
    values = optimistic_times(model, family, run.rule.values)
    proved = prove(model, family, counting)
    lower = largest(values, counted(proved.loop, counting))
    eta = 2 * float(np.nanmax(errors)) if counting.size else 4.0
    rate = 2 * float(np.nanmax(errors / least_cost(proved.loop))) if counting.size else 4.0
    upper = proved.upper
    longest = lower * (1 + 2 * OPTIMISTIC_ERROR)  # upper bound on the policies' times in their optimistic dynamics
    if rate * longest < 2:
        upper = min(upper, longest / (1 - rate * longest / 2))
    return DiameterEstimate(
        diameter=upper,
        lower=lower,
        values=values,
        eta=eta,
        errors=dense(model, errors),
        epsilon=epsilon,
        collected=run.result,
        guarantee=without_others(run, walk.level.about("lower <= D <= diameter")),
    )


def without_others(run: Run[Any], guarantee: Guarantee) -> Guarantee:
    """Return a guarantee with what upper bounds on distances assume of states and endings that were not discovered."""
    guarantee, loop = run.qualified(guarantee), Loop(run.model)
    if not loop.open and len(counted(loop, np.flatnonzero(run.rule.counting))) == loop.num_states:
        return guarantee
    return guarantee.assuming("that there are no others" if run.rule.of_discovered else "that episodes end as seen")
