"""`gosprl serve` and `gosprl collect --process`, run as a user runs them."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import warmed
from notices import without_notice
from serving_client import Caller, walk

COMMAND = [sys.executable, "-c", "from gosprl.cli import main; main()"]
QUEUE = f"bash {Path(__file__).parents[2] / 'examples' / 'processes' / 'queue.sh'}"


def run(*arguments, **how):
    return warmed.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=600, **how)


class Serving:
    """`gosprl serve` on a socket; (exit status, stdout) after `end`."""

    def __init__(self, *arguments):
        self.process = warmed.Popen(
            [*COMMAND, "serve", *map(str, arguments)], stdout=warmed.PIPE, stderr=warmed.PIPE, text=True
        )
        for line in self.process.stderr:
            if found := re.match(r"listening on (.*)", line):
                self.address = found[1]
                break

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def end(self):
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out


def test_a_client_is_served_until_the_need_is_met(tmp_path):
    file = tmp_path / "samples.npz"
    arguments = ("--need", 3, "--actions", 2, "--seed", 0, "--socket", "127.0.0.1:0", "--json", "--save", file)
    with Serving(*arguments) as server:
        with Caller(server.address) as client:
            steps = walk(client)
        status, out = server.end()
    told = json.loads(out)
    assert (status, told["met"], told["steps"], told["states"]) == (0, True, steps, 4)
    with np.load(file) as saved:
        assert saved["count"].sum() == steps
        assert sorted(json.loads(text) for text in saved["observations"][:4]) == [0, 1, 2, 3]


CLIENT = """
import sys, time
from serving_client import Caller
address, walker, stuck_after = sys.argv[1], sys.argv[2], int(sys.argv[3])
state = steps = 0
with Caller(address) as client:
    while not (told := client.call(type="ask", observation=state, walker=walker)).get("done"):
        if "wait" in told:
            time.sleep(told["wait"])
            continue
        if steps == stuck_after:
            print("stuck", flush=True)
            time.sleep(600)
        time.sleep(0.001)
        state = (state + (1 if told["action"] else -1)) % 4
        assert client.call(type="tell", observation=state, walker=walker)["ok"]
        steps += 1
print(steps)
"""


def test_three_clients_one_of_them_killed_in_the_middle(tmp_path):
    arguments = ("--need", 15, "--actions", 2, "--seed", 0, "--socket", tmp_path / "door", "--json", "--late", "never")
    with Serving(*arguments) as server:
        clients = {}
        for walker, stuck_after in (("a", -1), ("b", -1), ("c", 5)):
            command = [sys.executable, "-c", CLIENT, server.address, walker, str(stuck_after)]
            where = {"cwd": Path(__file__).parents[1]}
            clients[walker] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **where)
        try:
            assert clients["c"].stdout.readline() == "stuck\n"
            clients["c"].kill()
            steps = [int(clients[walker].communicate(timeout=60)[0]) for walker in "ab"]
            status, out = server.end()
        finally:
            for client in clients.values():
                client.kill()
                client.communicate()
    told = json.loads(out)
    assert (status, told["met"], told["states"]) == (0, True, 4)
    assert told["steps"] == sum(steps) + 5 + 1  # the last one is unknown
    assert min(steps) > 0
    assert told["steps"] < 200  # 120 are needed


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_keep_everything(number, expected, tmp_path):
    file = tmp_path / "samples.npz"
    arguments = ("--need", 3, "--actions", "left,right", "--socket", tmp_path / "door", "--save", file)
    with Serving(*arguments) as server, Caller(server.address) as client:
        assert client.call(type="ask", observation="a")["action"] in ("left", "right")
        client.call(type="tell", observation="b")
        server.process.send_signal(number)
        status, out = server.end()
    assert status == expected
    assert "for the 2 states discovered" in out
    with np.load(file) as saved:
        assert saved["count"].tolist() == [1]
    assert not (tmp_path / "door").exists()


def test_standard_input_and_output_are_the_clients():
    requests = [
        {"type": "hello", "protocol": 1, "actions": 1},
        {"type": "ask", "observation": "a"},
        {"type": "tell", "observation": "a"},
        {"type": "ask", "observation": "a"},
    ]
    done = run("serve", "--need", 1, "--seed", 0, input="".join(json.dumps(line) + "\n" for line in requests))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(answer) & {"type", "action", "ok", "done"} for answer in answers] == [
        {"type", "done"},
        {"action"},
        {"ok", "done"},
        {"done"},
    ]
    assert done.returncode == 0
    assert "met" in done.stderr


def test_a_bug_of_ours_keeps_everything(tmp_path):
    code = """
from gosprl.cli import main
from gosprl.serving import Server
def fail(self, request):
    raise ZeroDivisionError
