"""Manifests as a stranger may write them: settings that reach outside of the run, of wrong types, of huge sizes."""

import copy
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forged import reseal
from kinds import Maze

import gosprl
from gosprl import applications
from gosprl.runs import resume, show, verify
from gosprl.runs.files import Damaged

RIVER = gosprl.envs.make("riverswim6")


def of_application(out):
    rewarding = RIVER.with_rewards([[0.0, 0.1]] * 6)
    applications.estimate_model(rewarding, 1.0, seed=0, out=out, max_steps=60, reach=50.0)


def of_collect(out):
    gosprl.collect(RIVER, {0: 3, 4: 2}, seed=0, out=out, max_steps=60, kappa=0.2)


def of_fleet(out):
    gosprl.collect(RIVER, 4, seed=0, out=out, max_steps=60, workers="threads:2", late=2.0)


def of_maze(out):
    maze = Maze(contexts=2, ends=True)
    gosprl.collect(maze, 2, seed=0, out=out, max_steps=60, actions=4, max_states=50, unseen=0.5)


def of_learner(out):
    applications.find_treasure(RIVER, 2, threshold=0.5, seed=0, out=out, max_steps=60, strategy="gosprl", scale=0.5)


MADE = [of_application, of_collect, of_fleet, of_maze, of_learner]


