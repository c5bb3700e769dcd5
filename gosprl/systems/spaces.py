"""Gymnasium's spaces: how many elements they have, which, and whether observations in them can be told apart."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gosprl.errors import InputError
from gosprl.model.content import USE_KEY

MOST = 10_000  # elements that are listed


def size(space: Any) -> int | None:
    """Return the number of elements of `Discrete`, `MultiDiscrete`, `MultiBinary` and products of these, else None."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(math.prod(space.nvec.ravel().tolist()))
    if isinstance(space, spaces.MultiBinary):
        return int(2 ** math.prod(space.shape))
    if isinstance(space, (spaces.Tuple, spaces.Dict)):
        sizes = [size(part) for part in _parts(space)]
        return None if None in sizes else math.prod(sizes)  # type: ignore[arg-type]
    return None


def elements(space: Any) -> Sequence[Any] | None:
    """Return the elements of a space in order, the last component varying fastest; None if they are not finitely many.

    Spaces other than `Discrete` are listed only up to `MOST` elements: for larger ones the answer is None, too.
    """
    if isinstance(space, spaces.Discrete):
        return range(int(space.start), int(space.start) + int(space.n))
    number = size(space)
    return None if number is None or number > MOST else list(_listed(space))


def _listed(space: Any) -> Iterator[Any]:
    if isinstance(space, spaces.MultiDiscrete):
        ranges = [
            range(a, a + n) for a, n in zip(space.start.ravel().tolist(), space.nvec.ravel().tolist(), strict=True)
        ]
        return _arrays(ranges, space)
    if isinstance(space, spaces.MultiBinary):
        return _arrays([range(2)] * math.prod(space.shape), space)
    if isinstance(space, (spaces.Tuple, spaces.Dict)):
        products = itertools.product(*[elements(part) or () for part in _parts(space)])
        if isinstance(space, spaces.Tuple):
            return products
        return (dict(zip(space.spaces, values, strict=True)) for values in products)
    return iter(elements(space) or ())


def _arrays(ranges: Sequence[range], space: Any) -> Iterator[Any]:
    return (np.array(values, dtype=space.dtype).reshape(space.shape) for values in itertools.product(*ranges))


def _parts(space: Any) -> list[Any]:
    return list(space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces)


def one_line(space: Any) -> str:
    """Return a space in words, short and without line breaks, for errors."""
    text = " ".join(str(space).split())
    return text if len(text) <= 120 else f"{text[:100]} ... {text[-15:]}"


def refuse_continuous(name: str, space: Any, whole: bool = True) -> None:
    """Raise `InputError` if observations are floating-point numbers, of which hardly any two are equal.

    Parameters
    ----------
    name
        The observation, or the part of it that the space describes, for the error.
    space
        The space; of its parts, those of `Tuple` and `Dict` are not looked at.
    whole
        Whether it is the whole observation: only then Gymnasium's wrapper applies.
    """
    if isinstance(space, spaces.Box) and np.dtype(space.dtype).kind not in "biu":
        raise InputError(
            f"observation_space: expected finitely many observations, but {name} is continuous, {one_line(space)}; "
            f"{_way_out(space) if whole else ''}{USE_KEY}"
        )
    for label in ("feature_space", "node_space", "edge_space"):  # of Sequence and Graph
        if hasattr(space, label):
            refuse_continuous(f"{name}.{label}", getattr(space, label), False)
    if isinstance(space, spaces.OneOf):
        for i, part in enumerate(space.spaces):
            refuse_continuous(f"{name}[{i}]", part, False)


def _way_out(space: spaces.Box) -> str:
    """Return which wrapper to use, and what to do first where bounds are infinite, which the wrapper refuses."""
    use = "use gymnasium.wrappers.DiscretizeObservation(env, bins=10), or "
    if np.isfinite(space.low).all() and np.isfinite(space.high).all():
        return use
    clip = "TransformObservation(env, lambda x: np.clip(x, low, high), Box(low, high))"
    return f"bound it with gymnasium.wrappers.{clip}, then {use}"
