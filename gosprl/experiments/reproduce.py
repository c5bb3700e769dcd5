"""`reproduce`: make the runs of experiments that are not stored yet, then figures, tables and the page."""

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.experiments import store
from gosprl.experiments.figures import check_matplotlib
from gosprl.experiments.sweep import Experiment, Job, Results, Run, execute
from gosprl.experiments.sweep import quick as smaller
from gosprl.experiments.workers import Task, Team, one_line, team_of

if TYPE_CHECKING:
    from gosprl.experiments.page import Report

Tasks = list[Task[Job]]
RUNS, QUICK_RUNS = 30, 2
UNKNOWN = Run(0, 0, False, None, np.empty((0, 2)))  # stands for a pilot that is missing

Progress = Callable[[int, int, str], object]


def reproduce(
    names: str | Iterable[str],
    *,
    out: str | os.PathLike[str],
    runs: int | None = None,
    workers: int | str | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> "list[Report]":
    """Make the runs of some experiments that are not stored yet, and draw the experiments.

    Parameters
    ----------
    names
        Names of experiments, or "all".
    out
        A directory, new or from an earlier call; `gosprl.experiments.store` describes its files.
    runs
        Runs of each algorithm in each case, by default 30, or 2 with `quick`.
    workers
        Processes, by default one per core. The files do not depend on their number. With more than one, a script must
        call this under `if __name__ == "__main__":`. "ray" or "ray://host:port": the CPUs of a Ray cluster.
    quick
        Make only few cases and short runs.
    progress
        Called with the number of finished runs, the number of all runs, and the name of the last finished one; first
        with the number of stored runs and an empty name.

    Returns
    -------
    list[Report]
        One for each experiment asked for. `failed` lists the runs that failed; the next call makes them again.

    Raises
    ------
    InputError
        A name is unknown, `out` cannot be used, or matplotlib is missing.
    """
    check_matplotlib()
    from gosprl.experiments.page import write

    experiments = _asked(names, quick)
    runs = _checks.whole("runs", (QUICK_RUNS if quick else RUNS) if runs is None else runs, 1)
    team = team_of(workers, execute)
    folder = Path(out)
    store.begin(folder, quick=quick)
    others = _drawn_before([experiment.name for experiment in experiments], folder, quick)
    failed = _make(experiments, runs, team, folder, progress or (lambda done, total, name: None))
    reports, drawn = [], others
    for experiment in experiments:
        lines = [f"{run}: {why}" for (name, run), why in failed.items() if name == experiment.name]
        report = _report(experiment, runs, lines, folder, quick)
        try:
            _analyse(report, folder)
            drawn.append(report)
        except Exception as error:  # continue with the other experiments
            report = replace(report, failed=(*report.failed, f"analysis: {one_line(error)}"))
        reports.append(report)
    if drawn:
        order = [experiment.name for experiment in _asked("all", quick)]
        asked = "all" if len(experiments) == len(order) else " ".join(report.experiment.name for report in reports)
        drawn.sort(key=lambda report: order.index(report.experiment.name))
        write(folder, drawn, f"gosprl reproduce {asked} --runs {runs}{' --quick' if quick else ''}")
    return reports


def _asked(names: str | Iterable[str], quick: bool) -> list[Experiment]:
    """Return the experiments of these names, in the order of the catalogue."""
    from gosprl.experiments.catalogue import EXPERIMENTS

    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted:
        raise _checks.unknown("names", "", [*EXPERIMENTS, "all"])
    for name in wanted:
        _checks.choice("names", name, {**EXPERIMENTS, "all": None})
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in wanted or "all" in wanted]
    return [smaller(experiment) if quick else experiment for experiment in chosen]


