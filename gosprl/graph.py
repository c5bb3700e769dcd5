"""Known MDPs as graphs: communicating classes, and the lightest ways back from goals."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra

if TYPE_CHECKING:
    from gosprl._kernels import Sets
    from gosprl.mdp import TabularMDP


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


def reversed_graph(sets: "Sets", weight: NDArray[np.float64], usable: NDArray[np.bool_]) -> sparse.csr_array:
    """[S, S] edges from successors to the states whose usable rows lead there; of parallel ones the lightest.

    `weight` [nnz], positive and finite; the stored successors stand row after row.
    """
    S = len(sets.row_ptr) - 1
    state = np.repeat(np.arange(S, dtype=np.int32), np.diff(sets.row_ptr))
    length = sets.end - sets.begin
    source, kept = np.repeat(state, length), np.repeat(usable, length)
    source, target, weight = source[kept], sets.succ[kept], weight[kept]
    order = np.lexsort((weight, source, target))
    source, target = source[order], target[order]
    first = np.append(True, (source[1:] != source[:-1]) | (target[1:] != target[:-1]))
    return sparse.csr_array((weight[order][first], (target[first], source[first])), shape=(S, S))


def steps_back(back: sparse.csr_array, goals: NDArray[np.int64]) -> NDArray[np.float64]:
    """[S] the least weight of a path from each state to the nearest of the goals, inf where there is none."""
    nearest: NDArray[np.float64] = dijkstra(back, indices=goals, min_only=True)
    return nearest
