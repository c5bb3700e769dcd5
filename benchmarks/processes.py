"""What the line protocol costs: a step of a program that does nothing, through a pipe and through everything above it.

    python benchmarks/processes.py      writes benchmarks/results/processes.md

Wall time, since two processes share the work. `examples/processes/grid.c` computes next to nothing a step.
"""

import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from report import cells, header, options, write

import gosprl
from gosprl.systems.process import Process, Program

SOURCE = Path(__file__).parents[1] / "examples" / "processes" / "grid.c"
STEPS, ROUNDS, NEED = 20_000, 5, 500
TARGET = 60  # us a step
TIMEOUTS = {"hello": 30, "reset": 30, "step": 30}


def per_step(step, reset, steps, rounds):
    """Seconds a step: the median over rounds, and the slowest."""
    times = []
    for _ in range(rounds):
        reset()
        begin = time.perf_counter()
        for i in range(steps):
            if step(i % 4):
                reset()
        times.append((time.perf_counter() - begin) / steps)
    return float(np.median(times)), max(times)


def collecting(command, need):
    """Seconds a step of a whole run, planning included."""
    with Process(command) as system, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gosprl.collect(system, 1, seed=0)  # loads the compiled code
        begin = time.perf_counter()
        result = gosprl.collect(system, need, seed=0)
        return (time.perf_counter() - begin) / result.steps


def main(quick):
    """Write the table."""
    steps, rounds, need = (100, 1, 2) if quick else (STEPS, ROUNDS, NEED)
    lines = ["# Programs behind a pipe", ""]
    lines += header("what", "us a step, median", "slowest round")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(folder) / "grid")]
        subprocess.run(["gcc", "-O2", "-o", *command, str(SOURCE)], check=True)
        program = Program(command, TIMEOUTS)
        bare = per_step(lambda action: program.step(action)[2], program.reset, steps, rounds)
        program.close()
        with Process(command) as system:
            whole = per_step(lambda action: system.step(action).terminated, system.reset, steps, rounds)
        run = collecting(command, need)
    for name, seconds in (("request and answer", bare), ("as a system, with states and checks", whole)):
        lines.append(cells(name, *(f"{1e6 * value:.1f}" for value in seconds)))
    lines.append(cells(f"`gosprl.collect`, need {need}, plans included", f"{1e6 * run:.1f}", "-"))
    verdict = "met" if 1e6 * whole[0] <= TARGET else "MISSED"
    lines += ["", f"Target for the protocol: {TARGET} us a step: {verdict}."]
    write("processes", lines, quick=quick, times="Wall times, two processes")


if __name__ == "__main__":
    main(options(__doc__).quick)
