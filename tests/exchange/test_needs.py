"""Needs from tables."""

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import gosprl
from gosprl import InputError
from gosprl.cli.app import app


class Line:
    """Rooms ("room", 0) .. ("room", 3) in a ring; "left" and "right" lead to the next one."""

    def __init__(self):
        self.at = 0

    def reset(self):
        self.at = 0
        return ("room", 0), {}

    def step(self, action):
        self.at = (self.at + (1 if action == "right" else -1)) % 4
        return ("room", self.at), 0.0, False, False, {}


ACTIONS = ["left", "right"]
CSV = """observation,action,number
"[""room"", 1]",right,7
"[""room"", 2]",,5
"[""room"", 3]",left,2
"[""room"", 3]",,6
"""


def by_name(result):
    return {result.model.states[s][1]: n for s, n in enumerate(result.counts.tolist())}


def check(result):
    assert result.met
    counts = by_name(result)
    assert counts[1][1] >= 7
    assert sum(counts[2]) >= 5
    assert counts[3][0] >= 2
    assert sum(counts[3]) >= 6
    assert counts[2][0] < 5 or counts[2][1] < 5  # any action will do: not as many of each


def test_a_csv_file_of_observations_that_are_discovered(tmp_path):
    (tmp_path / "need.csv").write_text(CSV)
    check(gosprl.collect(Line(), tmp_path / "need.csv", actions=ACTIONS, need_unknown="wait", seed=1))
    with pytest.raises(InputError, match=r"row 1, column observation: .* is not known before the run"):
        gosprl.collect(Line(), tmp_path / "need.csv", actions=ACTIONS)


def test_observations_are_known_from_data(tmp_path):
    (tmp_path / "need.csv").write_text(CSV)
    rooms = [("room", i % 4) for i in range(5)]
    data = {"s": rooms[:4], "a": ["right"] * 4, "s_next": rooms[1:]}
    check(
        gosprl.collect(Line(), str(tmp_path / "need.csv"), actions=ACTIONS, data=data, data_order="collected", seed=4)
    )


TABLE = {"state": [0, 1, 5], "action": [1, None, 0], "samples": [4, 9, 3]}


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "csv", "parquet"])
def test_every_kind_of_table_asks_for_the_same(kind, tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    table = pa.table(TABLE)
    if kind in ("pandas", "polars"):
        table = pytest.importorskip(kind).DataFrame(TABLE)
    elif kind == "parquet":
        pyarrow.parquet.write_table(table, tmp_path / "need.parquet")
        table = tmp_path / "need.parquet"
    elif kind == "csv":
        (tmp_path / "need.csv").write_text("state,action,samples\n0,1,4\n1,,9\n5,0,3\n")
        table = tmp_path / "need.csv"
    result = gosprl.collect(mdp, table, seed=0)
    pair, state = result.need
    expected = np.zeros((6, 2), dtype=int)
    expected[0, 1], expected[5, 0] = 4, 3
    np.testing.assert_array_equal(pair, expected)
    assert state.tolist() == [0, 9, 0, 0, 0, 0]
    assert result.met


def test_observations_of_a_numbered_system():
    shifted = gymnasium.wrappers.TransformObservation(
        gymnasium.make("FrozenLake-v1"), lambda x: x + 5, gymnasium.spaces.Discrete(16, start=5)
    )
    result = gosprl.collect(shifted, pa.table({"observation": [5, 6], "number": [3, 2]}), seed=0)
    assert result.need[1][:3].tolist() == [3, 2, 0]
    with pytest.raises(InputError, match="row 2, column observation: observation left its space"):
        gosprl.collect(shifted, pa.table({"observation": [5, 4], "number": [3, 2]}), seed=0)


def test_the_search_for_a_treasure_takes_tables():
    answer = gosprl.applications.find_treasure(gosprl.envs.make("riverswim6"), pa.table(TABLE), seed=0)
    assert answer.reached


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("state,number\n", "no rows|cannot be read"),
        ("state,action\n0,1\n", "expected the columns observation"),
        ("state,number,samples\n0,1,1\n", "expected the columns observation"),
        ("state,number,reward\n0,1,1\n", "column 'reward' is not known"),
        ("state,number\n0,1\n6,1\n", "row 2, column state: expected a state in 0..5, got 6"),
        ("state,number\n0,1\nx,1\n", "row 2, column state: expected the number of a state, a whole number"),
        ("state,number\n0,1\n,1\n", "row 2, column state: expected a state, got nothing"),
        (
            "state,number\n0,1\n1,-1\n",
            "row 2, column number: expected a number of samples, a whole number >= 0, got '-1'",
        ),
        ("state,number\n0,1\n1,1.5\n", "row 2, column number: .* got '1.5'"),
        ("state,number\n0,1\n1,\n", "row 2, column number: .* got nothing"),
        ("state,action,number\n0,0,1\n1,2,1\n", "row 2, column action: expected the index of an action, 0..1"),
        ("state,action,number\n0,0,1\n1,up,1\n", "row 2, column action"),
        ("state,action,number\n0,0,1\n0,0,1\n", "row 2: the same observation and action"),
        ("state,number\n0,1\n1\n", "row 2: Expected 2 columns, got 1"),
    ],
)
def test_tables_that_are_wrong(text, message, tmp_path):
    (tmp_path / "need.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        gosprl.collect(gosprl.envs.make("riverswim6"), tmp_path / "need.csv")


def test_other_arguments_that_are_wrong(tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    with pytest.raises(InputError, match="need: there is no file"):
        gosprl.collect(mdp, tmp_path / "need.csv")
    with pytest.raises(InputError, match=r"need: expected a \.csv or \.parquet file"):
        gosprl.collect(mdp, tmp_path / "need.txt")
    with pytest.raises(InputError, match="need_unknown: expected None unless"):
        gosprl.collect(mdp, 3, need_unknown="wait")
    with pytest.raises(InputError, match="need_unknown"):
        gosprl.collect(mdp, pa.table(TABLE), need_unknown="perhaps")
    (tmp_path / "need.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"need: .* cannot be read"):
        gosprl.collect(mdp, tmp_path / "need.parquet")


def test_the_command_line(tmp_path):
    (tmp_path / "need.csv").write_text("state,action,number\n0,1,4\n5,,2\n")
    done = CliRunner().invoke(
        app, ["collect", "riverswim6", "--need", str(tmp_path / "need.csv"), "--seed", "0", "--json"]
    )
    assert done.exit_code == 0
    assert '"pairs": 1' in done.stdout
