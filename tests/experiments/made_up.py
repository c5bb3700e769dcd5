"""Made-up runs: given numbers of steps, proportions that increase evenly, errors that decrease as 1 / sqrt(t)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gosprl.experiments.sweep import Case, Experiment, Results, Run


def run(seed: int, steps: int, *, met: bool = True, watched: int = 0, states: int = 5) -> Run:
    """P_t increases by 1 / states at even times; a run that is not met lacks the last increase."""
    rises = np.arange(states + 1 if met else states)
    curve = np.stack([np.round(steps * rises / states), rises / states], axis=1)
    return Run(seed, steps, met, None if met else steps, curve, watched, attempts=max(1, int(steps) // 10))


def error_run(seed: int, case: Case, factor: float) -> Run:
    times = np.unique(np.geomspace(10, case.horizon, 60).round())
    return Run(seed, case.horizon, False, case.horizon, np.stack([times, factor / np.sqrt(times)], axis=1))


def at_both_widths(experiment: Experiment, level: Callable[[Case, str], float], runs: int = 12, **more) -> Results:
    """Results by all names that algorithms have: at the fitted width, `level` is asked for NAME-fitted."""
    return results(replace(experiment, algorithms=experiment.all_algorithms), level, runs, **more)


def results(
    experiment: Experiment, level: Callable[[Case, str], float], runs: int = 12, *, stopped: tuple[str, ...] = ()
) -> Results:
    """Steps (or errors) around `level`, within 5 %; the algorithms in `stopped` never finish."""
    made = Results()
    for case in experiment.cases:
        for i, name in enumerate(experiment.algorithms):
            spread = 1 + 0.05 * np.random.default_rng([i, runs]).uniform(-1, 1, size=runs)
            levels = level(case, name) * spread
            if case.horizon:
                made[case.name, name] = [error_run(seed, case, x) for seed, x in enumerate(levels)]
            else:
                made[case.name, name] = [
                    run(seed, round(x), met=name not in stopped, watched=round(x / 10)) for seed, x in enumerate(levels)
                ]
    return made
