"""Walkers as Ray actors, on one machine or many.

An actor has one call outstanding at a time. One that dies, alone or with its node, is lost, and a new one is started
under a new number: wherever the cluster has room, now or later. Nothing is restarted by Ray itself, since an actor that
was restarted would be at another place under the same number.
"""

import pickle
import re
import time
from collections.abc import Callable
from typing import Any

from gosprl import _checks
from gosprl.collecting.streams import Entropy
from gosprl.errors import GosprlError, InputError
from gosprl.fleet import ray_cluster, wire
from gosprl.fleet.crew import NONE, STARTING, Crew, Member, could_not_begin
from gosprl.fleet.orders import Order
from gosprl.fleet.walking import LONGEST_REASON, Facts, Walker, describe, make, reason

TIMEOUT = 10.0  # seconds in which an address has to answer


class ActorWalker:
    """What an actor runs; it answers with the messages that processes write."""

    def __init__(self, pickled: bytes, number: int, entropy: Entropy) -> None:
        self._pickled, self._number, self._entropy = pickled, number, entropy
        self._walker: Walker | None = None

    def begin(self) -> bytes:
        """Make the system and say what it is."""
        try:
            system = make(*pickle.loads(self._pickled))
            hello = wire.packed_json(wire.HELLO, describe(system))
            self._walker = Walker(system, self._number, self._entropy)
        except Exception as error:  # of the user's function, most of the time
            wrong = {"input": isinstance(error, InputError), "why": reason(error)}
            return wire.packed_json(wire.REFUSED, wrong)
        return hello

    def answer(self, number: int, action: int) -> bytes:
        """Carry out an order."""
        assert self._walker is not None
        try:
            return wire.packed_report(self._walker.answer(Order(number, self._number, action)))
        except Exception as error:  # of the system, whose state is not known any more
            return wire.packed_failure(error)


class Actor(Member):
    """An actor, and the call that it has outstanding."""

    __slots__ = ("handle",)

    def __init__(self, number: int, slot: int, initial: bool, handle: Any) -> None:
        super().__init__(number, slot, initial)
        self.handle = handle