@pytest.fixture(scope="module", params=MADE, ids=lambda make: make.__name__)
def made(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("made") / "run"
    request.param(directory)
    return directory


class Opened:
    """Notes which files are opened, and what is imported, by an audit hook; hooks cannot be removed again."""

    def __init__(self):
        self.on, self.found = False, []
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if self.on and event in ("open", "import", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect"):
            self.found.append((event, str(arguments[0])))

    def outside(self, directory):
        allowed = (str(directory), str(Path(gosprl.__file__).parent), sys.prefix, sys.base_prefix, "/proc/", "/sys/")
        opened = [name for event, name in self.found if event == "open" and name.startswith("/")]
        return [name for name in opened if not name.startswith(allowed)]


OPENED = Opened()

ATTACKS = [
    ("data", "{outside}"),
    ("data", {"array": [[0, 0, 0]], "dtype": "<i8"}),
    ("data_order", "collected"),
    ("out", "{outside}-out"),
    ("system", "{outside}"),
    ("workers", 3),
    ("workers", "threads:2"),
    ("progress", True),
    ("seed", 7),
    ("max_steps", 10**9),
    ("need_unknown", "wait"),
    ("key", "x"),
    ("lost", "state"),
    ("no_such_argument", 1),
    ("eta", "{outside}"),
    ("eta", [[1]]),
    ("rule", ["certified"]),
    ("confidence", {"KL": {"no_such": 1}}),
    ("confidence", {"KL": {"delta": "x"}}),
    ("eta", {"array": [1], "dtype": "no dtype"}),
    ("eta", {"array": [1], "dtype": "(100000,100000)f8"}),
    ("successors", {"array": [1], "dtype": "O"}),
    ("strategy", {"strategy": {"name": "guarded", "options": {"dynamics": 3}}}),
    ("strategy", {"strategy": 4}),
    ("reach", {"dict": {"x": 1}}),
]


@pytest.mark.parametrize(("name", "value"), ATTACKS, ids=lambda part: str(part)[:30])
def test_only_declared_arguments_are_taken_from_a_manifest(name, value, tmp_path):
    of_application(tmp_path / "run")
    outside = tmp_path / "outside.csv"
    outside.write_text("state,action,next_state\n0,0,0\n")
    if isinstance(value, str):
        value = value.replace("{outside}", str(outside))

    def change(manifest):
        manifest["legs"][0]["application"]["arguments"][name] = value

    reseal(tmp_path / "run/manifest.json", change)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    OPENED.found, OPENED.on = [], True
    try:
        found = verify(tmp_path / "run")
        with pytest.raises(gosprl.GosprlError) as error:
            resume(tmp_path / "run", max_steps=80)
    finally:
        OPENED.on = False
    assert isinstance(error.value, (gosprl.InputError, Damaged))
    assert found.damaged, found
    assert not OPENED.outside(tmp_path / "run")
    assert not [one for one in OPENED.found if one[0] == "import" and one[1].startswith(("minari", "pandas"))]
    assert not Path(f"{outside}-out").exists()
    after = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert {path.name for path in after if after[path] != before.get(path)} <= {"lock"}


def leaves(value, path=()):
    """The places of all parts of a value."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list):
        for i in range(min(len(value), 3)):
            yield from leaves(value[i], (*path, i))


STRANGE = [
    *(None, True, -1, 0, 3, 2**31, 2**40, 2**63, 2**64, 10**400, 0.5, -0.5, 1e308, "", "x", "1", "x" * 10**6),
    *(
        [],
        {},
        [[]],
        [[[1]]],
        {"x": {"x": 1}},
        {"number": "nan"},
        {"number": "inf"},
        {"given": "x"},
        {"table": "the system"},
    ),
    *({"array": [1], "dtype": "f8"}, {"array": "x", "dtype": "V8"}, {"strategy": {}}, {"KL": 3}, {"dict": 4}),
]


def changed(manifest, path, value):
    out = copy.deepcopy(manifest)
    part = out
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return out


def judged(directory, call):
    """The error of a call that is none of ours, None if there is none."""
    try:
        call()
    except (gosprl.InputError, Damaged, gosprl.CollectionError):
        return None
    except Exception as error:
        return error
    return None


def walked_by(manifest):
    return Maze(contexts=2, ends=True) if manifest["system"]["kind"] == "system" else None


@pytest.mark.filterwarnings("ignore")
def test_what_is_honest_is_taken(made, tmp_path):
    shutil.copytree(made, tmp_path / "run")
    manifest = json.loads((made / "manifest.json").read_text())
    assert not verify(tmp_path / "run").damaged
    assert not show(tmp_path / "run").problems
    before, workers = show(tmp_path / "run").facts["steps"], "threads:2" if "fleet" in manifest["legs"][0] else None
    answer = resume(tmp_path / "run", system=walked_by(manifest), max_steps=80, workers=workers)
    assert answer.stop == "met" or answer.steps > before


@pytest.mark.filterwarnings("ignore")
def test_no_manifest_leads_to_a_traceback_or_outside(made, tmp_path):
    """Each leaf is replaced by some strange values, drawn with a fixed seed."""
    draw = random.Random(made.parent.name[:6] + str(len(list(made.rglob("*")))))
    manifest = json.loads((made / "manifest.json").read_text())
    del manifest["digest"]
    problems, place = [], tmp_path / "run"
    places = [path for path in leaves(manifest) if path and "versions" not in path]
    OPENED.found = []
    for number, path in enumerate(places):
        for value in draw.sample(STRANGE, 3):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(made, place)
            there = changed(manifest, path, value)
            reseal(place / "manifest.json", lambda content, there=there: (content.clear(), content.update(there)))
            system = walked_by(manifest)
            given = {"workers": 1} if number % 2 and "fleet" in manifest["legs"][0] else {}
            OPENED.on = True
            calls = {
                "verify": lambda: verify(place),
                "show": lambda: show(place),
                "resume": lambda: resume(place, system=system, max_steps=80, **given),  # noqa: B023
            }
            for name, call in calls.items():
                error = judged(place, call)
                if error is not None:
                    problems.append((name, path, f"{value!r:.40}", f"{type(error).__name__}: {error}"[:150]))
            OPENED.on = False
    assert not problems, "\n".join(map(str, problems))
    assert not OPENED.outside(tmp_path)


@pytest.mark.parametrize("actions", [2**24, 2**63, 0])
def test_numbers_of_actions_have_a_bound(actions, tmp_path):
    of_maze(tmp_path / "run")
    reseal(tmp_path / "run/manifest.json", lambda manifest: manifest["system"].update({"action values": actions}))
    assert verify(tmp_path / "run").damaged
    with pytest.raises(Damaged, match="action values cannot be"):
        resume(tmp_path / "run", system=Maze(contexts=2, ends=True))


@pytest.mark.parametrize("name", ["log", "events"])
@pytest.mark.parametrize("value", [[], {}, None, 3.5, 2**70, "x"])
def test_a_certificate_that_cannot_be_one_is_refused(name, value, tmp_path):
    gosprl.collect(RIVER, 4, seed=0, out=tmp_path / "run")
    reseal(tmp_path / "run/certificate.json", lambda certificate: certificate.update({name: value}))
    assert verify(tmp_path / "run").damaged
    assert show(tmp_path / "run").facts["certificate"] == {"there": True, "of this log": False}
    with pytest.raises(gosprl.InputError, match=r"certificate\.json"):
        resume(tmp_path / "run")


CLAIMS = """
import resource, sys
import gosprl
from gosprl.runs import resume, show, verify
from gosprl.runs.files import Damaged
verify(sys.argv[2])  # everything is imported and compiled
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for call in (verify, show, lambda run: resume(run, max_steps=80)):
    try:
        print(call(sys.argv[1]))
    except (gosprl.InputError, Damaged) as error:
        print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
MOST_MB = 150


def claims(manifest, system, states, actions):
    if system == "named":
        manifest["system"]["source"] = {"env": f"riverswim{states}", "settings": {}}
        manifest["system"]["stored"] = False
    if system == "open":
        manifest["system"]["source"] = {"env": "open_grid", "settings": {"rows": 10_000, "columns": states // 10_000}}
        manifest["system"]["stored"] = False
    if system == "stands in":
        manifest["system"].update(kind="system", stored=False, source=None, digest=None)
    manifest["system"].update(states=states, actions=actions)


@pytest.mark.parametrize(
    ("system", "states", "actions"),
    [
        ("named", 30_000_000, 2),
        ("open", 30_000_000, 4),
        ("stands in", 30_000_000, 2),
        ("stands in", 1_000, 2**30),
        ("stands in", None, 2**30),
    ],
)
def test_what_is_claimed_takes_no_memory(system, states, actions, tmp_path):
    run, sound = tmp_path / "run", tmp_path / "sound"
    for directory in (run, sound):
        gosprl.collect(RIVER, 4, seed=0, out=directory, max_steps=60)
    reseal(run / "manifest.json", lambda manifest: claims(manifest, system, states, actions))
    (run / "certificate.json").unlink()
    done = subprocess.run(
        [sys.executable, "-c", CLAIMS, str(run), str(sound)], capture_output=True, text=True, timeout=300, check=True
    )
    *said, grown = done.stdout.splitlines()
    assert int(grown) < MOST_MB * 1024, done.stdout
    assert any("expected" in line for line in said)


def test_sizes_of_a_stored_table_are_those_that_its_transitions_can_have(tmp_path):
    own = gosprl.TabularMDP([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], 0)
    gosprl.collect(own, 4, seed=0, out=tmp_path / "run", max_steps=5)
    reseal(tmp_path / "run/system.json", lambda table: table.update(states=30_000_000))
    assert any("fit 4 transitions" in check.text for check in verify(tmp_path / "run").checks if check.ok is False)
    with pytest.raises(gosprl.InputError, match="fit 4 transitions"):
        resume(tmp_path / "run")


def test_honest_runs_of_many_states_open(tmp_path):
    """A million states, and few events."""
    mdp = gosprl.envs.make("riverswim", states=1_000_000)
    gosprl.collect(mdp, 1, seed=0, strategy="random", out=tmp_path / "run", max_steps=300)
    assert show(tmp_path / "run").facts["progress"]["states"] == 1_000_000
    assert resume(tmp_path / "run", max_steps=400).steps == 400
