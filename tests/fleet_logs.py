"""Runs of simulated fleets on disk, and a recount of their logs without our code."""

import json
import os
import shutil
import time
from collections import Counter

import gymnasium
import numpy as np
import pyarrow as pa

import gosprl
from gosprl.fleet.simulated import DIE, HANG, TWICE, Simulated
from gosprl.runs import Out
from gosprl.runs.chain import CHAIN, NAMES_FILE, WIDTH, link_of
from gosprl.runs.fleet_journal import FleetDiskJournal

RESET, TERMINATED, TRUNCATED, CRASHED, UNKNOWN, LATE = (1 << i for i in range(6))


class Hall(gymnasium.Env):
    """Doors in a hall: states are discovered, some doors are locked, episodes end and are cut off."""

    observation_space = gymnasium.spaces.Text(10)
    action_space = gymnasium.spaces.Discrete(3)
    spec = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.age = int(self.np_random.integers(2)), 0
        return self._observed()

    def step(self, action):
        self.age += 1
        self.at = max(0, min(5, self.at + int(action) - 1 + int(self.np_random.integers(-1, 2))))
        ended = self.at == 5 and bool(self.np_random.random() < 0.5)
        observation, info = self._observed()
        return observation, float(self.at), ended, not ended and self.age >= 12, info

    def _observed(self):
        mask = np.array([True, self.at % 2 == 0, True])
        return f"door{self.at}", {"action_mask": mask.astype(np.int8)}


def faults(share, hang):
    """Return a function that lets walkers die, answer twice and hang."""

    def fault(rng, report):
        x = rng.random()
        return DIE if x < share else TWICE if x < 2 * share else HANG if x < 2 * share + hang else None

    return fault


def durations(rng, report):
    return float(rng.pareto(1.5)) + 0.1


def fleet(system, workers, share=0.0, seed=0):
    """Return a simulated fleet that takes heavy-tailed times for its steps."""
    return Simulated(
        system,
        workers,
        duration=durations,
        fault=faults(share, hang=share / 6 if workers > 3 else 0.0)
        if share
        else None,  # nobody replaces one that hangs
        reset_duration=0.3,
        joins=(20.0,),
        entropy=seed,
    )


def collected(directory, system, workers=4, need=3, share=0.0, seed=0, sync_steps=25, **options):
    """Collect with a simulated fleet, and keep the run."""
    out = Out(directory, sync_steps=sync_steps, sync_seconds=60.0)
    return gosprl.collect(
        system, need, seed=seed, out=out, workers=fleet(system, workers, share, seed), **{"late": 6.0, **options}
    )


def wait_for_syncs(monkeypatch):
    """Let a fleet wait until a sync is done: batches do not depend on the speed of the disk."""
    request = FleetDiskJournal.sync

    def sync(journal, system):
        request(journal, system)
        while journal.saved < journal.steps:
            journal.check()
            time.sleep(1e-4)

    monkeypatch.setattr(FleetDiskJournal, "sync", sync)


def batches(directory):
    """Return the numbers of links after which the log has whole batches of rows."""
    links = links_of(directory)
    return [link.number for link in links if link.file != NAMES_FILE and link.rows]


def links_of(directory):
    data = (directory / CHAIN).read_bytes()
    return [link_of(data[i : i + WIDTH]) for i in range(0, len(data), WIDTH)]


def cut(directory, target, links):
    """Copy a run as a kill after so many links of its chain would have left it."""
    shutil.copytree(directory, target)
    (target / "certificate.json").unlink(missing_ok=True)
    os.truncate(target / CHAIN, links * WIDTH)
    return target


def rows_of(directory):
    """Return the rows of a log as dicts, with the number of the order, read with Arrow alone."""
    rows = []
    ends = {}
    for link in links_of(directory):
        ends[link.file] = link.end
    for file in sorted((directory / "log").glob("*.arrow")):
        data = file.read_bytes()[: ends.get(f"log/{file.name}", 0)]
        if data:
            reader = pa.ipc.open_stream(pa.py_buffer(data))
            while True:
                try:
                    rows += reader.read_next_batch().to_pylist()
                except (StopIteration, pa.ArrowInvalid):
                    break
    return [{**row, "event": i, "number": i + row["order"]} for i, row in enumerate(rows)]


def recounted(rows):
    """Return (visits, unknown) by (state, action) of the rows of a log, one by one in the order of issue."""
    outcome = {}
    for row in rows:
        if not row["flags"] & LATE or row["next_state"] >= 0:
            outcome[row["number"]] = row
    visits, unknown = Counter(), Counter()
    for number in sorted(outcome):
        row = outcome[number]
        if row["action"] < 0:
            continue
        (unknown if row["flags"] & UNKNOWN else visits)[row["state"], row["action"]] += 1
    return visits, unknown


def certificate(directory):
    return json.loads((directory / "certificate.json").read_text())
