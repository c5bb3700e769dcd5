"""Shared by the applications: the run, the rules that decide how many samples are needed, and the answers.

An application consists of a rule and an answer. The rule is a `Requirement`: from the counts it decides which samples
are still needed to prove the objective. The answer is computed from the samples collected. Each application is one
collection, so it can be watched, interrupted and limited to a number of steps.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks, strategies
from gosprl.collecting.beginning import Beginning
from gosprl.collecting.collect import OF_FLEET, declared, model_with, samples_of, walked_by
from gosprl.collecting.collector import Collector
from gosprl.collecting.record import ANY_REWARD
from gosprl.collecting.requirements import NO_ROWS, Requirement
from gosprl.collecting.result import OWN_DELTA, Result, qualified
from gosprl.errors import InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets.families import as_family
from gosprl.sets.intervals import Confidence, row_logarithms
from gosprl.strategies import Strategy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
T = TypeVar("T", bound=Requirement)
P = ParamSpec("P")
R = TypeVar("R")

SHOWN = 8  # the largest number of states that a message lists
OF_SYSTEM = ("key", "actions")  # options that say what is walked
OF_EPISODES = ("resets", "reset_cost", "horizon", "max_states", "unseen")  # options that declare what it is like


def kept_on_disk(application: Callable[P, R]) -> Callable[P, R]:
    """Return an application that takes `out`: its name and arguments are stored, so that the run can be resumed."""
    parameters = signature(application)

    @wraps(application)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.get("out") is not None:
            from gosprl.runs.settings import named

            bound = parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            kwargs["out"] = named(kwargs["out"], application.__name__, bound.arguments)
        return application(*args, **kwargs)

    return wrapped


class Rule(Requirement):
    """The base class of the applications' requirements: samples of the counting rows, as many as `demand` returns.

    If the system has all its states in advance, the rows of all live states count, otherwise those of the states
    discovered so far. Resets do not count. With `resets`, the law of the start does, once an action or an ending leads
    there.

    Parameters
    ----------
    model
        The counts of the run.
    all_states
        Whether the system has all its states in advance.

    Attributes
    ----------
    counting
        [R] bool, the rows that count.
    """

    resets = False
    memory: ClassVar[tuple[str, ...]] = ()  # attributes that are no function of the counts: numbers

    def __init__(self, model: EmpiricalModel, all_states: bool) -> None:
        self.pair = np.zeros(len(model.rows), dtype=np.int64)
        self.state = np.zeros(model.rows.num_states, dtype=np.int64)
        self.all_states, self.of_discovered = all_states, not all_states
        self.counting = np.zeros(len(model.rows), dtype=bool)
        self._seen = 0  # entries of `model.discovered` taken into account
        self._with_rows = 0  # number of states whose rows count, the reset among them

    def resize(self, model: EmpiricalModel, rows: Ints) -> None:
        """Take over the model's number of states and rows."""
        super().resize(model, rows)
        counting = np.zeros(len(model.rows), dtype=bool)
        counting[rows] = self.counting
        self.counting = counting

    def remember(self) -> dict[str, Any]:
        """Return the need, and the attributes that decide how it goes on."""
        return {"pair": self.pair.tolist(), **{name: getattr(self, name) for name in self.memory}}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Ask for the same as the rule that remembered this."""
        self.pair = np.array(memory["pair"], dtype=np.int64)
        for name in self.memory:
            setattr(self, name, memory[name])

    def num_states(self, model: EmpiricalModel) -> int:
        """Return the number of states whose rows count."""
        return self._with_rows

    def update(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Call `demand` for rows that changed or newly count, and `proceed` when all counting rows are met."""
        affected = np.union1d(rows[self.counting[rows]], self.newly_counting(model))
        changed = [affected[self._set(affected, self.demand(model, affected))]] if affected.size else []
        while self.counting.any() and np.all(model.visits[self.counting] >= self.pair[self.counting]):
            more = self.proceed(model)
            if more is None:
                break
            every = np.flatnonzero(self.counting)
            changed.append(every[self._set(every, more[every])])
        return np.concatenate([np.empty(0, dtype=np.int64), *changed])

    def demand(self, model: EmpiricalModel, rows: Ints) -> Ints:
        """Return the samples needed in total of each of `rows`; the default does not change them.

        Parameters
        ----------
        model
            The counts so far.
        rows
            [n] int64, counting rows whose counts changed, or that newly count.

        Returns
        -------
        [n] int64.
        """
        return self.pair[rows]

    def proceed(self, model: EmpiricalModel) -> Ints | None:
        """Return the next need of all rows, [R] int64, or None if the rule is fulfilled; called when need is met."""
        return None

    def _set(self, rows: Ints, need: Ints) -> NDArray[np.bool_]:
        """Set the need of `rows`; return for which of them it changed."""
        differs: NDArray[np.bool_] = self.pair[rows] != need
        self.pair[rows] = need
        return differs

    def newly_counting(self, model: EmpiricalModel) -> Ints:
        """Add the rows of the states discovered since the last call to the counting rows, and return them [n]."""
        states, rows = self._discovered(model)
        self._seen = model.states.fixed if self.all_states else len(model.discovered)
        self.counting[rows] = True
        self._with_rows += states
        return rows

    def as_of_now(self, model: EmpiricalModel) -> tuple[Ints, Ints, int]:
        """With the states discovered since the last update."""
        states, rows = self._discovered(model)
        pair = self.pair.copy()
        if rows.size:
            pair[rows] = self.demand(model, rows)
        return pair, self.state, self._with_rows + states

    def _discovered(self, model: EmpiricalModel) -> tuple[int, Ints]:
        """Return how many states newly count, and their rows [n]."""
        ptr, reset = model.rows.ptr, model.states.reset
        if self.all_states:
            states = [] if self._seen else [*range(model.states.fixed)]
            parts = [np.arange(ptr[len(states)])]
        else:
            states = model.discovered[self._seen :]
            parts = [np.arange(ptr[s], ptr[s + 1]) for s in states]
        parts += [np.arange(ptr[s], ptr[s + 1]) for s in model.aliased]
        if self.resets and reset >= 0 and not self.counting[ptr[reset]] and leads_back(model):
            states, parts = [*states, reset], [*parts, ptr[reset : reset + 1]]
        rows: Ints = np.unique(np.concatenate([NO_ROWS, *parts]))
        return len(states), rows[model.enabled[rows] & ~model.certain[rows] & ~self.counting[rows]]


