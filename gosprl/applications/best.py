"""Best-state identification (appendix "Best-state identification"): the state with the largest mean reward.

A bandit whose arms are states: pulling one is a visit, and the collector walks there. The reward of a state is what the
step out of it brings, whatever the action.

    budget      Successive Rejects (Audibert, Bubeck and Munos, 2010), for a number n of samples: with K states,
                logbar(K) = 1/2 + sum_{i=2..K} 1/i and n_k = ceil((n - K) / (logbar(K) (K + 1 - k))), phase k samples
                every state that is left n_k times in all, and drops the worst. (The paper prints the sum from i = 1.)
    confidence  Successive Elimination (Even-Dar, Mannor and Mansour, 2006) with intervals that hold at all times: all
                states that are left are sampled, a fifth more each round, and those dropped whose upper end is below
                another's lower end, until one is left.

Where states are not known in advance (a Gymnasium environment), every action of those found is sampled ten times before
all that, and what is found later is no candidate.

Both use all samples, also those that the walk brought on its way. The mean of n or more of them is a reversed
martingale, so Hoeffding's bound for n holds for all of them at once: with gaps g to the best state, Successive Rejects
fails with probability at most the sum of 2 exp(-n_k g^2 / 2) over phases k and the k states with the largest gaps
(`error_bound`). Their bound, for exactly n_k samples, has exp(-n_k g^2).
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Walk, listed
from gosprl.collecting.requirements import NO_ROWS, Requirement
from gosprl.errors import InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.certificates import mean_intervals
from gosprl.sets.intervals import Confidence

LOOK = 10  # samples of every pair in the first look, where states have to be found
AMONG = "; of the states discovered in the first look"
ROUND = 1.2  # samples asked for in a round of elimination, as a multiple of those before


class _Arms(Requirement):
    """The same number of samples of every state that is left."""

    def __init__(self, model: EmpiricalModel, all_states: bool) -> None:
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.num_states, dtype=np.int64)
        self.all_states = all_states
        self.left = np.zeros(model.num_states, dtype=bool)  # [S]
        self.dropped: list[int] = []  # in that order
        self.best: int | None = None  # once that is proved
        self.need = 1  # of each
        self.looking = True  # at first, for all the states there are
        self.done = False
        self._known = 0

    def update(self, model: EmpiricalModel, rows: Ints) -> Ints | None:
        changed = self._look(model)
        visits = pulls(model)
        while not self.done and self._have(model, visits):
            self.looking = False
            self.pair[:] = 0
            self.judge(model)
            changed = True
        if not changed:
            return NO_ROWS
        self.state[:] = np.where(self.left & (not self.done), self.need, 0)
        return None

    @abstractmethod
    def judge(self, model: EmpiricalModel) -> None:
        """All that are left have what they need: drop some, ask for more, or be done."""

    def _have(self, model: EmpiricalModel, visits: Ints) -> bool:
        enough = np.all(visits[self.left] >= self.need) and np.all(model.visits >= self.pair)
        return bool(self.left.any() and enough)

    def drop(self, states: Ints) -> None:
        self.left[states] = False
        self.dropped.extend(states.tolist())

    def _look(self, model: EmpiricalModel) -> bool:
        """What is new while looking is a candidate too."""
        found = np.arange(model.num_states) if self.all_states else np.array(model.discovered, dtype=np.int64)
        if len(found) == self._known or not self.looking:
            return False
        self._known = len(found)
        self.left[found] = ~model.terminal[found]
        if not self.all_states:
            self.pair[self.left[model.rows.state]] = LOOK
        return True


class Rejects(_Arms):
    """Successive Rejects."""

    def __init__(self, model: EmpiricalModel, all_states: bool, budget: int) -> None:
        super().__init__(model, all_states)
        self.budget = budget
        self.schedule: list[int] = []

    def _look(self, model: EmpiricalModel) -> bool:
        new = super()._look(model)
        _enough(self.budget, int(self.left.sum()))  # said at once, not after a long look
        return new

    def judge(self, model: EmpiricalModel) -> None:
        if not self.schedule:
            self.schedule = schedule(self.budget, int(self.left.sum()))
        else:
            states = np.flatnonzero(self.left)
            worst = states[np.argmin(means(model)[states])]
            self.drop(np.array([worst]))
        phase = len(self.dropped)
        self.done = self.left.sum() == 1
        if not self.done:
            self.need = max(1, self.schedule[phase])


class Elimination(_Arms):
    """Successive Elimination."""

    def __init__(self, model: EmpiricalModel, all_states: bool, delta: float, epsilon: float, scale: float) -> None:
        super().__init__(model, all_states)
        self.delta, self.epsilon, self.scale = delta, epsilon, scale

    def judge(self, model: EmpiricalModel) -> None:
        lower, upper = self.intervals(model)
        worse = np.flatnonzero(self.left & (upper < lower[self.left].max()))
        self.drop(worse)
        best = int(np.flatnonzero(self.left)[np.argmax(lower[self.left])])
        others = self.left & (np.arange(len(self.left)) != best)
        self.done = not others.any() or bool(upper[others].max() - lower[best] <= self.epsilon)
        self.best = best if self.done else None  # not the largest mean: that state's lower end may be far below
        self.need = max(2, math.ceil(ROUND * self.need))

    def intervals(self, model: EmpiricalModel) -> tuple[Floats, Floats]:
        """Of the mean reward of every state."""
        total, squares = _by_state(model, model.reward_sum), _by_state(model, model.reward_sq)
        return mean_intervals(pulls(model), total, squares, self.delta, self.scale)


def schedule(budget: int, states: int) -> list[int]:
    """n_1 .. n_{K-1}: how often each state that is left has been sampled by the end of each phase."""
    logbar = 0.5 + sum(1 / i for i in range(2, states + 1))
    return [math.ceil((budget - states) / (logbar * (states + 1 - k))) for k in range(1, states)]


def error_bound(means: ArrayLike, budget: int) -> float:
    """What the chance of Successive Rejects to name a wrong state is at most, for true means [K] of all states."""
    given = _checks.floats("means", means)
    if given.ndim != 1 or not given.size or not np.all((given >= 0) & (given <= 1)):
        raise InputError(f"means: expected those of all states [K], in [0, 1], got {means!r}")
    ordered = np.sort(given)[::-1]
    gaps = ordered[0] - ordered
    phases = enumerate(schedule(_enough(_checks.whole("budget", budget, 1), len(gaps)), len(gaps)), start=1)
    return float(min(1.0, sum(2 * np.exp(-n * gaps[-k:] ** 2 / 2).sum() for k, n in phases)))


def pulls(model: EmpiricalModel) -> Ints:
    """[S] visits, resets aside."""
    return np.where(model.terminal, 0, _by_state(model, model.visits).astype(np.int64))


def means(model: EmpiricalModel) -> Floats:
    """[S] mean rewards; -inf where none was seen."""
    visits = pulls(model)
    return np.where(visits > 0, _by_state(model, model.reward_sum) / np.maximum(visits, 1), -np.inf)


def _by_state(model: EmpiricalModel, per_row: Floats | Ints) -> Floats:
    """[S] sums over the rows of each state."""
    return np.bincount(model.rows.state, weights=per_row, minlength=model.num_states).astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class BestState(Answer):
    """The state that looks best, and which others may still be."""

    state: int | None  # None if nothing was visited
    candidates: Ints  # states that were not dropped
    dropped: Ints  # the others, in the order in which they were
    rewards: Floats  # [S] means of what was seen; -inf where nothing was
    pulls: Ints  # [S] visits
    budget: int | None

    def lines(self) -> list[tuple[str, str]]:
        if self.state is None:
            return [("best state", "unknown: nothing was visited")]
        order = np.argsort(-self.rewards, kind="stable")[:4]
        ranking = ", ".join(f"{s}: {self.rewards[s]:.3g}" for s in order.tolist() if np.isfinite(self.rewards[s]))
        shown = [("best state", str(self.state)), ("mean rewards", ranking)]
        if len(self.candidates) > 1:
            shown.append(("undecided", listed(self.candidates)))
        return shown


def best_state(
    system: Any,
    budget: int | None = None,
    *,
    epsilon: float = 0.0,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: Any = None,
    **options: Any,
) -> BestState:
    """Find the state with the largest mean reward; rewards must be in [0, 1].

    Parameters
    ----------
    budget
        Samples (not steps) to decide with, by Successive Rejects. Without it: until the answer is right with
        probability at least 1 - delta, by Successive Elimination.
    epsilon
        Without a budget: also stop once the state is within epsilon of the best. Equally good states are never told
        apart.
    delta, confidence, options
        Level of the answer; sets by which the collector walks, and its other options.
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    if budget is not None:
        samples = _checks.whole("budget", budget, 1)
    slack = _checks.number("epsilon", epsilon)
    if slack < 0:
        raise InputError(f"epsilon: expected 0 or a positive number, got {epsilon!r}")
    if slack and budget is not None:
        raise InputError("budget, epsilon: the budget is spent whatever is known; give one of the two")
    if isinstance(system, TabularMDP) and system.rewards is not None:
        _check_state_rewards(system)

    def rule_of(model: EmpiricalModel, all_states: bool) -> _Arms:
        if budget is not None:
            return Rejects(model, all_states, samples)
        return Elimination(model, all_states, delta, slack, walk.scale)

    rule, result = walk.run(system, rule_of, rewards=True)
    model = result.model
    rewards, left = means(model), np.flatnonzero(rule.left)
    seen: NDArray[np.bool_] = np.isfinite(rewards[left])
    looks_best = int(left[np.argmax(rewards[left])]) if seen.any() else None
    return BestState(
        state=looks_best if rule.best is None else rule.best,
        candidates=left,
        dropped=np.array(rule.dropped, dtype=np.int64),
        rewards=rewards,
        pulls=pulls(model),
        budget=budget,
        collected=result,
        guarantee=_promise(budget, walk.at(delta), slack, result.stop, "" if rule.all_states else AMONG),
    )


def _promise(budget: int | None, level: Guarantee, epsilon: float, stop: str, among: str) -> Guarantee:
    if budget is not None:
        early = "" if stop == "met" else "; stopped before the budget was spent"
        rate = "the chance of an error falls exponentially with the budget, at a rate that the gaps decide"
        return Guarantee(why=rate + early + among)
    if stop != "met":
        return level.about(f"the best state is among the candidates{among}")
    return level.about("this is the best state" + (f", or within {epsilon:g} of it" if epsilon else "") + among)


def _enough(budget: int, states: int) -> int:
    if budget < states:
        raise InputError(f"budget: expected at least one sample of each of the {states} states, got {budget}")
    return budget


def _check_state_rewards(mdp: TabularMDP) -> None:
    assert mdp.rewards is not None
    low, high = (part.reduceat(mdp.rewards, mdp.rows.ptr[:-1]) for part in (np.minimum, np.maximum))
    differ = np.flatnonzero(high - low > 1e-12)
    if differ.size:
        s = int(differ[0])
        raise InputError(
            f"rewards: expected those of a state to be the same for all its actions, got {low[s]:g} and {high[s]:g} in "
            f"state {s}; give means [S], mdp.with_rewards(means), or compare pairs with estimate_rewards"
        )
