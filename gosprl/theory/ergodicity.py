"""Appendix "On Ergodicity": a stationary policy as an ergodic chain, and how often it visits each state."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError, PrecisionError
from gosprl.mdp.parts import SUM_TOLERANCE
from gosprl.mdp.tabular import MAX_DENSE, TabularMDP
from gosprl.theory._inputs import _mdp

POWERS = 10_000  # powers of the chain that are tried for the pseudo-spectral gap; fewer give a lower bound on it
LEAST_GAP = 1e-12  # a smaller gap cannot be distinguished from rounding errors


@dataclass(frozen=True, eq=False)
class Chain:
    """An ergodic Markov chain.

    Attributes
    ----------
    P
        Transition probabilities [S, S].
    law
        The stationary law mu [S].
    gap
        gamma: the spectral gap of a reversible chain, else the pseudo-spectral gap.
    reversible
        Whether mu(s) P(s, s') = mu(s') P(s', s) for all s, s'.
    """

    P: NDArray[np.float64]
    law: NDArray[np.float64]
    gap: float
    reversible: bool


def induced_chain(mdp: TabularMDP, policy: ArrayLike) -> Chain:
    """Return the Markov chain of a stationary policy.

    Parameters
    ----------
    mdp
        The MDP.
    policy
        Actions [S], or their probabilities [S, A].

    Returns
    -------
    Chain
        With its stationary law and gap.

    Raises
    ------
    InputError
        The chain is not ergodic: some state is not reached from another, or only at multiples of a period.
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
    M = root[:, None] * P / root  # similar to P; its transpose is similar to the reversed chain's matrix
    reversible = np.allclose(M, M.T, rtol=1e-9, atol=1e-12)
    return Chain(P, law, _gap(M - np.outer(root, root), reversible), reversible)


def visit_radius(chain: Chain, steps: int, delta: float) -> float:
    """Return a bound on the distance between visit frequencies and stationary probabilities after t steps.

    From any start, with probability at least 1 - delta, the frequencies of all states are within this radius of mu,
    for one t. The paper says "for any t"; a radius that holds at all times at once would have to shrink more slowly, by
    the law of the iterated logarithm.

    Parameters
    ----------
    chain
        An ergodic chain.
    steps
        t.
    delta
        The probability that the bound fails.
    """
    root, constant = _deviation(chain, delta)
    t = _checks.whole("steps", steps, 1)
    return root / math.sqrt(t) + constant / t


def visits_at_least(chain: Chain, steps: int, delta: float) -> NDArray[np.float64]:
    """Return lower bounds on the visits N_t(s), valid for all states at once with probability at least 1 - delta.

    The bound is t (mu(s) - radius), with `visit_radius`. The paper has the smallest mu in the place of mu(s), which is
    weaker.

    Parameters
    ----------
    chain
        An ergodic chain.
    steps
        t.
    delta
        The probability that a bound fails.

    Returns
    -------
    NDArray[np.float64]
        One bound for each state [S]; may be negative.
    """
    return steps * (chain.law - visit_radius(chain, steps, delta))


def steps_until_met(chain: Chain, need: ArrayLike, delta: float) -> int:
    """Return a number of steps after which the chain has met a need with probability at least 1 - delta.

    This is the least t at which `visits_at_least` is at least b(s) in every state with b(s) > 0.

    Parameters
    ----------
    chain
        An ergodic chain.
    need
        Samples b(s) of each state [S].
    delta
        The probability that the need is not met by then.

    Returns
    -------
    int
        t; 0 if nothing is needed.
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
    """Return (c, d) such that |N_t(s) - t mu(s)| <= c sqrt(t) + d for all s, with probability at least 1 - delta.

    Let L = log(S / delta sqrt(2 / mu_min)). For reversible chains the paper has c^2 = 2 L / gamma and d = 20 L / gamma,
    from Bernstein's inequality for any start (Paulin 2015). For other chains, the paper says, gamma is "simply"
    replaced by the pseudo-spectral gap. But that inequality has constants twice as large, and t + 1 / gamma in the
    place of t. So c^2 = 4 L / gamma and, as L >= 1, d = 42 L / gamma are sufficient.
    """
    L = math.log(len(chain.law) / _checks.open_unit("delta", delta) * math.sqrt(2 / chain.law.min()))
    square, constant = (2, 20) if chain.reversible else (4, 42)
    return math.sqrt(square * L / chain.gap), constant * L / chain.gap


def _stationary_law(P: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return mu [S] with mu P = mu, by eliminating the states one by one, the last first.

    The algorithm of Grassmann, Taksar and Heyman has no subtraction, so each entry is accurate, however small it is.
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
    """Return the spectral gap of a reversible chain, else its pseudo-spectral gap.

    The first is 1 - the second largest absolute eigenvalue, the second max_k gap((P*)^k P^k) / k, with P* the reversed
    chain. M is similar to P without its eigenvalue one, and its transpose to P*, so the gap of (P*)^k P^k is
    1 - |M^k|^2. This is at most one, so no k above 1 / (the best so far) can be better.
    """
    if reversible:
        best = float(1 - np.abs(np.linalg.eigvalsh((M + M.T) / 2)).max())
    else:
        best, power, k = 0.0, M, 1
        while k * best < 1 and k <= POWERS:
            best = max(best, float(1 - np.linalg.norm(power, 2) ** 2) / k)
            power, k = power @ M, k + 1
    if best < LEAST_GAP:
        raise PrecisionError(
            f"policy: its chain mixes too slowly for doubles: a gap of {best:.2g} may be rounding error"
        )
    return best


def _probabilities(mdp: TabularMDP, policy: ArrayLike) -> NDArray[np.float64]:
    """Return the action probabilities [S, A] of a stationary policy."""
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
    """Raise `InputError` unless the chain is irreducible and aperiodic."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components, shortest_path

    graph = sparse.csr_array(P > 0)
    s, s_next = np.nonzero(P)
    label = connected_components(graph, connection="strong")[1]
    transient = np.unique(label[s[label[s] != label[s_next]]])
    closed = label == np.setdiff1d(label, transient)[0]
    if not closed.all():
        raise InputError(
            f"policy: expected a policy whose chain is ergodic; in {name} it never leads from states "
            f"{_some(closed)} to states {_some(~closed)}"
        )
    level = shortest_path(graph, unweighted=True, indices=0).astype(np.int64)
    period = int(np.gcd.reduce(level[s] + 1 - level[s_next]))
    if period > 1:
        raise InputError(
            f"policy: expected a policy whose chain is ergodic; in {name} its period is {period}: it visits states "
            f"{_some(level % period == 0)} only every {period} steps"
        )


def _some(mask: NDArray[np.bool_]) -> str:
    """Return the states of a mask as text, at most five of them."""
    states = np.flatnonzero(mask)
    return ", ".join(map(str, states[:5])) + (", ..." if len(states) > 5 else "")
