"""What the numbers in a log stand for: observations, action values, and the actions that states offered."""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from gosprl.runs.keys import key_of
from gosprl.runs.schemas import Name
from gosprl.systems.observations import decoder

STATE, ACTION, OFFER = "state", "action", "offer"


class Names:
    """The names of a run, as the file `states.arrow` has them.

    Parameters
    ----------
    fixed
        Number of observations known beforehand, whose numbers are their keys; 0 if they were discovered.
    entries
        (event, kind, index, key, observation, actions) in the order in which they were written.
    layout
        How keys of states are read, as in `gosprl.systems.observations.decoder`.
    """

    def __init__(self, fixed: int, entries: Iterable[Name] = (), layout: Any = None) -> None:
        self.fixed, self._decode = fixed, decoder(layout)
        self.always_offers = False  # whether there are no actions but those that states offered
        self.keys: list[Hashable] = []  # of the states, by number
        self.observations: list[str] = []  # the same as text for people
        self.actions: list[Hashable] = []  # keys of action values, where their number was not known
        self._offers: dict[int, list[tuple[int, tuple[int, ...] | None]]] = {}  # (event, actions) by state
        self._events: list[int] = []  # with an offer, in order
        for entry in entries:
            self.add(*entry)

    def add(self, event: int, kind: str, index: int, key: str, observation: str, actions: Sequence[int] | None) -> None:
        """Take in one more entry; `ValueError` if it cannot follow those before."""
        if kind == OFFER:
            if self._events and event < self._events[-1]:
                raise ValueError(f"expected offers in order, got one of event {event} after {self._events[-1]}")
            self._events.append(event)
            self._offers.setdefault(index, []).append((event, None if actions is None else tuple(actions)))
            return
        named = self.keys if kind == STATE else self.actions
        if kind not in (STATE, ACTION) or index != len(named):
            raise ValueError(f"expected {kind} {len(named)}, got {kind!r:.20} {index}")
        value = key_of(key)
        if kind == STATE:
            self._check_space(index, value)
            self.observations.append(observation)
        named.append(value)

    def _check_space(self, index: int, key: Hashable) -> None:
        try:
            self._decode(key)
        except (TypeError, ValueError) as error:
            raise ValueError(f"state {index} has a key that is none of its space: {error}") from None

    def check_offers(self, actions: int) -> None:
        """Raise `ValueError` if a state offers an action that does not exist: models make room for all of them."""
        for number, offers in self._offers.items():
            for _, offered in offers:
                if offered and not 0 <= min(offered) <= max(offered) < actions:
                    raise ValueError(f"expected offers of actions in 0..{actions - 1}, got {offered!r:.40} of {number}")

    @property
    def num_states(self) -> int:
        """The number of states that have a number."""
        return self.fixed or len(self.keys)

    def key(self, number: int) -> Any:
        """Return the key of a state; `ValueError` if there is no such number."""
        if not 0 <= number < self.num_states:
            raise ValueError(f"expected a state in 0..{self.num_states - 1}, got {number}")
        return number if self.fixed else self.keys[number]

    def offered(self, number: int, event: int) -> tuple[int, ...] | None:
        """Return the actions that a state offered when an event led there; None: all. `ValueError` if it had to."""
        offers = self._offers.get(number, [])
        place = bisect_right(offers, event, key=lambda offer: offer[0])
        offered = offers[place - 1][1] if place else None
        if offered is None and self.always_offers:
            raise ValueError(f"expected the actions that state {number} offers, got none")
        return offered

    def last_offers(self) -> dict[int, tuple[int, ...] | None]:
        """Return the last offer of each state that has not always offered all actions."""
        return {number: offers[-1][1] for number, offers in self._offers.items()}

    def offers_between(self, begin: int, end: int) -> list[int]:
        """Return the events begin .. end - 1 with which a state offered other actions than before."""
        return self._events[bisect_right(self._events, begin - 1) : bisect_right(self._events, end - 1)]
