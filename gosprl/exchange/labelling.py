"""Labels of the states of a model that leaves: start, final, undersampled, and those of the user."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel

Labels = Mapping[str, Iterable[int] | Callable[[Any], Any]]

RESERVED = ("init", "deadlock", "start", "reset", "final", "crash", "undersampled", "unknown")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


def labels_of(
    model: EmpiricalModel, initial: int, more: Labels | None, need: ArrayLike | None
) -> dict[str, NDArray[np.int64]]:
    """Return the states with each label.

    Parameters
    ----------
    model
        The counts.
    initial
        The initial state.
    more, need
        As `labels` and `need` in `gosprl.exchange.learnt.as_interval_mdp`.
    """
    states, S = model.states, model.rows.num_states
    kinds = np.array([states.kind(s) for s in range(S)])
    starts = model.starts()[0]
    groups = {
        "init": np.array([initial]),
        "start": starts if len(starts) else np.array([initial]),
        "final": np.flatnonzero((kinds == "final") | (kinds == "crash")),
    }
    for kind in ("reset", "crash"):
        if (kinds == kind).any():
            groups[kind] = np.flatnonzero(kinds == kind)
    if need is not None:
        groups["undersampled"] = _undersampled(model, np.flatnonzero(kinds == "live"), need)
    observed = {s: states[s] for s in range(S) if kinds[s] in ("live", "final")} if more else {}
    for name, chosen in (more or {}).items():
        check_name(name, RESERVED)
        given = states_of(name, chosen, S, observed)
        copies = () if callable(chosen) else (states.final(states.key(s)) for s in given.tolist() if kinds[s] == "live")
        groups[name] = np.unique(np.append(given, [s for s in copies if s >= 0]).astype(np.int64))
    return groups


def check_name(name: Any, taken: Iterable[str]) -> None:
    """Raise `InputError` unless every format can carry a label of this name."""
    if not isinstance(name, str) or not NAME.match(name) or name in taken:
        raise InputError(
            f"labels: expected names of letters, digits and _, other than {', '.join(taken)}, got {name!r:.80}"
        )


def states_of(name: str, chosen: Any, S: int, observed: Mapping[int, Any]) -> NDArray[np.int64]:
    """Return the states that have a label, increasing.

    Parameters
    ----------
    name
        The label.
    chosen
        States, [S] truth values, or a function of the observation.
    S
        The number of states.
    observed
        The observation of each state that has one.
    """
    if callable(chosen):
        return np.array([s for s, seen in observed.items() if chosen(seen)], dtype=np.int64)
    array = np.asarray(chosen if isinstance(chosen, np.ndarray) else list(chosen))
    if array.dtype == bool and array.shape == (S,):
        return np.flatnonzero(array)
    if not array.size:
        return np.empty(0, dtype=np.int64)
    return np.unique(_checks.integers(f"labels[{name!r}]", array, 0, S, "states"))


def _undersampled(model: EmpiricalModel, lives: NDArray[np.int64], need: ArrayLike) -> NDArray[np.int64]:
    """Return the live states with a pair, or for needs [S] with all pairs together, visited less than needed."""
    wanted = _checks.integers("need", need, 0, None, "numbers of samples")
    S, A = len(lives), model.num_actions
    rows = np.flatnonzero(np.isin(model.rows.state, lives) & ~model.certain)
    state, visits = model.rows.state[rows], model.visits[rows]
    if wanted.shape == (S,):
        short = np.bincount(state, weights=visits, minlength=S)[:S] < wanted
        return np.asarray(lives[short])
    if wanted.ndim and not (wanted.ndim == 2 and wanted.shape[0] == S and wanted.shape[1] <= A):
        raise InputError(f"need: expected a number, [S] or [S, A] with S = {S}, A = {A}, got shape {wanted.shape}")
    if wanted.ndim:  # the reset of resets="anytime" is an action that needs do not count
        inside = model.rows.action[rows] < wanted.shape[1]
        rows, state, visits = rows[inside], state[inside], visits[inside]
        return np.unique(state[visits < wanted[state, model.rows.action[rows]]])
    return np.unique(state[visits < wanted])
