"""The price of not knowing: how many more steps any collector takes that does not know in which of K MDPs it is.

Known dynamics: V_k, the least expected steps in candidate k. Unknown: a collector sees only what it walks through, and
takes E_k[T] steps in candidate k. For a prior w, no collector has a mean sum_k w_k E_k[T] below

    B(w) = min over collectors of sum_k w_k E_k[T] >= sum_k w_k V_k,

the steps of the Bayes-optimal collector. `bayes_price` computes B(w), which no strategy can beat on average over the
candidates. `minimax_price` computes the least largest E_k[T] / V_k of any collector, by a search for the prior that is
least favourable: B(w) with weights w_k / V_k is a lower bound on it for every w.

Both are bounds from below and from above (`gosprl.theory._beliefs`); those of `bayes_price` are equal up to rounding if
finitely many posteriors are possible, as with deterministic candidates. The proofs are in docs/theory/price.md.

`need` is a whole number (for every existing pair), an array [S] (per state, any action) or an array [S, A] (per pair).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.theory._beliefs import Beliefs
from gosprl.theory._candidates import Candidates, as_candidates, as_prior
from gosprl.theory._remaining import Floats, Ints

MAX_WEIGHTS = 30_000_000  # nodes times candidates: their likelihoods take 8 bytes each
INNER = 1e-3  # least weight of a prior in the search, times 1 / K: every candidate stays possible
COARSE = 0.05  # relative difference of the bounds for the first priors in the search
STALLED = 15  # rounds without a better bound after which the search stops: the graph has no more room
TOWARDS = 0.5  # share of the best prior so far in the next one: without, the search oscillates


@dataclass(frozen=True, eq=False)
class BayesPrice:
    """Steps of the Bayes-optimal collector beside those with known dynamics.

    Attributes
    ----------
    known
        The mean over the prior of the optimum with known dynamics.
    lower, upper
        Bounds on the expected steps of the Bayes-optimal collector, the mean over the prior.
    optima
        [K] the optimum with known dynamics of each candidate.
    steps
        [K] steps, at most, in each candidate of a collector whose mean is `upper`; nan at candidates of prior 0.
    nodes
        The number of nodes of the search.
    """

    known: float
    lower: float
    upper: float
    optima: Floats = field(repr=False)
    steps: Floats = field(repr=False)
    nodes: int

    @property
    def ratio(self) -> tuple[float, float]:
        """Bounds on the price: steps over `known`; (1, 1) if nothing is needed."""
        if self.known == 0:
            return 1.0, 1.0
        return self.lower / self.known, self.upper / self.known


@dataclass(frozen=True, eq=False)
class MinimaxPrice:
    """The least largest price of any collector, which may choose at random.

    Attributes
    ----------
    lower, upper
        Bounds on the least, over collectors, of the largest, over candidates, of steps / V_k (or of the steps).
    prior
        [K] the prior that shows the lower bound.
    optima
        [K] V_k, the optimum with known dynamics of each candidate.
    rounds
        The number of priors tried.
    """

    lower: float
    upper: float
    prior: Floats = field(repr=False)
    optima: Floats = field(repr=False)
    rounds: int


def bayes_price(
    candidates: Iterable[TabularMDP],
    need: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    start: int | None = None,
    tolerance: float = 1e-3,
    max_nodes: int = 20_000,
) -> BayesPrice:
    """Return the expected steps of the Bayes-optimal collector, which knows the candidates but not which is true.

    Parameters
    ----------
    candidates
        The K MDPs that are possible, with the same actions in the same states.
    need
        See the head of this module.
    prior
        [K] their probabilities; by default all the same.
    start
        The starting state; by default that of the candidates.
    tolerance
        Relative difference of the bounds at which the search stops; of no concern where it is exact.
    max_nodes
        The search also stops at about this many nodes. The bounds are valid, but further apart than `tolerance`.

    Returns
    -------
    BayesPrice
        Bounds on the steps, and the optimum with known dynamics. The upper bound is inf if no collector was found that
        meets the need with probability 1 in all candidates; both are inf if there is none.

    Raises
    ------
    InputError
        An argument is invalid, the need cannot be met with probability 1 in some candidate, or the problem is too
        large.
    """
    family = as_candidates(candidates, need, start)
    weight = as_prior(prior, len(family.prob))
    some = weight > 0
    beliefs, optima = _begin(family.only(some), max_nodes, np.flatnonzero(some))
    all_optima, steps = np.full(len(weight), np.nan), np.full(len(weight), np.nan)
    all_optima[some] = optima
    known = float(weight[some] @ optima)
    if beliefs is None:
        steps[some] = 0.0
        return BayesPrice(0.0, 0.0, 0.0, all_optima, steps, 0)
    found = beliefs.bounds(weight[some], _checks.positive("tolerance", tolerance))
    steps[some] = found.steps
    return BayesPrice(known, max(found.lower, known), found.upper, all_optima, steps, len(beliefs))


def minimax_price(
    candidates: Iterable[TabularMDP],
    need: ArrayLike,
    *,
    relative: bool = True,
    start: int | None = None,
    tolerance: float = 1e-3,
    max_nodes: int = 20_000,
    max_rounds: int = 100,
) -> MinimaxPrice:
    """Return bounds on the largest price, over candidates, that the best collector has to pay.

    A linear program finds the prior that is worst for a mixture of the collectors found so far; the Bayes-optimal
    collector for that prior is the next one. Its steps bound the price from below; the mixture bounds it from above.

    Parameters
    ----------
    candidates, need, start, max_nodes
        As in `bayes_price`.
    relative
        Whether the price is steps / optimum with known dynamics, or the steps.
    tolerance
        Relative difference of the bounds at which the search stops.
    max_rounds
        The search also stops after so many priors.

    Raises
    ------
    InputError
        As in `bayes_price`.
    """
    family = as_candidates(candidates, need, start)
    K = len(family.prob)
    tolerance = _checks.positive("tolerance", tolerance)
    max_rounds = _checks.whole("max_rounds", max_rounds, 1)
    beliefs, optima = _begin(family, max_nodes, np.arange(K))
    if beliefs is None:
        lowest = 1.0 if relative else 0.0
        return MinimaxPrice(lowest, lowest, np.full(K, 1 / K), optima, 0)
    return _search(beliefs, optima, optima if relative else np.ones(K), tolerance, max_rounds)


def _search(beliefs: Beliefs, optima: Floats, unit: Floats, tolerance: float, max_rounds: int) -> MinimaxPrice:
    """Search for the least favourable prior; prices are steps divided by `unit` [K]."""
    K = len(unit)
    worst = best = np.full(K, 1 / K)
    lower, upper, better, prices = 0.0, np.inf, 1, []
    for rounds in range(1, max_rounds + 1):
        prior = (1 - INNER) * ((1 - TOWARDS) * worst + TOWARDS * best) + INNER / K
        weight = prior / unit
        gap = upper - lower
        aim = max(tolerance / 4, min(COARSE, gap / (4 * max(lower, 1e-9))))  # nodes are spent where the search ends
        found = beliefs.bounds(weight / weight.sum(), aim)
        least = float(found.lower * weight.sum())
        if least > lower:
            lower, best = least, prior
        if not np.all(np.isfinite(found.steps)):
            break
        prices.append(found.steps / unit)
        worst, upper = _worst_prior(np.array(prices))
        better = rounds if upper - lower < 0.99 * gap else better
        if upper <= lower * (1 + tolerance) or rounds - better >= STALLED:
            break
    return MinimaxPrice(lower, upper, best, optima, rounds)


def _worst_prior(prices: Floats) -> tuple[Floats, float]:
    """Return the prior [K] at which the best of some collectors, of `prices` [n, K], is worst, and its price there.

    This is the value of the game in which the collector mixes these n, so that the mixture pays at most so much in
    every candidate.
    """
    from scipy.optimize import linprog

    n, K = prices.shape
    # maximise t where t <= prices @ w, over w >= 0 that sum to one
    solved = linprog(
        np.append(np.zeros(K), -1.0),
        A_ub=np.hstack([-prices, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(K), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * K + [(None, None)],
    )
    prior = np.maximum(solved.x[:K], 0.0)
    mixture = np.maximum(-solved.ineqlin.marginals, 0.0)
    return prior / prior.sum(), float((mixture / mixture.sum() @ prices).max())


def _begin(family: Candidates, max_nodes: int, index: Ints) -> tuple[Beliefs | None, Floats]:
    """Return the graph of beliefs, None if nothing is needed, and the optima with known dynamics [K].

    `index` [K] has the numbers of the candidates, for the error.
    """
    K, max_nodes = len(family.prob), _checks.whole("max_nodes", max_nodes, 1)
    if max_nodes * K > MAX_WEIGHTS:
        raise InputError(f"max_nodes: expected at most {MAX_WEIGHTS // K} with {K} candidates, got {max_nodes}")
    if len(family.down) == 1:
        return None, np.zeros(K)
    optima = family.known_optima()
    from_start = optima.lower[:, -1, family.start]
    never = np.flatnonzero(np.isinf(from_start))
    if never.size:
        raise InputError(
            f"need: expected one that can be met with probability 1 in all candidates, which is not so in candidate "
            f"{index[never[0]]}, from state {family.start}"
        )
    return Beliefs(family, optima, max_nodes), from_start
