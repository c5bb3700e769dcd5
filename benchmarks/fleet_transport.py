"""What it costs a learner to send an order to a walker and to read its report, for each way to run walkers.

    python benchmarks/fleet_transport.py      writes benchmarks/results/fleet_transport.md

CPU time of the learner's process for an order and its report, with every walker busy; the steps themselves are those
of a river with six states, which take a few microseconds in the walker's process. In threads they are made in the
learner's process, and count. Ray is measured if it is installed.
"""

import functools
import importlib.util
import os
import time

from report import cells, header, options, write

import gosprl
from gosprl.fleet.orders import RESET, Joined, Order
from gosprl.fleet.pipes import Processes
from gosprl.fleet.simulated import Simulated
from gosprl.fleet.threads import Threads

ORDERS, RAY_ORDERS, ROUNDS = 40_000, 3_000, 3
TARGET = 30.0  # us of CPU an order at 64 processes
river = functools.partial(gosprl.envs.make, "riverswim6")


def measured(executor, orders, rounds):
    """(seconds until all walkers have joined, us of CPU an order, orders a second), the last two of the best round."""
    begin = time.perf_counter()
    executor.open()
    number = joined = 0
    try:
        while joined < executor.workers:
            for event in executor.receive():
                joined += isinstance(event, Joined)
                executor.send(Order(number, event.walker, RESET if isinstance(event, Joined) else 1))
                number += 1
        start = time.perf_counter() - begin
        best = []
        for _ in range(rounds):
            wall, cpu, first = time.perf_counter(), time.process_time(), number
            while number < first + orders:
                for event in executor.receive():
                    executor.send(Order(number, event.walker, 1))
                    number += 1
            done = number - first
            best.append(((time.process_time() - cpu) / done * 1e6, done / (time.perf_counter() - wall)))
        return start, *min(best)
    finally:
        executor.close()


def simulated(workers):
    executor = Simulated(river(), workers, duration=lambda rng, report: rng.exponential(), entropy=0)
    executor.workers = workers
    return executor


def ray_actors(workers):
    """Actors of a Ray of our own; its limits would end on one machine at a few dozen."""
    from gosprl.fleet.ray_actors import RayActors

    return RayActors(river, workers, entropy=0)


def main(quick):
    """Write the table."""
    orders, rounds = (300, 1) if quick else (ORDERS, ROUNDS)
    has_ray = importlib.util.find_spec("ray") is not None and not quick
    cases = [(f"processes, {k}", Processes(river, k, entropy=0), orders) for k in ((2,) if quick else (4, 16, 64))]
    cases += [(f"threads, {k}", Threads(river, k, entropy=0), orders // 2) for k in ((2,) if quick else (4, 16, 64))]
    cases += [("simulated clock, 64", simulated(64), orders)]
    lines = ["# Orders and reports", ""]
    lines += header("walkers", "seconds to start", "us of the learner's CPU an order", "orders a second")
    found = {}
    for name, executor, count in cases:
        start, found[name], rate = measured(executor, count, rounds)
        lines.append(cells(name, f"{start:.2f}", f"{found[name]:.1f}", f"{rate:,.0f}"))
    if has_ray:
        begin = time.perf_counter()
        executor = ray_actors(4)
        begun = time.perf_counter() - begin
        start, cpu, rate = measured(executor, RAY_ORDERS, rounds)
        lines.append(cells("Ray actors, 4", f"{begun + start:.2f}", f"{cpu:.0f}", f"{rate:,.0f}"))
    else:
        why = "not measured in a quick run" if quick else "not measured: Ray is not installed"
        lines.append(cells("Ray actors", "-", why, "-"))
    if not quick:
        verdict = "met" if found["processes, 64"] <= TARGET else "MISSED"
        lines += ["", f"Target: {TARGET:.0f} us an order at 64 processes: {verdict}. {os.cpu_count()} cores."]
    packages = ("ray",) if has_ray else ()
    write("fleet_transport", lines, quick=quick, packages=packages, times="Best of three rounds; CPU and wall times")


if __name__ == "__main__":
    main(options(__doc__).quick)
