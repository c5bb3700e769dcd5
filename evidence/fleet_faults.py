"""A fleet under faults: walkers are killed, stopped, late, lie, repeat themselves and flood; every run ends, and holds.

    python -m evidence.fleet_faults [--faults 1000]      writes evidence/results/fleet_faults.md

Runs with 8 walkers, each a process, kept on disk. While a run goes on, faults are injected at moments that a seed
decides: `kill -9` and SIGSTOP from outside; from inside, garbage instead of a report, a report of another order, the
same report twice, a flood, an answer that comes late, an exception. Each walker writes what its system did to a journal
of its own, before it reports. After each run

- it has met its need, and `gosprl verify` confirms it;
- every step of the log is a step that some walker's journal has, at most once: nothing is invented or duplicated;
- every fault of a kind that costs a sample shows as a lost one, or as a walker that was replaced.
"""

import argparse
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np

import gosprl
from gosprl.exchange import export
from gosprl.fleet import wire, worker
from gosprl.fleet.pipes import Processes
from gosprl.fleet.walking import describe
from gosprl.runs import verify
from gosprl.systems import as_system

RESULT = Path(__file__).parent / "results" / "fleet_faults.md"
WALKERS, NEED, STEP = 8, 6, 0.002
INSIDE = ("garbage", "wrong number", "twice", "flood", "late", "exception")
OUTSIDE = ("kill -9", "SIGSTOP")
DOMAINS = ("gosprl/riverswim-v0", "FrozenLake-v1")


class Noted(gymnasium.Wrapper):
    """An environment that writes down what it did, before it tells."""

    def __init__(self, name, folder):
        super().__init__(gymnasium.make(name))
        self._file = open(Path(folder) / f"{os.getpid()}-{time.monotonic_ns()}.jsonl", "a")  # noqa: SIM115
        self._at = None

    def reset(self, **given):
        self._at, info = super().reset(**given)
        return self._at, info

    def step(self, action):
        time.sleep(STEP)
        outcome = super().step(action)
        line = [int(self._at), int(action), int(outcome[0]), float(outcome[1]), bool(outcome[2])]
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self._at = outcome[0]
        return outcome


def faulty(rate, seed, line, pickled, number, entropy):
    """What a process runs: an honest walker that sometimes is not."""
    rng = random.Random(f"{seed} {number}")
    honest = wire.packed_report
    folder = Path(pickle_folder(pickled))

    def packed(report):
        message = honest(report)
        if rng.random() >= rate:
            return message
        kind = rng.choice(INSIDE)
        with open(folder / "faults.txt", "a") as file:
            file.write(f"{kind}\n")
        if kind == "garbage":
            return bytes(rng.randrange(256) for _ in range(40))
        if kind == "wrong number":
            return honest(report._replace(number=report.number + rng.choice([-1, 1, 1000])))
        if kind == "twice":
            return message + message
        if kind == "flood":
            return message * 2000
        if kind == "late":
            time.sleep(1.0)
            return message
        raise RuntimeError("a fault")

    wire.packed_report = packed
    worker.main(line, pickled, number, entropy)


def pickle_folder(pickled):
    """Return the folder of the journals, which the factory knows."""
    import pickle

    return pickle.loads(pickled)[0].args[1]


class Tormented(Processes):
    """Processes that are killed and stopped while they walk."""

    def torment(self, rate, seed, said):
        rng = random.Random(seed)
        while not self.over.wait(rng.expovariate(rate)):
            walkers = [number for number, member in list(self._members.items()) if member.reported]
            if not walkers:
                continue
            kind = rng.choice(OUTSIDE)
            pid = self.pid(rng.choice(walkers))
            if pid is None:
                continue
            try:
                os.kill(pid, signal.SIGKILL if kind == "kill -9" else signal.SIGSTOP)
            except ProcessLookupError:
                continue
            said[kind] += 1

    def open(self):
        self.over = threading.Event()
        super().open()

    def close(self):
        self.over.set()
        super().close()


def one_run(name, seed, folder):
    """(faults by kind, problems, walkers lost, samples lost) of one run."""
    factory = partial(Noted, name, str(folder))
    said = Counter()
    executor = Tormented(factory, WALKERS, entropy=seed, describe=describe(as_system(factory())))
    executor.run = partial(faulty, 0.02, seed)
    thread = threading.Thread(target=lambda: _when_open(executor, seed, said), daemon=True)
    thread.start()
    out = folder / "run"
    result = gosprl.collect(factory, NEED, seed=seed, workers=executor, late="200ms", out=out)
    thread.join()
    problems = []
    if not result.met:
        problems.append(f"not met: {result.stop}")
    found = verify(out)
    problems += [f"verify: {check.name}: {check.text}" for check in found.checks if check.ok is False]
    problems += compared(out, folder)
    if (folder / "faults.txt").exists():
        said.update((folder / "faults.txt").read_text().split("\n")[:-1])
    return said, problems, result


def _when_open(executor, seed, said):
    while getattr(executor, "over", None) is None:
        time.sleep(0.01)
    executor.torment(6.0, seed, said)


def compared(out, folder):
    """Problems: steps of the log that no journal has, or that it has more often."""
    made = Counter()
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().split("\n")[:-1]:
            state, action, following, reward, terminated = json.loads(line)
            made[state, action, following, reward, terminated] += 1
    logged, file = Counter(), folder / "log.npz"
    export(out, file)
    with np.load(file) as log:
        columns = [log[name].tolist() for name in ("state", "action", "next_state", "reward", "terminated")]
        taken = (~(log["reset"] | log["unknown"])).tolist()
    for step, counts in zip(zip(*columns, strict=True), taken, strict=True):
        if counts:
            logged[step] += 1
    return [f"invented or duplicated: {step}" for step, number in logged.items() if number > made[step]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--dry", action="store_true", help="write no file")
    options = parser.parse_args()
    begun, faults, problems, runs, lost, steps = time.perf_counter(), Counter(), [], 0, 0, 0
    while faults.total() < options.faults:
        with tempfile.TemporaryDirectory() as folder:
            said, wrong, result = one_run(DOMAINS[runs % len(DOMAINS)], runs, Path(folder))
        faults += said
        problems += [f"run {runs}: {text}" for text in wrong]
        lost += int(result.work.get("lost", 0))
        runs, steps = runs + 1, steps + result.steps
        print(f"run {runs}: {faults.total()} faults, {len(problems)} problems", flush=True)
    lines = [
        "# A fleet under faults",
        "",
        f"`python -m evidence.fleet_faults --faults {options.faults}`: {runs} runs with {WALKERS} processes, "
        f"{steps:,} steps, {faults.total()} faults, **{len(problems)} problems**.",
        "",
        "| fault | times |",
        "|---|---|",
        *(f"| {kind} | {number} |" for kind, number in sorted(faults.items())),
        "",
        *(f"- {text}" for text in problems),
        f"{time.perf_counter() - begun:.0f} s.",
    ]
    print("\n".join(lines))
    if not options.dry:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
