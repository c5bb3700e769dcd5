"""Trial: the complete specification of one run of a comparison, and how it is made."""

import hashlib
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gosprl
from gosprl.experiments.sweep import Run
from gosprl.runs.describing import described
from gosprl.systems.named import Named

LONGEST = 40  # characters of a folder's name


@dataclass(frozen=True, eq=False)
class Contender:
    """A strategy with its options, as `gosprl.collect` takes them."""

    label: str
    strategy: Any  # a name or a strategy
    options: Mapping[str, Any]

    def described(self) -> dict[str, Any]:
        """Return what it is, as JSON data."""
        return {"strategy": described(self.strategy), "options": described(dict(self.options))}

    @property
    def folder(self) -> str:
        """A name for files: the label, where it can be one."""
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", self.label).strip("-.")[:LONGEST]
        return plain if plain == self.label else f"{plain}-{hashlib.sha256(self.label.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, eq=False)
class Trial:
    """One run: what is walked, what is needed, by which strategy, with which seed."""

    make: Callable[[], Any]  # the system
    need: Any
    contender: Contender
    seed: int
    max_steps: int | None = None

    @property
    def place(self) -> str:
        """Where its run is stored, without the ending."""
        return f"{self.contender.folder}/{self.seed}"

    def described(self) -> dict[str, Any]:
        """Return everything that determines its outcome."""
        return {
            "system": system_described(self.make),
            "need": described(self.need),
            **self.contender.described(),
            "seed": self.seed,
            "max_steps": self.max_steps,
        }

    def tiny(self) -> "Trial | None":
        """Return a short one that compiles the same code, once for each strategy."""
        return replace(self, make=Named("riverswim6"), need=1, max_steps=100) if self.seed == 0 else None


def perform(trial: Trial) -> Run:
    """Make a run."""
    contender = trial.contender
    asked = {"strategy": contender.strategy, "seed": trial.seed, "max_steps": trial.max_steps, **contender.options}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="met for the .* states discovered")  # rows have their number
        result = gosprl.collect(trial.make(), trial.need, **asked)
    if result.stop == "interrupted":  # by Ctrl-C: not a complete run
        raise KeyboardInterrupt
    curve = np.stack([result.curve["step"].astype(float), result.curve["proportion"]], axis=1)
    return Run(
        *(trial.seed, result.steps, result.met, trial.max_steps, curve),
        attempts=result.attempts,
        stop=result.stop,
        states=result.states,
    )


def system_described(make: Callable[[], Any]) -> Any:
    """Return what is walked: a name with its parameters, the digest of a table, or the name of a function."""
    if isinstance(make, Named):
        return {"name": make.name, "settings": described(make.settings)}
    tables = (part for part in getattr(make, "args", ()) if isinstance(part, gosprl.TabularMDP))
    return described(next(tables, make))
