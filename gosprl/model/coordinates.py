"""Coordinates of states: the whole numbers that an observation consists of, and their code.

An observation has coordinates if it is a whole number, or a tuple, list, dict, array or frozen dataclass of nothing
else, nested as it may be; bools are whole numbers. Their code is

    x_0 + g x_1 + g^2 x_2 + ...  modulo 2^62,

a linear hash: if two pairs of states differ by the same vector, their codes differ by the same number. Different
vectors of the same code are possible, hardly by accident; what is expected of one is then expected of the other, too.
Codes depend on the observation only, not on when it was made.
"""

import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

MOST = 64  # coordinates; observations that have more are pictures, or texts
NONE = -1  # in the place of a code
_BITS, _FACTOR = 2**62 - 1, 0x9E3779B97F4A7C15


def code_of(observation: Any) -> int:
    """Return the code of an observation, below 2^62; NONE if it has no coordinates."""
    code, number = 0, 0
    for x in _numbers(observation):
        if x is None or number == MOST:
            return NONE
        code += x * pow(_FACTOR, number, _BITS + 1)
        number += 1
    return (code + (number - 1) * _FACTOR**MOST) & _BITS if number else NONE  # vectors of different lengths differ


def _numbers(value: Any) -> Iterator[int | None]:
    """Return the whole numbers that a value consists of, one by one; None for a part that is something else."""
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        yield int(value)
    elif isinstance(value, (float, np.floating)):
        yield int(value) if float(value).is_integer() else None
    elif isinstance(value, np.ndarray):
        yield from _of_array(value)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, dict):
        for name in sorted(value, key=str):
            yield from _numbers(value[name])
    elif dataclasses.is_dataclass(value) and not isinstance(value, (Enum, type)):
        for field in dataclasses.fields(value):
            yield from _numbers(getattr(value, field.name) if field.compare else ())
    else:
        yield None


def _of_array(array: np.ndarray[Any, Any]) -> Iterator[int | None]:
    if array.dtype.kind not in "biuf" or array.size > MOST:
        yield None
    else:
        for x in array.ravel().tolist():
            yield from _numbers(x)
