"""The sweeps are complete: their domains, algorithms and cases exist."""

import csv
import hashlib
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gosprl.experiments.algorithms import ALGORITHMS, FITTED, STATED
from gosprl.experiments.catalogue import EXPERIMENTS
from gosprl.experiments.sweep import quick

ROOT = Path(__file__).parents[2]
REPRODUCTION = ROOT / "docs" / "reproduction"
EACH = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)


def test_order():
    names = "table-dynamics table-costs fig-treasure fig-treasure-more fig-garnet fig-modest fig-diameter fig-states"
    assert list(EXPERIMENTS) == [*names.split(), "fig-aggregation", "fig-variants"]
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


@EACH
def test_algorithms_exist_and_look_different(experiment):
    looks = [((each.color, str(each.line)), each.label) for each in map(ALGORITHMS.get, experiment.algorithms)]
    assert len({look for look, _ in looks}) == len({label for _, label in looks}) == len(looks)
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


@EACH
def test_every_experiment_is_made_at_both_widths(experiment):
    assert experiment.widths == (STATED, FITTED)
    with_sets = [name for name in experiment.algorithms if "scale" in ALGORITHMS[name].options]
    assert "gosprl" in with_sets
    added = set(experiment.all_algorithms) - set(experiment.algorithms)
    assert added == {f"{name}-fitted" for name in with_sets}


def test_the_fitted_width_scales_the_logarithm_and_differs_in_nothing_else():
    for name, algorithm in ALGORITHMS.items():
        if name.endswith("-fitted"):
            stated = ALGORITHMS[name.removesuffix("-fitted")]
            assert dict(algorithm.options) == {**stated.options, "linear_scale": 0.01}
            assert replace(algorithm, options=stated.options) == stated
            # a logarithm times x is a square root times sqrt(x) and a linear term times x
            assert algorithm.options["scale"] ** 2 == pytest.approx(algorithm.options["linear_scale"])
    assert "fitted to Table 2" in FITTED.title
    assert "fitted to Table 2" in FITTED.short


def test_importing_the_catalogue_leaves_matplotlib_alone():
    code = (
        "import sys; import gosprl.experiments.catalogue, gosprl.experiments.page; "
        "sys.exit(any(name.split('.')[0] in ('matplotlib', 'markdown_it') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@EACH
def test_the_committed_reproduction_is_of_these_sweeps(experiment):
    with (REPRODUCTION / experiment.name / "summary.csv").open() as file:
        made = Counter((row["case"], row["algorithm"], int(row["runs"])) for row in csv.DictReader(file))
    runs = int(re.search(r"`gosprl reproduce all --runs (\d+)`", (REPRODUCTION / "index.md").read_text()).group(1))
    labels = [ALGORITHMS[name].label for name in experiment.all_algorithms]
    seeds = len(experiment.seeds(runs))
    assert made == Counter((case.title, label, seeds) for case in experiment.cases for label in labels)
    kept = {path.name for path in (REPRODUCTION / experiment.name).iterdir()}
    assert kept == {"figure.png", "figure-fitted.png", "summary.csv"}  # `reproduce` makes the others


def out_of_date(folder):
    """The pictures in a folder that show other numbers than its table has."""
    digest = hashlib.sha256((folder / "summary.csv").read_bytes()).hexdigest()
    return [picture.name for picture in folder.glob("*.png") if digest not in Image.open(picture).text.get("Shows", "")]


@EACH
def test_figures_show_the_committed_numbers(experiment, tmp_path):
    folder = REPRODUCTION / experiment.name
    assert out_of_date(folder) == []
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "summary.csv").write_bytes((folder / "summary.csv").read_bytes() + b"\n")
    assert sorted(out_of_date(tmp_path)) == ["figure-fitted.png", "figure.png"]


def test_the_summary_counts_the_verdicts_of_the_committed_page():
    numbers = re.findall(
        r"(\d+) claims of the paper: (\d+) confirmed, (\d+) not confirmed, (\d+) undecided, (\d+) not comparable",
        (REPRODUCTION / "index.md").read_text(),
    )
    said = re.findall(
        r"of (\d+) claims (\d+) are confirmed, (\d+) are not, (\d+) are undecided, (\d+) cannot",
        " ".join((ROOT / "docs/paper.md").read_text().split()),
    )
    assert len(numbers) == 2
    assert numbers == said
