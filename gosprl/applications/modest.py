"""Model estimation (section "Model Estimation (MODEST)" and its appendix): p_hat within eta of p, for every pair.

Three rules for how many samples that takes:

    certified   ours: more of a pair exactly while its confidence set allows an error above eta
    paper       the printed requirement Phi(X, Y), with its constants, from the frequencies seen so far:
                    57 X^2 / eta^2 log^2(8 e X sqrt(2 S A) / (sqrt(delta) eta)) + 24 Y / eta log(24 Y S A / (delta eta))
                with X = sum of sigma(s'), Y = S in the l1 norm; X = max of sigma(s'), Y = 1 entry by entry (RMODEST).
                (The main text squares X inside the logarithm as well; the lemma in the appendix gives this.)
    decreasing  the paper's experiments: alpha_b Phi for eta = 1, when that is met for half of it, and so on

All end with a certificate: how far p_hat may be off by the confidence sets, for every pair, whatever the rule was.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, dense, whole
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.certificates import NORMS, model_errors, slack
from gosprl.sets.intervals import Confidence

ALPHA = {"paper": 1.0, "decreasing": 0.01}  # of Phi, by default: as proved, and as in the paper's experiments


class Certified(Rule):
    """More samples of a row exactly while its set allows an error above eta."""

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence, eta: float, norm: str) -> None:
        super().__init__(model, all_states)
        self.family, self.eta, self.norm = family, eta, norm

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        errors = model_errors(slack(model, self.family, rows), self.norm)
        return more_samples(model.visits[rows], errors / self.eta)


def more_samples(visits: Ints, ratio: Floats) -> Ints:
    """What to ask for in total if errors are `ratio` times what they should be: nothing more if that is 1 or less.

    Where errors fall as 1 / visits or more slowly, ratio * visits is not too many, and the last of them are asked for
    one by one. They may fall faster, as caps on the others count anew after a new successor; but what was asked for is
    looked at again after every attempt.
    """
    return np.where(ratio <= 1, 0, np.maximum(whole(np.minimum(ratio, 2.0) * visits), visits + 1))


class Printed(Rule):
    """alpha Phi samples of every pair, for an eta that is halved from `begin` on until it is small enough."""

    def __init__(
        self, model: EmpiricalModel, all_states: bool, eta: float, norm: str, delta: float, alpha: float, begin: float
    ) -> None:
        super().__init__(model, all_states)
        self.target, self.eta = eta, max(begin, eta)
        self.norm, self.delta, self.alpha = norm, delta, alpha

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        return whole(self.alpha * requirement(model, rows, self.eta, self.norm, self.delta))

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        if self.eta <= self.target:
            return None
        self.eta = max(self.target, self.eta / 2)
        return self.demand(model, np.arange(len(self.pair)))


def phi(X: Floats, Y: float, eta: float, delta: float, states: int, actions: int) -> Floats:
    """The printed Phi(X, Y), before rounding up; X [n]."""
    pairs = states * actions
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = np.log(8 * math.e * X * math.sqrt(2 * pairs) / (math.sqrt(delta) * eta))
        first = np.where(X > 0, 57 * (X / eta) ** 2 * logarithm**2, 0.0)
    return np.asarray(first + 24 * Y / eta * math.log(24 * Y * pairs / (delta * eta)))


def requirement(model: EmpiricalModel, rows: Ints, eta: float, norm: str, delta: float) -> Floats:
    """[n] Phi of each of `rows`, for the frequencies seen so far; those never visited have no variance yet."""
    ptr, _, count, _ = model.stored(rows)
    p_hat = count / np.repeat(np.maximum(model.visits[rows], 1), np.diff(ptr))
    sigma, row = np.sqrt(p_hat * (1 - p_hat)), np.repeat(np.arange(len(rows)), np.diff(ptr))
    X = np.zeros(len(rows))
    (np.add if norm == "l1" else np.maximum).at(X, row, sigma)
    return phi(X, model.num_states if norm == "l1" else 1, eta, delta, model.num_states, model.num_actions)


def certificate(model: EmpiricalModel, family: Confidence, counting: NDArray[np.bool_], norm: str) -> Floats:
    """[S, A] how far p_hat may be off by the sets; nan where there is no such pair, or none of those `counting` [R]."""
    errors, rows = np.full(len(model.rows), np.nan), np.flatnonzero(counting)
    errors[rows] = model_errors(slack(model, family, rows), norm)
    return dense(model, errors)


@dataclass(frozen=True, eq=False, repr=False)
class ModelEstimate(Answer):
    """The estimated dynamics and how far they may be off."""

    model: EmpiricalModel  # p_hat(s, a), dense(), transitions()
    eta: Floats  # [S, A] |p_hat - p| is at most this; nan where there is no such pair
    norm: str
    rule: str
    target: float

    def lines(self) -> list[tuple[str, str]]:
        norm = "the l1 norm" if self.norm == "l1" else "each entry"
        known = self.eta[~np.isnan(self.eta)]
        worst = f"{known.max():.4g} at worst" if known.size else "nothing was visited"
        within = f"{np.mean(known <= self.target):.0%} of the pairs within {self.target:g}" if known.size else ""
        return [
            ("error in " + norm, worst),
            ("", within),
            ("rule", self.rule),
        ]


def estimate_model(
    system: Any,
    eta: float,
    *,
    norm: str = "l1",
    rule: str = "certified",
    alpha_b: float | None = None,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: Any = None,
    **options: Any,
) -> ModelEstimate:
    """Estimate the dynamics of every pair to within `eta`, with probability at least 1 - delta.

    Parameters
    ----------
    eta
        How far p_hat(.|s, a) may be off, for every pair.
    norm
        `"l1"`: the sum over all next states (MODEST); `"max"`: each entry (RMODEST).
    rule
        How many samples are asked for: `"certified"`, `"paper"` or `"decreasing"`; see this module.
    alpha_b
        Multiplies the printed requirement: by default 1 with `"paper"`, 0.01 with `"decreasing"`. Below 1 only the
        certificate `eta` says how far the estimate may be off.
    delta, confidence, options
        Level and family of the confidence sets, which collector and certificate share; other options of the collector.
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    eta, family = _checks.positive("eta", eta), walk.family()
    _checks.choice("norm", norm, NORMS)
    rules: dict[str, Callable[[EmpiricalModel, bool], Rule]] = {
        "certified": lambda model, all_states: Certified(model, all_states, family, eta, norm),
        "paper": lambda model, all_states: Printed(model, all_states, eta, norm, delta, alpha, eta),
        "decreasing": lambda model, all_states: Printed(model, all_states, eta, norm, delta, alpha, 1.0),
    }
    rule_of = _checks.choice("rule", rule, rules)
    alpha = _alpha(rule, alpha_b)
    made, result = walk.run(system, rule_of)
    return ModelEstimate(
        model=result.model,
        eta=certificate(result.model, family, made.counting, norm),
        norm=norm,
        rule=rule,
        target=eta,
        collected=result,
        guarantee=walk.level.about("every |p_hat - p| is at most its eta"),
    )


def _alpha(rule: str, alpha_b: float | None) -> float:
    if alpha_b is None:
        return ALPHA.get(rule, 1.0)
    if rule == "certified":
        raise InputError("alpha_b: multiplies the printed requirement; with rule='certified' there is none")
    return _checks.positive("alpha_b", alpha_b)
