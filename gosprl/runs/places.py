"""Held: a directory that is held open while a run writes to it, and the places inside it.

A path names whatever stands there at the moment: a directory that is renamed, or a link that is repointed, would send
the rest of a run to another place. A held directory stays the same one. It has the part of `pathlib.Path` that the
files of a run need, so that whoever only reads gives a `Path`, and whoever writes a `Held`.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

HERE = PurePath()


class Handle:
    """The open directory; `fd` is -1 once it is closed, so that nothing can happen in another one by mistake."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        """Close it. A second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


@dataclass(frozen=True)
class Held:
    """A directory that is held open, or a place inside it.

    Parameters
    ----------
    shown
        Its path when it was opened, for messages.
    handle
        The open directory.
    inside
        The place, relative to it.
    """

    shown: Path
    handle: Handle = field(repr=False)
    inside: PurePath = HERE

    @classmethod
    def open(cls, directory: Path) -> "Held":
        """Hold a directory, which exists; `close` gives it back."""
        return cls(directory, Handle(os.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))))

    def close(self) -> None:
        """Give the directory back: nothing can be done in it any more."""
        self.handle.close()

    def __truediv__(self, name: "str | PurePath") -> "Held":
        return Held(self.shown / name, self.handle, self.inside / name)

    def __str__(self) -> str:
        return str(self.shown)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.shown.name

    @property
    def parent(self) -> "Held":
        """The directory that it is in; that of the held one itself is found from there."""
        inside = self.inside.parent if self.inside.parts else PurePath("..")
        return Held(self.shown.parent, self.handle, inside)

    def with_name(self, name: str) -> "Held":
        """Return the place beside it with this name."""
        return self.parent / name

    def relative_to(self, other: "Held") -> PurePath:
        """Return the path from a place above it."""
        return self.inside.relative_to(other.inside)

    def lstat(self) -> os.stat_result:
        """Return its status; a link is not followed."""
        return os.stat(self.inside, dir_fd=self.handle.fd, follow_symlinks=False)

    def _mode(self) -> int:
        try:
            return os.stat(self.inside, dir_fd=self.handle.fd).st_mode
        except FileNotFoundError:
            return 0

    def exists(self) -> bool:
        """Whether there is something."""
        return self._mode() != 0

    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self._mode())

    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self._mode())

    def is_symlink(self) -> bool:
        """Whether it is a link."""
        return is_there(self) and stat.S_ISLNK(self.lstat().st_mode)

    def mkdir(self, *, exist_ok: bool = False) -> None:
        """Make a directory."""
        try:
            os.mkdir(self.inside, dir_fd=self.handle.fd)
        except FileExistsError:
            if not exist_ok or not self.is_dir():
                raise

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file."""
        try:
            os.unlink(self.inside, dir_fd=self.handle.fd)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def iterdir(self) -> Iterator["Held"]:
        """Yield what is in a directory."""
        fd = os.open(self.inside, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0), dir_fd=self.handle.fd)
        try:
            names = os.listdir(fd)
        finally:
            os.close(fd)
        yield from (self / name for name in names)


Place = Path | Held


def located(place: Place) -> tuple[Any, dict[str, int]]:
    """Return what the functions of `os` take for a place: its path, and perhaps `dir_fd`."""
    return (place.inside, {"dir_fd": place.handle.fd}) if isinstance(place, Held) else (place, {})


def is_there(place: Place) -> bool:
    """Whether there is something, also a link that leads nowhere."""
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):  # a file stands where the directory should be
        return False
    return True


def is_same(fd: int, place: Place) -> bool:
    """Whether an open file is the one that stands at a place now."""
    here = os.fstat(fd)
    try:
        there = place.lstat()
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
