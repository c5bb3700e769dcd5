"""Types and ranges of what a manifest says.

It may come from a stranger. Whoever reads it later takes for granted what is checked here.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

MOST_NUMBERS = 2**31  # of states and of actions: the columns of the log have 32 bits
MOST_LEGS = 10**6
HOW = ("exact", "at an ending", "new trajectory", "nothing was written")

Test = Callable[[Any], bool]


def wrong_in(manifest: Mapping[str, Any]) -> str | None:
    """Return the first entry that is not what a run has, in words; None if all are."""
    if not _whole(manifest["seed"], 0):
        return f"seed: expected a whole number from 0 on, got {manifest['seed']!r:.60}"
    if max(len(manifest["legs"]), len(manifest["continued"])) > MOST_LEGS:
        return f"legs, continued: expected at most {MOST_LEGS}"
    wrong = _wrong(manifest["system"], OF_SYSTEM, "system") or _wrong_mask(manifest["system"])
    for number, leg in enumerate(manifest["legs"]):
        wrong = wrong or _wrong(leg, OF_LEG, f"leg {number}")
    last = 0
    for entry in manifest["continued"]:
        wrong = wrong or _wrong(entry, OF_CONTINUATION, "continued")
        if not wrong and entry["event"] < last:
            wrong = f"continued: expected events in order, got {entry['event']} after {last}"
        last = last if wrong else entry["event"]
    return wrong


def _wrong(entry: Mapping[str, Any], tests: Mapping[str, Test], where: str) -> str | None:
    for name, test in tests.items():
        if name not in entry:
            return f"{where}: expected {name}, which is missing"
        if not test(entry[name]):
            return f"{where}: {name} cannot be {entry[name]!r:.60}"
    return None


def _wrong_mask(system: Mapping[str, Any]) -> str | None:
    """Check the actions that exist [S][A] against the numbers of states and actions."""
    exists = system["exists"]
    if exists is None:
        return None
    if system["states"] != len(exists) or any(len(row) != len(exists[0]) for row in exists):
        return "system: exists has another shape than [states][actions]"
    return None


def _whole(value: Any, low: int, high: int | None = None) -> bool:
    return type(value) is int and value >= low and (high is None or value <= high)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _size(value: Any) -> bool:
    return _whole(value, 1, MOST_NUMBERS)


def _text(value: Any) -> bool:
    return type(value) is str


def _bool(value: Any) -> bool:
    return type(value) is bool


def _dict(value: Any) -> bool:
    return type(value) is dict


def _range(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(_number(bound) for bound in value)


def _mask(value: Any) -> bool:
    rows = type(value) is list and len(value) > 0 and all(type(row) is list for row in value)
    return rows and all(type(cell) is int and cell in (0, 1) for row in value for cell in row)


def _digest(value: Any) -> bool:
    return _text(value) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _versions(value: Any) -> bool:
    return _dict(value) and all(_text(version) for version in value.values())


def _source(value: Any) -> bool:
    """Whether this is an environment with its settings, or the words of a command with its timeout."""
    if not _dict(value):
        return False
    if "env" in value:
        return _text(value["env"]) and _dict(value.get("settings", {}))
    words, timeout = value.get("process"), value.get("timeout", 1.0)
    sound = type(words) is list and len(words) > 0 and all(_text(word) for word in words)
    return sound and _number(timeout) and timeout > 0


def _strategy(value: Any) -> bool:
    named = _dict(value) and _text(value.get("name")) and _dict(value.get("options"))
    return named or (_dict(value) and set(value) == {"given"})


def _application(value: Any) -> bool:
    return _dict(value) and _text(value.get("name")) and _dict(value.get("arguments"))


def _around(value: Any) -> bool:
    return _dict(value) and not _wrong(value, OF_SURROUNDINGS, "") and len(value) == len(OF_SURROUNDINGS)


OF_SYSTEM: dict[str, Test] = {
    "kind": lambda value: value in ("table", "system"),
    "name": _text,
    "source": _or_none(_source),
    "digest": _or_none(_digest),
    "stored": _bool,
    "states": _or_none(_size),
    "first": lambda value: _whole(value, -(2**62), 2**62),
    "actions": _or_none(_size),
    "exists": _or_none(_mask),
    "max states": _or_none(lambda value: _whole(value, 1)),
    "all states": _bool,
    "ends": _bool,
    "key": lambda value: True,  # as described by `describing`
    "action values": lambda value: True,
}
OF_SURROUNDINGS: dict[str, Test] = {
    "resets": lambda value: value in ("terminal", "never", "anytime"),
    "reset_cost": lambda value: _number(value) and value > 0,
    "horizon": _or_none(lambda value: _whole(value, 1)),
    "max_states": _or_none(lambda value: _whole(value, 1)),
    "unseen": _or_none(lambda value: _number(value) and 0 < value < 1),
}
OF_LEG: dict[str, Test] = {
    "because": _text,
    "need": _dict,
    "strategy": _strategy,
    "threshold": _or_none(_number),
    "rewards": _or_none(_range),
    "around": _around,
    "application": _or_none(_application),
    "versions": _versions,
}
OF_CONTINUATION: dict[str, Test] = {
    "event": lambda value: _whole(value, 0),
    "how": lambda value: value in HOW,
    "when": _text,
    "versions": _versions,
}
