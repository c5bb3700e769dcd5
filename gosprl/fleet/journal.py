"""FleetJournal: where the events of a fleet go before they are counted, if the run is kept (`gosprl.runs`).

A run of a fleet is a function of the sequence of its events, so the journal is told all of them, in this sequence:
which order an event is about, who joined and left, and after which event no more orders were issued.
"""

from abc import abstractmethod

from gosprl.collecting.journal import Journal
from gosprl.fleet.orders import Order


class FleetJournal(Journal):
    """Takes every event of a fleet, in the order in which the learner takes it."""

    @abstractmethod
    def joined(self, walker: int) -> None:
        """Write that there is one more walker."""

    @abstractmethod
    def left(self, walker: int) -> None:
        """Write that a walker is gone."""

    @abstractmethod
    def stopped(self) -> None:
        """Write that no more orders are issued from here on."""

    @abstractmethod
    def issue(self, order: Order) -> None:
        """Write that an order is open."""

    @abstractmethod
    def answer(self, order: Order, flags: int = 0) -> None:
        """Let the next step or reset that is written be the outcome of an order, with further flags."""

    @abstractmethod
    def give_up(self, order: Order) -> None:
        """Write that nobody waits for the outcome of an order any more, and that it has none."""
