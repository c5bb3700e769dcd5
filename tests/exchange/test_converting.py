"""Tables without a run, from one format to another."""

import itertools
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gosprl.errors import InputError
from gosprl.exchange import convert, converting, csv_files, export

FORMATS = ("csv", "parquet", "npz")
ROWS = {"state": [-1, 0, 1], "action": [-1, 0, 1], "next_state": [0, 1, 0], "reset": [True, False, False]}


def content(file):
    """A table as pyarrow and NumPy read it."""
    if file.suffix == ".npz":
        with np.load(file) as arrays:
            return {name: arrays[name].tolist() for name in arrays if not name.startswith(("model", "counts", "meta"))}
    return file.read_text() if file.suffix == ".csv" else pq.read_table(file).to_pydict()


@pytest.mark.parametrize(("a", "b"), list(itertools.permutations(FORMATS, 2)))
def test_as_if_it_had_been_exported(kept, tmp_path, a, b):
    run, _ = kept
    for ending in (a, b):
        export(run, tmp_path / f"exported.{ending}")
    convert(tmp_path / f"exported.{a}", tmp_path / f"converted.{b}")
    assert content(tmp_path / f"converted.{b}") == content(tmp_path / f"exported.{b}")


def test_metadata_goes_along_where_there_is_a_place_for_it(river_run, tmp_path):
    export(river_run, tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "b.npz")
    convert(tmp_path / "b.npz", tmp_path / "c.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").metadata == pq.read_schema(tmp_path / "c.parquet").metadata


def test_formulas_come_back_as_they_were(tmp_path):
    texts = [None, "=1+1", "'quoted"]
    table = pa.table({**ROWS, "observation": texts, "next_observation": ["=1+1", "'quoted", "=1+1"]})
    pq.write_table(table, tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "b.csv")
    assert "'=1+1" in (tmp_path / "b.csv").read_text()
    convert(tmp_path / "b.csv", tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet").to_pydict() == table.to_pydict()


def test_other_types_are_taken_where_they_fit(tmp_path):
    table = pa.table({name: pa.array(column, pa.int64()) for name, column in ROWS.items() if name != "reset"})
    table = table.append_column("reset", pa.array(ROWS["reset"])).append_column("reward", pa.array([0, 1, 2]))
    pq.write_table(table, tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as got:
        assert got["reward"].tolist() == [0.0, 1.0, 2.0]
        assert got["state"].dtype == np.int32


def test_a_little_memory(tmp_path, monkeypatch):
    n = 1000
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(0, 9, n) for name in converting.REQUIRED})
    pq.write_table(table, tmp_path / "a.parquet")
    monkeypatch.setattr(converting, "ROWS", 10)
    convert(tmp_path / "a.parquet", tmp_path / "b.csv")
    assert len((tmp_path / "b.csv").read_text().splitlines()) == n + 1


