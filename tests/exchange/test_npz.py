"""npz files: NumPy reads back what the log and the result have."""

import io
import json
import zipfile

import numpy as np
import pytest
from exported_logs import log_of, manifest_of, observations_of

from gosprl.errors import InputError
from gosprl.exchange import export, npz


def test_numpy_reads_the_same_values(kept, tmp_path):
    run, result = kept
    export(run, tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as got:
        for name, column in log_of(run).items():
            assert got[name].dtype == column.dtype
            assert np.array_equal(got[name], column)
        assert np.array_equal(got["counts"], result.counts)
        steps = ~got["model_reset"]
        found = [got[f"model_{name}"][steps] for name in ("state", "action", "next_state", "count")]
        assert all(np.array_equal(a, b) for a, b in zip(found, result.model.transitions(), strict=True))
        assert np.array_equal(got["model_next_state"][~steps], result.model.starts()[0])
        assert (got["model_action"][~steps] == -1).all()
        texts = observations_of(run)
        assert ("observations" in got) == (texts is not None)
        if texts is not None:
            assert got["observations"].tolist() == texts
        assert json.loads(str(got["metadata"]))["run"] == manifest_of(run)["run"]


def test_states_of_the_model_are_found_in_the_transitions(kept, tmp_path):
    run, _ = kept
    export(run, tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as got:
        number, counts = got["model_number"], got["counts"]
        counted = np.zeros_like(counts)
        place = {n: s for s, n in enumerate(number[: len(counts)].tolist())}
        for s, a, reset in zip(got["state"].tolist(), got["action"].tolist(), got["reset"].tolist(), strict=True):
            if not reset:
                counted[place[s], a] += 1
        assert np.array_equal(counted, counts)


def test_a_result_has_no_transitions_in_order(kept, tmp_path):
    _, result = kept
    result.export(tmp_path / "result.npz")
    with np.load(tmp_path / "result.npz") as got:
        assert "state" not in got
        assert np.array_equal(got["counts"], result.counts)


def test_long_texts_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "_MOST", 100)
    with npz.Arrays(tmp_path / "a.npz") as arrays, pytest.raises(InputError, match="use parquet"):
        arrays.add_texts("observations", ["a", "b" * 20])


def lying(shape, size):
    """A column whose header claims another length than it has."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i4", "fortran_order": False, "shape": shape})
    return header.getvalue() + bytes(size)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lying((10**11,), 40), "400"),
        (lying((5, 2), 40), "expected numbers"),
        (b"PK", "NumPy"),
        (lying((10,), 40)[:-3], "expected numbers"),
    ],
)
def test_files_that_claim_what_they_do_not_have(tmp_path, data, said):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for name in ("state", "action", "next_state"):
            file.writestr(f"{name}.npy", data)
    with pytest.raises(InputError) as error:
        npz.read(tmp_path / "a.npz")
    assert said in str(error.value) or "bytes" in str(error.value)
