"""Runs on disk on the command line: kept, interrupted, resumed, verified, shown, repaired."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
import warmed
from application_verbs import REWARDED, RIVER3, VERBS, refused, run, words
from forged import contents, forge, reseal, table_of
from notices import without_notice

import gosprl

COMMAND = [sys.executable, "-c", "from gosprl.cli import main; main()"]
LIGHT = "import sys\n{}\nsys.exit(' '.join({{'pyarrow', 'numba'}} & set(sys.modules)) or 0)"


def json_of(*arguments, status=0):
    done = run(*arguments, "--json")
    assert done.exit_code == status, done.stderr
    return json.loads(done.stdout)


def process(*arguments, stdin=warmed.DEVNULL, before="", **options):
    """Start the command as a user does; Ctrl-C is heard also in the background."""
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    return warmed.Popen(
        [*COMMAND[:2], f"{heard}{before}\n{COMMAND[2]}", *map(str, arguments)],
        stdin=stdin,
        stdout=warmed.PIPE,
        stderr=warmed.PIPE,
        text=True,
        **options,
    )


def until(condition, child, seconds=600):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)


# collect --out, resume


def test_a_run_goes_on_where_it_was(tmp_path):
    uninterrupted = json_of("collect", "four_room43", "--need", 2, "--seed", 0)
    arguments = ("collect", "four_room43", "--need", 2, "--seed", 0, "--out", tmp_path / "run")
    assert json_of(*arguments, "--max-steps", 100, status=1)["steps"] == 100
    assert json_of(*arguments) == uninterrupted  # equal settings: it goes on
    assert json_of("resume", tmp_path / "run") == uninterrupted
    assert json_of("verify", tmp_path / "run")["ok"]


def test_other_settings_are_refused_and_named(tmp_path):
    run("collect", "riverswim6", "--need", 2, "--seed", 0, "--out", tmp_path / "run")
    before = contents(tmp_path / "run")
    del before["lock"]
    said = refused("collect", "riverswim6", "--need", 3, "--seed", 0, "--out", tmp_path / "run")
    assert "need {'of each pair': 2} there, {'of each pair': 3} here" in said
    assert "another system" in refused("collect", "riverswim7", "--need", 2, "--out", tmp_path / "run")
    assert "seed 0, got 1" in refused("collect", "riverswim6", "--need", 2, "--seed", 1, "--out", tmp_path / "run")
    assert {name: file for name, file in contents(tmp_path / "run").items() if name != "lock"} == before


def test_more_need_and_another_strategy(tmp_path):
    run("collect", "riverswim6", "--need", 2, "--seed", 0, "--out", tmp_path / "run")
    np.save(tmp_path / "need.npy", np.full((6, 2), 4))
    told = json_of("resume", tmp_path / "run", "--need", tmp_path / "need.npy", "--strategy", "gosprl", "--scale", 0.5)
    assert told["met"]
    assert "scale 0.5" in told["guarantee"]
    pairs = table_of(tmp_path / "run").to_pydict()
    counts = np.zeros((6, 2))
    np.add.at(counts, (pairs["state"][1:], pairs["action"][1:]), 1)
    assert counts.min() == 4
    assert json_of("verify", tmp_path / "run")["ok"]


def test_a_fleet_is_kept_shown_resumed_and_verified(tmp_path):
    directory = tmp_path / "run"
    given = ("riverswim6", "--need", 5, "--seed", 0, "--workers", "threads:2", "--out", directory)
    assert run("collect", *given, "--max-steps", 30).exit_code == 1
    assert "2 walkers joined" in run("show", directory).stdout
    assert "give workers=" in refused("resume", directory)
    told = json_of("resume", directory, "--workers", "threads:3")
    assert told["met"]
    assert run("verify", directory).exit_code == 0
    assert json_of("show", directory)["fleet"]["joined"] == 5


def test_resume_prints_like_collect(tmp_path):
    arguments = ("collect", "four_room43", "--need", 2, "--seed", 0)
    run(*arguments, "--out", tmp_path / "run", "--max-steps", 100)
    assert run("resume", tmp_path / "run").stdout == run(*arguments).stdout


@pytest.mark.parametrize("sync", [[], ["--sync-steps", 10, "--sync-seconds", 0.5]])
def test_how_often_it_is_synced(tmp_path, sync):
    run("collect", "riverswim6", "--need", 20, "--seed", 0, "--out", tmp_path / "run", *sync)
    batches = len((tmp_path / "run/log/chain").read_text().splitlines())
    assert (batches > 5) == bool(sync)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["collect", "riverswim6", "--sync-steps", 5], "sync_steps: only with --out DIR"),
        (["collect", "riverswim6", "--out", "run", "--sync-steps", 0], "sync_steps: expected"),
        (["collect", "riverswim6", "--out", "x.npz"], "use --save x.npz"),
        (["estimate-rewards", *RIVER3, "--epsilon", 0.5, "--out", "x.npz"], "use --save x.npz"),
        (["serve", "--out", "x.npz"], "use --save x.npz"),
        (["resume", "nowhere"], "expected the directory of a run, with a manifest.json"),
        (["verify", "nowhere"], "expected the directory of a run, with a manifest.json"),
        (["show", "."], "expected the directory of a run, with a manifest.json"),
        (["repair", ".", "copy"], "expected the directory of a run, with a manifest.json"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(*arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", VERBS)
def test_applications_are_kept_and_go_on(tmp_path, verb):
    options = (
        REWARDED.get(verb)
        or {
            "estimate-model": ["--eta", 0.5],
            "estimate-diameter": ["--epsilon", 1, "--rule", "certified"],
            "explore-all-goals": ["--epsilon", 2, "--c-min", 0.8],
        }[verb]
    )
    if verb == "best-state":
        np.save(tmp_path / "means.npy", [0.1, 0.9, 0.3])
        options = [*options, "--rewards", tmp_path / "means.npy", "--noise", "bernoulli"]
    arguments = (verb, *RIVER3, *options, "--seed", 0)
    uninterrupted = json_of(*arguments)
    run(*arguments, "--out", tmp_path / "run", "--max-steps", 20)
    told = json_of("resume", tmp_path / "run")
    assert told == uninterrupted | {"env": told["env"]}
    assert (tmp_path / "run/system.json").exists() == (verb == "best-state")  # the table is not what the name makes
    assert json_of("verify", tmp_path / "run")["ok"]


# What is made, and who is asked


@pytest.fixture
def lake(tmp_path):
    """A run of a Gymnasium environment that was stopped."""
    arguments = ("FrozenLake-v1", "--set", "is_slippery=false", "--need", 2, "--seed", 0, "--max-steps", 30)
    assert run("collect", *arguments, "--out", tmp_path / "lake").exit_code == 1
    return tmp_path / "lake"


def test_without_a_terminal_nothing_is_made_unasked(lake, monkeypatch):
    monkeypatch.setattr(gymnasium, "make", lambda *given, **settings: pytest.fail("made"))
    before = contents(lake)
    said = refused("resume", lake)
    assert "about to call gymnasium.make('FrozenLake-v1', is_slippery=False)" in said
    assert "give --yes" in said
    assert contents(lake) == before


def test_yes_makes_it(lake):
    done = run("resume", lake, "--yes")
    assert done.exit_code == 0
    assert "about to call gymnasium.make('FrozenLake-v1', is_slippery=False)" in done.stderr
    assert json_of("verify", lake)["ok"]


@pytest.mark.parametrize(("answer", "status"), [("n", 2), ("y", 0)])
def test_in_a_terminal_the_user_is_asked(lake, answer, status):
    terminal, theirs = os.openpty()
    child = process("resume", lake, "--json", stdin=theirs)
    try:
        os.close(theirs)
        os.write(terminal, f"{answer}\n".encode())
        out, err = child.communicate(timeout=600)
    finally:
        child.kill()
        os.close(terminal)
    assert child.returncode == status, err
    assert "Do you trust it?" in err
    assert bool(out.strip()) == (status == 0)


def test_a_module_that_a_run_names_is_not_imported(lake, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(tmp_path)
    source = {"env": "evil:Env-v0", "settings": {"a": "\x1b[2J"}}
    reseal(lake / "manifest.json", lambda value: value["system"].update(source=source))
    said = refused("resume", lake)
    assert "which imports the module 'evil'" in said
    assert "\x1b" not in said
    for verb in ("verify", "show"):
        assert run(verb, lake).exit_code == 0
    assert "evil" not in sys.modules


def test_a_program_is_named_before_it_is_started(tmp_path):
    marker, program = tmp_path / "started", tmp_path / "program.py"
    program.write_text(
        "import json, pathlib, sys\n"
        f"pathlib.Path({str(marker)!r}).touch()\n"
        "for line in sys.stdin:\n"
        "    kind = json.loads(line)['type']\n"
        "    if kind == 'close': break\n"
        "    print(json.dumps({'type': 'hello', 'protocol': 1, 'actions': 2} if kind == 'hello' else\n"
        "        {'observation': 0, 'reward': 0.0, 'terminated': kind == 'step'}), flush=True)\n"
    )
    command = f"{sys.executable} {program}"
    given = ("--process", command, "--need", 9, "--seed", 0, "--max-steps", 4, "--out", tmp_path / "run")
    assert run("collect", *given, "--timeout", 20).exit_code == 1
    source = json.loads((tmp_path / "run/manifest.json").read_bytes())["system"]["source"]
    assert source == {"process": [sys.executable, str(program)], "timeout": 20.0}
    marker.unlink()
    assert f"about to start the program: {command}" in refused("resume", tmp_path / "run")
    assert not marker.exists()
    assert json_of("resume", tmp_path / "run", "--yes")["steps"] == 18
    assert marker.exists()


def test_our_own_domains_need_no_question(tmp_path):
    run("collect", "riverswim6", "--need", 5, "--seed", 0, "--out", tmp_path / "run", "--max-steps", 20)
    assert run("resume", tmp_path / "run").exit_code == 0


def test_a_system_made_in_python_is_resumed_there(tmp_path):
    gosprl.collect(gymnasium.make("FrozenLake-v1"), 2, seed=0, out=tmp_path / "run", max_steps=20)
    assert "gosprl.resume(directory, system=...)" in refused("resume", tmp_path / "run", "--yes")


# Interruptions


IN_BACKGROUND = "\nimport signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # as a shell script's `gosprl ... &`


@pytest.mark.parametrize(
    ("number", "status", "more"),
    [(signal.SIGTERM, 143, ""), (signal.SIGINT, 130, ""), (signal.SIGTERM, 143, IN_BACKGROUND)],
    ids=["SIGTERM", "Ctrl-C", "SIGTERM in the background"],
)
def test_signals_leave_a_run_that_resumes_to_the_same(tmp_path, number, status, more):
    need, often = ("--need", 600, "--seed", 0), ("--sync-seconds", 0.01)
    child = process("collect", "corridor24", *need, *often, "--out", tmp_path / "run", before=held() + more)
    log = tmp_path / "run/log/chain"
    until(lambda: log.exists() and log.stat().st_size > 0, child)
    child.send_signal(number)
    out, _ = child.communicate(timeout=600)
    assert child.returncode == status
    assert "interrupted" in out
    part = table_of(tmp_path / "run").num_rows
    certificate = json.loads((tmp_path / "run/certificate.json").read_bytes())
    assert (certificate["stop"], certificate["steps"]) == ("interrupted", part - 1)
    told = json_of("resume", tmp_path / "run")
    assert told == json_of("collect", "corridor24", *need)
    assert part < told["steps"]
    assert json_of("verify", tmp_path / "run")["ok"]


HELD = """
import os, time
from gosprl.progress import is_interrupted
from gosprl.systems.tabular import Tabular
follow, blocks = Tabular.follow, 0
def held(self, *given):
    global blocks
    blocks += 1
    while blocks > 5 and not is_interrupted() and not os.path.exists(RELEASED):
        time.sleep(0.01)
    follow(self, *given)
