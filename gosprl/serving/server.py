"""What a server answers to which request; how lines come and go is in `gosprl.serving.doors`.

    {"type": "hello", "protocol": 1, "actions": 4}            {"type": "hello", "protocol": 1, "actions": 4}
    {"type": "ask", "observation": ..., "actions": [0, 2]}    {"action": 2}, {"action": "reset"}, {"done": true, ...}
    {"type": "tell", "observation": ..., "reward": 0.0}       {"ok": true, "done": false}
    {"type": "result"}                                        {"met": false, "steps": 17, ...}
    {"type": "close"}                                         {"ok": true, "closed": true}, and the client is let go

The state is that of a `Collector`: it outlives the client. A request that is wrong is answered with {"error": ...} and
changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gosprl import _checks
from gosprl.collecting.asktell import RESET
from gosprl.collecting.collector import Collector
from gosprl.collecting.result import Result
from gosprl.errors import GosprlError, InputError
from gosprl.systems import protocol
from gosprl.systems.protocol import PROTOCOL, Violation

RESET_WORD = "reset"


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

    Attributes
    ----------
    collector
        None until the actions are known.
    """

    def __init__(
        self, make: Callable[[int], Collector], actions: Sequence[Any] | None = None, max_steps: int | None = None
    ) -> None:
        self._make = make
        self._max_steps = None if max_steps is None else _checks.whole("max_steps", max_steps, 1)
        self._open: tuple[Any, int] | None = None  # the question that was answered with an action: observation, action
        self._walker: Any = None
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

    def answer(self, line: bytes) -> dict[str, Any]:
        """Return the answer to a line."""
        number: dict[str, Any] = {}
        try:
            request = protocol.message_of(line)
            number = {"id": request["id"]} if "id" in request else {}
            return self._answer(request) | number
        except GosprlError as error:
            return {"error": str(error)} | number

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        kinds = {"hello": self._hello, "ask": self._ask, "tell": self._tell, "result": self._result, "close": _close}
        kind = request.get("type")
        if not isinstance(kind, str) or kind not in kinds:
            raise Violation(f"type: expected one of {', '.join(kinds)}, got {kind!r:.40}")
        walker = request.get("walker")
        if kind in ("ask", "tell"):
            if self._walker not in (None, walker) and walker is not None:
                raise Violation(
                    f"walker: expected {self._walker!r:.40}: several are not served yet, got {walker!r:.40}"
                )
            self._walker = walker if self._walker is None else self._walker
        return kinds[kind](request)

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
        collector, observation = self._ready(), protocol.observation_of(request)
        offered = protocol.offered_of(request, self.actions)
        if self.done:
            return {"done": True} | self._summary()
        action = collector.ask(observation, offered)
        if action == RESET:
            self._open = None
            return {"action": RESET_WORD}
        if self.done:  # only now, in this state, it was found that what is missing cannot be reached
            return {"done": True} | self._summary()
        self._open = (observation, action)
        return {"action": self.actions[action]}

    def _tell(self, request: dict[str, Any]) -> dict[str, Any]:
        collector = self._ready()
        if self._open is None:
            raise Violation("tell: expected an ask first, whose answer is an action")
        crashed = protocol.flag_of(request, "crashed")
        after = None if crashed else protocol.observation_of(request)
        flags = {name: protocol.flag_of(request, name) for name in ("terminated", "truncated")}
        reward = protocol.reward_of(request)
        collector.tell(*self._open, after, reward=reward, crashed=crashed, **flags)
        self._open = None
        return {"ok": True, "done": self.done}

    def _result(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._ready()
        return self._summary()

    def _summary(self) -> dict[str, Any]:
        result = self._ready().result()
        stop = "max_steps" if self._is_over_budget() and not result.met else result.stop
        return {
            **{"met": result.met, "stop": stop, "steps": result.steps, "states": result.states},
            **{"missing": result.missing, "guarantee": str(result.guarantee)},
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
