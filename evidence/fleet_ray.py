"""A fleet on Ray, two nodes on this machine, beside processes: same results, speed, start-up, what is survived.

    python -m evidence.fleet_ray      writes evidence/results/fleet_ray.md; needs Ray: pip install 'gosprl[ray]'

The nodes are made by `ray.cluster_utils.Cluster`, so both share the cores of this machine. Same results: with
`deterministic=` a run does not depend on time, so both ways to carry orders must give the same transitions. Start-up:
from the beginning to the first order; the cluster runs already. An actor is killed, and then a whole node, in the
middle of a run that is kept: it must end, lose no more samples than were open, and pass `verify`.
"""

import os

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray listens on 127.0.0.1; set before it is imported
os.environ.setdefault("RAY_AUTH_TOKEN", "of-the-evidence")
os.environ["PYTHONPATH"] = os.getcwd()  # nodes import this module

import platform
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

import gosprl
from evidence.fleet_processes import SlowFactory
from gosprl.fleet.pipes import Processes
from gosprl.fleet.ray_actors import RayActors
from gosprl.fleet.walking import describe
from gosprl.runs import verify
from gosprl.systems import as_system

RESULT = Path(__file__).parent / "results" / "fleet_ray.md"
WALKERS, NEED, SECONDS, DEPTH = 8, 10, 0.02, 6


def timed(kind):
    """An executor that knows when it was opened, when it sent the first order, and how many it sent."""

    class Timed(kind):
        begun = first = None
        orders = 0
        at: ClassVar = {}  # number of orders -> what is done then

        def open(self):
            self.begun = time.perf_counter()
            super().open()

        def send(self, order):
            if self.first is None:
                self.first = time.perf_counter(), time.process_time()
            self.orders += 1
            super().send(order)
            if self.orders in self.at:
                self.at[self.orders](self, order)

        def close(self):
            self.ended = time.perf_counter(), time.process_time()
            super().close()

    return Timed


def executor_of(kind, seconds):
    factory = SlowFactory(seconds)
    return factory, timed(kind)(factory, WALKERS, entropy=0, describe=describe(as_system(factory())))


def bits(result):
    model = result.model
    return [array.tobytes() for array in (*model.stored(), result.counts)], result.steps


def same():
    """Whether runs that do not depend on time are the same on both."""
    results = []
    for kind in (Processes, RayActors):
        factory, executor = executor_of(kind, 0.0)
        results.append(gosprl.collect(factory, NEED, seed=0, workers=executor, deterministic=DEPTH))
    return bits(results[0]) == bits(results[1]), results[0].steps


def speed(kind, seconds):
    """(seconds until the first order, efficiency, orders a second, orders a learner CPU second)."""
    factory, executor = executor_of(kind, seconds)
    result = gosprl.collect(factory, NEED, seed=0, workers=executor)
    wall, cpu = (end - begin for end, begin in zip(executor.ended, executor.first, strict=True))
    efficiency = result.steps * seconds / (WALKERS * wall)
    return executor.first[0] - executor.begun, efficiency, executor.orders / wall, executor.orders / cpu


def survived(cluster, node, directory):
    """(result, verdict of verify) of a run in which an actor and then a node are killed."""
    import ray

    factory, executor = executor_of(RayActors, SECONDS)
    executor.at = {
        400: lambda executor, order: ray.kill(executor.handle(order.walker)),
        900: lambda executor, order: cluster.remove_node(node, allow_graceful=False),
    }
    result = gosprl.collect(factory, NEED, seed=0, workers=executor, out=directory)
    return result, verify(directory)


def main():
    import ray
    from ray.cluster_utils import Cluster

    begun = time.perf_counter()
    nodes = {"num_cpus": WALKERS, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=nodes)
    second = cluster.add_node(num_cpus=WALKERS)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    started = time.perf_counter() - begun
    equal, steps = same()
    lines = [
        "# A fleet on Ray, two nodes, beside processes",
        "",
        f"`python -m evidence.fleet_ray`: four_room43 with discovered states, {WALKERS} walkers, need {NEED};",
        f"both nodes on this machine. To start the cluster took {started:.1f} s, once.",
        "",
        f"Same results (`deterministic={DEPTH}`, {steps:,} steps): **{'yes, bit for bit' if equal else 'NO'}**.",
        "",
        "| a step takes | carried by | start-up | efficiency | steps a second | steps a learner CPU second |",
        "|---|---|---|---|---|---|",
    ]
    for seconds in (0.0, SECONDS):
        for name, kind in (("processes", Processes), ("Ray", RayActors)):
            start, efficiency, rate, sustained = speed(kind, seconds)
            shown = f"{efficiency:.3f}" if seconds else "-"
            step = f"{1000 * seconds:g} ms" if seconds else "no time"
            lines.append(f"| {step} | {name} | {start:.1f} s | {shown} | {rate:,.0f} | {sustained:,.0f} |")
            print(lines[-1], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        result, checked = survived(cluster, second, Path(folder) / "run")
    lost, walkers = result.fleet["lost"], result.fleet["walkers"]
    lines += [
        "",
        "An actor killed after 400 orders, a node with its walkers after 900: "
        f"stop `{result.stop}`, {result.steps:,} steps, {lost} samples lost (each was open when its walker was killed; "
        f"{WALKERS + 1} at most), {walkers} walkers in all; verify: **{'damaged' if checked.damaged else 'ok'}**; "
        f"every pair has at least {int(np.min(result.counts))} samples.",
        "",
        f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, Ray {ray.__version__}; "
        f"{time.perf_counter() - begun:.0f} s.",
    ]
    ray.shutdown()
    cluster.shutdown()
    RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[-4:]))


if __name__ == "__main__":
    main()
