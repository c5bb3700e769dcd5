"""Checks shared by the modules of this package."""

import numpy as np

from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP


def _mdp(mdp: TabularMDP) -> TabularMDP:
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp: expected a TabularMDP, got {type(mdp).__name__}")
    return mdp


def _diameter(mdp: TabularMDP) -> float:
    """Return D of a communicating MDP with at least two states; the bounds hold for no others."""
    D = _mdp(mdp).diameter()
    if not 0 < D < np.inf:
        raise InputError(f"mdp: expected a communicating MDP of at least two states, got diameter {D} of {mdp.name}")
    return D
