"""Ask and tell: the loop that a user owns."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from gosprl import _checks
from gosprl.collecting.engine import Engine, finite
from gosprl.collecting.record import Record
from gosprl.errors import InputError
from gosprl.model.content import Content
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import UNSAID
from gosprl.model.states import CRASH

RESET = -1  # what `ask` returns where the system is to be reset


class AskTell(ABC):
    """Answers what to do, and hears what it led to; the part of a `Collector` for loops that the user owns."""

    def __init__(self, model: EmpiricalModel, record: Record, engine: Engine) -> None:
        self._model, self.record, self.engine = model, record, engine
        self._start: int | None = None  # where it all began
        self._asked: tuple[int, Any, int] | None = None  # (row, key, action) of the question that is open
        self._by_hand = False  # whether the walk went on by ask and tell since the last run
        self._cut_off = False  # whether an episode was, so that a reset leads to the next state asked about
        self._owed = False  # whether the episode reached its horizon, so that the next answer is to reset
        self._told_offers = False  # whether the user says which actions states offer
        self._stop = ""
        self._content = Content()

    @property
    @abstractmethod
    def model(self) -> EmpiricalModel:
        """The counts so far."""

    @property
    @abstractmethod
    def _finished(self) -> bool:
        """Whether there is nothing left to do."""

    @abstractmethod
    def _new_attempt(self) -> bool:
        """Ask the planner; False if there is nothing to do (any more)."""

    @abstractmethod
    def _update_if_met(self) -> None:
        """Evaluate an adaptive requirement again if everything is met."""

    @abstractmethod
    def _account(self, *, walked: bool) -> None:
        """Say to a planner that keeps accounts how far the run is."""

    def ask(self, s: Any, actions: Sequence[int] | None = None) -> int:
        """Return the action to take in state s; asking again before telling gives the same answer, if it is offered.

        Parameters
        ----------
        s
            The state that the system is in: its index, or anything that is an observation if states are discovered on
            the way. After a termination, a truncation or a reset, the state that the reset led to.
        actions
            Indices of the actions that this state offers; None: all.

        Returns
        -------
        The index of the action; `gosprl.RESET` if the system is to be reset, which is not told: ask again then.
        """
        key, engine = self._key("s", s), self.engine
        if self._owed:
            self._owed = False
            return RESET
        offered = None if actions is None else self._offer(actions)
        if self._asked is not None and self._asked[1] == key and (offered is None or self._asked[2] in offered):
            return self._asked[2]
        if engine.attempt is None and self._finished:
            raise InputError("ask: there is nothing left to collect; look at `done` first")
        self._model.check_number(key)  # while nothing is changed
        self._told_offers = self._told_offers or offered is not None
        self._stop, self._by_hand, self._asked = "", True, None
        if engine.at_reset:
            if engine.attempt is None:
                self._new_attempt()
            engine.reset(key, offered)
            self._update_if_met()
        elif engine.state is None or self._model.states.live(key) != engine.state:
            engine.start(key, offered, by_reset=self._cut_off or self._start is None)
            self.record.resets += self._cut_off
        else:
            engine.offer(offered)
        self._cut_off = False
        assert engine.state is not None
        self._start = engine.state if self._start is None else self._start
        row = self._next_row()
        if self._model.certain[row]:
            engine.quit_episode(row)
            return RESET
        self._asked = (row, key, int(self._model.rows.action[row]))
        return self._asked[2]

    def tell(
        self,
        s: Any,
        a: int,
        s_next: Any,
        reward: float = 0.0,
        terminated: bool = False,
        truncated: bool = False,
        crashed: bool = False,
    ) -> None:
        """Say what the action asked for led to.

        Parameters
        ----------
        s, a
            The state asked about and the action that `ask` returned.
        s_next
            The next state, as `ask` takes it.
        reward
            A finite number.
        terminated
            The episode ended in `s_next`: the next state asked about is that of the reset.
        truncated
            The episode was cut off after this step: the next state asked about is that of the reset.
        crashed
            The system itself crashed: that is what the action led to, `s_next` is not looked at, and the next state
            asked about is that of the reset.
        """
        if self._asked is None or (self._key("s", s), a) != self._asked[1:]:
            asked = (
                "nothing"
                if self._asked is None
                else f"({s if self._asked[1] == s else self._asked[1]}, {self._asked[2]})"
            )
            raise InputError(
                f"tell: expected the (s, a) of the last ask(), {asked}, got ({s}, {a}); observe() takes any transition"
            )
        key, row, reward = CRASH if crashed else self._key("s_next", s_next), self._asked[0], finite(reward)
        terminated = terminated or crashed
        self.engine.arrive(row, key, reward, bool(terminated), UNSAID)
        self._asked, self._by_hand = None, True
        self._owed = not (terminated or truncated) and self.engine.age >= self.engine.horizon
        if self._owed or (truncated and not terminated):
            self._cut()
        self._update_if_met()

    def _cut(self) -> None:
        """End the episode without an ending: the walk goes on where a reset leads."""
        self.engine.break_off()
        self.engine.state, self._cut_off = None, True

    def _key(self, name: str, s: Any) -> Any:
        """Return what stands for an observation, after checking it."""
        fixed = self._model.states.fixed
        if fixed == 0:
            return s if type(s) is int or type(s) is str else self._content.freeze(s)
        return s if type(s) is int and 0 <= s < fixed else _checks.index(name, s, fixed, "a state")

    def _offer(self, actions: Sequence[int]) -> tuple[int, ...]:
        count = self._model.num_actions - (self._model.resets == "anytime")
        offered = tuple(_checks.integers("actions", actions, 0, count, "actions").ravel().tolist())
        if not offered:
            raise InputError("actions: expected at least one action that the state offers, got none")
        return offered

    def observe(self, s: Any, a: int, s_next: Any, reward: float = 0.0) -> None:
        """Count a transition that was not asked for; it counts like any other."""
        key, key_next, reward = self._key("s", s), self._key("s_next", s_next), finite(reward)
        s, s_next = self.record.arrive_at(key, UNSAID), self.record.arrive_at(key_next, UNSAID)
        row, self._stop = int(self.model.rows.index(s, a)), ""
        self._account(walked=True)
        self.record.observe(row, s_next, reward)
        self._account(walked=False)
        self.engine.break_off()
        self._update_if_met()

    @property
    def _knows_offer(self) -> bool:
        """Whether the present state is known, and what it offers: users say so when they ask, not before."""
        s = self.engine.state
        if s is None or not self._told_offers or self.engine.at_reset:
            return s is not None
        return self._model.knows_offer(s)

    def _next_row(self) -> int:
        for _ in range(2):
            if self.engine.attempt is None and not self._new_attempt():
                # Only now, in s, is it known that nothing is left to do: any action will do, and `done` says so.
                return self.engine.any_row()
            row = self.engine.choose()
            if row >= 0:
                return row
        raise AssertionError("an attempt that has made no step hands back")  # the engine raises before
