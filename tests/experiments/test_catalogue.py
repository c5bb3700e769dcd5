"""The sweeps are complete: their domains, algorithms and cases exist."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gosprl.experiments.algorithms import ALGORITHMS
from gosprl.experiments.catalogue import EXPERIMENTS
from gosprl.experiments.sweep import quick

ROOT = Path(__file__).parents[2]
REPRODUCTION = ROOT / "docs" / "reproduction"
EACH = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)


def test_order():
    names = "table-dynamics table-costs fig-treasure fig-treasure-more fig-garnet fig-modest fig-diameter fig-states"
    assert list(EXPERIMENTS) == [*names.split(), "fig-aggregation"]
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


@EACH
def test_algorithms_exist_and_look_different(experiment):
    looks = [(ALGORITHMS[name].color, ALGORITHMS[name].label) for name in experiment.algorithms]
    assert len({color for color, _ in looks}) == len({label for _, label in looks}) == len(looks)
    assert experiment.reference in experiment.algorithms


@EACH
def test_cases_can_be_made(experiment):
    names = [case.name for case in experiment.cases]
    assert len(set(names)) == len(names)
    for case in experiment.cases:
        need = np.asarray(case.needed(case.mdp()))
        assert need.max() == case.need or case.random_need is not None


@EACH
def test_quick_has_fewer_or_smaller_cases(experiment):
    small = quick(experiment)
    assert [case.name for case in small.cases] == list(experiment.quick)
    assert all(small.horizon < large.horizon for small in small.cases for large in experiment.cases if large.horizon)


def test_needs_and_garnets_differ_between_configurations():
    cases = EXPERIMENTS["fig-garnet"].cases
    assert len(cases) == 20
    assert len({tuple(np.ravel(case.needed(case.mdp()))) for case in cases}) == 20


def test_a_toy_has_the_diameter_it_is_named_after():
    from gosprl.experiments.diameter import diameter

    for case in EXPERIMENTS["fig-diameter"].cases:
        assert case.mdp().diameter() == pytest.approx(diameter(case))
        assert case.name == f"toy3-{diameter(case):.0f}"


def test_importing_the_catalogue_leaves_matplotlib_alone():
    code = (
        "import sys; import gosprl.experiments.catalogue, gosprl.experiments.page; "
        "sys.exit(any(name.split('.')[0] in ('matplotlib', 'markdown_it') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@EACH
def test_the_committed_reproduction_is_of_these_sweeps(experiment):
    with (REPRODUCTION / experiment.name / "runs.csv").open() as file:
        made = {(row["case"], row["algorithm"], int(row["seed"])) for row in csv.DictReader(file)}
    seeds = experiment.seeds(30)
    assert made == {
        (case.name, name, seed) for case in experiment.cases for name in experiment.algorithms for seed in seeds
    }
    for kind in ("png", "pdf"):
        assert (REPRODUCTION / experiment.name / f"figure.{kind}").exists()


def test_the_readme_counts_the_verdicts_of_the_committed_page():
    numbers = re.search(
        r"(\d+) claims of the paper: (\d+) confirmed, (\d+) not confirmed, (\d+) not comparable",
        (REPRODUCTION / "index.md").read_text(),
    )
    said = re.search(
        r"Of (\d+) claims (\d+) are confirmed, (\d+) are not, (\d+) cannot", (ROOT / "README.md").read_text()
    )
    assert numbers.groups() == said.groups()
