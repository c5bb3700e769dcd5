"""States: what the indices of a model stand for.

The outside speaks of observations, a model of states. An observation has up to two states:

    live     the walk goes on from there
    final    its copy for episodes that ended with this observation; one row, which leads to the reset

One more final state stands for the crash of the system itself, after which no observation is made (`CRASH`).

The same observation can be alive in one episode and final in another: an ending belongs to the transition, not to the
observation. All final states lead to one state, the reset, whose single row is the law of the start. Where the number
of observations is known, the first indices are theirs: index = key. All other states get the next free index when
they are discovered.
"""

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Any, overload


class Special(Enum):
    """What takes the place of an observation where none was made."""

    CRASH = "crash"

    def __str__(self) -> str:
        return self.value


CRASH = Special.CRASH


def _same(key: Any) -> Any:
    return key


class States(Sequence[Any]):
    """Index -> observation, for the states of a model.

    Parameters
    ----------
    fixed
        Number of observations known beforehand: live state i is that of key i, for i < fixed.
    decode
        key -> observation, as a user recognises it.

    Attributes
    ----------
    reset
        Index of the reset state; -1 if there is none yet.
    used
        Indices in use: 0 .. used - 1.
    """

    def __init__(self, fixed: int, decode: Callable[[Any], Any] = _same) -> None:
        self.fixed, self.decode = fixed, decode
        self.used = fixed
        self.reset = -1
        self._live: dict[Hashable, int] = {}
        self._final: dict[Hashable, int] = {}
        self._keys: list[tuple[str, Hashable]] = []  # (kind, key) of the indices from `fixed` on

    def copy(self) -> "States":
        """Return a copy that later discoveries do not change."""
        other = States(self.fixed, self.decode)
        other.used, other.reset = self.used, self.reset
        other._live, other._final, other._keys = self._live.copy(), self._final.copy(), self._keys.copy()
        return other

    def live(self, key: Any) -> int:
        """Return the live state of an observation; -1 if it is not discovered."""
        return key if self.fixed else self._live.get(key, -1)

    def final(self, key: Hashable) -> int:
        """Return the final state of an observation; -1 if no episode ended with it."""
        return self._final.get(key, -1)

    @property
    def finals(self) -> list[int]:
        """Indices of the final states, in order of discovery."""
        return list(self._final.values())

    @property
    def lives(self) -> list[int]:
        """Indices of the live states, in order: by key where their number was known, of discovery elsewhere."""
        return list(range(self.fixed)) if self.fixed else list(self._live.values())

    def add(self, kind: str, key: Hashable = None) -> int:
        """Take the next index for a state: "live", "final" or "reset"."""
        index = self.used
        self.used += 1
        self._keys.append((kind, key))
        if kind == "reset":
            self.reset = index
        else:
            (self._live if kind == "live" else self._final)[key] = index
        return index

    def kind(self, index: int) -> str:
        """Return "live", "final", "crash" or "reset"; "" for an index not in use."""
        if index < self.fixed:
            return "live"
        if index >= self.used:
            return ""
        kind, key = self._keys[index - self.fixed]
        return "crash" if key is CRASH else kind

    def key(self, index: int) -> Any:
        """Return the key of a state's observation."""
        return index if index < self.fixed else self._keys[index - self.fixed][1]

    def name(self, index: int) -> str:
        """Return a state as a message names it."""
        kind = self.kind(index)
        if kind in ("reset", ""):
            return kind or "observations not made yet"
        return f"{self[index]}" + (" (episode ended)" if kind == "final" else "")

    def arranged(self, order: Sequence[int]) -> "States":
        """Return the same states with the indices 0 .. n - 1, in the given order; those not named are left out."""
        fixed = self.fixed if list(order[: self.fixed]) == list(range(self.fixed)) else 0
        other = States(fixed, self.decode)
        for index in order[fixed:]:
            kind, key = ("live", index) if index < self.fixed else self._keys[index - self.fixed]
            other.add(kind, key)
        return other

    def __len__(self) -> int:
        return self.used

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        """Return the observation of a state."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.used))]
        index = int(index)
        if not -self.used <= index < self.used:
            raise IndexError(f"expected a state in 0..{self.used - 1}, got {index}")
        index %= self.used
        return None if index == self.reset else self.shown(self.key(index))

    def shown(self, key: Any) -> Any:
        """Return the observation that a key stands for."""
        return key if key is CRASH else self.decode(key)

    def __repr__(self) -> str:
        return f"States({self.used} indices)"
