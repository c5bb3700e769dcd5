"""IntervalMDP: a learnt or known MDP as model checkers read it, with what its intervals promise.

Support. A pair that was visited leads to the successors that it was seen to lead to, and to no others: that is an
assumption, and the notes of every file say so. Its intervals are those of the confidence sets. Storm and PRISM refuse
lower ends of 0 where they compute unbounded properties, so such ends are raised to `TINY`, never above the observed
frequency.

Pairs never visited lead to one more state, "unknown", which is absorbing. Anything may happen after such a pair, so

    probability to reach G      at least that of `F G`, at most that of `F (G | unknown)`
    expected steps to reach G   at most those of `F G`, at least those of `F (G | unknown)`

Leaving these pairs out would lose the second bound: the true optimum may use them. Letting nature choose any state
after them would give both bounds in one query, but the raised lower ends would turn infinite expectations into finite
ones of the order of 1 / TINY.

Promise. With probability at least 1 - delta, and if no successor is missing, the true dynamics are among those of the
file. Then the true value lies between the minimum and the maximum over nature.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Confidence, row_logarithms, unlimited

Floats = NDArray[np.float64]
Labels = Mapping[str, Iterable[int] | Callable[[Any], Any]]

TINY = 1e-12  # in the place of a lower end of 0
SLACK = 1e-9  # by which the ends of a row may miss the sum 1, from rounding
RESERVED = ("init", "deadlock", "start", "reset", "final", "crash", "undersampled", "unknown")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


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
    rewards: dict[str, tuple[Floats, Floats, Floats]]  # [R] each: (lower end, mean, upper end) by the row
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


def as_interval_mdp(
    model: EmpiricalModel | TabularMDP | IntervalMDP,
    *,
    delta: float = 0.1,
    labels: Labels | None = None,
    need: ArrayLike | None = None,
    point: bool = False,
    confidence: str | Confidence = "kl",
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> IntervalMDP:
    """Return the model that the writers write.

    Parameters
    ----------
    model
        Counts, known dynamics, or what this function returned.
    delta, confidence
        The level and family of the confidence sets; for counts. A `Confidence` object has its own level.
    labels
        More labels: {name: states, or a function of the observation that says whether it has the label}. A label of a
        live state is one of the final copy of its observation, too.
    need
        Samples needed, to label states "undersampled": a number for every pair, [S] for any action of a state, or
        [S, A]; for counts.
    point
        Whether to write the observed frequencies in the place of intervals; for counts.
    reward_range
        The range of the rewards, which their intervals need. If the rewards contradict it there are only means.
    """
    if isinstance(model, EmpiricalModel):
        return learnt(
            model,
            delta=delta,
            labels=labels,
            need=need,
            point=point,
            confidence=confidence,
            reward_range=reward_range,
        )
    if need is not None:
        raise InputError("need: expected None where the dynamics are given: only counts can be too few")
    if isinstance(model, TabularMDP):
        return known(model, labels)
    if not isinstance(model, IntervalMDP):
        raise InputError(f"model: expected an EmpiricalModel or a TabularMDP, got {type(model).__name__}")
    if labels is not None:
        raise InputError("labels: expected None with an IntervalMDP, which has its own")
    return model


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
    rewards = {"steps": _same(np.ones(R))}
    if mdp.rewards is not None:
        rewards["reward"] = _same(mdp.rewards)
    groups = {name: np.unique(np.asarray(states, dtype=np.int64)) for name, states in mdp.labels.items()}
    for name, chosen in (labels or {}).items():
        _check_name(name, ("init", "deadlock"))
        groups[name] = _states(name, chosen, mdp.num_states, range(mdp.num_states))
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


def learnt(
    model: EmpiricalModel,
    *,
    delta: float = 0.1,
    labels: Labels | None = None,
    need: ArrayLike | None = None,
    point: bool = False,
    confidence: str | Confidence = "kl",
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> IntervalMDP:
    """Return the MDP learnt from counts, over the observed support; parameters as in `as_interval_mdp`.

    States are those of `model`, in its order: live ones, the reset, final ones; "unknown" is the last, if a pair was
    never visited. The initial state is the reset, whose row is the law of the start, if there was one; else the state
    discovered first.
    """
    from gosprl.sets.families import as_family

    _checks.open_unit("delta", delta)
    family = as_family(confidence, delta, 1.0)
    model = model.arranged(model.arrangement())
    S, R = model.rows.num_states, len(model.rows)
    visited = (model.visits > 0) | model.certain
    ptr, succ, lower, upper, raised = _support(model, family, point)
    row = np.repeat(np.arange(R), np.diff(ptr))
    if not visited.all():  # those pairs lead to the state S, and so does its own row
        hidden = np.append(np.flatnonzero(~visited), R)
        row, succ = np.append(row, hidden), np.append(succ, np.full(len(hidden), S))
        lower, upper = np.append(lower, np.ones(len(hidden))), np.append(upper, np.ones(len(hidden)))
    unknown = not visited.all()
    order = np.lexsort((succ, row))
    actions = ["reset" if model.certain[r] or model.rows.state[r] == model.states.reset else "" for r in range(R)]
    actions = [name or f"a{a}" for name, a in zip(actions, model.rows.action.tolist(), strict=True)]
    first = np.append(model.rows.ptr, R + 1) if unknown else model.rows.ptr
    rewards = _rewards(model, family, unknown, reward_range)
    names = [one_line(model.states.name(s)) for s in range(S)]
    return IntervalMDP(
        initial=_initial(model),
        first=first,
        actions=[*actions, "none"] if unknown else actions,
        ptr=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=R + unknown))]),
        succ=succ[order].astype(np.int64),
        lower=lower[order],
        upper=upper[order],
        point=point,
        labels=_labels(model, visited, labels, need, unknown),
        rewards=rewards,
        names=[*names, "unknown: after pairs never visited"] if unknown else names,
        notes=_notes(model, family, point, int(np.count_nonzero(~visited)), raised, rewards),
    )


def one_line(text: Any) -> str:
    """Return text of 80 characters at most without line breaks or others that a format may stumble over."""
    shown = "".join(c if " " <= c <= "~" else "?" for c in str(text))
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _support(
    model: EmpiricalModel, family: Confidence, point: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats, int]:
    """Return (ptr, succ, lower, upper) over what was seen, and the number of lower ends that were raised."""
    sets = family.intervals(model)
    _, stored, count, _ = model.stored()
    per_row = np.diff(sets.ptr)
    row = np.repeat(np.arange(len(model.rows)), per_row)
    if not np.array_equal(sets.succ, stored):
        raise InputError(f"confidence: expected the stored successors in their order from {type(family).__name__}")
    certain = model.certain[row]
    seen = (count > 0) | certain
    row, succ = row[seen], stored[seen].astype(np.int64)
    frequency = np.where(certain[seen], 1.0, count[seen] / np.maximum(1, model.visits[row]))
    number = np.bincount(row, minlength=len(model.rows))
    alone = number[row] == 1  # the only successor has probability 1
    lower = np.where(alone, 1.0, frequency if point else sets.lower[seen])
    upper = np.where(alone, 1.0, frequency if point else np.minimum(sets.upper[seen], 1.0))
    least = np.minimum(TINY, frequency)
    raised = lower < least
    lower, upper = np.where(raised, least, lower), np.maximum(upper, least)
    _check_rows(model, row, lower, upper)
    return np.concatenate([[0], np.cumsum(number)]), succ, lower, upper, int(np.count_nonzero(raised))


def _check_rows(model: EmpiricalModel, row: NDArray[np.int64], lower: Floats, upper: Floats) -> None:
    low, high = (np.bincount(row, weights=end, minlength=len(model.rows)) for end in (lower, upper))
    empty = np.flatnonzero((np.bincount(row, minlength=len(model.rows)) > 0) & ((low > 1 + SLACK) | (high < 1 - SLACK)))
    if empty.size or np.any(lower > upper):
        r = int(empty[0] if empty.size else row[np.flatnonzero(lower > upper)[0]])
        raise InputError(
            f"confidence: the set of (s, a) = {model.rows.pair(r)} has no distribution over the successors "
            f"seen: its ends sum to {low[r]:.9g} and {high[r]:.9g}"
        )


def _initial(model: EmpiricalModel) -> int:
    reset = model.states.reset
    if reset >= 0 and model.visits[model.rows.ptr[reset]] > 0:
        return int(reset)
    return int(model.discovered[0]) if model.discovered else 0


def _labels(
    model: EmpiricalModel,
    visited: NDArray[np.bool_],
    more: Labels | None,
    need: ArrayLike | None,
    unknown: bool,
) -> dict[str, NDArray[np.int64]]:
    states, S = model.states, model.rows.num_states
    kinds = np.array([states.kind(s) for s in range(S)])
    starts = model.starts()[0]
    initial = _initial(model)
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
    if unknown:
        groups["unknown"] = np.array([S])
    observed = {} if not more else {s: states[s] for s in range(S) if kinds[s] in ("live", "final")}
    for name, chosen in (more or {}).items():
        _check_name(name, RESERVED)
        if callable(chosen):
            groups[name] = np.array([s for s, seen in observed.items() if chosen(seen)], dtype=np.int64)
        else:
            given = _states(name, chosen, S, None)
            copies = [states.final(states.key(int(s))) for s in given if kinds[s] == "live"]
            groups[name] = np.unique([*given.tolist(), *(s for s in copies if s >= 0)]).astype(np.int64)
    return groups


def _check_name(name: Any, taken: Iterable[str]) -> None:
    if not isinstance(name, str) or not _NAME.match(name) or name in taken:
        raise InputError(
            f"labels: expected names of letters, digits and _, other than {', '.join(taken)}, got {name!r:.80}"
        )


def _states(name: str, chosen: Any, S: int, observations: Iterable[Any] | None) -> NDArray[np.int64]:
    if callable(chosen):
        return np.array([s for s, seen in enumerate(observations or ()) if chosen(seen)], dtype=np.int64)
    array = np.asarray(chosen if isinstance(chosen, np.ndarray) else list(chosen))
    if array.dtype == bool and array.shape == (S,):
        return np.flatnonzero(array)
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


def _same(values: Floats) -> tuple[Floats, Floats, Floats]:
    return values, values, values


def _rewards(
    model: EmpiricalModel, family: Confidence, unknown: bool, reward_range: tuple[float, float]
) -> dict[str, tuple[Floats, Floats, Floats]]:
    step = ~(model.certain | model.terminal[model.rows.state])
    rewards = {"steps": _same(np.append(step.astype(float), np.zeros(int(unknown))))}
    if model.resets == "anytime":
        rewards["cost"] = _same(np.append(model.costs(), np.zeros(int(unknown))))
    if not np.any(model.reward_sq):
        return rewards
    mean = np.where(step, model.reward_sum / np.maximum(1, model.visits), 0.0)
    ends = _reward_ends(model, family, reward_range)
    low, high = (mean, mean) if ends is None else (np.where(step, end, 0.0) for end in ends)
    if ends is not None:  # the mean of rewards may miss its interval by rounding
        low, high = np.minimum(low, np.where(model.visits > 0, mean, low)), np.maximum(high, mean)
    mean = np.append(mean, np.zeros(int(unknown)))
    rewards["reward"] = (
        _same(mean)
        if ends is None
        else (np.append(low, np.zeros(int(unknown))), mean, np.append(high, np.zeros(int(unknown))))
    )
    return rewards


def _reward_ends(
    model: EmpiricalModel, family: Confidence, reward_range: tuple[float, float]
) -> tuple[Floats, Floats] | None:
    """Return intervals for the mean rewards [R] at the level of the family; None without a level, or out of range."""
    from gosprl.sets.certificates import mean_intervals

    low, high = (_checks.number("reward_range", end) for end in reward_range)
    if not low < high:
        raise InputError(f"reward_range: expected (low, high) with low < high, got {reward_range!r:.80}")
    total, squares, visits = model.reward_sum, model.reward_sq, model.visits
    inside = (low + high) * total - squares - low * high * visits  # sum of (r - low) (high - r)
    if family.delta is None or np.any(inside < -SLACK * (1 + squares + visits)):
        return None
    width = high - low
    scaled = (total - low * visits) / width
    scaled_squares = (squares - 2 * low * total + low**2 * visits) / width**2
    streams: Any = np.exp(row_logarithms(model)) if unlimited(model) else model.num_pairs_bound or len(visits)
    ends = mean_intervals(
        visits, np.clip(scaled, 0, visits), np.maximum(scaled_squares, 0), family.delta, family.scale, streams
    )
    return low + width * ends[0], low + width * ends[1]


def _notes(
    model: EmpiricalModel,
    family: Confidence,
    point: bool,
    hidden: int,
    raised: int,
    rewards: dict[str, tuple[Floats, Floats, Floats]],
) -> list[str]:
    from gosprl import __version__

    kind = "point estimates" if point else f"intervals of the family {type(family).__name__.lower()}"
    notes = [
        f"learnt by gosprl {__version__} from {int(model.visits.sum())} transitions: {kind}",
        "assumption: a pair that was visited has no successors but those seen",
        *(f"given {what}" for what in model.given),
    ]
    if point:
        notes.append("observed frequencies: answers have no guarantee")
    elif family.delta is None or family.scale < 1:
        notes.append(f"scale {family.scale:g}: there is no guarantee")
    else:
        notes += [
            f"level: delta = {family.delta!r}",
            f"promise: with probability at least 1 - delta = {1 - family.delta!r}, and if no successor is missing, the "
            "true value lies between the minimum and the maximum over nature (robust and cooperative)",
        ]
    if hidden:
        notes.append(
            f"{hidden} pairs were never visited: they lead to the absorbing state labelled unknown. Anything may "
            "happen after them: to bound a probability from above, or expected steps from below, ask for "
            "F (goal | unknown)"
        )
    if raised and not point:
        notes.append(f"{raised} lower ends of 0 were raised to {TINY:g}, as model checkers need positive ones")
    if "reward" in rewards:
        low, mean, _ = rewards["reward"]
        what = (
            "alone: the rewards are not in reward_range" if low is mean else "and intervals, which hold at level delta"
        )
        notes.append(f"reward: means of the rewards seen, {what}")
    notes.append("steps: 1 for each step of the system, 0 for resets; bounds on time count resets as well")
    if "cost" in rewards:
        notes.append(f"cost: 1 for each step, {model.reset_cost:g} for each reset that is chosen")
    if list(model.actions) != list(range(len(model.actions))):
        notes += [f"action a{a}: {one_line(action)}" for a, action in enumerate(model.actions)]
    return notes
