"""The exceptions of gosprl; all of them are `GosprlError`s."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gosprl.collecting.result import Result


class GosprlError(Exception):
    """Base of all errors raised by gosprl."""


class InputError(GosprlError, ValueError):
    """An argument is invalid; the message names it, what was expected, and what was got."""


class PrecisionError(GosprlError, ArithmeticError):
    """A numerical certificate was not reached, for example because the precision is too high for doubles."""


class CollectionError(GosprlError, RuntimeError):
    """A run failed.

    Attributes
    ----------
    result
        Everything collected until then.
    """

    def __init__(self, message: str, result: "Result") -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type, tuple[str, "Result"]]:
        """Return how to pickle the error, so that worker processes can raise it."""
        return type(self), (str(self), self.result)
