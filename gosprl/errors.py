"""The exceptions of gosprl. Every one of them is a `GosprlError`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gosprl.collecting.result import Result


class GosprlError(Exception):
    """Base of all errors raised by gosprl."""


class InputError(GosprlError, ValueError):
    """An argument is not what was asked for; the message names it, what was expected, and what was got."""


class PrecisionError(GosprlError, ArithmeticError):
    """A numerical certificate could not be reached, for instance a precision below what doubles can show."""


class CollectionError(GosprlError, RuntimeError):
    """A run failed on the way; `result` holds everything collected until then."""

    def __init__(self, message: str, result: "Result") -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type, tuple[str, "Result"]]:
        return type(self), (str(self), self.result)  # so that worker processes can raise it
