"""What learner and walkers write to each other on a stream of bytes.

A learner writes orders: number, action, and how many pairs (key, action) of a lease follow. A walker writes messages:
four bytes with the length of the rest, one byte that says what it is, and the content. Reading a message executes
nothing and imports nothing, and each part of it is checked: a walker may be another program than we think. A violation
is a `ValueError` with the reason in words.

    HELLO     JSON: the description of its system; the first message
    REFUSED   JSON: why it could not begin; the first message
    PLAIN     number, key, reward and flags of a report whose key is an int and that offers all actions
    REPORT    JSON: any other report
    FAILED    text: what the system raised, and below it the traceback; the last message
"""

import json
import math
import struct
from typing import Any

from gosprl.errors import InputError
from gosprl.fleet.orders import Order, Report
from gosprl.fleet.walking import LONGEST_REASON, printable_lines, reason, trace_of
from gosprl.model.states import CRASH
from gosprl.runs.files import no_constant
from gosprl.runs.keys import key_of, text_of

LONGEST = 1 << 20  # bytes of a message
HELLO, REFUSED, PLAIN, REPORT, FAILED = range(1, 6)
TERMINATED, TRUNCATED = 1, 2

ORDER = struct.Struct("<qqq")  # number, action, pairs that follow
PAIR = struct.Struct("<qq")  # key, action
HEAD = struct.Struct("<IB")  # length of what follows the first four bytes; what it is
_PLAIN = struct.Struct("<IBqqdB")  # the head; number, key, reward, flags
PLAIN_SIZE = _PLAIN.size
_FIELDS = {"number", "key", "reward", "terminated", "truncated", "actions"}
_LEAST, _MOST = -(2**63), 2**63 - 1


def packed(kind: int, content: bytes) -> bytes:
    """Return a message."""
    if len(content) + 1 > LONGEST:
        raise InputError(f"expected a message of at most {LONGEST:,} bytes, got {len(content) + 1:,}")
    return HEAD.pack(len(content) + 1, kind) + content


def packed_json(kind: int, content: Any) -> bytes:
    """Return a message whose content is JSON."""
    return packed(kind, json.dumps(content).encode())


def packed_report(report: Report) -> bytes:
    """Return a report as a message."""
    number, _, key, reward, terminated, truncated, actions = report
    if actions is None and type(key) is int and _LEAST <= key <= _MOST:
        flags = TERMINATED * terminated | TRUNCATED * truncated
        return _PLAIN.pack(PLAIN_SIZE - 4, PLAIN, number, key, reward, flags)
    try:
        text = None if key is CRASH else text_of(key)
        content = {
            "number": number,
            "key": text,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "actions": None if actions is None else [int(action) for action in actions],
        }
        return packed_json(REPORT, content)
    except InputError as error:
        raise InputError(f"the observation cannot be sent: {str(error).removeprefix('out: ')}") from None


def packed_order(order: Order) -> bytes:
    """Return an order as bytes."""
    number, _, action, then = order
    head = ORDER.pack(number, action, len(then))
    return head + b"".join(PAIR.pack(*pair) for pair in then) if then else head


def plain_report_of(message: bytes, order: Order) -> Report:
    """Return the report in a message of kind PLAIN, head included."""
    length, _, number, key, reward, flags = _PLAIN.unpack(message)
    if number != order.number or length != PLAIN_SIZE - 4:
        raise ValueError(f"expected an answer to order {order.number}, got one to {number}")
    if flags > 3:
        raise ValueError(f"expected flags in 0..3, got {flags}")
    if not math.isfinite(reward):
        raise ValueError(f"expected a finite reward, got {reward}")
    return Report(number, order.walker, key, reward, flags & TERMINATED != 0, flags & TRUNCATED != 0)


def report_of(content: bytes, order: Order, num_actions: int) -> Report:
    """Return the report in the content of a message of kind REPORT.

    Parameters
    ----------
    content
        The bytes.
    order
        What it has to answer.
    num_actions
        The number of actions that there are.
    """
    fields = object_of(content)
    if fields.keys() != _FIELDS:
        raise ValueError(f"expected the fields {', '.join(sorted(_FIELDS))}, got {', '.join(sorted(fields)):.200}")
    number, reward = fields["number"], fields["reward"]
    if type(number) is not int or number != order.number:
        raise ValueError(f"expected an answer to order {order.number}, got one to {number!r:.40}")
    if type(reward) is not float or not math.isfinite(reward):
        raise ValueError(f"expected a finite reward, got {reward!r:.40}")
    for name in ("terminated", "truncated"):
        if type(fields[name]) is not bool:
            raise ValueError(f"expected true or false for {name}, got {fields[name]!r:.40}")
    if fields["key"] is None:
        if not fields["terminated"]:
            raise ValueError("expected a crash to end the episode")
        return Report(number, order.walker, CRASH, reward, True)
    if type(fields["key"]) is not str:
        raise ValueError(f"expected a key as text, got {fields['key']!r:.40}")
    offered = _offered(fields["actions"], num_actions)
    return Report(
        number, order.walker, key_of(fields["key"]), reward, fields["terminated"], fields["truncated"], offered
    )


def object_of(content: bytes) -> dict[str, Any]:
    """Return a JSON object."""
    try:
        value = json.loads(content.decode(), parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON: {error!s:.80}") from None
    if type(value) is not dict:
        raise ValueError(f"expected a JSON object, got {value!r:.40}")
    return value


def packed_failure(error: BaseException) -> bytes:
    """Return the message for what a system raised."""
    return packed(FAILED, f"{reason(error)}\n{trace_of(error)}".encode(errors="replace"))


def failure_of(content: bytes) -> tuple[str, str]:
    """Return (why a walker is gone, the traceback) as a walker wrote it."""
    why, _, trace = content.partition(b"\n")
    return text_of_bytes(why)[:LONGEST_REASON], printable_lines(trace.decode(errors="replace"))


def text_of_bytes(content: bytes) -> str:
    """Return text that a walker wrote, on one line."""
    return " ".join(content.decode(errors="replace").split())


def _offered(actions: Any, num_actions: int) -> tuple[int, ...] | None:
    if actions is None:
        return None
    if type(actions) is not list or not actions:
        raise ValueError(f"expected a list of the actions offered, got {actions!r:.40}")
    if any(type(action) is not int or not 0 <= action < num_actions for action in actions):
        raise ValueError(f"expected actions in 0..{num_actions - 1}, got {actions!r:.80}")
    if len(set(actions)) < len(actions):
        raise ValueError(f"expected each action once, got {actions!r:.80}")
    return tuple(actions)
