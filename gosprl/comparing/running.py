"""`compare`: runs of several strategies on one system, with the same seeds, in several processes.

Strategies may take very different numbers of steps. Without `max_steps`, all but the first one are stopped at ten times
the mean steps of the first one's first five runs. A stopped run is marked as such, and what is computed from it is
called a lower bound.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gosprl
from gosprl import _checks, strategies
from gosprl.comparing.comparison import Comparison
from gosprl.comparing.trials import Contender, Trial, perform, system_described
from gosprl.errors import GosprlError, InputError
from gosprl.experiments import store
from gosprl.experiments.sweep import CENSORED_AT, PILOT, Run
from gosprl.experiments.workers import Team, team_of
from gosprl.strategies.base import Strategy
from gosprl.systems.named import Named, factory_of

NAME = "comparison"  # the folder of the runs in `out`
WITHOUT_LIMIT = ("data", "unseen")  # options with which a fixed need of the whole table is not what is collected
Progress = Callable[[int, int, str], object]


def compare(
    system: Any,
    strategies: "Sequence[str | Strategy] | Mapping[str, Any] | str" = ("guarded", "gosprl", "random"),
    need: Any = 10,
    runs: int = 20,
    *,
    max_steps: int | None = None,
    workers: int | str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Run several strategies on a system, each with seeds 0 to runs - 1.

    Parameters
    ----------
    system
        A domain by name, the id of a Gymnasium environment, a `TabularMDP`, or a function that makes a system.
    strategies
        Names or strategy objects; or a dict from a label to a name, a strategy object, or a dict of options of
        `gosprl.collect` with the key "strategy". The others are compared with the first one.
    need
        As in `gosprl.collect`.
    runs
        Runs of each strategy.
    max_steps
        Stop every run there. By default, see the head of this module.
    workers
        Processes, by default one per core; results do not depend on their number. With more than one, a script must
        call this under ``if __name__ == "__main__":``. "ray" or "ray://host:port": the CPUs of a Ray cluster.
    out
        A directory for finished runs: the same call goes on where it was stopped, and makes no run twice.
    progress
        Called with the number of finished runs, the number of all, and the name of the last one.
    **options
        Of `gosprl.collect`, for all strategies.

    Returns
    -------
    Comparison
        All runs, as rows and as a summary; `plot` draws it.

    Raises
    ------
    InputError
        An argument is wrong, or runs in `out` have other settings.
    GosprlError
        A run failed.

    Examples
    --------
    >>> import gosprl
    >>> both = gosprl.compare("riverswim6", ["guarded", "random"], need=2, runs=3, workers=1)
    >>> [(row["strategy"], row["met"]) for row in both.rows][::3]
    [('guarded', True), ('random', True)]
    """
    contenders = _contenders(strategies, options)
    runs = _checks.whole("runs", runs, 1)
    made_by = team_of(workers, perform)
    if max_steps is not None:
        _checks.whole("max_steps", max_steps, 1)
    make = Named(system) if isinstance(system, str) else factory_of(system)
    first = make()  # fails here, not in every process
    team = _Runs(made_by, None if out is None else Path(out), progress or (lambda done, total, name: None))
    with team:
        results = team.compared(partial(Trial, make, need), contenders, runs, max_steps)
    name = make.name if isinstance(make, Named) else type(first).__name__
    return Comparison(name, need, results, _limit(first, need, options))


def _contenders(given: Any, options: Mapping[str, Any]) -> list[Contender]:
    """Return what is compared, with labels."""
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",")]
    if not isinstance(given, Mapping):
        given = {one if isinstance(one, str) else repr(one): one for one in given}
    if not given:
        raise InputError("strategies: expected at least one strategy, got none")
    return [_contender(str(label), value, options) for label, value in given.items()]


def _contender(label: str, value: Any, options: Mapping[str, Any]) -> Contender:
    own = dict(value) if isinstance(value, Mapping) else {"strategy": value}
    strategy = own.pop("strategy", "guarded")
    if isinstance(strategy, str):
        _checks.choice("strategies", strategy, strategies.STRATEGIES)
    elif not isinstance(strategy, Strategy):
        raise InputError(f"strategies: {label}: expected a name or a strategy object, got {strategy!r:.80}")
    for name in ("seed", "out", "workers", "progress", "max_steps"):
        if name in own or name in options:
            raise InputError(f"strategies, options: {name} is not an option of single runs here")
    return Contender(label, strategy, {**options, **own})


class _Runs:
    """Makes the runs that are not stored."""

    def __init__(self, team: Team[Trial], out: Path | None, progress: Progress) -> None:
        self._team = team
        self._out, self._progress = out, progress
        self._done = self._total = 0

    def __enter__(self) -> "_Runs":
        self._team.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._team.__exit__(*error)

    def compared(
        self, trial: Callable[..., Trial], contenders: list[Contender], runs: int, max_steps: int | None
    ) -> dict[str, list[Run]]:
        """Return the runs of each contender, in order of their seeds."""
        pilots = PILOT if max_steps is None and len(contenders) > 1 else 0
        self._total = max(runs, pilots) + runs * (len(contenders) - 1)
        if self._out is not None:
            store.begin(self._out, comparison=system_described(trial(contenders[0], 0).make))
        self._progress(0, self._total, "")
        first = self._made([trial(contenders[0], seed, max_steps) for seed in range(max(runs, pilots))])
        if not any(run.steps for run in first):
            raise InputError("need: expected one that takes steps, but it was met before the first one")
        if max_steps is None and pilots:
            max_steps = math.ceil(CENSORED_AT * float(np.mean([run.steps for run in first[:pilots]])))
        others = [trial(one, seed, max_steps) for seed in range(runs) for one in contenders[1:]]
        made = dict(zip([(one.contender.label, one.seed) for one in others], self._made(others), strict=True))
        rest = {one.label: [made[one.label, seed] for seed in range(runs)] for one in contenders[1:]}
        return {contenders[0].label: first[:runs], **rest}

    def _made(self, trials: list[Trial]) -> list[Run]:
        found = {one.place: self._stored(one) for one in trials}
        left = [one for one in trials if found[one.place] is None]
        self._note(len(trials) - len(left), "")
        for (_, trial), answer in self._team.each([(NAME, one) for one in left]):
            if isinstance(answer, str):
                raise GosprlError(f"strategies: {trial.contender.label}, seed {trial.seed}: {answer}")
            found[trial.place] = answer
            if self._out is not None:
                store.save(self._out, NAME, trial, answer)
            self._note(1, f"{trial.contender.label}, seed {trial.seed}")
        return [run for one in trials if (run := found[one.place]) is not None]

    def _stored(self, trial: Trial) -> Run | None:
        return None if self._out is None else store.load(self._out, NAME, trial)

    def _note(self, more: int, name: str) -> None:
        self._done += more
        if more:
            self._progress(self._done, self._total, name)


def _limit(system: Any, need: Any, options: Mapping[str, Any]) -> float:
    """Return a lower bound on the expected steps, where the dynamics are known and the need is fixed; else nan."""
    if not isinstance(system, gosprl.TabularMDP) or any(options.get(name) is not None for name in WITHOUT_LIMIT):
        return math.nan
    try:
        return gosprl.fluid_limit(system, need)
    except GosprlError:  # the need is not fixed
        return math.nan
