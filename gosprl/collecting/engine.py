"""Engine: follows attempts, whoever makes the steps.

One transition, for every kind of system: `choose` says which row is taken (the system, or the user of ask/tell, makes
the step), `arrive` writes it and decides whether the attempt ended. Resets and teleports pass here as well. Systems
that are stepped through and ask/tell call these methods one by one; a `TabularMDP` follows the same attempt compiled
(`gosprl.systems.tabular`), by the same rules (`gosprl.collecting.rules`).
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl import _checks
from gosprl.collecting import rules
from gosprl.collecting.forked import end_copy
from gosprl.collecting.outcome import Outcome, Paused, Start
from gosprl.collecting.record import Record
from gosprl.collecting.rules import INVALID_ROW
from gosprl.errors import GosprlError, InputError
from gosprl.model.states import CRASH
from gosprl.strategies.base import UNLIMITED, Attempt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gosprl.systems.base import System


class Engine:
    """Where the walk is, and the attempt that it follows.

    Attributes
    ----------
    state
        Index of the state that the walk is in; None if that is not known.
    attempt
        The attempt that is being followed; None between two attempts.
    made
        Steps of the attempt made so far.
    broken
        Whether the walk went on elsewhere since the last attempt ended, without a transition; the collector tells
        the planner and clears it.
    """

    def __init__(self, record: Record, rng: np.random.Generator, horizon: int = UNLIMITED) -> None:
        self.record, self.rng, self.horizon = record, rng, horizon
        self.age = 0  # steps of the episode
        self.state: int | None = None
        self.attempt: Attempt | None = None
        self.made = 0
        self.broken = True
        self.interrupted = False
        self.components: NDArray[np.int64] | None = None  # [S] of the true dynamics, if known
        self._offered: Sequence[int] | None = None  # the actions offered now, in a state that does not always do that
        self._moved = False  # whether the attempt made a transition, be it a reset
        self._rows_of_policy = True

    def remember(self) -> dict[str, Any]:
        """Return what a new engine has to `recall` between two attempts: JSON values."""
        stream = self.rng.bit_generator.state
        numbers = {name: str(number) for name, number in stream["state"].items()}  # of 128 bits
        return {"state": self.state, "age": self.age, "rng": {**stream, "state": numbers}}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Be where the engine was that remembered this."""
        stream = memory["rng"]
        numbers = {name: int(number) for name, number in stream["state"].items()}
        self.rng.bit_generator.state = {**stream, "state": numbers}
        self.age, self.broken, self.attempt = memory["age"], False, None
        self.put(memory["state"])

    def put(self, s: int) -> None:
        """Let the walk be in a state, where it came to without this engine."""
        self._come_to(s, self.record.model.offered(s))

    def begin(self, attempt: Attempt) -> None:
        """Follow this attempt from now on; it must have been checked (`checked_attempt`)."""
        self.attempt, self.made, self._moved = attempt, 0, False
        self._rows_of_policy = attempt.policy.dtype == np.int64

    def end(self) -> None:
        """Follow the attempt no more."""
        self.attempt = None

    def break_off(self) -> None:
        """Drop the attempt: the position or the counts changed outside of it."""
        self.attempt, self.broken = None, True

    @property
    def at_reset(self) -> bool:
        """Whether an episode has ended, so that only a reset leads on."""
        return self.state is not None and bool(self.record.model.terminal[self.state])

    def start(self, key: Any, actions: Sequence[int] | None = None, *, by_reset: bool = False) -> None:
        """Put the walk where an observation is made: it begins there, or goes on there without a transition.

        Parameters
        ----------
        key
            Stands for the observation.
        actions
            The actions offered there; None: all.
        by_reset
            Whether a reset led there, so that it is a sample of the law of the start.
        """
        self.break_off()
        self.state = None
        s = self.record.arrive_at(key, actions)
        if by_reset:
            self.record.reset(s)
            self.age = 0
        self._come_to(s, actions)

    def begin_anew(self, system: "System", *, is_first: bool = False) -> None:
        """Reset a system, and go on there without a transition; `is_first`: that begins the run."""
        self.start(*self.reset_of(system), by_reset=True)
        self.record.resets += not is_first

    def offer(self, actions: Sequence[int] | None) -> None:
        """Take in which actions the present state offers."""
        assert self.state is not None
        self.record.offer(self.state, actions)
        self._offered = actions if self.state in self.record.model.aliased else None

    def _come_to(self, s: int, actions: Sequence[int] | None) -> None:
        self.state = s
        self._offered = actions or None if s in self.record.model.aliased else None

    def choose(self) -> int:
        """Return the row to take in the present state; -1 if the attempt hands back, and then it has ended."""
        attempt, s, record = self.attempt, self.state, self.record
        assert attempt is not None
        assert s is not None
        ptr, need = record.model.rows.ptr, record.need
        begin, end = int(ptr[s]), int(ptr[s + 1])
        if attempt.sample and need.unmet_items[s]:
            i = rules.under_sampled_row(0, end - begin, *record.visits_and_needs(begin, end))
            if i >= 0:
                return begin + int(i) if self._offered is None else self._offered_row(begin + int(i))
        if self._rows_of_policy:
            row = int(attempt.policy[s])
        else:
            i = rules.drawn_row(0, end - begin, attempt.policy[begin:end].tolist(), self.rng.random())
            row = INVALID_ROW if i < 0 else begin + int(i)
        if begin <= row < end:
            row = self._sample_instead(row) if need.of_states else row
            if self._offered is not None:
                return self._offered_row(row)
            if record.model.enabled[row]:
                return row
            row = rules.NO_ROW  # planned before it was known what this state offers
        if row != rules.NO_ROW:
            raise self.invalid_row()
        self.hand_back()
        return row

    def foreseen(self, s: int) -> int:
        """Return the row that the attempt takes if the walk comes to s next; -1 if that cannot be said."""
        attempt, record = self.attempt, self.record
        model, need = record.model, record.need
        if attempt is None or not self._rows_of_policy or s >= len(attempt.policy) or attempt.goals[s]:
            return -1
        if model.terminal[s] or s in model.aliased:
            return -1
        begin, end = int(model.rows.ptr[s]), int(model.rows.ptr[s + 1])
        if attempt.sample and need.unmet_items[s]:
            i = rules.under_sampled_row(0, end - begin, *record.visits_and_needs(begin, end))
            if i >= 0:
                return begin + int(i)
        row = int(attempt.policy[s])
        return row if begin <= row < end and model.enabled[row] and not model.certain[row] else -1

    def _offered_row(self, row: int) -> int:
        """Return the row, or one with the fewest visits among those that the state offers this time."""
        model, s = self.record.model, self.state
        assert s is not None
        assert self._offered is not None
        if model.certain[row] or int(model.rows.action[row]) in self._offered:
            return row
        begin, end = int(model.rows.ptr[s]), int(model.rows.ptr[s + 1])
        offered = [r for r in range(begin, end) if int(model.rows.action[r]) in self._offered]
        return min(offered, key=self.record.visits)

    def _sample_instead(self, row: int) -> int:
        """Return the row; instead of a reset, in a state that needs samples of any action, the one with fewest visits.

        A reset is no sample, and where any action is, none is needed.
        """
        model, need, s = self.record.model, self.record.need, self.state
        assert s is not None
        if not model.certain[row] or need.state_visits[s] >= need.state[s]:
            return row
        begin, end = int(model.rows.ptr[s]), int(model.rows.ptr[s + 1])
        return min((r for r in range(begin, end) if model.enabled[r] and not model.certain[r]), key=self.record.visits)

    def any_row(self) -> int:
        """Return a row that the present state offers, the first of them."""
        assert self.state is not None
        ptr, enabled = self.record.model.rows.ptr, self.record.model.enabled
        row = int(ptr[self.state]) + int(np.argmax(enabled[ptr[self.state] : ptr[self.state + 1]]))
        return row if self._offered is None else self._offered_row(row)

    def hand_back(self) -> None:
        """End the attempt: its policy has no row for the present state. An error if it led nowhere at all."""
        if not self._moved:
            raise InputError(
                f"attempt.policy: expected a row for state {self.state}, where the attempt begins, got -1 (hand back): "
                "such an attempt makes no progress"
            )
        self.end()

    def invalid_row(self) -> InputError:
        """Return the error for a policy whose entry for the present state is none."""
        assert self.attempt is not None
        assert self.state is not None
        s, rows, policy = self.state, self.record.model.rows, self.attempt.policy
        begin, end = int(rows.ptr[s]), int(rows.ptr[s + 1])
        if self._rows_of_policy:
            expected, got = f"a row of state {s}, {begin}..{end - 1}, or -1 to hand back", str(policy[s])
        else:
            expected, got = f"probabilities of the rows {begin}..{end - 1} of state {s}", str(policy[begin:end])
        return InputError(f"attempt.policy: expected {expected}, got {got}")

    def arrive(
        self,
        row: int,
        key: Any,
        reward: float,
        terminated: bool,
        actions: Sequence[int] | None = None,
        truncated: bool = False,
    ) -> None:
        """Write a step by `row` to an observation, and end the attempt if that is a reason to."""
        s, record = self.state, self.record
        s_next = record.step(row, key, reward, terminated, actions, truncated)
        self._come_to(s_next, actions)
        self.made += 1
        self.age += 1
        self._moved = True
        if self.attempt is not None:
            self._end_if_over(self.attempt, row, s, s_next)
        else:
            record.know_what_is_met()  # no attempt looks at it

    def reset(self, key: Any, actions: Sequence[int] | None = None) -> None:
        """Write what the reset led to."""
        before, attempt = self.state, self.attempt
        self.state = None
        s = self.record.arrive_at(key, actions)
        self.record.reset(s)
        self.record.resets += 1
        self._come_to(s, actions)
        self.age = 0
        self._moved = True
        if attempt is not None:
            self._end_if_over(attempt, int(self.record.model.rows.ptr[self.record.model.states.reset]), before, s)

    def quit_if_chosen(self) -> None:
        """Take the row that leads to the reset, if the attempt chooses it here."""
        row = self.choose()
        if row >= 0 and self.record.model.certain[row]:
            self.quit_episode(row)

    def quit_episode(self, row: int) -> None:
        """Take the row that leads to the reset: no step."""
        s, model = self.state, self.record.model
        self.record.pass_by(row, model.states.reset)
        self.record.quits += 1
        self.state = model.states.reset
        self.made += 1  # so that an attempt ends
        self._moved = True
        if self.attempt is not None:
            self._end_if_over(self.attempt, row, s, model.states.reset)

    def _end_if_over(self, attempt: Attempt, row: int, s: int | None, s_next: int) -> None:
        record, need, label = self.record, self.record.need, self.components
        if record.looked_for or len(attempt.limit) != len(record.model.rows):  # or it is about fewer states than now
            record.flush()
            self.attempt = None
            return
        visits, met, settled = record.visits(row), False, False
        of_row = visits == need.pair[row]
        if of_row or need.of_states:  # only then can this sample have fulfilled an item
            record.flush()
            met = need.met
            settled = need.unmet_items[s] == 0 and (of_row or need.state_visits[s] == need.state[s])
        over = rules.why_ended(
            record.found is not None,
            met,
            attempt.goals[s_next],
            settled and attempt.sample,
            visits > attempt.limit[row],
            label is not None and label[s] != label[s_next],
            self.made >= attempt.horizon,
        )
        if over != rules.GOES_ON:
            self.attempt = None

    def follow(self, system: "System", steps: int) -> None:
        """Step through a system until the attempt ends, or for at most `steps` steps."""
        model, journal = self.record.model, self.record.journal
        while self.attempt is not None:
            at_ending = model.terminal[self.state]
            if journal is not None and journal.due and not at_ending:  # a new system has no state before its reset
                journal.sync(system)
            if at_ending:
                self.reset(*self.reset_of(system))
            elif steps == 0 or self.interrupted:
                return
            else:
                row = self.choose()
                if row < 0:
                    return
                steps -= 1
                if model.certain[row]:
                    self.quit_episode(row)
                else:
                    self._step(system, row)

    def _step(self, system: "System", row: int) -> None:
        s, self.state = self.state, None  # not known while the system is at work
        owner = os.getpid()
        try:
            answer = system.step(int(self.record.model.rows.action[row]))
        finally:
            end_copy(owner)
        outcome = self._checked(answer, system)
        self.state = s
        # the age of an episode is counted in `arrive`
        cut_off = not outcome.terminated and (outcome.truncated or self.age + 1 >= self.horizon)
        try:
            self.arrive(row, outcome.state, as_number(outcome.reward), outcome.terminated, outcome.actions, cut_off)
        except GosprlError:  # the step is refused, but made: the walk is elsewhere, perhaps in another episode
            self.state = None
            raise
        if cut_off:
            self.state = None
            self.begin_anew(system)

    def walked(self, s: int, steps: int, events: "NDArray[np.int64]") -> None:
        """Write what a compiled walk of `steps` steps to s did not write itself; its steps are counted already."""
        self.state = s
        self.made += steps
        self._moved = self._moved or steps > 0
        self.record.walk(steps, events)

    def reset_of(self, system: "System") -> tuple[Any, Sequence[int] | None]:
        """Reset a system; (key of the observation, the actions offered), after checking it."""
        before, self.state = self.state, None
        owner = os.getpid()
        try:
            answer = system.reset()
        except Paused:
            self.state = before
            raise
        finally:
            end_copy(owner)
        key, actions = answer if isinstance(answer, Start) else (answer, None)
        key = self.key_of(key, f"the state that {type(system).__name__}.reset() returned")
        self.state = before
        return key, actions

    def _checked(self, outcome: Any, system: "System") -> Outcome:
        """Return what `step` returned, after checking it."""
        if not (isinstance(outcome, (tuple, list)) and len(outcome) in (4, 5)):
            raise InputError(
                f"system: expected {type(system).__name__}.step to return an Outcome (state, reward, terminated, "
                f"truncated, actions), got {outcome!r:.80}"
            )
        key, reward, terminated, truncated = outcome[:4]
        if key is CRASH and terminated:
            return Outcome(CRASH, reward, True)
        key = self.key_of(key, f"the state that {type(system).__name__}.step() returned")
        return Outcome(key, reward, bool(terminated), bool(truncated), *outcome[4:])

    def key_of(self, key: Any, what: str) -> Any:
        """Return the key of a state that is alive, after checking it; `what` it is, for errors."""
        fixed = self.record.model.states.fixed
        if (fixed == 0 and key is not CRASH) or (type(key) is int and 0 <= key < fixed):
            return key
        name = f"system: {what}"
        if key is CRASH:
            raise InputError(f"{name}: expected an observation, or CRASH with terminated=True after a step, got CRASH")
        return _checks.index(name, key, fixed, "a state")


def as_number(reward: Any) -> float:
    """Return a reward as a float, after checking that it is a number; the record checks that it is an allowed one."""
    if type(reward) is float:
        return reward
    try:
        if isinstance(reward, (str, bytes)):
            raise TypeError
        return float(reward)
    except (TypeError, ValueError):
        raise InputError(f"reward: expected a finite number, got {reward!r:.80}") from None


def finite(reward: Any) -> float:
    """Return the same, after checking that it is finite."""
    number = as_number(reward)
    if not math.isfinite(number):
        raise InputError(f"reward: expected a finite number, got {reward}")
    return number
