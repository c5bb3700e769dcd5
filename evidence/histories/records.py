"""Runs as they have to be, by the diaries of systems alone; and the logs of runs, read without the package."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.histories.systems import CRASHED, Kinds, Reset, Step
from evidence.reading import chained

TERMINATED, TRUNCATED, CRASH, UNKNOWN = 2, 4, 8, 16


@dataclass
class Run:
    """A run on disk.

    Attributes
    ----------
    path, kind, carrier
        Where it is, what it walks, and who: "one", "threads" or "simulated".
    asked
        Arguments of `collect` that it was begun or continued with.
    seed
        Its seed.
    entries, draws
        What happened, by the diaries of its systems, and the random numbers behind it. Of a table: by its log, when
        that was seen first.
    sources
        Runs whose samples it began with.
    had
        What happened in them before.
    result
        What was returned last; None after a kill.
    whole
        Whether it says itself that it is complete: it has a certificate.
    files
        The bytes of its files after the last change.
    """

    path: Path
    kind: str
    carrier: str
    asked: dict[str, Any]
    seed: int
    entries: list = field(default_factory=list)
    draws: set = field(default_factory=set)
    sources: tuple = ()
    had: list = field(default_factory=list)
    result: Any = None
    files: dict = field(default_factory=dict)
    was_fleet: bool = False
    origin: Any = None  # the run that it is a copy of

    @property
    def of(self):
        return Kinds[self.kind]

    @property
    def whole(self):
        return (self.path / "certificate.json").exists()

    def believe_manifest(self):
        """Take what is needed, and whether it is a run of a fleet, from its manifest."""
        legs = json.loads((self.path / "manifest.json").read_text())["legs"]
        (need,) = legs[-1]["need"].values()
        self.asked = {**self.asked, "need": need}
        self.was_fleet = any("fleet" in leg for leg in legs)

    @property
    def ancestors(self):
        """The runs whose samples are in it, itself among them."""
        found = [self, *(ancestor for source in self.sources for ancestor in source.ancestors)]
        return [run.origin or run for run in found]

    def all_entries(self):
        """Its own entries, and those that it began with."""
        return [*self.had, *self.entries]

    def keep(self):
        """Remember the bytes that it has now."""
        self.files = contents(self.path)


def contents(path):
    """The bytes of all files below a directory; not the lock, which has the number of its last owner."""
    files = sorted(file for file in Path(path).rglob("*") if file.is_file() and file.name != "lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def logged(path):
    """(entries in order, number of samples that are unknown) of the log of a run."""
    columns, observations, actions = chained(path)
    states = [json.loads(text) for text in observations]
    values = [json.loads(text) for text in actions]
    samples = {}
    names = ("state", "action", "next_state", "reward", "flags", "order")
    for number, row in enumerate(zip(*(columns[name].tolist() for name in names), strict=True)):
        samples[number + int(row[-1])] = row  # a late outcome comes after the row that gave it up

    def shown(state):
        return states[int(state)] if states else int(state)

    entries, unknown = [], 0
    for number in sorted(samples):
        state, action, following, reward, flags, _ = samples[number]
        if flags & UNKNOWN:
            unknown += 1
        elif flags & 1:
            entries.append(Reset(shown(following)))
        else:
            value = values[int(action)] if values else int(action)
            to = CRASHED if flags & CRASH else shown(following)
            entries.append(Step(shown(state), value, to, reward, bool(flags & TERMINATED), bool(flags & TRUNCATED)))
    return entries, unknown


def counted(entries):
    """(visits by state and action, number of resets) of entries."""
    steps = [entry for entry in entries if isinstance(entry, Step)]
    return Counter((step.state, step.action) for step in steps), len(entries) - len(steps)


def discovered(entries):
    """The states that entries show alive."""
    found = {entry.state for entry in entries}
    return found | {step.next_state for step in entries if isinstance(step, Step) and not step.terminated}
