"""How the tests talk to an executor."""

import time
from contextlib import contextmanager

from gosprl.fleet.orders import RESET, Joined, Order

PATIENCE = 600.0  # seconds for what must come


@contextmanager
def opened(executor):
    """The executor, open, and closed at the end whatever happens."""
    try:
        executor.open()
        yield Talk(executor)
    finally:
        executor.close()


class Talk:
    """Sends orders with the next number, and takes events one at a time."""

    def __init__(self, executor):
        self.executor, self.number, self.waiting = executor, 0, []

    def event(self):
        """The next event."""
        end = time.monotonic() + PATIENCE
        while not self.waiting:
            assert time.monotonic() < end, "no event"
            self.waiting = self.executor.receive(PATIENCE)
        return self.waiting.pop(0)

    def events(self, count):
        return [self.event() for _ in range(count)]

    def joined(self):
        """The number of the next walker that joins; it is reset."""
        event = self.event()
        assert isinstance(event, Joined), event
        self.order(event.walker, RESET)
        return event.walker

    def send(self, walker, action):
        """Send an order; its number."""
        self.number += 1
        self.executor.send(Order(self.number, walker, action))
        return self.number

    def order(self, walker, action):
        """Send an order and return what comes next."""
        self.send(walker, action)
        return self.event()
