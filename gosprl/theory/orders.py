"""The paper's upper bounds on one MDP, with all constants and logarithms set to one."""

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.theory._inputs import _diameter
from gosprl.theory.limits import diameter_bound, ssp_diameter_bound


class Orders:
    """The paper's sample complexities O~(...) on one MDP, with every constant and logarithm set to one.

    These are orders of magnitude, to see how a bound grows and to compare bounds. They are not bounds on runs.

    Parameters
    ----------
    mdp
        A communicating MDP with at least two states.

    Attributes
    ----------
    S, A
        Numbers of states and actions.
    D_s, D
        SSP-diameters [S] and diameter.
    Gamma
        The largest number of successors of a pair.
    burn_in
        D^{3/2} S^2 A, the term for learning, which does not depend on the need.
    """

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self.D = _diameter(mdp)
        self.D_s = mdp.ssp_diameters()
        self.S, self.A = mdp.num_states, mdp.num_actions
        self.Gamma = int(np.diff(mdp.ptr).max())
        self.burn_in: float = self.D**1.5 * self.S**2 * self.A

    def collect(self, need: ArrayLike) -> float:
        """Return B D + D^{3/2} S^2 A: GOSPRL, for a need (as in `gosprl.theory.limits`) of B samples in total."""
        return diameter_bound(self.mdp, need) + self.burn_in

    def collect_by_state(self, need: ArrayLike) -> float:
        """Return sum_s (b(s) D_s + D_s^{3/2} S^2 A): the paper's refined bound for the same."""
        return ssp_diameter_bound(self.mdp, need) + float(np.sum(self.D_s**1.5)) * self.S**2 * self.A

    def treasure(self) -> float:
        """Return D^{3/2} S^2 A: one sample of every pair, by GOSPRL; the term B D = D S A is smaller."""
        return self.burn_in

    def treasure_by_ucrl(self) -> float:
        """Return sum_s D_s^3 S^2 A: the same by 0/1-UCRL, whose reward is one where samples are needed."""
        return float(np.sum(self.D_s**3)) * self.S**2 * self.A

    def treasure_by_maxent(self, omega: float) -> float:
        """Return max(D^2 S^2 A / omega^2, D^3 / omega^3): the same by maximising F(lambda) = min_{s, a} lambda(s, a).

        The paper prints min, but both errors, D S sqrt(A / t) and D / t^{1/3}, must be below omega.

        Parameters
        ----------
        omega
            The largest F of any stationary distribution, at most 1 / (number of pairs).
        """
        if _checks.positive("omega", omega) > 1 / len(self.mdp.rows):
            raise InputError(f"omega: expected at most 1 / (number of pairs) = 1 / {len(self.mdp.rows)}, got {omega!r}")
        return max(self.D**2 * self.S**2 * self.A / omega**2, self.D**3 / omega**3)

    def modest(self, eta: float) -> float:
        """Return D Gamma S A / eta^2 + D S^2 A / eta + D^{3/2} S^2 A: dynamics of every pair within eta in 1-norm."""
        eta = _checks.positive("eta", eta)
        pairs = self.S * self.A
        return self.D * self.Gamma * pairs / eta**2 + self.D * self.S * pairs / eta + self.burn_in

    def robust_modest(self, eta: float) -> float:
        """Return D S A / eta^2 + D^{3/2} S^2 A: every transition probability within eta."""
        return self.D * self.S * self.A / _checks.positive("eta", eta) ** 2 + self.burn_in

    def goal_free_cost_free(self, epsilon: float, *, theta: float = np.inf, c_min: float = 0.0) -> float:
        """Return D^4 Gamma S A / (omega epsilon^2) + D^3 S^2 A / (omega epsilon) + D^3 Gamma S A / omega^2.

        After that many steps, policies can be planned for every goal and all costs in [c_min, 1] that are within
        epsilon of the best, among policies that take at most theta times the steps of the fastest.
        omega = max(c_min, epsilon / (theta D)).

        Parameters
        ----------
        epsilon
            In (0, 1].
        theta
            At least 1; finite if c_min is 0.
        c_min
            In [0, 1]; positive if theta is inf.
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
        """Return D^3 S^2 A / epsilon^2: an upper bound on D that is at most a factor of 1 + O(epsilon) too large."""
        return self.D**3 * self.S**2 * self.A / _checks.positive("epsilon", epsilon) ** 2

    def rewards(self, epsilon: float) -> float:
        """Return D S A / epsilon^2 + D^{3/2} S^2 A: the mean reward of every pair within epsilon."""
        return self.D * self.S * self.A / _checks.positive("epsilon", epsilon) ** 2 + self.burn_in

    def best_state(self, means: ArrayLike) -> float:
        """Return D H_2 + D^{3/2} S^2 A: after the burn-in, D H_2 steps divide the error probability by e.

        H_2 is the largest i / gap_i^2 over i >= 2, where gap_i is the difference between the largest mean and the i-th
        largest.

        Parameters
        ----------
        means
            Mean rewards of the states [S]; the largest must be unique.
        """
        r = _checks.floats("means", means)
        if r.shape != (self.S,) or not np.all(np.isfinite(r)):
            raise InputError(f"means: expected finite mean rewards [S] = ({self.S},), got {means!r}")
        gaps = r.max() - np.sort(r)[-2::-1]
        if gaps[0] == 0:
            raise InputError(f"means: expected one best state, got several with {r.max():g}")
        return self.D * float(np.max(np.arange(2, self.S + 1) / gaps**2)) + self.burn_in
