"""What a fleet loses by division of labour: total steps over the fluid limit, and the speed-up of the makespan.

Walkers share one plan and start in one state (or anywhere). Steps take exponential or Pareto(1.5) times of mean 1, on a
simulated clock. Targets are for 10 samples of every pair. A verdict is "met" if the whole 95 % interval of the mean is
within the target, "missed" if all of it is beyond, and "undecided" otherwise.

    python -m evidence.fleet_labour [--runs 10]      writes evidence/results/fleet_labour.md

Runs that are finished are kept (`evidence.runs.Finished`).
"""

import argparse
import time
from pathlib import Path

import numpy as np

import gosprl
from evidence.runs import Finished, mean_and_interval
from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.simulated import Simulated
from gosprl.systems import Tabular, as_system

RESULT = Path(__file__).parent / "results" / "fleet_labour.md"
NEED = 10
DOMAINS = ("four_room43", "corridor24", "cliff48", "garnet100")
SIZES = (4, 16, 64)
MOST_STEPS = {4: 1.05, 16: 1.10, 64: 1.30}  # over the limit
LEAST_SPEED_UP = {4: 3.8, 16: 14.0, 64: 45.0}
MOST_SCATTERED, MOST_MAKESPAN = 1.07, 1.25
RIVER = "riverswim36"
FLOORS = 400  # simulations of the floor
THRIFT = (20, 15, 10)


def exponential(rng, report):
    return rng.exponential()


def pareto(rng, report):
    return (rng.pareto(1.5) + 1) / 3


DURATIONS = {"exponential": exponential, "Pareto": pareto}


class Scattered(Tabular):
    """A copy that starts anywhere."""

    def reset(self):
        self._state = int(self._rng.integers(self.mdp.num_states))
        return self._state


def domain_of(name, seed):
    """The MDP of a run; each run has a garnet of its own."""
    if name == "garnet100":
        return gosprl.envs.make("garnet", states=100, actions=4, branching=3, seed=seed)
    return gosprl.envs.make(name)


def run(name, walkers, kind, seed, scattered=False, thrift=None):
    """Return (steps, makespan, limit, samples given up) of one run."""
    mdp = domain_of(name, seed)
    system = as_system(mdp)
    collector = FleetCollector(need=NEED, seed=seed, model=system.model(), resets="never", late=20, thrift=thrift)
    what = (lambda: Scattered(mdp)) if scattered else mdp
    executor = Simulated(what, walkers, duration=DURATIONS[kind], entropy=seed)
    collector.walk_fleet(executor, system)
    result = collector.result()
    assert result.met
    return result.steps, executor.now(), gosprl.fluid_limit(mdp, NEED), collector.record.lost


class Runs:
    """Runs that are made once."""

    def __init__(self, finished, number):
        self.finished, self.number = finished, number

    def of(self, *job):
        """Return an array [runs, 4] of what `run` returns."""
        return np.array([self.one(*job[:3], seed, *job[3:]) for seed in range(self.number)])

    def one(self, *job):
        key = f"fleet_labour {job!r}"
        if key not in self.finished.answers:
            self.finished.add(key, run(*job))
        return self.finished.answers[key]


def verdict(low, high, target, at_least=False):
    if at_least:
        low, high, target = -high, -low, -target
    return "met" if high <= target else "missed" if low > target else "undecided"


def speed_up(alone, together):
    """Geometric mean of the ratios, seed by seed, and its 95 % interval."""
    mean, half = mean_and_interval(np.log(alone / together))
    return np.exp([mean, mean - half, mean + half])


def most(numbers, target):
    """A cell: the mean, its interval, and whether it is at most the target."""
    mean, half = mean_and_interval(numbers)
    return f"{mean:.3f} ± {half:.3f} | {verdict(mean - half, mean + half, target)} ({target:g})"