class RayActors(Crew[Actor]):
    """Walkers as Ray actors.

    Parameters
    ----------
    factory
        A function that makes the system; Ray must be able to pickle it, and the nodes to import what it uses.
    workers
        Number of actors; None: one for each CPU of the cluster.
    address
        "host:port" or "ray://host:port"; None: that of the environment variable RAY_ADDRESS, or a cluster of our own
        on this machine. If Ray is initialised already, that connection is used.
    key, actions, entropy, describe
        As of `Processes`.
    start_timeout
        Seconds in which the first actor has to make its system; others may wait for room in the cluster.
    timeout
        Seconds in which the address has to answer.
    options
        Of the actors, as of `ray.remote`, such as {"num_cpus": 0.5} (1 by default) or {"resources": {"robot": 1}}.
    runtime_env
        As of `ray.init`: what nodes need to install.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        workers: int | None = None,
        address: str | None = None,
        *,
        key: Any = None,
        actions: Any = None,
        entropy: Entropy = None,
        describe: Facts | None = None,
        start_timeout: float = STARTING,
        timeout: float = TIMEOUT,
        options: dict[str, Any] | None = None,
        runtime_env: dict[str, Any] | None = None,
    ) -> None:
        if workers is not None:
            _checks.whole("workers", workers, 1)
        self._ours = ray_cluster.connect(address, workers, _checks.positive("timeout", timeout), runtime_env)
        self._ray = ray_cluster.imported()
        self._pickled = self._pickle(factory, key, actions)
        if workers is None:
            workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        super().__init__(workers, entropy, describe, start_timeout)
        self._remote = self._ray.remote(ActorWalker).options(
            **{"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, **(options or {})}
        )
        self._calls: dict[Any, Actor] = {}  # by the reference of what they will return

    def close(self) -> None:
        """End all actors, and Ray if it was started here."""
        super().close()
        self._close_ray()

    def _close_ray(self) -> None:
        if self._ours:
            self._ours = False
            self._ray.shutdown()

    def handle(self, walker: int) -> Any:
        """Return the handle of a walker's actor; None if it is gone."""
        member = self._members.get(walker)
        return None if member is None else member.handle

    def _start(self, slot: int, initial: bool = False) -> None:
        number = self._slots.number()
        try:
            handle = self._remote.remote(self._pickled, number, self._entropy)
            call = handle.begin.remote()
        except self._ray.exceptions.RayError as error:
            raise GosprlError(f"workers: an actor could not be started: {error!s:.300}") from None
        member = Actor(number, slot, initial, handle)
        self._calls[call] = member
        self._enter(member)

    def _pickle(self, *given: Any) -> bytes:
        """Return what an actor needs to make its system; actors unpickle it where an error can be reported."""
        try:
            return bytes(self._ray.cloudpickle.dumps(given))
        except Exception as error:  # pickling calls methods of the user's own
            self._close_ray()
            raise InputError(
                f"system: expected a function that can be sent to an actor, got {given[0]!r:.80} ({error!s:.200}); use "
                "a function at the top level of a module, functools.partial of one, or the id of an environment"
            ) from None

    def _hand(self, member: Actor, order: Order) -> None:
        self._calls[member.handle.answer.remote(order.number, order.action)] = member

    def _end(self, member: Actor) -> None:
        self._calls = {call: other for call, other in self._calls.items() if other is not member}
        if self._ray.is_initialized():
            self._ray.kill(member.handle, no_restart=True)

    def _wait(self, seconds: float | None) -> None:
        if not self._calls:
            if seconds is None:
                raise GosprlError("no walker has an order: nothing will happen")
            time.sleep(seconds)
            return
        for call in self._ready(list(self._calls), seconds):
            self._take(call)

    def _ready(self, calls: list[Any], seconds: float | None) -> list[Any]:
        """Return the calls that have returned, after so many seconds at most."""
        try:
            ready, rest = self._ray.wait(calls, num_returns=1, timeout=seconds)
            if ready and rest:
                ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise GosprlError(f"workers: Ray does not answer any more: {_in_one_line(error)}") from error
        return list(ready)

    def _take(self, call: Any) -> None:
        """Take what a call returned."""
        member = self._calls.pop(call, None)
        if member is None:  # dismissed meanwhile
            return
        try:
            data = self._ray.get(call)
        except self._ray.exceptions.RayError as error:
            self._lose(member, f"its actor is gone: {_in_one_line(error)}")
            return
        try:
            self._read(member, data)
        except ValueError as error:
            if isinstance(error, GosprlError):
                raise
            self._lose(member, f"it broke the rules: {error}")

    def _read(self, member: Actor, data: Any) -> None:
        if type(data) is not bytes or len(data) < wire.HEAD.size:
            raise ValueError(f"expected a message, got {data!r:.40}")
        kind, content = data[4], data[wire.HEAD.size :]
        if not member.joined:
            self._greet(member, kind, wire.object_of(content))
        elif kind == wire.FAILED:
            why, trace = wire.failure_of(content)
            self._lose(member, why, trace=trace)
        else:
            assert self._facts is not None
            if kind == wire.PLAIN and len(data) == wire.PLAIN_SIZE:
                report = wire.plain_report_of(data, member.order)
            else:
                report = wire.report_of(content, member.order, self._facts["actions"])
            member.order, member.reported = NONE, True
            self._events.append(report)

    def _greet(self, member: Actor, kind: int, fields: dict[str, Any]) -> None:
        if kind == wire.REFUSED:
            wrong = InputError if fields.get("input") is True else GosprlError
            self._refuse(member, could_not_begin(f"{fields.get('why')!s:.300}", wrong))
        else:
            self._join(member, fields)

    def _tended(self, left: float | None) -> float | None:
        """Raise if no actor at all begins in time; the seconds until that is so, `left` at most."""
        if self._ever_joined:
            return left
        since = min((member.since for member in self._starting.values()), default=time.monotonic())
        until = since + self._start_timeout - time.monotonic()
        if until <= 0:
            free = self._ray.available_resources()
            shown = ", ".join(f"{name} {amount:g}" for name, amount in sorted(free.items()) if ":" not in name)
            raise could_not_begin(
                f"no actor began within {self._start_timeout:g} s; the cluster has room for {shown or 'nothing'}"
            )
        return until if left is None else min(left, until)


def _in_one_line(error: Exception) -> str:
    """Return what Ray says, without the colours and the description of the actor."""
    lines = [line.strip() for line in re.sub("\x1b\\[[0-9;]*m", "", str(error)).splitlines()]
    said = [line for line in lines if line and not re.match(r"(class_name|actor_id|pid|namespace|ip):", line)]
    return " ".join(said)[:LONGEST_REASON]
