"""A newcomer's path: from `pip install` of the built wheel in an empty environment to the first report, timed.

    python benchmarks/newcomer.py             writes benchmarks/results/newcomer.md
    python benchmarks/newcomer.py --wheel FILE   of a wheel that is built already (`make release`)

Every step is a command that the README or `gosprl` alone tells. Nothing is there beforehand: neither pip's cache of
packages nor compiled kernels. Wall time, the network included; more than two minutes is a failure. CPU time is that of
the commands alone: where it is much less, they waited for the network or for other programs.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from report import cells, header, write

ROOT = Path(__file__).parents[1]
LIMIT = 120.0  # seconds
PATH = (
    ("pip install --no-cache-dir 'gosprl[report]'", "the wheel, and all that it needs"),
    ("gosprl", "what to do first"),
    ("gosprl collect FrozenLake-v1 --need 20 --seed 0 --out runs/lake", "the first run: compiles the kernels"),
    ("gosprl show runs/lake", "what was kept"),
    ("gosprl report runs/lake", "the first report"),
)


def built(folder):
    """Build the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def walk(wheel, folder):
    """Make every step in an empty environment; return (seconds, seconds of CPU) of each."""
    venv.create(folder / "env", with_pip=True)
    places = {"PATH": f"{folder / 'env' / 'bin'}:{os.environ['PATH']}", "NUMBA_CACHE_DIR": str(folder / "kernels")}
    seconds = []
    for command, what in PATH:
        typed = command.replace("'gosprl[report]'", f"--quiet --disable-pip-version-check '{wheel}[report]'")
        print(f"$ {command}    ({what})", flush=True)
        begin, before = time.monotonic(), cpu()
        subprocess.run(typed, shell=True, check=True, cwd=folder, env={**os.environ, **places})
        seconds.append((time.monotonic() - begin, cpu() - before))
        print(f"  {seconds[-1][0]:.1f} s, {sum(wall for wall, _ in seconds):.1f} s since the beginning\n", flush=True)
    assert (folder / "runs" / "lake.html").stat().st_size > 10_000
    return seconds


def cpu():
    """Seconds of CPU that finished commands took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="a wheel that is built already; nothing is written then")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        seconds = walk(given.wheel.resolve() if given.wheel else built(folder), folder)
    total = sum(wall for wall, _ in seconds)
    verdict = "kept" if total <= LIMIT else "exceeded"
    busy = os.getloadavg()[2] / (os.cpu_count() or 1)
    lines = [
        "# A newcomer's path: from installing to the first report",
        "",
        "`python benchmarks/newcomer.py`, in an empty environment: neither cached packages nor compiled kernels. "
        f"In all {total:.1f} s; the limit of {LIMIT:.0f} s is {verdict}. Load of the machine over 15 minutes: "
        f"{busy:.1f} programs per core.",
        "",
        *header("command", "what it is", "seconds", "seconds of CPU"),
        *(
            cells(f"`{command}`", what, f"{wall:.1f}", f"{used:.1f}")
            for (command, what), (wall, used) in zip(PATH, seconds, strict=True)
        ),
        cells("in all", "", f"{total:.1f}", f"{sum(used for _, used in seconds):.1f}"),
    ]
    write("newcomer", lines, quick=given.wheel is not None, times="Wall times, the network's included")
    sys.exit(total > LIMIT)


if __name__ == "__main__":
    main()
