"""The paper's upper bounds on one MDP, with all constants and logarithms set to one."""

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.theory._inputs import _diameter
from gosprl.theory.limits import diameter_bound, ssp_diameter_bound


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
        """B D + D^{3/2} S^2 A: GOSPRL, for any need (as in `gosprl.theory.limits`) of B samples in all."""
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