def leads_back(model: EmpiricalModel) -> bool:
    """Whether an action, or an ending that was seen, leads to the reset."""
    return model.resets == "anytime" or bool(model.visits[model.rows.ptr[model.states.finals]].any())


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The base class of what applications return; it prints as aligned lines.

    Attributes
    ----------
    collected
        The `Result` of the collection: counts, the model, the fluid limit, why it stopped.
    guarantee
        A `Guarantee`: what is promised of the answer (`of`), with which probability (`level` is delta) and under which
        assumptions (`given`); without a level, the reason (`why`). ``str(answer.guarantee)`` is one line.
    """

    collected: Result = field(kw_only=True)
    guarantee: Guarantee = field(kw_only=True)

    @property
    def steps(self) -> int:
        """The number of steps made."""
        return self.collected.steps

    @property
    def stop(self) -> str:
        """Why the collection stopped, as `Result.stop`; "met" if everything asked for was reached."""
        return self.collected.stop

    @property
    def reached(self) -> bool:
        """Whether everything asked for was reached."""
        return self.stop == "met"

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines to print for the answer, as (name, value)."""
        return []

    def ending(self) -> list[tuple[str, str]]:
        """Return the lines to print for the collection, as (name, value): steps, stop, missing samples, guarantee."""
        result = self.collected
        lacking = np.unique(result.unmet["state"])
        missing = [("missing", f"samples of {listed(lacking, result.model)}")] if lacking.size else []
        unseen = [("unseen", result.hidden)] if result.of_discovered else []
        far = np.array(list(result.unreachable))
        given_up = [("given up", f"{listed(far, result.model)} ({OWN_DELTA})")] if far.size else []
        promised = ("guarantee", str(self.guarantee))
        return [("steps", f"{self.steps:,}"), ("stop", self.stop), *missing, promised, *given_up, *unseen]

    def report(self, file: str | os.PathLike[str], **options: Any) -> Path:
        """Write a page that shows the answer and the run: see `gosprl.report.report` and docs/report.md."""
        from gosprl.report.writing import report

        return report(self, file, **options)

    def plot(self, kind: str = "coverage", **options: Any) -> "Figure":
        """Draw the coverage, the visits or the graph of the learnt system: see `gosprl.report.plot`."""
        return self.collected.plot(kind, **options)

    def __repr__(self) -> str:
        shown = [*self.lines(), *self.ending()]
        width = max(len(name) for name, _ in shown)
        return f"{type(self).__name__}\n" + "\n".join(f"  {name:<{width}}  {value}" for name, value in shown)

    def _repr_html_(self) -> str:
        from gosprl.report.notebook import titled

        return titled(type(self).__name__, [*self.lines(), *self.ending()])


