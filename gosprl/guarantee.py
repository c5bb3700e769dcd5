"""Guarantee: what is promised of a result, as a value."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Guarantee:
    """A promise with its level and its assumptions, or the reason why there is none.

    Printed as one line: ``delta=0.1``, ``delta=0.1, given the successors``, ``known dynamics``,
    ``heuristic: scale 0.1``, ``none: a random walk``.

    Parameters
    ----------
    level
        delta: the promise holds with probability at least 1 - delta. None if there is no such level.
    of
        What holds; empty for a run: then it is the strategy's bound on the steps.
    given
        What was assumed and not checked, such as ``"the successors"``.
    known
        Whether the dynamics were known, so that nothing had to be learnt.
    scope
        What it is about, if not about everything: ``"of the states discovered"``.
    why
        Without a level: the reason, such as ``"heuristic: scale 0.1"``.
    """

    level: float | None = None
    of: str = ""
    given: tuple[str, ...] = ()
    known: bool = False
    why: str = ""
    scope: str = ""

    @classmethod
    def heuristic(cls, why: str) -> "Guarantee":
        """No promise: something was made smaller or larger than its proof allows."""
        return cls(why=f"heuristic: {why}")

    @classmethod
    def none(cls, why: str) -> "Guarantee":
        """No promise was ever made."""
        return cls(why=f"none: {why}")

    @property
    def holds(self) -> bool:
        """Whether anything is promised at all."""
        return self.level is not None or self.known

    def about(self, what: str) -> "Guarantee":
        """Return the same level, as the level of another statement."""
        return replace(self, of=what)

    def assuming(self, what: str) -> "Guarantee":
        """Return the same under one more assumption."""
        return replace(self, given=(*self.given, what))

    def within(self, scope: str) -> "Guarantee":
        """Return the same, about less than everything."""
        return replace(self, scope=scope) if self.holds else self

    def __str__(self) -> str:
        basis = f"delta={self.level:g}" if self.level is not None else "known dynamics" if self.known else self.why
        given = f", given {' and '.join(self.given)}" if self.given else ""
        scope = f", {self.scope}" if self.scope else ""
        return basis + scope + given + (f": {self.of}" if self.of else "")
