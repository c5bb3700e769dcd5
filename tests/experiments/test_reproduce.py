"""`reproduce` on experiments that take a second: no run is made twice, deleted or overwritten."""

import json
import math
import os
import signal
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from small_catalogue import EASY, ENDLESS, ERROR, GOOD, HARD, dies_on_seed_1, fails_on_seed_1, files, modules

import gosprl
from gosprl.experiments import reproduce as engine
from gosprl.experiments import store, sweep
from gosprl.experiments.algorithms import FITTED, STATED
from gosprl.experiments.reproduce import reproduce
from gosprl.experiments.sweep import PILOT, Case, Job

pytestmark = pytest.mark.usefixtures("catalogue")


@pytest.fixture
def catalogue(monkeypatch):
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def made(monkeypatch):
    """Record the jobs that are executed, in order."""
    jobs = []

    def execute(job):
        jobs.append(job)
        return sweep.execute(job)

    monkeypatch.setattr(engine, "execute", execute)
    return jobs


def one(names, out, **options):
    return reproduce(names, out=out, workers=1, **{"runs": 2, **options})


def stored_runs(out):
    return {name: content for name, content in files(out).items() if "/runs/" in name}


def test_the_same_bytes_with_one_and_with_two_workers(tmp_path):
    calls = []
    single = one(GOOD, tmp_path / "one", runs=3)
    reproduce(GOOD, out=tmp_path / "two", runs=3, workers=2, progress=lambda *call: calls.append(call))
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert all(not report.failed for report in single)
    number = {"river": 2 * (PILOT + 3), "trap": PILOT + 3, "error": 3}
    assert store.counts(tmp_path / "two") == number
    for name in GOOD:
        there = {file.name for file in (tmp_path / "two" / name).iterdir()}
        assert there == {"runs", "drawn.json", "figure.png", "figure.pdf", "summary.csv", "runs.csv"}
    total = sum(number.values())
    assert [call[:2] for call in calls] == [(done, total) for done in range(total + 1)]
    assert calls[0][2] == ""
    assert {call[2] for call in calls[1:]} >= {
        "river/easy/random/2",
        "trap/trap/gosprl-costs/0",
        "error/error/gosprl/1",
    }


def test_reports_hold_the_runs_asked_for(tmp_path):
    (report,) = one("river", tmp_path, runs=2)
    assert (report.experiment.name, report.runs, report.failed, report.quick) == ("river", 2, (), False)
    assert set(report.results) == {(case, name) for case in ("easy", "hard") for name in ("gosprl", "random")}
    for runs in report.results.values():
        assert [run.seed for run in runs] == [0, 1]


def test_rivals_are_stopped_at_ten_times_the_mean_of_the_pilots(tmp_path):
    (report,) = one("river", tmp_path, runs=7)
    for case in ("easy", "hard"):
        steps = report.results.steps(case, "gosprl")[:PILOT]
        assert {run.max_steps for run in report.results[case, "gosprl"]} == {None}
        assert {run.max_steps for run in report.results[case, "random"]} == {math.ceil(10 * steps.mean())}
        assert all(run.met or run.steps == run.max_steps for run in report.results[case, "random"])


