"""Ask and tell: the loop that a user owns, of one walker or several.

With one walker, what is told is counted at once. When a second walker asks for the first time, the collector begins to
share (`gosprl.fleet.asking`): samples are counted in the order in which they were asked for, and what other walkers
work on is not asked for again.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from gosprl import _checks
from gosprl.collecting.engine import Engine, finite
from gosprl.collecting.record import Record
from gosprl.errors import InputError
from gosprl.model.content import Content
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import UNSAID
from gosprl.model.states import CRASH

if TYPE_CHECKING:
    from gosprl.collecting.sharing import Sharing
    from gosprl.fleet.asking import Crew
    from gosprl.fleet.samples import Sample

RESET = -1  # what `ask` returns where the system is to be reset
WAIT = -2  # what `ask` returns where a walker has nothing to do until another one tells
P = ParamSpec("P")
T = TypeVar("T")
LOST = {"unknown": None, "state": None, "independent": None}


def locked(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Let one thread at a time use an object with a `_lock`; others wait."""

    @wraps(method)
    def alone(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return method(self, *args, **kwargs)

    return alone


@dataclass(slots=True, eq=False)
class Walk:
    """One walker: where it is, and what it was asked to do."""

    name: Hashable
    engine: Engine
    asked: tuple[int, Any, int] | None = None  # (row, key, action) of the question that is open
    cut: bool = False  # whether an episode was cut off, so that a reset leads to the next state asked about
    owed: bool = False  # whether the episode reached its horizon, so that the next answer is to reset
    sample: "Sample | None" = None  # that it works on, where there are several walkers
    is_lost: bool = False  # whether that sample was given up


class AskTell(ABC):
    """Answers what to do, and hears what it led to; the part of a `Collector` for loops that the user owns."""

    def __init__(self, model: EmpiricalModel, record: Record, engine: Engine, lost: str) -> None:
        self._model, self.record, self.engine, self._lost = model, record, engine, lost
        self._start: int | None = None  # where it all began
        self._walk = Walk(None, engine)  # the walker that asked or told last
        self._walks: dict[Hashable, Walk] = {}  # by name
        self._crew: Crew | None = None  # as soon as there are several walkers
        self._sharing: Sharing | None = None  # likewise
        self._by_hand = False  # whether the walk went on by ask and tell since the last run
        self._told_offers = False  # whether the user says which actions states offer
        self._stop = ""
        self._content = Content()
        self._lock = threading.RLock()  # walkers may be threads

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

    @abstractmethod
    def _begin_to_share(self) -> None:
        """Let there be several walkers from now on; sets `_crew`."""

    @locked
    def ask(self, s: Any, actions: Sequence[int] | None = None, walker: Hashable = None) -> int:
        """Return the action to take in state s; asking again before telling gives the same answer, if it is offered.

        Parameters
        ----------
        s
            The state that the system is in: its index, or anything that is an observation if states are discovered on
            the way. After a termination, a truncation or a reset, the state that the reset led to.
        actions
            Indices of the actions that this state offers; None: all.
        walker
            The name of the copy of the system that is in s, where there are several: anything hashable. They may ask
            and tell in any order. If a walker asks about another state than the one it came to, while its question is
            open, the sample asked for is given up (`lost`).

        Returns
        -------
        The index of the action; `gosprl.RESET` if the system is to be reset, which is not told: ask again then.
        `gosprl.WAIT`, only where there are several walkers: all that is missing is being collected by others; ask
        again when one of them has told, unless the collector is `done`.
        """
        key, walk = self._key("s", s), self._walk_of(walker)
        if walk is not None and walk.owed:
            walk.owed = False
            return RESET
        offered = None if actions is None else self._offer(actions)
        if walk is not None and walk.asked is not None and not walk.is_lost:
            _, asked_key, action = walk.asked
            if asked_key == key and (offered is None or action in offered):
                return action
        if (walk is None or self._crew is not None or walk.engine.attempt is None) and self._finished:
            if self._crew is not None or (walk is None and self._walks):
                return WAIT
            raise InputError("ask: there is nothing left to collect; look at `done` first")
        self._model.check_number(key)  # while nothing is changed
        if walk is None:
            walk = self._join(walker)
        self._walk, self.engine = walk, walk.engine
        self._told_offers = self._told_offers or offered is not None
        self._stop, self._by_hand = "", True
        if self._crew is None:
            walk.asked = None
            self._arrive(walk, key, offered)
        else:
            self._forget_question(walk)
            with self._crew.returning(walk):
                self._arrive(walk, key, offered)
        return self._answer(walk, key)

    def _arrive(self, walk: Walk, key: Any, offered: Sequence[int] | None) -> None:
        """Let a walker be where it asks about: there it was, or a reset led there, or it came there by itself."""
        engine = walk.engine
        if engine.at_reset:
            if engine.attempt is None and self._crew is None:
                self._new_attempt()
            engine.reset(key, offered)
            self._update_if_met()
        elif engine.state is None or self._model.states.live(key) != engine.state:
            engine.start(key, offered, by_reset=walk.cut or self._start is None)
            self.record.resets += walk.cut
        else:
            engine.offer(offered)
        walk.cut = False
        self._start = engine.state if self._start is None else self._start

    def _answer(self, walk: Walk, key: Any) -> int:
        row = self._next_row()
        if row < 0:
            return WAIT
        if self._model.certain[row]:
            walk.engine.quit_episode(row)
            self._expect_reset(walk)
            return RESET
        walk.asked = (row, key, int(self._model.rows.action[row]))
        if self._crew is not None:
            self._crew.issue(walk, row)
        return walk.asked[2]

    @locked
    def tell(
        self,
        s: Any,
        a: int,
        s_next: Any,
        reward: float = 0.0,
        terminated: bool = False,
        truncated: bool = False,
        crashed: bool = False,
        walker: Hashable = None,
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
        walker
            The name by which this was asked. What a walker tells that was given up (`lost`) is not wasted: the outcome
            takes the place that was kept for it.
        """
        walk = self._walk_of(walker)
        if walk is None or walk.asked is None or (self._key("s", s), a) != walk.asked[1:]:
            raise self._not_asked(walker, walk, s, a)
        key, row, reward = CRASH if crashed else self._key("s_next", s_next), walk.asked[0], finite(reward)
        terminated = bool(terminated or crashed)
        self._walk, self.engine = walk, walk.engine
        at_horizon = walk.engine.age + 1 >= walk.engine.horizon  # the age is counted in `arrive`
        cut_off = not terminated and bool(truncated or at_horizon)
        if self._crew is None:
            walk.engine.arrive(row, key, reward, terminated, UNSAID, cut_off)
        elif walk.is_lost:
            self._crew.fill(walk, key, reward, terminated, cut_off)
            walk.sample, walk.is_lost, walk.engine.age = None, False, walk.engine.age + 1
        else:
            assert walk.sample is not None
            with self._crew.returning(walk):
                walk.engine.arrive(walk.sample.row, key, reward, terminated, UNSAID, cut_off)
        walk.asked, self._by_hand = None, True
        walk.owed = cut_off and not truncated
        if cut_off or (terminated and walk.engine.state is None):
            self._cut(walk)
        self._update_if_met()
        self._expect_reset(walk)

    def _not_asked(self, walker: Hashable, walk: Walk | None, s: Any, a: int) -> InputError:
        asked, of_walker = "nothing", "" if walker is None else f" of walker {walker!r:.80}"
        if walk is not None and walk.asked is not None:
            asked = f"({s if walk.asked[1] == s else walk.asked[1]}, {walk.asked[2]})"
        return InputError(
            f"tell: expected the (s, a) of the last ask(){of_walker}, {asked}, got ({s}, {a}); observe() takes any "
            "transition"
        )

    @locked
    def lost(self, walker: Hashable = None, how: str | None = None) -> None:
        """Count no more on a walker: the sample that it was asked for is given up, and others may collect it instead.

        Call this for a walker that is gone, that takes too long, or that will not ask any more; other walkers wait for
        it otherwise. It may still tell what became of the sample, or ask from wherever it is then.

        Parameters
        ----------
        walker
            Its name.
        how
            What becomes of the sample, "unknown", "state" or "independent"; None: what `lost=` of the collector says.
        """
        how = self._lost if how is None else how
        check_lost("how", how, self._model)
        walk = self._walk_of(walker)
        if walk is None:
            raise InputError(f"lost: expected a walker that has asked, got {walker!r:.80}")
        if self._crew is None and (walk.asked is not None or walk.cut or walk.engine.at_reset):
            self._share()
        self._go_on_without(walk, how)
        if self._crew is not None and not walk.is_lost:
            del self._walks[walker]
        self._update_if_met()

    @property
    def on_loss(self) -> str:
        """What becomes of samples that are given up, if nothing else is said."""
        return self._lost

    @property
    def walkers(self) -> tuple[Hashable, ...]:
        """The walkers that asked, and are not gone."""
        return tuple(self._walks)

    @property
    def in_flight(self) -> tuple[Hashable, ...]:
        """The walkers that are counted on: they were asked for a sample, or their system is being reset."""
        if self._crew is not None:
            return tuple(name for name, walk in self._walks.items() if walk.sample is not None and not walk.is_lost)
        walk = self._walk
        is_open = self._walks and (walk.asked is not None or walk.cut or walk.engine.at_reset)
        return (walk.name,) if is_open else ()

    def _walk_of(self, walker: Hashable) -> Walk | None:
        try:
            return self._walks.get(walker)
        except TypeError:
            raise InputError(f"walker: expected a name that is hashable, got {walker!r:.80}") from None

    def _join(self, walker: Hashable) -> Walk:
        """Return a walker that was not there before."""
        if self._crew is None and not self._walks:
            walk = self._walk
            walk.name = walker
        else:
            if self._crew is None:
                self._share()
            like = self._walk.engine
            engine = Engine(self.record, like.rng, like.horizon)
            engine.components = like.components
            walk = Walk(walker, engine)
        self._walks[walker] = walk
        return walk

    def _share(self) -> None:
        """Let there be several walkers; what the only one so far works on is in flight."""
        walk = self._walk
        self._begin_to_share()
        assert self._crew is not None
        if walk.asked is not None:
            self._crew.issue(walk, walk.asked[0])
        else:
            self._expect_reset(walk)

    def _go_on_without(self, walk: Walk, how: str | None = None) -> None:
        """Give up what a walker works on; nobody knows where it is then. Its question can still be answered."""
        if self._crew is not None:
            self._crew.give_up(walk, how)
        walk.engine.break_off()
        walk.engine.state, walk.cut, walk.owed = None, False, False
        walk.is_lost = walk.asked is not None and self._crew is not None
        if not walk.is_lost:
            walk.sample = None

    def _forget_question(self, walk: Walk) -> None:
        """Expect no answer to an open question: the walker asks from elsewhere."""
        if walk.asked is None:
            return
        if walk.is_lost:
            walk.engine.age = 0  # it begins anew
        self._go_on_without(walk)
        walk.asked, walk.sample, walk.is_lost = None, None, False

    def _expect_reset(self, walk: Walk) -> None:
        """Issue the reset that is necessary next, if there is one: its outcome comes with the next `ask`."""
        if self._crew is None or not (walk.cut or walk.engine.at_reset):
            return
        if walk.engine.at_reset and walk.engine.attempt is None:
            self._new_attempt()
        self._crew.issue_reset(walk)

    def _cut(self, walk: Walk) -> None:
        """End the episode without an ending: the walk goes on where a reset leads."""
        walk.engine.break_off()
        walk.engine.state, walk.cut = None, True

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

    @locked
    def observe(self, s: Any, a: int, s_next: Any, reward: float = 0.0) -> None:
        """Count a transition that was not asked for; it counts like any other."""
        key, key_next, reward = self._key("s", s), self._key("s_next", s_next), finite(reward)
        s, s_next = self.record.arrive_at(key, UNSAID), self.record.arrive_at(key_next, UNSAID)
        row, self._stop = int(self.model.rows.index(s, a)), ""
        self._account(walked=True)
        self.record.observe(row, s_next, reward)
        self._account(walked=False)
        self.engine.break_off()
        if self._crew is not None:
            self._crew.end_attempts()
        self._update_if_met()

    @property
    def _knows_offer(self) -> bool:
        """Whether the present state is known, and what it offers: users say so when they ask, not before."""
        s = self.engine.state
        if s is None or not self._told_offers or self.engine.at_reset:
            return s is not None
        return self._model.knows_offer(s)

    def _next_row(self) -> int:
        """Return the row to take in the present state; -1 if there is none, and several walkers."""
        for _ in range(2):
            if self._sharing is not None:
                self._sharing.end_if_used_up(self.engine)
                if self.record.all_in_flight:
                    return -1
            if self.engine.attempt is None and not self._new_attempt():
                # Only now, in s, is it known that nothing is left to do: any action will do, and `done` says so.
                return self.engine.any_row() if self._crew is None else -1
            row = self.engine.choose()
            if row >= 0:
                return row
        raise AssertionError("an attempt that has made no step hands back")  # the engine raises before


def check_lost(name: str, lost: str, model: EmpiricalModel) -> None:
    """Check what is to become of samples that are given up."""
    _checks.choice(name, lost, LOST)
    if lost == "state" and model.resets == "never":
        raise InputError(f"{name}: expected 'unknown' or 'independent' with resets='never': a crash ends an episode")
