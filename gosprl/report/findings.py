"""Findings: what there is to show of a collection, as plain data, from a result or from a directory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.result import RESET, UNDISCOVERED, Result
from gosprl.model.empirical import EmpiricalModel
from gosprl.report.text import plural, short

if TYPE_CHECKING:
    from gosprl.mdp.tabular import TabularMDP

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
DELTA = 0.1  # of confidence sets where no level is known
UNMET = [("state", np.int64), ("action", np.int64), ("needed", np.int64), ("have", np.int64)]
MOST_LIMIT = 2_000  # states up to which the fluid limit is solved for


@dataclass(frozen=True)
class Walker:
    """What a walker of a fleet did: steps made, and samples given up."""

    name: int
    steps: int
    lost: int


@dataclass(frozen=True)
class Findings:
    """Everything that a page shows; None where it is not known.

    Attributes
    ----------
    system
        Its name.
    stop
        As `Result.stop`; "unfinished" if a run has no end yet.
    model, counts
        As in a result: live states first; visits [S, A].
    need
        Needed of each pair [S, A], and of each state with any action [S].
    curve
        (step, proportion met), at changes.
    unmet, unreachable
        As in a result.
    problems, remarks
        What is damaged; what else a reader must know.
    asked
        (name, text) of what was asked.
    work
        What planning took.
    limit, paid
        As `Result.limit` with `limit_of`, and `Result.paid`; None: it would take long, or is not known.
    truth, start
        The table that was walked, and where the walk began.
    walkers
        Of a fleet, where its log is known.
    certificate, configuration
        JSON values.
    command
        What runs it again: (language, text).
    """

    system: str
    stop: str
    model: EmpiricalModel | None
    counts: Ints
    need: tuple[Ints, Ints] | None
    curve: NDArray[np.void] | None
    unmet: NDArray[np.void]
    unreachable: Mapping[int, str]
    steps: int
    attempts: int | None
    resets: int
    crashes: int
    guarantee: str
    delta: float
    unseen: float | None
    of_discovered: bool
    states: int
    pairs: int
    asked: list[tuple[str, str]]
    strategy: str
    seed: int | None
    limit: tuple[float | None, str] | None = None
    paid: float | None = None
    work: Mapping[str, float] = field(default_factory=dict)
    truth: "TabularMDP | None" = None
    start: int | None = None
    fleet: Mapping[str, Any] | None = None
    walkers: list[Walker] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)  # of the run on disk: when, how fast, how large
    certificate: Mapping[str, Any] | None = None
    configuration: Mapping[str, Any] | None = None
    command: tuple[str, str] | None = None
    directory: str = ""
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def met(self) -> bool:
        """Whether the need is met, as far as is known."""
        return self.stop in ("met", "found") and not len(self.unmet)

    @property
    def proportion(self) -> float:
        """The proportion of states whose need is met; nan if it is not known."""
        return float(self.curve["proportion"][-1]) if self.curve is not None and len(self.curve) else np.nan

    @property
    def visits(self) -> Ints:
        """[S] visits of each live state."""
        visits: Ints = self.counts.sum(axis=1)
        return visits

    @cached_property
    def missing(self) -> Ints:
        """[S] samples that are still needed of each live state."""
        live = self.unmet[self.unmet["state"] >= 0]
        out = np.zeros(len(self.counts), dtype=np.int64)
        inside = live["state"] < len(out)
        np.add.at(out, live["state"][inside], (live["needed"] - live["have"])[inside])
        return out

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        """[S] whether a live state was seen, or something is needed of it, or no state was."""
        out = (self.visits > 0) | (self.missing > 0)
        if self.need is not None:
            out |= (self.need[0] > 0).any(axis=1) | (self.need[1] > 0)
        if self.model is not None:
            _, _, s_next, _ = self.model.transitions()
            out[s_next[s_next < len(out)]] = True
        if self.start is not None and self.start < len(out):
            out[self.start] = True
        return out if out.any() else ~out

    @property
    def map(self) -> tuple[str, ...] | None:
        """The map of a gridworld."""
        return None if self.truth is None else self.truth.map

    def name(self, state: int, longest: int = 60) -> str:
        """Return a state by its observation, short; not escaped."""
        if state == RESET:
            return "the reset"
        if state == UNDISCOVERED or self.model is None or state >= len(self.model.states):
            return "observations not made yet" if state == UNDISCOVERED else str(state)
        kind = self.model.states.kind(state)
        if kind == "reset":
            return "the reset"
        observed = self.model.states[state]
        return short(observed, longest) + (" (episode ended)" if kind == "final" else "")

    def action(self, action: int) -> str:
        """Return an action as the system takes it; not escaped."""
        if action < 0:
            return "any"
        known = [] if self.model is None else self.model.actions
        return short(known[action], 40) if action < len(known) else str(action)


def of_result(result: Result, *, system: str = "", command: str = "") -> Findings:
    """Return what there is to show of a result.

    Parameters
    ----------
    result
        The result.
    system
        Its name, where the caller knows it.
    command
        The command line that made it.
    """
    truth = result.truth
    name = system or (truth.name if truth is not None else "a system")
    return Findings(
        system=name,
        stop=result.stop,
        model=result.model,
        counts=result.counts,
        need=result.need,
        curve=result.curve,
        unmet=result.unmet,
        unreachable=result.unreachable,
        steps=result.steps,
        attempts=result.attempts,
        resets=result.resets,
        crashes=result.crashes,
        guarantee=str(result.guarantee),
        delta=result.guarantee.level or DELTA,
        unseen=result.unseen if result.of_discovered else None,
        of_discovered=result.of_discovered,
        states=result.states,
        pairs=result.pairs,
        asked=[("need", in_words(*result.need)), ("states", result.about.removeprefix("for "))],
        strategy=result.strategy,
        seed=result.seed,
        limit=(result.limit, result.limit_of) if result.model.rows.num_states <= MOST_LIMIT else None,
        paid=result.paid,
        work=result.work,
        truth=truth,
        start=result.start,
        fleet=result.fleet,
        command=("sh", command) if command else None,
    )


def in_words(pair: Ints, state: Ints) -> str:
    """Return a need by pair and state in words."""
    asked = pair[pair > 0]
    parts = []
    if asked.size:
        low, high = int(asked.min()), int(asked.max())
        span = plural(low, "sample") if low == high else f"{low:,} to {high:,} samples"
        parts.append(f"{span} of each of {plural(asked.size, 'pair')}")
    if (state > 0).any():
        parts.append(f"samples of {int((state > 0).sum()):,} states, with any action")
    return " and ".join(parts) or "nothing"
