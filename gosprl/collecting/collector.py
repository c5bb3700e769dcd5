"""Collector: ask/tell for loops the user owns, and `collect`, the loop for those who do not.

A collector asks its strategy for an attempt, follows it, and when it ends asks for the next, until what is needed is
there. Compiled systems follow an attempt in one call; the Python engine below follows the same one step by step.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks, strategies
from gosprl.collecting.record import UNLIMITED, Ended, Record
from gosprl.collecting.requirements import as_requirement
from gosprl.collecting.result import Result
from gosprl.errors import CollectionError, InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.progress import Progress, interrupts_heard
from gosprl.sets.kl import KL
from gosprl.strategies.base import Attempt, GivenUp
from gosprl.systems import as_system
from gosprl.systems.base import System

SLICE = 1000  # steps between two looks at the clock, if the system does not say
PATIENCE = 50_000  # steps without a needed sample, and at least half of all, before a warning


class Collector:
    """Collects what is needed, one attempt after the other.

    states, actions
        S, and A or a mask [S, A] of the actions that exist.
    need
        Samples wanted: an int, an array [S] or [S, A], a `Requirement`, or a callable (model) -> array.
    strategy, options
        A name and the fields of its dataclass, or a strategy object. By default `guarded`, or `gosprl` if an option
        is given that only that has.
    seed
        Fixes everything that is random.
    threshold
        Stop at the first reward above this (`stop` is "found" then); by default rewards stop nothing.
    """

    def __init__(
        self,
        states: int | None = None,
        actions: ArrayLike | None = None,
        need: Any = 1,
        *,
        strategy: Any = None,
        seed: int | None = None,
        model: EmpiricalModel | None = None,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        if model is None:
            if states is None or actions is None:
                raise InputError("states, actions: both are needed to begin")
            model = EmpiricalModel(states, actions)
        self.strategy = strategies.make(strategy, options)
        self.seed = None if seed is None else _checks.whole("seed", seed, 0)
        streams = np.random.SeedSequence(self.seed).spawn(2)
        self._system_rng = np.random.default_rng(streams[1])
        need = as_requirement(need, model.rows)
        self._model = model
        above = np.inf if threshold is None else _checks.number("threshold", threshold)
        self.record = Record(model, need, np.random.default_rng(streams[0]), above)
        self.attempts = 0
        self.given_up: GivenUp | None = None
        self._stop = ""
        self._start: int | None = None  # where it all began
        self._had = (model.visits.copy(), np.bincount(model.rows.state, weights=model.visits).astype(np.int64))
        self._state: int | None = None  # where the last transition ended
        self._attempt: Attempt | None = None
        self._made = 0  # steps of the current attempt
        self._asked: tuple[int, int, int] | None = None  # (row, state, action) of the question that is open
        self._given: Any = None  # the system as the user gave it
        self._system: Any = None
        self._gained, self._last_gain, self._warned = 0, 0, False
        try:
            self._update_need()
        except InputError:
            raise
        except Exception as error:
            self._stop = "failed"
            raise CollectionError(f"the requirement failed at once: {error}", self.result()) from error

    @property
    def model(self) -> EmpiricalModel:
        self.record.flush()
        return self._model

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do: everything is met, what is missing was given up, or a reward found."""
        return self.record.met or self.given_up is not None or self.record.found is not None

    def ask(self, s: int) -> int:
        """The action to take in state s; asking again before telling gives the same answer."""
        s = _checks.index("s", s, self._model.num_states, "a state")
        if self._asked is not None and self._asked[1] == s:
            return self._asked[2]
        self._stop = ""
        if self._model.terminal[s]:
            raise self._model.ends_sometimes(s)
        if self._state is not None and self._model.terminal[self._state]:
            self._reset_to(s)
        elif s != self._state:
            self._restart()
        self._model.find(s)
        self._start = s if self._start is None else self._start
        row = self._next_row(s)
        self._asked = (row, s, int(self._model.rows.action[row]))
        return self._asked[2]

    def tell(self, s: int, a: int, s_next: int, reward: float = 0.0, terminated: bool = False) -> None:
        """What the action asked for led to; after a termination, the next state asked about is that of the reset."""
        if self._asked is None or (s, a) != self._asked[1:]:
            asked = "nothing" if self._asked is None else "state {} and action {}".format(*self._asked[1:])
            raise InputError(f"tell: asked was {asked}, told were state {s} and action {a}; observe() takes anything")
        s_next = _checks.index("s_next", s_next, self._model.num_states, "a state")
        row, reward = self._asked[0], _finite(reward)
        self.record.arrive(row, s_next, reward, bool(terminated))
        self._asked = None
        self._made += 1
        self._state = s_next
        if self._attempt is None:
            self.record.flush()
            self._hear()
        else:
            self._finish(self.record.ended(self._attempt, row, s_next, self._made))

    def observe(self, s: int, a: int, s_next: int, reward: float = 0.0) -> None:
        """A transition that was not asked for; it counts like any other."""
        row = int(self.model.rows.index(s, a))
        s_next = _checks.index("s_next", s_next, self.model.num_states, "a state")
        reward = _finite(reward)
        self._settle()
        self.record.add(row, s_next, reward)
        self.record.flush()
        self._settle(walked=False)
        self._restart()
        self._hear()

    def run(self, system: Any, max_steps: int | None = None, progress: Any = None) -> Result:
        """Walk a system until done, or for `max_steps` more steps; may be called again to go on."""
        budget = UNLIMITED if max_steps is None else _checks.whole("max_steps", max_steps, 1)
        walked: System = self._system if system is self._given else as_system(system)
        self._check_pairs(walked)
        self._stop = ""
        with Progress(progress, self) as report, interrupts_heard(self.record):
            try:
                self._begin(system, walked)
                last = self.record.steps + min(budget, UNLIMITED - self.record.steps)
                while not (self.done or self.record.interrupted or self.record.steps >= last):
                    self._walk(walked, min(getattr(walked, "slice", SLICE), last - self.record.steps))
                    self._watch(max_steps)
                    report()
                report(last=True)
                self._stop = self._why(self.record.interrupted)
            except KeyboardInterrupt:
                self._drop_attempt(walked)
                self._stop = "interrupted"
            except Exception as error:
                if isinstance(error, InputError) and self.record.steps == 0:
                    raise
                self._drop_attempt(walked)
                self._stop = "failed"
                raise CollectionError(
                    f"the run failed after {self.record.steps} steps: {error}", self.result()
                ) from error
        return self.result()

    def result(self) -> Result:
        """What was collected so far."""
        record, model = self.record, self.model
        self._settle()
        pair, state = record.needed()
        unmet = record.unmet()
        S = model.num_states
        curve = np.empty(len(record.events), dtype=[("step", np.int64), ("proportion", np.float64)])
        curve[:] = record.events
        wanted = np.bincount(model.rows.state, weights=pair, minlength=S) + state
        given_up = getattr(self.strategy, "lost", {}) if self.given_up is None else self.given_up.states
        return Result(
            met=len(unmet) == 0,
            steps=record.steps,
            attempts=self.attempts,
            stop=self._why(False) if self.done and self._stop != "failed" else self._stop or "running",
            counts=model.rows.to_dense(np.where(model.terminal[model.rows.state], 0, model.visits)),
            unmet=unmet,
            unreachable={s: given_up[s] for s in np.unique(unmet["state"]).tolist() if s in given_up},
            curve=curve,
            model=model,
            guarantee=self.strategy.guarantee,
            states=int((wanted > 0).sum()),
            pairs=int((pair > 0).sum()),
            resets=record.resets,
            unseen=_unseen(model, getattr(self.strategy, "delta", 0.1)),
            seed=self.seed,
            strategy=self.strategy,
            found=record.found,
            _need=(np.maximum(pair - self._had[0], 0), np.maximum(state - self._had[1], 0)),
            _start=self._start,
            _truth=self._truth(),
        )

    def _why(self, interrupted: bool) -> str:
        if self.record.found is not None:
            return "found"
        if self.record.met:
            return "met"
        return "unreachable" if self.given_up else "interrupted" if interrupted else "max_steps"

    def _check_pairs(self, system: System) -> None:
        """An MDP is walked by rows of the model, in compiled code, which would read anywhere."""
        mdp = getattr(system, "mdp", None)
        if system is not self._system and isinstance(mdp, TabularMDP) and not mdp.rows.same(self._model.rows):
            raise InputError(
                f"system: {mdp.name} has {mdp.num_states} states and {len(mdp.rows)} pairs, and they are not those of "
                f"the collector, {self._model.num_states} and {len(self._model.rows)}; begin with "
                "model=EmpiricalModel.over(mdp.rows)"
            )

    def _begin(self, given: Any, system: System) -> None:
        if self._system is not system:
            system.seed(self._system_rng)
            self._given, self._system = given, system
        if self._state is None:
            self._start = self._state = system.reset(self.record)
            self._update_need()

    def _walk(self, system: System, steps: int) -> None:
        """Follow the current attempt, or a new one, for at most `steps` steps."""
        assert self._state is not None
        if self._attempt is None and not self._new_attempt(self._state):
            return
        assert self._attempt is not None
        self.record.flush()
        self._state, self._made, ended = system.run(self._attempt, self._state, self.record, self._made, steps)
        self.record.flush()
        self._finish(None if ended == Ended.STEPS else ended)

    def _reset_to(self, s: int) -> None:
        """The transition that a reset makes: planned with like any other, but no step."""
        assert self._state is not None
        if self._attempt is None and not self._new_attempt(self._state):
            raise InputError("ask: there is nothing left to collect; look at `done` first")
        row = int(self._model.rows.ptr[self._state])
        self.record.add(row, s, 0.0, step=False)
        self._model.find(s)
        self._state = s
        if self._attempt is not None:
            self._finish(self.record.ended(self._attempt, row, s, self._made))

    def _watch(self, max_steps: int | None) -> None:
        """Warn, once, a user whose run may never end."""
        if self.record.gained != self._gained:
            self._gained, self._last_gain = self.record.gained, self.record.steps
        waited = self.record.steps - self._last_gain
        endless = max_steps is None and getattr(self.strategy, "reach", None) is None
        if endless and not self._warned and waited > PATIENCE and 2 * waited > self.record.steps:
            self._warned = True
            unmet = self.record.unmet()
            states = ", ".join(str(self.model.states[s]) for s in np.unique(unmet["state"])[:5])
            warnings.warn(
                f"nothing that is needed was sampled in the last {waited:,} of {self.record.steps:,} steps; still "
                f"needed are states such as {states}, which perhaps cannot be reached from where the walk is. Ctrl-C "
                "keeps what was collected; max_steps= or reach= would end such a run",
                stacklevel=3,
            )

    def _next_row(self, s: int) -> int:
        for _ in range(2):
            if self._attempt is None and not self._new_attempt(s):
                raise InputError("ask: there is nothing left to collect; look at `done` first")
            assert self._attempt is not None
            row = self.record.choose(self._attempt, s)
            if row >= 0:
                return row
            self._attempt = None
        raise RuntimeError("the strategy handed back twice in the same state")

    def _new_attempt(self, s: int) -> bool:
        """Ask the strategy; False if there is nothing to do (any more)."""
        self._update_need()
        if self.done:
            return False
        answer = self.strategy.attempt(self.model, self.record.ledger, s, self.record.steps + 1, self.record.rng)
        if isinstance(answer, GivenUp):
            self.given_up = answer
            return False
        self._attempt, self._made = answer, 0
        self.attempts += answer.horizon > 1
        return True

    def _drop_attempt(self, system: System) -> None:
        """After an exception, the walk goes on from where the system is."""
        self._restart()
        if self._state is not None:
            self._state = getattr(system, "state", self._state)

    def _finish(self, ended: Ended | None) -> None:
        if ended is not None:
            self._attempt = None
        if ended == Ended.TELEPORT:
            self._restart()
        self._hear()

    def _hear(self) -> None:
        """A need that is met may want more, now that it sees what the last step brought."""
        if self.record.met:
            self._update_need()

    def _settle(self, walked: bool = True) -> None:
        """Tell a strategy that keeps accounts how far the run is."""
        if hasattr(self.strategy, "settle"):
            self.strategy.settle(self._model, self.record.steps, self.record.gained, walked=walked)

    def _truth(self) -> TabularMDP | None:
        mdp = getattr(self._system, "mdp", None)
        return mdp if isinstance(mdp, TabularMDP) and mdp.rows.same(self._model.rows) else None

    def _restart(self) -> None:
        """The walk does not go on from where the last attempt ended, or not with what it knew."""
        self._attempt = None
        if hasattr(self.strategy, "restart"):
            self.strategy.restart()

    def _update_need(self) -> None:
        self.record.update_need()


