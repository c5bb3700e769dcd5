"""Result: what was collected, and how."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.record import Find
from gosprl.errors import GosprlError
from gosprl.model.empirical import EmpiricalModel

if TYPE_CHECKING:
    from gosprl.mdp.tabular import TabularMDP

SHOWN = 200  # states up to which the limit is solved for just to be shown


@dataclass(frozen=True, eq=False)
class Result:
    """What a collector brought home."""

    met: bool  # every requirement fulfilled
    steps: int  # transitions collected
    attempts: int  # plans made
    stop: str  # "met" | "found" | "max_steps" | "unreachable" | "interrupted" | "failed", "running" while it goes on
    counts: NDArray[np.int64] = field(repr=False)  # [S, A] visits, 0 where the action does not exist
    unmet: NDArray[np.void] = field(repr=False)  # (state, action or -1 for any, needed, have)
    unreachable: dict[int, str] = field(repr=False)  # states given up on, and which test said so
    curve: NDArray[np.void] = field(
        repr=False
    )  # (step, proportion of all states whose requirement is met), at each change
    model: EmpiricalModel = field(repr=False)
    guarantee: str  # which promise holds
    states: int  # with a requirement
    pairs: int  # with a requirement
    resets: int  # transitions from terminal states to starting ones; they cost no step
    unseen: (
        float  # the largest cap on the mass of successors never seen, over the pairs visited; nan if nothing caps it
    )
    seed: Any
    strategy: Any
    found: Find | None  # the first reward above the threshold, if one was given and one was found
    _need: tuple[NDArray[np.int64], NDArray[np.int64]] = field(
        repr=False
    )  # per row [R], per state [S]: what the run added
    _start: int | None = field(repr=False)
    _truth: "TabularMDP | None" = field(repr=False)

    @cached_property
    def limit(self) -> float:
        """The fluid limit of the need as it was at the end: what collecting it costs at least on average.

        For the true dynamics if the system told them (a `TabularMDP`); then, for a need that is fixed, no collector can
        do with fewer on average. What was there before the run is not counted.
        Otherwise for the model that was learnt: what it would take on average, at least, if the frequencies seen were
        the dynamics; an estimate. A linear program, solved when first asked for: seconds from a thousand states on. nan
        if it cannot be solved.
        """
        from gosprl.theory.limits import limit_of_mdp, limit_of_model

        if self._start is None:
            return np.nan
        try:
            if self._truth is not None:
                return limit_of_mdp(self._truth, *self._need, self._start)
            return limit_of_model(self.model, *self._need, self._start)
        except GosprlError:
            return np.nan

    @property
    def limit_of(self) -> str:
        """What `limit` is the limit of."""
        return "the learnt model, an estimate" if self._truth is None else "the true dynamics"

    @property
    def ratio(self) -> float:
        """Steps over the limit; nan if not all was met, or nothing was needed."""
        return self.steps / self.limit if self.met and 0 < self.limit < np.inf else np.nan

    @property
    def closeness(self) -> str:
        """Limit and ratio in words; nothing where there is no ratio, or it would take long to show."""
        if not self.met or self.model.num_states > SHOWN or np.isnan(self.ratio):
            return ""
        return f"{self.limit:,.1f}, for {self.limit_of}: {self.ratio:.2f} times that"

    def __repr__(self) -> str:
        missing = int((self.unmet["needed"] - self.unmet["have"]).sum())
        lines = [
            (
                "met",
                f"{self.met} ({self.states} states, {self.pairs} pairs"
                + (f", {missing} samples missing)" if missing else ")"),
            ),
            ("stop", self.stop),
            ("steps", f"{self.steps:,}"),
            ("attempts", f"{self.attempts:,}"),
            ("guarantee", self.guarantee),
            ("strategy", repr(self.strategy)),
            ("seed", repr(self.seed)),
        ]
        if self.closeness:
            lines.append(("limit", self.closeness))
        if self.found:
            lines.append(("found", "reward {3:g} at state {0}, action {1}".format(*self.found)))
        if self.resets:
            lines.append(("resets", f"{self.resets:,}"))
        if self.unreachable:
            lines.append(("given up", ", ".join(f"state {s}" for s in list(self.unreachable)[:10])))
        return "Result\n" + "\n".join(f"  {name:<10} {value}" for name, value in lines)
