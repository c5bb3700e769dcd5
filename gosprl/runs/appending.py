"""Output: files of a run that are appended to, and synced together."""

import errno
import os
from collections.abc import Iterable

from gosprl.runs.files import Damaged, open_regular, sync_directory, synced, unshare, write_all
from gosprl.runs.places import Place, is_same, is_there


class Lost(OSError):
    """A file to which a run writes is not there any more: what was written is lost."""


class Output:
    """Files of a run that are appended to.

    Parameters
    ----------
    directory
        The directory of the run.
    sizes
        The size in bytes that each file is expected to have when it is opened; 0 if it is left out.
    made
        Directories that were made for it, whose names are to be synced, too.
    """

    def __init__(self, directory: Place, sizes: dict[str, int], made: Iterable[Place] = ()) -> None:
        self._directory, self._sizes = directory, sizes
        self._fds: dict[str, int] = {}
        self._unsynced: dict[str, None] = {}  # in the order of the first write
        self._changed = {path.parent: None for path in (*made, directory)}  # directories with names to sync

    def size(self, file: str) -> int:
        """Return the size of a file, with what was appended."""
        return self._sizes.get(file, 0)

    def open(self, file: str) -> int:
        """Open a file, or create it; `Damaged` if its size is not the expected one."""
        if file not in self._fds:
            if is_there(self._directory / file):
                unshare(self._directory, file)
            fd = open_regular(self._directory, file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._fds[file] = fd
            if os.fstat(fd).st_size != self.size(file):
                raise Damaged(file, None, "changed after it was verified")
            if self.size(file) == 0:
                self._changed[(self._directory / file).parent] = None
        return self._fds[file]

    def append(self, file: str, data: bytes | memoryview) -> int:
        """Write bytes and return their offset."""
        if os.fstat(self.open(file)).st_nlink > 1:  # somebody has made a copy of links meanwhile
            self._unshare(file)
        write_all(self.open(file), data)
        offset = self.size(file)
        self._sizes[file] = offset + len(data)
        self._unsynced[file] = None
        return offset

    def sync(self) -> None:
        """Wait until everything appended is on the disk, and the names of new files."""
        for file in self._unsynced:
            synced(self._fds[file])
        self._unsynced.clear()
        for directory in self._changed:
            sync_directory(directory)
        self._changed.clear()
        lost = self.lost()
        if lost is not None:
            raise Lost(errno.ENOENT, "was removed or replaced while the run wrote to it", lost)

    def lost(self) -> str | None:
        """Return the first open file that does not stand under its name any more; None if all do."""
        return next((file for file, fd in self._fds.items() if not is_same(fd, self._directory / file)), None)

    def _unshare(self, file: str) -> None:
        """Write to a file of our own from here on."""
        if not is_same(self._fds[file], self._directory / file):
            raise Lost(errno.ENOENT, "was removed or replaced while the run wrote to it", file)
        unshare(self._directory, file)
        self.done(file)
        self.open(file)

    def done(self, file: str) -> None:
        """Close a file to which nothing more is appended."""
        os.close(self._fds.pop(file))

    def close(self) -> None:
        """Close all files."""
        for file in list(self._fds):
            self.done(file)
