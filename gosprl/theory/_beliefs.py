"""The collector that does not know which of K candidates it walks in, as a shortest path over what it knows.

Nodes. What matters of the past is (state, remaining need, likelihood of the past under each candidate up to a common
factor). Nodes do not depend on the prior w: the posterior of candidate k at a node is proportional to w_k times its
likelihood. Pasts with the same likelihoods, such as the same samples in another order, share a node.

Leaves. Stochastic candidates have infinitely many nodes, so some nodes have no successors in the graph: the leaves. At
a leaf with posterior beta the optimum is

    at least  sum_k beta_k V_k(s, m)      the truth is told there: the optimum with known dynamics
    at most   min_pi sum_k beta_k U_k^pi  a fixed policy pi is followed from there on

so that the shortest paths to met needs or leaves, with these costs at the leaves, are a lower and an upper bound. Where
one candidate is left, both are V_k, and the leaf is never expanded.

Narrowing. Let x be the expected visits of the leaves under the policy of the lower bound. Following this policy shows
that upper - lower <= sum of x (upper - lower) over leaves. The leaves with the largest terms are expanded next.

Rounding. Likelihoods within a relative 1e-10 share a node. Shortest paths are certified (`gosprl.planning.ssp`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.mdp.tabular import TabularMDP
from gosprl.theory._candidates import Candidates, Optima
from gosprl.theory._remaining import Floats, Ints

DIGITS = 10  # of a logarithm of a likelihood, by which nodes are compared
EAGER = 2000  # nodes up to which all leaves are expanded: finite graphs of this size need no bounds at leaves
SHARE = 0.95  # of the difference between the bounds that the leaves to be expanded make up
GROWTH = 0.25  # the largest number of leaves expanded at once, as a share of the nodes
MET = -1  # in the place of a node: nothing is missing


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on the steps of the best collector for one prior."""

    lower: float
    upper: float
    steps: Floats  # [K] at most: steps of one collector in each candidate, whose mean is `upper` up to rounding


