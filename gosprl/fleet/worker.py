"""What a process of a fleet runs: it makes its copy of the system, and answers one order after another.

It ends when the learner does. Ctrl-C is left to the learner. Whatever the system prints goes to standard error.
"""

import os
import pickle
import select
import signal
import socket
import sys
import threading
from types import FrameType

from gosprl.collecting.streams import Entropy
from gosprl.errors import InputError
from gosprl.fleet import wire
from gosprl.fleet.orders import Order, next_of_lease
from gosprl.fleet.walking import Walker, describe, make, reason

GRACE = 1.0  # seconds to end in, before the next means is tried


def main(line: socket.socket, pickled: bytes, number: int, entropy: Entropy) -> None:
    """Walk until there are no more orders.

    Parameters
    ----------
    line
        Where orders come from, and reports go to.
    pickled
        (factory, key, actions), as the learner pickled them.
    number, entropy
        As of `Walker`.
    """
    _settle(line)
    try:
        walker = _begun(line, pickled, number, entropy)
        if walker is not None:
            try:
                _walk(line, walker, number)
            finally:
                walker.close()
    except (BrokenPipeError, ConnectionResetError):  # the learner is gone, or does not want to hear more
        pass


def _settle(line: socket.socket) -> None:
    """Let signals, streams and the end of the learner have the effects that are described above."""
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, _ignore)  # a handler, since what the system starts would inherit SIG_IGN
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_leave_with, args=(line.fileno(),), daemon=True).start()


def _ignore(number: int, frame: FrameType | None) -> None:
    pass


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)  # an exception: a system that runs a program ends it on the way out


def _leave_with(line: int) -> None:
    """End this process when the learner is gone, even if the system never returns from a step."""
    over = select.poll()
    over.register(line, 0)  # only hang-ups
    while not over.poll():
        pass
    pause = threading.Event().wait
    pause(GRACE)  # between two orders the main thread sees the end by itself
    signal.raise_signal(signal.SIGTERM)
    pause(GRACE)
    os._exit(1)


def _begun(line: socket.socket, pickled: bytes, number: int, entropy: Entropy) -> Walker | None:
    """Make the system and say what it is; None if that failed."""
    try:
        system = make(*pickle.loads(pickled))
        hello = wire.packed_json(wire.HELLO, describe(system))
        walker = Walker(system, number, entropy)
    except Exception as error:  # of the user's function, most of the time
        wrong = {"input": isinstance(error, InputError), "why": reason(error)}
        line.sendall(wire.packed_json(wire.REFUSED, wrong))
        return None
    line.sendall(hello)
    return walker


def _walk(line: socket.socket, walker: Walker, number: int) -> None:
    order = _next_order(line, number)
    while order is not None:
        try:
            report = walker.answer(order)
            message = wire.packed_report(report)
        except Exception as error:  # of the system, whose state is not known any more
            line.sendall(wire.packed_failure(error))
            return
        line.sendall(message)
        order = next_of_lease(order, report) or _next_order(line, number)


def _next_order(line: socket.socket, walker: int) -> Order | None:
    """Wait for an order; None if there are no more."""
    size = wire.ORDER.size
    if len(data := line.recv(size, socket.MSG_WAITALL)) < size:
        return None
    number, action, pairs = wire.ORDER.unpack(data)
    if not pairs:
        return Order(number, walker, action)
    data = line.recv(pairs * wire.PAIR.size, socket.MSG_WAITALL)
    return Order(number, walker, action, tuple(wire.PAIR.iter_unpack(data)))
