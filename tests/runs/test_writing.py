"""Writing a log: Arrow reads what was written, a log goes on after a restart, and a verified part can be copied."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from small_logs import RUN, assert_rows, columns, data_files, names, parts_of, rows_read, small_run

from gosprl.errors import InputError
from gosprl.runs import files
from gosprl.runs.files import Damaged
from gosprl.runs.reading import read_log
from gosprl.runs.schemas import LOG, NAMES
from gosprl.runs.writing import LogWriter, copy_prefix


def test_arrow_reads_the_files(run):
    tables = [pa.ipc.open_stream(path).read_all() for path in data_files(run)]
    assert tables[0].schema.equals(NAMES)
    assert all(table.schema.equals(LOG) for table in tables[1:])
    log_rows = pa.concat_tables(tables[1:])
    assert len(tables) == 3
    for name, expected in columns(0, 9).items():
        np.testing.assert_array_equal(log_rows[name].to_numpy(), expected)
    assert [tuple(row.values())[:5] for row in tables[0].to_pylist()] == [n[:5] for n in names(0, 2) + names(3, 5)]


def test_walkers_and_orders_are_kept(tmp_path):
    writer = LogWriter(tmp_path, RUN)
    writer.append({**columns(0, 3), "walker": np.array([0, 7, 65535]), "order": np.array([0, -5, 2**31 - 1])})
    writer.close()
    read = rows_read(read_log(tmp_path, RUN))
    assert read["walker"].tolist() == [0, 7, 65535]
    assert read["order"].tolist() == [0, -5, 2**31 - 1]


def test_rewards_are_any_floats_and_arrays_any_views(tmp_path):
    rewards = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    writer = LogWriter(tmp_path, RUN)
    doubled = {
        name: np.repeat(column, 2)[::2].astype(column.dtype.newbyteorder()) for name, column in columns(0, 5).items()
    }
    writer.append({**doubled, "reward": rewards})
    writer.append({**columns(5, 7), "reward": np.array([np.nan, 0.5], np.float32)})
    writer.close()
    read = rows_read(read_log(tmp_path, RUN))
    assert read["reward"].tobytes() == np.array([*rewards, np.nan, 0.5]).tobytes()
    np.testing.assert_array_equal(read["state"], np.arange(7))


def test_large_batches_are_split(tmp_path):
    rows = 2**20 + 5
    writer = LogWriter(tmp_path, RUN)
    writer.append(columns(0, rows))
    assert writer.sync() == rows
    writer.close()
    contents = read_log(tmp_path, RUN)
    assert [link.rows for link in contents.links] == [2**20, 5, 0]
    assert_rows(contents, 0, rows)


def test_many_long_names_are_split(tmp_path):
    writer = LogWriter(tmp_path, RUN)
    writer.append_names([(0, "state", i, "x" * (12 * 2**20), "", None) for i in range(4)])
    writer.close()
    contents = read_log(tmp_path, RUN)
    assert [link.rows for link in contents.links] == [2, 2, 0, 0]
    assert len(list(contents.names())) == 4


def test_an_empty_log_can_be_closed(tmp_path):
    LogWriter(tmp_path, RUN).close()
    assert pa.ipc.open_stream(tmp_path / "log" / "000001.arrow").read_all().num_rows == 0
    contents = read_log(tmp_path, RUN)
    assert (contents.rows, contents.closed, list(contents.batches()), list(contents.names())) == (0, True, [], [])


def test_closing_twice_and_writing_after_it(tmp_path):
    writer = LogWriter(tmp_path, RUN)
    writer.close()
    writer.close()
    with pytest.raises(InputError, match="closed"):
        writer.append(columns(0, 1))


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("torn", [True, False])
def test_appending_after_a_restart(tmp_path, closed, torn):
    small_run(tmp_path, closed)
    if torn:
        for name in ("log/chain", "log/000002.arrow", "log/000003.arrow", "states.arrow"):
            with (tmp_path / name).open("ab") as file:
                file.write(b"\0" * 20)
    contents = read_log(tmp_path, RUN)
    assert len(contents.unacknowledged) == 4 * torn
    writer = LogWriter(tmp_path, RUN, contents)
    writer.append(columns(9, 12))
    writer.append_names(names(9, 10))
    assert writer.sync() == 12
    writer.close()
    contents = read_log(tmp_path, RUN)
    assert (contents.problems, contents.unacknowledged, contents.closed) == ((), {}, True)
    assert_rows(contents, 0, 12)
    assert len(list(contents.names())) == 5
    tables = [pa.ipc.open_stream(path).read_all() for path in data_files(tmp_path)]
    assert [table.num_rows for table in tables] == ([5, 6, 3, 3] if closed else [5, 6, 6])


def test_resuming_a_closed_log_without_writing_changes_nothing(written, run):
    LogWriter(run, RUN, read_log(run, RUN)).close()
    assert parts_of(run) == parts_of(written)


def test_names_alone_reopen_a_closed_log(run):
    writer = LogWriter(run, RUN, read_log(run, RUN))
    writer.append_names(names(9, 10))
    writer.sync()
    assert not read_log(run, RUN).closed
    writer.close()
    contents = read_log(run, RUN)
    assert (contents.closed, contents.rows, contents.problems) == (True, 9, ())


def test_damage_is_not_appended_to(run):
    (run / "log" / "000002.arrow").write_bytes(b"")
    with pytest.raises(Damaged, match=r"log/000002\.arrow, batch 6"):
        LogWriter(run, RUN, read_log(run, RUN))


def test_a_file_that_changed_after_it_was_verified(run):
    contents = read_log(run, RUN)
    with (run / "states.arrow").open("ab") as file:
        file.write(b"x")
    writer = LogWriter(run, RUN, contents)
    writer.append_names(names(0, 1))
    with pytest.raises(Damaged, match="changed"):
        writer.sync()


def test_a_second_log_is_refused(run):
    with pytest.raises(InputError, match="has a log already"):
        LogWriter(run, RUN)
    with pytest.raises(InputError, match="expected those of"):
        LogWriter(run, "ff", read_log(run, RUN))


def test_a_prefix_is_copied_without_touching_the_source(written, run, tmp_path):
    data = bytearray((run / "log" / "000002.arrow").read_bytes())
    data[-20] ^= 1
    (run / "log" / "000002.arrow").write_bytes(data)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    contents = read_log(run, RUN)
    copy_prefix(contents, tmp_path / "repaired")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    repaired = read_log(tmp_path / "repaired", RUN)
    assert (repaired.problems, repaired.unacknowledged, repaired.digest) == ((), {}, contents.digest)
    assert parts_of(tmp_path / "repaired") == parts_of(written)[:5]
    assert_rows(repaired, 0, 6)
    with pytest.raises(InputError, match="already"):
        copy_prefix(contents, tmp_path / "repaired")
    (run / "log" / "000001.arrow").write_bytes(b"")
    with pytest.raises(Damaged):
        copy_prefix(contents, tmp_path / "other")


def test_importing_the_package_does_not_import_arrow():
    code = "import sys, gosprl, gosprl.runs; sys.exit('pyarrow' in sys.modules)"
    root = str(Path(files.__file__).parents[2])
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=root).returncode == 0
