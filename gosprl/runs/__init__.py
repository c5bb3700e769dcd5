"""Runs on disk: everything that a collection observed, in order, so that nothing is lost and others can check it.

    collect(..., out=DIR)   writes a run, or goes on with it; every application does, too
    Out                     where a run is kept, and how often it is synced
    resume                  go on with a run that was interrupted, or ask for more of the same system
    show                    what a run is, how far it is, and what it takes on disk
    verify                  check a run that may come from anybody, from its files alone
    repair                  copy what can be trusted of a damaged run

The format is described in docs/runs.md.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gosprl.runs.repairing import repair
    from gosprl.runs.resuming import resume
    from gosprl.runs.settings import Out
    from gosprl.runs.showing import show
    from gosprl.runs.verifying import verify

__all__ = ["Out", "repair", "resume", "show", "verify"]

_PLACES = {"Out": "settings", "repair": "repairing", "resume": "resuming", "show": "showing", "verify": "verifying"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: Arrow takes time, and few calls need it."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"gosprl.runs.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'gosprl.runs' has no attribute {name!r}")
