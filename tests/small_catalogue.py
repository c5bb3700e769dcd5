"""A catalogue of experiments that take a second, and a page, in place of the real ones; some runs fail."""

import os
from types import ModuleType

import numpy as np
from matplotlib.figure import Figure

import gosprl
from gosprl.experiments import sweep
from gosprl.experiments.algorithms import STATED, WIDTHS
from gosprl.experiments.page import Report
from gosprl.experiments.sweep import Case, Experiment, Verdict


def summary(report):
    means = {key: float(np.mean([run.steps for run in runs])) for key, runs in report.results.items() if runs}
    return [{"case": case, "algorithm": algorithm, "steps": steps} for (case, algorithm), steps in means.items()]


def write(out, reports, command):
    lines = [f"{report.experiment.name}: {report.runs} runs, failed: {list(report.failed)}" for report in reports]
    (out / "index.html").write_text("\n".join([command, *lines]))


def draw(experiment, results):
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot(title=experiment.title)
    axes.plot([run.steps for runs in results.values() for run in runs])
    return figure


def judge(experiment, results):
    claim = ("GOSPRL is faster", "yes", "yes", "fewer steps")
    return [Verdict(*claim, verdict) for verdict in ("confirmed", "confirmed", "not comparable")]


def cannot_judge(experiment, results):
    raise ArithmeticError("too few runs")


def experiment(name, cases, algorithms, judge=judge, widths=(STATED,), **more):
    text, quick = ("Figure", "text"), (cases[0].name,)
    return Experiment(name, name.title(), *text, cases, algorithms, quick, draw, judge, widths=widths, **more)


EASY, HARD = Case("easy", "Easy", "riverswim6", need=1), Case("hard", "Hard", "riverswim6", need=2)
NO_MAP = Case("no-map", "without the map that costs are given on", "riverswim6", need=1)
ENDLESS = Case("endless", "a random walk that never ends", "riverswim36", need=100)
TRAP = Case("trap", "Trap", "trap10", need=1, only_at="T", watch="X")
ERROR = Case("error", "Error", "riverswim6", horizon=200)

EXPERIMENTS = {
    each.name: each
    for each in (
        experiment("river", (EASY, HARD), ("gosprl", "random")),
        experiment("trap", (TRAP,), ("gosprl", "gosprl-costs")),
        experiment("error", (ERROR,), ("gosprl",)),
        experiment("failing", (NO_MAP,), ("gosprl", "gosprl-costs")),
        experiment("endless", (EASY, ENDLESS), ("random",)),
        experiment("unjudged", (EASY,), ("gosprl",), cannot_judge),
        experiment("widths", (EASY,), ("gosprl", "zero-ucrl", "random"), widths=WIDTHS),
    )
}
GOOD = ("river", "trap", "error")


def modules(names=tuple(EXPERIMENTS)):
    """Return replacements of modules of `gosprl.experiments`, by name."""
    catalogue, page = ModuleType("gosprl.experiments.catalogue"), ModuleType("gosprl.experiments.page")
    catalogue.EXPERIMENTS = {name: EXPERIMENTS[name] for name in names}
    page.Report, page.summary, page.write = Report, summary, write
    return {module.__name__: module for module in (catalogue, page)}


def files(folder):
    """Return every file below a folder with its bytes."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def fails_on_seed_1(job):
    if job.seed == 1:
        raise gosprl.InputError("seed 1\nis refused")
    return sweep.execute(job)


def dies_on_seed_1(job):
    """End the process, if it is a worker: the tests continue."""
    if job.seed == 1:
        os._exit(7)
    return sweep.execute(job)
