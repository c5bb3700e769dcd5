"""The exceptions of gosprl. Every one of them is a `GosprlError`."""


class GosprlError(Exception):
    """Base of all errors raised by gosprl."""


class InputError(GosprlError, ValueError):
    """An argument is not what was asked for; the message names it, what was expected, and what was got."""


class PrecisionError(GosprlError, ArithmeticError):
    """A numerical certificate could not be reached, for instance a precision below what doubles can show."""
