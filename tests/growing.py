"""Models whose number of states is unknown, for tests of confidence sets."""

import numpy as np

import gosprl
from gosprl.model.states import States


def unknown(model, rank=None):
    """Return a copy of a model of a table that does not know the number of states; ranks are 1, 2, ... by default."""
    model = model.copy()
    model.max_states = None
    model.rank = np.arange(1, model.rows.num_states + 1) if rank is None else np.array(rank)
    return model


def bounded(model, max_states):
    """Return a copy of a model of a table that knows a bound on the number of states only."""
    model = model.copy()
    model.max_states, model.resets, model.states = max_states, "terminal", States(0)
    return model


def sampled(samples, states=None, row_states=1, actions=1):
    """Return a model in which the pair (0, 0) had these successors, in this order; the other pairs were not tried."""
    zeros = np.zeros(len(samples), dtype=np.int64)
    states = max(samples, default=0) + row_states if states is None else states
    return gosprl.EmpiricalModel.from_transitions(zeros, zeros, samples, states=states, actions=actions)
