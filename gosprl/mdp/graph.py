"""Known MDPs as graphs: communicating classes."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

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
