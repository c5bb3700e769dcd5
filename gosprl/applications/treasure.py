"""Sparse reward discovery (section "Sparse Reward Discovery (TREASURE)"): b(s, a) = 1, or more, everywhere.

A reward is hidden at one state-action pair, and nothing hints at where. Whoever has sampled every pair has found it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosprl.applications.common import Answer, Walk, check_communicating
from gosprl.collecting.collect import collect
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.sets.intervals import Confidence


@dataclass(frozen=True, eq=False, repr=False)
class Treasure(Answer):
    """Where the reward is: with a threshold, the first one above it; without, the pair with the largest mean."""

    state: int | None  # None if nothing was found
    action: int | None
    reward: float  # that one, or that mean; the largest mean seen if nothing was found
    covered: float  # share that has all samples, of the states asked for; where they must be found, of those found
    threshold: float | None

    @property
    def found(self) -> bool:
        return self.state is not None

    @property
    def reached(self) -> bool:
        return self.found if self.threshold is not None else super().reached

    def lines(self) -> list[tuple[str, str]]:
        where = f"reward {self.reward:g} at state {self.state}, action {self.action}" if self.found else "nothing"
        asked, model = self.collected.states, self.collected.model
        others = asked < np.count_nonzero(~model.terminal)  # not asked for, or not found
        among = f"{asked} states asked for, of {model.num_states}" if others else "states"
        return [("found", where), ("covered", f"{self.covered:.1%} of the {among}")]


def find_treasure(
    system: Any,
    need: ArrayLike = 1,
    *,
    threshold: float | None = None,
    delta: float = 0.1,
    confidence: str | Confidence = "kl",
    seed: int | None = None,
    max_steps: int | None = None,
    progress: Any = None,
    **options: Any,
) -> Treasure:
    """Search a system for a reward, in as few steps as covering all of it takes.

    Parameters
    ----------
    need
        Samples of every pair, or an array [S] or [S, A]; more than one where the reward is paid only sometimes.
    threshold
        Stop at the first reward above this (`stop` is then "found"); by default at full coverage.
    delta, confidence, options
        Of the collector: see `gosprl.collect`.
    """
    if isinstance(system, TabularMDP):
        check_communicating(system)
    walk = Walk(delta, confidence, seed, max_steps, progress, options)
    walked = {"seed": seed, "max_steps": max_steps, "progress": progress, **walk.collecting}
    result = collect(system, need, threshold=threshold, **walked)
    model = result.model
    taken = (model.visits > 0) & ~model.terminal[model.rows.state]  # resets bring no reward
    means = np.where(taken, model.reward_sum / np.maximum(model.visits, 1), -np.inf)
    best = int(means.argmax())
    state, action = model.rows.pair(best)
    reward, found = float(means[best]), bool(result.steps) and float(means[best]) > 0
    if threshold is not None:
        found = result.found is not None
    if result.found is not None:
        state, action, _, reward, _ = result.found
    return Treasure(
        state=state if found else None,
        action=action if found else None,
        reward=reward if result.steps else 0.0,
        covered=1 - len(np.unique(result.unmet["state"])) / max(1, result.states),
        threshold=threshold,
        collected=result,
        guarantee=_promise(result.guarantee),
    )


def _promise(level: Guarantee) -> Guarantee:
    """What the strategy's level is the level of; random walks and heuristics promise nothing."""
    return level if level.level is None else level.about("the steps that covering takes obey the paper's bound")
