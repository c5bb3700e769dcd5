"""Strategies by name; each takes its options as the fields of its dataclass."""

from dataclasses import fields
from typing import Any

from gosprl import _checks
from gosprl.strategies.base import Attempt, GivenUp, Strategy
from gosprl.strategies.gosprl import Gosprl
from gosprl.strategies.random import Random

__all__ = ["STRATEGIES", "Attempt", "GivenUp", "Gosprl", "Random", "Strategy", "make"]

STRATEGIES: dict[str, Any] = {"gosprl": Gosprl, "random": Random}


def make(strategy: Any, options: dict[str, Any]) -> Strategy:
    """The named strategy with the given options, or the object itself."""
    if not isinstance(strategy, str) and hasattr(strategy, "attempt"):
        if options:
            raise _checks.unknown("option", next(iter(options)), ["(none: give them to the strategy object)"])
        made: Strategy = strategy
        return made
    kind = _checks.choice("strategy", strategy, STRATEGIES)
    known = [f.name for f in fields(kind) if f.init]
    for name in options:
        if name not in known:
            raise _checks.unknown("option", name, known)
    made = kind(**options)
    return made
