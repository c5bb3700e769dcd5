"""The command line teaches: what to do first, examples that run, the nearest name, completion, compilation.

Examples are those of `--help`. They run in one directory, in the order of `ORDER`: later ones use what earlier ones
wrote. What they need besides is in `place`.
"""

import re
import sys

import pytest
from documented import COMMANDS, furnish, invoke
from typer.testing import CliRunner

from gosprl.cli.app import FIRST, app

EXAMPLE = re.compile(r"Example: `(gosprl [^`]*)`")
ORDER = ("collect", "show", "export", "convert", "watch", "verify", "resume", "repair")
ELSEWHERE = {  # run by other tests, or too long for this one: what covers it
    "gosprl collect FrozenLake-v1 --need 20 --seed 0 --workers 2": "tests/fleet",
    "gosprl collect Blackjack-v1 --need 3 --resets anytime --seed 0": "tests/test_docs.py",
    "gosprl resume runs/lake": "tests/cli/test_runs.py: it asks",
    "gosprl resume runs/lake --workers 8": "tests/runs",
    "gosprl resume runs/policy --report policy.html": "tests/cli/test_reporting.py",
    "gosprl export runs/lake datasets/gosprl/lake-v0 --to minari": "tests/exchange",
    "gosprl compare riverswim6 --need 10 --runs 20 --csv runs.csv --picture runs.png": "tests/cli/test_comparing.py",
    "gosprl compare four_room43 --strategies guarded,gosprl,random --need 2 --runs 4": "tests/cli/test_comparing.py",
    "gosprl probe Blackjack-v1 --need 5 --max-steps 20000 --json": "tests/cli/test_probe.py",
    "gosprl reproduce fig-garnet --quick --out look": "tests/cli/test_reproduce.py",
    "gosprl reproduce all --runs 30 --out reproduction": "make reproduce",
    "gosprl serve --need 10 --actions 4 --socket 127.0.0.1:7000 --save samples.npz": "tests/cli/test_serve.py",
}
NEVER_RUN = {"compare", "reproduce", "serve"}  # verbs whose examples are all in ELSEWHERE


def examples(verb):
    return EXAMPLE.findall(COMMANDS[verb].help)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with the files that examples name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("typer.launch", lambda address: 0)
    furnish(tmp_path)


def test_every_verb_has_an_example():
    assert [verb for verb in COMMANDS if not examples(verb)] == []
    every = {example for verb in COMMANDS for example in examples(verb)}
    assert set(ELSEWHERE) <= every
    run = {example.split()[1] for example in every - set(ELSEWHERE)}
    assert run == set(COMMANDS) - NEVER_RUN


def test_examples_run(place):
    verbs = [*ORDER, *(verb for verb in COMMANDS if verb not in ORDER)]
    for command in dict.fromkeys(example for verb in verbs for example in examples(verb)):
        if command in ELSEWHERE:
            continue
        done = invoke(command)
        assert done.exit_code == 0, f"{command}: {done.output}"


def test_alone_it_says_what_to_do_first_and_that_works(place):
    done = invoke("gosprl")
    assert (done.exit_code, done.output.strip()) == (0, FIRST)
    commands = [line.split("  ")[1] for line in FIRST.splitlines() if line.startswith("  gosprl ")]
    assert len(commands) == 4
    for command in commands:
        assert invoke(command).exit_code == 0, command


@pytest.mark.parametrize(
    ("command", "nearest"),
    [
        ("gosprl colect toy3", "'collect'"),
        ("gosprl collect four_rom43", "did you mean 'four_room43'?"),
        ("gosprl collect FrozenLak-v1", "did you mean 'FrozenLake-v1'?"),
        ("gosprl collect toy3 --strategy guardd", "did you mean 'guarded'?"),
        ("gosprl collect toy3 --ned 3", "--need"),
        ("gosprl reproduce fig-tresure", "did you mean 'fig-treasure'?"),
    ],
)
def test_the_nearest_name_is_suggested(command, nearest):
    done = invoke(command)
    assert done.exit_code == 2
    assert nearest in done.output


def test_nothing_is_suggested_for_what_is_like_nothing():
    assert "did you mean" not in invoke("gosprl collect nowhere").output


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("gosprl est", {"estimate-diameter", "estimate-model", "estimate-rewards"}),
        ("gosprl collect Frozen", {"FrozenLake-v1", "FrozenLake8x8-v1"}),
        ("gosprl collect toy3 --strategy gu", {"guarded"}),
        ("gosprl compare toy3 --strategies guarded,ran", {"guarded,random"}),
        ("gosprl reproduce table-", {"table-costs", "table-dynamics"}),
        ("gosprl collect toy3 --see", {"--seed"}),
    ],
)
def test_the_shell_completes(typed, offered):
    environment = {"_GOSPRL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = CliRunner().invoke(app, [], env=environment, prog_name="gosprl")
    assert set(done.output.split()) == offered


def test_compilation_says_how_far_it_is_on_a_terminal_only(monkeypatch, capsys):
    from gosprl._kernels._jit import _Notice

    clock = iter([0.0, 1.0, 5.0, 6.0, 0.0, 100.0])
    monkeypatch.setattr("gosprl._kernels._jit.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    notice = _Notice()
    for _ in range(4):
        notice()
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("gosprl: compiling its kernels, ")
    assert second == "gosprl: compiling its kernels: 2 compiled after 5 s"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    notice = _Notice()
    for _ in range(2):
        notice()
    assert len(capsys.readouterr().err.splitlines()) == 1