Tabular.follow, Tabular.block = held, 100
"""


SLOW = """
import time
from gosprl.systems.tabular import Tabular
follow = Tabular.follow
def slowly(self, *given):
    time.sleep(0.01)
    follow(self, *given)
Tabular.follow, Tabular.block = slowly, 100
"""


def held(released=""):
    """Code that lets a run make some hundred steps; for more, it has to be interrupted, or a file has to be there."""
    return f"RELEASED = {str(released)!r}\n{HELD}"


def test_the_second_process_is_refused_and_the_first_unharmed(tmp_path):
    given = ("collect", "corridor24", "--need", 100, "--seed", 0, "--out", tmp_path / "run", "--json")
    first = process(*given, before=held(tmp_path / "go on"))
    until((tmp_path / "run/manifest.json").exists, first)
    for second in (given, ("resume", tmp_path / "run")):
        said = refused(*[argument for argument in second if argument != "--json"])
        assert f"is being written by process {first.pid}" in said
    assert "a process is writing now" in words(run("show", tmp_path / "run").stdout)
    (tmp_path / "go on").touch()
    out, err = first.communicate(timeout=600)
    assert first.returncode == 0, err
    assert json.loads(out) == json_of("collect", "corridor24", "--need", 100, "--seed", 0)
    assert json_of("verify", tmp_path / "run")["ok"]


def test_a_full_disk_is_no_internal_error(tmp_path):
    """The size of files is limited; what was saved before is there, and goes on."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))"
    given = ("corridor24", "--need", 300, "--seed", 0)
    child = process("collect", *given, "--out", tmp_path / "run", "--sync-steps", 500, before=limit)
    _, err = child.communicate(timeout=600)
    assert child.returncode == 1
    assert "could not be written" in err
    assert "Traceback" not in err
    assert table_of_saved(tmp_path / "run") > 0
    assert json_of("resume", tmp_path / "run") == json_of("collect", *given)


