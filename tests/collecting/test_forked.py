"""A system that forks in a step: the child touches nothing of the run."""

import subprocess
import sys

import pytest

from gosprl.runs import verify

FORKS = """
import os, sys
import gosprl

WAY, WHERE = sys.argv[2:4]

class Ring:
    def __init__(self):
        self.cell, self.made = 0, 0
    def fork(self, where):
        self.made += where == WHERE
        if where != WHERE or self.made != 5:
            return
        child = os.fork()
        if child:
            print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        elif WAY == "exits":
            sys.exit(3)
        elif WAY == "raises":
            raise ValueError("in the child")
    def reset(self, seed=None):
        self.fork("reset")
        self.cell = 0
        return 0, {}
    def step(self, action):
        self.fork("step")
        self.cell = (self.cell + (1 if action else -1)) % 4
        return self.cell, 0.0, self.cell == 3, False, {}

result = gosprl.collect(Ring(), 10, actions=2, seed=0, out=sys.argv[1])
print("met", result.met, result.steps, flush=True)
"""


@pytest.mark.parametrize(("way", "where"), [("returns", "step"), ("exits", "reset"), ("raises", "step")])
def test_the_child_is_ended_and_the_run_goes_on(way, where, tmp_path):
    script = [sys.executable, "-c", FORKS]
    done = subprocess.run([*script, tmp_path / "forked", way, where], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    child, *rest = done.stdout.splitlines()
    assert child == "child 1"
    assert [line.startswith("met True") for line in rest] == [True]  # once: nothing of the child's walk is printed
    assert "the child came back; it is ended" in done.stderr
    assert not verify(tmp_path / "forked").damaged


def test_a_copy_of_us_ends_no_program():
    """What a finalizer or the end of a `with` does in a forked child."""
    code = """
import os, sys
from gosprl.systems.child import Child
child = Child([sys.executable, "-c", "print(input(), flush=True)"])
copy = os.fork()
if not copy:
    child.leave(b"")
    child.end()
    os._exit(0)
os.waitpid(copy, 0)
child.write(b"still here\\n")
print(child.read(60))
child.end()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "b'still here\\n'\n", done.stderr[-2000:]
