"""A fleet of real processes whose steps take real time: how much of it is used, and what a learner sustains.

    python -m evidence.fleet_processes [--need 10]      writes evidence/results/fleet_processes.md

Each walker is a process whose step sleeps. Efficiency is the time that all steps take, divided by the time that all
walkers have: steps x duration / (walkers x time from the first order to the end). The time in which processes start is
not counted. Walkers that wait because nothing is left to do count as lost time, too. An order costs the learner CPU
time for the plan, the counts and the transport; "orders a CPU second" is what one learner could sustain.
"""

import argparse
import os
import platform
import time
from pathlib import Path

import gymnasium

import gosprl
from gosprl.fleet.pipes import Processes
from gosprl.fleet.walking import describe
from gosprl.systems import as_system

RESULT = Path(__file__).parent / "results" / "fleet_processes.md"
DOMAIN = "four_room43"
CASES = [  # seconds a step, walkers, need, efficiency asked for, orders a CPU second asked for
    (0.020, 16, 10, 0.95, None),
    (0.020, 64, 40, 0.90, 15_000),
    (0.001, 4, 10, 0.85, None),
]


class Slow(gymnasium.Wrapper):
    """An environment whose steps take time."""

    def __init__(self, seconds):
        super().__init__(gymnasium.make(f"gosprl/{DOMAIN}-v0"))
        self._seconds = seconds

    def step(self, action):
        time.sleep(self._seconds)
        return super().step(action)


class SlowFactory:
    """Makes `Slow` systems; can be sent to processes."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self):
        return Slow(self.seconds)


class Watched(Processes):
    """Processes, with the times of the first order and of the end."""

    def __init__(self, *args, **others):
        super().__init__(*args, **others)
        self.begun = self.ended = None
        self.orders = 0

    def send(self, order):
        if self.begun is None:
            self.begun = time.perf_counter(), time.process_time()
        self.orders += 1
        super().send(order)

    def close(self):
        if self.ended is None:
            self.ended = time.perf_counter(), time.process_time()
        super().close()


def measured(seconds, walkers, need, seed=0):
    """(efficiency, orders a CPU second, steps, makespan) of one run."""
    factory = SlowFactory(seconds)
    executor = Watched(factory, walkers, entropy=seed, describe=describe(as_system(factory())))
    result = gosprl.collect(factory, need, seed=seed, workers=executor)
    wall = executor.ended[0] - executor.begun[0]
    cpu = executor.ended[1] - executor.begun[1]
    assert result.met
    return result.steps * seconds / (walkers * wall), executor.orders / cpu, result.steps, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="write no file")
    options = parser.parse_args()
    begun = time.perf_counter()
    measured(0.0, 2, 10)  # loads and compiles what is needed
    lines = [
        "# A fleet of processes whose steps take time",
        "",
        f"`python -m evidence.fleet_processes --seeds {options.seeds}`: {DOMAIN}, the mean over seeds; the least in",
        "brackets. Start-up is not counted.",
        "",
        "| step | walkers | need | steps | seconds | efficiency | asked | orders a learner CPU second | asked |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for seconds, walkers, need, least, orders in CASES:
        runs = [measured(seconds, walkers, need, seed) for seed in range(options.seeds)]
        efficiency, rate, steps, wall = (sum(part) / len(runs) for part in zip(*runs, strict=True))
        worst, slowest = min(run[0] for run in runs), min(run[1] for run in runs)
        verdict = f"{least:g}: {'met' if efficiency >= least else 'MISSED'}"
        sustained = "-" if orders is None else f"{orders:,}: {'met' if rate >= orders else 'MISSED'}"
        lines.append(
            f"| {1000 * seconds:g} ms | {walkers} | {need} | {steps:,.0f} | {wall:.2f} | {efficiency:.3f} "
            f"({worst:.3f}) | {verdict} | {rate:,.0f} ({slowest:,.0f}) | {sustained} |"
        )
        print(lines[-1], flush=True)
    lines += [
        "",
        f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}; "
        f"{time.perf_counter() - begun:.0f} s.",
    ]
    if not options.dry:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
