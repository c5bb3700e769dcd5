"""What `collect` would take, from what a probe saw: an estimate, not a bound.

Let b be the samples needed of each pair discovered, and c those of them that the probe has after its N steps.

*Met within the direct part of the walk*: `collect` with the same seed takes exactly these steps, with others about as
many.

*Met later*: the walk made a detour by one sample of every pair, and takes about as many.

*Not met*: steps = N + x F(b - c), with F the fluid limit of the learnt model from where the walk is, and x what the
walk paid so far for not knowing the system, N / F(c), between 1 and MOST_RATIO.

*Not met, and the learnt model is of no use*: the system is proved not to be Markov, the program has no solution (a part
of the system is left for good, by the transitions seen), or it is too large. With m samples missing now, and M after
half of the steps: if m goes on to fall by as many in as many steps, the rest takes (N / 2) m / (M - m) steps; if it
falls by the same factor, (N / 2) log(m + 1) / log(M / m), since the last samples are the rarest. The estimate is the
geometric mean of the two, which are the ends of the interval.

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
    """Samples by row of the model as results number it."""

    model: EmpiricalModel
    pair: NDArray[np.int64]  # [R] needed
    start: int  # state in which everything began
    now: int  # state of the walk

    @property
    def pairs(self) -> int:
        """Pairs with a need, without the reset."""
        return int((self.pair[~self.model.terminal[self.model.rows.state]] > 0).sum())

    @property
    def have(self) -> NDArray[np.int64]:
        """[R] of them, those collected."""
        return np.minimum(self.pair, self.model.visits)

    def limit(self, pair: NDArray[np.int64], state: int) -> float:
        """Return the fluid limit of the learnt model; inf if there is none, or it would take long."""
        if len(self.model.rows) > MOST_PAIRS:
            return math.inf
        try:
            return limit_of_model(self.model, pair, np.zeros(self.model.rows.num_states, dtype=np.int64), state)
        except GosprlError:
            return math.inf


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
    if walk.met is not None:
        steps, how = float(walk.met.steps), "the probe itself, which collected it as `collect` does with this seed"
        if not walk.direct:
            how = "the probe itself, which collected it, after one sample of every pair"
        low = high = steps
        growth = 1.0
    elif classes.traps and not endings.truncated and _is_trapped(needed):
        steps = low = high = math.inf
        growth, how = 1.0, "the walk is in a trap, and pairs outside of it are needed"
    else:
        low, steps, high, how = _rest(needed, walk, markov)
        growth = _growth(walk, size, steps)
        high, steps = high * growth, steps * math.sqrt(growth)
        how += ", and that states go on appearing" if growth > 1 else ""
    width = _width(needed.pair, outcomes, endings)
    made = max(1, len(walk.watched.log))
    more = math.sqrt(growth)
    return Forecast(
        *(steps, low / width, high * width, steps * cost.seconds, steps * (endings.resets - 1) / made),
        *((walk.met or walk.samples[-1]).states * more, needed.pairs * more, how, guarantee),
    )


def _needed(walk: Walk) -> _Needed:
    """Return the samples that are needed of the states discovered so far."""
    collector, engine = walk.collector, walk.collector.engine
    model = collector.model
    kept = model.arrangement()
    pair = collector.record.need.asked()[0]
    start = 0 if collector.start is None else int(kept.place[collector.start])
    now = start if engine.state is None else int(kept.place[engine.state])
    return _Needed(model.arranged(kept), pair[kept.rows], start, now)


def _is_trapped(needed: _Needed) -> bool:
    """Whether the walk is where nothing led out of, and pairs elsewhere are needed."""
    label, closed = components(needed.model)
    missing = needed.model.rows.state[needed.pair > needed.model.visits]
    return bool(label[needed.now] in closed and np.any(label[missing] != label[needed.now]))


def _rest(needed: _Needed, walk: Walk, markov: bool) -> tuple[float, float, float, str]:
    """(low, estimate, high) of the steps in all, and what that is based on, if no more states appear."""
    made = len(walk.watched.log)
    so_far = needed.limit(needed.have, needed.start) if markov else math.inf
    rest = needed.limit(needed.pair - needed.have, needed.now) if markov else math.inf
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


def _width(pair: NDArray[np.int64], outcomes: Outcomes, endings: Endings) -> float:
    needed = pair[pair > 0]
    random = outcomes.deterministic < outcomes.pairs or endings.starts > 1
    return math.exp(1 / math.sqrt(float(np.median(needed)))) if random and len(needed) else EXACT
