"""Model estimation (section "Model Estimation (MODEST)" and its appendix): p_hat within eta of p, for every pair.

Three rules for how many samples are needed:

    certified   ours: sample a pair until its confidence set allows no error above eta
    paper       the printed requirement Phi(X, Y), with its constants, from the frequencies so far:
                    57 X^2 / eta^2 log^2(8 e X sqrt(2 S A) / (sqrt(delta) eta)) + 24 Y / eta log(24 Y S A / (delta eta))
                with X = sum of sigma(s'), Y = S in the l1 norm; X = max of sigma(s'), Y = 1 entry by entry (RMODEST).
                (The main text squares X inside the logarithm as well; the lemma in the appendix gives this.)
    decreasing  the paper's experiments: alpha_b Phi for eta = 1; when that is met, for eta = 1/2, and so on

With every rule the answer has a certificate: the largest error of p_hat that the confidence sets allow, for every pair.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Rule, Walk, dense, kept_on_disk, num_outcomes, rounded_up
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.certificates import NORMS, model_errors, slack
from gosprl.sets.intervals import Confidence

ALPHA = {"paper": 1.0, "decreasing": 0.01}  # default multiplier of Phi: as proved, and as in the paper's experiments


class CertifiedModel(Rule):
    """Samples of a row until its set allows no error above eta."""

    def __init__(self, model: EmpiricalModel, all_states: bool, family: Confidence, eta: float, norm: str) -> None:
        super().__init__(model, all_states)
        self.family, self.eta, self.norm = family, eta, norm

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Return the samples needed in total of each of `rows`."""
        errors = model_errors(slack(model, self.family, rows), self.norm)
        return more_samples(model.visits[rows], errors / self.eta)


def more_samples(visits: Ints, ratio: Floats) -> Ints:
    """Return the samples needed in total of rows whose errors are `ratio` times the error allowed.

    If the ratio is at most 1, none are needed. If errors fall as 1 / visits or more slowly, ratio * visits is not too
    many; near the end, samples are requested one at a time. Errors can fall faster, since a new successor changes the
    caps on unseen ones; but the need is recomputed after every attempt.

    Parameters
    ----------
    visits
        [n] int64, samples so far.
    ratio
        [n] error over the error allowed.
    """
    return np.where(ratio <= 1, 0, np.maximum(rounded_up(np.minimum(ratio, 2.0) * visits), visits + 1))


class PaperModel(Rule):
    """alpha Phi samples of every pair, for an error that starts at `begin` and is halved until it is eta."""

    memory = ("eta",)

    def __init__(
        self, model: EmpiricalModel, all_states: bool, eta: float, norm: str, delta: float, alpha: float, begin: float
    ) -> None:
        super().__init__(model, all_states)
        self.target, self.eta = eta, max(begin, eta)
        self.norm, self.delta, self.alpha = norm, delta, alpha

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Return the samples needed in total of each of `rows`."""
        return rounded_up(self.alpha * requirement(model, rows, self.eta, self.norm, self.delta))

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Return the need for half of the error; None if eta is reached."""
        if self.eta <= self.target:
            return None
        self.eta = max(self.target, self.eta / 2)
        return self.demand(model, np.arange(len(self.pair)))


def phi(X: Floats, Y: float, eta: float, delta: float, states: int, actions: int) -> Floats:
    """Return the printed Phi(X, Y) [n], before rounding up; X [n]."""
    pairs = states * actions
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = np.log(8 * math.e * X * math.sqrt(2 * pairs) / (math.sqrt(delta) * eta))
        first = np.where(X > 0, 57 * (X / eta) ** 2 * logarithm**2, 0.0)
    return np.asarray(first + 24 * Y / eta * math.log(24 * Y * pairs / (delta * eta)))


def requirement(model: EmpiricalModel, rows: Ints, eta: float, norm: str, delta: float) -> Floats:
    """Return Phi [n] of each of `rows` for the frequencies so far; a row never visited has no variance yet."""
    ptr, _, count, _ = model.stored(rows)
    p_hat = count / np.repeat(np.maximum(model.visits[rows], 1), np.diff(ptr))
    sigma, row = np.sqrt(p_hat * (1 - p_hat)), np.repeat(np.arange(len(rows)), np.diff(ptr))
    X = np.zeros(len(rows))
    (np.add if norm == "l1" else np.maximum).at(X, row, sigma)
    return phi(X, num_outcomes(model) if norm == "l1" else 1, eta, delta, model.num_states, model.num_actions)


