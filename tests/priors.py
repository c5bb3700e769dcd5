"""Learnt priors for tests: from transitions, and plans to given goals."""

from types import SimpleNamespace

import numpy as np

import gosprl
from gosprl.planning.prior import Prior

CHAIN = 12  # states in a row; action 0 goes to the next one, action 1 stays


def model_of(transitions, states=CHAIN, actions=2):
    model = gosprl.EmpiricalModel(states, actions)
    for s, a, s_next in transitions:
        model.update(s, a, s_next)
    return model


def learnt_from(transitions, each=True, **size):
    """A prior that learnt from transitions: from each when it came, or from all at once."""
    model = model_of([], **size)
    prior = Prior(model)
    for s, a, s_next in transitions:
        model.update(s, a, s_next)
        if each:
            prior.update()
    prior.update()
    return prior


def need_of(goals):
    """What a plan reads of a need whose unmet states are `goals` [S]."""
    goals = np.asarray(goals)
    unmet = goals.astype(np.int64)
    return SimpleNamespace(
        unmet_items=unmet,
        missing_samples=unmet,
        unmet_states=0,
        version=goals.tobytes(),
        of_states=False,
        requirement=SimpleNamespace(of_discovered=False),
    )


def planned(prior, goals, s=0, prices=None, optimism=0.0):
    """(rows, values) of a plan from s to goals [S]."""
    need = need_of(goals)
    prior.update(need)
    policy, value = prior.plan(s, need, np.ones(len(prior._model.rows)), prices, optimism)
    assert value == prior._around.v[s]
    return policy, prior._around.v
