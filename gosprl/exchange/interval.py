"""IntervalMDP: an MDP as model checkers read it, with intervals or points for probabilities."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.exchange.labelling import Labels, check_name, states_of
from gosprl.mdp.tabular import TabularMDP

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats, Floats]  # (lower end, mean, upper end)


@dataclass(frozen=True, eq=False)
class IntervalMDP:
    """An MDP whose probabilities are intervals, or points, over sparse rows."""

    initial: int
    first: NDArray[np.int64]  # [S + 1] the rows of state s are first[s] : first[s + 1]
    actions: list[str]  # [R] the name of each row's action; distinct within a state
    ptr: NDArray[np.int64]  # [R + 1] the successors of row r are ptr[r] : ptr[r + 1]
    succ: NDArray[np.int64]  # [nnz] increasing within a row
    lower: Floats  # [nnz] positive
    upper: Floats  # [nnz]
    point: bool  # whether lower is upper everywhere, and files have probabilities instead of intervals
    labels: dict[str, NDArray[np.int64]]  # increasing states; "init" is the initial state
    rewards: dict[str, Ends]  # [R] each, by the row
    names: list[str] = field(default_factory=list)  # [S] what each state stands for, on one line; empty: its number
    notes: list[str] = field(default_factory=list)  # what a reader of the file has to know, a line each

    @property
    def num_states(self) -> int:
        """S, the number of states."""
        return len(self.first) - 1

    @property
    def num_rows(self) -> int:
        """R, the number of pairs."""
        return len(self.ptr) - 1

    def __repr__(self) -> str:
        """Return the sizes on one line."""
        kind = "point" if self.point else "interval"
        return f"IntervalMDP({kind}: {self.num_states} states, {self.num_rows} pairs, {len(self.succ)} transitions)"

    def single_rewards(self) -> dict[str, Floats]:
        """Return rewards [R] for formats without intervals of rewards: NAME_lower, NAME, NAME_upper where they differ.

        The rewards of a point model are its means.
        """
        single: dict[str, Floats] = {}
        for name, (low, mean, high) in self.rewards.items():
            if not self.point and not np.array_equal(low, high):
                single |= {f"{name}_lower": low, f"{name}_upper": high}
            single[name] = mean
        return single


def known(mdp: TabularMDP, labels: Labels | None = None) -> IntervalMDP:
    """Return known dynamics as an `IntervalMDP` of points, with the labels of the MDP and more.

    Parameters
    ----------
    mdp
        The dynamics.
    labels
        As in `as_interval_mdp`; an observation is the number of the state.
    """
    from gosprl import __version__

    R = len(mdp.rows)
    rewards = {"steps": same(np.ones(R))}
    if mdp.rewards is not None:
        rewards["reward"] = same(mdp.rewards)
    S = mdp.num_states
    groups = {}
    for name, chosen in {**mdp.labels, **(labels or {})}.items():
        check_name(name, ("init", "deadlock"))
        groups[name] = states_of(name, chosen, S, dict(enumerate(range(S))))
    groups["init"] = np.array([mdp.start])
    return IntervalMDP(
        initial=mdp.start,
        first=mdp.rows.ptr,
        actions=[f"a{a}" for a in mdp.rows.action],
        ptr=mdp.ptr,
        succ=mdp.succ.astype(np.int64),
        lower=mdp.prob,
        upper=mdp.prob,
        point=True,
        labels=groups,
        rewards=rewards,
        notes=[
            f"{one_line(mdp.name)}: known dynamics, written by gosprl {__version__}",
            *([f"rewards are drawn: {mdp.noise}"] if mdp.noise != "none" else []),
        ],
    )


def same(values: Floats) -> Ends:
    """Return values as ends of intervals without width."""
    return values, values, values


def one_line(text: Any) -> str:
    """Return text of 80 characters at most without line breaks or others that a format may stumble over."""
    shown = "".join(c if " " <= c <= "~" else "?" for c in str(text))
    return shown if len(shown) <= 80 else shown[:77] + "..."
