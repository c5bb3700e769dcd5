"""Do the sets of a fleet hold? How often the true dynamics leave them at any time, against the promised delta.

A small MDP in which durations and losses depend on the outcome: steps to state 1 take 20 times as long, and of these
30 % are lost with their walker, which is replaced. After every sample that changes a row, the set of that row is
compared with the truth: a run fails if the truth is ever outside. Beside the rule of the library stand two twins that
must fail, or the test proves nothing: samples counted in the order in which they came back, and samples that were lost
left out as if they had never been issued ("retry").

    python -m evidence.fleet_coverage [--runs 120] [--store FILE]      writes evidence/results/fleet_coverage.md

With a store, runs that are finished are read from it, and others are added.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import beta, binom

import gosprl
from gosprl.fleet.collector import FleetCollector
from gosprl.fleet.record import FleetRecord
from gosprl.fleet.simulated import Simulated
from gosprl.systems import Tabular

RESULT = Path(__file__).parent / "results" / "fleet_coverage.md"
DELTA, FALSE_ALARM = 0.1, 1e-6
SIZES = (1, 4, 16, 64)
NEED, SLOW, LOST = 200, 20.0, 0.3
TRUTH = np.array([[0.5, 0.5], [0.5, 0.5]])  # [S, S], one action
TINY = 1e-12


class Episodes(Tabular):
    """The same, as a system whose episodes may end: by a crash."""

    ends = True


@dataclass(frozen=True)
class Setting:
    """How a fleet is disturbed, and what it does about lost samples."""

    name: str
    lost: str = "unknown"
    losses: bool = False
    late: float | None = None
    need: int = NEED


SLOW_ONLY = Setting("slow")
RETRY = Setting("twin: retry what was lost", "independent", losses=True, need=400)
SETTINGS = (
    SLOW_ONLY,
    Setting("slow, lost: unknown", losses=True),
    Setting("slow, lost: a state of its own", "state", losses=True),
    Setting("slow, lost: unknown, late=3, filled if they come", losses=True, late=3),
    RETRY,
)
COMPLETION = "twin: order of completion"


class Watch(FleetRecord):
    """Compares the sets with the truth whenever a row has changed."""

    setting: Setting
    failed = False  # the sets of committed samples
    failed_returned = False  # those of all samples that returned, in the order of their return

    def note(self, row, s_next, reward):
        super().note(row, s_next, reward)
        self.look_at(row)

    def give_up(self, sample, how):
        super().give_up(sample, how)
        self.look_at(sample.row)

    def look_at(self, row):
        s = int(self.model.rows.state[row])
        if s >= len(TRUTH):
            return
        self.flush()
        rows, law, family = np.array([row]), self.truth(s), gosprl.KL(DELTA)
        if not self.failed:
            self.failed = leaves(family.intervals(self.counts, rows), law)
        if self.setting is SLOW_ONLY and not self.failed_returned:
            self.failed_returned = leaves(family.intervals(self.model, rows), law)

    def truth(self, s):
        """The law [outcomes] of the row of s; a crash, if it is a state of its own, is the first final state."""
        law = np.zeros(self.model.rows.num_states)
        law[:2] = TRUTH[s]
        if self.setting.lost == "state":
            law[1] *= 1 - LOST
            crash = self.model.states.finals
            law[crash[0] if crash else -1] = LOST * TRUTH[s, 1]
        return law


def leaves(sets, law):
    """Whether a law [S] is outside the only set."""
    seen = law[sets.succ]
    unseen = law.copy()
    unseen[sets.succ] = 0.0
    return bool(
        np.any((seen < sets.lower - TINY) | (seen > sets.upper + TINY))
        or unseen.max() > sets.each[0] + TINY
        or unseen.sum() > sets.total[0] + TINY
    )


class Watched(FleetCollector):
    def _new_record(self, *arguments):
        return Watch(*arguments)


def duration(rng, report):
    return SLOW if report.key == 1 else 1.0 + rng.random()


def is_lost(rng, report):
    return report.key == 1 and rng.random() < LOST


def run_fails(setting, walkers, seed):
    """Whether the truth leaves the sets of one run, and those of samples in the order of their return."""
    mdp = gosprl.TabularMDP(TRUTH[:, None, :])
    resets = "terminal" if setting.lost == "state" else "never"
    system = (Episodes if setting.lost == "state" else Tabular)(mdp)
    collector = Watched(
        need=setting.need,
        seed=seed,
        model=system.model(),
        strategy="random",
        resets=resets,
        lost=setting.lost,
        late=setting.late,
    )
    collector.record.setting = setting
    executor = Simulated(
        mdp, walkers, duration=duration, lost=is_lost if setting.losses else None, restart=1.0, entropy=[seed, walkers]
    )
    collector.walk_fleet(executor, system)
    assert collector.result().met
    return collector.record.failed, collector.record.failed_returned


class Runs:
    """Runs that are made once, and kept if there is a file for them."""

    def __init__(self, path, number):
        self.path, self.number, self.known = path, number, {}
        if path is not None and path.exists():
            self.known = dict(map(json.loads, path.read_text().splitlines()))

    def failures(self, setting, walkers):
        """How many runs fail, and how many by samples in the order of their return."""
        return np.sum([self.one(setting, walkers, seed) for seed in range(self.number)], axis=0).tolist()

    def one(self, setting, walkers, seed):
        key = f"{setting.name}, {walkers}, {seed}"
        if key not in self.known:
            self.known[key] = list(run_fails(setting, walkers, seed))
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def interval(failed, runs):
    """The 95 % interval of Clopper and Pearson for a frequency."""
    low = float(beta.ppf(0.025, failed, runs - failed + 1)) if failed else 0.0
    high = float(beta.ppf(0.975, failed + 1, runs - failed)) if failed < runs else 1.0
    return low, high


def p_value(failed, runs):
    """The probability of so many failures or more if each run failed with probability delta."""
    return float(binom.sf(failed - 1, runs, DELTA))


def line(name, walkers, failed, runs):
    low, high = interval(failed, runs)
    verdict = "rejected" if p_value(failed, runs) < FALSE_ALARM else "holds"
    return f"| {name} | {walkers} | {failed} | {runs} | {failed / runs:.3f} | {low:.3f} to {high:.3f} | {verdict} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    begin, runs = time.process_time(), Runs(options.store, options.runs)
    lines = [
        "# Coverage of the sets of a fleet",
        "",
        f"`python -m evidence.fleet_coverage --runs {options.runs}`: runs in which the truth leaves the `kl` sets at",
        f"any time, for delta = {DELTA}; {NEED} samples of each of {len(TRUTH)} pairs ({RETRY.need} where lost samples",
        f"are retried: this bias shows later). Steps to state 1 take {SLOW:g} times as long; where walkers are lost,",
        f"{LOST:.0%} of these steps are. The 95 % interval is that of Clopper and Pearson. A setting is rejected if so",
        f"many failures or more have probability below {FALSE_ALARM:g} at delta. Both twins must be rejected with 16",
        "and 64 walkers (the samples of one walker come back in order).",
        "",
        "| setting | walkers | failed runs | of | frequency | 95 % interval | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    twin = []
    for setting in SETTINGS:
        for walkers in SIZES:
            ours, returned = runs.failures(setting, walkers)
            lines.append(line(setting.name, walkers, ours, options.runs))
            print(lines[-1], flush=True)
            if setting is SLOW_ONLY:
                twin.append(line(COMPLETION, walkers, returned, options.runs))
    lines += twin
    print("\n".join(twin))
    RESULT.write_text("\n".join(lines) + "\n")
    print(f"{time.process_time() - begin:.0f} s of one core")


if __name__ == "__main__":
    main()
