"""What a server answers to which request; how lines come and go is in `gosprl.serving.doors`.

    {"type": "hello", "protocol": 1, "actions": 4}            {"type": "hello", "protocol": 1, "actions": 4}
    {"type": "ask", "observation": ..., "actions": [0, 2]}    {"action": 2}, {"action": "reset"}, {"done": true, ...}
    {"type": "tell", "observation": ..., "reward": 0.0}       {"ok": true, "done": false}
    {"type": "result"}                                        {"met": false, "steps": 17, ...}
    {"type": "close"}                                         {"ok": true, "closed": true}, and the client is let go

With "walker": "a" in ask and tell, a client has several copies of the system, and there may be several clients; `ask`
may then be answered with {"wait": seconds}. A client that says no name means its only walker.

The state is that of a `Collector`: it outlives the clients. A request that is wrong is answered with {"error": ...} and
changes nothing.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from gosprl import _checks
from gosprl.collecting.asktell import RESET, WAIT
from gosprl.collecting.collector import Collector
from gosprl.collecting.result import Result
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.lateness import Lateness
from gosprl.systems import protocol
from gosprl.systems.protocol import PROTOCOL, Violation

RESET_WORD = "reset"
UNASKED = object()
MOST_WALKERS = 10_000
SHORTEST, USUAL, LONGEST = 0.01, 0.1, 1.0  # seconds that a walker is told to wait


class Server:
    """Answers requests.

    Parameters
    ----------
    make
        Makes the collector, from the number of actions.
    actions
        Their values: 0 .. A - 1, or names. None: the first client says so, in its hello.
    max_steps
        Be done after so many steps.
    late
        With several walkers, when a sample is late, so that others may collect it instead: a multiple of the mean
        duration of a step, or seconds as text, such as "5s"; None: never.
    now
        Returns seconds that never decrease.

    Attributes
    ----------
    collector
        None until the actions are known.
    """

    def __init__(
        self,
        make: Callable[[int], Collector],
        actions: Sequence[Any] | None = None,
        max_steps: int | None = None,
        late: float | str | None = 20,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._now = make, now
        self._max_steps = None if max_steps is None else _checks.whole("max_steps", max_steps, 1)
        self._lateness = Lateness(late)
        self._open: dict[Any, tuple[Any, int]] = {}  # walker -> (observation, action) of the question that is open
        self._since: dict[Any, tuple[float, bool]] = {}  # walker in flight -> (when that began, whether by a reset)
        self._owner: dict[Any, Hashable] = {}  # walker -> the client that it belongs to
        self._first: Any = UNASKED  # the walker that asked first
        self._several = False  # whether others did
        self._left: set[Any] = set()  # those whose client has left and may come back, where there is only one
        self.collector: Collector | None = None
        self.actions: Sequence[Any] = ()
        if actions is not None:
            self._begin(actions)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask for."""
        return self.collector is not None and (self.collector.done or self._is_over_budget())

    def result(self) -> Result | None:
        """Return what was collected so far; None before the actions are known."""
        return None if self.collector is None else self.collector.result()

    def answer(self, line: bytes, client: Hashable = None) -> dict[str, Any]:
        """Return the answer to a line of a client."""
        number: dict[str, Any] = {}
        try:
            request = protocol.message_of(line)
            number = {"id": request["id"]} if "id" in request else {}
            return self._answer(request, client) | number
        except GosprlError as error:
            return {"error": str(error)} | number

    def leave(self, client: Hashable = None) -> None:
        """Take in that a client has left: what its walkers were asked for is lost, if others go on without them."""
        for walker in [walker for walker, owner in self._owner.items() if owner == client]:
            del self._owner[walker]
            if self._several:
                self._lose(walker)
            else:  # it may come back and go on
                self._left.add(walker)

    def _answer(self, request: dict[str, Any], client: Hashable) -> dict[str, Any]:
        kinds = {"hello": self._hello, "ask": self._ask, "tell": self._tell, "result": self._result, "close": _close}
        kind = request.get("type")
        if not isinstance(kind, str) or kind not in kinds:
            raise Violation(f"type: expected one of {', '.join(kinds)}, got {kind!r:.40}")
        if kind not in ("ask", "tell"):
            return kinds[kind](request)
        walker = self._walker(request, client)
        if walker not in self._owner and len(self._owner) >= MOST_WALKERS:
            raise Violation(f"walker: expected at most {MOST_WALKERS:,} at a time")
        answer = kinds[kind]({**request, "walker": walker})
        self._owner[walker] = client  # only now: a request that was refused changes nothing
        self._left.discard(walker)
        return answer

    def _walker(self, request: dict[str, Any], client: Hashable) -> Any:
        """Return the walker that a client speaks of: by its name, or the only one it has."""
        walker = request.get("walker")
        if walker is None:
            own = [name for name, owner in self._owner.items() if owner == client]
            if len(own) > 1 and None not in own:
                raise Violation(f"walker: expected one of {', '.join(map(repr, own))}, got none"[:200])
            walker = own[0] if len(own) == 1 else None
        elif isinstance(walker, bool) or not isinstance(walker, (str, int)):
            raise Violation(f"walker: expected a name or a whole number, got {walker!r:.40}")
        if self._owner.get(walker, client) != client:
            name = "without a name" if walker is None else f"{walker!r:.40}"
            raise Violation(f"walker: expected another name: the walker {name} belongs to another client")
        return walker

    def _hello(self, request: dict[str, Any]) -> dict[str, Any]:
        said = protocol.hello_of({"actions": list(self.actions) or None, **request}).actions
        if self.collector is None:
            self._begin(said)
        elif list(said) != list(self.actions):
            raise Violation(
                f"actions: expected {list(self.actions)!r:.80}, as this server knows, got {list(said)!r:.80}"
            )
        values: Any = len(self.actions) if isinstance(self.actions, range) else list(self.actions)
        return {"type": "hello", "protocol": PROTOCOL, "actions": values, "done": self.done}

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        collector, observation, walker = self._ready(), protocol.observation_of(request), request["walker"]
        offered = protocol.offered_of(request, self.actions)
        self._give_up_others(walker)
        if self.done:
            return self._done_or_wait()
        again = walker in self._since and self._open.get(walker, (UNASKED,))[0] == observation
        if not again and self._is_budget_in_flight():
            self._lose(walker)  # its question, if one is open, will have no answer
            return self._done_or_wait()
        action = collector.ask(observation, offered, walker=walker)
        self._several = self._several or self._first not in (UNASKED, walker)
        self._first = walker if self._first is UNASKED else self._first
        if action < 0:
            self._open.pop(walker, None)
        elif not self.done:  # it may be known only now that what is missing cannot be reached
            self._open[walker] = (observation, action)
        if not again:
            self._note_begin(walker, None if action == WAIT else action == RESET)
        if action == RESET:
            return {"action": RESET_WORD}
        return {"action": self.actions[action]} if walker in self._open else self._done_or_wait()

    def _done_or_wait(self) -> dict[str, Any]:
        if self.done:
            return {"done": True} | self._summary()
        return {"wait": round(min(max(self._lateness.mean or USUAL, SHORTEST), LONGEST), 3)}

    def _tell(self, request: dict[str, Any]) -> dict[str, Any]:
        collector, walker = self._ready(), request["walker"]
        if walker not in self._open:
            name = "" if walker is None else f" of walker {walker!r:.40}"
            raise Violation(f"tell: expected an ask{name} first, whose answer is an action")
        crashed = protocol.flag_of(request, "crashed")
        after = None if crashed else protocol.observation_of(request)
        flags = {name: protocol.flag_of(request, name) for name in ("terminated", "truncated")}
        reward = protocol.reward_of(request)
        collector.tell(*self._open[walker], after, reward=reward, crashed=crashed, **flags, walker=walker)
        del self._open[walker]
        self._note_begin(walker, True if walker in collector.in_flight else None)
        return {"ok": True, "done": self.done}

    def _note_begin(self, walker: Any, by_reset: bool | None) -> None:
        """Note that a walker begins a step or a reset, or nothing (None); and how long took what it did before."""
        now = self._now()
        since, was_reset = self._since.pop(walker, (now, None))
        if was_reset is not None and was_reset and by_reset:
            now = since  # that it is to reset is only said now
        elif was_reset is not None:
            self._lateness.note(now - since, of_reset=was_reset)
        if by_reset is not None:
            self._since[walker] = (now, by_reset)

    def _give_up_others(self, walker: Any) -> None:
        """Give up what other walkers were asked for, if their client has left, or they are late."""
        others = self._left - {walker}
        if others or self._several:
            for other in others:
                self._lose(other)
            self._left -= others
            now = self._now()
            for other, (since, by_reset) in list(self._since.items()):
                if other != walker and now - since >= self._lateness.limit(of_reset=by_reset):
                    self._lose(other, late=True)

    def _lose(self, walker: Any, *, late: bool = False) -> None:
        """Count no more on a walker; what is told of an open question nevertheless is heard."""
        collector = self._ready()
        self._since.pop(walker, None)
        if walker in collector.walkers:
            # a crash only if what is late does not change: otherwise that is no outcome of the pair
            unknown = late and collector.on_loss == "state" and not self._lateness.is_fixed
            collector.lost(walker, "unknown" if unknown else None)

    def _is_budget_in_flight(self) -> bool:
        return self._max_steps is not None and self._ready().record.begun >= self._max_steps

    def _result(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._ready()
        return self._summary()

    def _summary(self) -> dict[str, Any]:
        result = self._ready().result()
        stop = "max_steps" if self._is_over_budget() and not result.met else result.stop
        return {
            **{"met": result.met, "stop": stop, "steps": result.steps, "states": result.states},
            **{"missing": result.missing, "guarantee": str(result.guarantee)},
            **self._ready().fleet_status(),
        }

    def _is_over_budget(self) -> bool:
        return self._max_steps is not None and self._ready().record.steps >= self._max_steps

    def _ready(self) -> Collector:
        if self.collector is None:
            raise Violation('actions: expected a hello first that says them, {"type": "hello", "actions": ...}')
        return self.collector

    def _begin(self, actions: Sequence[Any]) -> None:
        if RESET_WORD in actions:
            raise InputError(f"actions: expected other names than {RESET_WORD!r}, which asks for a reset")
        self.collector, self.actions = self._make(len(actions)), actions
        self.collector.model.actions = actions


def _close(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"ok": True, "closed": True}
