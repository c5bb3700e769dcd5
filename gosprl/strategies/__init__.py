"""The named strategies; the options of each are the fields of its dataclass.

A strategy of your own derives from `Strategy` (the options) and `Planner` (a run): see `gosprl.strategies.base`.
"""

from dataclasses import fields, is_dataclass
from typing import Any

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.strategies.base import UNLIMITED, Attempt, GivenUp, Planner, Strategy
from gosprl.strategies.gosprl import Gosprl
from gosprl.strategies.guarded import Guarded
from gosprl.strategies.practical import Practical
from gosprl.strategies.random import Random
from gosprl.strategies.rivals.maxent import MaxEnt
from gosprl.strategies.rivals.min_frequency import MinFrequency
from gosprl.strategies.rivals.weighted_maxent import WeightedMaxEnt
from gosprl.strategies.rivals.zero_one_ucrl import ZeroOneUCRL
from gosprl.strategies.rivals.zero_rmax import ZeroRMax
from gosprl.strategies.rivals.zero_ucrl import ZeroUCRL

__all__ = [
    "STRATEGIES",
    "UNLIMITED",
    "Attempt",
    "GivenUp",
    "Gosprl",
    "Guarded",
    "MaxEnt",
    "MinFrequency",
    "Planner",
    "Practical",
    "Random",
    "Strategy",
    "WeightedMaxEnt",
    "ZeroOneUCRL",
    "ZeroRMax",
    "ZeroUCRL",
    "make",
    "options_of",
]

STRATEGIES: dict[str, type[Strategy]] = {
    "guarded": Guarded,
    "gosprl": Gosprl,
    "practical": Practical,
    "random": Random,
    "zero_one_ucrl": ZeroOneUCRL,
    "zero_ucrl": ZeroUCRL,
    "maxent": MaxEnt,
    "weighted_maxent": WeightedMaxEnt,
    "min_frequency": MinFrequency,
    "zero_rmax": ZeroRMax,
}


def options_of(name: str) -> list[str]:
    """Return the options that a named strategy takes."""
    kind = _checks.choice("strategy", name, STRATEGIES)
    return [f.name for f in fields(kind)] if is_dataclass(kind) else []


def make(strategy: Any, options: dict[str, Any]) -> Strategy:
    """Return the named strategy with the given options; a strategy object is returned as it is."""
    if isinstance(strategy, Strategy):
        if options:
            given = ", ".join(options)
            raise InputError(f"{given}: a strategy object was given, which has its options already; give them to it")
        return strategy
    if not isinstance(strategy, str):
        raise InputError(
            f"strategy: expected a name, one of {', '.join(STRATEGIES)}, or a gosprl.strategies.Strategy, "
            f"got {strategy!r:.80}"
        )
    known = options_of(strategy)
    for name in options:
        if name not in known:
            raise _unknown_option(name, strategy, known)
    return STRATEGIES[strategy](**options)


def _unknown_option(name: str, strategy: str, known: list[str]) -> InputError:
    """Return the error for an option that the strategy does not have; it names the strategies that do."""
    takes = f"takes {', '.join(known)}" if known else "takes no options"
    others = [other for other in STRATEGIES if name in options_of(other)]
    where = f"; {name} is an option of {', '.join(others)}: choose one with strategy=" if others else ""
    return InputError(f"{name}: not an option of strategy {strategy!r}, which {takes}{where}")
