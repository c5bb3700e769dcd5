"""Sparse reward discovery (section "Sparse Reward Discovery (TREASURE)"): b(s, a) = 1, or more, everywhere.

A reward is hidden at one state-action pair, and no other reward indicates where. It is found at the latest when every
pair has been sampled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosprl.applications.common import Answer, Walk, check_communicating, kept_on_disk, listed
from gosprl.collecting.collect import collect
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.sets.intervals import Confidence


@dataclass(frozen=True, eq=False, repr=False)
class Treasure(Answer):
    """Where the reward is: the first one above the threshold or, without a threshold, the pair with the largest mean.

    Attributes
    ----------
    state, action
        The pair with the reward; None if no reward was found.
    reward
        The reward above the threshold, or the mean reward of the pair; the largest mean if no reward was found.
    covered
        Proportion of the states with a need whose need is met. If states have to be discovered, of those discovered.
    threshold
        As given.
    """

    state: int | None
    action: int | None
    reward: float
    covered: float
    threshold: float | None

    @property
    def found(self) -> bool:
        """Whether a reward was found."""
        return self.state is not None

    @property
    def reached(self) -> bool:
        """With a threshold: whether a reward above it was found. Otherwise: whether every pair was sampled."""
        return self.found if self.threshold is not None else super().reached

    def lines(self) -> list[tuple[str, str]]:
        """Return the reward and the coverage, as (name, value)."""
        asked, model = self.collected.states, self.collected.model
        where = "nothing"
        if self.found:
            where = f"reward {self.reward:g} at {listed(np.array([self.state]), model)}, action {self.action}"
        among = f"{asked} states asked for, of {model.num_states}" if asked < model.num_states else "states"
        if self.collected.of_discovered:
            among = f"{asked} states discovered"
        lost = sum(n for _, _, n in self.collected.unknown)
        unknown = [("unknown", f"the rewards of {lost:,} samples that were lost or late")] if lost else []
        return [("found", where), ("covered", f"{self.covered:.1%} of the {among}"), *unknown]


@kept_on_disk
def find_treasure(
    system: Any,
    need: ArrayLike = 1,
    *,
    threshold: float | None = None,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> Treasure:
    """Search a system for a reward, in as few steps as covering all pairs takes.

    Parameters
    ----------
    system
        A communicating `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`.
    need
        Samples of every pair: an int, or an array [S] (any action) or [S, A]. More than one is needed if the reward
        is not paid every time.
    threshold
        Stop at the first reward above this (`stop` is "found" then); by default, sample every pair.
    delta, confidence
        Level and family (`"kl"`, `"bernstein"` or a `Confidence`) of the confidence sets that the strategy plans with,
        if it has any.
    seed
        Seed of all random numbers.
    max_steps
        Stop after this many steps; the answer has the reward found by then, if any.
    progress
        True for a line on stderr, or a callable that takes a dict, as in `gosprl.collect`.
    **options
        Further arguments of `gosprl.collect`: `strategy` and its options; `key`, `actions`, `resets`, `reset_cost`,
        `horizon`, `max_states`, `unseen` and `out`.

    Returns
    -------
    A `Treasure`. Its guarantee is that of the strategy: the number of steps obeys the paper's bound. If states are
    discovered on the way, only those discovered were searched; with `unseen`, the search goes on until it is known that
    no pair hides much.

    Raises
    ------
    InputError
        An argument is wrong; no step was made.
    CollectionError
        The system or the strategy failed; `error.result` has everything collected.

    Examples
    --------
    >>> import gosprl
    >>> answer = gosprl.applications.find_treasure(gosprl.envs.make("riverswim6"), threshold=0.5, seed=0)
    >>> answer.state, answer.action, answer.reward
    (5, 1, 1.0)
    """
    if isinstance(system, TabularMDP):
        check_communicating(system)
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    walked = {"seed": seed, "max_steps": max_steps, "progress": progress, **walk.collecting}
    result = collect(system, need, threshold=threshold, **walked)
    model = result.model
    taken = (model.visits > 0) & ~model.terminal[model.rows.state] & ~model.certain  # resets have no reward
    means = np.where(taken, model.reward_sum / np.maximum(model.visits, 1), -np.inf)
    best = int(means.argmax())
    state, action = model.rows.pair(best)
    reward, found = float(means[best]), bool(taken.any()) and float(means[best]) > 0
    if threshold is not None:
        found = result.found is not None
    if result.found is not None:
        state, action, _, reward, _ = result.found
    return Treasure(
        state=state if found else None,
        action=action if found else None,
        reward=reward if result.steps else 0.0,
        covered=1 - len(np.unique(result.unmet["state"][result.unmet["state"] >= 0])) / max(1, result.states),
        threshold=threshold,
        collected=result,
        guarantee=_promise(result.guarantee),
    )


def _promise(level: Guarantee) -> Guarantee:
    """Return the strategy's guarantee with the statement that its level is about; without a level, as it is."""
    return level if level.level is None else level.about("the steps that covering takes obey the paper's bound")
