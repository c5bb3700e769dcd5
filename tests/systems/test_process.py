"""Programs in other languages: everything they answer counts, nothing else does, and none is left running."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import gosprl
from evidence.faults import KINDS, counted, run, wrong
from gosprl import CollectionError, GosprlError, InputError
from gosprl.systems import Process

EXAMPLES = Path(__file__).parents[2] / "examples" / "processes"


@pytest.mark.parametrize("kind", KINDS)
def test_faults(kind, tmp_path):
    log = tmp_path / "log"
    result, error = run(kind, random.Random(kind).randint(3, 12), log)
    assert list(wrong(kind, result, error, log)) == []
    assert result.steps == counted(result).total()


def test_the_test_finds_what_is_lost_invented_or_left(tmp_path):
    log = tmp_path / "log"
    result, error = run("nothing", 0, log)
    assert list(wrong("nothing", result, error, log)) == []
    assert list(wrong("exit", result, error, log)) == ["no crash was counted"]
    assert list(wrong("garbage", result, error, log)) == ["the error is not clear: ''"]
    log.write_text(log.read_text() + "0 1 1\n")
    Path(f"{log}.pids").write_text(str(os.getpid()))
    assert list(wrong("nothing", result, error, log)) == ["counts differ from the log", "a process is left"]


def test_an_error_names_the_line_of_the_output(tmp_path):
    _, error = run("garbage", 5, tmp_path / "log")  # lines: hello, reset, four answers
    assert "step 5 " in error
    assert "line 7 of its output" in error


def test_standard_error_goes_to_a_log_and_into_messages(tmp_path):
    command = ["bash", "-c", "echo the lens is dirty >&2; exit 4"]
    with pytest.raises(GosprlError, match=r"^process bash: .*it exited with status 4; .*ends with 'the lens is dirty'"):
        Process(command, log=tmp_path / "errors.txt")
    assert (tmp_path / "errors.txt").read_text() == "the lens is dirty\n"


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_run(seed):
    with Process(["bash", str(EXAMPLES / "queue.sh")]) as queue:
        first, again = (gosprl.collect(queue, 3, seed=seed) for _ in range(2))  # the program is not started anew
    with Process(["bash", str(EXAMPLES / "queue.sh")]) as queue:
        anew = gosprl.collect(queue, 3, seed=seed)
    assert counted(first) == counted(again) == counted(anew)


def test_after_a_crash_the_seed_is_another_one(tmp_path):
    program = """
import json, random, sys
for request in map(json.loads, sys.stdin):
    if request["type"] == "hello":
        print(json.dumps({"type": "hello", "protocol": 1, "actions": 1}), flush=True)
    elif request["type"] == "reset":
        open(sys.argv[1], "a").write(f"{request.get('seed')}\\n")
        print('{"observation": 0}', flush=True)
    else:
        sys.exit(1)
