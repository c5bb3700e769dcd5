"""Comparison: the runs of several strategies as rows, a summary with intervals, and a picture.

Intervals are those of `gosprl.experiments.stats`: the percentile bootstrap at 95 %. The steps of a run that was stopped
before its need was met are less than it needs, so a mean with such runs is a lower bound, marked by `stopped`.
"""

import html
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl.errors import InputError
from gosprl.experiments import stats, store
from gosprl.experiments.figures import check_matplotlib
from gosprl.experiments.sweep import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("strategy", "met", "states", "steps, mean", "95 % interval", "x limit", "x first")
KINDS = ("png", "pdf", "svg")


@dataclass(frozen=True)
class Line:
    """A strategy in the summary."""

    strategy: str
    runs: int
    stopped: int  # runs that ended before the need was met: then the numbers are lower bounds
    steps: stats.Estimate
    states: tuple[int, int]  # with a need, the fewest and the most of a run: they may be discovered on the way
    ratio: float  # mean steps over the limit; nan if there is no limit
    against: stats.Estimate | None  # mean steps over those of the first strategy; None: it is the first one

    def cells(self) -> tuple[str, ...]:
        """Return the line as text, in the order of `COLUMNS`."""
        least = "at least " if self.stopped else ""
        interval = f"{stats.number(self.steps.low)} to {stats.number(self.steps.high)}" if self.runs > 1 else "-"
        ratio = "-" if math.isnan(self.ratio) else f"{least}{self.ratio:.2f}"
        against = "1" if self.against is None else f"{least}{self.against.value:.2f}"
        if self.against is not None and self.runs > 1:  # one run has no interval
            against += f" ({self.against.low:.2f} to {self.against.high:.2f})"
        met = f"{self.runs - self.stopped} of {self.runs}"
        states = f"{self.states[0]:,}" if len(set(self.states)) == 1 else f"{self.states[0]:,} to {self.states[1]:,}"
        return self.strategy, met, states, least + stats.number(self.steps.value), interval, ratio, against


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `gosprl.compare` found."""

    system: str
    need: Any
    runs: Mapping[str, list[Run]]  # by label, in order of their seeds
    limit: float  # a lower bound on the expected steps of any collector; nan if the dynamics are not known

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict a run, for ``pandas.DataFrame(comparison.rows)``; `stopped`: it ended before the need was met."""
        return [
            {
                "system": self.system,
                "strategy": label,
                "seed": run.seed,
                "steps": run.steps,
                "met": run.met,
                "stopped": not run.met,
                "stop": run.stop,
                "max_steps": run.max_steps,
                "plans": run.attempts,
                "states": run.states,
                "ratio": run.steps / self.limit if 0 < self.limit < math.inf else math.nan,
            }
            for label, runs in self.runs.items()
            for run in runs
        ]

    @cached_property
    def summary(self) -> list[Line]:
        """A line for each strategy, in the order given."""
        first = next(iter(self.runs))
        return [self._line(label, None if label == first else self.runs[first]) for label in self.runs]

    def _line(self, label: str, first: list[Run] | None) -> Line:
        runs = self.runs[label]
        steps, states = _steps(runs), [run.states for run in runs]
        return Line(
            label,
            len(runs),
            sum(not run.met for run in runs),
            stats.mean(steps),
            (min(states), max(states)),
            float(steps.mean()) / self.limit if 0 < self.limit < math.inf else math.nan,
            None if first is None else stats.ratio_of_means(steps, _steps(first)),
        )

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        try:
            pandas = import_module("pandas")  # no dependency of ours, and without types
        except ImportError:
            raise InputError("to_pandas needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(self.rows)

    def write(self, file: str | os.PathLike[str]) -> None:
        """Write the rows to a .csv file, or the picture to a .png, .pdf or .svg file."""
        path = Path(file)
        kind = path.suffix.lower().removeprefix(".")
        if kind == "csv":
            return store.write_csv(path, self.rows)
        if kind not in KINDS:
            raise InputError(f"file: expected a name that ends with .csv, .png, .pdf or .svg, got {path.name!r}")
        from gosprl.experiments.figures import image

        store.write(path, image(self.plot(), kind))

    def plot(self) -> "Figure":
        """Draw the steps of all runs, and the proportion met over time, as a matplotlib figure."""
        check_matplotlib("plot")
        from gosprl.comparing.picture import draw

        return draw(self)

    @property
    def title(self) -> str:
        """What is compared, in words."""
        need = f"{self.need}" if isinstance(self.need, int) else "as given"
        limit = "" if math.isnan(self.limit) else f", limit {stats.number(self.limit)} steps"
        return f"{self.system}, need {need}{limit}"

    def __repr__(self) -> str:
        cells = [COLUMNS, *(line.cells() for line in self.summary)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(COLUMNS))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in cells]
        return "\n".join([f"Comparison: {self.title}", *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
        rows = (
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line.cells()) + "</tr>"
            for line in self.summary
        )
        caption = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _steps(runs: list[Run]) -> Any:
    return np.array([run.steps for run in runs], dtype=float)
