"""`gosprl report`, and `--report` of `collect` and `resume`."""

import json

import pytest
import typer
from typer.testing import CliRunner

import gosprl
from gosprl.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def directory(tmp_path):
    gosprl.collect("riverswim6", 3, seed=0, out=tmp_path / "river")
    return tmp_path / "river"


def test_a_page_appears_beside_the_run_and_can_be_opened(directory, monkeypatch):
    opened = []
    monkeypatch.setattr(typer, "launch", opened.append)
    done = run("report", directory, "--open")
    assert done.exit_code == 0, done.output
    page = directory.with_name("river.html")
    assert opened == [page.as_uri()]
    assert "<title>riverswim6: report</title>" in page.read_text()
    assert sorted(path.name for path in directory.parent.iterdir()) == ["river", "river.html"]


@pytest.mark.parametrize(("inside", "given"), [(".", "."), ("log", ".."), (".", "../river"), ("..", "river/")])
def test_a_page_appears_beside_the_run_however_that_is_named(directory, monkeypatch, inside, given):
    monkeypatch.chdir(directory / inside)
    done = run("report", given)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in directory.parent.iterdir()) == ["river", "river.html"]


def test_a_damaged_run_has_a_page_and_status_1(directory, tmp_path):
    (directory / "certificate.json").write_text("{}")
    done = run("report", directory, "--out", tmp_path / "x.html", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert "certificate.json" in told["problems"][0]
    assert told["file"] == str(tmp_path / "x.html")
    assert "Damaged: " in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize("what", ["nowhere", "empty", "a file", "no page", "/"])
def test_what_cannot_be_shown_is_an_error_with_status_2(what, tmp_path, directory):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a file").write_text("x")
    given = (directory, "--out", tmp_path / "x.txt") if what == "no page" else (tmp_path / what,)
    before = sorted(tmp_path.iterdir())
    done = run("report", *given)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "expected" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_collect_writes_a_page_of_its_result_or_of_its_run(tmp_path):
    asked = ("collect", "riverswim6", "--need", 3, "--seed", 0, "--json")
    alone = run(*asked, "--report", tmp_path / "alone.html")
    assert alone.exit_code == 0, alone.output
    assert "certificate" not in (tmp_path / "alone.html").read_text().partition("<main")[2].partition("</main>")[0]
    kept = run(*asked, "--report", tmp_path / "kept.html", "--out", tmp_path / "run")
    assert kept.exit_code == 0, kept.output
    assert f"gosprl verify {tmp_path / 'run'}" in (tmp_path / "kept.html").read_text()
    assert json.loads(alone.stdout) == json.loads(kept.stdout)


def test_collect_refuses_before_it_walks(tmp_path, monkeypatch):
    monkeypatch.setattr(gosprl, "collect", lambda *given, **options: pytest.fail("walked"))
    done = run("collect", "riverswim6", "--report", tmp_path / "nowhere" / "x.html")
    assert done.exit_code == 2
    assert "existing directory" in done.stderr


def test_resume_writes_the_page_of_an_answer(tmp_path):
    river = gosprl.envs.make("riverswim6")
    gosprl.applications.estimate_rewards(river, epsilon=0.5, seed=0, out=tmp_path / "run")
    done = run("resume", tmp_path / "run", "--report", tmp_path / "answer.html")
    assert done.exit_code == 0, done.output
    assert 'id="the-answer"' in (tmp_path / "answer.html").read_text()


def test_applications_write_pages_of_their_answers(tmp_path, monkeypatch):
    asked = ("estimate-rewards", "riverswim6", "--epsilon", 0.5, "--seed", 0)
    done = run(*asked, "--report", tmp_path / "answer.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "answer.html").read_text()
    assert 'id="the-answer"' in page
    assert "the mean reward of each pair" in page
    monkeypatch.setattr(gosprl.applications, "estimate_rewards", lambda *given, **options: pytest.fail("walked"))
    assert run(*asked, "--report", tmp_path / "answer.txt").exit_code == 2
