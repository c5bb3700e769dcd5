"""What every walker does with an order, whoever carries it.

A walker steps one copy of the system and never decides anything. Whatever its system raises is left to the caller,
who reports the walker as lost: nobody knows what state a system is in after an exception.

Seeds: walker w draws from child w of the stream that `gosprl.collect` gives to the system; walker 0 from that stream
itself. A fleet of one walker therefore sees the same system, number by number.
"""

import contextlib
import hashlib
import math
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.forked import end_copy
from gosprl.collecting.outcome import Outcome, Start
from gosprl.collecting.streams import Entropy
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.orders import RESET, Order, Report
from gosprl.model.states import CRASH
from gosprl.systems import System, as_system

LONGEST_REASON = 300  # characters
LONGEST_TRACE, FRAMES = 4_000, 8  # characters of a traceback, and its last calls
LISTED = 100  # action values up to which a description lists them
SHOWN_VALUES = 20  # actions that an error lists
Facts = dict[str, Any]

WORDS = {  # of a fact, for errors
    "states": "number of states",
    "first": "first observation",
    "space": "observation space",
    "actions": "number of actions",
    "values": "action values",
    "pairs": "existing pairs of state and action",
}


class Walker:
    """One copy of the system, and the orders that it takes.

    Parameters
    ----------
    system
        The copy.
    number
        The walker's number, which selects its random numbers.
    entropy
        The seed of the run, as `numpy.random.SeedSequence` takes it.
    """

    def __init__(self, system: System, number: int, entropy: Entropy) -> None:
        self._system, self._fixed = system, system.model().states.fixed
        system.seed(stream(entropy, number))

    def answer(self, order: Order) -> Report:
        """Carry out an order; exceptions of the system are passed on."""
        owner = os.getpid()
        try:
            return self._answer(order)
        finally:
            end_copy(owner)

    def _answer(self, order: Order) -> Report:
        number, walker, action = order[:3]
        if action == RESET:
            start = self._system.reset()
            key, actions = start if isinstance(start, Start) else (start, None)
            if key is CRASH:
                raise InputError("reset(): expected an observation, got CRASH")
            return Report(number, walker, self._key(key), actions=actions)
        outcome: Any = self._system.step(action)
        if type(outcome) is not Outcome:
            outcome = _outcome(outcome)
        key, reward, terminated, truncated, actions = outcome
        reward = reward_of(reward)
        if key is CRASH:
            if not terminated:
                raise InputError("step(): expected CRASH with terminated=True, got terminated=False")
            return Report(number, walker, CRASH, reward, True)
        # nothing is offered where an episode has ended
        return Report(
            number, walker, self._key(key), reward, bool(terminated), bool(truncated), None if terminated else actions
        )

    def close(self) -> None:
        """Close the system, if it has something to close."""
        for thing in (self._system, getattr(self._system, "system", None)):
            close = getattr(thing, "close", None)
            if callable(close):
                with contextlib.suppress(Exception):  # nobody waits for it any more
                    close()
                return

    def _key(self, key: Any) -> Any:
        if self._fixed and not (type(key) is int and 0 <= key < self._fixed):
            return _checks.index("the state that the system returned", key, self._fixed, "a state")
        return int(key) if isinstance(key, np.integer) else key


def reward_of(reward: Any) -> float:
    """Return a reward as a finite float."""
    try:
        number = math.nan if isinstance(reward, (str, bytes)) else float(reward)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"reward: expected a finite number, got {reward!r:.80}")
    return number


def stream(entropy: Entropy, walker: int) -> np.random.Generator:
    """Return the random numbers of a walker's system."""
    spawn_key = (1, walker) if walker else (1,)
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=spawn_key))


def make(factory: Callable[[], Any], key: Any = None, actions: Any = None) -> System:
    """Make one copy of the system."""
    return as_system(factory(), key, actions)


def describe(system: System) -> Facts:
    """Return what the copies of a system must have in common, as JSON values.

    Raises
    ------
    InputError
        Only a function knows the actions: copies would number them differently.
    """
    model = system.model()
    if not model.all_actions:
        raise InputError(
            "actions: expected their number or a list of their values, got a function; several walkers would number "
            "what it offers differently. Give the list, and what a state offers in info['action_mask']"
        )
    rows, fixed = model.rows, model.states.fixed
    values: Any = list(model.actions)
    values = [f"{value!r:.80}" for value in values] if values != list(range(len(values))) else None
    space = getattr(getattr(system, "system", None), "observation_space", None)
    return {
        "states": fixed or None,
        "first": system.first_observation,
        "space": None if space is None else " ".join(str(space).split()),
        "actions": rows.num_actions,
        "values": values if values is None or len(values) <= LISTED else _digest(repr(values).encode()),
        "pairs": _digest(rows.ptr.tobytes() + rows.action.tobytes()) if fixed else None,
    }


def difference(expected: Mapping[str, Any], got: Mapping[str, Any]) -> str:
    """Say in words what differs between two descriptions; "" if nothing does."""
    for name, word in WORDS.items():
        ours, theirs = expected.get(name), got.get(name)
        if ours != theirs:
            if name == "pairs":
                return f"{word}: not the same in every walker"
            return f"{word}: expected {_shown(ours)} as in the learner, got {_shown(theirs)}"
    return ""


def check_same(expected: Mapping[str, Any] | None, got: Mapping[str, Any]) -> None:
    """Raise `InputError` if a walker's system is not the one that the learner expects."""
    if expected is not None and (text := difference(expected, got)):
        raise InputError(f"system: expected copies of one system, but their {text}")


def reason(error: BaseException) -> str:
    """Return an exception as the reason why a walker is gone: its type and message, on one line."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}"[:LONGEST_REASON] if text else name


def trace_of(error: BaseException) -> str:
    """Return the last part of the traceback of an exception, on several lines."""
    return printable_lines("".join(traceback.format_exception(error, limit=-FRAMES)))


def printable_lines(text: str) -> str:
    """Return the end of a text of several lines, without characters that would control a terminal."""
    lines = ("".join(c if c.isprintable() else "?" for c in line) for line in text.splitlines())
    return "\n".join(lines)[-LONGEST_TRACE:]


def failed(what: str, error: BaseException) -> GosprlError:
    """Return the error for a copy that could not be made."""
    kind = InputError if isinstance(error, InputError) else GosprlError
    return kind(f"system: {what}: {reason(error)}")


def _outcome(outcome: Any) -> Outcome:
    if not (isinstance(outcome, (tuple, list)) and len(outcome) in (4, 5)):
        raise InputError(
            f"step(): expected an Outcome (state, reward, terminated, truncated, actions), got {outcome!r:.80}"
        )
    return Outcome(*outcome)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value[:SHOWN_VALUES]))}{', ...' if len(value) > SHOWN_VALUES else ''}]"
    return "none known beforehand" if value is None else f"{value!s:.200}"
