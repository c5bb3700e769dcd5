"""Honest runs in any sequence of pieces: whatever happened to a run on disk, `verify` does not refuse it.

Pieces end by `max_steps`, by Ctrl-C or a failure in a step or a reset, or because everything is met. Between two of
them the run is renamed, copied, cut off as by a kill, taken as the data of another, or goes on with another need or
strategy.
"""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from fleet_logs import cut, links_of
from forged import reseal
from rings import WALKED, Crashing, Fault, Restorable, Ring

import gosprl
from gosprl.collecting import collector as collecting
from gosprl.runs import verify

pytestmark = pytest.mark.filterwarnings("ignore:met for the")

PIECE = ("go_on", "go_on", "more", "other", "again", "move", "copy", "branch", "kill", "kill")
RUNS = 2 * len(WALKED)
PIECES = 4


class Sequence:
    """A random sequence of pieces of one run, which is verified after each."""

    def __init__(self, seed, directory, name):
        self.rng = np.random.default_rng(seed)
        self.name = name
        self.root, self.number = directory, 0
        self.said = [f"{self.name}, seed {seed}"]
        self.data = None
        self.run = self.new()
        self.need = int(self.rng.integers(2, 6))

    def new(self):
        self.number += 1
        return self.root / f"run{self.number}"

    def play(self, pieces=PIECES):
        """Make the pieces; raise `AssertionError` with all that was done if an honest run is refused."""
        self.begin()
        for _ in range(pieces):
            if not (self.run / "manifest.json").exists():  # it failed before there was anything to keep
                self.begin()
            self.check()
            getattr(self, str(self.rng.choice(PIECE)))()
        self.check()

    def check(self):
        if not (self.run / "manifest.json").exists():
            return
        found = gosprl.runs.verify(self.run)
        gosprl.runs.show(self.run)
        finished = (self.run / "certificate.json").exists()
        wrong = [check for check in found.checks if check.ok is not True and (finished or check.name != "certificate")]
        assert not wrong, "\n".join([*self.said, repr(found)])

    def system(self):
        """A new system, which may be told to fail, and what the rest of the call is."""
        walked = WALKED[self.name]
        system, ring = walked.make(), None
        ring = getattr(system, "ring", system)
        how = str(self.rng.choice(["stop", "stop", "fail", "interrupt", "done"]))
        at = int(self.rng.choice([1, 2, 3, 7, 20]))
        options = {}
        if how == "stop" or (how != "done" and self.name == "table"):
            options["max_steps"] = self.steps() + at
        elif how == "fail":
            ring.fail_at = at
        elif how == "interrupt":
            ring.on_call = lambda call: _interrupt() if call == at else None
        self.said.append(f"  {how} {at} {options}")
        return system, options

    def steps(self):
        if not (self.run / "manifest.json").exists():
            return 0
        return gosprl.runs.show(self.run).facts["steps"]

    def call(self, function, *args, **options):
        self.said.append(f"{function.__name__} {options}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before = saved(self.run)
            try:
                function(*args, **options)
            except gosprl.CollectionError as error:
                if not isinstance(error.__cause__, Fault):
                    raise
            except (gosprl.InputError, KeyboardInterrupt) as error:  # while the system was put where it was
                if "restorable" not in self.name or not isinstance(error.__cause__, (Fault, type(None))):
                    raise
                if saved(self.run) != before:
                    raise AssertionError("\n".join([*self.said, "the run was changed"])) from error

    def begin(self):
        self.run = self.new()
        self.options = {"seed": int(self.rng.integers(100)), "strategy": str(self.rng.choice(["guarded", "gosprl"]))}
        if self.options["strategy"] == "gosprl":
            self.options["scale"] = 0.2
        self.options |= WALKED[self.name].options | {"need": self.need, "data": self.data}
        self.changed = self.moved_data = False
        self.strategy = self.options["strategy"]
        self.again()

    def again(self):
        """The same call of `collect` again; or the first one."""
        if (self.run / "manifest.json").exists() and (self.changed or self.moved_data):
            return self.go_on()
        system, options = self.system()
        self.changed = self.moved_data = False
        out = gosprl.runs.Out(self.run, sync_steps=int(self.rng.choice([1, 5, 1000])))
        return self.call(gosprl.collect, system, out=out, **options, **self.options)

    def go_on(self, **changes):
        system, options = self.system()
        given = {} if self.name == "table" else {"system": system}
        if callable(actions := WALKED[self.name].options.get("actions")):
            given["actions"] = actions  # a function cannot be stored
        return self.call(gosprl.resume, self.run, **given, **changes, **options)

    def more(self):
        self.need += int(self.rng.integers(1, 4))
        self.changed = True
        self.go_on(need=self.need)

    def other(self):
        self.changed = True
        changes = [
            {"strategy": "guarded"},
            {"strategy": "gosprl", "scale": 0.1},
            {"strategy": "zero_rmax"},
            {"delta": 0.05},
        ]
        change = changes[int(self.rng.integers(4))]
        self.strategy = change.get("strategy", self.strategy)
        if "delta" in change and self.strategy == "zero_rmax":
            change = {"strategy": "guarded"}
            self.strategy = "guarded"
        self.go_on(**change)

    def move(self):
        target = self.new()
        self.said.append("move")
        self.run.rename(target)
        self.run = target

    def copy(self):
        target = self.new()
        self.said.append("copy")
        shutil.copytree(self.run, target)
        self.run = target

    def kill(self):
        """Leave the run as a kill does: the last batches were never acknowledged, and there is no certificate."""
        said = json.loads((self.run / "manifest.json").read_text())
        last = max(entry["event"] for entry in [{"event": 0}, *said["continued"]])
        first = max(last, said["legs"][-1]["first"])
        links = links_of(self.run)
        rows = np.cumsum([link.rows if link.file.startswith("log/") else 0 for link in links])
        acknowledged = [n for n in range(1, len(links) + 1) if rows[n - 1] > first]
        if not acknowledged:
            return
        keep = int(self.rng.choice(acknowledged))
        self.said.append(f"kill: {rows[keep - 1]} of {rows[-1]} events are left")
        self.run = cut(self.run, self.new(), keep)
        for file in (self.run / "checkpoint").glob("*.json"):
            if json.loads(file.read_text())["events"] > rows[keep - 1]:
                file.unlink()  # written later

    def branch(self):
        """Begin another run with the samples of this one."""
        self.said.append("data")
        before, self.data = self.data, self.run
        self.need += int(self.rng.integers(0, 4))
        self.begin()
        self.data, self.moved_data = before, True


def _interrupt():
    raise KeyboardInterrupt


def saved(run):
    """Return what is in a run, but for its lock."""
    return {file: file.read_bytes() for file in run.rglob("*") if file.is_file() and file.name != "lock"}


@pytest.mark.parametrize("seed", range(RUNS))
def test_no_honest_run_is_refused(seed, tmp_path, monkeypatch):
    if seed >= len(WALKED):
        monkeypatch.setattr(collecting, "RENEWAL", 15)
    Sequence(seed, tmp_path, list(WALKED)[seed % len(WALKED)]).play()


def test_a_run_with_one_step_too_many_is_refused(tmp_path):
    """What the sequences rely on: a run whose manifest leaves out where it was continued is noticed."""
    gosprl.collect(Ring(ends=0.4), 4, actions=2, seed=0, max_steps=9, out=tmp_path / "run")
    gosprl.resume(tmp_path / "run", system=Ring(ends=0.4), need=7)
    assert verify(tmp_path / "run").ok
    reseal(tmp_path / "run" / "manifest.json", lambda manifest: manifest["continued"].clear())
    assert verify(tmp_path / "run").damaged


# Another trajectory at the beginning of a leg

RINGS = {
    "never ends": {},
    "ends by chance": {"ends": 0.3},
    "masks": {"ends": 0.3, "masks": True},
    "limit": {"limit": 7},
}


@pytest.mark.parametrize("kind", RINGS)
def test_more_is_asked_of_a_run_that_stopped(kind, tmp_path):
    for seed in range(20):
        place = tmp_path / str(seed)
        gosprl.collect(Ring(**RINGS[kind]), 4, actions=2, seed=seed, max_steps=9, out=place)
        result = gosprl.resume(place, system=Ring(**RINGS[kind]), need=7)
        assert result.met
        found = verify(place)
        assert found.ok, found


def test_more_is_asked_of_a_program(tmp_path):
    command = ["bash", str(Path(__file__).parents[2] / "examples" / "processes" / "queue.sh")]
    for need in (5, 8):
        with gosprl.systems.Process(command) as system:
            if need == 5:
                gosprl.collect(system, need, seed=1, out=tmp_path / "run")
            else:
                gosprl.resume(tmp_path / "run", system=system, need=need)
        found = verify(tmp_path / "run")
        assert found.ok, found


# Runs that failed


@pytest.mark.parametrize("kind", ["endless", "ends", "masks", "crashes", "time limit", "horizon", "anytime, ends"])
def test_a_run_that_failed_in_any_call(kind, tmp_path):
    """In its first reset, in its first step, in an attempt, between two, in a later reset: at any call."""
    of_resets = 0
    for at in range(1, 31):
        system, place = WALKED[kind].make(), tmp_path / str(at)
        ring = getattr(system, "ring", system)
        ring.fail_at = at
        with pytest.raises(gosprl.CollectionError, match=f"call {at}") as failed:
            gosprl.collect(system, 8, seed=0, out=place, **WALKED[kind].options)
        result = failed.value.result
        of_resets += ring.failed_in == "reset"
        assert at == 1 + result.steps + result.resets + (at > 1)
        found = verify(place)
        assert found.ok, found
    assert of_resets > 1 or kind in ("endless", "masks")


class Failing(gosprl.Requirement):
    """Two of each pair; fails when it looks at so many samples, and when all of them are there."""

    def __init__(self, model, samples):
        self.pair, self.state = np.full(len(model.rows), 2), np.zeros(model.num_states, dtype=np.int64)
        self.samples = samples

    def update(self, model, rows):
        if model.visits.sum() >= self.samples or np.all(model.visits >= self.pair):
            raise Fault("too many samples")
        return np.empty(0, dtype=np.int64)


@pytest.mark.parametrize("samples", [1, 5, 12, 10**9])
def test_a_run_whose_requirement_failed(samples, tmp_path):
    def need():
        return Failing(river_model, samples)

    table = gosprl.envs.make("riverswim6")
    river_model = gosprl.EmpiricalModel.over(table.rows)
    with pytest.raises(gosprl.CollectionError, match="too many samples"):
        gosprl.collect(table, need(), seed=0, out=tmp_path / "run")
    found = verify(tmp_path / "run", need=need())
    assert found.ok, found


def test_a_failure_after_everything_was_met(tmp_path):
    def progress(said):
        if said["met"] == 1.0:
            raise Fault("of the caller")

    with pytest.raises(gosprl.CollectionError, match="of the caller"):
        gosprl.collect("riverswim6", 3, seed=0, out=tmp_path / "run", progress=progress)
    found = verify(tmp_path / "run")
    assert found.ok, found


def test_a_state_that_cannot_be_restored_changes_nothing(tmp_path):
    gosprl.collect(Restorable(masks=True), 4, actions=2, seed=0, max_steps=9, out=tmp_path / "run")
    before, system = saved(tmp_path / "run"), Restorable(masks=True)
    system.fail_at = 1
    with pytest.raises(gosprl.InputError, match="set_state failed, or steps after it: Fault: call 1"):
        gosprl.resume(tmp_path / "run", system=system)
    assert saved(tmp_path / "run") == before
    assert verify(tmp_path / "run").ok


# Data


def test_data_with_states_that_the_run_does_not_come_to(tmp_path):
    gosprl.collect("riverswim6", 9, seed=0, out=tmp_path / "data")
    gosprl.collect("riverswim6", 9, seed=1, data=tmp_path / "data", out=tmp_path / "run")
    found = verify(tmp_path / "run")
    assert found.ok, found


def test_crashes_in_the_data(tmp_path):
    first = gosprl.collect(Crashing(), 4, seed=0, out=tmp_path / "data")
    second = gosprl.collect(Crashing(), 8, seed=1, data=tmp_path / "data", out=tmp_path / "run")
    assert second.crashes > first.crashes > 0
    found = verify(tmp_path / "run")
    assert found.ok, found
