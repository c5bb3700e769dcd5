"""Strategies by name; each takes its options as the fields of its dataclass."""

from dataclasses import fields
from typing import Any

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.strategies.base import Attempt, GivenUp, Strategy
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
    "Attempt",
    "GivenUp",
    "Gosprl",
    "Guarded",
    "MaxEnt",
    "MinFrequency",
    "Practical",
    "Random",
    "Strategy",
    "WeightedMaxEnt",
    "ZeroOneUCRL",
    "ZeroRMax",
    "ZeroUCRL",
    "make",
]

STRATEGIES: dict[str, Any] = {
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


def default(options: dict[str, Any]) -> str:
    """`guarded`; but `gosprl` if an option is given that only it has: the paper's settings mean its algorithm."""
    only_gosprl = set(options_of(Gosprl)) - set(options_of(Guarded))
    return "gosprl" if only_gosprl & set(options) else "guarded"


def options_of(kind: Any) -> list[str]:
    """What a strategy takes."""
    return [f.name for f in fields(kind) if f.init]


def make(strategy: Any, options: dict[str, Any]) -> Strategy:
    """The named strategy with the given options, or the object itself; None for the default."""
    by_default, strategy = strategy is None, default(options) if strategy is None else strategy
    if not isinstance(strategy, str) and hasattr(strategy, "attempt"):
        if options:
            raise _checks.unknown("option", next(iter(options)), ["(none: give them to the strategy object)"])
        made: Strategy = strategy
        return made
    kind = _checks.choice("strategy", strategy, STRATEGIES)
    known = sorted({*options_of(Guarded), *options_of(Gosprl)}) if by_default else options_of(kind)
    for name in options:
        if name not in known:
            raise _checks.unknown("option", name, known)
        if name not in options_of(kind):
            other = next(given for given in options if given not in options_of(Guarded))
            raise InputError(f"{name}, {other}: the first is an option of guarded, the second of gosprl; say strategy=")
    made = kind(**options)
    return made