class Run(NamedTuple, Generic[T]):
    """What a collection left.

    Its arrays by state and by row are those of `model`, where states have the places in which they were discovered;
    answers have the order of `result.model`: live states first (`EmpiricalModel.arrangement`).
    """

    rule: T
    result: Result
    model: EmpiricalModel

    def qualified(self, guarantee: Guarantee) -> Guarantee:
        """Return a guarantee with what it is about, and with what it takes for granted of aliased states."""
        return qualified(guarantee, self.model, self.rule)


@dataclass(frozen=True)
class Walk:
    """The arguments that all applications share, and the collection that they describe.

    Parameters
    ----------
    delta, confidence
        Level and family of the confidence sets.
    seed, max_steps, progress
        As in `gosprl.collect`.
    options
        Further keyword arguments of `gosprl.collect`: `strategy` and its options; `key`, `actions`, `resets`,
        `reset_cost`, `horizon`, `max_states` and `unseen`, which declare what the system is like; `data` and
        `data_order`, the samples that are there already; `workers` and the options of a fleet.
    """

    delta: float
    confidence: str | Confidence
    seed: int | None
    max_steps: int | None
    progress: Any
    options: dict[str, Any]

    def __post_init__(self) -> None:
        _checks.open_unit("delta", self.delta)
        self.family()
        for name in ("states", "model", "need", "rewards", "around"):
            if name in self.options:
                raise InputError(f"{name}: not an option of an application; the system and the objective determine it")

    def family(self, share: float = 1.0) -> Confidence:
        """Return the sets: those of a named family at level share * delta, or the object given."""
        return as_family(self.confidence, share * self.delta, 1.0)

    @property
    def scale(self) -> float:
        """The width multiplier of the sets; the intervals of rewards use the same."""
        return self.family().scale

    @property
    def level(self) -> Guarantee:
        """The guarantee at the level of the sets."""
        return self.at(self.family().delta, dynamics=True)

    def at(self, delta: float | None, dynamics: bool = False) -> Guarantee:
        """Return the guarantee at level `delta`; a heuristic one if the sets are scaled below 1, or state no level.

        Parameters
        ----------
        delta
            The level.
        dynamics
            Whether it is about the dynamics: then successors that were given are an assumption of it.
        """
        if why := self.family().no_promise:
            return Guarantee.heuristic(why)
        return Guarantee(delta, given=("the successors",) if dynamics and self._successors_given() else ())

    def _successors_given(self) -> bool:
        strategy = self.options.get("strategy")
        of_object = strategy.successors if isinstance(strategy, Strategy) else None
        return self.options.get("successors") is not None or of_object is not None

    def run(self, system: Any, rule_of: Callable[[EmpiricalModel, bool], T], rewards: bool = False) -> Run[T]:
        """Collect the samples that a rule needs.

        Parameters
        ----------
        system
            As in `gosprl.collect`; a `TabularMDP` must be communicating.
        rule_of
            Makes the rule, from the empty model and whether the system has all its states in advance.
        rewards
            Whether the application uses rewards: they must be in [0, 1] then.
        """
        of_fleet = {name: self.options.get(name, default) for name, default in OF_FLEET.items()}
        walked, new_collector = walked_by(
            system, self.options.get("key"), self.options.get("actions"), self.options.get("workers"), of_fleet
        )
        if walked.mdp is not None:
            check_communicating(walked.mdp)
            if rewards:
                check_rewards(walked.mdp)
        given = {name: self.options[name] for name in OF_EPISODES if name in self.options}
        apart = (*OF_SYSTEM, *OF_EPISODES, *OF_FLEET, "workers")
        options = {name: value for name, value in self.collecting.items() if name not in apart}
        out = options.pop("out", None)
        samples = samples_of(options.pop("data", None), options.pop("data_order", None))
        strategy = strategies.make(options.pop("strategy", "guarded"), options)
        around = declared(walked, strategy.dynamics, **given)
        allowed = (0.0, 1.0) if rewards else ANY_REWARD
        rules: list[T] = []  # the last one is that of the run

        def begin(seed: int | None, samples: Beginning | None) -> Collector:
            model = model_with(walked, around, samples, allowed)
            rules.append(rule_of(model, walked.all_states and not model.growing))
            alone = samples is not None and samples.seed_alone
            return new_collector(
                need=rules[-1],
                strategy=strategy,
                seed=seed,
                model=model,
                rewards=allowed,
                around=around,
                seed_alone=alone,
            )

        if out is None:
            collector = begin(self.seed, samples)
            collector.walk(walked, self.max_steps, self.progress)
            result = collector.last_result()
        else:
            from gosprl.runs.keeping import keep
            from gosprl.runs.settings import Settings

            key, actions = (self.options.get(name) for name in OF_SYSTEM)
            settings = Settings(strategy, None, around, key, actions, allowed)
            collector, result = keep(out, begin, self.seed, walked, settings, self.max_steps, self.progress, samples)
        rule, model = rules[-1], collector.model
        if isinstance(rule, Rule):
            rule.newly_counting(model)  # the last step of a run that was cut short may have discovered a state
        return Run(rule, result, model)

    @property
    def collecting(self) -> dict[str, Any]:
        """The collector's options: the options given and, if the strategy has them, `delta` and `confidence`."""
        strategy = self.options.get("strategy", "guarded")
        takes = strategies.options_of(strategy) if isinstance(strategy, str) else []
        sets = {"delta": self.delta, "confidence": self.confidence}
        if self.options.get("dynamics") is not None:  # known dynamics need no confidence sets
            del sets["confidence"]
        return {name: sets[name] for name in sets if name in takes} | self.options