def test_both_widths_share_what_has_no_sets_and_are_stopped_by_their_own_reference(tmp_path, made):
    (report,) = one("widths", tmp_path, runs=6)
    names = ("gosprl", "gosprl-fitted", "zero-ucrl", "zero-ucrl-fitted", "random")
    assert set(report.results) == {("easy", name) for name in names}
    assert len(made) == 5 * 6
    limits = {}
    for name in ("gosprl", "gosprl-fitted"):
        steps = report.results.steps("easy", name)[:PILOT]
        limits[name] = math.ceil(10 * steps.mean())
    assert limits["gosprl"] != limits["gosprl-fitted"]
    stopped_at = {name: {run.max_steps for run in report.results["easy", name]} for name in names}
    assert stopped_at["gosprl"] == stopped_at["gosprl-fitted"] == {None}
    assert stopped_at["zero-ucrl"] == stopped_at["random"] == {limits["gosprl"]}
    assert stopped_at["zero-ucrl-fitted"] == {limits["gosprl-fitted"]}
    assert report.at(FITTED)["easy", "random"] is report.at(STATED)["easy", "random"]
    assert report.at(FITTED)["easy", "gosprl"] is report.results["easy", "gosprl-fitted"]
    there = {file.name for file in (tmp_path / "widths").iterdir()}
    figures = {f"{name}.{kind}" for name in ("figure", "figure-fitted") for kind in ("png", "pdf")}
    assert there == {"runs", "drawn.json", "summary.csv", "runs.csv", *figures}
    fitted = json.loads((tmp_path / "widths/runs/easy/gosprl-fitted/0.json").read_text())
    assert fitted["job"]["options"]["linear_scale"] == 0.01


def test_attempts_and_the_unevenness_of_visits_are_recorded():
    """Attempts that ended are some of those made, and shares of visits differ from needed ones by at most 1."""
    run = sweep.execute(Job(EASY, "gosprl", 0))
    assert 0 < run.reached <= run.ended <= run.attempts
    assert 0 < run.uneven < 1
    assert sweep.unevenness(np.array([4, 4]), np.array([1, 1])) == 0
    assert sweep.unevenness(np.array([3, 1]), np.array([1, 1])) == pytest.approx(0.25)
    assert sweep.unevenness(np.array([4, 0]), np.array([0, 1])) == 1


def test_visit_driven_costs_change_the_walk():
    """The costs differ from 1 once a state has more than its share of the visits, and then some path is another."""
    plain, square, kl = (sweep.execute(Job(HARD, name, 3)) for name in ("gosprl", "gosprl-square", "gosprl-kl"))
    assert plain.met
    assert square.met
    assert kl.met
    assert len({run.curve.tobytes() for run in (plain, square, kl)}) > 1


def test_need_of_each_state():
    toy = Case("toy", "Toy", "toy3", (("nu", 0.5),), need=10)  # 1, 1 and 2 actions
    assert sweep.needed_by_state(toy, toy.mdp()).tolist() == [10, 10, 20]


def test_pilots_first_then_all_cases_by_turns(tmp_path, made):
    one(["trap", "river"], tmp_path, runs=2)
    pilots, rest = made[: 3 * PILOT], made[3 * PILOT :]
    assert {job.algorithm for job in pilots} == {"gosprl"}
    assert [job.seed for job in pilots] == sorted([*range(PILOT)] * 3)
    assert [(job.case.name, job.seed) for job in rest] == [
        (case, seed) for seed in range(2) for case in ("easy", "hard", "trap")
    ]


def test_more_runs_make_only_the_new_ones(tmp_path, made):
    one("trap", tmp_path, runs=2)
    before, number = stored_runs(tmp_path), len(made)
    assert number == PILOT + 2
    one("trap", tmp_path, runs=2)
    assert len(made) == number
    one("trap", tmp_path, runs=6)
    new = [(job.algorithm, job.seed) for job in made[number:]]
    assert sorted(new) == [("gosprl", 5), *(("gosprl-costs", seed) for seed in (2, 3, 4, 5))]
    assert before.items() <= stored_runs(tmp_path).items()


