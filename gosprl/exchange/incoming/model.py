"""Counts in memory: an `EmpiricalModel`, or that of a `Result`."""

from gosprl.model.empirical import EmpiricalModel


class Model:
    """Counts without order, or with the order of first appearances only."""

    has_order = False

    def __init__(self, model: EmpiricalModel) -> None:
        self.model, self.name = model, "the model"
