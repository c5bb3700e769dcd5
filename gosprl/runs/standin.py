"""StandIn: takes the place of a system that is not given; its sizes come from the manifest of its run."""

import operator
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from gosprl.collecting.outcome import Outcome, Start
from gosprl.model.content import thaw
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import FEW_ACTIONS
from gosprl.runs.names import Names
from gosprl.systems.base import System
from gosprl.systems.observations import decoder


class StandIn(System):
    """A system without dynamics: it makes the model that the real one made.

    Parameters
    ----------
    described
        The entry `system` of a manifest.
    names
        What the numbers of the log stand for.
    """

    def __init__(self, described: Mapping[str, Any], names: Names) -> None:
        self._described, self._names = described, names
        self.all_states, self.ends = described["all states"], described["ends"]

    def model(self) -> EmpiricalModel:
        """Return an empty model with the states and actions of the real system."""
        described = self._described
        exists = described.get("exists")
        actions: Any = described.get("actions") or FEW_ACTIONS
        if exists is not None:
            actions = np.array(exists, dtype=bool)
        model = EmpiricalModel(described.get("states"), actions)
        if described.get("states") is None:
            model.states.decode = decoder(described.get("observations"))
            model.max_states = described.get("max states")
            model.all_actions = described.get("actions") is not None
        else:
            model.states.decode = partial(operator.add, int(described.get("first", 0)))
        if not model.all_actions:
            model.actions = [thaw(key) for key in self._names.actions]
        return model

    def reset(self) -> Start:
        """Never called: its log is played."""
        raise AssertionError("a system that is not there was reset")

    def step(self, action: int) -> Outcome:
        """Never called: its log is played."""
        raise AssertionError("a system that is not there was stepped")
