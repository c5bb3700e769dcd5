"""What collectors can walk."""

from typing import TYPE_CHECKING, Any

from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.systems.base import Outcome, Start, System
from gosprl.systems.tabular import Tabular

if TYPE_CHECKING:
    from gosprl.systems.process import Process

__all__ = ["Outcome", "Process", "Start", "System", "Tabular", "as_system"]


def __getattr__(name: str) -> Any:
    """Import `Process` when it is asked for: few need it, and it takes time."""
    if name == "Process":
        from gosprl.systems.process import Process

        return Process
    raise AttributeError(f"module 'gosprl.systems' has no attribute {name!r}")


def as_system(system: Any, key: Any = None, actions: Any = None) -> System:
    """Return a system that collectors can walk, made from what a user gave.

    Parameters
    ----------
    system
        A TabularMDP, a Gymnasium environment, any object with Gymnasium's `reset` and `step`, or a `System`.
    key, actions
        What tells states apart, and which actions there are; see `gosprl.systems.stepper.Stepper`.
    """
    if not isinstance(system, (System, TabularMDP)):
        from gosprl.systems.stepper import Stepper

        return Stepper(system, key=key, actions=actions)
    for name, value in (("key", key), ("actions", actions)):
        if value is not None:
            raise InputError(f"{name}: expected None for a {type(system).__name__}, which numbers its own")
    return Tabular(system) if isinstance(system, TabularMDP) else system
