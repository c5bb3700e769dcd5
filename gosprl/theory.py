"""The paper's theory as code: its bounds as numbers, on MDPs small enough to look at.

    lower_bound_...            steps that collecting takes at least, on the families of `gosprl.envs.lower_bounds`
    induced_chain              a stationary policy as an ergodic chain: stationary law and spectral gap
    visits_at_least            its visits of each state after t steps, at least; steps_until_met: of a need
    Orders                     the paper's upper bounds on one MDP, with all constants and logarithms set to one
    finite_horizon_example     why a state that nobody reaches within H steps may matter all the same
    reach_within               the largest probability to be there within H steps

A sample of a state is an action taken there, as everywhere in this library: steps to collect include the one that
leaves the state of the last sample.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, shortest_path

from gosprl import _checks
from gosprl.envs.lower_bounds import epsilon_wheel
from gosprl.errors import InputError, PrecisionError
from gosprl.limits import diameter_bound, ssp_diameter_bound
from gosprl.mdp import DENSE_LIMIT, SUM_TOLERANCE, TabularMDP, check_size

POWERS = 10_000  # of a chain that the pseudo-spectral gap looks at: with fewer it is too small, which is safe
LEAST_GAP = 1e-12  # below it a gap cannot be told from rounding

# Appendix "Lower Bound"


def lower_bound_two_state_chain(q: float, need: int) -> float:
    """B / (2 q) + B = B D / 2 + B: with probability at least 1/2, B = `need` samples of y take so many steps or more.

    On `two_state_chain(q)`, whose diameter is D = 1 / q, from either state, for B >= 5. The steps are those of the
    crossings from x, a negative binomial number of tries, and one more for each sample: the T_B of the paper, in whose
    proof each success takes two steps. The claim also holds if T_B is the time of arriving in y, one step less.
    """
    return _checks.whole("need", need, 5) * (0.5 / _checks.open_unit("q", q) + 1)


def lower_bound_epsilon_wheel(epsilons: ArrayLike, need: ArrayLike) -> float:
    """sum_s (b(s) (D_s - 1) / 2 + b(s)): with probability at least 1/2, the samples take so many steps or more.

    On `epsilon_wheel(epsilons)` from the center, for b = `need` [S] samples of the S rim states, each b(s) at least
    6 log(2 S). Here D_s - 1 = 1 / epsilon_s, the steps from the center.
    """
    S = epsilon_wheel(epsilons).num_states - 1  # which checks them
    b = _checks.integers("need", need, 0, None, "numbers of samples")
    if b.shape != (S,):
        raise InputError(f"need: expected samples of each rim state, [S] = ({S},), got shape {b.shape}")
    least = 6 * math.log(2 * S)
    few = np.flatnonzero(b < least)
    if few.size:
        raise InputError(
            f"need: the bound asks for at least 6 log(2 S) = {least:.4g} samples of each of S = {S} rim states, "
            f"got {b[few[0]]} at index {few[0]}"
        )
    return float(b @ (0.5 / np.asarray(epsilons, dtype=float) + 1))


def lower_bound_one_state_modification(mdp: TabularMDP, need: int) -> float:
    """(B - 1) D / 2: with probability at least 1/2, B = `need` samples of s_bar take more steps than that.

    On `one_state_modification(mdp)`, from any start, whatever the collector knows and does; s_bar is the second of
    `farthest_pair(mdp)`. D is the diameter of `mdp`, and D_{s_bar} of the changed MDP.

    The paper's lemma is for B above some threshold that depends on the collector and is not computed. B >= 1 + D log 2
    is enough for all collectors: let v be the hitting times to s_bar, at most D, and N_t the samples of it in t steps.
    Then D N_t - v(s_t) - t does not grow on average, and given the past its next value lies in an interval of length D.
    From 0 or less it comes to (B - 1) D - T at the time T of the last sample, which is (B - 1) D / 2 or more if
    T <= (B - 1) D / 2: with probability at most exp(-(B - 1) / D), by Hoeffding's inequality for supermartingales.
    """
    B, D = _checks.whole("need", need, 1), _diameter(mdp)
    least = 1 + D * math.log(2)
    if least > B:
        raise InputError(f"need: the bound asks for at least 1 + D log 2 = {least:.4g} samples, D = {D:.4g}, got {B}")
    return (B - 1) * D / 2


def lower_bound_hard_to_learn(states: int, actions: int, diameter: float, need: int) -> float:
    """(D + 1) B + D sqrt((S - 1) A B) / 1024: B = `need` samples of s_bar take so many steps or more in expectation.

    On `hard_to_learn(states, actions, diameter, need, special)` for a learner that does not know the special actions,
    if these are drawn uniformly: no bound for given ones, which a learner may happen to try first. The first term is
    what the samples take in expectation, from a state other than s_bar, if the special actions are known; the second
    is the price of learning.

    From a theorem of Cohen et al. (2020); the paper asks for B >= S A. Here A >= 2 and D >= 2 are asked as well: with
    one action there is nothing to learn, and with D = 1, where special actions never fail, every other action need fail
    but once, so that the bound is wrong for large B.
    """
    S, A = _checks.whole("states", states, 2), _checks.whole("actions", actions, 2)
    D, B = _checks.positive("diameter", diameter), _checks.whole("need", need, 1)
    if D < 2:
        raise InputError(f"diameter: the bound asks for at least 2 steps from any state to s_bar, got {diameter!r}")
    if B < S * A:
        raise InputError(f"need: the bound asks for at least states * actions = {S * A}, got {B}")
    return (D + 1) * B + D * math.sqrt((S - 1) * A * B) / 1024


# Appendix "On Ergodicity"


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
    if S * S > DENSE_LIMIT:
        raise InputError(f"mdp: {S} x {S} entries of a chain are too many (limit {DENSE_LIMIT})")
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


# Theorem and applications: orders of magnitude


class Orders:
    """The paper's sample complexities O~(...) on one MDP, every constant and logarithm in them set to one.

    Orders of magnitude, to see what a bound grows with and which of two is larger: not bounds on runs.

    Attributes: S, A as in `mdp`; D_s [S] and D, its diameters; Gamma, the most successors of a pair; burn_in,
    D^{3/2} S^2 A, which is spent on learning whatever is needed.
    """

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self.D = _diameter(mdp)
        self.D_s = mdp.ssp_diameters()
        self.S, self.A = mdp.num_states, mdp.num_actions
        self.Gamma = int(np.diff(mdp.ptr).max())
        self.burn_in: float = self.D**1.5 * self.S**2 * self.A

    def collect(self, need: ArrayLike) -> float:
        """B D + D^{3/2} S^2 A: GOSPRL, for any need (as in `gosprl.limits`) of B samples in all."""
        return diameter_bound(self.mdp, need) + self.burn_in

    def collect_by_state(self, need: ArrayLike) -> float:
        """sum_s (b(s) D_s + D_s^{3/2} S^2 A): the same, by the states where samples are needed."""
        return ssp_diameter_bound(self.mdp, need) + float(np.sum(self.D_s**1.5)) * self.S**2 * self.A

    def treasure(self) -> float:
        """D^{3/2} S^2 A: one sample of every pair, by GOSPRL; their own B D = D S A is less."""
        return self.burn_in

    def treasure_by_ucrl(self) -> float:
        """sum_s D_s^3 S^2 A: the same by 0/1-UCRL, which has a reward of one where samples are needed."""
        return float(np.sum(self.D_s**3)) * self.S**2 * self.A

    def treasure_by_maxent(self, omega: float) -> float:
        """max(D^2 S^2 A / omega^2, D^3 / omega^3): the same by maximising F(lambda) = min_{s, a} lambda(s, a).

        omega is the largest F of any stationary distribution, at most 1 / (number of pairs). The paper prints min, but
        both errors, D S sqrt(A / t) and D / t^{1/3}, must come below omega.
        """
        if _checks.positive("omega", omega) > 1 / len(self.mdp.rows):
            raise InputError(f"omega: expected at most 1 / (number of pairs) = 1 / {len(self.mdp.rows)}, got {omega!r}")
        return max(self.D**2 * self.S**2 * self.A / omega**2, self.D**3 / omega**3)

    def modest(self, eta: float) -> float:
        """D Gamma S A / eta^2 + D S^2 A / eta + D^{3/2} S^2 A: the dynamics of every pair within eta in 1-norm."""
        eta = _checks.positive("eta", eta)
        pairs = self.S * self.A
        return self.D * self.Gamma * pairs / eta**2 + self.D * self.S * pairs / eta + self.burn_in

    def robust_modest(self, eta: float) -> float:
        """D S A / eta^2 + D^{3/2} S^2 A: every single transition probability within eta."""
        return self.D * self.S * self.A / _checks.positive("eta", eta) ** 2 + self.burn_in

    def goal_free_cost_free(self, epsilon: float, *, theta: float = np.inf, c_min: float = 0.0) -> float:
        """D^4 Gamma S A / (omega epsilon^2) + D^3 S^2 A / (omega epsilon) + D^3 Gamma S A / omega^2.

        After so many steps, policies within epsilon of the best for every goal and all costs in [c_min, 1], among those
        that take at most theta times the fastest's steps. omega = max(c_min, epsilon / (theta D)); it must be positive,
        so that theta is finite or c_min positive.
        """
        if _checks.positive("epsilon", epsilon) > 1:
            raise InputError(f"epsilon: expected a number in (0, 1], got {epsilon!r}")
        theta = np.inf if theta == np.inf else _checks.positive("theta", theta)
        c_min = 0.0 if c_min == 0 else _checks.positive("c_min", c_min)
        if theta < 1 or c_min > 1 or (theta == np.inf and c_min == 0):
            raise InputError(
                f"theta, c_min: expected theta >= 1 and c_min in [0, 1], not both theta = inf and c_min = 0, "
                f"got {theta!r} and {c_min!r}"
            )
        S, A, D, Gamma = self.S, self.A, self.D, self.Gamma
        omega = max(c_min, epsilon / (theta * D))
        return D**3 * S * A * (D * Gamma / (omega * epsilon**2) + S / (omega * epsilon) + Gamma / omega**2)

    def diameter(self, epsilon: float) -> float:
        """D^3 S^2 A / epsilon^2: an upper bound on D that is at most a factor of 1 + O(epsilon) too large."""
        return self.D**3 * self.S**2 * self.A / _checks.positive("epsilon", epsilon) ** 2

    def rewards(self, epsilon: float) -> float:
        """D S A / epsilon^2 + D^{3/2} S^2 A: the mean reward of every pair within epsilon."""
        return self.D * self.S * self.A / _checks.positive("epsilon", epsilon) ** 2 + self.burn_in

    def best_state(self, means: ArrayLike) -> float:
        """D H_2 + D^{3/2} S^2 A: after the burn-in, every D H_2 steps divide the chance of a wrong best state by e.

        `means` [S] are the states' mean rewards, and H_2 is the largest i / gap_i^2, gap_i being that of the i-th best
        state to the best, i >= 2.
        """
        r = _checks.floats("means", means)
        if r.shape != (self.S,) or not np.all(np.isfinite(r)):
            raise InputError(f"means: expected finite mean rewards [S] = ({self.S},), got {means!r}")
        gaps = r.max() - np.sort(r)[-2::-1]
        if gaps[0] == 0:
            raise InputError(f"means: expected one best state, got several with {r.max():g}")
        return self.D * float(np.max(np.arange(2, self.S + 1) / gaps**2)) + self.burn_in


# Appendix "Reward-Free Exploration in Finite-Horizon MDPs vs. Cost-Free Exploration in Goal-Conditioned RL"


def finite_horizon_example(horizon: int) -> TabularMDP:
    """x leads to z in H steps or to y in H + 1 steps, by a fair coin; y leads to z, and z back to x, in one step.

    x, y, z are the states 0, 1, 2, then come those on the way to z and those on the way to y. One action, start x.
    Within H = `horizon` steps nobody is ever in y: for goals of so many steps its dynamics do not matter. Yet half of
    all ways from x to z lead through it.
    """
    H = _checks.whole("horizon", horizon, 1)
    check_size("horizon", 2 * H + 3)
    x, y, z = 0, 1, 2
    to_z = [*range(3, H + 2), z]  # the states after x, H of them
    to_y = [*range(H + 2, 2 * H + 2), y]  # H + 1 of them
    s = [x, x, *to_z[:-1], *to_y[:-1], y, z]
    s_next = [to_z[0], to_y[0], *to_z[1:], *to_y[1:], z, x]
    p = np.ones(len(s))
    p[:2] = 0.5
    return TabularMDP((s, np.zeros(len(s), dtype=int), s_next, p), name=f"finite_horizon_example(horizon={H})")


def reach_within(mdp: TabularMDP, goals: ArrayLike, horizon: int) -> NDArray[np.float64]:
    """[S] the largest probability, over all policies, to be in one of `goals` after at most `horizon` steps.

    Backward induction: with no step left it is 1 at the goals and 0 elsewhere, with one more the best of the actions.
    The best policy may depend on the steps left.
    """
    goal = np.zeros(_mdp(mdp).num_states, dtype=bool)
    goal[_checks.integers("goals", goals, 0, mdp.num_states, "states")] = True
    v = goal.astype(float)
    for _ in range(_checks.whole("horizon", horizon, 0)):
        of_row = np.add.reduceat(mdp.prob * v[mdp.succ], mdp.ptr[:-1])
        v = np.where(goal, 1.0, np.maximum.reduceat(of_row, mdp.rows.ptr[:-1]))
    return v


def _mdp(mdp: TabularMDP) -> TabularMDP:
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp: expected a TabularMDP, got {type(mdp).__name__}")
    return mdp


def _diameter(mdp: TabularMDP) -> float:
    """D of an MDP that has one: the bounds are for communicating MDPs of two states or more."""
    D = _mdp(mdp).diameter()
    if not 0 < D < np.inf:
        raise InputError(f"mdp: expected a communicating MDP of at least two states, got diameter {D} of {mdp.name}")
    return D
