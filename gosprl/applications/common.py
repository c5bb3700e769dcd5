"""What the applications share: the run, the rules that say how many samples are needed where, the answers.

An application is a rule, a `Requirement` that looks at the counts and asks for more until it has its guarantee, and an
answer made from what was collected. All of them run as one collection: it can be watched, interrupted, cut short.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks, strategies
from gosprl.collecting.collector import Collector
from gosprl.collecting.record import ANY_REWARD
from gosprl.collecting.requirements import Requirement
from gosprl.collecting.result import Result
from gosprl.errors import InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.families import as_family
from gosprl.sets.intervals import Confidence
from gosprl.strategies import Gosprl, Guarded, Practical
from gosprl.systems import as_system

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
T = TypeVar("T", bound=Requirement)

SHOWN = 8  # states listed before a list is cut


class Rule(Requirement):
    """Samples of the rows that count, needed as `demand` says.

    Rows that count are those of all states of a system that has all its states; otherwise those of the states
    discovered so far. Of a terminal state nothing counts but, with `resets`, what its reset leads to.
    """

    resets = False

    def __init__(self, model: EmpiricalModel, all_states: bool) -> None:
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.num_states, dtype=np.int64)
        self.all_states = all_states
        self.counting = np.zeros(len(model.rows), dtype=bool)  # [R]
        self._known = 0  # states taken into account

    def update(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Ask again about the rows that changed, or count from now on; when all they need is there, about all."""
        due = np.union1d(rows[self.counting[rows]], self.newly_counting(model))
        changed = [due[self._set(due, self.demand(model, due))]] if due.size else []
        while self.counting.any() and np.all(model.visits[self.counting] >= self.pair[self.counting]):
            more = self.proceed(model)
            if more is None:
                break
            every = np.flatnonzero(self.counting)
            changed.append(every[self._set(every, more[every])])
        return np.concatenate([np.empty(0, dtype=np.int64), *changed])

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Samples needed in total of each of `rows`, whose counts changed; by default as before."""
        return self.pair[rows]

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Asked when all that is needed is there: what is needed now [R], or None if that was all."""
        return None

    def _set(self, rows: Ints, need: Ints) -> NDArray[np.bool_]:
        another: NDArray[np.bool_] = self.pair[rows] != need
        self.pair[rows] = need
        return another

    def newly_counting(self, model: EmpiricalModel) -> Ints:
        """The rows that count from now on: those of states discovered since the last call."""
        if self.all_states:
            new = np.arange(model.num_states if self._known == 0 else 0)
            self._known = model.num_states
        else:
            new = np.array(model.discovered[self._known :], dtype=np.int64)
            self._known = len(model.discovered)
        if not new.size:
            return new
        rows = np.flatnonzero(np.isin(model.rows.state, new) & model.enabled)
        if not self.resets:
            rows = rows[~model.terminal[model.rows.state[rows]]]
        self.counting[rows] = True
        return rows


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What an application returns; `collected` is all that the run brought: counts, the model, the limit."""

    collected: Result = field(kw_only=True)
    guarantee: Guarantee = field(kw_only=True)  # what holds, and with which probability

    @property
    def steps(self) -> int:
        """Steps walked."""
        return self.collected.steps

    @property
    def stop(self) -> str:
        """Why the walk ended: "met" if all that was asked for was reached."""
        return self.collected.stop

    @property
    def reached(self) -> bool:
        """Whether that is all that was asked for."""
        return self.stop == "met"

    def lines(self) -> list[tuple[str, str]]:
        """What to print, as (name, value)."""
        return []

    def ending(self) -> list[tuple[str, str]]:
        """How the walk ended, and where it still lacks samples."""
        lacking = np.unique(self.collected.unmet["state"])
        missing = [("missing", f"samples of {listed(lacking)}")] if lacking.size else []
        return [("steps", f"{self.steps:,}"), ("stop", self.stop), *missing, ("guarantee", str(self.guarantee))]

    def __repr__(self) -> str:
        shown = [*self.lines(), *self.ending()]
        width = max(len(name) for name, _ in shown)
        return f"{type(self).__name__}\n" + "\n".join(f"  {name:<{width}}  {value}" for name, value in shown)


@dataclass(frozen=True)
class Walk:
    """How to walk, as the user said: what all applications take."""

    delta: float
    confidence: str | Confidence
    seed: int | None
    max_steps: int | None
    progress: Any
    options: dict[str, Any]  # of the collector, `strategy` among them

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        self.family()
        for name in ("states", "actions", "model", "need", "rewards"):
            if name in self.options:
                raise InputError(f"{name}: not an option here; the system and what is asked of it decide that")

    def family(self, share: float = 1.0) -> Confidence:
        """The sets: those of a named family at a share of delta, or the object given."""
        return as_family(self.confidence, share * self.delta, 1.0)

    @property
    def scale(self) -> float:
        """The width multiplier of the sets, which reward intervals take over."""
        return self.family().scale

    @property
    def level(self) -> Guarantee:
        """With which probability what the sets prove is right."""
        delta = self.family().delta
        return self.at(self.delta if delta is None else delta, dynamics=True)

    def at(self, delta: float, dynamics: bool = False) -> Guarantee:
        """The level of what was proved at `delta`, if the sets' scale allows any; `dynamics`: if it is about these."""
        if self.scale < 1:
            return Guarantee.heuristic(f"scale {self.scale:g}")
        return Guarantee(delta, given=("the successors",) if dynamics and self._successors_given() else ())

    def _successors_given(self) -> bool:
        strategy = self.options.get("strategy")
        if isinstance(strategy, (Gosprl, Guarded, Practical)):
            return strategy.successors is not None
        return self.options.get("successors") is not None

    def run(self, system: Any, rule_of: Callable[[EmpiricalModel, bool], T], rewards: bool = False) -> tuple[T, Result]:
        """(rule, result) of collecting what rule_of(model, all_states) asks for; rewards must then be in [0, 1]."""
        walked = as_system(system)
        if walked.mdp is not None:
            check_communicating(walked.mdp)
            if rewards:
                check_rewards(walked.mdp)
        model = walked.model()
        rule = rule_of(model, walked.all_states)
        allowed = (0.0, 1.0) if rewards else ANY_REWARD
        collector = Collector(need=rule, seed=self.seed, model=model, rewards=allowed, **self.collecting)
        collector.walk(walked, self.max_steps, self.progress)
        result = collector.last_result()
        if isinstance(rule, Rule):
            rule.newly_counting(model)  # the last step of a run that was cut short may have discovered a state
        return rule, result

    @property
    def collecting(self) -> dict[str, Any]:
        """The collector's options: its sets are those of the answer, if the strategy has sets that can be chosen."""
        strategy = self.options.get("strategy", "guarded")
        takes = strategies.options_of(strategy) if isinstance(strategy, str) else []
        sets = {"delta": self.delta, "confidence": self.confidence}
        if self.options.get("dynamics") is not None:  # then there are none
            del sets["confidence"]
        return {name: sets[name] for name in sets if name in takes} | self.options


