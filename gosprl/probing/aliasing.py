"""Does the same state and action behave differently by history? A test whose level holds for any walk.

Null hypothesis: the system is Markov, that is, the outcome of each visit of a pair (next state, and whether the
episode ended) has the law p(.|s, a), whatever happened before. Walks are adaptive, and stop when enough was collected.
So the visits of a pair are no sample of a fixed size, and the history of a visit may depend on the outcomes of earlier
ones: tests that permute outcomes, or count degrees of freedom, are not exact then. This one is: it multiplies bets.

**One pair, one kind of history.** Let O be the outcomes of the pair seen before a visit. Before the visit, choose a
law q on O that may depend on everything before it: here, how often each outcome followed the same history, backed off
to how often it occurred at all. If the outcome x is in O, the capital is multiplied by q(x) / (p(x) / p(O)), otherwise
by 1. The mean of this factor, given the past, is

    p(O) sum_{x in O} (p(x) / p(O)) q(x) / (p(x) / p(O))  +  1 - p(O)  =  p(O) + 1 - p(O)  =  1,

so the capital M is a nonnegative martingale that begins at 1, under any walk. p is not known; take in its place the p
that makes the product of all p(x) / p(O) largest. That gives an E <= M that needs no p. The largest product has a
closed form: number the outcomes 1, 2, ... as they appeared, and let r_l = p(l) / p({1..l}). Then p(j) / p({1..k}) =
r_j (1 - r_{j+1}) ... (1 - r_k), the r_l can be chosen one by one, and with n_l the times that l came again, and b_l the
times that an earlier outcome came again after l had appeared, the best r_l is n_l / (n_l + b_l).

**All pairs, all kinds.** The mean of such martingales is one, over several q and over kinds of history. So is, over the
pairs, the product of (1 + M_i) / 2, since a visit changes one factor only; and so is the sum of M_i / (i (i + 1)) (plus
what is missing to 1 in the beginning), pairs numbered from 1 as they first showed a second outcome: before that, M_i
is 1. The evidence is the mean of the two: the product is large where many pairs are aliased a little, the sum where a
few are aliased much, and it names them. By Ville's inequality, the evidence ever exceeds 1 / level with probability at
most `level` if the system is Markov. A pair is named as proved if its own term of the sum alone makes the evidence that
large. M_i is a martingale already if pair i does not depend on history, whatever other pairs do: so all that is said of
pairs holds together, at that level.

**Rewards** are tested in the same way, given the pair and its outcome: outcomes and rewards at half of the level each.

What it cannot see: histories of other kinds, and pairs that always led to one outcome.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gosprl.probing.log import Log, Names

BACK_OFF = (0.3, 3.0)  # visits that the overall frequencies count for, beside those after the same history
PRIOR = 0.5  # visits that each outcome seen counts for in the overall frequencies
MOST_VISITS = 1000  # of a pair that are looked at
SHOWN_HISTORIES = 3
FIRST = "the reset"

KINDS = (
    "the step before",
    "the clock: even or odd",
    "the clock: by threes",
    "the clock: early or late",
    "what it led to last time, in the same episode",
)


Place = tuple[int, ...]  # (state, action), for rewards with the outcome


class Visit(NamedTuple):
    """A visit of a place."""

    step: int
    outcome: int  # 2 * next state + whether the episode ended; for rewards the number of the reward
    histories: tuple[Hashable, ...]  # by kind


@dataclass(frozen=True)
class Aliased:
    """A pair whose outcomes depend on its history."""

    state: str
    action: str
    kind: str  # of history
    evidence: float  # natural logarithm of E, of this kind
    proved: bool  # of this pair, at the level of the test; otherwise it is only the most evident one
    event: str  # what followed it, "led to x" or "paid 1 on the way to x": the one whose frequency differs most
    after: tuple[tuple[str, int, int], ...]  # (history, times that it was followed by this, of so many visits)

    @property
    def text(self) -> str:
        """The pair and how it differs, in words."""
        parts = [f"{history} {times} of {visits}" for history, times, visits in self.after]
        return f"({self.state}, {self.action}) {self.event}: {'; '.join(parts)}"


@dataclass(frozen=True)
class Aliasing:
    """The outcome of the test."""

    level: float  # of a false alarm, for the whole of it
    evidence: float  # natural logarithm; from log(2 / level) on, next states depend on history
    evidence_of_rewards: float  # the same of rewards
    tested: int  # pairs with at least two outcomes
    pairs: tuple[Aliased, ...]  # those proved, most evident first; if there is none, but they all together prove it,
    # the most evident one
    rewards: tuple[Aliased, ...]  # the same of rewards

    @property
    def found(self) -> bool:
        """Whether next states are proved to depend on history: the system is not Markov in what it shows."""
        return self.evidence >= needed(self.level)

    @property
    def rewards_found(self) -> bool:
        """Whether rewards are proved to depend on history."""
        return self.evidence_of_rewards >= needed(self.level)

    @property
    def proved(self) -> int:
        """The number of pairs whose next states are proved to depend on history."""
        return sum(pair.proved for pair in self.pairs)


def needed(level: float) -> float:
    """Return the log evidence that is enough: next states and rewards are tested at half of the level each."""
    return math.log(2 / level)


def test(log: Log, level: float, names: Names) -> Aliasing:
    """Test all pairs of a log.

    Parameters
    ----------
    log
        The steps.
    level
        The probability of a false alarm, at most.
    names
        How to call states and actions.
    """
    of_pairs, of_rewards = _Family(_outcomes(log)), _Family(_rewards(log))
    return Aliasing(
        *(level, of_pairs.evidence, of_rewards.evidence, len(of_pairs.places)),
        *(_shown(of_pairs, level, names, None), _shown(of_rewards, level, names, np.unique(log.column("reward")))),
    )


def _shown(family: "_Family", level: float, names: Names, rewards: Any) -> tuple[Aliased, ...]:
    """Return the places proved to depend on history, or the most evident one, or none."""
    if family.evidence < needed(level):
        return ()
    proved = [own - math.log(2) >= needed(level) for own in family.own]  # its term alone is enough
    order = sorted(range(len(family.own)), key=lambda i: -family.own[i])
    shown = [i for i in order if proved[i]] or order[:1]
    return tuple(_aliased(family, i, proved[i], names, rewards) for i in shown)


class _Family:
    """All places where something may depend on history, in the order in which they showed a second outcome.

    Attributes
    ----------
    places
        (place, visits) of each.
    logs
        log E of each, by kind of history.
    evidence
        log of the evidence of all of them.
    own
        log of the term of each in the sum.
    """

    def __init__(self, visits: dict[Place, list[Visit]]) -> None:
        self.places = [entry for entry in visits.items() if _second(entry[1]) is not None]
        self.places.sort(key=lambda entry: _second(entry[1]) or 0)
        self.logs = [[log_evidence(visits, kind) for kind in range(len(KINDS))] for _, visits in self.places]
        self.evidence, self.own = combined(self.logs)


def combined(evidence: Sequence[Sequence[float]]) -> tuple[float, list[float]]:
    """(log evidence of all pairs, log of each pair's term of the sum), from log E by pair and kind."""
    if not evidence:
        return 0.0, []
    kinds = np.array(evidence)  # [pairs, kinds]
    product = _log_mean(np.logaddexp(0.0, kinds).sum(axis=0) - len(kinds) * math.log(2))
    i = np.arange(1, len(kinds) + 1)
    own = np.array([_log_mean(row) for row in kinds]) - np.log(i * (i + 1.0))
    return float(np.logaddexp(product, np.logaddexp.reduce(own)) - math.log(2)), own.tolist()


def _log_mean(logs: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def log_evidence(visits: Sequence[Visit], kind: int) -> float:
    """Return log E of one pair and one kind of history."""
    after: dict[Hashable, Counter[int]] = {}
    overall: Counter[int] = Counter()
    won = [0.0] * len(BACK_OFF)
    order: dict[int, int] = {}  # outcome -> its number, as they appeared
    n: list[int] = []  # bets won by each outcome
    b: list[int] = []  # bets won by an earlier outcome, after it had appeared
    for i, visit in enumerate(visits):
        x, seen = visit.outcome, after.setdefault(visit.histories[kind], Counter())
        if x in order:
            of_all = (overall[x] + PRIOR) / (i + PRIOR * len(order))
            total = seen.total()
            for k, weight in enumerate(BACK_OFF):
                won[k] += math.log((seen[x] + weight * of_all) / (total + weight))
            n[order[x]] += 1
            for later in range(order[x] + 1, len(order)):
                b[later] += 1
        else:
            order[x] = len(order)
            n.append(0)
            b.append(0)
        seen[x] += 1
        overall[x] += 1
    largest = sum(_best(n[k], b[k]) for k in range(1, len(n)))
    return _log_mean(np.array(won)) - largest


def _best(n: int, b: int) -> float:
    """Return the largest n log r + b log(1 - r)."""
    return sum(k * math.log(k / (n + b)) for k in (n, b) if k)


def _outcomes(log: Log) -> dict[Place, list[Visit]]:
    """Return the first visits of each pair, with what they led to."""
    state, action = log.column("state").tolist(), log.column("action").tolist()
    return _visits(log, zip(state, action, strict=True), _outcome(log))


def _rewards(log: Log) -> dict[Place, list[Visit]]:
    """Return the first visits of each pair and outcome, with the number of the reward."""
    state, action, outcome = log.column("state").tolist(), log.column("action").tolist(), _outcome(log)
    paid = np.unique(log.column("reward"), return_inverse=True)[1].tolist()
    return _visits(log, zip(state, action, outcome, strict=True), paid)


def _outcome(log: Log) -> list[int]:
    """[n] 2 * next state + whether the episode ended."""
    outcome: list[int] = (2 * log.column("next_state") + log.column("terminated")).tolist()
    return outcome


def _visits(log: Log, places: Iterable[Place], outcomes: Sequence[int]) -> dict[Place, list[Visit]]:
    """Return the first visits of each place, with their histories."""
    out: dict[Place, list[Visit]] = {}
    columns = [log.column(name).tolist() for name in ("state", "action", "clock")]
    before: tuple[int, int] | str = FIRST
    last: dict[Place, int] = {}  # outcome of each place in this episode
    for t, (s, a, clock, place, outcome) in enumerate(zip(*columns, places, outcomes, strict=True)):
        if clock == 0:
            before, last = FIRST, {}
        visits = out.setdefault(place, [])
        if len(visits) < MOST_VISITS:
            histories = (before, clock % 2, clock % 3, clock.bit_length(), last.get(place, -1))
            visits.append(Visit(t, outcome, histories))
        before, last[place] = (s, a), outcome
    return out


def _second(visits: Sequence[Visit]) -> int | None:
    """Return the step at which a pair first showed a second outcome; None if it never did."""
    return next((visit.step for visit in visits if visit.outcome != visits[0].outcome), None)


def _aliased(family: _Family, i: int, proved: bool, names: Names, rewards: Any) -> Aliased:
    """Return what differs at a place, in words; `rewards` are those paid, by number, None for outcomes."""
    (place, visits), kind = family.places[i], int(np.argmax(family.logs[i]))
    after: dict[Hashable, Counter[int]] = {}
    overall: Counter[int] = Counter()
    for visit in visits:
        after.setdefault(visit.histories[kind], Counter())[visit.outcome] += 1
        overall[visit.outcome] += 1
    most = sorted(after, key=lambda history: -_distance(after[history], overall))[:SHOWN_HISTORIES]
    differs = max(overall, key=lambda x: np.ptp([after[history][x] / after[history].total() for history in most]))

    def event(outcome: int) -> str:
        if rewards is None:
            return f"led to {names.outcome(outcome)}"
        return f"paid {rewards[outcome]:g} on the way to {names.outcome(place[2])}"

    shown = [(_named(kind, history, names, event), after[history][differs], after[history].total()) for history in most]
    shown.sort(key=lambda entry: -entry[1] / entry[2])
    return Aliased(
        *(names.state(place[0]), names.action(place[1]), KINDS[kind], float(family.logs[i][kind]), proved),
        *(event(differs), tuple(shown)),
    )


def _distance(counts: Counter[int], overall: Counter[int]) -> float:
    """Return n KL(frequencies after one history, frequencies overall)."""
    n, N = counts.total(), overall.total()
    return sum(k * math.log(k * N / (n * overall[x])) for x, k in counts.items())


def _named(kind: int, history: Any, names: Names, event: Callable[[int], str]) -> str:
    """Return a history in words."""
    if kind == 0:
        return "after a reset" if history == FIRST else f"after {names.pair(*history)}"
    if kind == 1:
        return "at odd times" if history else "at even times"
    if kind == 2:
        return f"at times 3k+{history}"
    if kind == 3:
        return "at step 0" if history == 0 else f"at steps {2 ** (history - 1)} to {2**history - 1}"
    return "the first time" if history < 0 else f"after it {event(history)}"
