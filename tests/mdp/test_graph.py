"""Communicating classes, by hand and against the enumeration of all sets of states and of all policies."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gosprl import TabularMDP
from gosprl.envs import make

RING = [[{1}], [{2}], [{0}]]


def mdp_of(support):
    """Return the MDP in which pair (s, a) leads to each state of `support[s][a]` with the same probability."""
    entries = [
        (s, a, s_next, 1 / len(successors))
        for s, actions in enumerate(support)
        for a, successors in enumerate(actions)
        for s_next in successors
    ]
    return TabularMDP(tuple(zip(*entries, strict=True)), states=len(support))


def classes_of(mdp):
    """The communicating classes as sets of states."""
    label = mdp.communicating_classes()
    assert label.shape == (mdp.num_states,)
    assert set(label.tolist()) - {-1} == set(range(label.max() + 1))  # numbered without gaps
    return {frozenset(np.flatnonzero(label == i).tolist()) for i in range(label.max() + 1)}


@pytest.mark.parametrize(
    ("support", "classes", "communicating", "weakly"),
    [
        ([[{0}]], [{0}], True, True),
        (RING, [{0, 1, 2}], True, True),
        ([[{0, 1}], [{2}], [{0}]], [{0, 1, 2}], True, True),
        # a transient start before a ring
        ([[{1}], [{2}], [{3}], [{1}]], [{1, 2, 3}], False, True),
        # the start waits as long as it likes: not transient under every policy
        ([[{1}, {0}], [{2}], [{1}]], [{0}, {1, 2}], False, False),
        # it cannot help moving on some day
        ([[{0, 1}], [{2}], [{1}]], [{1, 2}], False, True),
        # two absorbing classes
        ([[{1}, {2}], [{1}], [{2}]], [{1}, {2}], False, False),
        ([[{1, 2}], [{1}], [{2}]], [{1}, {2}], False, False),
        ([[{0}], [{1}]], [{0}, {1}], False, False),
        # a ring with an action that may leave it for good
        ([[{1}, {0, 2}], [{0}], [{2}]], [{0, 1}, {2}], False, False),
        # every way round passes through an action that may leave it
        ([[{1}], [{0, 2}], [{2}]], [{2}], False, True),
        # the risky action splits a ring of three: only 1 and 2 can go to and fro for ever
        ([[{1}], [{0, 3}, {2}], [{1}], [{3}]], [{1, 2}, {3}], False, False),
        # leaving a class by chance but coming back surely is staying in a larger class
        ([[{1}, {0}], [{0, 2}], [{0}]], [{0, 1, 2}], True, True),
        # two rings with a bridge one way, and with a bridge back
        ([[{1}], [{0}, {2}], [{3}], [{2}]], [{0, 1}, {2, 3}], False, False),
        ([[{1}], [{0}, {2}], [{3}], [{2}, {0}]], [{0, 1, 2, 3}], True, True),
    ],
)
def test_by_hand(support, classes, communicating, weakly):
    mdp = mdp_of(support)
    assert classes_of(mdp) == {frozenset(c) for c in classes}
    assert mdp.is_communicating() is communicating
    assert mdp.is_weakly_communicating() is weakly


def test_a_tiny_probability_is_a_way():
    mdp = TabularMDP([[[1.0, 1e-300]], [[1.0, 0.0]]])
    assert mdp.is_communicating()


@pytest.mark.parametrize("name", ["riverswim6", "four_room43", "cliff48", "toy3", "wheel5"])
def test_the_domains_communicate(name):
    assert make(name).is_communicating()


def test_a_long_chain_of_classes():
    """Each of 2000 states can stay or move to the next; the last one stays."""
    n = 2000
    s = np.arange(n)
    wait = (s, 0 * s, s, np.ones(n))
    go = (s[:-1], 0 * s[:-1] + 1, s[:-1] + 1, np.ones(n - 1))
    mdp = TabularMDP(tuple(np.append(a, b) for a, b in zip(wait, go, strict=True)))
    assert sorted(mdp.communicating_classes()) == list(range(n))


# Against enumeration


@st.composite
def supports(draw):
    S = draw(st.integers(1, 5))
    successors = st.frozensets(st.integers(0, S - 1), min_size=1, max_size=2)
    return [draw(st.lists(successors, min_size=1, max_size=2)) for _ in range(S)]


def closure(edges, S):
    """Return whether t can be reached from s along the edges [S, S], in zero or more steps."""
    way = np.eye(S, dtype=bool)
    for s, t in edges:
        way[s, t] = True
    for k in range(S):
        way |= way[:, [k]] & way[[k], :]
    return way


def maximal_end_components(support):
    """Enumerate the sets of states that are strongly connected by actions that stay inside; return the maximal ones."""
    S = len(support)
    found = []
    for size in range(S, 0, -1):
        for states in map(frozenset, combinations(range(S), size)):
            inside = {s: [x for x in support[s] if x <= states] for s in states}
            way = closure([(s, t) for s in states for x in inside[s] for t in x], S)
            connected = all(way[s, t] for s in states for t in states)
            if all(inside.values()) and connected and not any(states <= larger for larger in found):
                found.append(states)
    return set(found)


@given(supports())
@settings(max_examples=300, deadline=None)
def test_classes_are_the_maximal_end_components(support):
    assert classes_of(mdp_of(support)) == maximal_end_components(support)


@given(supports())
@settings(max_examples=300, deadline=None)
def test_definitions_by_policies(support):
    S = len(support)
    recurrent = set()  # in some policy: all that can be reached leads back
    for policy in product(*support):
        way = closure([(s, t) for s in range(S) for t in policy[s]], S)
        recurrent |= {s for s in range(S) if all(way[t, s] for t in range(S) if way[s, t])}
    way = closure([(s, t) for s in range(S) for x in support[s] for t in x], S)
    closed = all(x <= recurrent for s in recurrent for x in support[s])
    mdp = mdp_of(support)
    assert set(np.flatnonzero(mdp.communicating_classes() >= 0).tolist()) == recurrent
    assert mdp.is_communicating() == way.all()
    assert mdp.is_weakly_communicating() == (closed and all(way[s, t] for s in recurrent for t in recurrent))
