"""Result: what was collected, and how."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.model import EmpiricalModel


@dataclass(frozen=True, eq=False)
class Result:
    """What a collector brought home."""

    met: bool  # every requirement fulfilled
    steps: int  # transitions collected
    attempts: int  # plans made
    stop: str  # "met" | "max_steps" | "unreachable" | "interrupted" | "failed", or "running" while it goes on
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
        if self.resets:
            lines.append(("resets", f"{self.resets:,}"))
        if self.unreachable:
            lines.append(("given up", ", ".join(f"state {s}" for s in list(self.unreachable)[:10])))
        return "Result\n" + "\n".join(f"  {name:<10} {value}" for name, value in lines)