"""
    seeds = tmp_path / "seeds"
    with Process([sys.executable, "-c", program, str(seeds)]) as fragile:
        result = gosprl.collect(fragile, 5, seed=0)
    assert (result.crashes, result.steps) == (5, 5)
    given = seeds.read_text().split()
    assert len(set(given)) == len(given)
    assert "None" not in given


# The reference programs


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    program = tmp_path_factory.mktemp("grid") / "grid"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, EXAMPLES / "grid.c"], check=True)
    return [str(program)]


def pair(text):
    return tuple(map(int, text.split(",")))


PROGRAMS = {
    "grid": lambda words: (pair(words[0]), int(words[1]), pair(words[2])),
    "queue": lambda words: (int(words[0]), words[1], int(words[2])),
    "directories": lambda words: tuple(tuple(x) if isinstance(x, list) else x for x in json.loads(" ".join(words))),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("strategy", ["guarded", "gosprl"])
def test_reference_programs_are_collected_as_they_say(name, grid, tmp_path, strategy):
    log = tmp_path / "log"
    commands = {
        "grid": grid,
        "queue": ["bash", str(EXAMPLES / "queue.sh")],
        "directories": [sys.executable, str(EXAMPLES / "directories.py")],
    }
    with Process([*commands[name], str(log)]) as system:
        result = gosprl.collect(system, 20, seed=0, strategy=strategy)
    assert result.met
    states, actions = result.model.states, list(result.model.actions)

    def named(s):
        return tuple(states[s]) if isinstance(states[s], list) else states[s]

    seen = Counter()  # an observation may be alive and final: the log does not tell
    for s, a, s_next, count in zip(*result.model.transitions(), strict=True):
        seen[named(s), actions[a], named(s_next)] += int(count)
    assert seen == Counter(PROGRAMS[name](line.split()) for line in log.read_text().splitlines())


# Bad input


@pytest.mark.parametrize("command", [[], "", [""], [1], 7, "unclosed 'quote", None])
def test_commands_that_are_none(command):
    with pytest.raises(InputError, match="process: expected a program and its arguments, got"):
        Process(command)


def test_programs_that_cannot_be_started(tmp_path):
    (tmp_path / "text").write_text("not a program")
    for command in ("./nowhere --flag", [str(tmp_path / "text")], [str(tmp_path)]):
        with pytest.raises(InputError, match="process: expected a program that can be started, got"):
            Process(command)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("Welcome to the simulator!", "line 1 of its output: expected a JSON object, got 'Welcome"),
        ('{"type":"hello","protocol":2,"actions":1}', "protocol: expected 1, the version spoken here, got 2"),
        ('{"type":"hello","protocol":"1","actions":1}', 'protocol: expected 1, the version spoken here, got "1"'),
        ('{"type":"hello","protocol":1}', "actions: expected their number, 1 to 100,000, or a list"),
        ('{"type":"hello","protocol":1,"actions":0}', "actions: expected their number"),
        ('{"type":"hello","protocol":1,"actions":1000000000000}', "actions: expected their number"),
        ('{"type":"hello","protocol":1,"actions":["\\ud800","b"]}', "expected Unicode, got half of a surrogate pair"),
        ('{"type":"hello","protocol":1,"actions":[]}', "actions: expected their number"),
        ('{"type":"hello","protocol":1,"actions":["a","a"]}', "actions: expected their number"),
        ('{"type":"hello","protocol":1,"actions":[1.5]}', "actions: expected their number"),
        ('{"type":"hello","protocol":1,"actions":true}', "actions: expected their number"),
        ('{"observation":1}', 'expected {"type": "hello", "protocol": 1, "actions": ...}, got {"observation": 1}'),
        ('{"error":"no licence"}', "the program says: no licence"),
    ],
)
def test_hellos(answer, words):
    with pytest.raises(GosprlError) as caught:
        Process(["bash", "-c", 'read line; echo "$0"; read line', answer])
    assert str(caught.value).startswith("process bash: ")
    assert words in str(caught.value)


def test_actions_that_change_their_number(tmp_path):
    script = f"""
read line; n=$(cat {tmp_path}/n 2>/dev/null || echo 2); echo 3 >{tmp_path}/n
echo '{{"type":"hello","protocol":1,"actions":'$n'}}'
read line; echo '{{"observation":0}}'
read line; exit 1
"""
    with (
        Process(["bash", "-c", script]) as system,
        pytest.raises(CollectionError, match=r"actions: expected \[0, 1\] as before, got \[0, 1, 2\]") as caught,
    ):
        gosprl.collect(system, 2, seed=0)
    assert (caught.value.result.steps, caught.value.result.crashes) == (1, 1)


def test_a_program_that_never_survives_a_reset(tmp_path):
    hello = '{"type":"hello","protocol":1,"actions":1}'
    with (
        Process(["bash", "-c", f"read line; echo '{hello}'; read line; exit 5"]) as system,
        pytest.raises(CollectionError, match=r"reset 1: expected an answer to reset, .*status 5, 3 times in a row"),
    ):
        gosprl.collect(system, 1, seed=0)


@pytest.mark.parametrize("name", ["start_timeout", "reset_timeout", "step_timeout"])
def test_time_outs(name):
    with pytest.raises(InputError, match=f"{name}: expected a positive"):
        Process("true", **{name: 0})


def test_silence_at_the_start():
    with pytest.raises(GosprlError, match=r"process sleep: no answer within 0\.1 s"):
        Process("sleep 60", start_timeout=0.1)


def test_a_program_that_does_not_read():
    program = """
import json, sys
print(json.dumps({"type": "hello", "protocol": 1, "actions": 1}), flush=True)
sys.stdin.readline()
import time
while True:
    print('{"observation": 0}', flush=True)
    time.sleep(0.001)
"""
    with (
        Process([sys.executable, "-c", program]) as system,
        pytest.raises(CollectionError, match=r"expected one line for each request|that reads every request"),
    ):
        gosprl.collect(system, 10**6, seed=0)


def test_key_tells_states_apart():
    with Process(["bash", str(EXAMPLES / "queue.sh")], key=lambda length, info: "some" if length else "none") as queue:
        result = gosprl.collect(queue, 3, seed=0)
    assert [result.model.states[s] for s in range(result.states)] == ["none", "some"]


def test_whole_numbers_are_the_same_however_they_are_written():
    program = """
read line; echo '{"type":"hello","protocol":1,"actions":1}'
for o in 1 1.0 1e0 true '"1"' null '[1]' '{"a":1,"b":2}' '{"b":2.0,"a":1}'; do
    read line; echo '{"observation":'$o'}'
