"""The lock of a run: one writer for each directory, and whether there is one now."""

import errno
import os

from gosprl.errors import InputError
from gosprl.runs.files import Damaged, disk, open_regular, unshare, warn_once, write_all
from gosprl.runs.places import Place, is_same

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


def require_locks() -> None:
    """Raise `InputError` on a platform without file locks."""
    if fcntl is None:
        raise InputError("out: needs file locks (fcntl), which this platform does not have; leave out= away")


class Lock:
    """One writer for each directory: a lock on its file `lock`, which the system releases when the process ends.

    Parameters
    ----------
    directory
        The directory of a run, which exists.
    """

    _fds: set[int] = set()  # noqa: RUF012 - of all locks held by this process

    def __init__(self, directory: Place) -> None:
        self._directory = directory
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises
        ------
        InputError
            If another process, or another `Lock` of this one, has it.
        """
        require_locks()
        if self._fd is not None:
            raise InputError(self._taken(os.getpid()))
        fd = self._locked()
        try:
            disk.truncate(fd, 0)
            write_all(fd, f"{os.getpid()}\n".encode())
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        Lock._fds.add(fd)

    def release(self) -> None:
        """Give the lock back, if it is held. The file stays: removing it would let two writers lock two files."""
        if self._fd in Lock._fds:  # not in a forked child, where the number may belong to another file by now
            Lock._fds.discard(self._fd)
            os.close(self._fd)
        self._fd = None

    def _locked(self) -> int:
        """Return the file of the lock, held, which stands in the directory and in no other one."""
        while True:
            try:
                fd = open_regular(self._directory, LOCK, os.O_RDWR | os.O_CREAT)
            except Damaged as error:
                raise InputError(f"out: {self._directory}: {error}") from None
            try:
                self._lock(fd)
                if os.fstat(fd).st_nlink > 1:  # a copy made of links has it, too: each gets a lock of its own
                    unshare(self._directory, LOCK)
                if is_same(fd, self._directory / LOCK):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # another one has been put in its place meanwhile

    def _lock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(self._taken(_owner(fd))) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            warn_once(
                "the file system of out= has no locks: nothing prevents a second process from writing to the same "
                "directory, which would damage the run"
            )

    def _taken(self, owner: int | None) -> str:
        process = "another process" if owner is None else f"process {owner}"
        return f"out: {self._directory} is being written by {process}; wait for its end, or give another directory"


def _owner(fd: int) -> int | None:
    """Return the process that wrote its number into a lock; None if it has not done so yet."""
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _forget_locks() -> None:
    """Close the locks in a forked child; otherwise a worker that outlives the owner would keep them."""
    for fd in Lock._fds:
        os.close(fd)
    Lock._fds.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def is_being_written(directory: Place) -> bool | None:
    """Whether a process holds the lock of a run; None if that cannot be known here.

    A shared lock is asked for, and given back at once: others that look are not in the way, and nothing is written.
    """
    try:
        fd = open_regular(directory, LOCK)
    except FileNotFoundError:
        return False
    except (Damaged, OSError):
        return None
    try:
        return _is_locked(fd)
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool | None:
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False
