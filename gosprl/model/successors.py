"""Prior knowledge of successors: which next states are possible at all, pair by pair.

The cells next door, the edges of a protocol: who knows them needs no sets over all states, only over the candidates.
They may be more than what is possible, never less; a transition outside of them is an error that names it.
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
    """The possible next states of each row."""

    ptr: NDArray[np.int64]  # [R + 1] those of row r are ptr[r] : ptr[r + 1]
    succ: NDArray[np.int32]  # [nnz] increasing within a row


def as_candidates(successors: Any, rows: Rows) -> Candidates:
    """What a user may give as `successors`, over the given rows; states and actions are numbered from 0.

    - a sparse matrix (scipy.sparse) [S * A, S], row s * A + a, or [S, S] for any action of s: non-zero is possible
    - a bool array [S, A, S], or [S, S] for any action
    - a `TabularMDP` with the same states and actions: what it gives a positive probability
    - a callable (s, a) -> next states, called once for each existing pair
    """
    if isinstance(successors, TabularMDP):
        ptr, succ, source = _of_mdp(successors, rows)
    elif callable(successors):
        ptr, succ, source = *_of_callable(successors, rows), np.arange(len(rows))
    elif hasattr(successors, "tocsr"):
        ptr, succ, source = _of_sparse(successors, rows)
    else:
        ptr, succ, source = _of_dense(successors, rows)
    length = np.diff(ptr)[source]
    empty = np.flatnonzero(length == 0)
    if empty.size:
        pair = rows.pair(empty[0])
        raise InputError(f"successors: expected at least one candidate of every pair, (s, a) = {pair} has none")
    if len(source) == len(ptr) - 1 and bool(np.all(source[1:] > source[:-1])):  # every row once, in order
        return Candidates(ptr.astype(np.int64), succ.astype(np.int32))
    chosen = np.concatenate([[0], np.cumsum(length)])
    slot = np.repeat(ptr[source] - chosen[:-1], length) + np.arange(chosen[-1])
    return Candidates(chosen, succ[slot].astype(np.int32))


def _of_mdp(mdp: TabularMDP, rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """(ptr, succ, source): a CSR matrix, and which of its rows each row is."""
    S, A = rows.num_states, rows.num_actions
    if (mdp.num_states, mdp.num_actions) != (S, A):
        got = f"{mdp.num_states} and {mdp.num_actions}"
        raise InputError(f"successors: expected an MDP with S = {S} states and A = {A} actions, got one with {got}")
    length = np.zeros(S * A, dtype=np.int64)
    length[mdp.rows.state * A + mdp.rows.action] = np.diff(mdp.ptr)
    return np.concatenate([[0], np.cumsum(length)]), mdp.succ, rows.state * A + rows.action


def _of_sparse(matrix: Any, rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    S, A = rows.num_states, rows.num_actions
    if matrix.dtype.kind not in "biuf" or matrix.shape not in ((S * A, S), (S, S)):
        raise InputError(
            f"successors: expected a sparse matrix of bool or numbers, [S * A, S] = ({S * A}, {S}) with row s * A + a, "
            f"or [S, S] = ({S}, {S}), got {matrix.dtype} of shape {matrix.shape}"
        )
    csr = matrix.tocsr().astype(bool)  # a copy: the next two lines write
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
    """The answers, sorted and without repetitions."""
    S = rows.num_states
    found: list[Any] = []
    ends = [0]
    for s, a in zip(rows.state.tolist(), rows.action.tolist(), strict=True):
        answer = successors(s, a)
        try:
            found.extend(answer)
        except TypeError:
            raise _no_states(answer, s, a, S) from None
        ends.append(len(found))
    odd = {kind for kind in set(map(type, found)) if kind is bool or not issubclass(kind, (int, np.integer))}
    if odd or (found and not (min(found) >= 0 and max(found) < S)):
        i = next(i for i, x in enumerate(found) if type(x) in odd or not 0 <= x < S)
        raise _no_states(found[i], *rows.pair(int(np.searchsorted(ends, i, side="right")) - 1), S)
    row = np.repeat(np.arange(len(rows)), np.diff(ends))
    keys = np.unique(row * S + np.array(found, dtype=np.int64))
    return np.searchsorted(keys, np.arange(len(rows) + 1) * S), keys % S


def _no_states(got: Any, s: int, a: int, S: int) -> InputError:
    return InputError(
        f"successors: expected the next states of (s, a) = ({s}, {a}), whole numbers in 0..{S - 1}, got {got!r:.80}"
    )
