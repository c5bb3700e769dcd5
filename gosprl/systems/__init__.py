"""What collectors can walk."""

from typing import Any

from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.systems.tabular import Tabular


def as_system(system: Any) -> Any:
    if isinstance(system, TabularMDP):
        return Tabular(system)
    if hasattr(system, "run") and hasattr(system, "model"):
        return system
    if hasattr(system, "observation_space") and hasattr(system, "step"):
        from gosprl.systems.gymnasium import Gymnasium

        return Gymnasium(system)
    raise InputError(f"system: expected a TabularMDP or a Gymnasium environment, got {type(system).__name__}")
