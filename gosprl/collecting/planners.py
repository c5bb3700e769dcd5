"""What a planner says of its run, after checking it: planners may be a user's own."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.guarantee import Guarantee
from gosprl.strategies.base import Planner


class Report(NamedTuple):
    """What a planner says of its run."""

    guarantee: Guarantee
    work: dict[str, float]
    given_up: dict[int, str]


def checked_report(planner: Planner, num_states: int) -> Report:
    """Return what a planner says of its run so far."""
    name = type(planner).__name__
    guarantee: Any = planner.guarantee
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"strategy: expected {name}.guarantee to be a gosprl.Guarantee, got {guarantee!r:.80}")
    work: Any = planner.work
    if not isinstance(work, Mapping) or not all(isinstance(number, Real) for number in work.values()):
        raise InputError(f"strategy: expected {name}.work to be a dict {{name: number}}, got {work!r:.80}")
    return Report(guarantee, dict(work), _checks.reasons(f"strategy: {name}.given_up", planner.given_up, num_states))
