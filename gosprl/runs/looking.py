"""What can be said of a run without opening its log: which files it has, and their bytes."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gosprl.runs.files import Damaged, open_regular, read_json
from gosprl.runs.journal import SYSTEM_STATE
from gosprl.runs.manifests import CHECKPOINTS, MANIFEST
from gosprl.runs.places import Place

MOST_MANIFEST = 2**20  # bytes of a damaged manifest that are searched for the id of the run
_RUN = re.compile(rb'^"run": "([0-9a-f]{32})",?$', re.MULTILINE)


def id_in_damaged(directory: Path) -> str | None:
    """Return the id that a damaged manifest seems to name; the digests of the log show whether it is the right one."""
    try:
        with os.fdopen(open_regular(directory, MANIFEST), "rb") as file:
            found = _RUN.findall(file.read(MOST_MANIFEST))
    except (Damaged, OSError):
        return None
    return found[0].decode() if len(found) == 1 else None


@dataclass(frozen=True)
class Saved:
    """A checkpoint: its file, relative to the run, and what is wrong with it; "" if nothing is.

    `events`, `legs` and `continued` are how many of them there were when it was saved.
    """

    file: str
    wrong: str
    events: int = 0
    legs: int = 0  # 0: not said, by versions before 0.2
    continued: int = 0


def checkpoints(directory: Place, run_id: str) -> Iterator[Saved]:
    """Yield the checkpoints of a run, after checking their digests, and that they belong to it."""
    folder = directory / CHECKPOINTS
    if not folder.is_dir() or folder.is_symlink():
        return
    for name in sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".json")):
        file = f"{CHECKPOINTS}/{name}"
        try:
            saved = read_json(folder / name, root=directory)
        except Damaged as error:
            yield Saved(file, error.what)
        except OSError as error:
            yield Saved(file, f"cannot be read: {error.strerror}")
        else:
            numbers = [saved.get(name, 0) for name in ("events", "legs", "continued")]
            sound = saved.get("run") == run_id and all(type(number) is int for number in numbers)
            named = name == SYSTEM_STATE or (sound and name == f"{saved.get('events', -1):015d}.json")
            if sound and named:
                yield Saved(file, "", *numbers)
            else:
                yield Saved(file, "belongs to another run or another event")


def sizes(directory: Path) -> dict[str, int]:
    """Return the bytes of the regular files of a run, by name relative to it; links are not followed."""
    found: dict[str, int] = {}
    for folder in ("", "log", CHECKPOINTS):
        place = directory / folder
        if place.is_symlink() or not place.is_dir():
            continue
        for entry in os.scandir(place):
            if entry.is_file(follow_symlinks=False):
                name = f"{folder}/{entry.name}" if folder else entry.name
                found[name] = entry.stat(follow_symlinks=False).st_size
    return found