Server._result = fail
main()
"""
    words = '{"type":"ask","observation":0}\n{"type":"tell","observation":0}\n{"type":"result"}\n'
    file = tmp_path / "samples.npz"
    command = [sys.executable, "-c", code, "serve", "--actions", "1", "--need", "9", "--save", str(file)]
    done = warmed.run(command, input=words, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, "ZeroDivisionError" in done.stderr) == (70, True)
    with np.load(file) as saved:
        assert saved["count"].tolist() == [1]


@pytest.mark.parametrize("actions", [[], ["--actions", 2]])
def test_a_client_that_leaves_at_once(actions):
    done = run("serve", "--need", 1, *actions, input="")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was collected" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--actions", "a,,b"], "actions: expected a number, or different names"),
        (["--actions", "0"], "actions: expected their number, 1 to 100,000, or a list of different names, got 0"),
        (["--actions", "-1"], "actions: expected their number"),
        (["--actions", "1000000000"], "actions: expected their number"),
        (["--actions", "a,b,a"], "actions: expected their number"),
        (["--actions", "2", "--max-steps", "0"], "max_steps: expected a whole number >= 1, got 0"),
        (["--actions", "2", "--socket", "7000"], "say 127.0.0.1:7000 or ./7000"),
        (["--actions", "a,reset"], "actions: expected other names than 'reset'"),
        (["--actions", "2", "--need", "-1"], "need: expected"),
        (["--actions", "2", "--strategy", "best"], "strategy: 'best' is not known"),
        (["--actions", "2", "--socket", "10.0.0.1:5"], "socket: expected 127.0.0.1:PORT or a path"),
        (["--actions", "2", "--save", "file.txt"], "save: expected the name of an .npz file"),
        (["--actions", "2", "--resets", "often"], "resets: 'often' is not known"),
        (["--actions", "2", "--late", "soon"], "late: expected a multiple of the mean step, a time such as '5s'"),
        (["--actions", "2", "--late", "0"], "late: expected a positive finite number, got 0"),
        (["--actions", "2", "--lost", "gone"], "lost: 'gone' is not known"),
        (["--actions", "2", "--lost", "state", "--resets", "never"], "lost: expected 'unknown' or 'independent'"),
    ],
)
def test_wrong_arguments(arguments, words):
    done = run("serve", *arguments, input="")
    assert done.returncode == 2
    assert words in without_notice(done.stderr)


# gosprl collect --process


def test_a_program_is_collected():
    done = run("collect", "--process", QUEUE, "--need", 5, "--seed", 0, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["met"], told["states"], told["pairs"], told["crashes"]) == (0, True, 5, 9, 0)
    assert told["env"] == QUEUE


def test_a_program_that_ends_keeps_what_was_collected(tmp_path):
    script = tmp_path / "short.sh"
    script.write_text(
        'read line; echo \'{"type":"hello","protocol":1,"actions":1}\'\n'
        "read line; echo '{\"observation\":0}'\n"
        "read line; echo '{\"observation\":0}'\n"
        "read line; echo complaint >&2; echo 'nonsense'\n"
    )
    log = tmp_path / "errors.txt"
    done = run("collect", "--process", f"bash {script}", "--need", 9, "--seed", 0, "--json", "--log", log)
    assert done.returncode == 1
    assert (
        "process bash, step 2 (action 0): line 4 of its output: expected a JSON object, got 'nonsense'" in done.stderr
    )
    assert "complaint" in done.stderr
    assert log.read_text() == "complaint\n"
    assert json.loads(done.stdout)["steps"] == 1


def test_sigterm_ends_a_run_and_the_program(tmp_path):
    command = [*COMMAND, "collect", "--process", f"{QUEUE} {tmp_path / 'log'}", "--need", "100000", "--json"]
    process = warmed.Popen(command, stdout=warmed.PIPE, text=True)
    try:
        end = time.monotonic() + 600
        while not ((tmp_path / "log").exists() and (tmp_path / "log").read_text().count("\n") > 20):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=600)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143
    told = json.loads(out)
    assert told["stop"] == "interrupted"
    assert told["steps"] == (tmp_path / "log").read_text().count("\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--process", "./nowhere"], "process: expected a program that can be started, got './nowhere'"),
        (["--process", "true"], "process true: expected an answer to hello, but it exited with status 0"),
        (
            ["--process", "bash -c 'echo Welcome; read line'"],
            "line 1 of its output: expected a JSON object, got 'Welcome'",
        ),
        (["--process", "true", "riverswim6"], "env, process: expected either ENV or --process"),
        ([], "env, process: expected either ENV or --process"),
        (["riverswim6", "--timeout", "3"], "timeout, log: only with --process"),
        (["--process", "true", "--set", "a=1"], "set: only with ENV"),
        (["--process", "sleep 60", "--timeout", "0.2"], "process sleep: no answer within 0.2 s"),
        (["--process", QUEUE, "--timeout", "0"], "timeout: expected a positive finite number, got 0.0"),
        (["--process", QUEUE, "--log", "/nowhere/log"], "log: expected a file that can be written"),
        (["--process", QUEUE, "--known"], "known: expected one of our domains"),
    ],
)
def test_wrong_programs(arguments, words):
    done = run("collect", *arguments)
    assert done.returncode == 2
    assert words in without_notice(done.stderr)