done
read line
"""
    with Process(["bash", "-c", program]) as system:
        result = gosprl.collect(system, 100, seed=0, max_steps=8)
    states = [result.model.states[s] for s in range(result.model.num_states)]
    assert [repr(x) for x in states] == ["1", "True", "'1'", "None", "[1]", "{'a': 1, 'b': 2}"]


# programs of a few lines: `at_step` is what they do instead of answering a step
PROGRAM = """
import json, os, signal, subprocess, sys, time
for request in map(json.loads, sys.stdin):
    kind = request["type"]
    if kind == "close":
        sys.exit()
    if kind == "hello":
        answer = {"type": "hello", "protocol": 1, "actions": 2}
    elif kind == "reset":
        answer = {"observation": 0}
    else:
        answer = {"observation": 0}
        %s
    print(json.dumps(answer), flush=True)
"""


def program(at_step, *arguments):
    return [sys.executable, "-c", PROGRAM % at_step, *map(str, arguments)]


def test_a_signal_without_a_name_is_a_crash():
    with Process(program("os.kill(os.getpid(), signal.SIGRTMIN + 2)")) as system:
        result = gosprl.collect(system, 2, seed=0)
    assert (result.met, result.crashes, result.steps) == (True, 4, 4)
    assert system.last_crash == f"it was ended by the signal {signal.SIGRTMIN + 2}"


def test_nothing_is_offered_after_an_ending():
    with Process(program('answer |= {"terminated": True, "actions": []}')) as system:
        result = gosprl.collect(system, 2, seed=0)
    assert result.counts.tolist() == [[2, 2]]


@pytest.mark.parametrize("log", ["missing/errors.txt", "."])
def test_a_log_that_cannot_be_written(log, tmp_path):
    """A program whose standard error nobody reads would be ended by SIGPIPE: a crash that is none of its own."""
    with pytest.raises(InputError, match=r"^log: expected a file that can be written, got '.*': .*"):
        Process(program("pass"), log=tmp_path / log)


def test_a_full_disk_is_no_crash():
    noisy = program('print("x" * 100_000, file=sys.stderr)')
    with Process(noisy, log="/dev/full") as system:
        result = gosprl.collect(system, 2, seed=0)
    assert (result.met, result.crashes) == (True, 0)


def test_an_environment_that_is_none():
    with pytest.raises(InputError, match=r"^process: expected a program that can be started"):
        Process(program("pass"), env={"DEPTH": 1})


def test_a_daemon_that_outlives_a_crash_costs_neither_time_nor_descriptors(tmp_path, monkeypatch):
    monkeypatch.setattr("gosprl.systems.child.GRACE", 300.0)
    leave = "open(sys.argv[1], \"a\").write(f\"{subprocess.Popen(['sleep', '1000'], start_new_session=True).pid} \")"
    pids = tmp_path / "pids"
    try:
        with Process(program(f"{leave}; sys.exit(1)", pids)) as system:
            system.reset()
            before, begin = (len(os.listdir("/proc/self/fd")), threading.active_count()), time.monotonic()
            for _ in range(5):
                assert system.step(0).state is gosprl.CRASH
                system.reset()
            assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before
            assert time.monotonic() - begin < 300  # so long it would take to wait for one of the daemons
    finally:
        for pid in pids.read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def test_closing_from_another_thread_is_no_crash():
    with Process(program("time.sleep(1.5); sys.exit(1)")) as system:
        threading.Timer(0.3, system.close).start()
        with pytest.raises(CollectionError, match=r"it was closed before it answered") as caught:
            gosprl.collect(system, 1, seed=0)
    assert (caught.value.result.steps, caught.value.result.crashes) == (0, 0)


def test_a_reset_after_close_starts_it_again():
    with Process(program("pass")) as system:
        system.close()
        result = gosprl.collect(system, 1, seed=0)
    assert result.met


def test_needs_call_observations_as_python_can():
    """Lists are no keys of a dict, and 1.0 is 1."""
    observe = 'answer["observation"] = [[request["action"], 0.5], 3.0]'
    with Process(program(observe)) as system:
        result = gosprl.collect(system, {((1, 0.5), 3): {0: 2}, ((0.0, 0.5), 3.0): 1, 0.0: 1}, seed=0, max_steps=100)
    by_name = {str(result.model.states[s]): result.counts[s].tolist() for s in range(result.states)}
    assert result.unmet["state"].tolist() == [0]  # where the walk begins: left after one step, for ever
    assert by_name["[[1, 0.5], 3]"][0] >= 2
    assert min(by_name["[[0, 0.5], 3]"]) >= 1
