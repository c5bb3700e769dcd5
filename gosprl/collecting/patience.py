"""Patience: a warning to a user whose run may never end."""

import warnings

import numpy as np

from gosprl.collecting.record import Record

PATIENCE = 50_000  # steps without a needed sample, and at least half of all, before the warning


class Patience:
    """Watches a run without a budget, and warns once."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._collected, self._at, self._warned = 0, 0, False  # needed samples so far, and the step of the last one

    def warn_if_exhausted(self) -> None:
        """Warn if nothing that is needed was sampled for long."""
        record = self._record
        if record.need.collected != self._collected:
            self._collected, self._at = record.need.collected, record.steps
        waited = record.steps - self._at
        if self._warned or waited <= PATIENCE or 2 * waited <= record.steps:
            return
        self._warned = True
        unmet = record.need.unmet()
        states = ", ".join(record.model.states.name(s) for s in np.unique(unmet["state"])[:5])
        warnings.warn(
            f"nothing that is needed was sampled in the last {waited:,} of {record.steps:,} steps; still "
            f"needed are states such as {states}, which perhaps cannot be reached from where the walk is. Ctrl-C "
            "keeps what was collected; max_steps= or reach= would end such a run",
            stacklevel=4,
        )
