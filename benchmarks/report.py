"""Shared by the benchmarks: timing, processes of their own, and a result file that names machine and versions."""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
clock = time.process_time  # of this process alone: what else the machine is doing hardly matters
pace = {"seconds": 0.5, "least": 3, "apart": 1}  # of `timed`, unless told otherwise
ONCE = {"seconds": 0, "least": 1, "apart": 0}  # for calls that take seconds


def options(description, **flags):
    """The command line: --quick, and the flags given as name=help."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, text in {"quick": "a smoke run on tiny sizes, which writes nothing", **flags}.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    given = parser.parse_args()
    if given.quick:
        pace.update(ONCE)
    return given


def timed(function, **how):
    """(median time of a call in seconds, last answer), over calls that fill `seconds` and are at least `least`.

    The first `apart` calls, which may compile, do not count.
    """
    seconds, least, apart = ({**pace, **how}[key] for key in ("seconds", "least", "apart"))
    for _ in range(apart):
        function()
    times = []
    while len(times) < least or sum(times) < seconds:
        begin = clock()
        answer = function()
        times.append(clock() - begin)
    return float(np.median(times)), answer


def medians(runs):
    """Of several instances, each a dict of numbers: the dict of their medians."""
    return {key: float(np.median([run[key] for run in runs])) for key in runs[0]}


def in_child(module, call, timeout=None):
    """The answer to module.call, in a process of its own; whose peak memory begins at what this process holds now."""
    code = f"import json, {module}; print(json.dumps({module}.{call}))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE, timeout=timeout)
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory():
    """Bytes that this process held at most."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def header(*columns):
    """The two lines that begin a table."""
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]


def cells(*values):
    """A line of a table."""
    return f"| {' | '.join(map(str, values))} |"


def write(name, lines, *, quick=False, packages=(), times="CPU times of one core"):
    """Print the lines, and write them to results/NAME.md, together with machine and versions."""
    packages = ("gosprl", "numpy", "scipy", "numba", *packages)
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    processor = f"{_processor()} ({os.cpu_count()} cores)"
    machine = f"{times}, {processor}, {platform.system()}, Python {platform.python_version()}"
    text = "\n".join([*lines, "", f"{machine}, {versions}."]) + "\n"
    print(text, flush=True)
    if not quick:
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / f"{name}.md").write_text(text)


def _processor():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
