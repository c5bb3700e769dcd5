"""HDF5 files that claim what they do not have."""

import h5py
import numpy as np
import pytest

from gosprl.errors import InputError
from gosprl.exchange.incoming.hdf5 import check_sizes


def claims(file):
    """4 TB that were never written."""
    file.create_dataset("episode_0/rewards", (2**39,), "f8", chunks=(2**16,))


def compressed(file):
    file.create_dataset("episode_0/rewards", (10,), "f8", maxshape=(None,), chunks=(2**28,), compression="gzip")


def elsewhere(file):
    file["episode_0/rewards"] = h5py.ExternalLink("/etc/other.hdf5", "x")


def linked(file):
    file["episode_1"] = h5py.SoftLink("/episode_0")


def raw(file):
    file.create_dataset("episode_0/rewards", (8,), "u1", external=[("/etc/hostname", 0, 8)])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (claims, r"the set, episode_0: expected episodes of at most 1,073,741,824 bytes, got one of 4,398,046,511,104"),
        (compressed, "expected episodes of at most 1,073,741,824 bytes, got one of 2,147,483,648; export"),
        (elsewhere, "expected everything in one file, but /episode_0/rewards is a link"),
        (linked, "expected everything in one file, but /episode_1 is a link"),
        (raw, "expected everything in one file, but /episode_0/rewards has its values elsewhere"),
    ],
)
def test_what_is_refused(write, message, tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        write(file)
    with pytest.raises(InputError, match=message):
        check_sizes(tmp_path / "x.hdf5", "the set")


def test_texts_are_counted(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("episode_0/observations", (20,), h5py.string_dtype())[:] = ["x" * 1000] * 20
        file["episode_0/rewards"] = np.zeros(20)
    check_sizes(tmp_path / "x.hdf5", "the set")
    monkeypatch.setattr("gosprl.exchange.incoming.hdf5.MOST_EPISODE", 20_000)
    with pytest.raises(InputError, match="episode_0: expected episodes of at most 20,000 bytes, got one of 20,"):
        check_sizes(tmp_path / "x.hdf5", "the set")
