"""Appendix "On Ergodicity": a stationary policy as an ergodic chain, and the visits that it makes."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, shortest_path

from gosprl import _checks
from gosprl.errors import InputError, PrecisionError
from gosprl.mdp.parts import SUM_TOLERANCE
from gosprl.mdp.tabular import MAX_DENSE, TabularMDP
from gosprl.theory._inputs import _mdp

POWERS = 10_000  # of a chain that the pseudo-spectral gap looks at: with fewer it is too small, which is safe
LEAST_GAP = 1e-12  # below it a gap cannot be told from rounding


@dataclass(frozen=True, eq=False)
class Chain:
    """An ergodic Markov chain."""

    P: NDArray[np.float64]  # [S, S] transition probabilities
    law: NDArray[np.float64]  # [S] mu, the stationary law
    gap: float  # gamma: spectral gap of a reversible chain, else pseudo-spectral gap
    reversible: bool  # mu(s) P(s, s') = mu(s') P(s', s)


def induced_chain(mdp: TabularMDP, policy: ArrayLike) -> Chain:
    """The chain of a stationary policy: an array [S] of actions, or [S, A] of their probabilities.

    It must be ergodic: every state leads to every other, and not only at multiples of some number of steps.
    """
    pi, rows = _probabilities(_mdp(mdp), policy), mdp.rows
    S, row = mdp.num_states, np.repeat(np.arange(len(rows)), np.diff(mdp.ptr))
    if S * S > MAX_DENSE:
        raise InputError(f"mdp: expected a chain of at most {MAX_DENSE} entries, got {S} x {S}")
    P = np.zeros((S, S))
    np.add.at(P, (rows.state[row], mdp.succ), pi[rows.state[row], rows.action[row]] * mdp.prob)
    _check_ergodic(P, mdp.name)
    law = _stationary_law(P)
    root = np.sqrt(law)
    M = root[:, None] * P / root  # similar to P; its transpose is similar to the reversed chain
    reversible = np.allclose(M, M.T, rtol=1e-9, atol=1e-12)
    return Chain(P, law, _gap(M - np.outer(root, root), reversible), reversible)


def visit_radius(chain: Chain, steps: int, delta: float) -> float:
    """How far the frequency of any state is from its stationary probability after t = `steps` steps, from any start.

    At most this far for all states together with probability at least 1 - delta, for one t. The paper says "for any t",
    but to hold at all times together the radius would have to shrink slower, by the law of the iterated logarithm.
    """
    root, constant = _deviation(chain, delta)
    t = _checks.whole("steps", steps, 1)
    return root / math.sqrt(t) + constant / t


def visits_at_least(chain: Chain, steps: int, delta: float) -> NDArray[np.float64]:
    """[S] lower bounds on N_t(s) for t = `steps`, together valid with probability at least 1 - delta; maybe negative.

    t (mu(s) - radius). The paper has the least mu for mu(s), a weaker bound.
    """
    return steps * (chain.law - visit_radius(chain, steps, delta))


def steps_until_met(chain: Chain, need: ArrayLike, delta: float) -> int:
    """The least t at which `visits_at_least` is b(s) or more in every state with a need b(s) > 0; 0 if there is none.

    So that t steps of the policy meet the need b = `need` [S] with probability at least 1 - delta.
    """
    b = _checks.integers("need", need, 0, None, "numbers of samples")
    if b.shape != chain.law.shape:
        raise InputError(f"need: expected samples of each state, [S] = {chain.law.shape}, got shape {b.shape}")
    root, constant = _deviation(chain, delta)
    if not b.any():
        return 0
    mu, b = chain.law[b > 0], b[b > 0]
    x = (root + np.sqrt(root**2 + 4 * mu * (constant + b))) / (2 * mu)  # mu x^2 - root x - constant = b, x = sqrt(t)
    return math.ceil(float(x.max()) ** 2)


def _deviation(chain: Chain, delta: float) -> tuple[float, float]:
    """(c, d): with probability at least 1 - delta, |N_t(s) - t mu(s)| <= c sqrt(t) + d for all s.

    With L = log(S / delta sqrt(2 / mu_min)), the paper has c^2 = 2 L / gamma and d = 20 L / gamma: Bernstein's
    inequality for reversible chains (Paulin 2015), from any start. For others, says the paper, gamma is "simply"
    replaced by the pseudo-spectral gap. But the constants of that inequality are twice as large, and it has
    t + 1 / gamma for t: c^2 = 4 L / gamma and, as L >= 1, d = 42 L / gamma are enough.
    """
    L = math.log(len(chain.law) / _checks.open_unit("delta", delta) * math.sqrt(2 / chain.law.min()))
    square, constant = (2, 20) if chain.reversible else (4, 42)
    return math.sqrt(square * L / chain.gap), constant * L / chain.gap


def _stationary_law(P: NDArray[np.float64]) -> NDArray[np.float64]:
    """[S] mu with mu P = mu: the states are taken out one by one, the last first, and put back.

    Without a subtraction (Grassmann, Taksar and Heyman), so that each entry is accurate, however small it is.
    """
    P, law = P.copy(), np.ones(len(P))
    for n in range(len(P) - 1, 0, -1):
        P[:n, n] /= P[n, :n].sum()
        P[:n, :n] += np.outer(P[:n, n], P[n, :n])
    for n in range(1, len(P)):
        law[n] = law[:n] @ P[:n, n]
    law /= law.sum()
    return law


def _gap(M: NDArray[np.float64], reversible: bool) -> float:
    """1 - the second largest absolute eigenvalue if reversible, else max_k gap((P*)^k P^k) / k, P* the reversed chain.

    M is similar to P without its eigenvalue one, and its transpose to P*: the gap of (P*)^k P^k is 1 - |M^k|^2. It is
    at most one, so that no k above 1 / (the best so far) can be better.
    """
    if reversible:
        best = float(1 - np.abs(np.linalg.eigvalsh((M + M.T) / 2)).max())
    else:
        best, power, k = 0.0, M, 1
        while k * best < 1 and k <= POWERS:
            best = max(best, float(1 - np.linalg.norm(power, 2) ** 2) / k)
            power, k = power @ M, k + 1
    if best < LEAST_GAP:
        raise PrecisionError(f"policy: its chain mixes so slowly that no gap is seen in doubles, {best:.2g} is noise")
    return best


def _probabilities(mdp: TabularMDP, policy: ArrayLike) -> NDArray[np.float64]:
    """[S, A] of a stationary policy."""
    S, A = mdp.num_states, mdp.num_actions
    given = _checks.floats("policy", policy)
    if given.shape == (S,):
        given = np.eye(A)[_checks.integers("policy", policy, 0, A, "actions")]
    if given.shape != (S, A):
        raise InputError(
            f"policy: expected actions [S] = ({S},) or their probabilities [S, A] = ({S}, {A}), got shape {given.shape}"
        )
    wrong = np.flatnonzero(~(np.all(given >= 0, axis=1) & (np.abs(given.sum(axis=1) - 1) <= SUM_TOLERANCE)))
    if wrong.size:
        s = wrong[0]
        raise InputError(f"policy: expected probabilities >= 0 that sum to one in every state, got {given[s]} in {s}")
    missing = np.argwhere((given > 0) & ~mdp.rows.to_dense(np.ones(len(mdp.rows), dtype=bool)))
    if missing.size:
        raise InputError(f"policy: action {missing[0, 1]} does not exist in state {missing[0, 0]} of {mdp.name}")
    probabilities: NDArray[np.float64] = given / given.sum(axis=1, keepdims=True)
    return probabilities


def _check_ergodic(P: NDArray[np.float64], name: str) -> None:
    """Refuse a chain that never comes to some state again, or to some state only at certain times."""
    graph = sparse.csr_array(P > 0)
    s, s_next = np.nonzero(P)
    label = connected_components(graph, connection="strong")[1]
    left_for_good = np.unique(label[s[label[s] != label[s_next]]])
    kept = label == np.setdiff1d(label, left_for_good)[0]
    if not kept.all():
        raise InputError(
            f"policy: expected a policy whose chain is ergodic; in {name} it never leads from states "
            f"{_some(kept)} to states {_some(~kept)}"
        )
    level = shortest_path(graph, unweighted=True, indices=0).astype(np.int64)
    period = int(np.gcd.reduce(level[s] + 1 - level[s_next]))
    if period > 1:
        raise InputError(
            f"policy: expected a policy whose chain is ergodic; in {name} its period is {period}: it is in states "
            f"{_some(level % period == 0)} every {period} steps, and never between"
        )


def _some(mask: NDArray[np.bool_]) -> str:
    """The states of a mask, the first of many."""
    states = np.flatnonzero(mask)
    return ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
