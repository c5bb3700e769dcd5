"""`probe`: walk a system for a while, and say what it is and what collecting from it would take."""

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from gosprl import _checks, strategies
from gosprl.collecting.collect import declared
from gosprl.collecting.collector import Collector
from gosprl.probing import aliasing, findings
from gosprl.probing.aliasing import Aliasing
from gosprl.probing.findings import Classes, Cost, Endings, Outcomes, Rewards, Size
from gosprl.probing.forecast import Forecast, forecast
from gosprl.probing.log import Names, Watched
from gosprl.probing.verdicts import Verdict, verdicts
from gosprl.probing.walk import Adjusted, Walk, walk
from gosprl.systems import as_system

STEPS, SECONDS = 100_000, 60.0
LEVEL = 0.01  # of the test for aliasing


@dataclass(frozen=True)
class Probe:
    """What a probe found: plain values, one group for each question."""

    need: Any
    met: bool  # whether the need was met on the way
    steps: int
    attempts: int  # plans made
    resets: int
    seconds: float
    stop: str  # "met" | "max_steps" | "max_seconds" | "unreachable" | "interrupted" | "failed"
    failure: str  # what the system did wrong; "" if nothing
    seed: int | None
    delta: float  # level of the bounds
    of_discovered: bool
    guarantee: str
    size: Size
    outcomes: Outcomes
    endings: Endings
    rewards: Rewards | None  # None if no step was made
    masked: bool  # whether a state offered less than all actions
    aliased_offers: tuple[str, ...]  # states that did not always offer the same
    aliasing: Aliasing
    classes: Classes
    cost: Cost
    forecast: Forecast
    verdicts: tuple[Verdict, ...]

    @property
    def states(self) -> int:
        """States discovered."""
        return self.size.states

    @property
    def pairs(self) -> int:
        """Pairs of state and action that these offer."""
        return self.size.pairs

    @property
    def unseen(self) -> float:
        """At level delta, no pair visited, nor the reset, hides more next-state mass than this."""
        return self.size.unseen

    def __repr__(self) -> str:
        lines = [f"  {verdict}" for verdict in self.verdicts]
        return "\n".join([f"Probe: {self.steps:,} steps, {self.states:,} states, {self.pairs:,} pairs", *lines])


def probe(
    system: Any,
    *,
    need: Any = 10,
    max_steps: int = STEPS,
    max_seconds: float = SECONDS,
    seed: int | None = None,
    delta: float = 0.1,
    level: float = LEVEL,
    progress: bool | Callable[[dict[str, Any]], None] | None = None,
    key: Callable[[Any, Any], Hashable] | None = None,
    actions: Any = None,
    resets: str | None = None,
    reset_cost: float = 1.0,
    horizon: int | None = None,
    max_states: int | None = None,
    unseen: float | None = None,
) -> Probe:
    """Walk a system for a while, and say what it is and what collecting from it would take.

    The walk is that of `collect` with the default strategy: a small system is collected whole.

    Parameters
    ----------
    system
        What `gosprl.collect` takes.
    need
        The need to make a forecast for.
    max_steps, max_seconds
        The budget: the walk ends when one of them is used up. Steps are not interrupted: one that takes long is waited
        for.
    seed
        Fixes everything that is random, except where the walk stops because of the time.
    delta
        Level of the bounds on what was not seen.
    level
        The probability, for a Markov system, that the test for aliasing says that it is none.
    progress
        As in `gosprl.collect`.
    key, actions, resets, reset_cost, horizon, max_states, unseen
        What declares the system, as in `gosprl.collect`.

    Returns
    -------
    A `Probe`. If the system fails on the way, `failure` says how, and the rest is what was found before.

    Raises
    ------
    InputError
        An argument is wrong, or the system cannot be walked at all.

    Examples
    --------
    >>> import gosprl, gymnasium
    >>> probe = gosprl.probe(gymnasium.make("FrozenLake-v1"), seed=0)
    >>> probe.states, probe.aliasing.found, probe.endings.starts
    (11, False, 1)
    """
    _checks.whole("max_steps", max_steps, 1)
    _checks.positive("max_seconds", max_seconds)
    _checks.open_unit("level", level)
    watched = Watched(as_system(system, key, actions))
    model = watched.model()
    strategy = strategies.make("guarded", {"delta": delta})
    around = declared(watched, None, resets, reset_cost, horizon, max_states, unseen)
    around.prepare(model)
    asked = Adjusted(watched.requirement(need, model), model)
    collector = Collector(None, None, asked, strategy=strategy, seed=seed, model=model, around=around)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        walked = walk(watched, collector, asked, max_steps, max_seconds, progress)
    return _found(walked, need, delta, level, max_steps)


def _found(walked: Walk, need: Any, delta: float, level: float, max_steps: int) -> Probe:
    """Return what a walk shows."""
    collector, log = walked.collector, walked.watched.log
    result = collector.result()
    names = Names(log, result.model.states.shown, result.model.actions)
    size, cost = findings.size(result, log), findings.cost(walked.watched, walked.samples)
    outcomes, endings = findings.outcomes(result.model, delta), findings.endings(log)
    classes, test = findings.classes(result.model, delta), aliasing.test(log, level, names)
    guarantee = str(result.guarantee)
    expected = forecast(walked, size, outcomes, endings, classes, cost, not test.found, guarantee)
    found: dict[str, Any] = {
        "need": need,
        "met": walked.met is not None,
        "steps": result.steps,
        "attempts": result.attempts,
        "resets": result.resets,
        "seconds": walked.samples[-1].seconds,
        "stop": _stop(walked, max_steps),
        "failure": _failure(walked, names),
        "seed": result.seed,
        "delta": delta,
        "of_discovered": result.of_discovered,
        "guarantee": guarantee,
        "size": size,
        "outcomes": outcomes,
        "endings": endings,
        "rewards": findings.rewards(log),
        "masked": result.model.masked,
        "aliased_offers": tuple(result.model.states.name(s) for s in sorted(result.model.aliased)),
        "aliasing": test,
        "classes": classes,
        "cost": cost,
        "forecast": expected,
    }
    return Probe(**found, verdicts=tuple(verdicts(Probe(**found, verdicts=()))))


def _failure(walked: Walk, names: Names) -> str:
    """Return what the system did wrong, and where; "" if nothing."""
    raised, doing = walked.watched.raised, walked.watched.doing
    if not walked.failure or raised is None:
        return walked.failure
    where = "a reset" if doing is None else f"action {names.action(doing[1])} in state {names.state(doing[0])}"
    return f"{walked.failure} ({type(raised).__name__}, raised by {where})"


def _stop(walked: Walk, max_steps: int) -> str:
    """Return why the walk stopped, in the words of `collect`, and one more."""
    if walked.failure:
        return "failed"
    stop = walked.collector.stop_reason()
    if walked.met is not None and stop != "interrupted":
        return "met"
    record = walked.collector.record
    if stop in ("max_steps", "running", "met"):  # "met": only one sample of every pair was
        return "max_steps" if record.steps + record.quits >= max_steps else "max_seconds"
    return stop