def certificate(model: EmpiricalModel, family: Confidence, counting: NDArray[np.bool_], norm: str) -> Floats:
    """Return the largest error of p_hat that the sets allow, [R]; nan except for the rows `counting` [R]."""
    errors, rows = np.full(len(model.rows), np.nan), np.flatnonzero(counting)
    errors[rows] = model_errors(slack(model, family, rows), norm)
    return errors


@dataclass(frozen=True, eq=False, repr=False)
class ModelEstimate(Answer):
    """Estimated dynamics, with bounds on their errors.

    Attributes
    ----------
    model
        The `EmpiricalModel`: `p_hat(s, a)`, `dense()`, `transitions()`.
    eta
        [S, A] the error |p_hat - p| of each pair is at most this; nan where the pair does not exist or its state was
        not discovered.
    norm, rule
        As given.
    target
        The error asked for.
    """

    model: EmpiricalModel
    eta: Floats
    norm: str
    rule: str
    target: float

    def lines(self) -> list[tuple[str, str]]:
        """Return the largest error and the rule, as (name, value)."""
        norm = "the l1 norm" if self.norm == "l1" else "each entry"
        known = self.eta[~np.isnan(self.eta)]
        worst = f"{known.max():.4g} at worst" if known.size else "nothing was visited"
        within = f"{np.mean(known <= self.target):.0%} of the pairs within {self.target:g}" if known.size else ""
        return [
            ("error in " + norm, worst),
            ("", within),
            ("rule", self.rule),
        ]


@kept_on_disk
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
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> ModelEstimate:
    """Estimate the dynamics of every pair to within `eta`, with probability at least 1 - delta.

    Parameters
    ----------
    system
        A communicating `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`.
    eta
        The largest error of p_hat(.|s, a) allowed, for every pair.
    norm
        The error is the sum over all next states (`"l1"`, MODEST) or the largest entry (`"max"`, RMODEST).
    rule
        The number of samples: `"certified"` (until the confidence sets prove eta), `"paper"` (the printed requirement)
        or `"decreasing"` (the printed requirement for 1, 1/2, 1/4, ... down to eta).
    alpha_b
        Multiplier of the printed requirement: by default 1 with `"paper"`, 0.01 with `"decreasing"`. Below 1, only the
        certificate `eta` of the answer bounds the error.
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
    A `ModelEstimate`. Its guarantee: at level delta, every |p_hat - p| is at most its `eta`. If states are discovered
    on the way, this is about the states discovered, and p may have mass on states and endings that are not: their mass
    is part of the error.

    Raises
    ------
    InputError
        An argument is wrong; no step was made.
    CollectionError
        The system or the strategy failed; `error.result` has everything collected.

    Examples
    --------
    >>> import gosprl
    >>> answer = gosprl.applications.estimate_model(gosprl.envs.make("riverswim6"), 0.5, seed=0)
    >>> bool(answer.eta.max() <= 0.5), str(answer.guarantee)
    (True, 'delta=0.1: every |p_hat - p| is at most its eta')
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    eta, family = _checks.positive("eta", eta), walk.family()
    _checks.choice("norm", norm, NORMS)
    rules: dict[str, Callable[[EmpiricalModel, bool], Rule]] = {
        "certified": lambda model, all_states: CertifiedModel(model, all_states, family, eta, norm),
        "paper": lambda model, all_states: PaperModel(model, all_states, eta, norm, delta, alpha, eta),
        "decreasing": lambda model, all_states: PaperModel(model, all_states, eta, norm, delta, alpha, 1.0),
    }
    rule_of = _checks.choice("rule", rule, rules)
    alpha = _alpha(rule, alpha_b)
    run = walk.run(system, rule_of)
    return ModelEstimate(
        model=run.result.model,
        eta=dense(run.model, certificate(run.model, family, run.rule.counting, norm)),
        norm=norm,
        rule=rule,
        target=eta,
        collected=run.result,
        guarantee=run.qualified(walk.level.about("every |p_hat - p| is at most its eta")),
    )


def _alpha(rule: str, alpha_b: float | None) -> float:
    """Return the multiplier of the printed requirement, after checking it."""
    if alpha_b is None:
        return ALPHA.get(rule, 1.0)
    if rule == "certified":
        raise InputError(
            "alpha_b: expected rule='paper' or 'decreasing', whose printed requirement it multiplies, got 'certified'"
        )
    return _checks.positive("alpha_b", alpha_b)
