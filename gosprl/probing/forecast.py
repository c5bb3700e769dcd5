"""What `collect` would take, from what a probe saw: an estimate, not a bound.

Let b be the samples needed of each pair discovered, and c those of them that the probe has after its N steps.

*Met within the direct part of the walk*: `collect` with the same seed takes exactly these steps, with others about as
many.

*Stopped, since what is missing cannot be reached* (only simulated MDPs say so): the same.

*Met later*: the walk made a detour by one sample of every pair, and takes about as many.

*Not met*: steps = N + x F(b - c), with F the fluid limit of the learnt model from where the walk is, and x what the
walk paid so far for not knowing the system, N / F(c), between 1 and MOST_RATIO.

*Not met, and the learnt model is of no use*: the system is proved not to be Markov, the program has no solution (a part
of the system is left for good, by the transitions seen), it is too large, or states need samples of any action, so that
most actions are never tried. With m samples missing now, and M after half of the steps: if m goes on to fall by as many
in as many steps, the rest takes (N / 2) m / (M - m) steps; if it falls by the same factor, since the last samples are
the rarest, (N / 2) log(m + 1) / log(M / m). The estimate is the geometric mean of the two, which are the ends of the
interval.

*States still appearing*: with S(n) the states discovered in n steps, let beta be the slope of log S over log n in the
last half. Needs grow with the states, so the steps T solve T = T0 S(T) / S(N), with T0 from above; for S(n) = S(N)
(n / N)^beta that is T = N (T0 / N)^(1 / (1 - beta)). It is bounded by T0 S_max / S(N) where the number of states has a
bound. The estimate is the geometric mean of T0 and T, the interval contains both.

The interval is a rule of thumb. The steps wait for the last sample of the rarest pair, which after b samples is known
up to a part of about 1 / sqrt(b): a factor exp(1 / sqrt(b)) in both directions, where outcomes or starts are random,
and EXACT where they are not. If the need was not met, frequencies of few samples may be off by a factor of 2: the
lower end takes half of F(b - c), the upper end twice x F(b - c).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.cut_off import are_assumed
from gosprl.errors import GosprlError
from gosprl.model.empirical import EmpiricalModel
from gosprl.probing.findings import Classes, Cost, Endings, Outcomes, Size, components
from gosprl.probing.walk import Walk
from gosprl.theory.limits import limit_of_model

MOST_RATIO = 3.0
MOST_PAIRS = 20_000  # up to which the fluid limit is solved for
MOST_GROWTH = 0.8  # the largest beta
EXACT = 1.1  # the width of the interval where nothing is random but the order of the walk


@dataclass(frozen=True)
class Forecast:
    """What `collect` would take."""

    steps: float  # inf: it would not end
    low: float
    high: float
    seconds: float  # about, for `steps`
    resets: float
    states: float
    pairs: float
    how: str  # what it is based on
    guarantee: str  # what would be promised


@dataclass(frozen=True)
class _Needed:
    """Samples that are needed, in the numbering that results have."""

    model: EmpiricalModel
    pair: NDArray[np.int64]  # [R] of each row
    state: NDArray[np.int64]  # [S] of each state, with any action
    start: int  # state in which everything began
    now: int  # state of the walk

    @property
    def pairs(self) -> int:
        """Pairs with a need, without the reset."""
        return int((self.pair[~self.model.terminal[self.model.rows.state]] > 0).sum())

    @property
    def samples(self) -> float:
        """The median over what has a need."""
        every = np.concatenate([self.pair[self.pair > 0], self.state[self.state > 0]])
        return float(np.median(every)) if len(every) else 1.0

    def have(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """([R], [S]) the needed samples collected so far."""
        visits, rows = np.where(self.model.certain, 0, self.model.visits), self.model.rows
        of_states = np.bincount(rows.state, weights=visits, minlength=rows.num_states).astype(np.int64)
        return np.minimum(self.pair, self.model.visits), np.minimum(self.state, of_states)

    def missing(self) -> NDArray[np.bool_]:
        """[S] the states that lack samples."""
        pair, state = self.have()
        lacking: NDArray[np.bool_] = self.state > state
        lacking[self.model.rows.state[self.pair > pair]] = True
        return lacking

    def limits(self) -> tuple[float, float]:
        """(of what was collected, of the rest) the fluid limit of the learnt model; inf: none, or it takes long.

        None for needs with any action: rows never tried, which the limit takes to be the best, would stay so.
        """
        if len(self.model.rows) > MOST_PAIRS or self.state.any():
            return math.inf, math.inf
        pair, state = self.have()
        try:
            so_far = limit_of_model(self.model, pair, state, self.start)
            return so_far, limit_of_model(self.model, self.pair - pair, self.state - state, self.now)
        except GosprlError:
            return math.inf, math.inf


def forecast(
    walk: Walk,
    size: Size,
    outcomes: Outcomes,
    endings: Endings,
    classes: Classes,
    cost: Cost,
    markov: bool,
    guarantee: str,
) -> Forecast:
    """Return what `collect` would take.

    Parameters
    ----------
    walk
        The walk, with its collector as it is at the end.
    size, outcomes, endings, classes, cost
        What it showed.
    markov
        Whether the learnt model can be trusted: the system is not proved to depend on history.
    guarantee
        What `collect` would promise.
    """
    needed = _needed(walk)
    ended = walk.met or (walk.samples[-1] if walk.collector.stop_reason() == "unreachable" else None)
    if ended is not None:
        low = steps = high = float(ended.steps)
        growth, how = 1.0, _how_ended(walk)
    elif classes.traps and not endings.truncated and _is_trapped(needed):
        steps = low = high = math.inf
        growth, how = 1.0, "the walk is in a trap, and pairs outside of it are needed"
    else:
        low, steps, high, how = _rest(needed, walk, markov)
        growth = _growth(walk, size, steps)
        high, steps = high * growth, steps * math.sqrt(growth)
        how += ", and that states go on appearing" if growth > 1 else ""
    width = _width(needed, outcomes, endings)
    made = max(1, len(walk.watched.log))
    more = math.sqrt(growth)
    return Forecast(
        *(steps, low / width, high * width, steps * cost.seconds, steps * (endings.resets - 1) / made),
        *((walk.met or walk.samples[-1]).states * more, needed.pairs * more, how, guarantee),
    )


def _how_ended(walk: Walk) -> str:
    """Return what a forecast is based on, where the walk ended as `collect` does."""
    if walk.met is None and are_assumed(walk.collector.record.need.waived.values()):
        return "the probe itself, which stopped there: the need cannot be met under this time limit"
    if walk.met is None:
        return "the probe itself, which stopped there, since what is missing cannot be reached"
    if walk.direct:
        return "the probe itself, which collected it as `collect` does with this seed"
    return "the probe itself, which collected it, after one sample of every pair"


def _needed(walk: Walk) -> _Needed:
    """Return the samples that are needed of the states discovered so far."""
    collector, engine = walk.collector, walk.collector.engine
    model = collector.model
    kept = model.arrangement()
    pair, state, _ = collector.record.need.asked()
    start = 0 if collector.start is None else int(kept.place[collector.start])
    now = start if engine.state is None else int(kept.place[engine.state])
    return _Needed(model.arranged(kept), pair[kept.rows], state[kept.states], start, now)


def _is_trapped(needed: _Needed) -> bool:
    """Whether the walk is where nothing led out of, and samples elsewhere are needed."""
    label, closed = components(needed.model)
    return bool(label[needed.now] in closed and np.any(label[needed.missing()] != label[needed.now]))


def _rest(needed: _Needed, walk: Walk, markov: bool) -> tuple[float, float, float, str]:
    """(low, estimate, high) of the steps in all, and what that is based on, if no more states appear."""
    made = len(walk.watched.log)
    so_far, rest = needed.limits() if markov else (math.inf, math.inf)
    if not (made > 0 and math.isfinite(rest) and 0 < so_far < math.inf):
        return _decline(walk, made)
    ratio = min(MOST_RATIO, max(1.0, made / so_far))
    how = f"the steps so far, and for the rest {ratio:.2f} times the fluid limit of the learnt model"
    return made + rest / 2, made + ratio * rest, made + 2 * ratio * rest, how


def _decline(walk: Walk, made: int) -> tuple[float, float, float, str]:
    """Return the same by how fast the samples missing became fewer in the last half of the walk."""
    begin = next((x for x in walk.samples if 2 * x.steps >= made), walk.samples[0])
    steps, left = made - begin.steps, walk.samples[-1].missing
    how = "how fast missing samples became fewer in the last half of the walk"
    if steps <= 0 or left >= begin.missing:
        return float(made), math.inf, math.inf, f"{how}: they did not"
    evenly = steps * left / (begin.missing - left)
    ever_slower = steps * math.log(left + 1) / math.log(begin.missing / left) if left else 0.0
    low, high = sorted((evenly, ever_slower))
    return made + low, made + math.sqrt(low * high), made + high, how


def _growth(walk: Walk, size: Size, steps: float) -> float:
    """Return the factor by which the steps grow if states go on appearing as in the last half of the walk."""
    made, states = len(walk.watched.log), walk.samples[-1].states
    if not size.growing or not math.isfinite(steps):
        return 1.0
    half = max((x.states for x in walk.samples if 2 * x.steps <= made), default=1)
    beta = min(MOST_GROWTH, math.log2(states / max(1, half)))
    factor = float((steps / made) ** (beta / (1 - beta)))
    return factor if size.at_most is None else min(factor, max(1.0, size.at_most / states))


def _width(needed: _Needed, outcomes: Outcomes, endings: Endings) -> float:
    random = outcomes.deterministic < outcomes.pairs or endings.starts > 1
    return math.exp(1 / math.sqrt(needed.samples)) if random else EXACT
