"""Pages of runs on disk: finished, unfinished, damaged, of a fleet, and of applications."""

import json

import numpy as np
import pytest
from forged import reseal
from pages import page_of

import gosprl
from gosprl.report.from_run import of_run
from gosprl.report.writing import page_of as made
from gosprl.runs.settings import Out


def at(curve, steps):
    """The proportion met at each of `steps`."""
    return curve["proportion"][np.maximum(np.searchsorted(curve["step"], steps, side="right") - 1, 0)]


def flip(file, place):
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("name", ["four_room43", "FrozenLake-v1"])
def test_a_run_on_disk_shows_what_its_result_shows(name, tmp_path):
    result = gosprl.collect(name, 5, seed=0, out=tmp_path)
    found = of_run(tmp_path)
    assert np.array_equal(found.counts, result.counts)
    assert np.array_equal(found.need[0], result.need[0])
    assert (found.steps, found.attempts, found.stop, found.seed) == (result.steps, result.attempts, "met", 0)
    assert (found.states, found.pairs, found.start) == (result.states, result.pairs, result.start)
    assert found.limit == (result.limit, result.limit_of)
    assert not found.problems
    steps = np.linspace(0, result.steps, 300)
    assert np.abs(at(found.curve, steps) - at(result.curve, steps)).max() < 0.05  # states are discovered between plans
    assert at(found.curve, [result.steps]) == 1


def test_a_finished_run_has_its_certificate_and_the_command_that_runs_it_again(tmp_path):
    gosprl.collect("riverswim6", 4, seed=3, out=tmp_path / "run")
    page = page_of(tmp_path / "run")
    assert {"certificate", "run-it-again"} <= set(page.headings)
    assert f"gosprl verify {tmp_path / 'run'}" in page.text
    assert "gosprl collect riverswim --set states=6 --need 4 --strategy guarded --seed 3" in page.text


def test_what_happened_to_a_run_is_said_if_something_happened(tmp_path):
    gosprl.collect("riverswim6", 4, seed=3, max_steps=20, out=tmp_path)
    assert not {"legs", "continued"} & dict(of_run(tmp_path).facts).keys()
    gosprl.resume(tmp_path, need=6, max_steps=10**6)
    facts = dict(of_run(tmp_path).facts)
    assert facts["continued"].endswith("at event 21")  # 20 steps, and the reset that they began with
    assert "6 samples of each pair from event 21" in facts["legs"]


def test_an_unfinished_run_says_so(tmp_path):
    result = gosprl.collect("room20", 20, seed=0, max_steps=300, out=Out(tmp_path, sync_steps=50))
    (tmp_path / "certificate.json").unlink()
    page = page_of(tmp_path)
    assert "unfinished" in page.text
    assert f"gosprl resume {tmp_path}" in page.text
    assert "There is none: a certificate is written when a run ends." in page.text
    found = of_run(tmp_path)
    assert np.array_equal(found.counts, result.counts)
    assert len(found.unmet) == len(result.unmet)


def test_a_run_that_is_being_written_is_shown_as_far_as_it_is(tmp_path):
    pages, mdp = [], gosprl.envs.make("room20")

    def need(model):  # evaluated in the middle of the run, however fast it is
        if model.visits.sum() > 1000 and not pages:
            pages.append(page_of(tmp_path))
        return np.full((20, 4), 20)

    assert gosprl.collect(mdp, need, seed=0, out=Out(tmp_path, sync_steps=50)).steps > 1500
    [page] = pages
    assert "A process is writing to it now." in page.text
    assert not [row for row in page.rows if row[:1] == ["100%"] and row[1] != "not reached"]


