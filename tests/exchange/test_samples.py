"""Samples from every kind of source: equal counts, and errors that name row and column."""

import io
import itertools
import tracemalloc
import warnings
import zipfile
from collections import Counter
from types import SimpleNamespace

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import gosprl
from gosprl import InputError
from gosprl.collecting.collect import begun_model, declared
from gosprl.exchange import csv_files, export
from gosprl.exchange.incoming import base, choosing
from gosprl.exchange.taking import Taker
from gosprl.model.states import CRASH
from gosprl.systems import as_system

STEPS = 400


class Rooms:
    """States are tuples; action "go" leads on at random, "end" ends the episode in half of the cases."""

    actions = ("go", "end")

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.room = ("room", int(self.rng.integers(3)))
        return self.room, {}

    def step(self, action):
        ended = action == "end" and bool(self.rng.random() < 0.5)
        self.room = ("room", int(self.rng.integers(5)))
        return self.room, float(self.rng.integers(4)) / 4, ended, False, {}


def lake():
    return gymnasium.make("FrozenLake-v1")


class Recorder(gymnasium.Wrapper):
    """Writes down what an environment returns, in the columns of a table."""

    def __init__(self, env):
        super().__init__(env)
        self.rows = []

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        last = self.rows[-1][2] if self.rows else -1
        self.rows.append((last, -1, int(observation), 0.0, True, False, False))
        return observation, info

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        before = self.rows[-1][2]
        self.rows.append((before, int(action), int(observation), float(reward), False, terminated, truncated))
        return observation, reward, terminated, truncated, info


NAMES = ("state", "action", "next_state", "reward", "reset", "terminated", "truncated")


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """A walk on a lake: its run directory, its result, and the rows that the environment itself wrote."""
    directory = tmp_path_factory.mktemp("lake") / "run"
    env = Recorder(lake())
    result = gosprl.collect(env, 30, seed=3, out=directory, max_steps=STEPS)
    columns = {name: np.array(column) for name, column in zip(NAMES, zip(*env.rows, strict=True), strict=True)}
    return directory, result, columns


def model_of(system, data, order="collected", around=None, **options):
    walked = as_system(system, **options)
    return begun_model(walked, around or declared(walked), data, order)


def facts(model):
    """Everything that confidence sets and planners read of a model, by observation."""
    names = [
        (model.states.kind(s), None if model.states.kind(s) == "reset" else str(model.states[s]))
        for s in range(model.states.used)
    ]
    ptr, succ, number, first = model.stored()
    out = {}
    for row in np.flatnonzero(model.visits).tolist():
        s, a = model.rows.pair(row)
        seen = [
            (names[x], n, f)
            for x, n, f in zip(*(part[ptr[row] : ptr[row + 1]] for part in (succ, number, first)), strict=True)
        ]
        out[names[s], a] = (seen, int(model.visits[row]), model.reward_sum[row], model.reward_sq[row])
    return out, [names[s] for s in model.discovered], model.ended


# Equal counts from every source


