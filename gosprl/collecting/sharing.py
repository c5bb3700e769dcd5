"""Sharing: several walkers with one planner, and when the attempts that they follow end.

The planner plans for what is missing and not in flight. Each walker follows an attempt of its own, since plans may
cover only the surroundings of one walker. An attempt of another walker ends

- if a sample that is issued gives a state all that it needs: its goals are others now;
- if the planner changes its phase (`Planner.phase`): its accounts are about all walkers;
- when as many steps were issued as the last attempt may make: the planner wants to look at the counts again.

A plan may serve all walkers (`Planner.serves_all`). Then one of them asks the planner, and the others whose attempts
have ended here follow the same attempt, as long as the need is the same. A walker whose own attempt has ended, for
example since a count exceeded its limit, asks the planner itself.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from gosprl.collecting.engine import Engine
from gosprl.guarantee import Guarantee
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import UNLIMITED, Attempt, Planner

NO_BOUND = "confidence sets and certificates; the bound on the steps is proven for one walker"
ASSUMED = {
    "state": "that losing a walker depends on its last pair only",
    "independent": "that losses do not depend on outcomes",
    "lease": "that the steps a walker makes by itself do not delay the reading of its reports",
}


def of_several(guarantee: Guarantee) -> Guarantee:
    """Return what holds of a planner's guarantee if there are several walkers (docs/theory/fleet.md)."""
    return guarantee.about(NO_BOUND) if guarantee.holds else guarantee


def assume(model: EmpiricalModel, how: str) -> None:
    """Let all guarantees about the samples of a model name what a fleet assumes: a key of `ASSUMED`."""
    if ASSUMED[how] not in model.given:
        model.given = (*model.given, ASSUMED[how])


class Walking(Protocol):
    """One of several walkers."""

    engine: Engine


class Sharing:
    """Decides when attempts of other walkers end.

    Parameters
    ----------
    walks
        All walkers; the mapping is read each time, so that walkers may come and go.
    """

    def __init__(self, walks: Mapping[Any, Walking]) -> None:
        self._walks = walks
        self._left = UNLIMITED  # steps that may be issued before all attempts end
        self._phase = 0
        self._ended: set[Engine] = set()  # walkers whose attempts have ended here, and who have none since
        self._common: Attempt | None = None  # the last attempt, if it serves all
        self._need = (-1, -1)  # version and unmet states of the need when it began

    def positions(self, engine: Engine, s: int) -> list[int]:
        """Return where all walkers are, as far as that is known; first s, where one of them asks."""
        engines = [walk.engine for walk in self._walks.values()]
        return [s, *[other.state for other in engines if other is not engine and other.state is not None]]

    def end_attempts(self, but: Engine | None = None) -> None:
        """Let all walkers but one ask for a new attempt before their next step."""
        before, self._ended = self._ended, set()
        for walk in self._walks.values():
            if (engine := walk.engine) is not but and (engine.attempt is not None or engine in before):
                engine.end()
                self._ended.add(engine)

    def join(self, engine: Engine) -> bool:
        """Let a walker follow the last attempt, if that serves it as well; whether it does."""
        attempt, s, record = self._common, engine.state, engine.record
        if attempt is None or engine not in self._ended or engine.broken or self._left <= 0 or record.looked_for:
            return False
        need, model = record.need, record.model
        if (need.version, need.unmet_states) != self._need or len(attempt.limit) != len(model.rows):
            return False
        row = int(attempt.policy[s])
        if not (row >= 0 and model.enabled[row]) and (need.of_states or not need.unmet_items[s]):
            return False
        self._ended.discard(engine)
        engine.begin(attempt)
        return True

    def end_if_used_up(self, engine: Engine) -> None:
        """End the attempt of a walker if the steps that the planner allowed are issued, perhaps to others."""
        if self._left <= 0:
            engine.end()

    def begun(self, engine: Engine, planner: Planner) -> None:
        """Take in that a walker begins an attempt."""
        assert engine.attempt is not None
        self._left = engine.attempt.horizon
        if planner.phase != self._phase:
            self._phase = planner.phase
            self.end_attempts(engine)
        if len(self._walks) > 1:  # the next plan may overwrite these arrays
            attempt = engine.attempt
            policy, limit = attempt.policy.copy(), attempt.limit.copy()
            engine.attempt = Attempt(policy, attempt.goals, limit, attempt.horizon, attempt.sample)
        attempt, need = engine.attempt, engine.record.need
        self._common = attempt if attempt.sample and planner.serves_all else None
        self._need = (need.version, need.unmet_states)
        self._ended.discard(engine)

    @property
    def left(self) -> int:
        """Steps that may be issued before all attempts end."""
        return self._left

    def reserve(self, steps: int) -> None:
        """Take in that a walker may make so many steps by itself."""
        self._left -= steps

    def issued(self, engine: Engine, *, is_step: bool, settled: bool) -> None:
        """Take in that a walker was told what to do; `settled`: its state has all that it needs by that."""
        self._left -= is_step
        if settled or (is_step and self._left <= 0):
            self.end_attempts(engine)
