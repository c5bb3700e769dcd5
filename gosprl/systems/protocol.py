"""The line protocol, version 1: one JSON object a line, UTF-8, at most 1 MB (docs/protocol.md).

Requests go to a program's standard input, and it answers each with one line on its standard output:

    {"type": "hello", "protocol": 1, "id": 0}    {"type": "hello", "protocol": 1, "actions": 4, "id": 0}
    {"type": "reset", "seed": 123, "id": 1}      {"observation": 0, "id": 1}
    {"type": "step", "action": 2, "id": 2}       {"observation": 1, "reward": 0.5, "terminated": false, "id": 2}
    {"type": "close"}                            the program exits

Here is what a line may be and what an answer must have, for both sides; nothing here reads or writes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gosprl.errors import GosprlError

PROTOCOL = 1
LONGEST = 1_000_000  # bytes of a line, its end included
DEEPEST = 64  # levels of lists and objects
MOST_ACTIONS = 100_000  # every state discovered gets a row for each
SHOWN = 120  # characters of a line that an error shows


class Violation(GosprlError):
    """A line that the protocol does not allow."""


class Hello(NamedTuple):
    """What a program says of itself."""

    actions: Sequence[Any]  # their values: 0 .. A - 1, or names


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def message_of(line: bytes) -> dict[str, Any]:
    """Return the message on a line.

    Whole numbers are ints, however they are written: 1.0 is 1.

    Raises
    ------
    Violation
        The line is not a JSON object, or not one that everybody reads in the same way.
    """
    if len(line) > LONGEST:
        raise Violation(f"expected a line of at most {LONGEST:,} bytes, got one of {len(line):,}")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise Violation(f"expected UTF-8, got {shown(line)} ({error.reason} at byte {error.start})") from None
    if text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST:
        raise Violation(f"expected at most {DEEPEST} levels of lists and objects, got {_depth(text)}: {shown(line)}")
    try:
        message = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Violation(f"expected a JSON object, got {shown(line)} ({error.msg} at column {error.colno})") from None
    except ValueError as error:  # a number with thousands of digits, or one of the hooks below
        raise Violation(f"{error}: {shown(line)}") from None
    if not isinstance(message, dict):
        raise Violation(f"expected a JSON object, got {shown(line)}")
    if "\\ud" in text.lower() and not _is_text(message):
        raise Violation(f"expected Unicode, got half of a surrogate pair: {shown(line)}")
    return message


def as_read(value: Any) -> Any:
    """Return a value as it is after it was written and read: tuples are lists, whole numbers ints."""
    if isinstance(value, (list, tuple)):
        return [as_read(part) for part in value]
    if isinstance(value, dict):
        return {name: as_read(part) for name, part in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def shown(line: bytes) -> str:
    """Return the beginning of a line as an error shows it."""
    text = line.rstrip(b"\r\n").decode(errors="backslashreplace")
    return repr(text[:SHOWN]) + ("..." if len(text) > SHOWN else "")


def hello_of(answer: Mapping[str, Any]) -> Hello:
    """Return what a program says of itself, after checking it."""
    if answer.get("type") != "hello":
        raise Violation(f'expected {{"type": "hello", "protocol": {PROTOCOL}, "actions": ...}}, got {_brief(answer)}')
    version = answer.get("protocol")
    if version != PROTOCOL or type(version) is not int:
        raise Violation(f"protocol: expected {PROTOCOL}, the version spoken here, got {_brief(version)}")
    return Hello(action_values(answer.get("actions")))


def observation_of(answer: Mapping[str, Any]) -> Any:
    """Return the observation in an answer."""
    if "observation" not in answer:
        raise Violation(f"observation: expected any JSON value, got an answer without one: {_brief(answer)}")
    return answer["observation"]


def reward_of(answer: Mapping[str, Any]) -> float:
    """Return the reward in an answer to a step; 0 if there is none."""
    reward = answer.get("reward", 0.0)
    if type(reward) not in (int, float) or abs(reward) > _LARGEST:
        raise Violation(f"reward: expected a finite number, got {_brief(reward)}")
    return float(reward)


def flag_of(answer: Mapping[str, Any], name: str) -> bool:
    """Return `terminated` or `truncated` in an answer to a step; False if it is not there."""
    flag = answer.get(name, False)
    if type(flag) is not bool:
        raise Violation(f"{name}: expected true or false, got {_brief(flag)}")
    return flag


def offered_of(answer: Mapping[str, Any], values: Sequence[Any]) -> list[int] | None:
    """Return the indices of the actions offered, in the order of the answer; None if it says nothing: all.

    Parameters
    ----------
    answer
        An answer to a reset or a step.
    values
        All actions, as in `Hello`.
    """
    offered = answer.get("actions")
    if offered is None:
        return None
    if not isinstance(offered, list) or not offered:
        raise Violation(f"actions: expected a list of at least one action that is offered, got {_brief(offered)}")
    indices = []
    for value in offered:
        if type(value) not in (int, str) or value not in values:
            raise Violation(f"actions: expected some of {_brief(list(values))}, got {_brief(value)}")
        indices.append(values.index(value))
    if len(set(indices)) < len(indices):
        raise Violation(f"actions: expected each action once, got {_brief(offered)}")
    return indices


def check_id(answer: Mapping[str, Any], number: int) -> None:
    """Check that an answer is to this request; programs need not repeat the number."""
    if answer.get("id", number) != number:
        raise Violation(f"id: expected {number}, that of the request, got an answer to another: {_brief(answer)}")


def action_values(actions: Any) -> Sequence[Any]:
    """Return the values of actions that are given by their number or by a list of names."""
    if type(actions) is int and 1 <= actions <= MOST_ACTIONS:
        return range(actions)
    names = isinstance(actions, list) and all(type(name) in (int, str) for name in actions)
    if not names or not 1 <= len(set(actions)) == len(actions) <= MOST_ACTIONS:
        expected = f"their number, 1 to {MOST_ACTIONS:,}, or a list of different names"
        raise Violation(f"actions: expected {expected}, got {_brief(actions)}")
    return list(actions)


def _brief(value: Any) -> str:
    return f"{json.dumps(value):.{SHOWN}}"


def _is_text(message: Any) -> bool:
    """Whether all texts of a message are Unicode: others cannot be printed or written to a file."""
    try:
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _depth(text: str) -> int:
    """Return the levels of lists and objects of a JSON text, or of what could be one."""
    depth = deepest = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string, escaped = character != '"' or escaped, character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected each name once in an object, got {twice!r:.40} twice")
    return found


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"expected finite numbers, got {text:.40}")
    return int(number) if number.is_integer() else number


def _constant(text: str) -> Any:
    raise ValueError(f"expected JSON, which has no {text}")


_LARGEST = 1.7976931348623157e308
_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
