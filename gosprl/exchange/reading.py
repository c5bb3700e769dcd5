"""What the readers of known dynamics share: lines with their numbers, and the way to a `TabularMDP`.

A file may come from a stranger. Nothing is allocated by the numbers that it claims: entries are collected as they are
read, and its claims are compared with them at the end.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP

BYTES = 12  # memory per byte of a text file while it is read, at most
ROUNDING = 2.0**-50  # rows that sum to one up to this, for each entry, are kept bit for bit
SUMS = 1e-6  # a larger difference from the sum one is an error
NO_INTERVALS = "a TabularMDP has no intervals; a learnt model is written in other formats by gosprl export"
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
            self.fail(f"a probability: {NO_INTERVALS}", text)
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
        name = self._structure(rewards)
        mdp = self.dynamics()
        if name is not None:
            mdp.rewards = self.row_rewards(name)
        return mdp

    def dynamics(self) -> TabularMDP:
        """Return the MDP with its labels, without rewards."""
        initial = self.labels.get("init", [])
        if len(initial) != 1:
            raise InputError(f"{self.name}: expected one state with the label init, the start, got {len(initial)}")
        if not self.entry_prob:
            raise InputError(f"{self.name}: expected transitions, got none")
        choice, succ, prob = np.array(self.entry_choice), np.array(self.entry_succ), np.array(self.entry_prob)
        state, action = (column[choice] for column in self._pairs)
        self._check_sums(choice, prob)
        mdp = TabularMDP((state, action, succ, prob), initial[0], states=self.states, name=self.name)
        order = np.lexsort((succ, action, state))
        _keep_bits(mdp, prob[order[prob[order] > 0]])
        mdp.labels = {
            label: tuple(sorted(states)) for label, states in self.labels.items() if label not in ("init", "deadlock")
        }
        return mdp

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[choices] states and actions."""
        return np.array(self.choice_state), np.array(_numbered(self.choice_state, self.choice_action))

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """[R] the choice of each row of the MDP."""
        state, action = self._pairs
        return np.lexsort((action, state))

    @property
    def structures(self) -> list[str]:
        """The names of the reward structures."""
        return [*self.rewards, *(name for name in self.state_rewards if name not in self.rewards)]

    def row_rewards(self, name: str) -> NDArray[np.float64]:
        """[R] the rewards of a structure, those of states included, by the rows of the MDP."""
        by_choice, by_state = np.zeros(len(self.choice_state)), np.zeros(self.states)
        for i, value in self.rewards.get(name, {}).items():
            by_choice[i] = value
        for s, value in self.state_rewards.get(name, {}).items():
            by_state[s] = value
        return (by_choice + by_state[self._pairs[0]])[self.order]

    def _structure(self, wanted: str | None) -> str | None:
        there = self.structures
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
        off = np.flatnonzero(~(np.abs(sums - 1) <= SUMS))  # nan is off, too
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
