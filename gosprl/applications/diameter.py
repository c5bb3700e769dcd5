"""Diameter estimation (appendix "Diameter Estimation"): D_hat with D <= D_hat <= (1 + 2 eps (1 + eps)) (1 + eps) D.

    doubling   the paper's algorithm. W = 1, 2, 4, ...: estimate the model to eta / 2 in the l1 norm, eta = eps / W, and
               plan optimistically for every goal; until no optimistic time exceeds W. The estimation is certified
               (`gosprl.applications.modest`).
    paper      the same with the printed requirement Phi.
    certified  ours: no W. Stop as soon as the sets prove a lower and an upper bound that are close enough.

What is returned. Times v of the optimistic model are at most the true ones. The policy that has them there takes no
more than v / (1 - eta v / 2) in truth: its optimistic dynamics are within eta of the true ones, so a step's average of
v is off by eta / 2 times the span of v at most, where a step costs 1. With v = |v| the largest and the plans' own
precision (far below eps), D_hat = |v| / (1 - eta |v| / 2), never more than the printed (1 + 2 eta |v|) |v|, whose proof
needs the factor 1 + eps twice more.

`certified` needs far fewer samples, because mass that a row's set may move does not go across the MDP. With D_hat the
hitting times of the frequencies seen, a function h = D_hat(., g) changes by at most D_hat(i, j) from j to i; so a
row's average of h is off by at most what moving its plausible mass over those distances weighs
(`gosprl.sets.certificates.lipschitz_errors`). If that is at most x < 1 for every row, D_{sg} <= D_hat(s, g) / (1 - x).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.applications import modest
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, listed, whole
from gosprl.errors import PrecisionError
from gosprl.mdp.distances import OPTIMISTIC_ERROR, optimistic_times
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.certificates import lipschitz_errors, model_errors, slack
from gosprl.sets.intervals import Confidence

SPREAD = 1.5  # errors of rows that vary fall as visits^(-1/2), of others as 1 / visits: expected in between
GROWTH = 2.0  # times the visits that are asked for at once, at most


@dataclass(frozen=True, eq=False)
class Proved:
    """What the sets prove about times; over the states that count."""

    hat: TabularMDP  # the frequencies seen, as an MDP
    times: Floats  # [S, S] its hitting times D_hat, inf where it has no way
    longest: float  # the largest of them
    off: Floats  # [R] the most that a row's average of a function with these distances may be off; inf if never visited

    @property
    def x(self) -> float:
        return float(self.off.max())

    @property
    def upper(self) -> float:
        """D is at most this."""
        return self.longest / (1 - self.x) if self.x < 1 else math.inf


def prove(model: EmpiricalModel, family: Confidence, counting: Ints) -> Proved:
    """What the sets of the rows `counting` prove, for the counts as they are."""
    hat = frequencies(model)
    try:
        times = hat.hitting_times()
    except PrecisionError:  # too far for doubles, which is no reason to lose a run: nothing is proved
        times = np.full((model.num_states, model.num_states), np.inf)
    np.fill_diagonal(times, 0.0)
    states = np.unique(model.rows.state[counting])
    inside = np.full_like(times, np.inf)
    inside[np.ix_(states, states)] = times[np.ix_(states, states)]
    off = np.zeros(len(model.rows))
    longest = float(inside[np.ix_(states, states)].max()) if states.size else math.inf
    off[counting] = math.inf
    if math.isfinite(longest):
        off[counting] = np.maximum(*lipschitz_errors(slack(model, family, counting), inside))
        off[counting[model.visits[counting] == 0]] = math.inf
    return Proved(hat, inside, longest, off)


def frequencies(model: EmpiricalModel) -> TabularMDP:
    """The frequencies seen as dynamics; a state from which nothing was seen stays where it is."""
    s, a, s_next, count = model.transitions()
    idle = np.setdiff1d(np.arange(model.num_states), s)
    p = count / model.visits[model.rows.index(s, a)]
    first = model.rows.action[model.rows.ptr[idle]]
    parts = (np.append(s, idle), np.append(a, first), np.append(s_next, idle), np.append(p, np.ones(len(idle))))
    return TabularMDP(parts, states=model.num_states, actions=model.num_actions, name="the frequencies seen")


def grow(visits: Ints, ratio: Floats, first: int) -> Ints:
    """What to ask for of rows whose errors are `ratio` times too large: nothing more if that is 1 or less."""
    with np.errstate(over="ignore"):
        factor = np.minimum(ratio**SPREAD, GROWTH)
    more = np.ceil(np.maximum(visits, first) * factor).astype(np.int64)
    return np.where(ratio <= 1, 0, np.where(visits == 0, first, np.maximum(more, visits + 1)))


class Timed(Rule):
    """A rule that looks at the optimistic times between all states."""

    resets = True
    values: Floats | None = None  # [S, S] as they were last time


class Proving(Timed):
    """A rule that first asks for a few samples of every pair, then for what proofs by the sets lack."""

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence) -> None:
        super().__init__(model, all_states)
        self.family = family
        self.first = math.ceil(math.log(len(model.rows) * model.num_states)) + 2

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        return np.maximum(self.pair[rows], self.first)


class Certified(Proving):
    """Until upper <= factor * lower."""

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence, factor: float) -> None:
        super().__init__(model, all_states, family)
        self.factor = factor
        self.goal = (1 - 1 / factor) / 2  # for x: the other half is for the lower bound
        self.proved: Proved | None = None

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        counting = np.flatnonzero(self.counting)
        self.proved = proved = prove(model, self.family, counting)
        if proved.x < 2 * self.goal:
            self.values = optimistic_times(model, self.family, proved.times)
            if proved.upper <= self.factor * largest(self.values, model, counting):
                return None
            if proved.x <= self.goal:
                self.goal *= 0.8
        return grow(model.visits, proved.off / self.goal, self.first)


class Doubling(Timed):
    """The paper's algorithm; `demand` says what estimating the model to eta / 2 takes."""

    def __init__(
        self, model: EmpiricalModel, all_states: bool, family: Confidence, epsilon: float, printed: float | None
    ) -> None:
        super().__init__(model, all_states)
        self.family, self.epsilon, self.printed = family, epsilon, printed  # the latter: delta of Phi
        self.W = 1.0

    @property
    def eta(self) -> float:
        return self.epsilon / self.W

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        if self.printed is not None:
            return whole(modest.requirement(model, rows, self.eta / 2, "l1", self.printed))
        errors = model_errors(slack(model, self.family, rows), "l1")
        return modest.more_samples(model.visits[rows], errors / (self.eta / 2))

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        self.values = optimistic_times(model, self.family, self.values)
        if largest(self.values, model, np.flatnonzero(self.counting)) <= self.W:
            return None
        self.W *= 2
        return self.demand(model, np.arange(len(self.pair)))


