"""Counts in memory: an `EmpiricalModel`, or that of a `Result`."""

from gosprl.exchange.fingerprint import digest_of_counts
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.origins import Origin, tells


class Model:
    """Counts without order, or with the order of first appearances only."""

    has_order, kind = False, "model"

    def __init__(self, model: EmpiricalModel) -> None:
        self.model, self.name = model, "the model"

    def digest(self) -> None:
        """Return None: it is no file."""

    def ids(self) -> tuple[str, ...]:
        """Return its identities, those of the runs and walks that were counted in it among them."""
        told = (one for origin in self.model.origins if tells(origin) for one in origin.ids)
        return *dict.fromkeys(told), f"counts:{digest_of_counts(self.model)}"

    def within(self) -> tuple[Origin, ...]:
        """Return the origins of the other samples that were counted in it, as far as they are known."""
        return tuple(origin for origin in self.model.origins if not tells(origin))
