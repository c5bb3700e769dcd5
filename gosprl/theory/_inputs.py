"""Checks that the modules of this package share."""

import numpy as np

from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP


def _mdp(mdp: TabularMDP) -> TabularMDP:
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp: expected a TabularMDP, got {type(mdp).__name__}")
    return mdp


def _diameter(mdp: TabularMDP) -> float:
    """D of an MDP that has one: the bounds are for communicating MDPs of two states or more."""
    D = _mdp(mdp).diameter()
    if not 0 < D < np.inf:
        raise InputError(f"mdp: expected a communicating MDP of at least two states, got diameter {D} of {mdp.name}")
    return D
