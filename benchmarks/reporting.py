"""Pages of runs: how large they are, how long they take to make, and how soon a browser shows them.

    python benchmarks/reporting.py             writes benchmarks/results/reporting.md

Runs of 43, 1,000 and 100,000 states. A page is made from the result in memory, and from the directory of the run, whose
log is then read and counted. First paint is what the browser itself reports (first contentful paint, from the beginning
of the navigation), and "drawn" is when every chart answers to the pointer; each load is one of a new browser context,
from a file. Both need Chromium (apt install chromium) and playwright (make browser); without them they are not
measured, and the table says so.
"""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from report import ONCE, cells, header, options, timed, write

import gosprl
from gosprl.envs import gridworld
from gosprl.report import report

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
LOADS = 7
LARGEST = 2_000_000  # bytes of the page of 1,000 states
PAINTED = """() => performance.getEntriesByName("first-contentful-paint").map((entry) => entry.startTime)[0] / 1000"""
DRAWN = """() => performance.mark("drawn").startTime / 1000"""


def runs(quick):
    """(states, collect): each collects a run into a directory, and returns its result."""

    def rooms(out):
        return gosprl.collect("four_room43", 10, seed=0, out=out)

    def grid(high, wide):
        mdp = gridworld.open_grid(high, wide)
        return lambda out: gosprl.collect(mdp, 1, strategy="random", seed=0, max_steps=4 * high * wide, out=out)

    return [(43, rooms)] if quick else [(43, rooms), (1_000, grid(25, 40)), (100_000, grid(250, 400))]


def loads(file, times):
    """[(seconds to first paint, seconds until all charts are drawn)] of loads; None if there is no browser."""
    program = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if program is None:
        return None
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        found = [_load(browser, file) for _ in range(times)]
        browser.close()
    return found


def _load(browser, file):
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-drawn=yes]", state="attached", timeout=60_000)
    found = page.evaluate(PAINTED), page.evaluate(DRAWN)
    context.close()
    return found


def measured(states, collect, quick):
    """(line of the table, bytes) of one run."""
    with tempfile.TemporaryDirectory() as parent:
        directory, file = Path(parent) / "run", Path(parent) / "page.html"
        result = collect(directory)
        assert result.states == states
        how = {} if states < 100_000 else {**ONCE, "least": 3}
        from_directory, _ = timed(lambda: report(directory, file), **how)
        from_result, _ = timed(lambda: report(result, file), **how)
        size, seen = file.stat().st_size, loads(file, 2 if quick else LOADS + 1)
    painted = ["not measured"] * 2
    if seen is not None:
        painted = [f"{seconds:.2f}" for seconds in np.median(seen[1:], axis=0)]  # the first load starts the browser
    made = (f"{from_result:.2f}", f"{from_directory:.2f}")
    return cells(f"{states:,}", f"{result.steps:,}", f"{size / 1e6:.2f}", *made, *painted), size


def main():
    quick = options(__doc__).quick
    begin = os.getloadavg()[0]
    lines, sizes = [], {}
    for states, collect in runs(quick):
        line, sizes[states] = measured(states, collect, quick)
        lines.append(line)
    text = [
        "# Pages of runs",
        "",
        "`python benchmarks/reporting.py`: seconds to make a page are CPU times of one core, medians of at least 3;",
        f"seconds of Chromium are wall times, medians of {LOADS} loads. Load of the machine: {begin:.1f} before, "
        f"{os.getloadavg()[0]:.1f} after.",
        "",
        *header("states", "steps", "size, MB", "from the result, s", "from disk, s", "first paint, s", "drawn, s"),
        *lines,
    ]
    if 1_000 in sizes:
        said = "met" if sizes[1_000] <= LARGEST else "MISSED"
        text += ["", f"Size of the page of 1,000 states, at most {LARGEST / 1e6:g} MB: {said}."]
    write("reporting", text, quick=quick, packages=("vl-convert-python",), times="CPU and wall times")


if __name__ == "__main__":
    main()
