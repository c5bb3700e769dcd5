"""Systems by name, and functions that make systems: what a fleet needs, since each walker has a copy of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.systems.base import System


@dataclass(frozen=True)
class Named:
    """Makes one of our domains, or a Gymnasium environment, each time it is called.

    Parameters
    ----------
    name
        The name of a domain (`gosprl.envs.names()`), or the id of an environment.
    settings
        Its parameters.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        """Make it."""
        from gosprl import envs

        if self.name in envs.names() or self.name.rstrip("0123456789") in envs.names():
            return envs.make(self.name, **self.settings)
        import gymnasium

        try:
            return gymnasium.make(self.name, **self.settings)
        except Exception as error:
            known = ", ".join(envs.names())
            raise InputError(
                f"env: {self.name!r} is not one of our domains ({known}), and Gymnasium cannot make it: {error}"
            ) from None


@dataclass(frozen=True)
class Same:
    """Returns the same table each time: walkers do not change it."""

    mdp: TabularMDP

    def __call__(self) -> TabularMDP:
        """Return it."""
        return self.mdp


def is_factory(system: Any) -> bool:
    """Whether it is a function, or a class, that makes a system, and not a system itself."""
    if isinstance(system, type):
        return True
    is_system = isinstance(system, (System, TabularMDP)) or (hasattr(system, "reset") and hasattr(system, "step"))
    return callable(system) and not is_system


def made(system: Any) -> Any:
    """Return what a name or a function stands for, made now; anything else as it is."""
    if isinstance(system, str):
        system = Named(system)
    return system() if is_factory(system) else system


def factory_of(system: Any) -> Callable[[], Any]:
    """Return a function that makes copies of what a user gave.

    Raises
    ------
    InputError
        It is one object, which cannot be copied.
    """
    from gosprl.systems.process import Process

    if isinstance(system, str):
        return Named(system)
    if is_factory(system):
        factory: Callable[[], Any] = system
        return factory
    if isinstance(system, TabularMDP):
        return Same(system)
    if isinstance(system, Process):
        return system.again
    raise InputError(
        f"system: expected something that walkers can have copies of, got one {type(system).__name__}; give a function "
        "without arguments that makes it, the id of a Gymnasium environment, or the name of a domain"
    )
