"""What a system says: where it begins, and what a step led to."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, SupportsFloat


class Start(NamedTuple):
    """Where an episode begins."""

    state: Hashable  # as in Outcome
    actions: Sequence[int] | None = None  # indices of the actions offered there; None: all


class Outcome(NamedTuple):
    """What a step led to. If the system itself crashed: ``Outcome(gosprl.CRASH, terminated=True)``."""

    state: Hashable  # index of the next state; anything hashable where states are discovered on the way
    reward: SupportsFloat = 0.0
    terminated: bool = False  # the episode ended there: the next call is `reset`
    truncated: bool = False  # the episode was cut off: the next call is `reset`, which is no transition
    actions: Sequence[int] | None = None  # indices of the actions offered in the next state; None: all


class Paused(Exception):
    """Raised by `reset` of a system that cannot say yet where it begins: nothing was done, it may be called again."""
