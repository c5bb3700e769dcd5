"""The manifest of a run: where it is, and the check of everything in it.

A manifest may come from a stranger. Code that reads it later relies on the types and ranges that are checked here.
"""

import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from gosprl.errors import InputError
from gosprl.fleet.orders import LONGEST_LEASE
from gosprl.runs.files import Damaged, read_json
from gosprl.runs.locks import LOCK
from gosprl.runs.places import Place, is_there

FORMAT = 2  # the newest that is read; runs without a fleet have format 1
OF_ONE_WALKER = 1
MANIFEST, TABLE, CHECKPOINTS = "manifest.json", "system.json", "checkpoint"
DATA = "data.json"
UNBEGUN = (LOCK, "log", CHECKPOINTS, TABLE, DATA)  # what a run has before its manifest
UNFINISHED = tuple(f"{name}.tmp" for name in (MANIFEST, TABLE, DATA, LOCK))
NEW_TRAJECTORY, EXACT, ENDING, NOTHING = "new trajectory", "exact", "at an ending", "nothing was written"
WALKERS = "walkers reset"
MOST_NUMBERS = 2**31  # of states and of actions: the columns of the log have 32 bits
MOST_LEGS = 10**6
MOST_ACTIONS = 2**20  # that are numbers, of a system that discovers its states: models make room for all of them
MOST_IDS = 10**5  # of a source of data
DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f(2|4|8))")  # of arrays of numbers, as NumPy says it
BY_DATA = "seed and data"  # what random numbers follow from; of data without that entry, the seed alone
HOW = (EXACT, ENDING, NEW_TRAJECTORY, NOTHING, WALKERS)

Test = Callable[[Any], bool]


def is_unbegun(directory: Place) -> bool:
    """Whether a run can begin in a directory: it does not exist, is empty, or a run was about to begin there.

    `InputError` if it is something else than that, and no run.
    """
    if not directory.exists():
        return True
    if not directory.is_dir():
        raise InputError(f"out: expected a new directory or a run, but {directory} is a file")
    found = {entry.name for entry in directory.iterdir()}
    if MANIFEST in found:
        return False
    others = sorted(name for name in found if name not in UNBEGUN and name not in UNFINISHED)
    if others or any((directory / "log").iterdir() if "log" in found else ()):
        raise InputError(
            f"out: expected a new directory or a run, but {directory} exists and is none: it has "
            f"{', '.join(others[:3]) or 'a log'} and no {MANIFEST}"
        )
    return True


def now() -> str:
    """Return the time as it stands in a manifest, in whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def no_run(directory: Place) -> InputError:
    """Return the error that a directory is no run."""
    return InputError(f"run: expected the directory of a run, with a {MANIFEST}, got {directory}")


def read_manifest(directory: Place) -> dict[str, Any]:
    """Return the manifest; `InputError` if it is no run, or of a newer format, `Damaged` if it cannot be trusted."""
    if not is_there(directory / MANIFEST):
        raise no_run(directory)
    return _checked(read_json(directory / MANIFEST, root=directory))


def _checked(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest after checking that it has what is read from it, of the right types."""
    version = manifest.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"run: expected a run of format {FORMAT} or before, got format {version}, which a newer gosprl wrote; "
            "update gosprl. Nothing was changed"
        )
    wanted = {"format": int, "run": str, "created": str, "seed": int, "system": dict, "legs": list, "continued": list}
    for name, kind in wanted.items():
        if type(manifest.get(name)) is not kind:
            raise Damaged(MANIFEST, None, f"expected {name} of type {kind.__name__}, got {manifest.get(name)!r:.60}")
    system = {"kind": str, "name": str, "all states": bool, "ends": bool}
    for name, kind in system.items():
        if type(manifest["system"].get(name)) is not kind:
            raise Damaged(MANIFEST, None, f"system: expected {name} of type {kind.__name__}")
    events = 0
    for part in ("legs", "continued"):
        for entry in manifest[part]:
            if not isinstance(entry, dict):
                raise Damaged(MANIFEST, None, f"{part}: expected objects, got {entry!r:.60}")
    for leg in manifest["legs"]:
        needs = ("first", "need", "strategy", "around", "application", "threshold", "rewards", "because", "versions")
        if any(name not in leg for name in needs) or type(leg["first"]) is not int or leg["first"] < events:
            raise Damaged(MANIFEST, None, f"legs: expected {', '.join(needs)}, got {list(leg)!r:.120}")
        events = leg["first"]
    if not manifest["legs"] or manifest["legs"][0]["first"] != 0:
        raise Damaged(MANIFEST, None, "legs: expected one that begins with event 0")
    for entry in manifest["continued"]:
        if type(entry.get("event")) is not int or not isinstance(entry.get("how"), str):
            raise Damaged(MANIFEST, None, f"continued: expected event and how, got {entry!r:.60}")
    if (wrong := _wrong_in(manifest)) is not None:
        raise Damaged(MANIFEST, None, wrong)
    return manifest