def common_start(runs):
    lines = [
        "| domain | step times | walkers | steps / limit | target | speed-up | target | makespan / ideal | given up |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in DURATIONS:
        for name in DOMAINS:
            alone = runs.of(name, 1, kind)
            over = "{:.3f} ± {:.3f}".format(*mean_and_interval(alone[:, 0] / alone[:, 2]))
            lines.append(f"| {name} | {kind} | 1 | {over} | for comparison | 1 | | | |")
            for K in SIZES:
                steps, makespan, limit, lost = runs.of(name, K, kind).T
                # with Pareto times the makespan of one walker has a heavy tail: its number of steps has not
                ratio, low, high = speed_up(alone[:, 0] if kind == "Pareto" else alone[:, 1], makespan)
                speed = f"{ratio:.1f} ({low:.1f} to {high:.1f}) | "
                speed += f"{verdict(low, high, LEAST_SPEED_UP[K], at_least=True)} ({LEAST_SPEED_UP[K]:g})"
                ideal, half = mean_and_interval(makespan / (limit / K))
                over = f"{ideal:.3f} ± {half:.3f}"
                if kind == "Pareto":
                    over += f", {verdict(ideal - half, ideal + half, MOST_MAKESPAN)} ({MOST_MAKESPAN:g})"
                cells = [name, kind, str(K), most(steps / limit, MOST_STEPS[K]), speed, over, f"{lost.mean():.1f}"]
                lines.append(f"| {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    return lines


def random_starts(runs):
    lines = ["| domain | walkers | steps / limit | target |", "|---|---|---|---|"]
    for name in DOMAINS:
        steps, _, limit, _ = runs.of(name, 64, "exponential", True).T
        lines.append(f"| {name} | 64 | {most(steps / limit, MOST_SCATTERED)} |")
        print(lines[-1], flush=True)
    return lines


def floor_of(walkers, rng):
    """The time until walkers that always swim right have made as many steps in the last state as are needed there."""
    mdp = gosprl.envs.make(RIVER)
    last = mdp.num_states - 1
    rows = [mdp.p(s, 1) for s in range(mdp.num_states)]
    free, state, steps = rng.exponential(size=walkers), np.full(walkers, mdp.start), 0
    while True:
        i = int(np.argmin(free))
        succ, prob = rows[state[i]]
        if state[i] == last:
            steps += 1
            if steps >= 2 * NEED:
                return free[i]
        state[i] = rng.choice(succ, p=prob)
        free[i] += rng.exponential()


def thrift(runs):
    lines = ["| domain | thrift | steps / limit | makespan / ideal |", "|---|---|---|---|"]
    for name in DOMAINS[:2]:
        for limit_of_trips in (None, *THRIFT):
            job = (False, limit_of_trips) if limit_of_trips else ()
            steps, makespan, limit, _ = runs.of(name, 64, "exponential", *job).T
            over = ["{:.3f} ± {:.3f}".format(*mean_and_interval(x)) for x in (steps / limit, 64 * makespan / limit)]
            lines.append(f"| {name} | {limit_of_trips} | {' | '.join(over)} |")
            print(lines[-1], flush=True)
    return lines


def river(runs):
    lines = [
        "| walkers | steps / limit | makespan | floor | speed-up |",
        "|---|---|---|---|---|",
    ]
    alone = runs.of(RIVER, 1, "exponential")
    for K in SIZES:
        steps, makespan, limit, _ = runs.of(RIVER, K, "exponential").T
        rng = np.random.default_rng(K)
        floor, half = mean_and_interval(np.array([floor_of(K, rng) for _ in range(FLOORS)]))
        floor = max(floor, limit[0] / K)
        ratio, low, high = speed_up(alone[:, 1], makespan)
        over = "{:.2f} ± {:.2f}".format(*mean_and_interval(steps / limit))
        time_taken = "{:.0f} ± {:.0f}".format(*mean_and_interval(makespan))
        cells = [str(K), over, time_taken, f"{floor:.0f} ± {half:.0f}", f"{ratio:.1f} ({low:.1f} to {high:.1f})"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    begin = time.process_time()
    with Finished() as finished:
        lines = report(Runs(finished, options.runs))
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.process_time() - begin:.0f} s of one core")


def report(runs):
    return [
        "# The labour of a fleet",
        "",
        f"`python -m evidence.fleet_labour --runs {runs.number}`: {NEED} samples of every pair, all walkers start in",
        "one state, unknown dynamics, `late=20`. Mean of the runs ± its 95 % interval, over the fluid limit of one",
        "walker; speed-up: makespan of one walker over that of the fleet, geometric mean over seeds with its 95 %",
        "interval (Pareto times: number of steps of one walker, whose makespan has a heavy tail); makespan over the",
        "ideal, limit / walkers. Verdicts are of whole intervals, targets in brackets. On garnet100 each seed has a",
        "garnet of its own.",
        "",
        *common_start(runs),
        "",
        "Walkers that start anywhere, exponential times:",
        "",
        *random_starts(runs),
        "",
        f"{RIVER}, exponential times. The floor is the larger one of the ideal and the expected time until walkers",
        "that do nothing but swim right have made as many steps in the last state as are needed there.",
        "",
        *river(runs),
        "",
        "`thrift=` trades time for steps, 64 walkers, exponential times:",
        "",
        *thrift(runs),
    ]


if __name__ == "__main__":
    main()
