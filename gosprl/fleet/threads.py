"""Walkers in threads of this process, for systems that release the interpreter lock while they step.

Such systems wait for a device, a network or another program, or compute in compiled code. Others run one at a time in
threads: use processes.

A thread cannot be ended from outside. One that is dismissed is not heard of again; it ends when its system returns.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any

from gosprl.collecting.streams import Entropy
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.crew import NONE, STARTING, Crew, Member, could_not_begin
from gosprl.fleet.orders import Order, Report
from gosprl.fleet.walking import Facts, Walker, describe, make, reason, trace_of

Orders = queue.SimpleQueue[Order | None]  # None: end
Said = tuple["Hand", Report | Facts | BaseException]


class Hand(Member):
    """A thread."""

    __slots__ = ("orders",)

    def __init__(self, number: int, slot: int, initial: bool) -> None:
        super().__init__(number, slot, initial)
        self.orders: Orders = queue.SimpleQueue()


class Threads(Crew[Hand]):
    """Walkers in threads of this process.

    Parameters
    ----------
    factory
        A function that makes the system; called once in each thread, by one thread at a time.
    workers
        Number of threads.
    key, actions
        What tells states apart, and which actions there are, as in `gosprl.collect`.
    entropy, describe, start_timeout
        As of `Processes`.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        workers: int,
        *,
        key: Any = None,
        actions: Any = None,
        entropy: Entropy = None,
        describe: Facts | None = None,
        start_timeout: float = STARTING,
    ) -> None:
        super().__init__(workers, entropy, describe, start_timeout)
        self._made_by = factory, key, actions
        self._making = threading.Lock()
        self._said: queue.SimpleQueue[Said] = queue.SimpleQueue()

    def _start(self, slot: int, initial: bool = False) -> None:
        member = Hand(self._slots.number(), slot, initial)
        name = f"walker {member.number}"
        try:
            threading.Thread(target=self._run, args=(member,), name=name, daemon=True).start()
        except RuntimeError as error:
            raise GosprlError(f"workers: a thread could not be started: {error}") from None
        self._enter(member)

    def _hand(self, member: Hand, order: Order) -> None:
        member.orders.put(order)

    def _end(self, member: Hand) -> None:
        member.orders.put(None)

    def _wait(self, seconds: float | None) -> None:
        try:
            self._hear(*self._said.get(timeout=seconds))
            while True:
                self._hear(*self._said.get_nowait())
        except queue.Empty:
            pass

    def _hear(self, member: Hand, said: Report | Facts | BaseException) -> None:
        if member.number not in self._members:  # dismissed
            return
        if isinstance(said, Report):
            member.order, member.reported = NONE, True
            self._events.append(said)
        elif isinstance(said, dict):
            self._join(member, said)
        elif member.joined:
            self._lose(member, reason(said), trace=trace_of(said))
        else:
            kind = InputError if isinstance(said, InputError) else GosprlError
            self._refuse(member, could_not_begin(reason(said), kind))

    def _run(self, member: Hand) -> None:
        """Walk until there are no more orders."""
        walker = None
        try:
            with self._making:
                system = make(*self._made_by)
                facts = describe(system)
                walker = Walker(system, member.number, self._entropy)
            self._said.put((member, facts))
            while (order := member.orders.get()) is not None:
                self._said.put((member, walker.answer(order)))
        except SystemExit as error:
            self._said.put((member, GosprlError(f"it called sys.exit({error.code!r:.40})")))
        except BaseException as error:  # of the system, whose state is not known any more; nobody else hears of it
            self._said.put((member, error))
        finally:
            if walker is not None:
                walker.close()
