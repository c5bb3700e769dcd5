"""The lock of a directory: one writer, also after forks and kills."""

import errno
import os
import signal
import subprocess
import sys

import pytest
from failing import failing

from gosprl.errors import InputError
from gosprl.runs import locks
from gosprl.runs.locks import Lock


def test_one_process_cannot_lock_twice(tmp_path):
    first, second = Lock(tmp_path), Lock(tmp_path)
    first.acquire()
    for lock in (first, second):
        with pytest.raises(InputError, match=rf"^out: .* is being written by process {os.getpid()}"):
            lock.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


OWNER = (
    "import sys, time; from pathlib import Path; from gosprl.runs.locks import Lock; lock = Lock(Path(sys.argv[1]))\n"
)


def test_the_lock_of_another_process_dies_with_it(tmp_path):
    code = OWNER + "lock.acquire(); print('locked', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as owner:
        owner.stdout.readline()
        with pytest.raises(InputError, match=rf"process {owner.pid};"):
            Lock(tmp_path).acquire()
        owner.send_signal(signal.SIGKILL)
    lock = Lock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    code = OWNER + (
        "import os; lock.acquire(); child = os.fork()\n"
        "if child: print(child, flush=True); os._exit(0)\n"
        "sys.stdout.close(); os.close(1); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as owner:
        child = int(owner.stdout.readline())
        owner.stdout.read()  # until the child closes its end, too: then it runs, and has given back the lock
        owner.wait()
    try:
        lock = Lock(tmp_path)
        lock.acquire()
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_file_system_without_locks_is_warned_about(tmp_path, monkeypatch):
    monkeypatch.setattr(locks.fcntl, "flock", failing(errno.ENOLCK))
    lock = Lock(tmp_path)
    with pytest.warns(UserWarning, match="nothing prevents a second process"):
        lock.acquire()
    lock.release()
    lock.acquire()  # a second warning would be an error
    lock.release()


def test_other_failures_of_the_lock_are_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(locks.fcntl, "flock", failing(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        Lock(tmp_path).acquire()


def test_a_platform_without_locks_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    with pytest.raises(InputError, match="platform"):
        Lock(tmp_path).acquire()


def test_a_lock_is_a_regular_file(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="no regular file"):
        Lock(tmp_path).acquire()
    assert not (tmp_path / "elsewhere").exists()
