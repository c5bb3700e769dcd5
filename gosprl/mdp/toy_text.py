"""Tables of Gymnasium's toy-text environments: {state: {action: [(p, s_next, reward, terminated), ...]}}."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.parts import Entries

if TYPE_CHECKING:
    import gymnasium

SHAPE = "{state: {action: [(p, s_next, reward, terminated), ...]}}"
Table = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


class ToyText(NamedTuple):
    """The MDP of a table, as the arguments of `TabularMDP`."""

    parts: Entries
    start: int
    rewards: NDArray[np.float64]  # [S, A]
    states: int
    actions: int


def read_environment(env: "gymnasium.Env[Any, Any]", start: int | None) -> tuple[Any, int, str]:
    """Return the table of an environment, the start and a name.

    Parameters
    ----------
    env
        An environment; its `unwrapped` has the table `P`.
    start
        The starting state; None: the one state in which the environment starts.
    """
    import gymnasium

    inner = getattr(env, "unwrapped", None)
    if not isinstance(inner, gymnasium.Env):
        raise InputError(
            f"env: expected a Gymnasium environment with a table P, or the table itself, got {type(env).__name__}"
        )
    name = type(inner).__name__ if inner.spec is None else inner.spec.id
    table: Any = getattr(inner, "P", None)
    if table is None and env.has_wrapper_attr("P"):  # a wrapper may publish it
        table = env.get_wrapper_attr("P")
    if not isinstance(table, Mapping | Sequence) or isinstance(table, str):
        raise InputError(
            f"env: expected an environment with a table P of its transitions, as the toy-text ones have, but {name} "
            "has none"
        )
    return table, _only_start(inner, name) if start is None else start, name


def _only_start(inner: Any, name: str) -> int:
    law = getattr(inner, "initial_state_distrib", None)
    if law is None:
        raise InputError(f"start: expected a state, as {name} has no initial_state_distrib; give start=")
    possible = np.flatnonzero(np.asarray(law) > 0)
    if len(possible) != 1:
        raise InputError(f"start: expected a state, as {name} starts in one of {len(possible)} at random; give start=")
    return int(possible[0])


def _outcomes(table: Any) -> Iterator[tuple[Any, Any, Any, Any, Any, bool]]:
    """Yield (s, a, s_next, p, reward, terminated) of all outcomes; states and actions may be keys or positions."""
    for s, actions in _numbered(table):
        for a, outcomes in _numbered(actions):
            for _, outcome in _numbered(outcomes):
                try:
                    p, s_next, r, done = outcome
                except (TypeError, ValueError):
                    raise InputError(
                        f"env: expected a table {SHAPE}, got {outcome!r:.80} for state {s}, action {a}"
                    ) from None
                yield s, a, s_next, p, r, bool(done)


def _numbered(part: Any) -> Any:
    if isinstance(part, Mapping):
        return part.items()
    if isinstance(part, Sequence) and not isinstance(part, str):
        return enumerate(part)
    raise InputError(f"env: expected a table {SHAPE}, got {part!r:.80} in it")


def read_table(table: Table, start: int, terminals: str) -> ToyText:
    """Return the MDP of a table.

    Parameters
    ----------
    table
        The outcomes of each state and action.
    start
        The starting state.
    terminals
        `"reset"` or `"keep"`, see `TabularMDP.from_gymnasium`.
    """
    entries = list(_outcomes(table))
    if not entries:
        raise InputError(f"env: expected a table {SHAPE}, got {{}}")
    s, a, s_next, p, r, done = (np.array(column) for column in zip(*entries, strict=True))
    s, a, s_next = (
        _checks.integers("env: table", part, 0, 2**31 - 1, what)
        for part, what in ((s, "states"), (a, "actions"), (s_next, "next states"))
    )
    p, r = _checks.floats("env: table", p), _checks.floats("env: table", r)
    S = int(max(s.max(), s_next.max())) + 1
    if _checks.choice("terminals", terminals, {"reset": True, "keep": False}):
        _checks.index("start", start, S, "a state")
        terminal = np.unique(s_next[done & (p > 0)])
        keep = ~np.isin(s, terminal)
        ones = np.ones(len(terminal))
        s, a = np.append(s[keep], terminal), np.append(a[keep], 0 * terminal)
        s_next, p = np.append(s_next[keep], start + 0 * terminal), np.append(p[keep], ones)
        r = np.append(r[keep], 0 * ones)
    A = int(a.max()) + 1
    _checks.memory(f"env: rewards [S, A] = [{S}, {A}]", 8 * S * A, "number states and actions without gaps")
    rewards = np.bincount(s * A + a, weights=p * r, minlength=S * A).astype(np.float64).reshape(S, A)
    return ToyText((s, a, s_next, p), start, rewards, S, A)
