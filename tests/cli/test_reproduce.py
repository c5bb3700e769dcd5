"""`gosprl reproduce` on a small catalogue: what it prints, and how it ends."""

import csv
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import warmed
from small_catalogue import files, modules
from typer.testing import CliRunner

from gosprl.cli.app import app
from gosprl.experiments import store
from gosprl.experiments.catalogue import EXPERIMENTS
from gosprl.experiments.sweep import PILOT


@pytest.fixture
def catalogue(monkeypatch):
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def words(text):
    return " ".join(text.split())


def row(done, name):
    """The numbers of an experiment in the table."""
    return next(line.split()[1:] for line in done.stdout.splitlines() if line.split()[:1] == [name])


@pytest.mark.usefixtures("catalogue")
def test_it_says_what_was_made_and_where_it_is(tmp_path):
    out = tmp_path / "out"
    done = run("trap", "error", "--runs", 3, "--workers", 1, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert row(done, "trap") == [str(PILOT + 3), str(PILOT + 3), "2", "0", "0", "1"]
    assert row(done, "error") == ["3", "3", "2", "0", "0", "1"]
    assert f"page: {out / 'index.html'}" in done.stdout.replace("\n", "")
    shown = [line.split(" runs")[0] for line in done.stderr.splitlines() if " of 11 runs" in line]
    assert shown[0] == "0 of 11"
    assert shown[-1] == "11 of 11"
    assert 9 <= len(shown) <= 11
    before = files(out)
    again = run("trap", "error", "--runs", 3, "--workers", 1, "--out", out)
    assert again.exit_code == 0
    assert row(again, "trap") == ["0", str(PILOT + 3), "2", "0", "0", "1"]
    assert files(out) == before


@pytest.mark.usefixtures("catalogue")
def test_verdicts_of_both_widths_are_counted(tmp_path):
    done = run("widths", "--runs", 1, "--workers", 1, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert " ".join(row(done, "widths")[2:]) == "2 / 2 0 / 0 0 / 0 1 / 1"
    assert "fitted to Table 2" in words(done.stdout)


@pytest.mark.usefixtures("catalogue")
def test_what_failed_is_said_and_the_status_is_1(tmp_path):
    done = run("failing", "unjudged", "trap", "--runs", 12, "--workers", 1, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "failed: failing: no-map/gosprl-costs/0: AssertionError" in words(done.stderr)
    assert "failing: and 2 more failures" in words(done.stderr)
    assert "failed: unjudged: analysis: ArithmeticError: too few runs" in words(done.stderr)
    assert row(done, "unjudged")[2:] == ["-", "-", "-", "-"]
    assert row(done, "trap")[2:] == ["2", "0", "0", "1"]


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lake"], "names: 'lake' is not known; known are all, endless, error, failing, river, trap, unjudged, widths"),
        (["river", "--runs", "0"], "runs: expected a whole number >= 1, got 0"),
        (["river", "--workers", "-1"], "workers: expected a whole number >= 1, got -1"),
        (["river", "--runs", "many"], "--runs"),
        ([], "NAME|all"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(tmp_path, arguments, message):
    done = run(*arguments, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in words(done.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("catalogue")
def test_a_directory_that_is_not_ours_exits_with_2(tmp_path):
    (tmp_path / "thesis.tex").write_text("dear")
    before = files(tmp_path)
    done = run("river", "--out", tmp_path)
    assert done.exit_code == 2
    assert "give another --out" in words(done.stderr)
    assert run("river", "--out", tmp_path / "thesis.tex").exit_code == 2
    assert files(tmp_path) == before


@pytest.mark.usefixtures("catalogue")
def test_without_matplotlib_it_exits_with_2(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("river", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "pip install 'gosprl[experiments]'" in words(done.stderr)
    assert not (tmp_path / "out").exists()


def test_ctrl_c_keeps_what_is_there_ends_all_processes_and_exits_with_130(tmp_path):
    """SIGINT goes to all processes at once, as from a terminal, while one of them is in a run that never ends."""
    code = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
if __name__ == "__main__":
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})
    import small_catalogue
    sys.modules.update(small_catalogue.modules())
    from gosprl.cli.app import main
    main()
"""
    arguments = ["reproduce", "endless", "--runs", "2", "--workers", "2", "--out", str(tmp_path / "out")]
    process = warmed.Popen(
        [sys.executable, "-c", code, *arguments], stderr=warmed.PIPE, text=True, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 6000
        while store.counts(tmp_path / "out") != {"endless": 2}:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=600)
        while _alive(process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        if _alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 130, told
    assert f"interrupted: 2 runs are stored in {tmp_path / 'out'}; the same command continues" in words(told)
    assert "Traceback" not in told
    assert sorted(store.counts(tmp_path / "out").items()) == [("endless", 2)]


def _alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_help_names_every_experiment():
    catalogue = pytest.importorskip("gosprl.experiments.catalogue")
    done = run("--help")
    assert done.exit_code == 0
    for name in catalogue.EXPERIMENTS:
        assert f" {name}" in words(done.stdout)


def test_a_quick_look_at_all_experiments_makes_every_figure_and_table(tmp_path):
    """The real catalogue: every sweep, every figure, every claim."""
    out = tmp_path / "look"
    command = [
        sys.executable,
        "-c",
        "from gosprl.cli import main; main()",
        "reproduce",
        "all",
        "--quick",
        "--runs",
        "1",
        "--workers",
        "1",
        "--out",
        str(out),
    ]
    done = warmed.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (out / "index.md").read_text()
    for name, experiment in EXPERIMENTS.items():
        for figure in ("figure", "figure-fitted"):
            assert (out / name / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
            assert (out / name / f"{figure}.pdf").read_bytes().startswith(b"%PDF")
        assert f"## {experiment.title}" in page
        with (out / name / "summary.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(experiment.quick) * len(experiment.all_algorithms)
        assert {row["runs"] for row in rows} == {"1"}