class Beliefs:
    """The graph of nodes, which grows.

    Parameters
    ----------
    candidates
        The K candidates.
    optima
        As `Candidates.known_optima` returns them.
    max_nodes
        The graph does not grow beyond this number of nodes by much.

    Attributes
    ----------
    state, level
        [n] of each node; node 0 is the start.
    log
        [n, K] logarithms of the likelihoods; the largest of each node is 0.
    """

    def __init__(self, candidates: Candidates, optima: Optima, max_nodes: int) -> None:
        self.candidates, self.optima, self.max_nodes = candidates, optima, max_nodes
        self._fixed: Floats | None = None  # [policies, K, levels, S], once needed
        K = len(candidates.prob)
        with np.errstate(divide="ignore"):
            self._log_prob = np.log(candidates.prob.T)  # [E, K]
        self.state, self.level = np.array([candidates.start]), np.array([len(candidates.down) - 1])
        self.log = np.zeros((1, K))
        self._leaf = np.array([True])
        self._numbers = {(candidates.start, len(candidates.down) - 1, self.log.tobytes()): 0}
        nothing = np.empty(0, dtype=np.int64)
        self._edges = (nothing, nothing, nothing)  # (from node, transition in 0 .. E - 1, to node or MET)
        self._expand_all()

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.state)

    def bounds(self, prior: Floats, tolerance: float) -> Bounds:
        """Return bounds for a prior [K] of positive weights, after expanding what that takes.

        They differ by more than a relative `tolerance` only if the graph has reached its largest size, or if the need
        may remain unmet.
        """
        while True:
            beta = self._posterior(prior)
            low, policies = self._known(beta), self._best_fixed(beta)
            high = self._at_leaves(beta, policies)
            below, above = _Paths(self, beta, low), _Paths(self, beta, high)
            lower, upper = below.lower, above.upper
            leaves = self._worst(below, low, high)
            if upper <= lower * (1 + tolerance) or len(self) >= self.max_nodes or not leaves.size:
                return Bounds(lower, upper, self._steps(above, beta, prior, policies))
            self._expand(leaves)

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """The leaves [n] at which more than one candidate is possible."""
        return np.asarray(self._leaf & (np.isfinite(self.log).sum(axis=1) > 1))

    def _posterior(self, prior: Floats) -> Floats:
        """Return the posterior of each candidate at each node, [n, K]."""
        weight = prior * np.exp(self.log)
        total = weight.sum(axis=1, keepdims=True)
        return np.asarray(weight / total)

    def _known(self, beta: Floats) -> Floats:
        """Return the lower bound for each node [n]: the truth is told there."""
        return _mean(beta, self.optima.lower[:, self.level, self.state].T)

    def _best_fixed(self, beta: Floats) -> Ints:
        """Return the number of the fixed policy that is best at each node [n]; -1 at leaves with one candidate."""
        undecided = np.flatnonzero(self.undecided)
        best = np.full(len(self), -1)
        if undecided.size:
            if self._fixed is None:
                self._fixed = self.candidates.fixed_policies(self.optima.rows)
            level, state = self.level[undecided], self.state[undecided]
            values = [_mean(beta[undecided], steps[:, level, state].T) for steps in self._fixed]
            best[undecided] = np.argmin(values, axis=0)
        return best

    def _fixed_steps(self, nodes: Ints, policies: Ints) -> Floats:
        """Return the steps from each of `nodes` [n] in each candidate, [n, K], of the policies [n] chosen for them."""
        level, state = self.level[nodes], self.state[nodes]
        steps = self.optima.upper[:, level, state].T.copy()  # where one candidate is possible, its optimal policy
        chosen = np.flatnonzero(policies >= 0)
        if chosen.size and self._fixed is not None:
            steps[chosen] = self._fixed[policies[chosen], :, level[chosen], state[chosen]]
        return steps

    def _at_leaves(self, beta: Floats, policies: Ints) -> Floats:
        """Return the upper bound for each leaf, 0 for other nodes, [n]."""
        upper = np.zeros(len(self))
        leaves = np.flatnonzero(self._leaf)
        upper[leaves] = _mean(beta[leaves], self._fixed_steps(leaves, policies[leaves]))
        return upper

    def _steps(self, paths: "_Paths", beta: Floats, prior: Floats, policies: Ints) -> Floats:
        """Return the expected steps [K] of the collector that follows the upper bound's policy.

        Visits of a node while k is the truth are its visits times the posterior of k: given the past, that is the
        probability of k.
        """
        if not np.isfinite(paths.upper):
            return np.full(len(prior), np.inf)
        visits = paths.visits()
        nodes = np.flatnonzero(visits)
        each = np.ones((len(nodes), len(prior)))
        leaf = self._leaf[nodes]
        each[leaf] = self._fixed_steps(nodes[leaf], policies[nodes[leaf]])
        joint = visits[nodes, None] * beta[nodes]
        return np.asarray(np.where(joint > 0, joint * np.where(joint > 0, each, 0.0), 0.0).sum(axis=0) / prior)

    def _worst(self, below: "_Paths", low: Floats, high: Floats) -> Ints:
        """Return the leaves [m] that make up most of the difference between the bounds, worst first."""
        undecided = np.flatnonzero(self.undecided)
        with np.errstate(invalid="ignore"):
            gap = np.where(high[undecided] > low[undecided], high[undecided] - low[undecided], 0.0)
        gap[np.isinf(gap)] = 1e6 * (1 + low[undecided][np.isinf(gap)])  # finite, and before all others
        terms = below.visits()[undecided] * gap if np.isfinite(below.lower) else gap
        order = np.argsort(-terms, kind="stable")
        order = order[terms[order] > 0]
        enough = int(np.searchsorted(np.cumsum(terms[order]), SHARE * terms.sum())) + 1
        return undecided[order[: min(enough, max(1, int(GROWTH * len(self))))]]

    def _expand_all(self) -> None:
        while len(self) < min(EAGER, self.max_nodes):
            leaves = np.flatnonzero(self.undecided)
            if not leaves.size:
                return
            self._expand(leaves)

    def _expand(self, leaves: Ints) -> None:
        """Add the successors of leaves [m] to the graph."""
        origin, entry = self._transitions(leaves)
        level = self.level[origin]
        level = level - self.candidates.down[level, self.candidates.row[entry]]
        log = self.log[origin] + self._log_prob[entry]
        top = log.max(axis=1)
        possible = np.isfinite(top)
        origin, entry, level, log = origin[possible], entry[possible], level[possible], log[possible]
        target = self._number(self.candidates.succ[entry], level, log - top[possible, None])
        self._leaf[leaves] = False
        before = self._edges
        self._edges = np.append(before[0], origin), np.append(before[1], entry), np.append(before[2], target)

    def _transitions(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return (node, transition) for all transitions of all rows of `nodes`."""
        ptr, rows = self.candidates.ptr, self.candidates.rows
        begin, end = ptr[rows.ptr[self.state[nodes]]], ptr[rows.ptr[self.state[nodes] + 1]]
        origin = np.repeat(nodes, end - begin)
        first = np.cumsum(end - begin) - (end - begin)
        return origin, np.arange(len(origin)) + np.repeat(begin - first, end - begin)

    def _number(self, state: Ints, level: Ints, log: Floats) -> Ints:
        """Return the node of each (state, level, likelihoods), all [e]; new ones become leaves."""
        keys = np.round(log, DIGITS) + 0.0  # no -0.0, whose bytes differ
        target = np.full(len(state), MET)
        new: list[int] = []
        for i in np.flatnonzero(level).tolist():
            key = (int(state[i]), int(level[i]), keys[i].tobytes())
            number = self._numbers.setdefault(key, len(self._numbers))
            if number == len(self) + len(new):
                new.append(i)
            target[i] = number
        self.state, self.level = np.append(self.state, state[new]), np.append(self.level, level[new])
        self.log = np.concatenate([self.log, log[new]])
        self._leaf = np.append(self._leaf, np.ones(len(new), dtype=bool))
        return target

    def problem(self, beta: Floats, at_leaves: Floats) -> tuple[TabularMDP, Floats]:
        """Return the shortest-path problem over nodes and its costs [n + 1, A]; the goal is the last state.

        Parameters
        ----------
        beta
            [n, K] posteriors.
        at_leaves
            [n] cost of each leaf; at inf there is no way from the leaf to the goal.
        """
        n, leaves = len(self), np.flatnonzero(self._leaf)
        origin, entry, target = self._edges
        prob = (beta @ self.candidates.prob)[origin, entry]
        action = self.candidates.rows.action[self.candidates.row[entry]]
        used = prob > 0
        ends = np.where(np.isfinite(at_leaves[leaves]), n, leaves)
        none = np.zeros(len(leaves) + 1, dtype=np.int64)
        parts = (
            np.concatenate([origin[used], leaves, [n]]),
            np.concatenate([action[used], none]),
            np.concatenate([np.where(target == MET, n, target)[used], ends, [n]]),
            np.concatenate([prob[used], none + 1.0]),
        )
        costs = np.ones((n + 1, self.candidates.rows.num_actions))
        finite = leaves[np.isfinite(at_leaves[leaves])]
        costs[finite, 0] = at_leaves[finite]
        return TabularMDP(parts, states=n + 1, actions=costs.shape[1]), costs


class _Paths:
    """Shortest paths from node 0, with given costs [n] at the leaves."""

    def __init__(self, beliefs: Beliefs, beta: Floats, at_leaves: Floats) -> None:
        from gosprl.planning.ssp import plan

        self._mdp, costs = beliefs.problem(beta, at_leaves)
        solved = plan(self._mdp, [len(beliefs)], costs=costs, precision=1e-9)
        self._rows = solved.rows
        self.lower = float(solved.values[0])
        self.upper = self.lower * (1 + solved.gap)

    def visits(self) -> Floats:
        """Return the expected visits of each node [n] from node 0, under the policy of the plan; 0: not reached."""
        from scipy.sparse import coo_array, eye_array
        from scipy.sparse.csgraph import breadth_first_order
        from scipy.sparse.linalg import spsolve

        n, mdp = len(self._rows) - 1, self._mdp
        rows = np.maximum(self._rows[:n], 0)  # nodes without a way to the goal are not reached
        size = mdp.ptr[rows + 1] - mdp.ptr[rows]
        slot = np.arange(size.sum()) + np.repeat(mdp.ptr[rows] - (np.cumsum(size) - size), size)
        places = (np.repeat(np.arange(n), size), mdp.succ[slot])
        chain = coo_array((mdp.prob[slot], places), shape=(n, n + 1)).tocsr()[:, :n]
        reached = np.sort(breadth_first_order(chain, 0, return_predecessors=False))
        inner = chain[reached][:, reached]
        visits = np.zeros(n)
        start = (reached == 0).astype(float)
        visits[reached] = spsolve((eye_array(len(reached)) - inner.T).tocsc(), start)
        return visits


def _mean(beta: Floats, values: Floats) -> Floats:
    """Return the mean of `values` [n, K] under posteriors [n, K]; what has no probability counts 0, even if inf."""
    return np.asarray(np.where(beta > 0, beta * np.where(beta > 0, values, 0.0), 0.0).sum(axis=1))
