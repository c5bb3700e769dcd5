"""Best-state identification (appendix "Best-state identification"): the state with the largest mean reward.

The states are the arms of a bandit: pulling an arm means visiting the state, and the collector walks there. The reward
of a state is the reward of any action taken there: its mean must not depend on the action. Of a table this is checked.
Of any other system it is an assumption, and the guarantee names it.

    budget      Successive Rejects (Audibert, Bubeck and Munos, 2010), for a number n of samples: with K states,
                logbar(K) = 1/2 + sum_{i=2..K} 1/i and n_k = ceil((n - K) / (logbar(K) (K + 1 - k))), phase k samples
                every remaining state until it has n_k samples in all, and drops the state with the smallest mean. (The
                paper prints the sum from i = 1.)
    confidence  Successive Elimination (Even-Dar, Mannor and Mansour, 2006) with intervals that hold at all times: each
                round samples all remaining states, a fifth more than in the round before, and drops those whose upper
                bound is below the lower bound of another, until one remains.

If the states are not known in advance (a Gymnasium environment), a first look samples every action of the states
discovered ten times. States discovered after it are no candidates.

Both methods use all samples, also those of states that the walk passes through. Samples of a fleet whose rewards are
unknown are no pulls; the intervals of elimination allow for any rewards there, Successive Rejects promises nothing
then. The mean of n or more samples is a
reversed martingale, so Hoeffding's bound for n holds for all of them at once. With gaps g to the best state, Successive
Rejects fails with probability at most the sum of 2 exp(-n_k g^2 / 2) over phases k and the k states with the largest
gaps (`error_bound`). The published bound, for exactly n_k samples, has exp(-n_k g^2).
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.applications.common import Answer, Floats, Ints, Walk, kept_on_disk, listed
from gosprl.collecting.requirements import NO_ROWS, Requirement
from gosprl.errors import InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.certificates import mean_intervals
from gosprl.sets.intervals import Confidence
from gosprl.sets.unknown import unknown_of

LOOK = 10  # samples of every pair in the first look, if states have to be discovered
LOOKED = "of the states discovered in the first look"
BY_STATE = "that mean rewards depend on states, not on actions"
ROUND = 1.2  # samples of a round of elimination, as a multiple of the round before


class _Arms(Requirement):
    """The same number of samples of every remaining state."""

    memory: ClassVar[tuple[str, ...]] = ("dropped", "best", "need", "looking", "done", "_known")

    def __init__(self, model: EmpiricalModel, all_states: bool) -> None:
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.rows.num_states, dtype=np.int64)
        self.all_states, self.of_discovered = all_states, not all_states
        self.remaining = np.zeros(model.rows.num_states, dtype=bool)  # [S] the states not dropped
        self.dropped: list[int] = []  # in the order in which they were dropped
        self.best: int | None = None  # the best state, once that is proved
        self.need = 1  # samples of each remaining state
        self.looking = True  # whether the first look is still running
        self.done = False
        self._known = 0  # number of states taken into account

    def update(self, model: EmpiricalModel, rows: Ints) -> Ints | None:
        """Add the states discovered in the first look; `judge` whenever all remaining states have their samples."""
        changed = self._look(model)
        visits = pulls(model)
        while not self.done and self._have(model, visits):
            self.looking = False
            self.pair[:] = 0
            self.judge(model)
            changed = True
        if not changed:
            return NO_ROWS
        self.state[:] = np.where(self.remaining & (not self.done), self.need, 0)
        return None

    def resize(self, model: EmpiricalModel, rows: Ints) -> None:
        """Take over the model's number of states and rows."""
        super().resize(model, rows)
        self.remaining = np.append(self.remaining, np.zeros(model.rows.num_states - len(self.remaining), dtype=bool))

    def remember(self) -> dict[str, Any]:
        """Return the need, the remaining states, and what was decided so far."""
        arrays = {name: getattr(self, name).tolist() for name in ("pair", "state", "remaining")}
        return arrays | {name: copy(getattr(self, name)) for name in self.memory}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Ask for the same as the requirement that remembered this."""
        for name, dtype in (("pair", np.int64), ("state", np.int64), ("remaining", np.bool_)):
            setattr(self, name, np.array(memory[name], dtype=dtype))
        for name in self.memory:
            setattr(self, name, memory[name])

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of candidates at the start, those dropped among them."""
        return self._known

    def as_of_now(self, model: EmpiricalModel) -> tuple[Ints, Ints, int]:
        """With the states discovered since the last update, during the first look."""
        if self.all_states or not self.looking:
            return self.pair, self.state, self._known
        state = self.state.copy()
        state[model.discovered] = self.need
        return np.where(self._looked_at(model, state > 0), LOOK, 0), state, len(model.discovered)

    def _looked_at(self, model: EmpiricalModel, states: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the rows [R] of `states` [S] that the first look samples."""
        return states[model.rows.state] & model.enabled & ~model.certain

    @abstractmethod
    def judge(self, model: EmpiricalModel) -> None:
        """Drop states, increase `need` or set `done`; called when all remaining states have their samples."""

    def _have(self, model: EmpiricalModel, visits: Ints) -> bool:
        enough = np.all(visits[self.remaining] >= self.need) and np.all(model.visits >= self.pair)
        return bool(self.remaining.any() and enough)

    def drop(self, states: Ints) -> None:
        """Drop states, [n] int64."""
        self.remaining[states] = False
        self.dropped.extend(states.tolist())

    def _look(self, model: EmpiricalModel) -> bool:
        """During the first look, add the states discovered to the candidates; return whether there are new ones."""
        states = range(model.states.fixed) if self.all_states else model.discovered
        if len(states) == self._known or not self.looking:
            return False
        self._known = len(states)
        self.remaining[states] = True
        if not self.all_states:
            self.pair[self._looked_at(model, self.remaining)] = LOOK
        return True


class SuccessiveRejects(_Arms):
    """Drop the state with the smallest mean after each phase of a schedule that spends `budget` samples."""

    memory = (*_Arms.memory, "schedule")

    def __init__(self, model: EmpiricalModel, all_states: bool, budget: int) -> None:
        super().__init__(model, all_states)
        self.budget = budget
        self.schedule: list[int] = []

    def _look(self, model: EmpiricalModel) -> bool:
        new = super()._look(model)
        _enough(self.budget, int(self.remaining.sum()))  # raise as early as possible if the budget is too small
        return new

    def judge(self, model: EmpiricalModel) -> None:
        """Start the schedule, or drop the state with the smallest mean."""
        if not self.schedule:
            self.schedule = schedule(self.budget, int(self.remaining.sum()))
        else:
            states = np.flatnonzero(self.remaining)
            worst = states[np.argmin(means(model)[states])]
            self.drop(np.array([worst]))
        phase = len(self.dropped)
        self.done = bool(self.remaining.sum() == 1)
        if not self.done:
            self.need = max(1, self.schedule[phase])


class SuccessiveElimination(_Arms):
    """Drop states whose upper bound is below the lower bound of another, until one remains or epsilon is reached."""

    def __init__(self, model: EmpiricalModel, all_states: bool, delta: float, epsilon: float, scale: float) -> None:
        super().__init__(model, all_states)
        self.delta, self.epsilon, self.scale = delta, epsilon, scale

    def judge(self, model: EmpiricalModel) -> None:
        """Drop the states that are proved to be worse than another; ask for more samples of the others."""
        lower, upper = self.intervals(model)
        worse = np.flatnonzero(self.remaining & (upper < lower[self.remaining].max()))
        self.drop(worse)
        best = int(np.flatnonzero(self.remaining)[np.argmax(lower[self.remaining])])
        others = self.remaining & (np.arange(len(self.remaining)) != best)
        self.done = not others.any() or bool(upper[others].max() - lower[best] <= self.epsilon)
        self.best = best if self.done else None  # may differ from the state with the largest mean
        self.need = max(2, math.ceil(ROUND * self.need))

    def intervals(self, model: EmpiricalModel) -> tuple[Floats, Floats]:
        """Return lower and upper bounds on the mean reward of every state, [S] each."""
        total, squares = _by_state(model, model.reward_sum), _by_state(model, model.reward_sq)
        i = np.maximum(model.rank, 1).astype(np.float64)  # in order of discovery, if their number is not known
        streams = i * (i + 1) if model.max_states is None else model.max_states
        return mean_intervals(pulls(model), total, squares, self.delta, self.scale, streams, unknown_pulls(model))


def schedule(budget: int, states: int) -> list[int]:
    """Return n_1 .. n_{K-1}: the samples of each remaining state at the end of each phase, K = `states`."""
    logbar = 0.5 + sum(1 / i for i in range(2, states + 1))
    return [math.ceil((budget - states) / (logbar * (states + 1 - k))) for k in range(1, states)]


def error_bound(means: ArrayLike, budget: int) -> float:
    """Return an upper bound on the probability that Successive Rejects returns a wrong state.

    Parameters
    ----------
    means
        [K] the true mean rewards of all states, in [0, 1].
    budget
        Samples to decide with.
    """
    given = _checks.floats("means", means)
    if given.ndim != 1 or not given.size or not np.all((given >= 0) & (given <= 1)):
        raise InputError(f"means: expected the mean rewards of all states [K], in [0, 1], got {means!r}")
    ordered = np.sort(given)[::-1]
    gaps = ordered[0] - ordered
    phases = enumerate(schedule(_enough(_checks.whole("budget", budget, 1), len(gaps)), len(gaps)), start=1)
    return float(min(1.0, sum(2 * np.exp(-n * gaps[-k:] ** 2 / 2).sum() for k, n in phases)))


def pulls(model: EmpiricalModel) -> Ints:
    """Return the visits of each state [S], without resets."""
    visits = np.where(model.certain, 0, model.visits)
    return np.where(model.terminal, 0, _by_state(model, visits).astype(np.int64))


def unknown_pulls(model: EmpiricalModel) -> Ints | None:
    """Return the visits of each state [S] whose rewards are not known, beside those that `pulls` counts.

    The rewards of a state are one stream, in the order of issue over all its rows, and the committed samples of several
    rows are no beginning of it: one row may wait for an outcome and another not. So of such a state, what is issued and
    not committed is unknown, too.
    """
    if not model.unknown.size:
        return None
    issued = model.visits + model.unknown + model.pending
    several = _by_state(model, (issued > 0).astype(np.int64)) > 1
    return _by_state(model, model.unknown + np.where(several[model.rows.state], model.pending, 0)).astype(np.int64)


def means(model: EmpiricalModel) -> Floats:
    """Return the mean reward of each state [S] that is known; -inf if there is none."""
    visits = pulls(model)
    return np.where(visits > 0, _by_state(model, model.reward_sum) / np.maximum(visits, 1), -np.inf)


def _by_state(model: EmpiricalModel, per_row: Floats | Ints) -> Floats:
    """Return the sums over the rows of each state, [S] from [R]."""
    return np.bincount(model.rows.state, weights=per_row, minlength=model.rows.num_states).astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class BestState(Answer):
    """The state with the largest mean reward, and the states that may still be better.

    Attributes
    ----------
    state
        The best state; None if nothing was visited.
    candidates
        [n] int64, states that were not dropped.
    dropped
        [m] int64, states that were dropped, in the order in which they were.
    rewards
        [S] mean rewards of the samples; -inf if a state was never visited.
    pulls
        [S] int64, visits of each state.
    budget
        As given.
    """

    state: int | None
    candidates: Ints
    dropped: Ints
    rewards: Floats
    pulls: Ints
    budget: int | None

    def lines(self) -> list[tuple[str, str]]:
        """Return the best states and their means, as (name, value)."""
        if self.state is None:
            return [("best state", "unknown: nothing was visited")]
        order = np.argsort(-self.rewards, kind="stable")[:4]
        model = self.collected.model
        known = [s for s in order.tolist() if np.isfinite(self.rewards[s])]
        ranking = ", ".join(f"{model.states.name(s)}: {self.rewards[s]:.3g}" for s in known)
        shown = [("best state", model.states.name(self.state)), ("mean rewards", ranking)]
        if len(self.candidates) > 1:
            shown.append(("undecided", listed(self.candidates, model)))
        return shown


@kept_on_disk
def best_state(
    system: Any,
    budget: int | None = None,
    *,
    epsilon: float = 0.0,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> BestState:
    """Find the state with the largest mean reward; rewards must be in [0, 1].

    Parameters
    ----------
    system
        A communicating `TabularMDP` whose rewards depend on the state only, a Gymnasium environment or a
        `gosprl.systems.System`.
    budget
        Samples (not steps) to decide with, by Successive Rejects. By default: sample until the answer is right with
        probability at least 1 - delta, by Successive Elimination.
    epsilon
        Without a budget: stop also when the state is proved to be within epsilon of the best. With 0, a run with
        several equally good best states does not stop: give `max_steps`.
    delta
        Level of the answer, if there is no budget.
    confidence
        Family (`"kl"`, `"bernstein"` or a `Confidence`) of the confidence sets that the strategy plans with.
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
    A `BestState`. With a budget its guarantee has no level: `error_bound` needs the true means. Otherwise, at level
    delta, the state is the best or within epsilon of it; after an early stop, the best state is among the candidates.

    Raises
    ------
    InputError
        An argument is wrong; no step was made.
    CollectionError
        The system or the strategy failed, or a reward was not in [0, 1]; `error.result` has everything collected.

    Examples
    --------
    >>> import gosprl
    >>> river = gosprl.envs.make("riverswim6").with_rewards([0.1, 0.2, 0.3, 0.4, 0.5, 0.9], noise="bernoulli")
    >>> answer = gosprl.applications.best_state(river, seed=0)
    >>> answer.state, str(answer.guarantee)
    (5, 'delta=0.1: this is the best state')
    """
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    if budget is not None:
        samples = _checks.whole("budget", budget, 1)
    slack = _checks.number("epsilon", epsilon)
    if slack < 0:
        raise InputError(f"epsilon: expected 0 or a positive number, got {epsilon!r}")
    if slack and budget is not None:
        raise InputError("budget, epsilon: expected one of the two; with a budget, all of it is spent")
    is_checked = isinstance(system, TabularMDP) and system.rewards is not None
    if is_checked:
        _check_state_rewards(system)

    def rule_of(model: EmpiricalModel, all_states: bool) -> _Arms:
        if budget is not None:
            return SuccessiveRejects(model, all_states, samples)
        return SuccessiveElimination(model, all_states, delta, slack, walk.scale)

    run = walk.run(system, rule_of, rewards=True)
    rule, model, place = run.rule, run.model, run.model.arrangement().place
    rewards, remaining, lives = means(model), np.flatnonzero(rule.remaining), model.states.lives
    seen: NDArray[np.bool_] = np.isfinite(rewards[remaining])
    looks_best = int(remaining[np.argmax(rewards[remaining])]) if seen.any() else None
    best = looks_best if rule.best is None else rule.best
    is_known = unknown_of(model, None) is None
    promise = run.qualified(_promise(budget, walk.at(delta), slack, run.result.stop, rule.all_states, is_known))
    promise = promise if rule.all_states else promise.within(LOOKED)
    return BestState(
        state=None if best is None else int(place[best]),
        candidates=place[remaining],
        dropped=place[rule.dropped],
        rewards=rewards[lives],
        pulls=pulls(model)[lives],
        budget=budget,
        collected=run.result,
        guarantee=promise if is_checked else promise.assuming(BY_STATE),
    )


def _promise(
    budget: int | None, level: Guarantee, epsilon: float, stop: str, all_states: bool, is_known: bool
) -> Guarantee:
    """Return the guarantee of the answer; `is_known`: whether the outcome of every sample is."""
    if budget is not None and not is_known:
        return Guarantee(why="samples were lost, and means of the others promise nothing: leave out the budget")
    if budget is not None:
        early = "" if stop == "met" else "; stopped before the budget was spent"
        rate = "the chance of an error falls exponentially with the budget, at a rate that the gaps decide"
        return Guarantee(why=rate + early + ("" if all_states else f"; {LOOKED}"))
    if stop != "met":
        return level.about("the best state is among the candidates")
    return level.about("this is the best state" + (f", or within {epsilon:g} of it" if epsilon else ""))


def _enough(budget: int, states: int) -> int:
    """Return the budget if it has a sample for every state; raise `InputError` otherwise."""
    if budget < states:
        raise InputError(f"budget: expected at least one sample of each of the {states} states, got {budget}")
    return budget


def _check_state_rewards(mdp: TabularMDP) -> None:
    """Raise `InputError` unless the rewards of a state are the same for all its actions."""
    assert mdp.rewards is not None
    low, high = (part.reduceat(mdp.rewards, mdp.rows.ptr[:-1]) for part in (np.minimum, np.maximum))
    differ = np.flatnonzero(high - low > 1e-12)
    if differ.size:
        s = int(differ[0])
        raise InputError(
            f"rewards: expected those of a state to be the same for all its actions, got {low[s]:g} and {high[s]:g} in "
            f"state {s}; give means [S] with mdp.with_rewards(means), or compare pairs with estimate_rewards"
        )
