"""The paper's domains, by name: `make("four_room43")`, `make("riverswim", states=12)` or `make("riverswim12")`.

The same names with `gosprl/` before and `-v0` behind are Gymnasium environments.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from gosprl import _checks
from gosprl.envs import chains, garnet, gridworld, lower_bounds
from gosprl.envs.registration import register
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP

__all__ = ["make", "names"]

_DOMAINS: dict[str, Callable[..., TabularMDP]] = {
    "riverswim": chains.riverswim,
    "noisy_riverswim": chains.noisy_riverswim,
    "wheel": chains.wheel,
    "toy3": chains.toy3,
    "gridworld": gridworld.gridworld,
    "open_grid": gridworld.open_grid,
    "four_room43": gridworld.four_room43,
    "corridor24": gridworld.corridor24,
    "room20": gridworld.room20,
    "cliff48": gridworld.cliff48,
    "trap10": gridworld.trap10,
    "garnet": garnet.garnet,
    "two_state_chain": lower_bounds.two_state_chain,
    "epsilon_wheel": lower_bounds.epsilon_wheel,
    "one_state_modification": lower_bounds.one_state_modification,
    "hard_to_learn": lower_bounds.hard_to_learn,
}
_SIZED = re.compile(r"(riverswim|noisy_riverswim|wheel)(\d+)")  # families whose `states` may be part of the name


def names() -> list[str]:
    """The names that `make` knows; riverswim, noisy_riverswim and wheel may be followed by their number of states."""
    return sorted(_DOMAINS)


def make(name: str, /, **parameters: Any) -> TabularMDP:
    """The domain of that name as a `TabularMDP`; the parameters are those of the function that builds it."""
    family = name
    sized = _SIZED.fullmatch(name) if isinstance(name, str) else None
    if sized:
        if "states" in parameters:
            raise InputError(f"states: {name} says it already, got states={parameters['states']!r} as well")
        family, parameters["states"] = sized[1], int(sized[2])
    build = _checks.choice("name", family, _DOMAINS)

    known = inspect.signature(build).parameters
    listing = ", ".join(str(known[key].replace(annotation=inspect.Parameter.empty)) for key in known)
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise InputError(f"{unknown[0]}: {family} has no such parameter; its parameters are {listing}")
    missing = [key for key in known if known[key].default is inspect.Parameter.empty and key not in parameters]
    if missing:
        raise InputError(f"{', '.join(missing)}: {family} cannot be made without; its parameters are {listing}")
    return build(**parameters)


register()
