"""The command line, run as a user runs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warmed

import gosprl

COMMAND = [sys.executable, "-c", "from gosprl.cli import main; main()"]


def run(*arguments, columns=None):
    environment = os.environ if columns is None else {**os.environ, "COLUMNS": str(columns)}
    return warmed.run([*COMMAND, *arguments], capture_output=True, text=True, env=environment)


def test_domains_as_json(reference_domains):
    done = run("domains", "riverswim6", "four_room43", "--need", "10", "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert answer["need"] == 10
    for row in answer["domains"]:
        known = reference_domains[row["name"]]
        assert row["states"] == known["states"]
        assert row["pairs"] == known["states"] * known["actions"]
        for key, theirs in (("D", "D"), ("BD", "BD_b10"), ("sum_bDs", "sum_bDs_b10"), ("fluid", "fluid_b10")):
            assert row[key] == pytest.approx(known[theirs], rel=1e-8)


def test_domains_as_a_table():
    done = run("domains", "riverswim6", "toy3")
    assert done.returncode == 0
    assert "riverswim6" in done.stdout
    assert "1,766.7" in done.stdout  # B·D as the paper prints it
    assert "958.7" in done.stdout


@pytest.mark.parametrize("columns", [None, 80, 60])  # None: piped, and no width is given
def test_domains_show_all_numbers_at_any_width(columns):
    names = ("riverswim36", "noisy_riverswim36")
    done = run("domains", *names, "--need", "1000000", columns=columns)
    assert done.returncode == 0
    table = [re.split(r" {2,}", line.strip()) for line in done.stdout.splitlines() if line.strip().startswith(names)]
    answer = json.loads(run("domains", *names, "--need", "1000000", "--json").stdout)
    for cells, row in zip(table, answer["domains"], strict=True):
        numbers = (row["D"], row["BD"], row["sum_bDs"], row["fluid"])
        assert cells == [row["name"], str(row["states"]), str(row["pairs"]), *(f"{x:,.1f}" for x in numbers)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["domains", "nowhere"], "'nowhere' is not known; known are"),
        (["domains", "riverswim6", "--need", "-1"], "need: expected numbers of samples >= 0, got -1"),
        (["domains", "garnet"], "states, actions, branching"),
        (["domains", "--need", "many"], "--need"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_internal_error_exits_with_70():
    code = "import gosprl.cli.domains as domains; domains._bounds = None; import gosprl.cli; gosprl.cli.main()"
    done = warmed.run([sys.executable, "-c", code, "domains", "toy3"], capture_output=True, text=True)
    assert done.returncode == 70
    assert done.stderr.index("Traceback") < done.stderr.index("internal error: this is a bug in gosprl")


def test_ctrl_c_exits_with_130():
    code = """
from gosprl.cli import domains, main
def interrupted(*arguments): raise KeyboardInterrupt
domains._bounds = interrupted
main()
"""
    assert warmed.run([sys.executable, "-c", code, "domains", "toy3"], capture_output=True).returncode == 130


LOST = """
import os, signal, sys, threading
import gymnasium
from gosprl.cli import domains, main
class Noisy:
    def __del__(self):
        os.kill(os.getpid(), signal.NUMBER)
        for _ in range(1000):  # the handler is called here, and what it raises is ignored
            pass
class Env(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
    def __init__(self):
        Noisy()
    def reset(self, *, seed=None, options=None):
        return 0, {}
    def step(self, action):
        return action, 0.0, False, False, {}
gymnasium.register("Lost-v0", Env)
def waiting(*arguments):
    Noisy()
    while True:
        threading.Event().wait(0.01)
domains._bounds = waiting
main()
"""


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("verb", [["collect", "Lost-v0", "--need", "5", "--seed", "0"], ["domains", "toy3"]])
def test_a_signal_in_a_destructor_is_not_lost(name, status, verb):
    """Before a run it is not begun; elsewhere the signal is said again."""
    code = LOST.replace("NUMBER", name)
    done = warmed.run([sys.executable, "-c", code, *verb], capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stderr[-2000:]


def test_version():
    assert run("--version").stdout.strip() == gosprl.__version__


@pytest.mark.parametrize(
    "line", ["import gosprl", "import sys; sys.argv[1:] = ['--help']; from gosprl.cli.app import app; app()"]
)
def test_light_imports(line):
    """Commands that do not plan must not import a compiler, an LP solver or a plotting library."""
    code = f"""
import sys
from pathlib import Path
try:
    {line.replace("; ", chr(10) + "    ")}
except SystemExit as stop:
    assert not stop.code
heavy = {{"numba", "scipy.optimize", "matplotlib"}} & set(sys.modules)
sys.exit(f"loaded {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if "--help" in line:
        assert "domains" in done.stdout


def test_the_citation_file_has_this_version():
    text = (Path(__file__).parents[2] / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == gosprl.__version__


def test_a_reader_that_leaves_is_no_bug():
    """As in `gosprl collect ... | head -1`."""
    read, write = os.pipe()
    os.close(read)
    command = [*COMMAND, "collect", "riverswim6", "--need", "1", "--json"]
    try:
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=600)
    finally:
        os.close(write)
    assert ended.returncode == 1
    assert "internal error" not in ended.stderr
    assert "Traceback" not in ended.stderr
