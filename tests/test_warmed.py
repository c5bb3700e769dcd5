"""Processes that are forked from a warm one are what `subprocess` starts: see warmed.py."""

import os
import signal
import subprocess
import sys

import pytest
import warmed

TALK = "import sys; print(sys.argv, sys.stdin.read()); print('to stderr', file=sys.stderr); sys.exit({})"


@pytest.mark.parametrize("status", ["None", "3", "-1", "'words'"])
def test_output_and_status_are_those_of_subprocess(status):
    command = [sys.executable, "-c", TALK.format(status), "a", "b"]
    ours, theirs = (one.run(command, input="é\n", capture_output=True, text=True) for one in (warmed, subprocess))
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


def test_an_error_is_told_and_the_status_is_1():
    done = warmed.run([sys.executable, "-c", "1 / 0"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ZeroDivisionError: division by zero")


def test_directory_environment_and_the_last_words(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THIS_TEST", "1")
    monkeypatch.chdir(tmp_path)
    code = "import atexit, os; atexit.register(print, 'last'); print(os.getcwd(), os.environ.get('OF_THIS_TEST'))"
    assert warmed.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == f"{tmp_path} 1\nlast\n"
    done = warmed.run([sys.executable, "-c", code], capture_output=True, text=True, env={}, cwd="/")
    assert done.stdout == "/ None\nlast\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_a_process_of_its_own(number):
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"
    with warmed.Popen([sys.executable, "-c", code], stdout=warmed.PIPE, text=True) as process:
        assert int(process.stdout.readline()) == process.pid != os.getpid()
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(60) == process.poll() == -number
