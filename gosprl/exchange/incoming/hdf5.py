"""What the HDF5 file of a Minari data set claims, checked before Minari reads whole episodes of it.

A data set of an HDF5 file that claims any shape takes no bytes: what was not written is filled in. Links may lead to
other files.
"""

import math
from pathlib import Path
from typing import Any

from gosprl.errors import InputError
from gosprl.exchange.decoding import BUDGET

MOST_EPISODE = 2**30  # bytes of an episode once decoded
_DEEPEST = 32  # groups in groups


def check_sizes(file: Path, name: str) -> None:
    """Raise `InputError` if an episode takes too much memory, or anything in the file is a link elsewhere."""
    import h5py

    with h5py.File(file, "r") as episodes:
        for episode in episodes:
            _check_link(episodes, episode, name)
            size = _size(episodes[episode], name, file.stat().st_size, 0)
            if size > MOST_EPISODE:
                raise InputError(
                    f"data: {name}, {episode:.40}: expected episodes of at most {MOST_EPISODE:,} bytes, got one of "
                    f"{size:,}; export its transitions as parquet"
                )


def _check_link(group: Any, key: str, name: str) -> None:
    import h5py

    if not isinstance(group.get(key, getlink=True), h5py.HardLink):
        raise InputError(
            f"data: {name}: expected everything in one file, but {group.name.rstrip('/')}/{key:.40} is a link"
        )


def _size(item: Any, name: str, file_size: int, depth: int) -> int:
    """Return the bytes that a group or a data set takes in memory."""
    import h5py

    if isinstance(item, h5py.Group):
        if depth > _DEEPEST:
            raise InputError(f"data: {name}: {item.name:.80} is nested too deeply")
        total = 0
        for key in item:
            _check_link(item, key, name)
            total += _size(item[key], name, file_size, depth + 1)
        return total
    if item.is_virtual or item.external:
        raise InputError(f"data: {name}: expected everything in one file, but {item.name:.80} has its values elsewhere")
    claimed = max(item.size or 0, math.prod(item.chunks or (0,))) * item.dtype.itemsize
    if claimed > MOST_EPISODE or not h5py.check_vlen_dtype(item.dtype):
        return int(claimed)
    step, total = max(1, BUDGET // max(1, file_size)), int(claimed)  # a value of any length is in the file in full
    for first in range(0, len(item), step):
        total += sum(map(len, item[first : first + step].ravel()))
        if total > MOST_EPISODE:
            break
    return total