def check_communicating(mdp: TabularMDP) -> None:
    """Raise `InputError` unless every state can be reached from every other; the error names states that cannot."""
    reached = mdp.reachable(mdp.start)
    what, states = f"from the start, state {mdp.start}, to", ~reached
    if reached.all():
        label = mdp.components()
        what, states = f"back to the start, state {mdp.start}, from", label != label[mdp.start]
    if states.any():
        raise InputError(
            f"system: expected a communicating MDP, where every state can be reached from every other; in {mdp.name}, "
            f"no path leads {what} {listed(np.flatnonzero(states))}"
        )


def check_rewards(mdp: TabularMDP) -> None:
    """Raise `InputError` unless the MDP has rewards, all of them in [0, 1]."""
    if mdp.rewards is None:
        raise InputError(
            f"system: expected an MDP with rewards, but {mdp.name} has none; give them with TabularMDP(P, rewards=R), "
            "R [S, A], or mdp.with_rewards(R)"
        )
    outside = np.flatnonzero((mdp.rewards < 0) | (mdp.rewards > 1))
    if outside.size:
        low, high = float(mdp.rewards.min()), float(mdp.rewards.max())
        if low == high:  # any range that contains 0 will do
            low, high = min(low, 0.0), max(high, 0.0)
        raise InputError(
            f"rewards: expected rewards in [0, 1], got {mdp.rewards[outside[0]]:g} at (s, a) = "
            f"{mdp.rows.pair(int(outside[0]))}; scale them: (R - low) / (high - low), here with low = {low:g}, "
            f"high = {high:g}"
        )


def rounded_up(need: Floats) -> Ints:
    """Return numbers of samples as int64, rounded up and limited to 2^62, more than any run can collect."""
    return np.minimum(np.ceil(need), 2.0**62).astype(np.int64)


def listed(states: Ints, model: EmpiricalModel | None = None) -> str:
    """Return a list of states for a message; a long one is cut. With a model, as observations; -1 is the reset."""
    names = [str(s) if model is None else "reset" if s < 0 else model.states.name(s) for s in states[:SHOWN].tolist()]
    noun = "state" if len(states) == 1 else "states"
    return f"{noun} {', '.join(names)}" + (f" and {len(states) - SHOWN} more" if len(states) > SHOWN else "")


def dense(model: EmpiricalModel, per_row: Floats | Ints, fill: Any = np.nan) -> Any:
    """Return numbers per row [R] as a table [S, A] of the live states, as results number them.

    `fill` where the pair does not exist. Resets are left out.
    """
    lives = model.states.lives
    place = np.full(model.rows.num_states, -1)
    place[lives] = np.arange(len(lives))
    rows = np.flatnonzero(model.enabled & ~model.certain & (place[model.rows.state] >= 0))
    shape = (len(lives), model.num_actions - (model.resets == "anytime"))
    table = np.full(shape, fill, dtype=per_row.dtype)
    table[place[model.rows.state[rows]], model.rows.action[rows]] = per_row[rows]
    return table


def num_outcomes(model: EmpiricalModel) -> int:
    """Return how many outcomes a step can have; if that is not known, how many states there are, live and final."""
    return model.num_outcomes or model.states.used


def streams_of(model: EmpiricalModel, rows: Ints) -> Floats:
    """Return what delta is divided by for each of `rows` [n]: over all rows of a run, the reciprocals sum to 1 at most.

    The number of pairs, if it is known or bounded. Otherwise A i (i + 1) for the i-th state discovered.
    """
    if model.num_pairs_bound is not None:
        return np.full(len(rows), float(model.num_pairs_bound))
    return np.exp(row_logarithms(model, rows))
