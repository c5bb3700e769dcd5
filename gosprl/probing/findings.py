"""What a walk shows of a system: size, outcomes, endings, rewards, classes of states, what a step costs.

Every number is of what was seen. Where something is proved, a field says `bound`: it holds at level delta for all pairs
together, by the same confidence sets as everywhere (`gosprl.sets.kl`), and only if the system is Markov.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.result import Result
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH
from gosprl.probing.log import Log, Watched
from gosprl.probing.walk import Sample
from gosprl.sets.kl import KL

LATE = 0.1  # the last part of the steps, where new states mean that there may be many more
AGAIN = 2  # visits from which a pair can be told to be random
NAMED = 5  # states that are named
MUCH_MEMORY = 16e6  # bytes in all from which memory that grows is called a leak
MUCH_A_STEP = 500.0  # bytes a step
FEW_NEW = 0.01  # new states a step: each takes some memory


@dataclass(frozen=True)
class Spread:
    """Of some numbers."""

    least: float
    median: float
    most: float


@dataclass(frozen=True)
class Size:
    """How much there is."""

    states: int  # discovered
    actions: int
    pairs: int  # offered by them
    visited: int  # pairs, at least once
    late: int  # states discovered in the last part of the steps
    late_steps: int  # steps of that part
    at_most: int | None  # states that there can be; None: not known
    unseen: float  # bound: no pair visited, nor the reset, has next states never seen of a larger probability

    @property
    def growing(self) -> bool:
        """Whether states were still being discovered at the end."""
        return self.late > 0


@dataclass(frozen=True)
class Outcomes:
    """How random a step is."""

    pairs: int  # with at least two visits
    deterministic: int  # of them, those that always led to one next state
    bound: float  # on the probability that any of these leads elsewhere
    next_states: Spread  # seen, over these pairs


@dataclass(frozen=True)
class Endings:
    """How episodes end."""

    terminated: int
    crashed: int  # of these, by a crash of the system itself
    truncated: int  # by the system itself
    steps_to_termination: Spread | None
    steps_to_truncation: Spread | None
    resets: int  # the first included
    starts: int  # different ones

    @property
    def time_limit(self) -> int | None:
        """The steps after which all of several truncations came; None if they differ."""
        steps = self.steps_to_truncation
        same = steps is not None and self.truncated >= AGAIN and steps.least == steps.most
        return int(steps.least) if steps is not None and same else None


@dataclass(frozen=True)
class Rewards:
    """What steps pay."""

    range: Spread
    mean: float
    pairs: int  # with at least two visits
    deterministic: int  # of them, those that always paid the same


@dataclass(frozen=True)
class Trap:
    """States that were never left by a step, though there are others."""

    states: int
    names: tuple[str, ...]  # of some of them
    tried: int  # each of their actions, at least so often
    bound: float  # on the probability that one of their actions leads out


@dataclass(frozen=True)
class Classes:
    """Which states can be reached from which, by the transitions seen; an ending leads to the starts."""

    number: int  # strongly connected components
    largest: int  # states in the largest
    traps: tuple[Trap, ...]

    @property
    def communicating(self) -> bool:
        """Whether every state seen was seen to lead to every other."""
        return self.number == 1


@dataclass(frozen=True)
class Cost:
    """What a step takes."""

    seconds: float  # all in all, in the second half of the walk
    system: float  # of them, the system's: the median
    reset: float  # seconds of a reset: the median
    memory: float  # bytes that the process grew by in the second half of the walk, a step, without the probe's own
    # log; nan where the machine does not say
    leaks: bool  # whether that is much, though hardly any state was discovered then
    faster: bool  # whether `collect` walks faster than the probe, which looks at every step of a simulated MDP


def size(result: Result, log: Log) -> Size:
    """Return how much there is."""
    model, begin = result.model, int((1 - LATE) * len(log))
    live = ~model.terminal[model.rows.state] & ~model.certain & model.is_discovered[model.rows.state]
    return Size(
        states=len(model.discovered),
        actions=len(model.actions) if model.all_actions else int(model.rows.action[live].max(initial=-1)) + 1,
        pairs=int(live.sum()),
        visited=int((model.visits[live] > 0).sum()),
        late=len(_seen(log, len(log))) - len(_seen(log, begin)),
        late_steps=len(log) - begin,
        at_most=model.max_states,
        unseen=result.unseen,
    )


def _seen(log: Log, steps: int) -> NDArray[np.int64]:
    """Return the live states seen in so many steps; where an episode ended, or the system crashed, is none."""
    alive = log.column("next_state")[:steps][~log.column("terminated")[:steps]]
    return np.union1d(log.column("state")[: steps + 1], alive)


def outcomes(model: EmpiricalModel, delta: float) -> Outcomes:
    """Return how random a step is."""
    rows = np.flatnonzero((model.visits >= AGAIN) & ~model.certain & ~model.terminal[model.rows.state])
    ptr, _, count, _ = model.stored(rows)
    seen = np.add.reduceat((count > 0).astype(np.int64), ptr[:-1]) if len(rows) else np.zeros(0, dtype=np.int64)
    return Outcomes(
        len(rows), int((seen == 1).sum()), _most_hidden(model, rows[seen == 1], delta), spread(seen) or Spread(0, 0, 0)
    )


def _most_hidden(model: EmpiricalModel, rows: NDArray[np.int64], delta: float) -> float:
    """Return a bound on the probability that any of these rows leads to a state that it was not seen to lead to."""
    if not len(rows):
        return 1.0
    return min(1.0, float(KL(delta).intervals(model, rows).total.max()))


def endings(log: Log) -> Endings:
    """Return how episodes ended."""
    age, over, cut = log.column("clock") + 1, log.column("terminated"), log.column("truncated")
    cut &= ~over
    after = log.column("next_state")[over]
    return Endings(
        int(over.sum()),
        sum(log.keys[s] is CRASH for s in after.tolist()),
        int(cut.sum()),
        spread(age[over]),
        spread(age[cut]),
        len(log.starts),
        len(set(log.starts)),
    )


def rewards(log: Log) -> Rewards | None:
    """Return what steps paid; None if there was none."""
    paid = log.column("reward")
    among = spread(paid)
    if among is None:
        return None
    pair = np.unique(np.stack([log.column("state"), log.column("action")]), axis=1, return_inverse=True)[1].ravel()
    least, most = np.full(pair.max() + 1, np.inf), np.full(pair.max() + 1, -np.inf)
    np.minimum.at(least, pair, paid)
    np.maximum.at(most, pair, paid)
    again = np.bincount(pair) >= AGAIN
    return Rewards(among, float(paid.mean()), int(again.sum()), int((least == most)[again].sum()))


def classes(model: EmpiricalModel, delta: float) -> Classes:
    """Return the strongly connected components of what was seen, and the traps among them."""
    label, closed = components(model)
    sizes = np.bincount(label[model.discovered])
    traps = [_trap(model, np.flatnonzero(label == c), delta) for c in closed]
    return Classes(int((sizes > 0).sum()), int(sizes.max(initial=0)), tuple(trap for trap in traps if trap is not None))


def components(model: EmpiricalModel) -> tuple[NDArray[np.int64], list[int]]:
    """Return the component [S] of each state by the transitions seen, and those that nothing led out of.

    The latter only if something led there.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    s, _, s_next, _ = model.transitions(resets=True)
    if not np.any(s_next == model.states.reset):  # the first reset only: nothing led there
        s, s_next = s[s != model.states.reset], s_next[s != model.states.reset]
    states = model.rows.num_states
    graph = sparse.coo_array((np.ones(len(s)), (s, s_next)), shape=(states, states))
    label = np.asarray(connected_components(graph.tocsr(), connection="strong")[1], dtype=np.int64)
    out = label[s] != label[s_next]
    return label, np.setdiff1d(label[s_next[out]], label[s[out]]).tolist()


