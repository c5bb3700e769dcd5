"""Systems by name, and functions that make systems: what a fleet needs, since each walker has a copy of its own."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gosprl import _checks
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
            reason = str(error).partition(" Did you mean")[0].rstrip(".")
            like = [] if self.name in gymnasium.registry else [*envs.names(), *gymnasium.registry]
            raise InputError(
                f"env: {self.name!r} is not one of our domains ({known}), and Gymnasium cannot make it: {reason}"
                f"{_checks.nearest(self.name, like)}"
            ) from None


MAKE_ONE = (
    "give a function that makes one, such as functools.partial(gymnasium.make, 'FrozenLake-v1'), since every walker "
    "needs a copy of its own"
)


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
    """Return a function that makes copies of what a user gave as the system.

    Parameters
    ----------
    system
        A name or an id; a function that makes a system; a `TabularMDP`; a `Process`; or a Gymnasium environment that
        can be pickled.

    Raises
    ------
    InputError
        It cannot be copied, or copies could not be given seeds of their own.
    """
    import gymnasium

    from gosprl.systems.process import Process

    if isinstance(system, str):
        return Named(system)
    if is_factory(system):
        return system  # type: ignore[no-any-return]
    if isinstance(system, TabularMDP):
        return partial(_same, system)
    if isinstance(system, Process):
        return system.again
    if not isinstance(system, gymnasium.Env):  # its copies may have no way to be seeded differently
        raise InputError(f"system: expected a system that can be copied, got a {type(system).__name__}; {MAKE_ONE}")
    try:
        pickle.dumps(system)
    except Exception as error:  # pickling calls methods of the user's own
        raise InputError(
            f"system: expected an environment that can be copied, got {system!r:.80} ({error!s:.120}); {MAKE_ONE}"
        ) from None
    return partial(deepcopy, system)


def _same(mdp: TabularMDP) -> TabularMDP:
    return mdp  # never changed by those who walk on it