def table_of_saved(place):
    return sum(int(line.split()[4]) for line in (place / "log/chain").read_text().splitlines())


# verify, show, repair


def test_statuses_of_verify(tmp_path):
    place = tmp_path / "run"
    run("collect", "riverswim6", "--need", 3, "--seed", 0, "--out", place)
    assert run("verify", place).exit_code == 0
    log = place / "log/000001.arrow"
    data = log.read_bytes()
    log.write_bytes(data[:700] + bytes([data[700] ^ 1]) + data[701:])
    done = run("verify", place)
    assert done.exit_code == 1
    assert re.search(r"log +WRONG +log/000001.arrow, batch \d+: ", done.stdout)
    assert "is damaged: log/000001.arrow, batch" in refused("resume", place)
    log.write_bytes(data)
    (place / "certificate.json").unlink()
    told = json_of("verify", place, status=3)
    assert (told["ok"], told["verdict"]) == (False, "not all can be known")
    assert [check["name"] for check in told["checks"] if check["ok"] is None] == ["certificate"]
    reseal(place / "manifest.json", lambda value: value.update(format=99))
    assert "update gosprl" in refused("verify", place)


def test_a_damaged_manifest_is_an_error_of_resume(tmp_path):
    run("collect", "riverswim6", "--need", 3, "--seed", 0, "--out", tmp_path / "run")
    (tmp_path / "run/manifest.json").write_text("{}")
    assert "is damaged: manifest.json" in refused("resume", tmp_path / "run")
    assert run("verify", tmp_path / "run").exit_code == 1
    assert run("show", tmp_path / "run").exit_code == 1


