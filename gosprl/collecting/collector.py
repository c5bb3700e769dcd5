"""Collector: ask/tell for loops the user owns, and `run`, the loop for those who do not.

A collector asks its planner for an attempt, lets the engine follow it, and when it has ended asks for the next, until
what is needed is there.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks, strategies
from gosprl.collecting.engine import Engine, checked_attempt, finite
from gosprl.collecting.paths import Paths
from gosprl.collecting.patience import Patience
from gosprl.collecting.planners import Report, checked_report, checked_states
from gosprl.collecting.record import ANY_REWARD, Record
from gosprl.collecting.requirements import as_requirement
from gosprl.collecting.result import Result, snapshot
from gosprl.errors import CollectionError, InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.progress import Progress, interrupts_heard
from gosprl.strategies.base import UNLIMITED, Attempt, GivenUp, Planner
from gosprl.systems import System, Tabular, as_system


class Collector:
    """Collects what is needed, one attempt after the other.

    Parameters
    ----------
    states, actions
        S, and A or a mask [S, A] of the actions that exist.
    need
        Samples needed: an int, an array [S] (any action) or [S, A], a `Requirement`, or a callable (model) -> array.
    strategy
        A name, or a strategy object. See `gosprl.strategies`.
    seed
        Fixes everything that is random.
    model
        Counts to begin with, instead of `states` and `actions`; the collector adds to them.
    threshold
        Stop at the first reward above this (`stop` is "found" then); by default rewards stop nothing.
    rewards
        The least and the largest reward that the system may return; by default any finite number.
    **options
        The fields of the named strategy's dataclass.

    Examples
    --------
    >>> collector = Collector(states=2, actions=1, need=3, seed=0)
    >>> s = 0
    >>> while not collector.done:
    ...     a = collector.ask(s)
    ...     s_next = 1 - s  # what your system does
    ...     collector.tell(s, a, s_next)
    ...     s = s_next
    >>> collector.result().counts.tolist()
    [[3], [3]]
    """

    def __init__(
        self,
        states: int | None = None,
        actions: ArrayLike | None = None,
        need: Any = 1,
        *,
        strategy: Any = "guarded",
        seed: int | None = None,
        model: EmpiricalModel | None = None,
        threshold: float | None = None,
        rewards: tuple[float, float] = ANY_REWARD,
        **options: Any,
    ) -> None:
        if model is None:
            if states is None or actions is None:
                raise InputError("states, actions: both are needed to begin")
            model = EmpiricalModel(states, actions)
        elif not isinstance(model, EmpiricalModel):
            raise InputError(f"model: expected an EmpiricalModel, got {type(model).__name__}")
        self.strategy = strategies.make(strategy, options)
        self.seed = None if seed is None else _checks.whole("seed", seed, 0)
        streams = np.random.SeedSequence(self.seed).spawn(2)
        self._system_rng = np.random.default_rng(streams[1])
        above = np.inf if threshold is None else _checks.number("threshold", threshold)
        self._model = model
        self._had = model.visits.copy()  # [R] before the run
        self.record = Record(model, as_requirement(need, model.rows), above, rewards)
        self.engine = Engine(self.record, np.random.default_rng(streams[0]))
        self.attempts = 0
        self.given_up: GivenUp | None = None
        self._stop = ""
        self._start: int | None = None  # where it all began
        self._asked: tuple[int, int, int] | None = None  # (row, state, action) of the question that is open
        self._by_hand = False  # whether the walk went on by ask and tell since the last run
        self._given: Any = None  # the system as the user gave it
        self._system: System | None = None
        self._paths = Paths(self.record)
        self._patience = Patience(self.record)
        self.planner: Planner | None = None
        try:
            self.record.update_need()
        except InputError:
            raise
        except Exception as error:
            self._stop = "failed"
            raise CollectionError(f"the requirement failed at once: {error}", self.result()) from error
        self.planner = self._begin_planner()

    @property
    def model(self) -> EmpiricalModel:
        """The counts so far."""
        self.record.flush()
        return self._model

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do: everything is met, what is missing was given up, or a reward found."""
        engine, planner = self.engine, self.planner
        between = self._asked is None and engine.attempt is None
        if between and not self._finished:
            self.record.update_need()
            if planner is not None and planner.may_give_up and engine.state is not None and not self._finished:
                self._new_attempt()
        return self._finished

    @property
    def _finished(self) -> bool:
        if self.record.need.met:  # before the first state is discovered, nothing is asked of any
            return self._start is not None or self.record.need.requirement.num_states(self._model) > 0
        return self.given_up is not None or self.record.found is not None

    def ask(self, s: int) -> int:
        """Return the action to take in state s; asking again before telling gives the same answer.

        Parameters
        ----------
        s
            Index of the state that the system is in. After a termination, that of the reset.

        Returns
        -------
        The index of the action.
        """
        s = _checks.index("s", s, self._model.num_states, "a state")
        if self._asked is not None and self._asked[1] == s:
            return self._asked[2]
        if self.engine.attempt is None and self._finished:
            raise InputError("ask: there is nothing left to collect; look at `done` first")
        self._stop = ""
        if self._model.terminal[s]:
            raise self._model.ends_sometimes(s)
        if self.engine.at_terminal:
            if self.engine.attempt is None:
                self._new_attempt()
            self.engine.reset(s)
            self._update_if_met()
        elif s != self.engine.state:
            self.engine.start(s)
            self._by_hand = True
        self._start = s if self._start is None else self._start
        self._model.discover(s)
        row = self._next_row(s)
        self._asked = (row, s, int(self._model.rows.action[row]))
        return self._asked[2]

    def tell(
        self, s: int, a: int, s_next: int, reward: float = 0.0, terminated: bool = False, truncated: bool = False
    ) -> None:
        """Say what the action asked for led to.

        Parameters
        ----------
        s, a
            The state asked about and the action that `ask` returned.
        s_next
            Index of the next state.
        reward
            A finite number.
        terminated
            The episode ended in `s_next`: the next state asked about is that of the reset.
        truncated
            The episode was cut off after this step: the walk goes on wherever the next question is asked.
        """
        if self._asked is None or (s, a) != self._asked[1:]:
            asked = "nothing" if self._asked is None else "({}, {})".format(*self._asked[1:])
            raise InputError(
                f"tell: expected the (s, a) of the last ask(), {asked}, got ({s}, {a}); observe() takes any transition"
            )
        s_next = _checks.index("s_next", s_next, self._model.num_states, "a state")
        row, reward = self._asked[0], finite(reward)
        self.engine.arrive(row, s_next, reward, bool(terminated))
        self._asked, self._by_hand = None, True
        if truncated and not terminated:
            self.engine.break_off()
            self.engine.state = None
        self._update_if_met()

    def observe(self, s: int, a: int, s_next: int, reward: float = 0.0) -> None:
        """Count a transition that was not asked for; it counts like any other."""
        row = int(self.model.rows.index(s, a))
        s_next = _checks.index("s_next", s_next, self._model.num_states, "a state")
        reward, self._stop = finite(reward), ""
        self._account(walked=True)
        self.record.observe(row, s_next, reward)
        self._account(walked=False)
        self.engine.break_off()
        self._update_if_met()

    def run(self, system: Any = None, max_steps: int | None = None, progress: Any = None) -> Result:
        """Walk a system until done, or for `max_steps` more steps; may be called again to go on.

        Parameters
        ----------
        system
            A `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`. A Gymnasium environment is reset
            first, each time: it may have been used elsewhere. Without `system`, or with the same `TabularMDP` or
            `System`, the walk goes on where the last run stopped.
        max_steps
            Stop after so many steps.
        progress
            True for a line on stderr, or a callable that is given a dict at most ten times a second.

        Returns
        -------
        What was collected so far, in all runs together.

        Raises
        ------
        CollectionError
            The system, the requirement or the strategy failed; its `result` has everything collected.
        """
        self.walk(system, max_steps, progress)
        return self.result()

    def walk(self, system: Any = None, max_steps: int | None = None, progress: Any = None) -> None:
        """Do what `run` does, without making a result."""
        budget = UNLIMITED if max_steps is None else _checks.whole("max_steps", max_steps, 1)
        engine, record = self.engine, self.record
        endless = max_steps is None and self.strategy.reach is None
        walked = self._chosen(system)
        with Progress(progress, self) as report, interrupts_heard(engine):
            try:
                self._take_over(system, walked)
                self._stop = ""
                last = record.steps + min(budget, UNLIMITED - record.steps)
                while not (self._finished or engine.interrupted or record.steps >= last):
                    if engine.attempt is None and not self._new_attempt():
                        continue
                    walked.follow(engine, min(walked.block, last - record.steps))
                    record.flush()
                    self._update_if_met()
                    if endless:
                        self._patience.warn_if_exhausted()
                    report()
                report(last=True)
                self._stop = self._why(engine.interrupted)
                self.report()  # here, where an error keeps what was collected
            except KeyboardInterrupt:
                engine.break_off()
                self._stop = "interrupted"
            except Exception as error:
                if isinstance(error, InputError) and record.steps == 0:
                    raise
                engine.break_off()
                self._stop = "failed"
                why = str(error) or type(error).__name__
                raise CollectionError(f"the run failed after {record.steps} steps: {why}", self.result()) from error

    def result(self) -> Result:
        """Return what was collected so far: a snapshot, which later steps do not change."""
        return snapshot(self, self.model.copy())

    def last_result(self) -> Result:
        """Return the same for a collector that is not used any more: its counts are handed over, not copied."""
        return snapshot(self, self.model)

    def stop_reason(self) -> str:
        """Why the last run stopped, "running" before it did."""
        return self._why(False) if self._finished and self._stop != "failed" else self._stop or "running"

    def report(self) -> Report:
        """Return what the planner says of the run so far, after checking it."""
        planner = self.planner
        if planner is None:
            return Report(Guarantee.none("nothing was planned"), {}, {})
        try:
            self._account(walked=True)
            return checked_report(planner, self._model.num_states)
        except Exception:
            if self._stop not in ("failed", "interrupted"):
                raise
            return Report(Guarantee.none(f"{type(planner).__name__} failed to state one"), {}, {})

    @property
    def start(self) -> int | None:
        """The state in which everything began."""
        return self._start

    @property
    def had(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """[R] visits before the run."""
        return self._had

    @property
    def truth(self) -> TabularMDP | None:
        """The true dynamics, if the system told them and they are about the same pairs."""
        mdp = None if self._system is None else self._system.mdp
        return mdp if mdp is not None and mdp.rows.same(self._model.rows) else None

    def _begin_planner(self) -> Planner:
        _checks.open_unit("strategy: delta", self.strategy.delta)
        planner = self.strategy.begin(self._model, self.record.need, self.engine.rng)
        if not isinstance(planner, Planner):
            raise InputError(
                f"strategy: expected {type(self.strategy).__name__}.begin to return a gosprl.strategies.Planner, got "
                f"{planner!r:.80}"
            )
        checked_report(planner, self._model.num_states)
        return planner

    def _chosen(self, given: Any) -> System:
        """Return the system to walk, after checking what was given."""
        before = self._system
        if given is None and before is None:
            raise InputError("system: expected a system to walk: nothing was walked yet")
        if before is not None and (given is None or given is self._given or given is before):
            return before
        system = as_system(given)
        self._check_pairs(system)
        return system

    def _take_over(self, given: Any, system: System) -> None:
        """Let the walk be in a state that is known to be the system's own."""
        engine, before = self.engine, self._system
        if system is not before:
            system.seed(self._system_rng)
            engine.components = self._paths.look_at(system)
            self._given, self._system = given, system
            engine.state = None
        elif given is not None and given is not before and not isinstance(given, TabularMDP):
            engine.state = None  # others may have stepped or reset it since
        elif self._by_hand and not isinstance(system, Tabular):
            engine.state = None  # the walk went on without it; only a simulation goes on from anywhere
        self._by_hand, self._asked = False, None
        if engine.state is None:
            engine.start(engine.reset_of(system))
            self._paths.begin_anew()
            self._start = engine.state if self._start is None else self._start
            self.record.update_need()

    def _check_pairs(self, system: System) -> None:
        """Rows of the model are rows of the MDP: compiled code takes that for granted."""
        mdp = system.mdp
        if mdp is not None and not mdp.rows.same(self._model.rows):
            raise InputError(
                f"system: {mdp.name} has {mdp.num_states} states and {len(mdp.rows)} pairs, and they are not those of "
                f"the collector, {self._model.num_states} and {len(self._model.rows)}; begin with "
                "model=EmpiricalModel.over(mdp.rows)"
            )

    def _next_row(self, s: int) -> int:
        for _ in range(2):
            if self.engine.attempt is None and not self._new_attempt():
                # Only now, in s, is it known that nothing is left to do: any action will do, and `done` says so.
                return int(self._model.rows.ptr[s])
            row = self.engine.choose()
            if row >= 0:
                return row
        raise AssertionError("an attempt that has made no step hands back")  # the engine raises before

    def _new_attempt(self) -> bool:
        """Ask the planner; False if there is nothing to do (any more)."""
        engine, planner, record = self.engine, self.planner, self.record
        assert planner is not None
        assert engine.state is not None
        record.update_need()
        self._paths.waive_unreachable(engine.state)
        if self._finished:
            return False
        if engine.broken:
            planner.restart()
            engine.broken = False
        answer = planner.attempt(engine.state, record.steps + 1)
        if isinstance(answer, GivenUp):
            self.given_up = GivenUp(checked_states("GivenUp.states", answer.states, self._model.num_states))
            return False
        if not isinstance(answer, Attempt):
            raise InputError(
                f"strategy: expected {type(planner).__name__}.attempt to return an Attempt or GivenUp, got "
                f"{answer!r:.80}"
            )
        engine.begin(checked_attempt(answer, self._model.num_states, len(self._model.rows)))
        self.attempts += answer.horizon > 1
        return True

    def _update_if_met(self) -> None:
        """Adaptive requirements may grow: evaluate again when everything is met."""
        if self.record.need.met:
            self.record.update_need()

    def _account(self, *, walked: bool) -> None:
        """Say to a planner that keeps accounts how far the run is."""
        if self.planner is not None:
            self.record.flush()
            self.planner.account(self.record.steps, self.record.need.collected, walked=walked)

    def _why(self, interrupted: bool) -> str:
        if self.record.found is not None:
            return "found"
        need = self.record.need
        if need.met:
            return "unreachable" if need.waived and len(need.unmet()) else "met"
        return "unreachable" if self.given_up else "interrupted" if interrupted else "max_steps"
