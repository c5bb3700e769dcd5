"""Collector: ask/tell for loops the user owns, and `run`, the loop for those who do not.

A collector asks its planner for an attempt, lets the engine follow it, and when it has ended asks for the next, until
what is needed is there.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosprl import _checks, strategies
from gosprl.collecting.asktell import AskTell, check_lost, locked
from gosprl.collecting.attempts import checked_attempt
from gosprl.collecting.cut_off import CutOff
from gosprl.collecting.engine import Engine
from gosprl.collecting.outcome import Paused
from gosprl.collecting.paths import Paths
from gosprl.collecting.patience import Patience
from gosprl.collecting.planners import Report, checked_report
from gosprl.collecting.record import ANY_REWARD, Record
from gosprl.collecting.requirements import Requirement, as_requirement
from gosprl.collecting.result import Result, snapshot
from gosprl.collecting.sharing import Sharing
from gosprl.collecting.streams import begun_digest, entropy_of
from gosprl.collecting.surroundings import Surroundings
from gosprl.errors import CollectionError, GosprlError, InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.content import Content, thaw
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.origins import Origin, walk_id
from gosprl.progress import Progress, interrupts_heard
from gosprl.strategies.base import UNLIMITED, Attempt, GivenUp, Planner
from gosprl.strategies.random import RandomPlanner
from gosprl.systems import System, Tabular, as_system

RENEWAL = 100_000  # steps after which a planner is replaced by a new one (`Collector._renewed`)


class Collector(AskTell):
    """Collects what is needed, one attempt after the other.

    Parameters
    ----------
    states
        S; None: states are discovered on the way, and can be anything that has a value: numbers, strings, tuples,
        arrays.
    actions
        A, or a mask [S, A] of the actions that exist.
    need
        Samples needed: an int, an array [S] (any action) or [S, A], a `Requirement`, or a callable (model) -> array.
    strategy
        A name, or a strategy object. See `gosprl.strategies`.
    seed
        Fixes everything that is random, together with the counts that the collector begins with.
    model
        Counts to begin with, instead of `states` and `actions`; the collector adds to them. Random numbers depend on
        them: what was collected with the same seed is not drawn again.
    threshold
        Stop at the first reward above this (`stop` is "found" then); by default rewards stop nothing.
    rewards
        The least and the largest reward that the system may return; by default any finite number.
    resets, reset_cost, horizon, max_states, unseen
        As in `gosprl.collect`. With `model`, resets are by default those it was made for.
    around
        All of these in one.
    lost
        With several walkers, what becomes of a sample whose outcome will not be told (`Collector.lost`). "unknown": its
        outcome may have been any, and confidence sets allow for that. "state": it led to a crash, as a system's own
        crashes do. "independent": it is left out, which is right only if being lost has nothing to do with the outcome.
    seed_alone
        Whether random numbers follow from the seed alone, as in runs on disk of before they depended on counts.
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
        resets: str | None = None,
        reset_cost: float = 1.0,
        horizon: int | None = None,
        max_states: int | None = None,
        unseen: float | None = None,
        around: Surroundings | None = None,
        lost: str = "unknown",
        seed_alone: bool = False,
        **options: Any,
    ) -> None:
        given = model is not None
        if model is None:
            if actions is None:
                raise InputError("actions: expected their number, or a mask [S, A] of those that exist, got None")
            model = EmpiricalModel(states, actions)
            if states is None:
                model.states.decode = thaw
        elif not isinstance(model, EmpiricalModel):
            raise InputError(f"model: expected an EmpiricalModel, got {type(model).__name__}")
        self.strategy = strategies.make(strategy, options)
        if resets is None:  # known dynamics say all that can happen
            resets = model.resets if given or self.strategy.dynamics is not None else "terminal"
        around = around or Surroundings(resets, reset_cost, horizon, max_states, unseen)
        around.prepare(model)
        check_lost("lost", lost, model)
        begun = "" if seed_alone else begun_digest(model)
        if self.strategy.successors is not None:
            before = model.rows
            model.restrict(self.strategy.successors)  # before there are arrays of the model's size
            if isinstance(need, Requirement) and model.rows is not before:
                need.resize(model, model.rows.places(before))
        self.seed = None if seed is None else _checks.whole("seed", seed, 0)
        seeds = np.random.SeedSequence(entropy_of(self.seed, begun))
        assert seeds.entropy is not None  # one is drawn
        self.entropy, streams = seeds.entropy, seeds.spawn(2)
        self._system_rng = np.random.default_rng(streams[1])
        above = np.inf if threshold is None else _checks.number("threshold", threshold)
        self._had, self.rows_had = model.visits.copy(), model.rows  # [R] before the run
        self.surplus_had = model.surplus() if self._had.any() else None  # [S] the same
        if isinstance(need, Mapping) and model.growing and not given:
            need = {Content().freeze(observation): number for observation, number in need.items()}
        asked = around.requirement(as_requirement(need, model), self.strategy.delta, model)
        self.record = self._new_record(model, asked, above, rewards)
        self.engine = Engine(self.record, np.random.default_rng(streams[0]), around.steps)
        super().__init__(model, self.record, self.engine, lost)
        self._rows = model.rows  # those that the planner knows
        self.attempts = 0
        self._renew_at = RENEWAL
        self.given_up: GivenUp | None = None
        self._stop = ""
        self.is_torn = False  # whether Ctrl-C fell between a step and its record
        self._given: Any = None  # the system as the user gave it
        self._system: System | None = None
        self._was_cut_off = False  # whether the episode in which the walk was taken up had been cut off
        self._paths = Paths(self.record)
        self._cut_off = CutOff(self.record)
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
        return self.record.counted.model

    @property
    @locked
    def done(self) -> bool:
        """Whether there is nothing left to do: everything is met, what is missing was given up, or a reward found."""
        engine, planner, walk = self.engine, self.planner, self._walk
        if self._crew is not None:
            if not self._finished and not self.record.all_in_flight:
                self.record.update_need()
            return self._finished
        between = walk.asked is None and engine.attempt is None and not walk.cut
        if between and not self._finished:
            self.record.update_need()
            if planner is not None and planner.may_give_up and self._knows_offer and not self._finished:
                self._new_attempt()
        return self._finished

    @property
    def _finished(self) -> bool:
        if self.record.is_met:
            return self.has_begun
        return self.given_up is not None or self.record.found is not None

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

    @locked
    def walk(self, system: Any = None, max_steps: int | None = None, progress: Any = None) -> None:
        """Do what `run` does, without making a result."""
        if self._crew is not None:
            raise InputError("run: expected a collector that was asked by one walker at most; go on with ask and tell")
        budget = UNLIMITED if max_steps is None else _checks.whole("max_steps", max_steps, 1)
        engine, record = self.engine, self.record
        endless = max_steps is None and self.strategy.reach is None
        walked = self._chosen(system)
        with Progress(progress, self) as report, interrupts_heard(engine):
            try:
                self._take_over(system, walked)
                self._stop = ""
                made = record.steps + record.quits  # resets that were chosen use up the budget, too
                last = made + min(budget, UNLIMITED - made)
                while not (self._finished or engine.interrupted or record.steps + record.quits >= last):
                    if not self._go_on(walked, last):
                        continue
                    if endless:
                        self._patience.warn_if_exhausted()
                    report()
                report(last=True)
                self._stop = self._why(engine.interrupted)
                self.report()  # here, where an error keeps what was collected
            except KeyboardInterrupt:
                engine.break_off()
                self._stop, self.is_torn = "interrupted", True
            except Exception as error:
                if isinstance(error, InputError) and record.steps == 0:
                    raise
                engine.break_off()
                self._stop = "failed"
                why = str(error) or type(error).__name__
                raise CollectionError(f"the run failed after {record.steps} steps: {why}", self.result()) from error

    def _go_on(self, system: System, last: int) -> bool:
        """Follow an attempt, until `last` steps and chosen resets at most; False if there is nothing to attempt."""
        engine, record = self.engine, self.record
        if engine.attempt is None and not self._new_attempt():
            return False
        system.follow(engine, min(system.block, last - record.steps - record.quits))
        record.flush()
        self._update_if_met()
        if engine.attempt is None:  # also after the last event of a log
            self._cut_off.waive([] if engine.state is None else [engine.state])
        return True

    def play(self, system: System | None, last: int, left: Callable[[], int]) -> None:
        """Walk a system that was recorded, as far as its log goes.

        Parameters
        ----------
        system
            What to walk; None: what was walked before.
        last
            The number of steps and chosen resets at the end of the log.
        left
            Returns how many events of the log are left.
        """
        walked = self._chosen(system)
        try:
            self._take_over(system, walked)
            idle = 0  # attempts in a row without an event: one may end where a reset is chosen
            while left() and not self._finished and idle < 3:
                before = left()
                self._go_on(walked, last)
                idle = idle + 1 if left() == before else 0
        except Paused:
            self.record.flush()
        except Exception as error:
            self._fail_at_end(error, left())

    def prepare(self) -> bool:
        """Do the next thing that a run does before another event; False if there is none: only an event leads on.

        It plans an attempt, or chooses a reset. A log does not say how far the run that wrote it was in this.
        """
        engine, before = self.engine, (self.attempts, self.engine.attempt, self.record.quits, self.given_up)
        if self._stop == "failed" or self._finished or engine.state is None:
            return False
        try:
            if engine.attempt is None:
                self._new_attempt()
            elif not engine.at_reset and not isinstance(self._system, Tabular):
                engine.quit_if_chosen()
        except Exception as error:
            self._fail_at_end(error, 0)
            return True
        # before the next attempt, what is missing may be given up
        return self._finished or before != (self.attempts, engine.attempt, self.record.quits, self.given_up)

    def _fail_at_end(self, error: Exception, left: int) -> None:
        """Let this be where the recorded run failed, if its log ends here; otherwise the error is one of the log."""
        if left or (isinstance(error, GosprlError) and not isinstance(error, InputError)):
            raise error
        self.engine.break_off()
        self._stop = "failed"

    def conclude(self) -> None:
        """Stop here: there is nothing left to do, or no step is allowed any more."""
        self._stop = "failed" if self._stop == "failed" else self._why(False)

    @property
    def is_finished(self) -> bool:
        """Whether everything is met, what is missing was given up, or a reward found; nothing is planned to know it."""
        return self._finished

    @locked
    def result(self) -> Result:
        """Return what was collected so far: a snapshot, which later steps do not change."""
        return snapshot(self, last=False)

    def last_result(self) -> Result:
        """Return the same for a collector that is not used any more: its counts are handed over, not copied."""
        return snapshot(self, last=True)

    def fleet_status(self) -> dict[str, int]:
        """Return `walkers`, `in_flight` and `lost` of a fleet; nothing where there is one walker."""
        return {} if self._crew is None else {"walkers": len(self._walks)} | self._crew.status()

    def fleet_facts(self) -> dict[str, int] | None:
        """Return how many `walkers` of a fleet there were, and how many samples were `lost`; None for one walker."""
        return None

    def last_trouble(self) -> str:
        """Return why the last walker of a fleet that had an order was lost; "" if none was."""
        return ""

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
            said = checked_report(planner, self._model.rows.num_states)
            return said if self._crew is None else said._replace(guarantee=self._crew.qualified(said.guarantee))
        except Exception:
            if self._stop not in ("failed", "interrupted"):
                raise
            return Report(Guarantee.none(f"{type(planner).__name__} failed to state one"), {}, {})

    @property
    def start(self) -> int | None:
        """The state in which everything began."""
        return self._start

    @property
    def has_begun(self) -> bool:
        """Whether something can be met: before the first state is discovered, nothing is asked of any."""
        return self._start is not None or self.record.need.requirement.num_states(self._model) > 0

    @property
    def had(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Visits before the run, of the rows `rows_had`."""
        return self._had

    @property
    def truth(self) -> TabularMDP | None:
        """The true dynamics, if the system told them and they are about the same pairs."""
        mdp = None if self._system is None else self._system.mdp
        return mdp if mdp is not None and mdp.rows.same(self._model.known_rows) else None

    def _new_record(
        self, model: EmpiricalModel, asked: Requirement, threshold: float, rewards: tuple[float, float]
    ) -> Record:
        return Record(model, asked, threshold, rewards)

    def _positions(self, s: int) -> list[int]:
        """Return where all walkers are, first the one that asks in s."""
        return [s] if self._sharing is None else self._sharing.positions(self.engine, s)

    def _begin_planner(self) -> Planner:
        _checks.open_unit("strategy: delta", self.strategy.delta)
        planner = self.strategy.begin(self.record.counted.model, self.record.need, self.engine.rng)
        if not isinstance(planner, Planner):
            raise InputError(
                f"strategy: expected {type(self.strategy).__name__}.begin to return a gosprl.strategies.Planner, got "
                f"{planner!r:.80}"
            )
        checked_report(planner, self._model.rows.num_states)
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
            self.note_walk()
            engine.components = self._paths.look_at(system)
            self._given, self._system = given, system
            engine.state = None
        elif given is not None and given is not before and not isinstance(given, TabularMDP):
            engine.state = None  # others may have stepped or reset it since
        elif self._by_hand and not isinstance(system, Tabular):
            engine.state = None  # the walk went on without it; only a simulation goes on from anywhere
        self._by_hand, self._walk.asked = False, None
        if engine.state is None:
            engine.begin_anew(system, is_first=self._start is None)
            self._start = engine.state if self._start is None else self._start
            if not self._was_cut_off:
                self._paths.begin_anew()
            self.record.update_need()
        self._was_cut_off = False

    def note_walk(self) -> None:
        """Write down where samples come from: a system that draws from the seed of the run."""
        self.note_origin(Origin(f"the walk with seed {self.seed}", (walk_id(self.entropy),)))

    def note_origin(self, origin: Origin) -> None:
        """Write down where samples of the model come from, once."""
        if origin not in self._model.origins:
            self._model.origins += (origin,)

    def _check_pairs(self, system: System) -> None:
        """Rows of the model are rows of the MDP: compiled code takes that for granted."""
        mdp = system.mdp
        rows = self._model.known_rows
        if mdp is not None and (self._model.growing or not mdp.rows.same(rows) or self._model.resets == "anytime"):
            raise InputError(
                f"system: {mdp.name} has {mdp.num_states} states and {len(mdp.rows)} pairs, and they are not those of "
                f"the collector, {self._model.states.fixed} and {len(rows)}; begin with "
                "model=EmpiricalModel.over(mdp.rows)"
            )

    def _new_attempt(self) -> bool:
        """Ask the planner; False if there is nothing to do (any more)."""
        sharing = self._sharing
        as_before = self.engine.components is None and self.record.begun < self._renew_at
        if sharing is not None and as_before and sharing.join(self.engine):
            return True
        if not self._begin_attempt():
            return False
        if sharing is not None:
            assert self.planner is not None
            sharing.begun(self.engine, self.planner)
        return True

    def _begin_attempt(self) -> bool:
        engine, planner, record = self.engine, self.planner, self.record
        assert planner is not None
        assert engine.state is not None
        record.update_need()
        walkers = self._positions(engine.state)
        self._paths.waive_unreachable(walkers)
        self._cut_off.waive(walkers)
        if self._finished or record.all_in_flight:
            return False
        self._resize_planner()
        if engine.broken:
            planner.restart()
            engine.broken = False
        if record.begun >= self._renew_at:
            planner = self._renewed(planner)
        if self._sharing is not None:
            planner.place_walkers(walkers)
        if self._waits_for_resets():
            engine.begin(RandomPlanner(self._model).attempt(engine.state, record.begun + 1))
            return True
        answer = planner.attempt(engine.state, record.accounted + 1)
        if isinstance(answer, GivenUp):
            self.given_up = GivenUp(_checks.reasons("GivenUp.states", answer.states, self._model.rows.num_states))
            return False
        if not isinstance(answer, Attempt):
            raise InputError(
                f"strategy: expected {type(planner).__name__}.attempt to return an Attempt or GivenUp, got "
                f"{answer!r:.80}"
            )
        engine.begin(checked_attempt(answer, self._model))
        self.attempts += answer.horizon > 1
        return True

    def _resize_planner(self) -> None:
        """Let the planner have as many states and rows as the model."""
        assert self.planner is not None
        if self._model.rows is not self._rows:
            self._rows = self._model.rows
            self.planner.resize()

    def _renewed(self, planner: Planner) -> Planner:
        """Return a new planner in the place of this one, which is told only what can be stored.

        Every run does that at the same numbers of steps, kept on disk or not: a run that is resumed from there makes
        the same steps as one that was never interrupted.
        """
        self._renew_at = (self.record.begun // RENEWAL + 1) * RENEWAL
        memory, of_requirement = planner.remember(), self.record.need.requirement.remember()
        if memory is None:
            return planner
        self.planner = new = self._begin_planner()
        new.recall(memory)
        if self.record.journal is not None and of_requirement is not None:
            self.record.journal.checkpoint(self._remember(memory, of_requirement))
        return new

    def _remember(self, of_planner: dict[str, Any], of_requirement: dict[str, Any]) -> dict[str, Any]:
        return {
            "attempts": self.attempts,
            "renew at": self._renew_at,
            "start": self._start,
            "planner": of_planner,
            "requirement": of_requirement,
            "record": self.record.remember(),
            "engine": self.engine.remember(),
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Be as the collector was when its planner was renewed and this was saved; its counts are there already."""
        self.attempts, self._renew_at, self._start = memory["attempts"], memory["renew at"], memory["start"]
        self.record.need.requirement.recall(memory["requirement"])
        self.record.recall(memory["record"])
        self._rows = self._model.rows
        self.planner = self._begin_planner()
        self.planner.recall(memory["planner"])
        self.engine.recall(memory["engine"])

    def try_out(self) -> None:
        """Make what a run makes of its memory in the end: fails if the memory was not one."""
        if self.planner is not None:
            self.planner.remember()
        self.result()

    def take_up(self, system: System, *, where_it_was: bool) -> None:
        """Go on with another system in the place of the one walked so far, from the next `walk` without a system.

        Parameters
        ----------
        where_it_was
            Whether the system is in the state where the walk is. Otherwise it is reset first; where an episode has
            just ended or was cut off, it is reset anyway. It must have been given its seed.
        """
        engine = self.engine
        engine.components = self._paths.look_at(system)
        self._given = self._system = system
        self._was_cut_off = engine.state is None
        if not where_it_was and not engine.at_reset:
            engine.break_off()
            engine.state = None

    def take_counts(self, state: int | None, start: int | None, age: int = 0) -> None:
        """Begin where counts were made before, which the record has already.

        Parameters
        ----------
        state
            Where the walk is; None: the system has to be reset first.
        start
            Where everything began; None: nothing has.
        age
            Steps of the episode.
        """
        self.record.curve.clear()
        self.record.need.recall({}, 0)
        self.record.update_need()
        self._rows = self._model.rows
        self.planner = self._begin_planner()
        self._start, self.engine.age = start, age
        if state is not None:
            self.engine.put(state)

    def _begin_to_share(self) -> None:
        """Let there be several walkers from now on: count what is committed apart from what returned.

        Everything counted so far is committed. The planner is replaced by one that is told what the old one could
        store, as in `_renewed`, and plans with the new counts.
        """
        from gosprl.fleet.asking import Crew, shared_record

        planner, engine = self.planner, self.engine
        assert planner is not None
        self._account(walked=True)
        memory = planner.remember()
        self.record = engine.record = record = shared_record(self.record)
        self._paths, self._cut_off, self._patience = Paths(record), CutOff(record), Patience(record)
        if self._system is not None:
            engine.components = self._paths.look_at(self._system)
        self._rows = self._model.rows
        self.planner = self._begin_planner()
        if memory is not None:
            self.planner.recall(memory)
        engine.end()
        self._sharing = Sharing(self._walks)
        self._crew = Crew(record, self._sharing, self._lost)

    def _waits_for_resets(self) -> bool:
        """Whether only resets are missing, and no action leads there: episodes end by the clock alone."""
        model, unmet = self._model, self.record.need.unmet_items
        reset = model.states.reset
        alone = reset >= 0 and bool(unmet[reset] > 0) and self.record.need.unmet_states == 1
        return alone and model.resets == "terminal" and not model.states.finals and self.engine.state != reset

    def _update_if_met(self) -> None:
        """Adaptive requirements may grow: evaluate again when everything is met."""
        if self.record.need.met:
            self.record.update_need()

    def _account(self, *, walked: bool) -> None:
        """Say to a planner that keeps accounts how far the run is."""
        if self.planner is not None:
            self.record.flush()
            self.planner.account(self.record.accounted, self.record.need.collected, walked=walked)

    def _why(self, interrupted: bool) -> str:
        if self.record.found is not None:
            return "found"
        need = self.record.counted.need
        if need.met and self.has_begun:
            return "unreachable" if (need.waived or need.not_offered()) and len(need.unmet()) else "met"
        return "unreachable" if self.given_up else "interrupted" if interrupted else "max_steps"
