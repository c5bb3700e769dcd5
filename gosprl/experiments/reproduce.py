"""`reproduce`: make the runs of experiments that are not stored yet, then figures, tables and the page of all."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.experiments import store
from gosprl.experiments.sweep import Experiment, Results, Run, execute
from gosprl.experiments.sweep import quick as smaller
from gosprl.experiments.workers import Task, Workers, said

if TYPE_CHECKING:
    from gosprl.experiments.page import Report

RUNS, QUICK_RUNS = 30, 2
UNKNOWN = Run(0, 0, False, None, np.empty((0, 2)))  # in place of a pilot that is not there

Progress = Callable[[int, int, str], object]


def reproduce(
    names: str | Iterable[str],
    *,
    out: str | os.PathLike[str],
    runs: int | None = None,
    workers: int | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> "list[Report]":
    """Make what the experiments `names` need and draw them; what `out` has of an earlier call is not made again.

    names
        Of experiments, or "all".
    out
        Directory, new or of an earlier call; `gosprl.experiments.store` says what is in it.
    runs
        Of each algorithm in each case: by default 30, of a quick look 2.
    workers
        Processes, by default as many as there are cores; the files are the same whatever their number. With more than
        one, a script must call this under `if __name__ == "__main__":`.
    progress
        Called with the number of runs that are done, of how many, and the name of the last; at first with what is
        stored, and no name.

    Returns a report for each experiment asked for; its `failed` has what failed, which the next call tries again.
    """
    _check_matplotlib()
    from gosprl.experiments.page import write

    experiments = _asked(names, quick)
    runs = _checks.whole("runs", (QUICK_RUNS if quick else RUNS) if runs is None else runs, 1)
    workers = _checks.whole("workers", (os.cpu_count() or 1) if workers is None else workers, 1)
    folder = Path(out)
    store.begin(folder, quick)
    others = _drawn_before([experiment.name for experiment in experiments], folder, quick)
    failed = _make(experiments, runs, workers, folder, progress or (lambda done, total, name: None))
    reports, drawn = [], others
    for experiment in experiments:
        lines = [f"{run}: {why}" for (name, run), why in failed.items() if name == experiment.name]
        report = _report(experiment, runs, lines, folder, quick)
        try:
            _analyse(report, folder)
            drawn.append(report)
        except Exception as error:  # the other experiments are not lost
            report = replace(report, failed=(*report.failed, f"analysis: {said(error)}"))
        reports.append(report)
    if drawn:
        order = [experiment.name for experiment in _asked("all", quick)]
        asked = "all" if len(experiments) == len(order) else " ".join(report.experiment.name for report in reports)
        drawn.sort(key=lambda report: order.index(report.experiment.name))
        write(folder, drawn, f"gosprl reproduce {asked} --runs {runs}{' --quick' if quick else ''}")
    return reports


def _asked(names: str | Iterable[str], quick: bool) -> list[Experiment]:
    """The experiments of these names, in the order of the catalogue."""
    from gosprl.experiments.catalogue import EXPERIMENTS

    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted:
        raise _checks.unknown("names", "", [*EXPERIMENTS, "all"])
    for name in wanted:
        _checks.choice("names", name, {**EXPERIMENTS, "all": None})
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in wanted or "all" in wanted]
    return [smaller(experiment) if quick else experiment for experiment in chosen]


def _check_matplotlib() -> None:
    """Before hours of runs that could not be drawn."""
    if find_spec("matplotlib") is None:
        raise InputError("figures need matplotlib, which is not installed: pip install 'gosprl[experiments]'")


def _make(
    experiments: list[Experiment], runs: int, workers: int, out: Path, progress: Progress
) -> dict[tuple[str, str], str]:
    """Make and store all that is not stored; says, by experiment and run, why what is missing failed."""
    failed: dict[tuple[str, str], str] = {}
    pilots = [(experiment.name, job) for experiment in experiments for job in experiment.pilots()]
    planned = {
        _key(task): task for experiment in experiments for part in _tasks(experiment, runs, out) for task in part
    }
    planned |= {_key(task): task for task in pilots}
    done = {key for key, (name, job) in planned.items() if store.path(out, name, job).exists()}
    progress(len(done), len(planned), "")

    def note(task: Task, answer: Run | str) -> None:
        if isinstance(answer, str):
            failed[_key(task)] = answer
        else:
            store.save(out, *task, answer)
        done.add(_key(task))
        progress(len(done), len(planned), "/".join(_key(task)))

    with Workers(workers, execute) as team:
        for task, answer in team.each(_missing(pilots, out)):
            note(task, answer)
        rest: list[Task] = []
        for experiment in experiments:
            limited, unlimited = _tasks(experiment, runs, out)
            rest += [task for task in limited if _key(task) not in failed]
            for task in unlimited:
                note(task, f"no limit is known, since one of the first runs of {experiment.reference} failed")
        for task, answer in team.each(_missing(rest, out)):
            note(task, answer)
    return {key: failed[key] for key in planned if key in failed}  # in an order that does not depend on the workers


def _tasks(experiment: Experiment, runs: int, out: Path) -> tuple[list[Task], list[Task]]:
    """All runs of an experiment: those that can be made, and those for whose limit a pilot is missing."""
    limited: list[Task] = []
    unlimited: list[Task] = []
    stored = {job: store.load(out, experiment.name, job) for job in experiment.pilots()}
    for case in experiment.cases:
        one = replace(experiment, cases=(case,))
        known = all(stored[job] for job in one.pilots())
        for job in one.jobs(runs, lambda job: stored[job] or UNKNOWN):
            made = known or job.algorithm == experiment.reference
            (limited if made else unlimited).append((experiment.name, job))
    return limited, unlimited


def _missing(tasks: list[Task], out: Path) -> list[Task]:
    """Those not stored, all cases by turns: what takes long is then not all at the end."""
    return sorted((task for task in tasks if store.load(out, *task) is None), key=lambda task: task[1].seed)


def _key(task: Task) -> tuple[str, str]:
    name, job = task
    return name, f"{job.case.name}/{job.algorithm}/{job.seed}"


def _report(experiment: Experiment, runs: int, failed: Iterable[str], out: Path, quick: bool) -> "Report":
    """What is stored of an experiment."""
    from gosprl.experiments.page import Report

    results = Results({(case.name, algorithm): [] for case in experiment.cases for algorithm in experiment.algorithms})
    for name, job in _tasks(experiment, runs, out)[0]:
        if (run := store.load(out, name, job)) is not None:
            results[job.case.name, job.algorithm].append(run)
    return Report(experiment, results, runs, tuple(failed), quick)


def _drawn_before(asked: list[str], out: Path, quick: bool) -> "list[Report]":
    """The experiments that were drawn in earlier calls, and are not in this one."""
    reports = []
    for experiment in _asked("all", quick):
        drawn = store.load_drawn(out, experiment.name)
        if drawn is not None and experiment.name not in asked:
            reports.append(_report(experiment, *drawn, out, quick))
    return reports


def _analyse(report: "Report", out: Path) -> None:
    """Draw an experiment and write its tables; also what only the page shows, so that it fails here if it does."""
    from gosprl.experiments.figures import image
    from gosprl.experiments.page import summary

    experiment, results, folder = report.experiment, report.results, out / report.experiment.name
    if not any(results.values()):
        raise InputError("no run that could be drawn")
    figure, rows, _ = experiment.draw(experiment, results), summary(report), report.verdicts
    for kind in ("png", "pdf"):
        store.write(folder / f"figure.{kind}", image(figure, kind))
    store.write_csv(folder / "summary.csv", rows)
    store.write_csv(folder / "runs.csv", store.run_rows(results))
    store.save_drawn(out, experiment.name, report.runs, report.failed)
