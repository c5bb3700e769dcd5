"""Shared by the benchmarks: timing, and a result file that names machine and versions."""

import platform
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"


def median_time(function, seconds=0.5, least=3):
    """Median time of a call, in seconds, over calls that fill about `seconds`; the first, which may compile, apart."""
    function()
    times = []
    while len(times) < least or sum(times) < seconds:
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def write(name, lines):
    """Print the lines, and write them to results/NAME.md together with machine and versions."""
    packages = ", ".join(f"{package} {version(package)}" for package in ("gosprl", "numpy", "scipy", "numba"))
    lines = [
        *lines,
        "",
        f"{_processor()}, one core, {platform.system()}, Python {platform.python_version()}, {packages}.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)


def _processor():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
