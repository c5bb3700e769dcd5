"""What may stand in the columns of the log and of the names."""

import numpy as np
import pytest
from small_logs import RUN, assert_rows, columns

from gosprl.errors import InputError
from gosprl.runs.reading import read_log
from gosprl.runs.writing import LogWriter


@pytest.mark.parametrize(
    "change",
    [
        {"state": np.array([2**31])},
        {"state": np.array([0.5])},
        {"flags": np.array([256])},
        {"walker": np.array([-1])},
        {"action": np.array([0, 1])},
        {"other": np.array([0])},
        {"state": np.array(["one"])},
        {"state": np.array([None])},
        {"state": np.array([10**30])},
        {"state": np.array([np.nan])},
    ],
    ids=range(10),
)
def test_columns_that_do_not_fit_are_refused_and_harm_nothing(tmp_path, change):
    writer = LogWriter(tmp_path, RUN)
    with pytest.raises(InputError, match="columns"):
        writer.append({**columns(0, 1), **change})
    with pytest.raises(InputError, match="columns"):
        writer.append({"state": np.array([0])})
    writer.append(columns(0, 3))
    writer.close()
    assert_rows(read_log(tmp_path, RUN), 0, 3)


@pytest.mark.parametrize(
    "row",
    [
        (0, "other", 0, "0", "0", None),
        (0, "state", 2**63, "0", "0", None),
        (0.5, "state", 0, "0", "0", None),
        (0, "state", 0, "\ud800", "0", None),
        (0, "state", 0, 0, "0", None),
        (0, "state", 0, "0", "0", [2**31]),
        (0, "state", 0, "0" * 2**25, "0", None),
    ],
    ids=range(7),
)
def test_names_that_do_not_fit_are_refused_and_harm_nothing(tmp_path, row):
    writer = LogWriter(tmp_path, RUN)
    with pytest.raises(InputError, match="names"):
        writer.append_names([row])
    writer.append_names([(0, "action", np.int64(3), "0", "0", np.array([1, 2]))])
    writer.close()
    assert list(read_log(tmp_path, RUN).names()) == [(0, "action", 3, "0", "0", (1, 2))]