def refused(tmp_path, text, name="a.csv", target="b.parquet"):
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as error:
        convert(tmp_path / name, tmp_path / target)
    assert os.listdir(tmp_path) == [name]
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state,action\n0,1\n", "misses next_state"),
        ("state,action,next_state,colour\n0,1,2,red\n", "has 'colour'"),
        ("state,action,next_state,state\n0,1,2,3\n", "twice"),
        ("", "misses state"),
        ("state,action,next_state\n0,1,2\n0,1,two\n", "row 2, column next_state: expected a whole number below 2^31"),
        ("state,action,next_state\n0,1,2\n0,1,2.5\n", "row 2, column next_state: expected a whole number below 2^31"),
        ("state,action,next_state\n0,1,2\n0,1\n", "row 2: Expected 3 columns, got 2"),
        (
            "state,action,next_state,late\n0,1,2,true\n0,1,2,no\n",
            "row 2, column late: expected true or false, got 'no'",
        ),
        ("state,action,next_state\n0,1,2\n0,,2\n", "column action, row 2: expected int32, got nothing"),
        ("state,action,next_state\n0,1,2\n-7,1,2\n", "column state, row 2"),
        ("state,action,next_state,reward\n0,1,2,0\n0,1,2,nan\n", "column reward, row 2"),
        ("state,action,next_state,reset\n0,0,2,true\n", "column action, row 1: expected -1 where reset is true"),
        ("state,action,next_state\n0,-1,2\n", "column action, row 1"),
        ("state,action,next_state\n0,1,99999999999\n", "99999999999"),
        (b"\xff\xfe\x00state", "is no csv file in UTF-8"),
    ],
)
def test_bad_tables_are_refused_with_row_and_column(tmp_path, text, said):
    assert said in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("state", 0.5, "column state, row 3: expected int32, got 0.5"),
        ("next_state", 2**31, "column next_state, row 3: expected int32, got 2147483648"),
        ("action", [0], r"column action, row 1: expected int32, got \[0\]"),
        ("terminated", 2, "column terminated, row 3: expected true or false, got 2"),
        ("reward", "x", "column reward, row 3: expected double, got 'x'"),
    ],
)
def test_other_types_are_refused_where_they_do_not_fit(tmp_path, column, value, said):
    columns = {"state": [0, 0, 0], "action": [1, 1, 1], "next_state": [0, 1, 0]}
    zero = {str: "0", list: [0], float: 0.0}.get(type(value), 0)
    pq.write_table(pa.table({**columns, column: [zero, zero, value]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=said):
        convert(tmp_path / "a.parquet", tmp_path / "b.csv")
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_a_row_far_down_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 100)
    rows = "0,1,2\n" * 200
    assert "row 201, column action: expected" in refused(tmp_path, f"state,action,next_state\n{rows}0,left,2\n")


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_bytes_that_changed_are_blamed_on_the_source(river_run, tmp_path, ending):
    export(river_run, tmp_path / f"a.{ending}")
    data = bytearray((tmp_path / f"a.{ending}").read_bytes())
    (tmp_path / f"a.{ending}").unlink()
    found = 0
    for i in range(60, len(data) // 2, len(data) // 40):
        changed = data[:i] + bytes([data[i] ^ 0xFF]) + data[i + 1 :]
        (tmp_path / f"a.{ending}").write_bytes(changed)
        said = said_by(tmp_path / f"a.{ending}", tmp_path / "b.csv")
        found += said.startswith("source:")
        assert said.startswith("source:") == ("b.csv" not in os.listdir(tmp_path))
        (tmp_path / "b.csv").unlink(missing_ok=True)
    assert found > 5


def said_by(source, file):
    """What the error says; nothing if there is none."""
    try:
        convert(source, file)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["a.parquet", "a.npz"])
@pytest.mark.parametrize("data", [b"", b"PAR1", b"PK\x05\x06", b"something else, of another tool" * 10])
def test_foreign_files(tmp_path, name, data):
    assert re.search("is no (parquet|npz) file|misses state", refused(tmp_path, data, name, "b.csv"))


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_truncated_files(river_run, tmp_path, ending):
    export(river_run, tmp_path / f"whole.{ending}")
    data = (tmp_path / f"whole.{ending}").read_bytes()
    (tmp_path / f"whole.{ending}").unlink()
    for end in range(0, len(data) - 1, len(data) // 20):
        refused(tmp_path, data[:end], f"a.{ending}", "b.csv")


@pytest.mark.parametrize("target", ["a.dot", "a.graphml", "a.drn"])
def test_what_it_cannot_do_is_said(tmp_path, target):
    assert "gosprl export" in refused(tmp_path, "state,action,next_state\n0,1,2\n", target=target)


def test_directories_and_missing_files(river_run, tmp_path):
    with pytest.raises(InputError, match="gosprl export"):
        convert(river_run, tmp_path / "b.csv")
    with pytest.raises(InputError, match="there is no"):
        convert(tmp_path / "a.csv", tmp_path / "b.parquet")
    with pytest.raises(InputError, match=re.escape(".npz .parquet .csv")):
        convert(tmp_path / "a.xlsx", tmp_path / "b.parquet")


def test_one_text_for_each_state(tmp_path):
    text = "state,action,next_state,observation,next_observation\n0,0,1,a,b\n0,0,1,x,b\n"
    assert "column observation, row 2: expected one text for each state" in refused(tmp_path, text, target="b.npz")
