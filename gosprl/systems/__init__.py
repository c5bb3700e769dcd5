"""What collectors can walk."""

from typing import Any

from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.systems.base import Outcome, System
from gosprl.systems.tabular import Tabular

__all__ = ["Outcome", "System", "Tabular", "as_system"]


def as_system(system: Any) -> System:
    """Return a system that collectors can walk, made from what a user gave."""
    if isinstance(system, System):
        return system
    if isinstance(system, TabularMDP):
        return Tabular(system)
    import gymnasium

    if isinstance(system, gymnasium.Env):
        from gosprl.systems.gymnasium import Gymnasium

        return Gymnasium(system)
    if isinstance(system, gymnasium.vector.VectorEnv):
        raise InputError(
            f"system: expected one environment, got a vector environment ({type(system).__name__}), whose automatic "
            "resets hide transitions; give one of its environments"
        )
    raise InputError(
        "system: expected a TabularMDP, a Gymnasium environment or a gosprl.systems.System, got "
        f"{type(system).__name__}"
    )
