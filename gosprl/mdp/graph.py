"""Known MDPs as graphs: communicating classes."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

if TYPE_CHECKING:
    from gosprl.mdp.tabular import TabularMDP


def communicating_classes(mdp: "TabularMDP") -> NDArray[np.int64]:
    """Return the index of each state's maximal end component [S], -1 for states in none of them.

    An end component is a set of states in which each state has actions that never lead out of the set, and these
    actions connect the set strongly. A state outside of all of them is transient under every policy. Only the support
    of the probabilities matters.

    Method: split into strongly connected components, drop the actions that may lead out of their component, and repeat
    until no action is dropped.
    """
    S = mdp.num_states
    row_of = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    source = mdp.rows.state
    label = np.zeros(S, dtype=np.int64)
    kept = np.ones(len(mdp.rows), dtype=bool)
    while True:
        edges = kept[row_of]
        graph = sparse.coo_array((np.ones(edges.sum()), (source[row_of[edges]], mdp.succ[edges])), shape=(S, S))
        label = connected_components(graph.tocsr(), connection="strong")[1]
        exits = np.zeros(len(mdp.rows), dtype=bool)
        exits[row_of[label[source[row_of]] != label[mdp.succ]]] = True
        if not np.any(kept & exits):
            break
        kept &= ~exits
    inside = np.zeros(S, dtype=bool)
    inside[source[kept]] = True
    result = np.full(S, -1, dtype=np.int64)
    result[inside] = np.unique(label[inside], return_inverse=True)[1]
    return result


def components(mdp: "TabularMDP") -> NDArray[np.int64]:
    """Return labels of the strongly connected components [S]: states with the same label can reach each other."""
    return np.asarray(connected_components(_edges(mdp), connection="strong")[1], dtype=np.int64)


def reachable(mdp: "TabularMDP", s: int) -> NDArray[np.bool_]:
    """Return the mask [S] of the states that some actions reach from s with positive probability, s included."""
    reached = np.zeros(mdp.num_states, dtype=bool)
    reached[breadth_first_order(_edges(mdp), s, return_predecessors=False)] = True
    return reached


def _edges(mdp: "TabularMDP") -> sparse.csr_array:
    """Return a matrix [S, S], non-zero where some action leads from the first state to the second."""
    S, row = mdp.num_states, np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    return sparse.coo_array((np.ones(len(row)), (mdp.rows.state[row], mdp.succ)), shape=(S, S)).tocsr()