def largest(values: Floats, model: EmpiricalModel, counting: Ints) -> float:
    """The largest time between states that count."""
    states = np.unique(model.rows.state[counting])
    return float(values[np.ix_(states, states)].max()) if states.size else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class DiameterEstimate(Answer):
    """Bounds on the diameter, and the optimistic times between all states."""

    diameter: float  # D_hat >= D; inf if nothing bounds it (yet)
    lower: float  # D >= this
    values: Floats  # [S, S] optimistic times from s to s': never more than the true ones
    eta: float  # the model is within eta / 2 of the truth in the l1 norm, for every pair
    errors: Floats  # [S, A] how far that is for each; nan where there is no such pair
    epsilon: float

    def lines(self) -> list[tuple[str, str]]:
        allowed = factor(self.epsilon)
        got = 1.0 if self.diameter == self.lower else self.diameter / max(self.lower, 1e-300)
        return [
            ("diameter", f"between {self.lower:.4g} and {self.diameter:.4g}"),
            ("asked for", f"within a factor of {allowed:.4g}, got {got:.4g}"),
            ("eta", f"{self.eta:.3g}"),
        ]


def factor(epsilon: float) -> float:
    """(1 + 2 epsilon (1 + epsilon)) (1 + epsilon)."""
    return (1 + 2 * epsilon * (1 + epsilon)) * (1 + epsilon)


def estimate_diameter(
    system: Any,
    epsilon: float,
    *,
    rule: str = "doubling",
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: Any = None,
    **options: Any,
) -> DiameterEstimate:
    """Estimate the diameter from above: D <= D_hat <= (1 + 2 eps (1 + eps)) (1 + eps) D, with probability 1 - delta.

    Parameters
    ----------
    epsilon
        The accuracy; above 1 it is taken as 1.
    rule
        `"doubling"` (the paper's algorithm), `"paper"` (with its printed requirement, which is enormous) or
        `"certified"` (far fewer steps for the same promise): see this module.
    delta, confidence, options
        Level and family of the confidence sets, which collector and certificate share; other options of the collector.

    A system that does not have all its states in advance (a Gymnasium environment) is taken to have those found. The
    reset from a terminal state counts as a step.
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    epsilon, family = min(1.0, _checks.positive("epsilon", epsilon)), walk.family()
    rules: dict[str, Callable[[EmpiricalModel, bool], Timed]] = {
        "certified": lambda model, all_states: Certified(model, all_states, family, factor(epsilon)),
        "doubling": lambda model, all_states: Doubling(model, all_states, family, epsilon, None),
        "paper": lambda model, all_states: Doubling(model, all_states, family, epsilon, delta),
    }
    made, result = walk.run(system, _checks.choice("rule", rule, rules))
    model, counting = result.model, np.flatnonzero(made.counting)
    errors = modest.certificate(model, family, made.counting, "l1")
    values = optimistic_times(model, family, made.values)
    lower = largest(values, model, counting)
    eta = 2 * float(np.nanmax(errors, initial=0.0)) if counting.size else 4.0
    upper = prove(model, family, counting).upper
    longest = lower * (1 + 2 * OPTIMISTIC_ERROR)  # what the optimistic policies take in their own dynamics at most
    if eta * longest < 2:
        upper = min(upper, longest / (1 - eta * longest / 2))
    return DiameterEstimate(
        diameter=upper,
        lower=lower,
        values=values,
        eta=eta,
        errors=errors,
        epsilon=epsilon,
        collected=result,
        guarantee=walk.level.about(f"lower <= D <= diameter{among(made, model)}"),
    )


def among(rule: Rule, model: EmpiricalModel) -> str:
    """What is taken for granted where states are discovered by walking."""
    if rule.all_states:
        return ""
    missing = np.flatnonzero(~model.is_discovered)
    return f", if {listed(missing)} cannot be reached" if missing.size else ""
