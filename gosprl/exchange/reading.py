"""What the readers of known dynamics share: lines with their numbers, and the way to a `TabularMDP`.

A file may come from a stranger. Nothing is allocated by the numbers that it claims: entries are collected as they are
read, and its claims are compared with them at the end.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP

BYTES = 12  # memory per byte of a text file while it is read, at most
ROUNDING = 2.0**-50  # rows that sum to one up to this, for each entry, are kept bit for bit
SUMS = 1e-6  # a larger difference from the sum one is an error
_NUMBER = re.compile(r"a?(\d{1,9})\Z", re.ASCII)


class Lines:
    """The lines of a text file, without comments and blank ones, and errors that name the line.

    Parameters
    ----------
    file
        The file.
    comment
        How a comment line begins.
    """

    def __init__(self, file: "str | os.PathLike[str]", comment: str) -> None:
        self.path, self.comment, self.number = Path(file), comment, 0
        self.comments: list[str] = []  # those before the first other line
        if not self.path.is_file():
            raise InputError(f"file: expected a file, but there is none at {str(file)!r:.200}")
        size = self.path.stat().st_size
        _checks.memory(f"file: {self.path.name}, a text of {size} bytes,", BYTES * size, "take a smaller model")

    def __iter__(self) -> Iterator[str]:
        with open(self.path, encoding="utf-8", errors="replace") as stream:
            begun = False
            for self.number, raw in enumerate(stream, 1):
                line = raw.strip()
                if line.startswith(self.comment):
                    if not begun:
                        self.comments.append(line)
                elif line:
                    begun = True
                    yield line
        self.number += 1

    def fail(self, expected: str, got: object = None) -> NoReturn:
        """Raise the error for the current line."""
        shown = "" if got is None else f", got {got!r:.80}"
        raise InputError(f"{self.path.name}, line {self.number}: expected {expected}{shown}") from None

    def whole(self, text: str, what: str, below: int | None = None) -> int:
        """Return text as a whole number >= 0, below the bound if there is one."""
        if not (text.isascii() and text.isdigit() and len(text) <= 18) or (below is not None and int(text) >= below):
            self.fail(what if below is None else f"{what} below {below}", text)
        return int(text)

    def real(self, text: str, what: str) -> float:
        """Return text as a finite number; fractions such as 1/3 are rounded."""
        try:
            above, slash, under = text.partition("/")
            value = float(above) / float(under) if slash else float(text)
        except (ValueError, ZeroDivisionError):
            self.fail(what, text)
        if not np.isfinite(value):
            self.fail(what, text)
        return value

    def probability(self, text: str) -> float:
        """Return text as a probability."""
        if text.startswith("["):
            self.fail("a probability: a TabularMDP has no intervals", text)
        value = self.real(text, "a probability")
        if not 0 <= value <= 1:
            self.fail("a probability in [0, 1]", text)
        return value


@dataclass
class Given:
    """An MDP as a file gives it: choices in the order of their states, and their entries."""

    name: str
    choice_state: list[int] = field(default_factory=list)
    choice_action: list[str] = field(default_factory=list)  # "" if it has no name
    entry_choice: list[int] = field(default_factory=list)
    entry_succ: list[int] = field(default_factory=list)
    entry_prob: list[float] = field(default_factory=list)
    states: int = 0
    chain: bool = False  # whether it is a Markov chain, without choices
    labels: dict[str, list[int]] = field(default_factory=dict)
    rewards: dict[str, dict[int, float]] = field(default_factory=dict)  # by choice, where it is not 0
    state_rewards: dict[str, dict[int, float]] = field(default_factory=dict)

    def to_mdp(self, rewards: str | None) -> TabularMDP:
        """Return the MDP, with the named reward structure; None: see `TabularMDP.from_drn`."""
        initial = self.labels.get("init", [])
        if len(initial) != 1:
            raise InputError(f"{self.name}: expected one state with the label init, the start, got {len(initial)}")
        if not self.entry_prob:
            raise InputError(f"{self.name}: expected transitions, got none")
        name = self._structure(rewards)
        state, choice = np.array(self.choice_state), np.array(self.entry_choice)
        action = np.array(_numbered(self.choice_state, self.choice_action))
        succ, prob = np.array(self.entry_succ), np.array(self.entry_prob)
        self._check_sums(choice, prob)
        mdp = TabularMDP((state[choice], action[choice], succ, prob), initial[0], states=self.states, name=self.name)
        order = np.lexsort((succ, action[choice], state[choice]))
        order = order[prob[order] > 0]
        _keep_bits(mdp, prob[order])
        if name is not None:
            by_choice, by_state = np.zeros(len(state)), np.zeros(self.states)
            for i, value in self.rewards.get(name, {}).items():
                by_choice[i] = value
            for s, value in self.state_rewards.get(name, {}).items():
                by_state[s] = value
            by_choice += by_state[state]
            mdp.rewards = by_choice[np.lexsort((action, state))]
        mdp.labels = {label: tuple(sorted(states)) for label, states in self.labels.items() if label != "init"}
        return mdp

    def _structure(self, wanted: str | None) -> str | None:
        there = [*self.rewards, *(name for name in self.state_rewards if name not in self.rewards)]
        if wanted is not None:
            if wanted not in there:
                raise InputError(f"rewards: expected one of {there}, which {self.name} has, got {wanted!r:.80}")
            return wanted
        if "reward" in there:
            return "reward"
        others = [name for name in there if name != "steps"]
        if len(others) > 1:
            raise InputError(f"rewards: expected the name of one, as {self.name} has several: {others}")
        return others[0] if others else None

    def _check_sums(self, choice: np.ndarray, prob: np.ndarray) -> None:
        sums = np.bincount(choice, weights=prob, minlength=len(self.choice_state))
        off = np.flatnonzero(np.abs(sums - 1) > SUMS)
        if off.size:
            i = off[0]
            named = f" (action {self.choice_action[i]})" if self.choice_action[i] else ""
            raise InputError(
                f"{self.name}: expected probabilities that sum to one, but choice {i}{named} of state "
                f"{self.choice_state[i]} sums to {sums[i]:.9g}"
            )


def _numbered(states: list[int], names: list[str]) -> list[int]:
    """Return the action of each choice: the numbers in the names, else the names in order, else the position."""
    numbers = [int(found[1]) if (found := _NUMBER.match(name)) else -1 for name in names]
    if min(numbers) >= 0 and max(numbers) < len(numbers) and _distinct(states, numbers):
        return numbers
    if all(names):
        index: dict[str, int] = {}
        by_name = [index.setdefault(name, len(index)) for name in names]
        if _distinct(states, by_name):
            return by_name
    position, last, counted = [], -1, 0
    for s in states:
        counted = counted + 1 if s == last else 0
        last = s
        position.append(counted)
    return position


def _distinct(states: list[int], actions: list[int]) -> bool:
    return len(set(zip(states, actions, strict=True))) == len(states)


def _keep_bits(mdp: TabularMDP, prob: np.ndarray) -> None:
    """Undo the normalisation of rows that sum to one up to rounding: a round trip keeps every bit."""
    sums = np.add.reduceat(prob, mdp.ptr[:-1])
    exact = np.abs(sums - 1) <= ROUNDING * np.diff(mdp.ptr)
    kept = np.repeat(exact, np.diff(mdp.ptr))
    mdp.prob[kept] = prob[kept]