@pytest.mark.parametrize("after", [2, PILOT + 4])
def test_what_was_interrupted_goes_on(tmp_path, made, after):
    def interrupt(done, total, name):
        if done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one(["trap", "error"], tmp_path / "a", runs=3, progress=interrupt)
    assert len(stored_runs(tmp_path / "a")) == len(made) == after
    one(["trap", "error"], tmp_path / "a", runs=3)
    assert len(made) == PILOT + 3 + 3
    one(["trap", "error"], tmp_path / "b", runs=3)
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.parametrize("case", [ENDLESS, replace(ERROR, horizon=10**12)], ids=["collecting", "measuring"])
def test_an_interrupted_run_is_no_run(case):
    """`collect` returns a result at Ctrl-C, which must not be stored as a run that was stopped at max_steps."""
    sweep.execute(Job(replace(case, horizon=min(100, case.horizon)), "gosprl", 0, max_steps=10))  # compiles

    def interrupt():
        while not gosprl.progress._walking:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sweep.execute(Job(case, "random" if case is ENDLESS else "gosprl", 0, max_steps=None))
    thread.join()


def test_a_run_that_fails_is_reported_and_tried_again(tmp_path, made):
    one("failing", tmp_path, runs=1)
    before = stored_runs(tmp_path)
    (report,) = one("failing", tmp_path, runs=3)
    assert [line.partition(":")[0] for line in report.failed] == [f"no-map/gosprl-costs/{seed}" for seed in range(3)]
    assert all("AssertionError" in line for line in report.failed)
    assert (len(report.results["no-map", "gosprl"]), report.results["no-map", "gosprl-costs"]) == (3, [])
    assert stored_runs(tmp_path) == before
    assert store.counts(tmp_path) == {"failing": PILOT}
    made.clear()
    one("failing", tmp_path, runs=3)
    assert [job.algorithm for job in made] == ["gosprl-costs"] * 3


def test_without_a_pilot_its_rivals_cannot_be_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "execute", fails_on_seed_1)
    calls = []
    (report,) = one("river", tmp_path, runs=6, progress=lambda *call: calls.append(call))
    failed = dict(line.split(": ", 1) for line in report.failed)
    assert failed["easy/gosprl/1"] == "InputError: seed 1 is refused"
    assert {run for run, why in failed.items() if "max_steps is unknown" in why} == {
        f"{case}/random/{seed}" for case in ("easy", "hard") for seed in range(6)
    }
    assert len(failed) == 14
    assert [run.seed for run in report.results["easy", "gosprl"]] == [0, 2, 3, 4, 5]
    assert calls[-1][:2] == (24, 24)


def test_the_next_call_makes_what_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "execute", fails_on_seed_1)
    one("trap", tmp_path / "a", runs=3)
    monkeypatch.setattr(engine, "execute", sweep.execute)
    assert one("trap", tmp_path / "a", runs=3)[0].failed == ()
    one("trap", tmp_path / "b", runs=3)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_a_worker_that_dies_takes_only_its_run_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "execute", dies_on_seed_1)
    (report,) = reproduce("error", out=tmp_path, runs=4, workers=2)
    assert [line.partition(":")[0] for line in report.failed] == ["error/gosprl/1"]
    assert "ended abruptly" in report.failed[0]
    assert [run.seed for run in report.results["error", "gosprl"]] == [0, 2, 3]


def test_an_analysis_that_fails_does_not_lose_the_others(tmp_path):
    river, unjudged = one(["river", "unjudged"], tmp_path)
    assert river.failed == ()
    assert unjudged.failed == ("analysis: ArithmeticError: too few runs",)
    assert len(unjudged.results["easy", "gosprl"]) == 2
    page = (tmp_path / "index.html").read_text()
    assert "river: 2 runs" in page
    assert "unjudged:" not in page
    assert not (tmp_path / "unjudged" / "figure.png").exists()


def test_without_any_run_there_is_nothing_to_draw(tmp_path, monkeypatch):
    def fails(job):
        raise ValueError("never")

    monkeypatch.setattr(engine, "execute", fails)
    (report,) = one("error", tmp_path)
    assert report.failed == (
        "error/gosprl/0: ValueError: never",
        "error/gosprl/1: ValueError: never",
        "analysis: InputError: there is no run to draw",
    )
    assert not (tmp_path / "index.html").exists()


