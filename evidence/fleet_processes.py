"""A fleet of real processes whose steps take real time: how much of it is used, and what a learner sustains.

    python -m evidence.fleet_processes [--need 10]      writes evidence/results/fleet_processes.md

Each walker is a process whose step sleeps. Efficiency is the time that all steps take, divided by the time that all
walkers have: steps x duration / (walkers x time from the first order to the end). The duration is the nominal one; a
step alone, in a process without a learner, takes longer: the system's timer, the wrappers of the environment. That is
measured beside it, and bounds the efficiency: "of a step alone" is the efficiency with that duration, which is what the
fleet adds to one process. Both have a verdict. The time in
which processes start is not counted. Walkers that wait because nothing is left to do count as lost time, too. An order
costs the learner CPU time for the plan, the counts and the transport; "steps a CPU second" is what one learner could
sustain.
"""

import argparse
import os
import platform
import time
from pathlib import Path

import gymnasium

import gosprl
from gosprl.fleet.orders import RESET, Order
from gosprl.fleet.pipes import Processes
from gosprl.fleet.walking import Walker, describe
from gosprl.systems import as_system

RESULT = Path(__file__).parent / "results" / "fleet_processes.md"
DOMAIN = "four_room43"
CASES = [  # seconds a step, walkers, need, lease, efficiency asked for, steps a CPU second asked for
    (0.020, 16, 10, 1, 0.95, None),
    (0.020, 16, 40, 1, 0.95, None),
    (0.020, 64, 40, 1, 0.90, 15_000),
    (0.020, 64, 40, 4, 0.90, 15_000),
    (0.001, 4, 10, 1, 0.85, None),
    (0.001, 4, 10, 4, 0.85, None),
    (0.001, 64, 40, 1, None, 15_000),
    (0.001, 64, 40, 4, None, 15_000),
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


def alone(seconds, steps=300):
    """Seconds that a step takes in a process without a learner."""
    walker = Walker(as_system(Slow(seconds)), 0, 0)
    walker.answer(Order(0, 0, RESET))
    begun = time.perf_counter()
    for number in range(1, steps + 1):
        walker.answer(Order(number, 0, number % 4))
    return (time.perf_counter() - begun) / steps


def measured(seconds, walkers, need, lease=1, seed=0):
    """(efficiency, steps a CPU second, steps, orders sent, makespan, seconds of a step alone) of one run."""
    factory = SlowFactory(seconds)
    executor = Watched(factory, walkers, entropy=seed, describe=describe(as_system(factory())))
    result = gosprl.collect(factory, need, seed=seed, workers=executor, lease=lease)
    wall = executor.ended[0] - executor.begun[0]
    cpu = executor.ended[1] - executor.begun[1]
    assert result.met
    efficiency = result.steps * seconds / (walkers * wall)
    return efficiency, result.steps / cpu, result.steps, executor.orders, wall, alone(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="write no file")
    options = parser.parse_args()
    begun = time.perf_counter()
    measured(0.0, 16, 10)  # loads and compiles what is needed
    lines = [
        "# A fleet of processes whose steps take time",
        "",
        f"`python -m evidence.fleet_processes --seeds {options.seeds}`: {DOMAIN}, the mean over seeds; the least in",
        "brackets. Start-up is not counted.",
        "",
        "| step | alone | walkers | need | lease | steps | orders sent | seconds | efficiency | asked "
        "| of a step alone | asked | steps a learner CPU second | asked |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for seconds, walkers, need, lease, least, asked in CASES:
        runs = [measured(seconds, walkers, need, lease, seed) for seed in range(options.seeds)]
        efficiency, rate, steps, orders, wall, step = (sum(part) / len(runs) for part in zip(*runs, strict=True))
        worst, slowest = min(run[0] for run in runs), min(run[1] for run in runs)
        of_alone = efficiency * step / seconds
        verdict, verdict_of_alone = (
            "-" if least is None else f"{least:g}: {'met' if part >= least else 'MISSED'}"
            for part in (efficiency, of_alone)
        )
        sustained = "-" if asked is None else f"{asked:,}: {'met' if rate >= asked else 'MISSED'}"
        lines.append(
            f"| {1000 * seconds:g} ms | {1000 * step:.2f} ms | {walkers} | {need} | {lease} | {steps:,.0f} "
            f"| {orders:,.0f} | {wall:.2f} | {efficiency:.3f} "
            f"({worst:.3f}) | {verdict} | {of_alone:.3f} | {verdict_of_alone} "
            f"| {rate:,.0f} ({slowest:,.0f}) | {sustained} |"
        )
        print(lines[-1], flush=True)
    lines += [
        "",
        f"{os.cpu_count()} cores (load {os.getloadavg()[0]:.1f} at the end), {platform.system()}, "
        f"Python {platform.python_version()}; "
        f"{time.perf_counter() - begun:.0f} s.",
    ]
    if not options.dry:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
