"""Tables of transitions and of models: other tools read back what the log has."""

import csv
import json
import re

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exported_logs import certificate_of, log_of, manifest_of, observations_of, texts_of

from gosprl.exchange import csv_files, export, tables
from gosprl.exchange.sources import Source
from gosprl.sets.kl import KL


def by_pyarrow(file):
    return pq.read_table(file).to_pydict()


def by_pandas(file):
    frame = pandas.read_parquet(file) if file.suffix == ".parquet" else pandas.read_csv(file)
    return {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame}


def by_polars(file):
    frame = polars.read_parquet(file) if file.suffix == ".parquet" else polars.read_csv(file)
    return {name: frame[name].to_list() for name in frame.columns}


def by_duckdb(file):
    found = duckdb.sql(f"select * from '{file}'")
    return {name: list(column) for name, column in zip(found.columns, zip(*found.fetchall(), strict=True), strict=True)}


READERS = [
    (by_pyarrow, "parquet"),
    *((reader, ending) for reader in (by_pandas, by_polars, by_duckdb) for ending in ("parquet", "csv")),
]


@pytest.mark.parametrize(("reader", "ending"), READERS)
def test_other_tools_read_the_same_transitions(kept, tmp_path, reader, ending):
    run, _ = kept
    export(run, tmp_path / f"transitions.{ending}")
    got, log = reader(tmp_path / f"transitions.{ending}"), log_of(run)
    named = observations_of(run) is not None
    assert list(got) == [*log, *(["observation", "next_observation"] if named else [])]
    for name, column in log.items():
        assert got[name] == column.tolist(), name  # bit for bit, rewards too
    if named:
        assert got["observation"] == texts_of(run, log["state"])
        assert got["next_observation"] == texts_of(run, log["next_state"])


def test_resets_are_rows_of_their_own(kept, tmp_path):
    run, result = kept
    export(run, tmp_path / "transitions.parquet")
    got = pq.read_table(tmp_path / "transitions.parquet").to_pandas()
    assert (got["action"][got["reset"]] == -1).all()
    assert (got["action"][~got["reset"]] >= 0).all()
    assert (~got["reset"]).sum() == result.steps
    assert got["reset"].sum() == result.resets + 1


def test_parquet_says_where_it_comes_from(river_run, tmp_path):
    export(river_run, tmp_path / "transitions.parquet")
    said = json.loads(pq.read_schema(tmp_path / "transitions.parquet").metadata[b"gosprl"])
    manifest = manifest_of(river_run)
    assert said["run"] == manifest["run"]
    assert said["seed"] == manifest["seed"]
    assert said["versions"] == manifest["legs"][-1]["versions"]
    assert said["system"]["name"] == manifest["system"]["name"]
    assert said["log"] == certificate_of(river_run)["log"]


def model_rows(result):
    """What a model table has to say, from the result's own methods: steps, then resets."""
    model = result.model
    rows = [(*map(int, row), False) for row in zip(*model.transitions(), strict=True)]
    return rows + [(-1, -1, int(s), int(n), True) for s, n in zip(*model.starts(), strict=True)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("from_run", [False, True])
def test_models(kept, tmp_path, ending, from_run):
    run, result = kept
    if from_run:
        export(run, tmp_path / f"model.{ending}", table="model")
    else:
        result.export(tmp_path / f"model.{ending}")
    got = by_duckdb(tmp_path / f"model.{ending}")
    rows = list(zip(got["state"], got["action"], got["next_state"], got["count"], got["reset"], strict=True))
    assert rows == model_rows(result)
    kinds = [result.model.states.kind(s) for s in got["next_state"]]
    assert [label or "" for label in got["label"]] == ["" if kind == "live" else kind for kind in kinds]
    for s, a, s_next, p, low, high in zip(
        *(got[name] for name in ("state", "action", "next_state", "p_hat", "lower", "upper")), strict=True
    ):
        assert low <= p <= high
        if s >= 0:
            succ, frequency = result.model.p_hat(s, a)
            assert p == frequency[list(succ).index(s_next)]


def test_intervals_are_those_of_the_level(kept):
    _, result = kept
    rows = np.flatnonzero((result.model.visits > 0) & ~result.model.certain)
    for delta in (0.1, 0.001):
        columns = tables.model_columns(Source(result), delta)
        sets = KL(delta).intervals(result.model, rows)
        row = np.repeat(rows, np.diff(sets.ptr))
        expected = {
            (int(result.model.rows.state[r]), int(result.model.rows.action[r]), int(s)): (low, high)
            for r, s, low, high in zip(row, sets.succ, sets.lower, sets.upper, strict=True)
        }
        for s, a, s_next, low, high in zip(
            *(columns[name].tolist() for name in ("state", "action", "next_state", "lower", "upper")), strict=True
        ):
            pair = (s, a) if s >= 0 else (result.model.states.reset, 0)
            assert expected[(*pair, s_next)] == (low, high)


RISKY = ["=1+1", "+cmd", "-x", "@sum", "\t=1", "\r=1", "'", "'=1", "--1", "-1-1", "=", "-", "- 1", "1e5", "-1e", "+1"]
SAFE = ["-1", "-0.5", "-1e-3", "12", "a=1", '"=1"', "", "[1, 2]", "null"]


def test_formulas_are_escaped_and_numbers_are_not():
    texts = pa.array([*RISKY, *SAFE, None])
    escaped = csv_files.escaped(texts).to_pylist()
    for text, cell in zip(RISKY, escaped, strict=False):
        assert cell == (text if re.match(r"^1e5$", text) else "'" + text)
        assert cell[:1] not in "=+-@\t\r"
    assert escaped[len(RISKY) :] == [*SAFE, None]
    assert csv_files.unescaped(csv_files.escaped(texts)).to_pylist() == texts.to_pylist()


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path):
    schema = pa.schema([("state", pa.int32()), ("observation", pa.string())])
    batch = pa.record_batch([pa.array([-1] * len(RISKY), pa.int32()), pa.array(RISKY)], schema=schema)
    with (tmp_path / "a.csv").open("wb") as sink:
        tables.to_csv(tables.Table(schema, [batch]), sink)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert all(row[0] == "-1" for row in rows)  # numbers stay numbers
    assert not [row[1] for row in rows if row[1][0] in "=+-@\t\r"]


def test_small_and_large_batches_give_the_same_rows(maze_run, tmp_path, monkeypatch):
    export(maze_run, tmp_path / "a.parquet")
    monkeypatch.setattr(tables, "ROWS", 7)
    export(maze_run, tmp_path / "b.parquet")
    assert pq.ParquetFile(tmp_path / "b.parquet").num_row_groups > 10
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))