def test_show(tmp_path):
    told = json_of(
        "collect", "riverswim6", "--need", 30, "--seed", 0, "--out", tmp_path / "run", "--max-steps", 50, status=1
    )
    shown = json_of("show", tmp_path / "run")
    assert (shown["steps"], shown["certificate"]["stop"]) == (told["steps"], "max_steps")
    text = words(run("show", tmp_path / "run").stdout)
    assert f"{shown['progress']['met']:.1%} of the 6 states known met" in text
    assert "riverswim6" in text


def test_repair(tmp_path):
    place = tmp_path / "run"
    run("collect", "riverswim6", "--need", 30, "--seed", 0, "--out", place, "--sync-steps", 50)
    forged = shutil.copytree(place, tmp_path / "forged")
    forge(forged, lambda columns: columns["action"].__setitem__(3, 9))
    data = bytearray((place / "log/000001.arrow").read_bytes())
    data[-300] ^= 1
    (place / "log/000001.arrow").write_bytes(data)
    told = json_of("repair", place, tmp_path / "copy")
    assert told["complete"]
    assert told["events"] == table_of(tmp_path / "copy").num_rows > 0
    assert json_of("resume", tmp_path / "copy") == json_of("collect", "riverswim6", "--need", 30, "--seed", 0)
    assert "does" in refused("repair", place, tmp_path / "copy")
    assert run("repair", forged, tmp_path / "other").exit_code == 0


# Help, and what is imported for it


@pytest.mark.parametrize("verb", ["resume", "verify", "show", "repair"])
def test_help_shows_an_example(verb):
    assert f"gosprl {verb} runs/lake" in words(run(verb, "--help").stdout)


def test_help_and_verbs_without_runs_import_no_arrow():
    for arguments in (["--help"], ["resume", "--help"]):
        call = f"sys.argv[1:] = {arguments}\nfrom gosprl.cli.app import app\ntry: app()\nexcept SystemExit: pass"
        done = subprocess.run([sys.executable, "-c", LIGHT.format(call)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    call = "import gosprl"
    assert subprocess.run([sys.executable, "-c", LIGHT.format(call)]).returncode == 0


# A line a minute


def test_a_long_run_in_the_background_writes_log_lines(tmp_path):
    often = SLOW + "\nimport gosprl.progress\ngosprl.progress.LOG_PERIOD = 0.2"
    child = process("collect", "corridor24", "--need", 50, "--seed", 0, "--out", tmp_path / "run", before=often)
    _, err = child.communicate(timeout=600)
    lines = without_notice(err).splitlines()
    assert len(lines) >= 2, err
    form = (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d \d+\.\d % of the 24 states known met, [\d,]+ steps, [\d,]+ saved, "
        r"[\d,]+ steps/s, (about [\d,]+ (s|min|h|days) left|time left unknown: .*)"
    )
    for line in lines:
        assert re.fullmatch(form, line), line
    steps = [int(re.search(r"([\d,]+) steps,", line)[1].replace(",", "")) for line in lines]
    assert steps == sorted(steps)
