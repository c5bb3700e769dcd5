"""What was learnt of pairs and states: frequencies with confidence intervals, mean rewards, hitting times."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import GosprlError
from gosprl.report.findings import Findings
from gosprl.report.text import number

Floats = NDArray[np.float64]
MOST_TIMES = 1_100  # states up to which hitting times are computed


class Transition(NamedTuple):
    """A transition seen: how often, its frequency and its confidence interval."""

    state: int
    action: int
    next_state: int
    seen: int
    frequency: float
    lower: float
    upper: float

    @property
    def interval(self) -> str:
        """Frequency and interval, in words."""
        return f"{number(self.frequency, 3)} [{number(self.lower, 3)}, {number(self.upper, 3)}]"


def transitions(findings: Findings, most: int) -> tuple[list[Transition], int]:
    """Return the most frequent transitions with their intervals, and how many there are in all."""
    model = findings.model
    if model is None:
        return [], 0
    s, a, s_next, count = model.transitions()
    chosen = np.lexsort((s_next, a, s, -count))[:most]
    rows = model.rows.index(s[chosen], a[chosen]) if chosen.size else np.empty(0, dtype=np.int64)
    wanted, place = np.unique(rows, return_inverse=True)
    ends = _intervals(findings, wanted)
    found = []
    for i, r in zip(chosen.tolist(), place.tolist(), strict=True):
        visits = int(model.visits[wanted[r]])
        low, high = ends.get((r, int(s_next[i])), (0.0, 1.0))
        found.append(
            Transition(int(s[i]), int(a[i]), int(s_next[i]), int(count[i]), count[i] / max(1, visits), low, high)
        )
    return found, len(s)


def _intervals(findings: Findings, rows: NDArray[np.int64]) -> dict[tuple[int, int], tuple[float, float]]:
    """Return the ends of the confidence interval of (place in `rows`, next state), by the sets of the run's level."""
    from gosprl.sets.kl import KL

    assert findings.model is not None
    if not rows.size:
        return {}
    sets = KL(findings.delta).intervals(findings.model, rows)
    row = np.repeat(np.arange(len(rows)), np.diff(sets.ptr)).tolist()
    ends = zip(sets.lower.tolist(), sets.upper.tolist(), strict=True)
    return dict(zip(zip(row, sets.succ.tolist(), strict=True), ends, strict=True))


class Rewards(NamedTuple):
    """Mean rewards of the pairs visited."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    mean: Floats
    deviation: Floats  # standard deviation of one reward
    visits: NDArray[np.int64]


def rewards(findings: Findings) -> Rewards | None:
    """Return the mean rewards; None if nothing was visited."""
    model = findings.model
    if model is None:
        return None
    live = (model.rows.state < len(findings.counts)) & ~model.certain & (model.visits > 0)
    rows = np.flatnonzero(live)
    if not rows.size:
        return None
    visits = model.visits[rows]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = model.reward_sum[rows] / visits
        spread = np.sqrt(np.maximum(model.reward_sq[rows] / visits - mean**2, 0.0))
    return Rewards(model.rows.state[rows], model.rows.action[rows], mean, spread, visits)


def hitting_times(findings: Findings) -> Floats | None:
    """Return the expected steps from the start to each state [S], for the frequencies seen; None if not computed.

    Of the policy that gets there fastest; an episode that ends begins again. inf where the samples have no way.
    """
    from gosprl.mdp.distances import hitting_times as times_between
    from gosprl.model.loop import Loop

    model, start = findings.model, findings.start
    if model is None or start is None or len(model.states) > MOST_TIMES or not findings.steps:
        return None
    try:
        loop = Loop(model)
        learnt = loop.frequencies()
        times = times_between(learnt, cost=loop.costs_of(learnt.rows))
    except GosprlError:
        return None
    found = np.array(times[loop.place[start], : len(findings.counts)])
    found[start] = 0.0
    return found
