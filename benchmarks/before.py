"""The time of a step against an earlier commit of this repository, in one run.

python benchmarks/before.py      writes benchmarks/results/before.md

The commit is the last one before the learnt prior. It is taken from the history of the repository and unpacked into a
temporary directory. Two processes, one for each code, run the same seeds in turns.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from report import cells, header, options, write

ROOT = Path(__file__).parents[1]
COMMIT = "773df3c"
MOST = 1.5
RUNS = {1: 20, 10: 5}  # seeds, by the need
SYSTEMS = ("maze 8 x 8", "maze 14 x 14", "maze 20 x 20", "queues of 8", "queues of 12", "tree 5, 2", "garnet 60, 5")
SYSTEMS += ("garnet 500, 2", "open grid 20 x 20", "riverswim20", "riverswim36", "noisy_riverswim36")
SYSTEMS += ("noisy_riverswim100", "four_room43", "corridor24", "room20", "cliff48", "wheel30")
CHILD = """
import json, runpy, sys, time, types, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
import gosprl
families = types.SimpleNamespace(**runpy.run_path(sys.argv[2]))  # the same for both
assert gosprl.__file__.startswith(sys.argv[1]), gosprl.__file__

def system(name, seed):
    kind, *numbers = name.replace("open grid", "open_grid").replace(" of ", " ").replace(",", "").split()
    numbers = [int(n) for n in numbers if n != "x"]
    if kind == "open_grid":
        return gosprl.envs.make(kind, rows=numbers[0], columns=numbers[1])
    made = {"maze": lambda n, _: families.maze(n, seed), "queues": families.queues, "tree": families.tree}
    made["garnet"] = lambda *n: families.garnet(*n, seed)
    return made[kind](*numbers) if kind in made else gosprl.envs.make(name)

for line in sys.stdin:
    name, need, seed = json.loads(line)
    mdp = system(name, seed)
    begin = time.process_time()
    steps = gosprl.collect(mdp, need, seed=seed).steps
    print(json.dumps([time.process_time() - begin, steps]), flush=True)
"""


class Code:
    """A process that collects with the package in a directory."""

    def __init__(self, root):
        command = [sys.executable, "-c", CHILD, str(root), str(ROOT / "evidence" / "families.py")]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def run(self, *job):
        """(CPU seconds, steps)."""
        self._child.stdin.write(json.dumps(job) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process for {job} ended")
        return json.loads(answer)

    def end(self):
        self._child.stdin.close()
        self._child.wait()


def unpacked(commit, directory):
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(directory, filter="data")
    return os.path.realpath(directory)


def compared(codes, name, need, runs):
    """CPU seconds and steps of each run, before and now, [2, 2, runs]."""
    for code in codes:  # compile and load
        code.run(name, need, 0)
    found = np.zeros((2, 2, runs))
    for seed in range(runs):
        for k in (0, 1) if seed % 2 else (1, 0):
            found[k, :, seed] = codes[k].run(name, need, seed)
    return found


def lines_of(codes, systems, runs_of):
    ratios = []
    for name in systems:
        for need, runs in runs_of.items():
            (old, old_steps), (new, new_steps) = compared(codes, name, need, runs).sum(axis=2)
            before, now = 1e6 * old / old_steps, 1e6 * new / new_steps
            ratios.append(now / before)
            verdict = "met" if ratios[-1] <= MOST else "missed"
            yield cells(name, need, f"{before:.0f}", f"{now:.0f}", f"{now / before:.2f}", verdict, f"{new / old:.2f}")
    yield f"\nLargest ratio of a step: {max(ratios):.2f}."


def main():
    quick = options(__doc__).quick
    systems, runs_of = (SYSTEMS[:1], {1: 1}) if quick else (SYSTEMS, RUNS)
    lines = [
        "# The time of a step against an earlier commit",
        "",
        f"`python benchmarks/before.py`: the default strategy of commit {COMMIT}, the last one before the learnt",
        f"prior, and of now. CPU time divided by steps, over {RUNS[1]} runs at need 1 and {RUNS[10]} at need 10, both",
        f"codes in turns. At most {MOST} is asked for. All systems have at most 500 states.",
        "",
        *header("system", "need", "us a step, before", "now", "ratio", f"at most {MOST}", "ratio of whole runs"),
    ]
    with tempfile.TemporaryDirectory() as directory:
        codes = [Code(unpacked(COMMIT, directory)), Code(ROOT)]
        for line in lines_of(codes, systems, runs_of):
            print(line, flush=True)
            lines.append(line)
        for code in codes:
            code.end()
    write("before", lines, quick=quick)


if __name__ == "__main__":
    main()
