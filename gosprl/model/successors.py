"""Prior knowledge of successors: candidates for the next state of each pair.

If candidates are known (the neighbouring cells of a grid, the edges of a protocol), confidence sets range over the
candidates only, not over all states. The candidates of a pair must contain all of its possible next states; a
transition to any other state is an error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import InputError
from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of each row.

    Attributes
    ----------
    ptr
        [R + 1]; the candidates of row r are `succ[ptr[r] : ptr[r + 1]]`.
    succ
        States [nnz], increasing within a row.
    """

    ptr: NDArray[np.int64]
    succ: NDArray[np.int32]


def as_candidates(successors: Any, rows: Rows) -> Candidates:
    """Return the candidates that a user gave as `successors`.

    Parameters
    ----------
    successors
        One of the following; states and actions are numbered from 0.

        - a sparse matrix (scipy.sparse) [S * A, S] with row s * A + a, or [S, S] for all actions of a state; non-zero
          entries are candidates
        - a bool array [S, A, S], or [S, S] for all actions of a state
        - a `TabularMDP` with the same states and actions; next states with positive probability are candidates
        - a callable (s, a) -> next states, which is called once for each existing pair
    rows
        The existing pairs.

    Raises
    ------
    InputError
        The type or shape is not one of these, or a pair has no candidate.
    """
    if isinstance(successors, TabularMDP):
        ptr, succ, source = _of_mdp(successors, rows)
    elif callable(successors):
        ptr, succ, source = *_of_callable(successors, rows), np.arange(len(rows))
    elif _is_sparse(successors):
        ptr, succ, source = _of_sparse(successors, rows)
    else:
        ptr, succ, source = _of_dense(successors, rows)
    length = np.diff(ptr)[source]
    empty = np.flatnonzero(length == 0)
    if empty.size:
        pair = rows.pair(empty[0])
        raise InputError(f"successors: expected at least one candidate of every pair, (s, a) = {pair} has none")
    if len(source) == len(ptr) - 1 and bool(np.all(source[1:] > source[:-1])):  # each matrix row once, in order
        return Candidates(ptr.astype(np.int64), succ.astype(np.int32))
    chosen = np.concatenate([[0], np.cumsum(length)])
    slot = np.repeat(ptr[source] - chosen[:-1], length) + np.arange(chosen[-1])
    return Candidates(chosen, succ[slot].astype(np.int32))


def _of_mdp(mdp: TabularMDP, rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Return (ptr, succ, source): a CSR matrix, and the matrix row of each of the R rows."""
    S, A = rows.num_states, rows.num_actions
    if (mdp.num_states, mdp.num_actions) != (S, A):
        got = f"{mdp.num_states} and {mdp.num_actions}"
        raise InputError(f"successors: expected an MDP with S = {S} states and A = {A} actions, got one with {got}")
    length = np.zeros(S * A, dtype=np.int64)
    length[mdp.rows.state * A + mdp.rows.action] = np.diff(mdp.ptr)
    return np.concatenate([[0], np.cumsum(length)]), mdp.succ, rows.state * A + rows.action


def _is_sparse(successors: Any) -> bool:
    from scipy.sparse import issparse  # imported here, since the import takes longer than that of all of gosprl

    return bool(issparse(successors))


def _of_sparse(matrix: Any, rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    S, A = rows.num_states, rows.num_actions
    if matrix.dtype.kind not in "biuf" or matrix.shape not in ((S * A, S), (S, S)):
        raise InputError(
            f"successors: expected a sparse matrix of bool or numbers, [S * A, S] = ({S * A}, {S}) with row s * A + a, "
            f"or [S, S] = ({S}, {S}), got {matrix.dtype} of shape {matrix.shape}"
        )
    csr = matrix.tocsr().astype(bool)  # a copy, which the next two lines change
    csr.sum_duplicates()
    csr.eliminate_zeros()
    source = rows.state * A + rows.action if len(csr.indptr) == S * A + 1 else rows.state
    return csr.indptr, csr.indices, source


def _of_dense(array: Any, rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    S, A = rows.num_states, rows.num_actions
    try:
        given = np.asarray(array)
    except ValueError:  # ragged
        given = np.array(None)
    if given.dtype != bool or given.shape not in ((S, A, S), (S, S)):
        got = type(array).__name__ if given.dtype == object else f"{given.dtype} of shape {given.shape}"
        raise InputError(
            f"successors: expected a bool array [S, A, S] = ({S}, {A}, {S}) or [S, S] = ({S}, {S}), a sparse matrix, a "
            f"TabularMDP or a callable (s, a) -> next states, got {got}"
        )
    source = rows.state * A + rows.action if given.ndim == 3 else rows.state
    given = given.reshape(-1, S)
    return np.concatenate([[0], np.cumsum(given.sum(axis=1))]), np.nonzero(given)[1], source


def _of_callable(successors: Callable[[int, int], Any], rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (ptr, succ) from the answers of the callable, sorted, each state once."""
    S = rows.num_states
    states: list[Any] = []
    ends = [0]
    for s, a in zip(rows.state.tolist(), rows.action.tolist(), strict=True):
        answer = successors(s, a)
        try:
            states.extend(answer)
        except TypeError:
            raise _not_states(answer, s, a, S) from None
        ends.append(len(states))
    invalid = {kind for kind in set(map(type, states)) if kind is bool or not issubclass(kind, (int, np.integer))}
    if invalid or (states and not (min(states) >= 0 and max(states) < S)):
        i = next(i for i, x in enumerate(states) if type(x) in invalid or not 0 <= x < S)
        raise _not_states(states[i], *rows.pair(int(np.searchsorted(ends, i, side="right")) - 1), S)
    row = np.repeat(np.arange(len(rows)), np.diff(ends))
    keys = np.unique(row * S + np.array(states, dtype=np.int64))
    return np.searchsorted(keys, np.arange(len(rows) + 1) * S), keys % S


def _not_states(got: Any, s: int, a: int, S: int) -> InputError:
    return InputError(
        f"successors: expected the next states of (s, a) = ({s}, {a}), whole numbers in 0..{S - 1}, got {got!r:.80}"
    )
