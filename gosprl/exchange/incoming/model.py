"""Counts in memory: an `EmpiricalModel`, or that of a `Result`."""

from gosprl.model.empirical import EmpiricalModel


class Model:
    """Counts without order, or with the order of first appearances only."""

    has_order, kind = False, "model"

    def __init__(self, model: EmpiricalModel) -> None:
        self.model, self.name = model, "the model"

    def digest(self) -> None:
        """Return None: it is no file."""