def check_communicating(mdp: TabularMDP) -> None:
    """Raise the error that names what cannot be reached, unless every state can be from every other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    S = mdp.num_states
    row = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr))
    edges = (mdp.rows.state[row], mdp.succ)
    for (source, target), what in (
        (edges, f"from the start, state {mdp.start}, no action leads to"),
        (edges[::-1], f"to the start, state {mdp.start}, no action leads back from"),
    ):
        graph = coo_array((np.ones(len(row)), (source, target)), shape=(S, S)).tocsr()
        reached = np.zeros(S, dtype=bool)
        reached[breadth_first_order(graph, mdp.start, return_predecessors=False)] = True
        if not reached.all():
            raise InputError(
                f"system: expected a communicating MDP, where every state can be reached from every other; in "
                f"{mdp.name}, {what} {listed(np.flatnonzero(~reached))}"
            )


def check_rewards(mdp: TabularMDP) -> None:
    if mdp.rewards is None:
        raise InputError(
            f"system: {mdp.name} has no rewards; give them, TabularMDP(P, rewards=R) with R [S, A], or "
            "mdp.with_rewards(R)"
        )
    outside = np.flatnonzero((mdp.rewards < 0) | (mdp.rewards > 1))
    if outside.size:
        low, high = float(mdp.rewards.min()), float(mdp.rewards.max())
        if low == high:  # any range with 0 in it will do
            low, high = min(low, 0.0), max(high, 0.0)
        raise InputError(
            f"rewards: expected rewards in [0, 1], got {mdp.rewards[outside[0]]:g} at (s, a) = "
            f"{mdp.rows.pair(int(outside[0]))}; scale them: (R - low) / (high - low), here with low = {low:g}, "
            f"high = {high:g}"
        )


def whole(need: Floats) -> Ints:
    """Numbers of samples, rounded up; what no walk will ever bring is cut where integers end."""
    return np.minimum(np.ceil(need), 2.0**62).astype(np.int64)


def listed(states: Ints) -> str:
    """States to be read by people: a long list is cut."""
    shown = ", ".join(str(s) for s in states[:SHOWN].tolist())
    noun = "state" if len(states) == 1 else "states"
    return f"{noun} {shown}" + (f" and {len(states) - SHOWN} more" if len(states) > SHOWN else "")


def dense(model: EmpiricalModel, per_row: Floats) -> Floats:
    """[S, A] with nan where there is no such pair, or none that can be taken."""
    exists = model.enabled & ~model.terminal[model.rows.state]
    table = np.full((model.num_states, model.num_actions), np.nan)
    table[model.rows.state[exists], model.rows.action[exists]] = per_row[exists]
    return table
