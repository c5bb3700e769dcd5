"""`verify`: what is sound is confirmed; damage is located; lies with right digests are found out."""

import json
import random
import shutil
import sys
from dataclasses import asdict

import gymnasium
import numpy as np
import pytest
from forged import contents, forge, reseal
from kinds import Maze, river

import gosprl
from gosprl import InputError, applications
from gosprl.collecting import collector as collecting
from gosprl.runs import Out, verify
from gosprl.runs.locks import Lock
from gosprl.systems.stepper import Stepper

RIVER = gosprl.envs.make("riverswim6")


def lake():
    return gymnasium.make("FrozenLake-v1")


def maze():
    return Stepper(Maze(masks=True, ends=True), actions=4)


MAKE = {
    "table": lambda out: gosprl.collect(river(), 8, seed=0, out=out),
    "lake": lambda out: gosprl.collect(lake(), 3, seed=0, out=out),
    "maze": lambda out: gosprl.collect(maze(), 4, seed=0, out=out, max_steps=150),
    "application": lambda out: applications.estimate_rewards(RIVER, 0.4, seed=0, out=out),
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """One run of each sort, with several batches and a checkpoint."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "RENEWAL", 40)
        for name, make in MAKE.items():
            make(Out(place / name, sync_steps=30))
    return place


@pytest.fixture
def run(request, originals, tmp_path, monkeypatch):
    """A copy of one of them; by default that of the table."""
    monkeypatch.setattr(collecting, "RENEWAL", 40)
    return shutil.copytree(originals / getattr(request, "param", "table"), tmp_path / "run")


def of(found, ok):
    """Return the texts of the checks with this outcome."""
    return [check.text for check in found.checks if check.ok is ok]


every = pytest.mark.parametrize("run", list(MAKE), indirect=True)


# What is sound


@every
def test_a_sound_run_is_confirmed_and_not_touched(run):
    before = contents(run)
    found = verify(run)
    assert found.ok, found
    assert contents(run) == before
    assert repr(found).startswith(f"Verification of {run}: confirmed\n")


def test_every_kind_of_system_and_need(combination, tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "RENEWAL", 40)
    kind, need = combination
    around, asked = asdict(kind.around(need.unseen)), need.make(kind.make().model())
    gosprl.collect(kind.make(), asked, seed=0, max_steps=120, out=tmp_path / "run", **around)
    found = verify(tmp_path / "run")
    assert not found.damaged, found
    unknown = [check.name for check in found.checks if check.ok is None]
    if unknown:  # it takes what only the caller has
        assert unknown == ["made again", "certificate"]
        found = verify(tmp_path / "run", system=kind.make(), need=need.make(kind.make().model()))
    assert found.ok, found


def test_legs_and_continuations(tmp_path):
    gosprl.collect(lake(), 2, seed=0, out=tmp_path / "run", max_steps=50)
    gosprl.resume(tmp_path / "run", system=lake())
    gosprl.resume(tmp_path / "run", system=lake(), need=3)
    found = verify(tmp_path / "run")
    assert found.ok, found
    assert {"leg 1", "leg 2"} <= {check.name for check in found.checks}


def test_an_unfinished_run_says_what_cannot_be_known(run):
    (run / "certificate.json").unlink()
    found = verify(run)
    assert not found.ok
    assert not found.damaged
    assert len(of(found, None)) == 1
    assert "the run is unfinished" in of(found, None)[0]
    assert "cut off at the end of a batch cannot be known" in of(found, None)[0]


def test_functions_of_the_user_have_to_be_given(tmp_path):
    def need(model):
        return np.full(model.num_states, 3)

    gosprl.collect(RIVER, need, seed=0, out=tmp_path / "run")
    found = verify(tmp_path / "run")
    assert not found.damaged
    assert any("need was " in text and "verify(directory, need=...)" in text for text in of(found, None))
    assert verify(tmp_path / "run", need=need).ok
    assert verify(tmp_path / "run", need=lambda model: np.full(model.num_states, 4)).damaged


def test_a_writer_is_noticed(run):
    lock = Lock(run)
    lock.acquire()
    try:
        assert any("a process is writing the run now" in text for text in of(verify(run), None))
    finally:
        lock.release()
    assert verify(run).ok


# Damage


@every
def test_flipped_bits_and_cut_files_are_located(run):
    """A random bit of each file, again and again: the text names the file, and the batch if it is data."""
    rng = random.Random(0)
    for file in [file for file in run.rglob("*") if file.is_file() and file.name != "lock"]:
        data, name = file.read_bytes(), file.relative_to(run).as_posix()
        for _ in range(8):
            place = rng.randrange(len(data))
            flipped = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
            for damaged in (flipped, data[:place]):
                file.write_bytes(damaged)
                before = contents(run)
                found = verify(run)
                assert any(name in text for text in of(found, False)), (name, place, found)
                if damaged is flipped and file.suffix == ".arrow":
                    assert any(f"{name}, batch " in text for text in of(found, False))
                assert contents(run) == before
        file.write_bytes(data)
    assert verify(run).ok


@pytest.mark.parametrize("name", ["manifest.json", "log/chain", "log/000001.arrow", "system.json"])
def test_a_missing_file(run, name):
    (run / name).unlink()
    if name == "manifest.json":
        with pytest.raises(InputError, match="expected the directory of a run"):
            verify(run)
    else:
        assert any(name in text for text in of(verify(run), False))


@pytest.mark.parametrize("name", ["log/000001.arrow", "certificate.json", "manifest.json"])
def test_links_are_not_followed(run, tmp_path, name):
    (run / name).rename(tmp_path / "elsewhere")
    (run / name).symlink_to(tmp_path / "elsewhere")
    assert any(name in text for text in of(verify(run), False))


# Lies with right digests


@pytest.mark.parametrize("run", ["table", "maze", "application"], indirect=True)
def test_every_field_of_a_certificate_is_recomputed(run):
    sound = (run / "certificate.json").read_bytes()

    def another(value):
        if isinstance(value, bool) or value is None:
            return not value
        if isinstance(value, (int, float)):
            return value + 1
        return f"{value}0" if isinstance(value, str) else [*value, [0, 0, 9, 8]] if isinstance(value, list) else {}

    for name, value in json.loads(sound).items():
        if name != "digest":
            reseal(
                run / "certificate.json", lambda content, name=name, value=value: content.update({name: another(value)})
            )
            assert any("certificate.json" in text for text in of(verify(run), False)), name
            (run / "certificate.json").write_bytes(sound)


def test_why_a_run_stopped_before_it_was_done_is_not_claimed_to_be_known(originals, run, tmp_path):
    maze = shutil.copytree(originals / "maze", tmp_path / "maze")
    assert any('not why ("max_steps")' in text for text in of(verify(maze), True))
    reseal(maze / "certificate.json", lambda value: value.update(stop="interrupted"))
    assert verify(maze).ok
    reseal(maze / "certificate.json", lambda value: value.update(stop="met"))
    assert verify(maze).damaged


@pytest.mark.parametrize("column", ["reward", "action"])
def test_a_table_is_simulated_again(run, column):
    """One entry is another, all digests and counts are right: the random numbers of the seed say otherwise."""
    event = 77

    def change(columns):
        columns[column][event] = 1 - columns[column][event]

    pairs = {}

    def count(columns):
        change(columns)
        for s, a in zip(columns["state"][1:], columns["action"][1:], strict=True):
            pairs[s, a] = pairs.get((s, a), 0) + 1

    forge(run, count)
    counts = [[pairs.get((s, a), 0) for a in range(2)] for s in range(6)]
    reseal(run / "certificate.json", lambda value: value.update(counts=counts))
    found = verify(run)
    assert {check.name for check in found.checks if check.ok is False} >= {"made again"}
    assert any(f"event {event} of the log: the simulation has {column}" in text for text in of(found, False))


@pytest.mark.parametrize("run", ["lake"], indirect=True)
def test_choices_of_the_planner_are_made_again(run):
    def change(columns):
        columns["action"][40] = (columns["action"][40] + 1) % 4

    forge(run, change)
    found = verify(run)
    assert any("the planner chooses action" in text for text in of(found, False))
    assert any("the counts of pairs are not those of the log" in text for text in of(found, False))


IMPOSSIBLE = {
    "does not begin where": lambda c: c["next_state"].__setitem__(9, (c["next_state"][9] + 1) % 16),
    "there are 4 actions": lambda c: c["action"].__setitem__(5, 4),
    "there are 16 states": lambda c: c["next_state"].__setitem__(-1, 16),
    "no reset follows": lambda c: c["flags"].__setitem__(3, 2),
    "a reset that nothing allows": lambda c: (c["flags"].__setitem__(3, 1), c["action"].__setitem__(3, -1)),
    "a reset has action -1": lambda c: c["flags"].__setitem__(3, 1),
    "flags say what no event is": lambda c: c["flags"].__setitem__(3, 40),
    "no finite number": lambda c: c["reward"].__setitem__(4, float("nan")),
    "a crash leads to state -1": lambda c: c["flags"].__setitem__(-1, 10),
    "there is one walker": lambda c: c["walker"].__setitem__(7, 1),
}


@pytest.mark.parametrize("run", ["lake"], indirect=True)
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_events_that_cannot_follow_each_other(run, what):
    forge(run, IMPOSSIBLE[what])
    assert any(what in text for text in of(verify(run), False)), verify(run)


def test_a_checkpoint_that_leads_elsewhere(run):
    """Its digest is right, and so is its event; resuming from it would give another run."""
    newest = max(run.glob("checkpoint/0*.json"))
    reseal(newest, lambda value: value["memory"].update(attempts=value["memory"]["attempts"] + 1))
    assert any("the newest one leads elsewhere" in text for text in of(verify(run), False))


def test_other_versions_confirm_nothing_and_are_named(run):
    forge(run, lambda columns: columns["reward"].__setitem__(77, 1 - columns["reward"][77]))
    reseal(run / "manifest.json", lambda value: value["legs"][0]["versions"].update(numpy="1.0"))
    texts = of(verify(run), None)
    assert any(f"numpy 1.0 there, {np.__version__} here" in text for text in texts)


# A stranger's run is data


@pytest.mark.parametrize("run", ["lake"], indirect=True)
def test_nothing_that_a_run_names_is_imported(run, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium, "make", lambda *given, **settings: pytest.fail("made"))
    source = {"env": "evil:Env-v0", "settings": {}}
    reseal(run / "manifest.json", lambda value: value["system"].update(source=source, name="evil:Env-v0"))
    assert verify(run).ok
    gosprl.runs.show(run)
    gosprl.runs.repair(run, tmp_path / "copy")
    assert "evil" not in sys.modules


@pytest.mark.parametrize("states", [10**12, 2**31])
@pytest.mark.parametrize("run", ["lake", "table"], indirect=True)
def test_a_claim_of_many_states_is_refused(run, states):
    reseal(run / "manifest.json", lambda value: value["system"].update(states=states))
    if (run / "system.json").exists():
        reseal(run / "system.json", lambda value: value.update(states=states))
    assert not verify(run).ok  # making room for so many states would take hours
    assert gosprl.runs.show(run).problems


@pytest.mark.parametrize(
    ("entry", "value"),
    [("seed", -1), ("legs", []), ("continued", [{}]), ("system", {}), ("run", 5), ("created", None)],
)
def test_a_manifest_with_other_types(run, entry, value):
    reseal(run / "manifest.json", lambda content: content.update({entry: value}))
    assert any("manifest.json" in text for text in of(verify(run), False))


def test_a_newer_format_is_refused_and_untouched(run):
    reseal(run / "manifest.json", lambda value: value.update(format=99))
    before = contents(run)
    for look in (
        verify,
        gosprl.runs.show,
        gosprl.resume,
        lambda place: gosprl.runs.repair(place, place.with_name("c")),
    ):
        with pytest.raises(InputError, match="format 99, which a newer gosprl wrote"):
            look(run)
    assert contents(run) == before


def test_a_terminal_is_told_nothing_by_a_stranger(run):
    reseal(run / "manifest.json", lambda value: value["system"].update(name="\x1b[2Jname", first=0.5))
    assert "\x1b" not in repr(verify(run)) + repr(gosprl.runs.show(run))