def test_the_page_has_what_earlier_calls_drew(tmp_path, made):
    one("trap", tmp_path, runs=3)
    figure = (tmp_path / "trap" / "figure.png").read_bytes()
    number = len(made)
    one("error", tmp_path, runs=2)
    assert len(made) == number + 2
    assert (tmp_path / "index.html").read_text().splitlines() == [
        "gosprl reproduce error --runs 2",
        "trap: 3 runs, failed: []",
        "error: 2 runs, failed: []",
    ]
    assert (tmp_path / "trap" / "figure.png").read_bytes() == figure


def test_quick_is_small_and_has_a_directory_of_its_own(tmp_path):
    river, error = one(["error", "river"], tmp_path, runs=None, quick=True)
    assert (river.runs, river.quick) == (2, True)
    assert set(river.results) == {("easy", "gosprl"), ("easy", "random")}
    assert error.results.steps("error", "gosprl").tolist() == [20, 20]
    assert (tmp_path / "index.html").read_text().startswith("gosprl reproduce river error --runs 2 --quick\n")
    before = files(tmp_path)
    with pytest.raises(gosprl.InputError, match="has quick True, expected False"):
        one("error", tmp_path)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": "fig-treasures"}, "names: 'fig-treasures' is not known; known are all, endless, error, failing"),
        ({"names": ["river", "lake"]}, "names: 'lake' is not known"),
        ({"names": []}, "names: '' is not known"),
        ({"runs": 0}, "runs: expected a whole number >= 1, got 0"),
        ({"runs": 2.5}, "runs: expected a whole number >= 1, got 2.5"),
        ({"workers": 0}, "workers: expected a whole number >= 1, got 0"),
        ({"workers": -1}, "workers: expected a whole number >= 1, got -1"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_run_or_written(tmp_path, made, arguments, message):
    with pytest.raises(gosprl.InputError) as error:
        reproduce(**{"names": "river", "out": tmp_path / "out", "workers": 1, **arguments})
    assert str(error.value).startswith(message)
    assert not (tmp_path / "out").exists()
    assert made == []


def test_a_directory_that_is_not_ours_is_refused_before_anything_is_run_or_written(tmp_path, made):
    (tmp_path / "thesis.tex").write_text("dear")
    before = files(tmp_path)
    with pytest.raises(gosprl.InputError, match="with other files"):
        one("river", tmp_path)
    with pytest.raises(gosprl.InputError, match="got the file"):
        one("river", tmp_path / "thesis.tex")
    assert files(tmp_path) == before
    assert made == []


def test_without_matplotlib_nothing_is_run_or_written(tmp_path, made, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(gosprl.InputError, match=r"pip install 'gosprl\[experiments\]'"):
        one("river", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert made == []


@pytest.mark.parametrize("asked", ["trap", "error"], ids=["asked for", "drawn before"])
def test_runs_of_another_definition_are_neither_used_nor_overwritten(tmp_path, made, asked):
    one("trap", tmp_path)
    file = tmp_path / "trap/runs/trap/gosprl-costs/1.json"
    data = json.loads(file.read_text())
    data["job"]["trap_cost"] = 5.0
    file.write_text(json.dumps(data))
    before = files(tmp_path)
    made.clear()
    with pytest.raises(gosprl.InputError) as error:
        one(asked, tmp_path)
    assert f"{file} has job.trap_cost 5.0, expected 10.0; give another --out, or remove {tmp_path / 'trap'}" in str(
        error.value
    )
    assert files(tmp_path) == before
    assert made == []


def test_every_experiment(tmp_path, monkeypatch):
    name = "gosprl.experiments.catalogue"
    monkeypatch.setitem(sys.modules, name, modules(GOOD)[name])
    assert [report.experiment.name for report in one("all", tmp_path, runs=1)] == list(GOOD)
    assert (tmp_path / "index.html").read_text().startswith("gosprl reproduce all --runs 1\n")
