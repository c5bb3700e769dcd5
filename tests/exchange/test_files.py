"""What the readers of csv and Parquet files share."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gosprl
from gosprl import InputError
from gosprl.exchange import csv_files, export
from gosprl.exchange.csv_files import csv_parts
from gosprl.exchange.parquet_files import opened, parquet_parts

TYPES = {"a": pa.int64(), "b": pa.float64(), "c": pa.bool_(), "d": pa.large_string()}


def read(tmp_path, text):
    (tmp_path / "x.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return [row for part in csv_parts(tmp_path / "x.csv", TYPES, "data") for row in part.to_pylist()]


def test_cells(tmp_path):
    text = 'a,b,c,d\n1,2.5,true,nan\n,,,\n3,4,0,\'=1\n5,6,1,"two\nlines"\n'
    assert read(tmp_path, text) == [
        {"a": 1, "b": 2.5, "c": True, "d": "nan"},
        {"a": None, "b": None, "c": None, "d": None},
        {"a": 3, "b": 4.0, "c": False, "d": "=1"},
        {"a": 5, "b": 6.0, "c": True, "d": "two\nlines"},
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n1\nx\n", r"x\.csv, row 2, column a: expected a whole number, got 'x'"),
        ("b\n1\nx\n", r"x\.csv, row 2, column b: expected a number, got 'x'"),
        ("c\ntrue\n2\n", r"x\.csv, row 2, column c: expected true or false, got '2'"),
        ("a,b\n1,2\n1,2,3\n", r"x\.csv, row 2: Expected 2 columns, got 3"),
        ("", r"x\.csv is empty; expected a line with the names"),
        (b"\xff\xfea", r"x\.csv is no csv file in UTF-8"),
        (b"d\n\xff\xff\n", r"x\.csv, row 1, column d: expected large_string, got something else"),
    ],
)
def test_errors_name_row_and_column(tmp_path, text, said):
    with pytest.raises(InputError, match=f"data: .*{said}"):
        read(tmp_path, text)


def test_rows_are_counted_over_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 64)
    with pytest.raises(InputError, match="row 301, column a"):
        read(tmp_path, "a\n" + "1\n" * 300 + "x\n")


def test_row_groups_are_not_held(tmp_path):
    """One row group with 8 MB of numbers that do not compress: what Arrow holds is a tenth of it."""
    numbers = np.random.default_rng(0).random(10**6)
    pq.write_table(pa.table({"x": numbers}), tmp_path / "x.parquet", row_group_size=len(numbers), use_dictionary=False)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for part in parquet_parts(tmp_path / "x.parquet", 4096, "data"):
        rows += part.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == len(numbers)
    assert most < 3.5e6
    with opened(tmp_path / "x.parquet") as file:
        assert file.metadata.num_row_groups == 1


def test_a_bit_that_flipped_in_an_export_is_found(river_run, tmp_path):
    """Numbers in a page without compression would be other numbers."""
    export(river_run, tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table, tmp_path / "plain.parquet", **options)
    data = bytearray((tmp_path / "plain.parquet").read_bytes())
    place = data.index(np.array(table["state"].to_numpy()[1:9], dtype="<i4").tobytes())
    data[place] ^= 1
    (tmp_path / "plain.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"plain\.parquet cannot be read.*(CRC|checksum)"):
        gosprl.collect(
            gosprl.envs.make("riverswim6"), 1, data=tmp_path / "plain.parquet", data_order="collected", max_steps=1
        )
