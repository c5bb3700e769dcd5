"""What is learnt, as an `IntervalMDP` for model checkers, with what its intervals promise.

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

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.exchange.interval import Ends, Floats, IntervalMDP, known, one_line
from gosprl.exchange.labelling import Labels, labels_of
from gosprl.exchange.learnt_rewards import rewards_of
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.intervals import Confidence

TINY = 1e-12  # in the place of a lower end of 0
SLACK = 1e-9  # by which the ends of a row may miss the sum 1, from rounding


@dataclass(frozen=True)
class Options:
    """What a writer of models may be told.

    Attributes
    ----------
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

    delta: float = 0.1
    labels: Labels | None = None
    need: ArrayLike | None = None
    point: bool = False
    confidence: str | Confidence = "kl"
    reward_range: tuple[float, float] = (0.0, 1.0)


def as_interval_mdp(model: EmpiricalModel | TabularMDP | IntervalMDP, **options: Any) -> IntervalMDP:
    """Return the model that the writers write.

    Parameters
    ----------
    model
        Counts, known dynamics, or what this function returned.
    **options
        See `Options`.
    """
    given = Options(**options)
    if isinstance(model, EmpiricalModel):
        return _learnt(model, given)
    if given.need is not None:
        raise InputError("need: expected None where the dynamics are given: only counts can be too few")
    if isinstance(model, TabularMDP):
        return known(model, given.labels)
    if not isinstance(model, IntervalMDP):
        raise InputError(f"model: expected an EmpiricalModel or a TabularMDP, got {type(model).__name__}")
    if given.labels is not None:
        raise InputError("labels: expected None with an IntervalMDP, which has its own")
    return model


def _learnt(model: EmpiricalModel, options: Options) -> IntervalMDP:
    """Return the MDP learnt from counts, over the observed support.

    States are those of `model`, in its order: live ones, the reset, final ones; "unknown" is the last, if a pair was
    never visited. The initial state is the reset, whose row is the law of the start, if there was one; else the state
    discovered first.
    """
    from gosprl.sets.families import as_family

    _checks.open_unit("delta", options.delta)
    family = as_family(options.confidence, options.delta, 1.0)
    model = model.arranged(model.arrangement())
    S, R = model.rows.num_states, len(model.rows)
    row, succ, lower, upper, raised = _support(model, family, options.point)
    hidden = np.flatnonzero((model.visits == 0) & ~model.certain)
    unknown = len(hidden) > 0
    if unknown:  # those pairs lead to the state S, and so does its own row
        hidden = np.append(hidden, R)
        row, succ = np.append(row, hidden), np.append(succ, np.full(len(hidden), S))
        lower, upper = (np.append(end, np.ones(len(hidden))) for end in (lower, upper))
    order = np.lexsort((succ, row))
    initial = _initial(model)
    rewards = rewards_of(model, family, options.reward_range, int(unknown))
    return IntervalMDP(
        initial=initial,
        first=np.append(model.rows.ptr, R + 1) if unknown else model.rows.ptr,
        actions=_actions(model) + ["none"] * unknown,
        ptr=np.append(0, np.cumsum(np.bincount(row, minlength=R + unknown))),
        succ=succ[order],
        lower=lower[order],
        upper=upper[order],
        point=options.point,
        labels=labels_of(model, initial, options.labels, options.need)
        | ({"unknown": np.array([S])} if unknown else {}),
        rewards=rewards,
        names=[one_line(model.states.name(s)) for s in range(S)] + ["unknown: after pairs never visited"] * unknown,
        notes=_notes(model, family, options.point, len(hidden) - unknown, raised, rewards),
    )


def _actions(model: EmpiricalModel) -> list[str]:
    """Return the name of the action of each row."""
    reset = model.certain | (model.rows.state == model.states.reset)
    return ["reset" if is_reset else f"a{a}" for is_reset, a in zip(reset, model.rows.action.tolist(), strict=True)]


def _support(
    model: EmpiricalModel, family: Confidence, point: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats, int]:
    """Return (row, succ, lower, upper) of what was seen, and the number of lower ends that were raised."""
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
    return row, succ, lower, upper, int(np.count_nonzero(raised))


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


def _notes(
    model: EmpiricalModel,
    family: Confidence,
    point: bool,
    hidden: int,
    raised: int,
    rewards: dict[str, Ends],
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
    elif family.delta is None or family.no_promise:
        notes.append(f"{family.no_promise}: there is no guarantee")
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
        held = "without a guarantee" if family.no_promise else "which hold at level delta"
        what = "alone: the rewards are not in reward_range" if low is mean else f"and intervals, {held}"
        notes.append(f"reward: means of the rewards seen, {what}")
    notes.append("steps: 1 for each step of the system, 0 for resets; bounds on time count resets as well")
    if "cost" in rewards:
        notes.append(f"cost: 1 for each step, {model.reset_cost:g} for each reset that is chosen")
    if list(model.actions) != list(range(len(model.actions))):
        notes += [f"action a{a}: {one_line(action)}" for a, action in enumerate(model.actions)]
    return notes
