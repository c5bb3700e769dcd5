"""Refuses data in which the same samples stand twice: sets that count a sample twice do not hold."""

from collections.abc import Sequence

from gosprl.errors import InputError
from gosprl.model.origins import Origin, kind_of
from gosprl.printing import printable

WHY = {
    "run": "both are, or have, run {}",
    "walk": "both have the random numbers of the same seed",
    "log": "both have the same log",
    "file": "both are the same file",
    "rows": "both have the same rows",
    "counts": "both have the same counts",
}
ONE = "give only one of them"
WAY_OUT = {
    "walk": f"{ONE}, and collect the other with another seed; if the system does not draw from its seed, export one of "
    "them as a table, and say its data_order",
    "rows": f"{ONE}; samples that are others, and equal, belong into one table",
    "counts": f"{ONE}; samples that are others, and equal, belong into one table",
}
SHOWN = 120  # characters of a name


def refuse_repeated(groups: Sequence[Sequence[Origin]]) -> None:
    """Raise `InputError` if two origins are the same samples.

    Parameters
    ----------
    groups
        The origins of each source: its own first, then those of what it began with, and so on.
    """
    seen: dict[str, list[tuple[int, Origin]]] = {}  # by identity
    for number, group in enumerate(groups):
        for origin in group:
            for earlier, other in (entry for one in origin.ids for entry in seen.get(one, ())):
                shared = origin.shared_with(other)
                if shared:
                    a = _said(other, groups[earlier][0], earlier, len(groups))
                    b = _said(origin, group[0], number, len(groups))
                    raise _error(a, b, shared)
            for one in origin.ids:
                seen.setdefault(one, []).append((number, origin))


def _error(a: str, b: str, shared: str) -> InputError:
    kind = kind_of(shared)
    why = WHY[kind].format(printable(f"{shared.partition(':')[2]:.8}"))
    return InputError(
        f"data: {a} and {b} have the same samples ({why}), and each counts once; {WAY_OUT.get(kind, ONE)}. See "
        "docs/exchange_data.md"
    )


def _said(origin: Origin, source: Origin, number: int, of: int) -> str:
    """Return what an origin is called, and in which source it is."""
    name = printable(f"{source.name:.{SHOWN}}") + (f" (source {number + 1})" if of > 1 else "")
    return name if origin is source else f"{printable(f'{origin.name:.{SHOWN}}')}, which is in {name},"
