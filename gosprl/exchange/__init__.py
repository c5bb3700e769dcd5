"""Exchange with other tools: what leaves a run or a result, and tables without a run (docs/exchange.md).

export    write a run or a result as a file of another format
convert   write a table of transitions in another format
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gosprl.exchange.converting import convert
    from gosprl.exchange.exporting import export

__all__ = ["convert", "export"]

_PLACES = {"convert": "converting", "export": "exporting"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: Arrow takes time, and few calls need it."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"gosprl.exchange.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'gosprl.exchange' has no attribute {name!r}")