def _make(
    experiments: list[Experiment], runs: int, team: Team[Job], out: Path, progress: Progress
) -> dict[tuple[str, str], str]:
    """Make and store the runs that are not stored; return the errors of those that failed, by experiment and run."""
    failed: dict[tuple[str, str], str] = {}
    pilots = [(experiment.name, job) for experiment in experiments for job in experiment.pilots()]
    planned = {
        _key(task): task for experiment in experiments for part in _tasks(experiment, runs, out) for task in part
    }
    planned |= {_key(task): task for task in pilots}
    done = {key for key, (name, job) in planned.items() if store.path(out, name, job).exists()}
    progress(len(done), len(planned), "")

    def note(task: Task[Job], answer: Run | str) -> None:
        if isinstance(answer, str):
            failed[_key(task)] = answer
        else:
            store.save(out, *task, answer)
        done.add(_key(task))
        progress(len(done), len(planned), "/".join(_key(task)))

    with team:
        for task, answer in team.each(_missing(pilots, out)):
            note(task, answer)
        rest: Tasks = []
        for experiment in experiments:
            possible, blocked = _tasks(experiment, runs, out)
            rest += [task for task in possible if _key(task) not in failed]
            for task in blocked:
                note(task, f"max_steps is unknown, since one of the first runs of {experiment.reference} failed")
        for task, answer in team.each(_missing(rest, out)):
            note(task, answer)
    return {key: failed[key] for key in planned if key in failed}  # in an order that does not depend on the workers


def _tasks(experiment: Experiment, runs: int, out: Path) -> tuple[Tasks, Tasks]:
    """Return all runs of an experiment: those that can be made, and those whose max_steps needs a missing pilot."""
    possible: Tasks = []
    blocked: Tasks = []
    stored = {job: store.load(out, experiment.name, job) for job in experiment.pilots()}
    for case in experiment.cases:
        one = replace(experiment, cases=(case,))
        known = all(stored[job] for job in one.pilots())
        for job in one.jobs(runs, lambda job: stored[job] or UNKNOWN):
            ready = known or job.algorithm in one.references
            (possible if ready else blocked).append((experiment.name, job))
    return possible, blocked


def _missing(tasks: Tasks, out: Path) -> Tasks:
    """Return the tasks that are not stored, seed by seed, so that slow cases are not all at the end."""
    return sorted((task for task in tasks if store.load(out, *task) is None), key=lambda task: task[1].seed)


def _key(task: Task[Job]) -> tuple[str, str]:
    name, job = task
    return name, job.place


def _report(experiment: Experiment, runs: int, failed: Iterable[str], out: Path, quick: bool) -> "Report":
    """Return the stored runs of an experiment."""
    from gosprl.experiments.page import Report

    results = Results({(case.name, name): [] for case in experiment.cases for name in experiment.all_algorithms})
    for name, job in _tasks(experiment, runs, out)[0]:
        if (run := store.load(out, name, job)) is not None:
            results[job.case.name, job.algorithm].append(run)
    return Report(experiment, results, runs, tuple(failed), quick)


def _drawn_before(asked: list[str], out: Path, quick: bool) -> "list[Report]":
    """Return the experiments that were drawn in earlier calls and are not part of this one."""
    reports = []
    for experiment in _asked("all", quick):
        drawn = store.load_drawn(out, experiment.name)
        if drawn is not None and experiment.name not in asked:
            reports.append(_report(experiment, *drawn, out, quick))
    return reports


def _analyse(report: "Report", out: Path) -> None:
    """Draw an experiment and write its tables.

    The verdicts are computed as well: if they fail, only this experiment fails, not the page.
    """
    from gosprl.experiments.figures import image, titled
    from gosprl.experiments.page import summary

    experiment, results, folder = report.experiment, report.results, out / report.experiment.name
    if not any(results.values()):
        raise InputError("there is no run to draw")
    figures = [titled(experiment.draw(experiment, report.at(width)), width.title) for width in experiment.widths]
    means, _ = store.as_csv(summary(report)), report.claims
    shows = f"summary.csv, SHA-256 {hashlib.sha256(means).hexdigest()}"
    for width, figure in zip(experiment.widths, figures, strict=True):
        for kind in ("png", "pdf"):
            store.write(folder / f"figure{width.suffix}.{kind}", image(figure, kind, shows))
    store.write(folder / "summary.csv", means)
    store.write_csv(folder / "runs.csv", store.run_rows(results))
    store.save_drawn(out, experiment.name, report.runs, report.failed)
