"""A newcomer's path: from `pip install` of the built wheel in an empty environment to the first report, timed.

    python benchmarks/newcomer.py             writes benchmarks/results/newcomer.md
    python benchmarks/newcomer.py --wheel FILE   of a wheel that is built already (`make release`)

Every step is a command that the README or `gosprl` alone tells. Nothing is there beforehand: neither pip's cache of
packages nor compiled kernels. Wall time, of which much is the network's; more than two minutes is a failure.
"""

import argparse
import os
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
    """Make every step in an empty environment; return the seconds of each."""
    venv.create(folder / "env", with_pip=True)
    places = {"PATH": f"{folder / 'env' / 'bin'}:{os.environ['PATH']}", "NUMBA_CACHE_DIR": str(folder / "kernels")}
    seconds = []
    for command, what in PATH:
        typed = command.replace("'gosprl[report]'", f"--quiet --disable-pip-version-check '{wheel}[report]'")
        print(f"$ {command}    ({what})", flush=True)
        begin = time.monotonic()
        subprocess.run(typed, shell=True, check=True, cwd=folder, env={**os.environ, **places})
        seconds.append(time.monotonic() - begin)
        print(f"  {seconds[-1]:.1f} s, {sum(seconds):.1f} s since the beginning\n", flush=True)
    assert (folder / "runs" / "lake.html").stat().st_size > 10_000
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="a wheel that is built already; nothing is written then")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        seconds = walk(given.wheel.resolve() if given.wheel else built(folder), folder)
    lines = [
        "# A newcomer's path: from installing to the first report",
        "",
        f"`python benchmarks/newcomer.py`, in an empty environment: neither cached packages nor compiled kernels. "
        f"In all {sum(seconds):.1f} s; more than {LIMIT:.0f} s would be a failure.",
        "",
        *header("command", "what it is", "seconds", "since the beginning"),
        *(
            cells(f"`{command}`", what, f"{each:.1f}", f"{sum(seconds[: i + 1]):.1f}")
            for i, ((command, what), each) in enumerate(zip(PATH, seconds, strict=True))
        ),
    ]
    write("newcomer", lines, quick=given.wheel is not None, times="Wall times, the network's included")
    sys.exit(sum(seconds) > LIMIT)


if __name__ == "__main__":
    main()
