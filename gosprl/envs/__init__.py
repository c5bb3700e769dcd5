"""The paper's domains, by name: `make("four_room43")`, `make("riverswim", states=12)` or `make("riverswim12")`.

They are also Gymnasium environments: `gymnasium.make("gosprl/four_room43-v0")`.
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
_SIZED = re.compile(r"(riverswim|noisy_riverswim|wheel)(\d+)")  # families whose name may end with the number of states


def names() -> list[str]:
    """Return the names that `make` knows, sorted.

    riverswim, noisy_riverswim and wheel may be followed by their number of states.
    """
    return sorted(_DOMAINS)


def make(name: str, /, **parameters: Any) -> TabularMDP:
    """Build a domain by name.

    Parameters
    ----------
    name
        One of `names()`, such as `"four_room43"`, `"riverswim"` or `"riverswim12"`.
    **parameters
        Those of the function that builds the domain, such as `states=12`.

    Returns
    -------
    TabularMDP
        The domain.

    Raises
    ------
    InputError
        The name or a parameter is not known, or a parameter is missing.
    """
    family = name
    sized = _SIZED.fullmatch(name) if isinstance(name, str) else None
    if sized:
        if "states" in parameters:
            raise InputError(f"states: expected none, as {name} sets it, got states={parameters['states']!r}")
        family, parameters["states"] = sized[1], int(sized[2])
    build = _checks.choice("name", family, _DOMAINS)

    known = inspect.signature(build).parameters
    listing = ", ".join(str(known[key].replace(annotation=inspect.Parameter.empty)) for key in known)
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise InputError(f"{unknown[0]}: {family} has no such parameter; its parameters are {listing}")
    missing = [key for key in known if known[key].default is inspect.Parameter.empty and key not in parameters]
    if missing:
        raise InputError(f"{', '.join(missing)}: expected by {family}, whose parameters are {listing}")
    mdp = build(**parameters)
    mdp.made_by = (family, parameters)
    return mdp


register()