def _trap(model: EmpiricalModel, states: NDArray[np.int64], delta: float) -> Trap | None:
    """Return a class that nothing led out of as a trap; None if not everything was tried there."""
    rows = np.flatnonzero(np.isin(model.rows.state, states) & model.enabled & ~model.certain)
    tried = int(model.visits[rows].min()) if len(rows) else 0
    if tried == 0:
        return None
    names = tuple(model.states.name(s) for s in states[:NAMED].tolist())
    return Trap(len(states), names, tried, _most_hidden(model, rows, delta))


def cost(watched: Watched, samples: list[Sample]) -> Cost:
    """Return what a step takes; of the second half of the walk, since the first run of all compiles."""
    log = watched.log
    begin = next((x for x in samples if 2 * x.steps >= samples[-1].steps), samples[0])
    begin = begin if begin.steps < samples[-1].steps else samples[0]
    steps, end = max(1, samples[-1].steps - begin.steps), samples[-1]
    own = log.bytes / max(1, len(log))
    memory = (end.memory - begin.memory) / steps - own
    leaks = memory * steps > MUCH_MEMORY and memory > MUCH_A_STEP and end.states - begin.states < FEW_NEW * steps
    taken = spread(log.column("seconds"))
    resets = spread(np.array(log.seconds_of_resets))
    return Cost(
        (end.seconds - begin.seconds) / steps,
        0.0 if taken is None else taken.median,
        0.0 if resets is None else resets.median,
        memory,
        bool(leaks),
        watched.compiled,
    )


def spread(numbers: "NDArray[np.int64] | NDArray[np.float64]") -> Spread | None:
    """Return least, median and most; None of nothing."""
    if not len(numbers):
        return None
    return Spread(float(numbers.min()), float(np.median(numbers)), float(numbers.max()))