def test_of_a_damaged_run_what_comes_before_the_damage_is_shown(tmp_path):
    whole = gosprl.collect("room20", 20, seed=0, out=Out(tmp_path, sync_steps=50))
    [log] = tmp_path.glob("log/*.arrow")
    flip(log, log.stat().st_size // 2)
    found = of_run(tmp_path)
    assert 0 < found.counts.sum() < whole.steps
    page = page_of(tmp_path)
    assert "damaged" in page.text
    assert found.problems[0] in page.text
    assert {"coverage", "visits"} <= set(page.headings)


def test_without_a_manifest_a_page_says_what_is_known(tmp_path):
    gosprl.collect("riverswim6", 4, seed=3, out=tmp_path)
    flip(tmp_path / "manifest.json", 100)
    page = made(tmp_path)
    assert page.problems
    assert "Without it, its numbers have no meaning" in page.html
    assert page_of(tmp_path).charts == []


def test_a_damaged_certificate_is_no_certificate(tmp_path):
    gosprl.collect("riverswim6", 4, seed=3, out=tmp_path)
    (tmp_path / "certificate.json").write_text("{}")
    page = page_of(tmp_path)
    assert "certificate.json" in page.text
    assert "There is none" in page.text


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.clear(),
        lambda value: value.update(unmet=[[0, 0, 10**30, 0]]),
        lambda value: value.update(unreachable=[["x", 1]]),
        lambda value: value.update(attempts="many"),
        lambda value: value.update(unseen="much"),
        lambda value: value.pop("unmet"),
        lambda value: value.pop("stop"),
    ],
)
def test_what_is_sealed_as_a_certificate_but_is_none_is_damage(tmp_path, change):
    gosprl.applications.estimate_rewards(gosprl.envs.make("riverswim6"), epsilon=0.5, seed=0, out=tmp_path)
    reseal(tmp_path / "certificate.json", change)
    page = made(tmp_path)
    (problem,) = page.problems
    assert problem.startswith(("certificate.json: no certificate is like this", "certificate.json: it is not that of"))
    assert "There is none" in page_of(tmp_path).text


def test_a_certified_need_that_does_not_fit_is_not_shown(tmp_path):
    gosprl.applications.estimate_rewards(gosprl.envs.make("riverswim6"), epsilon=0.5, seed=0, out=tmp_path)
    reseal(tmp_path / "certificate.json", lambda value: value["need"]["pairs"][0].__setitem__(0, 10**30))
    assert of_run(tmp_path).need is None


def test_names_in_files_that_somebody_else_wrote_stay_text(tmp_path):
    gosprl.collect("riverswim6", 4, seed=3, out=tmp_path)
    bad = "<script>alert(1)</script>"

    def change(manifest):
        manifest["system"]["name"] = bad
        manifest["legs"][-1]["strategy"]["name"] = bad

    reseal(tmp_path / "manifest.json", change)
    page = page_of(tmp_path)
    assert bad in page.text
    assert len(page.scripts) == 3


def test_of_a_fleet_each_walker_is_shown(tmp_path):
    result = gosprl.collect("FrozenLake-v1", 3, seed=0, workers="threads:2", out=tmp_path)
    found = of_run(tmp_path)
    assert sum(walker.steps for walker in found.walkers) == result.steps
    assert np.array_equal(found.counts, result.counts)
    assert found.curve["proportion"][-1] == 1
    assert found.curve["step"][-1] <= result.steps
    page = page_of(tmp_path)
    assert "walkers" in page.headings
    bars = next(page.values(i) for i in range(len(page.charts)) if "walker" in page.values(i)[0].get("s", ""))
    assert sum(bar["v"] for bar in bars) == result.steps


def test_of_an_application_the_way_to_its_answer_is_named(tmp_path):
    answer = gosprl.applications.estimate_rewards(gosprl.envs.make("riverswim6"), epsilon=0.5, seed=0, out=tmp_path)
    page = page_of(tmp_path)
    assert f"gosprl resume {tmp_path} --report FILE.html" in page.text
    assert "estimate_rewards(" in page.text
    found = of_run(tmp_path)
    assert np.array_equal(found.need[0], answer.collected.need[0])
    assert json.loads((tmp_path / "certificate.json").read_text())["steps"] == found.steps
