"""Garnets: random MDPs G(S, A, branching), in which each pair has `branching` random next states."""

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.parts import Parts
from gosprl.mdp.tabular import TabularMDP

BLOCK = 262144  # transitions that are built at once
RETURN = 0.001  # every pair leads to the start with at least this probability


def garnet(states: int, actions: int, branching: int, seed: int | np.random.Generator = 0) -> TabularMDP:
    """Build a random MDP in which each pair has `branching` next states. The start s_0 is 0.

    The next states of a pair are drawn uniformly without replacement; their probabilities are the gaps between
    `branching - 1` sorted uniforms on [0, 1]. As in the paper, p(s_0|s,a) >= 0.001 for every pair: where the draw is
    below, the row becomes 0.999 p + 0.001 e_{s_0}, and may have one more next state. (The paper gives only the bound;
    the mixing is our own.) So s_0 can be reached from every state. That every state can be reached from s_0, as in a
    communicating MDP, is not enforced: it holds with high probability where A * branching is several times log S, as
    in the paper's experiments.

    Parameters
    ----------
    states, actions
        S and A.
    branching
        Next states of each pair, at most S.
    seed
        A whole number or a numpy Generator.
    """
    states, actions = _checks.whole("states", states, 1), _checks.whole("actions", actions, 1)
    branching = _checks.whole("branching", branching, 1)
    if branching > states:
        raise InputError(f"branching: expected at most the number of states, {states}, got {branching}")
    pairs = states * actions
    size = (40 * branching + 64) * pairs  # draws, their sorted copy, and the result
    _checks.memory(f"states, actions, branching: {pairs} pairs of {branching} next states", size, "try fewer")
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise InputError(f"seed: expected a whole number >= 0 or a numpy Generator, got {seed!r}") from error

    successors = _distinct(rng, pairs, branching, states)
    cuts = rng.random((pairs, branching - 1))
    cuts.sort(axis=1)
    start = 0

    def block(pair: NDArray[np.int64]) -> Parts:
        """Return the sparse parts of some pairs."""
        s_next = successors[pair]
        p = np.diff(cuts[pair], axis=1, prepend=0.0, append=1.0)
        below = np.where(s_next == start, p, 0.0).sum(axis=1) < RETURN
        p[below] *= 1 - RETURN
        raised = pair[below]
        pair = np.append(np.repeat(pair, branching), raised)
        s_next = np.append(s_next.ravel(), np.full(len(raised), start))
        return pair // actions, pair % actions, s_next, np.append(p.ravel(), np.full(len(raised), RETURN))

    step = max(1, BLOCK // branching)
    blocks = (block(np.arange(i, min(i + step, pairs))) for i in range(0, pairs, step))
    seeded = f", seed={seed}" if isinstance(seed, (int, np.integer)) else ""
    return TabularMDP(
        blocks,
        start,
        states=states,
        actions=actions,
        name=f"garnet(states={states}, actions={actions}, branching={branching}{seeded})",
    )


def _distinct(rng: np.random.Generator, pairs: int, branching: int, states: int) -> NDArray[np.int64]:
    """Return states [pairs, branching], each row a uniform draw without replacement."""
    if branching * branching > states:
        # Most rows drawn with replacement would contain a state twice, so rejecting these would take too long.
        return np.stack([rng.choice(states, branching, replace=False) for _ in range(pairs)])
    # A row drawn with replacement is a draw without replacement, given that no state occurs in it twice.
    draws = rng.integers(states, size=(pairs, branching))
    again = _repeating(draws)
    while again.size:
        draws[again] = rng.integers(states, size=(len(again), branching))
        again = again[_repeating(draws[again])]
    return draws


def _repeating(draws: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows in which some state occurs twice."""
    ordered = np.sort(draws, axis=1)
    return np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
