"""Known MDPs as graphs: communicating classes."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

if TYPE_CHECKING:
    from gosprl.mdp.tabular import TabularMDP


def communicating_classes(mdp: "TabularMDP") -> NDArray[np.int64]:
    """[S] index of each state's maximal end component, -1 for states in none of them.

    An end component is a set of states with, for each, some actions that never leave the set and connect it strongly.
    A state outside all of them is transient under every policy. No probability matters, only whether it is positive.
    Found by repeatedly splitting into strongly connected components and dropping the actions that may leave theirs.
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
        leaves = np.zeros(len(mdp.rows), dtype=bool)
        leaves[row_of[label[source[row_of]] != label[mdp.succ]]] = True
        if not np.any(kept & leaves):
            break
        kept &= ~leaves
    alive = np.zeros(S, dtype=bool)
    alive[source[kept]] = True
    result = np.full(S, -1, dtype=np.int64)
    result[alive] = np.unique(label[alive], return_inverse=True)[1]
    return result


def components(mdp: "TabularMDP") -> NDArray[np.int64]:
    """[S] labels of the strongly connected components: states with the same label can reach each other."""
    return np.asarray(connected_components(_edges(mdp), connection="strong")[1], dtype=np.int64)


def reachable(mdp: "TabularMDP", s: int) -> NDArray[np.bool_]:
    """[S] which states can be reached from s, with positive probability by some actions; s itself included."""
    reached = np.zeros(mdp.num_states, dtype=bool)
    reached[breadth_first_order(_edges(mdp), s, return_predecessors=False)] = True
    return reached


def _edges(mdp: "TabularMDP") -> sparse.csr_array:
    """[S, S] non-zero where some action leads from one state to the other."""
    S, row = mdp.num_states, np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    return sparse.coo_array((np.ones(len(row)), (mdp.rows.state[row], mdp.succ)), shape=(S, S)).tocsr()