def test_a_run_is_counted_as_it_was_collected(walk):
    directory, result, _ = walk
    model = model_of(lake(), directory, None)
    model = model.arranged(model.arrangement())
    for name in ("visits", "reward_sum", "reward_sq"):
        np.testing.assert_array_equal(getattr(model, name), getattr(result.model, name))
    for mine, theirs in zip(model.stored(), result.model.stored(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert model.states.finals == result.model.states.finals
    assert model.discovered == result.model.discovered


def test_counts_are_those_of_plain_counting(walk):
    _, _, columns = walk
    counted, starts = Counter(), Counter()
    for s, a, x, _, reset, terminated, _ in zip(*(columns[name].tolist() for name in NAMES), strict=True):
        if reset:
            starts[x] += 1
        else:
            counted[s, a, x, terminated] += 1
    model = model_of(lake(), columns)
    found = {}
    for s, a, x, n in zip(*(part.tolist() for part in model.transitions()), strict=True):
        found[s, a, model.states.key(x), model.states.kind(x) == "final"] = n
    assert found == counted
    assert dict(zip(*(part.tolist() for part in model.starts()), strict=True)) == starts


def pandas_frame(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns)


class OldFrame:
    """Hands over columns only as NumPy arrays."""

    def __init__(self, columns):
        self._columns, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return SimpleNamespace(to_numpy=lambda: self._columns[name])


def written(columns, path):
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=100)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        np.savez_compressed(path, **columns)
    return path


@pytest.mark.parametrize("kind", ["dict", "list", "arrow", "pandas", "polars", "old", "parquet", "csv", "npz", "flags"])
def test_every_kind_of_table_gives_the_counts_of_the_run(walk, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "ROWS", 37)
    directory, _, columns = walk
    make = {
        "dict": lambda: columns,
        "list": lambda: {name: column.tolist() for name, column in columns.items()},
        "arrow": lambda: pa.table(columns),
        "pandas": lambda: pandas_frame(columns),
        "polars": lambda: polars_frame(columns),
        "old": lambda: OldFrame(columns),
        "flags": lambda: {
            **{name: columns[name] for name in NAMES[:4]},
            "flags": (columns["reset"] + 2 * columns["terminated"] + 4 * columns["truncated"]).astype(np.uint8),
        },
    }.get(kind, lambda: written(columns, tmp_path / f"data.{kind}"))
    assert facts(model_of(lake(), make())) == facts(model_of(lake(), directory, None))


def test_observations_win_over_numbers(walk):
    _, _, columns = walk
    shifted = gymnasium.wrappers.TransformObservation(lake(), lambda x: x + 5, gymnasium.spaces.Discrete(16, start=5))
    named = {
        **columns,
        "observation": np.where(columns["state"] < 0, 5, columns["state"] + 5),
        "next_observation": columns["next_state"] + 5,
    }
    by_observation, by_number = model_of(shifted, named), model_of(shifted, columns)
    assert facts(by_observation) == facts(by_number)
    assert by_number.states[0] == 5


def test_several_sources_are_taken_in_order(walk, tmp_path):
    _, _, columns = walk
    half = STEPS // 2
    parts = [{name: column[:half] for name, column in columns.items()}]
    parts.append(written({name: column[half:] for name, column in columns.items()}, tmp_path / "rest.csv"))
    whole, both = facts(model_of(lake(), columns)), facts(model_of(lake(), parts))
    assert both[:2] == whole[:2]


def test_a_model_brings_its_counts_rewards_and_first_appearances(walk):
    directory, result, _ = walk
    mine, run = facts(model_of(lake(), result.model)), facts(model_of(lake(), directory, None))
    assert mine[0] == run[0]
    assert facts(model_of(lake(), result))[0] == run[0]


def test_counts_have_no_order(walk):
    """All is equal but the times of first appearance: they are known to lie in the data."""
    _, _, columns = walk
    steps = ~columns["reset"] & ~columns["terminated"]
    s, a, x = (columns[name][steps] for name in NAMES[:3])
    triples, count = np.unique(np.stack([s, a, x]), axis=1, return_counts=True)
    counted = model_of(lake(), (*triples, count))
    ordered = model_of(lake(), (s, a, x))
    np.testing.assert_array_equal(counted.visits, ordered.visits)
    for mine, theirs in zip(counted.transitions(), ordered.transitions(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    ptr, _, number, first = counted.stored()
    rows = np.repeat(np.arange(len(counted.rows)), np.diff(ptr))
    np.testing.assert_array_equal(first, np.where(number > 0, -counted.visits[rows], 0))


def test_rewards_of_counts_are_those_of_each_sample():
    model = model_of(lake(), {"s": [0, 0], "a": [1, 1], "s_next": [4, 4], "count": [2, 3], "reward": [0.5, 1.0]})
    assert model.visits.sum() == 5
    assert model.reward_sum.sum() == 4.0
    assert model.reward_sq.sum() == 3.5


def rooms_run(tmp_path):
    directory = tmp_path / "rooms"
    result = gosprl.collect(Rooms(), 20, actions=Rooms.actions, seed=0, out=directory, max_steps=STEPS)
    return directory, result


def rooms_table(directory):
    from gosprl.runs.opened import OpenRun

    run = OpenRun.read(directory)
    parts = list(run.contents.batches())
    log = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    shown = np.array([*run.names.observations, ""], dtype=object)
    return {
        "observation": shown[log["state"]].tolist(),
        "action": np.where(log["action"] < 0, "", np.array(Rooms.actions)[log["action"]]).tolist(),
        "next_observation": shown[log["next_state"]].tolist(),
        "reward": log["reward"],
        **{name: (log["flags"] & 1 << i) > 0 for i, name in enumerate(("reset", "terminated", "truncated"))},
    }


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "parquet", "csv", "model"])
def test_states_that_are_discovered_come_by_observation(kind, tmp_path):
    """Text is JSON: a list there is a tuple here. Actions come by value."""
    directory, result = rooms_run(tmp_path)
    table = rooms_table(directory)
    data = {
        "dict": lambda: pa.table(table),
        "pandas": lambda: pandas_frame(table),
        "polars": lambda: polars_frame(table),
        "model": lambda: result.model,
    }.get(kind, lambda: written(table, tmp_path / f"rooms.{kind}"))()
    there = facts(model_of(Rooms(), directory, None, actions=Rooms.actions))
    here = facts(model_of(Rooms(), data, actions=Rooms.actions))
    assert here[:2] == there[:2]
    assert ("live", "('room', 4)") in here[1]


def test_observations_in_memory_are_as_they_are():
    """Rows of an array, and tuples."""
    box = gymnasium.spaces.MultiDiscrete([3, 2])

    class Grid(gymnasium.Env):
        observation_space, action_space = box, gymnasium.spaces.Discrete(2)

    s = np.array([[0, 1], [2, 1], [0, 1]])
    model = model_of(Grid(), {"s": s, "a": [0, 1, 1], "s_next": s[[1, 2, 0]]})
    assert [model.states[s].tolist() for s in model.discovered] == [[0, 1], [2, 1]]
    rooms = [("room", 1), ("room", 2)]
    model = model_of(Rooms(), {"s": rooms, "a": ["go", "end"], "s_next": rooms[::-1]}, actions=Rooms.actions)
    assert [model.states[s] for s in model.discovered] == rooms


def test_a_crash_ends_an_episode_without_an_observation():
    data = {"state": [0, 0], "action": [1, 2], "next_state": [-1, 1], "terminated": [True, False], "crash": [1, 0]}
    model = model_of(lake(), data)
    assert model.visits[model.rows.index(0, 1)] == 1
    assert model.states.final(CRASH) >= 0


def test_actions_that_only_a_function_knows_come_by_value():
    data = {"s": [("room", 0), ("room", 1)], "a": ["jump", "go"], "s_next": [("room", 1), ("room", 0)]}
    result = gosprl.collect(
        Rooms(), 2, actions=lambda s: ["go", "end"], data=data, data_order="collected", seed=0, max_steps=300
    )
    assert "jump" in list(result.model.actions)
    assert result.met or result.stop == "max_steps"
    assert "('room', 0)" in str(result.guarantee)  # it offered "jump" once, and does not now


def minari_set(env, dataset, episodes, observations, actions, tmp_path, monkeypatch):
    """Store episodes (observations, actions, rewards, terminations, truncations) with Minari's own function."""
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffers = [
        minari.data_collector.EpisodeBuffer(
            id=i, observations=o, actions=a, rewards=r, terminations=terminated, truncations=truncated
        )
        for i, (o, a, r, terminated, truncated) in enumerate(episodes)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari asks for metadata
        return minari.create_dataset_from_buffers(
            dataset_id=dataset, buffer=buffers, env=env, observation_space=observations, action_space=actions
        )


def episodes_of(columns):
    """Split at resets; the last episode is cut off."""
    begins = [*np.flatnonzero(columns["reset"]).tolist(), len(columns["reset"])]
    for begin, end in itertools.pairwise(begins):
        part = {name: column[begin + 1 : end] for name, column in columns.items()}
        cut = part["truncated"].copy()
        cut[-1:] |= ~part["terminated"][-1:]
        yield (
            columns["next_state"][begin:end].astype(np.int64),
            part["action"].astype(np.int64),
            part["reward"],
            part["terminated"],
            cut,
        )


def test_a_minari_data_set(walk, tmp_path, monkeypatch):
    directory, _, columns = walk
    spaces = lake().observation_space, lake().action_space
    stored = minari_set(None, "gosprl/lake-v0", episodes_of(columns), *spaces, tmp_path, monkeypatch)
    expected = facts(model_of(lake(), directory, None))
    assert facts(model_of(lake(), stored)) == expected
    assert facts(model_of(lake(), "gosprl/lake-v0")) == expected
    assert facts(model_of(lake(), tmp_path / "gosprl" / "lake-v0")) == expected
    with pytest.raises(InputError, match="Minari cannot load"):
        model_of(lake(), "gosprl/nothing-v3")


def test_a_minari_data_set_of_ours_says_what_its_numbers_stand_for(tmp_path, monkeypatch):
    texts = ['["room", 0]', '["room", 1]']
    steps = np.array([0, 1, 0, 2]), np.array([0, 1, 1]), np.zeros(3), np.array([False, False, True]), np.zeros(3, bool)
    spaces = gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2)
    stored = minari_set(None, "gosprl/rooms-v0", [steps], *spaces, tmp_path, monkeypatch)
    stored.storage.update_metadata({"gosprl": {"observations": texts, "actions": 2, "crash": 2}})
    model = model_of(Rooms(), "gosprl/rooms-v0", actions=Rooms.actions)
    assert [model.states[s] for s in model.discovered] == [("room", 0), ("room", 1)]
    assert model.states.final(CRASH) >= 0
    assert model.starts()[1].tolist() == [1]


# Bad input


GOOD = {"state": [0, 1], "action": [1, 2], "next_state": [1, 2], "reward": [0.0, 0.5]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terminatd": [0, 1]}, "column 'terminatd' is not known; expected the columns"),
        ({"state": None}, "no column observation or s or state"),
        ({"action": None}, "no column action_value or a or action"),
        ({"next_state": None, "s_next": [1, 2]}, "do not belong together"),
        ({"state": [0, 16]}, "row 2, column state: expected a state in 0..15, got 16"),
        ({"state": [0, -1]}, "row 2, column state: expected the number of a state, got -1"),
        ({"state": [0.0, 1.5]}, "row 2, column state: expected a whole number, got 1.5"),
        ({"state": [0, "one"]}, "row 2, column state: expected a whole number, got 'one'"),
        ({"state": [0, None]}, "row 2, column state: expected the number of a state"),
        ({"state": [False, True]}, "row 1, column state: expected a whole number, got"),
        ({"action": [1, 4]}, "row 2, column action: expected the index of an action, 0..3, got 4"),
        ({"action": [-1, 1]}, "row 1, column action: expected the index of an action, 0..3, got -1"),
        ({"action": [1, "left"]}, "row 2, column action: actions: expected values among"),
        ({"reward": [0.0, np.nan]}, "row 2, column reward: expected a finite number, got nan"),
        ({"reward": [0.0, None]}, "row 2, column reward: expected a finite number, got nothing"),
        ({"reward": [0.0, "much"]}, "row 2, column reward: expected a finite number, got 'much'"),
        ({"count": [1, -2]}, "row 2, column count: expected a whole number >= 0, got -2"),
        ({"count": [1, 2.5]}, "row 2, column count: expected a whole number, got 2.5"),
        ({"count": [2**61, 2**61]}, "fewer than 2\\^62 samples"),
        ({"terminated": [1, 2]}, "row 2, column terminated: expected true or false, got 2"),
        ({"reset": [False, True], "terminated": [False, True]}, "row 2, column reset: a reset is a row of its own"),
        ({"terminated": [True, False], "reset": [False, False]}, "row 2, column state: a transition out of a terminal"),
        (
            {"unknown": [False, True]},
            "row 2, column unknown: expected false, got true: the outcome of this sample is not",
        ),
        ({"late": [0, 1]}, "row 2, column late: expected false, got true: this row stands where .* Move it to where"),
        ({"flags": [0, 32]}, "row 2, column late: expected false, got true"),
        ({"order": [0, 3]}, "row 2, column order: expected 0, .*, got 3; sort the rows by row number"),
        ({"flags": [0, 64]}, "row 2, column flags"),
        ({"reward": [0.0]}, "one length"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_wrong_rows_are_named(change, message):
    data = {name: column for name, column in {**GOOD, **change}.items() if column is not None}
    with pytest.raises(InputError, match=message):
        gosprl.collect(lake(), 1, data=data, data_order="collected")


def test_rewards_of_an_application_are_checked():
    mdp = gosprl.envs.make("riverswim6")
    data = {"s": [0, 1], "a": [0, 0], "s_next": [0, 0], "reward": [0.5, 1.5]}
    with pytest.raises(InputError, match=r"row 2, column reward: expected a number in \[0, 1\], got 1.5"):
        gosprl.applications.estimate_rewards(mdp, epsilon=0.5, data=data, data_order="collected")


def test_pairs_that_do_not_exist_are_named():
    P = np.zeros((2, 2, 2))  # action 1 does not exist in state 0
    P[:, 0, :] = 0.5
    P[1, 1, 0] = 1
    mdp = gosprl.TabularMDP(P)
    with pytest.raises(InputError, match="row 2, column a: action 1 does not exist in state 0"):
        gosprl.collect(mdp, 1, data={"s": [0, 0], "a": [0, 1], "s_next": [1, 1]}, data_order="collected")


def test_numbers_say_nothing_of_states_that_are_discovered():
    with pytest.raises(InputError, match="row 1, column state: the system has no numbers"):
        gosprl.collect(Rooms(), 1, actions=Rooms.actions, data={**GOOD, "action": [0, 1]}, data_order="collected")


def test_endings_need_resets():
    mdp = gosprl.envs.make("riverswim6")
    with pytest.raises(InputError, match="row 2, column terminated: an episode ended"):
        gosprl.collect(mdp, 1, data={**GOOD, "action": [0, 1], "terminated": [0, 1]}, data_order="collected")


def test_a_run_of_another_table_is_refused(tmp_path):
    gosprl.collect(gosprl.envs.make("riverswim6"), 1, seed=0, out=tmp_path / "run")
    with pytest.raises(InputError, match="a run of another system: table 'riverswim6' there, 'four_room43' here"):
        gosprl.collect(gosprl.envs.make("four_room43"), 1, data=tmp_path / "run")
    with pytest.raises(InputError, match=r"another system: table .*, with other transitions or rewards; give a run"):
        gosprl.collect(gosprl.TabularMDP(np.full((6, 2, 6), 1 / 6)), 1, data=tmp_path / "run")


@pytest.mark.parametrize(("suffix", "of"), [("parquet", "run"), ("csv", "run"), ("csv", "result"), ("npz", "result")])
def test_an_exported_model_is_refused_with_a_way_out(walk, suffix, of, tmp_path):
    directory, result, _ = walk
    table = {"table": "model"} if of == "run" else {}
    export(directory if of == "run" else result, tmp_path / f"model.{suffix}", **table)
    with pytest.raises(InputError, match=r"expected transitions, got an exported model: .* Give the run or the result"):
        gosprl.collect(lake(), 1, data=tmp_path / f"model.{suffix}", data_order="collected")


class Ring:
    """Five places in a ring, told in several ways; every third step ends an episode."""

    def __init__(self, tell, space=None):
        self.tell = tell
        if space is not None:
            self.observation_space = space

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.at = int(self.rng.integers(5))
        return self.tell(self.at), {}

    def step(self, action):
        self.at = (self.at + (1 if self.rng.random() < 0.8 else 2) * (2 * action - 1)) % 5
        return self.tell(self.at), float(self.at), bool(self.rng.random() < 0.1), False, {}


def pair(place):
    return np.array([place // 3, place % 3])


RINGS = {  # how the run saw them, and how the system does now
    "numbers found": (Ring(int), Ring(int, gymnasium.spaces.Discrete(5))),
    "numbers known": (Ring(int, gymnasium.spaces.Discrete(5)), Ring(int)),
    "from one on": (
        Ring(lambda place: place + 1, gymnasium.spaces.Discrete(5, start=1)),
        Ring(lambda place: place + 1),
    ),
    "tuples": (Ring(lambda place: (place,)), Ring(lambda place: (place,))),
    "bytes and text": (
        Ring(pair, gymnasium.spaces.MultiDiscrete([2, 3])),
        Ring(pair, gymnasium.spaces.Box(0, 3, (2,), np.int64)),
    ),
}


@pytest.mark.parametrize("name", RINGS)
def test_states_of_a_run_are_matched_by_observation(name, tmp_path):
    there, here = RINGS[name]
    result = gosprl.collect(there, 4, actions=2, seed=0, out=tmp_path / "run")
    model = model_of(here, tmp_path / "run", None, actions=2)
    model = model.arranged(model.arrangement())
    assert model.visits.sum() == result.model.visits.sum()

    def by_place(model):
        return {
            (str(model.states[s]), a, str(model.states[x]), model.states.kind(x)): n
            for s, a, x, n in zip(*(part.tolist() for part in model.transitions()), strict=True)
        }

    assert by_place(model) == by_place(result.model)


@pytest.mark.parametrize(
    ("there", "here", "message"),
    [
        (
            Ring(lambda place: (place,)),
            Ring(int, gymnasium.spaces.Discrete(5)),
            r"observation \[\d\] of 'Ring' cannot be",
        ),
        (
            Ring(int),
            Ring(int, gymnasium.spaces.Discrete(3)),
            r"observation [34] of 'Ring' cannot be matched .* Discrete\(3\), got \d;",
        ),
        (Ring(int), Ring(pair, gymnasium.spaces.MultiDiscrete([2, 3])), "observation . of 'Ring' cannot be matched"),
        (
            Ring(pair, gymnasium.spaces.MultiDiscrete([2, 3])),
            Ring(pair, gymnasium.spaces.MultiDiscrete([1, 3])),
            r"observation \[1, .\] of 'Ring' cannot be matched",
        ),
        (
            Ring(int, gymnasium.spaces.Discrete(5)),
            Ring(int, gymnasium.spaces.Discrete(6)),
            "5 states there, 6 here; give",
        ),
    ],
)
def test_a_run_whose_observations_cannot_be_matched(there, here, message, tmp_path):
    gosprl.collect(there, 4, actions=2, seed=0, out=tmp_path / "run")
    with pytest.raises(InputError, match=message):
        model_of(here, tmp_path / "run", None, actions=2)


def test_a_function_that_tells_states_apart_is_applied_to_the_observations_of_a_run(tmp_path):
    def parity(observation, info):
        return observation % 2

    ring = Ring(int)
    plain = gosprl.collect(ring, 4, actions=2, seed=0, out=tmp_path / "plain")
    model = model_of(ring, tmp_path / "plain", None, actions=2, key=parity)
    assert sorted(model.states[s] for s in model.states.lives) == [0, 1]
    assert model.transitions()[3].sum() == plain.steps
    keyed = gosprl.collect(ring, 4, actions=2, seed=0, key=parity, out=tmp_path / "keyed")
    again = model_of(ring, tmp_path / "keyed", None, actions=2, key=parity)
    assert again.transitions()[3].sum() == keyed.steps
    with pytest.raises(InputError, match="a function key= told its states apart, and none is given here; give a run"):
        model_of(ring, tmp_path / "keyed", None, actions=2)


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_truncated_and_foreign_files(walk, suffix, tmp_path):
    _, _, columns = walk
    whole = written(columns, tmp_path / f"data.{suffix}").read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"PAR1 not at all", whole[:50] + whole[60:]):
        (tmp_path / f"data.{suffix}").write_bytes(content)
        with pytest.raises(InputError, match="data"):
            gosprl.collect(lake(), 1, data=tmp_path / f"data.{suffix}", data_order="collected")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\0\1\2\3", "data"),
        ("state,action\n1,2\n", "no column next_observation or s_next or next_state"),
        ("state,action,next_state\n", ""),
        ("state,action,next_state\n0,1,1\n0,1\n", "row 2: Expected 3 columns, got 2"),
        ("state,action,next_state\n0,1,1\n0,1,x\n", "row 2, column next_state: expected a whole number, got 'x'"),
        ("state,action,next_state,reward\n0,1,1,0\n0,1,2,\n", "row 2, column reward"),
        ("state,action,next_state,reward\n0,1,1,0\n0,1,2,nan\n", "row 2, column reward"),
        (
            "state,action,next_state,count\n0,1,1,1\n0,1,2,1.5\n",
            "row 2, column count: expected a whole number, got '1.5'",
        ),
        ("state,state,action,next_state\n0,0,1,1\n", "twice"),
    ],
)
def test_csv_files_that_are_wrong(text, message, tmp_path):
    (tmp_path / "data.csv").write_text(text)
    if not message:  # no rows are no samples
        assert model_of(lake(), tmp_path / "data.csv").visits.sum() == 0
        return
    with pytest.raises(InputError, match=message):
        gosprl.collect(lake(), 1, data=tmp_path / "data.csv", data_order="collected")


def npy_header(shape, dtype="<i8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_a_header_that_claims_100_gigabytes_allocates_nothing(tmp_path):
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        for name in ("s", "a", "s_next"):
            archive.writestr(f"{name}.npy", npy_header((10**11 // 8,)) + bytes(80))
    tracemalloc.start()
    with pytest.raises(InputError, match="column s: its header claims 100000000000 bytes, 80 are there"):
        gosprl.collect(lake(), 1, data=tmp_path / "data.npz", data_order="collected")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_pickles_are_not_read(tmp_path):
    np.savez(tmp_path / "data.npz", s=np.array([0, "x", print], dtype=object), a=[0], s_next=[0])
    with pytest.raises(InputError, match="column s: expected numbers or text, got an array of object"):
        gosprl.collect(lake(), 1, data=tmp_path / "data.npz", data_order="collected")


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_memory_does_not_grow_with_the_file(suffix, tmp_path, monkeypatch):
    """Four times the rows, and the same peak."""
    monkeypatch.setattr(csv_files, "BLOCK", 2**17)
    peaks = []
    for n in (200_000, 800_000):
        columns = {"s": np.zeros(n, dtype=np.int64), "a": np.ones(n, dtype=np.int64), "s_next": np.arange(n) % 16}
        path = written(columns, tmp_path / f"{n}.{suffix}") if suffix != "parquet" else tmp_path / f"{n}.parquet"
        if suffix == "parquet":
            pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=50_000)
        walked = as_system(lake())
        model = begun_model(walked, declared(walked))
        tracemalloc.start()
        before, most = pa.total_allocated_bytes(), 0
        taker = Taker(model, walked, (-1.0, 1.0))
        for batch in choosing.source_of(path).batches():
            most = max(most, pa.total_allocated_bytes() - before)
            taker.take(batch)
        peaks.append(tracemalloc.get_traced_memory()[1] + most)
        tracemalloc.stop()
        assert model.visits.sum() == n
    assert peaks[1] < 1.5 * peaks[0] + 2e6


@pytest.mark.parametrize("data", [3, "nothing", "nothing.csv", object(), (1, 2), {"s": 3, "a": 0, "s_next": 1}, [None]])
def test_what_is_no_source(data):
    with pytest.raises(InputError, match="data"):
        gosprl.collect(lake(), 1, data=data, data_order="collected")


def test_csv_cells_that_are_escaped_for_spreadsheets(tmp_path):
    (tmp_path / "data.csv").write_text("observation,action,next_observation\n'=1+1,0,'-x\n'-x,1,''=1\n")
    model = model_of(Rooms(), tmp_path / "data.csv", actions=2)
    assert [model.states[s] for s in model.discovered] == ["=1+1", "-x", "'=1"]


def test_an_npz_file_with_texts_and_a_model_beside_the_transitions(tmp_path):
    np.savez(
        tmp_path / "data.npz",
        **{"state": [-1, 0, 1], "action": [-1, 0, 1], "next_state": [0, 1, 0], "reset": [True, False, False]},
        observations=['["room", 3]', '["room", 1]'],
        counts=np.ones((2, 2)),
        model_state=np.zeros(7),
        metadata=np.array("{}"),
    )
    model = model_of(Rooms(), tmp_path / "data.npz", actions=2)
    assert [model.states[s] for s in model.discovered] == [("room", 3), ("room", 1)]
    assert model.starts()[1].tolist() == [1]
    np.savez(tmp_path / "wrong.npz", state=[0, 2], action=[0, 0], next_state=[1, 1], observations=["1", "2"])
    with pytest.raises(InputError, match=r"row 2, column state: expected the number of a state, 0\.\.1"):
        model_of(Rooms(), tmp_path / "wrong.npz", actions=2)
