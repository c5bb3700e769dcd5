"""Where samples come from, and by what they are known again: the same samples must not count twice.

An origin has identities, texts such as

    run:1f3c...      the id of a run on disk, which copies and renamed directories share
    walk:9a01...     random numbers that were drawn: the digest of what they follow from (`gosprl.collecting.streams`)
    log:77e0...      the digest of the log of a run
    file:5b2d...     the digest of a file
    rows:c4f1...     the digest of rows, whatever file or table they stood in
    counts:e0aa...   the digest of counts without order

Origins are the same if they share an identity of the first four kinds. Equal content, the last two, means the same
unless both are known to be different runs or walks: a system without chance makes equal ones.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EXACT, BY_CONTENT = ("run", "walk", "log", "file"), ("rows", "counts")
TELLING = ("run", "walk")  # kinds that tell different samples of equal content apart


@dataclass(frozen=True)
class Origin:
    """Samples that were counted: what they are called, and their identities."""

    name: str
    ids: tuple[str, ...]

    def shared_with(self, other: "Origin") -> str:
        """Return an identity that shows that these are the same samples; empty if none does."""
        shared = [one for one in self.ids if one in other.ids]
        kinds = EXACT if tells(self) and tells(other) else EXACT + BY_CONTENT
        return next((one for kind in kinds for one in shared if kind_of(one) == kind), "")


def kind_of(identity: str) -> str:
    """Return what an identity is of."""
    return identity.partition(":")[0]


def tells(origin: Origin) -> bool:
    """Whether it is known which run or walk samples come from."""
    return any(kind_of(one) in TELLING for one in origin.ids)


def walk_id(entropy: int | Sequence[int]) -> str:
    """Return the identity of random numbers that follow from `entropy`."""
    words = [entropy] if isinstance(entropy, int) else list(entropy)
    return "walk:" + hashlib.sha256(repr([int(word) for word in words]).encode()).hexdigest()


def run_id(run: str) -> str:
    """Return the identity of a run on disk."""
    return f"run:{run}"


def within(data: Any) -> tuple[Origin, ...]:
    """Return the origins of what a manifest says of the data that a run began with, and of what these began with."""
    found: list[Origin] = []
    for source in data["sources"] if isinstance(data, Mapping) else ():
        kind, digest = source["kind"], source["digest"]
        before = () if digest is None else (f"{'log' if kind == 'run' else 'file'}:{digest}",)
        found.append(Origin(source["name"], tuple(source.get("ids", before))))
        found += [Origin(one["name"], tuple(one["ids"])) for one in source.get("within", ())]
    return tuple(found)


def described(origins: Sequence[Origin]) -> list[dict[str, Any]]:
    """Return origins as JSON values."""
    return [{"name": origin.name, "ids": list(origin.ids)} for origin in origins]