def _finite(reward: float) -> float:
    if not math.isfinite(reward):
        raise InputError(f"reward: expected a finite number, got {reward}")
    return float(reward)


def _unseen(model: EmpiricalModel, delta: float) -> float:
    """The largest cap, at level delta, on the mass of successors never seen, over the pairs visited."""
    visited = np.flatnonzero((model.visits > 0) & ~model.terminal[model.rows.state])
    if not visited.size:
        return 1.0
    sets = KL(delta).intervals(model, visited)
    if not model.closed:
        return float(sets.total.max())
    seen = model.stored(visited)[2] > 0  # of the candidates: what the others may have, and what these leave them
    room = np.add.reduceat(np.where(seen, 0.0, sets.upper), sets.ptr[:-1])
    left = 1 - np.add.reduceat(np.where(seen, sets.lower, 0.0), sets.ptr[:-1])
    return float(np.minimum(room, left).max())


def collect(
    system: Any,
    need: Any,
    *,
    strategy: Any = None,
    seed: int | None = None,
    max_steps: int | None = None,
    progress: bool | Callable[[Any], None] | None = None,
    threshold: float | None = None,
    **options: Any,
) -> Result:
    """Walk `system` until `need` is collected; see `Collector`, and `gosprl.strategies` for the options."""
    walked = as_system(system)
    model = walked.model()
    if hasattr(walked, "requirement"):  # a system may have its own idea of what a number means
        need = walked.requirement(need, model)
    collector = Collector(need=need, strategy=strategy, seed=seed, model=model, threshold=threshold, **options)
    return collector.run(walked, max_steps, progress)