def _wrong_in(manifest: Mapping[str, Any]) -> str | None:
    """Return the first entry that is not what a run has, in words; None if all are."""
    if not _whole(manifest["seed"], 0):
        return f"seed: expected a whole number from 0 on, got {manifest['seed']!r:.60}"
    if max(len(manifest["legs"]), len(manifest["continued"])) > MOST_LEGS:
        return f"legs, continued: expected at most {MOST_LEGS}"
    wrong = _wrong({"observations": None} | manifest["system"], OF_SYSTEM, "system") or _wrong_mask(manifest["system"])
    if "data" in manifest:
        wrong = wrong or wrong_data(manifest["data"])
    for number, leg in enumerate(manifest["legs"]):
        wrong = wrong or _wrong(leg, OF_LEG, f"leg {number}")
        if "fleet" in leg:
            wrong = wrong or _wrong_fleet(leg["fleet"], f"leg {number}: fleet")
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


def wrong_data(data: Any) -> str | None:
    """Check what is said of the data that a run began with."""
    if not _dict(data):
        return f"data: expected an object, got {data!r:.60}"
    wrong = _wrong({"streams": BY_DATA} | data, OF_DATA, "data")  # runs of before do not say it
    for source in () if wrong else data["sources"]:  # those of before have no identities
        told = {"ids": [], "within": [], **source} if _dict(source) else {}
        wrong = wrong or (_wrong(told, OF_SOURCE, "data") if told else "data: expected sources")
    return wrong


def _wrong_fleet(fleet: Any, where: str) -> str | None:
    # runs of before there were leases do not say that they had none
    return (
        _wrong({"lease": 1} | fleet, OF_FLEET, where)
        if _dict(fleet)
        else f"{where}: expected an object, got {fleet!r:.60}"
    )


def _whole(value: Any, low: int, high: int | None = None) -> bool:
    return type(value) is int and value >= low and (high is None or value <= high)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # an int may be too large for a float


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


def _layout(value: Any, depth: int = 16) -> bool:
    """Whether this is how keys of observations are read: see `gosprl.systems.observations.decoder`."""
    if value is None:
        return True
    if not _dict(value) or depth == 0:
        return False
    if set(value) == {"dtype", "shape"}:
        dtype, shape = value["dtype"], value["shape"]
        sizes = type(shape) is list and len(shape) <= 32 and all(_whole(size, 0, MOST_NUMBERS) for size in shape)
        return _text(dtype) and DTYPE.fullmatch(dtype) is not None and sizes
    if set(value) == {"tuple"}:
        return type(value["tuple"]) is list and all(_layout(part, depth - 1) for part in value["tuple"])
    pairs = value.get("dict") if set(value) == {"dict"} else None
    if type(pairs) is not list or not all(type(pair) is list and len(pair) == 2 for pair in pairs):
        return False
    return all(_text(label) and _layout(part, depth - 1) for label, part in pairs)


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


def _ids(value: Any) -> bool:
    return type(value) is list and len(value) <= MOST_IDS and all(_text(one) and len(one) <= 256 for one in value)


def _within(value: Any) -> bool:
    if type(value) is not list or len(value) > MOST_LEGS:
        return False
    return all(_dict(one) and _text(one.get("name")) and _ids(one.get("ids")) for one in value)


OF_DATA: dict[str, Test] = {
    "order": lambda value: value in (None, "collected", "unknown"),
    "samples": lambda value: _whole(value, 0),
    "counts": _digest,
    "streams": lambda value: value == BY_DATA,
    "sources": lambda value: type(value) is list and 0 < len(value) <= MOST_LEGS,
}
OF_SOURCE: dict[str, Test] = {
    "name": _text,
    "kind": _text,
    "digest": _or_none(_digest),
    "samples": lambda value: _whole(value, 0),
    "ids": _ids,
    "within": _within,
}
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
    "observations": _layout,  # runs of before do not say it
    "max states": _or_none(lambda value: _whole(value, 1)),
    "all states": _bool,
    "ends": _bool,
    "key": lambda value: True,  # as described by `describing`
    "action values": lambda value: type(value) is not int or _whole(value, 1, MOST_ACTIONS),
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
    "need": lambda value: _dict(value) and len(value) > 0,
    "strategy": _strategy,
    "threshold": _or_none(_number),
    "rewards": _or_none(_range),
    "around": _around,
    "application": _or_none(_application),
    "versions": _versions,
}
OF_FLEET: dict[str, Test] = {
    "workers": _or_none(lambda value: _text(value) or _whole(value, 1)),
    "late": _or_none(lambda value: _text(value) or (_number(value) and value > 0)),
    "lost": lambda value: value in ("unknown", "state", "independent"),
    "thrift": _or_none(_number),
    "deterministic": _or_none(lambda value: _whole(value, 0)),
    "lease": lambda value: _whole(value, 1) and value <= LONGEST_LEASE,
    "until": _or_none(lambda value: _whole(value, 0)),
}
OF_CONTINUATION: dict[str, Test] = {
    "event": lambda value: _whole(value, 0),
    "how": lambda value: value in HOW,
    "when": _text,
    "versions": _versions,
}
