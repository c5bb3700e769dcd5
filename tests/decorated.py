"""MDPs with everything that a file can carry, and whether two are the same, bit for bit."""

import numpy as np
from random_mdps import random_mdp

from gosprl import TabularMDP


def decorated(seed, states=7, actions=3):
    """A random MDP with some pairs missing, rewards and labels."""
    rng = np.random.default_rng(seed)
    P = random_mdp(rng, states, actions).dense()
    P[2, 1] = P[4, 0] = 0
    mdp = TabularMDP(P, 3, rewards=rng.normal(size=(states, actions)))
    mdp.labels = {"goal": (1, 4), "other": (0,)}
    return mdp


def same(a, b):
    assert a.rows.same(b.rows)
    assert a.start == b.start
    assert a.labels == b.labels
    np.testing.assert_array_equal(a.ptr, b.ptr)
    np.testing.assert_array_equal(a.succ, b.succ)
    np.testing.assert_array_equal(a.prob, b.prob)
    assert (a.rewards is None) == (b.rewards is None)
    if a.rewards is not None:
        np.testing.assert_array_equal(a.rewards, b.rewards)


def damaged(data, rng):
    """Bytes with a few changed, cut or repeated."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        i = int(rng.integers(len(data)))
        kind = rng.integers(4)
        if kind == 0:
            data[i] = rng.integers(256)
        elif kind == 1:
            del data[i : i + int(rng.integers(1, 9))]
        elif kind == 2:
            data[i:i] = data[max(0, i - 9) : i]
        else:
            data[i:i] = bytes(rng.choice(list(b"0123456789-[]: \n.e/@"), 3).tolist())
        data = data or bytearray(b"0")
    return bytes(data)
