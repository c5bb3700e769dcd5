"""Files that survive crashes and are checked when read: the lowest layer of a run on disk.

A JSON file is replaced as a whole: written beside the old one, synced, renamed, and the directory synced. After a crash
either the old or the new file is there. Every file has exactly one valid form, which includes its own digest; therefore
reading finds every change of a bit.

The directory of a run may come from a stranger. It is only data: symbolic links are not followed, sizes are checked
before anything is allocated, and nothing in it is executed.
"""

import errno
import hashlib
import json
import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gosprl.errors import GosprlError, InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MIB = 2**20
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not wait for its other end
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


class Damaged(GosprlError):
    """A file of a run is not what was written.

    Attributes
    ----------
    file
        Its path, relative to the directory of the run.
    batch
        The number of the damaged batch, counted over the whole chain from 1; None if it is not about a batch.
    what
        What is wrong.
    """

    def __init__(self, file: str, batch: int | None, what: str) -> None:
        super().__init__(f"{file}{'' if batch is None else f', batch {batch}'}: {what}")
        self.file, self.batch, self.what = file, batch, what

    def __reduce__(self) -> tuple[type, tuple[str, int | None, str]]:
        """Return how worker processes hand the error over."""
        return type(self), (self.file, self.batch, self.what)


class Disk:
    """The calls that change files. They are in one place so that tests can make them fail."""

    open: Callable[..., int] = staticmethod(os.open)
    write: Callable[..., int] = staticmethod(os.write)
    fsync: Callable[[int], None] = staticmethod(os.fsync)
    replace: Callable[..., None] = staticmethod(os.replace)
    truncate: Callable[[int, int], None] = staticmethod(os.ftruncate)
    unlink: Callable[..., None] = staticmethod(os.unlink)


disk = Disk()
_ENCODER = json.JSONEncoder(sort_keys=True, allow_nan=False)
_warned: set[str] = set()


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of the bytes, in as many calls as it takes."""
    rest = memoryview(data)
    while rest:
        written = disk.write(fd, rest)
        if written <= 0:
            raise OSError(errno.EIO, "the file takes no more bytes")
        rest = rest[written:]


def synced(fd: int) -> None:
    """Wait until the file is on the disk; warn once where the file system cannot do that."""
    try:
        disk.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
        _warn_once(
            "the file system of out= does not support fsync: what is acknowledged survives the end of the process, "
            "but perhaps not a power cut"
        )


def sync_directory(path: Path) -> None:
    """Wait until the names of the files in a directory are on the disk."""
    fd = disk.open(path, os.O_RDONLY)
    try:
        synced(fd)
    finally:
        os.close(fd)


def open_regular(root: Path, name: str, flags: int = os.O_RDONLY) -> int:
    """Open a file inside a directory, without following symbolic links below it.

    Raises
    ------
    Damaged
        If a part of the path is a symbolic link, or it is no regular file. A missing file is a `FileNotFoundError`.
    """
    for parent in list(Path(name).parents)[-2::-1]:
        if not stat.S_ISDIR(os.lstat(root / parent).st_mode):
            raise Damaged(name, None, f"{parent} is no directory")
    try:
        fd = disk.open(root / name, flags | _NO_FOLLOW | _NO_WAIT, 0o666)
    except OSError as error:
        if isinstance(error, IsADirectoryError) or error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise Damaged(name, None, "is no regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Damaged(name, None, "is no regular file")
    return fd


def canonical(value: dict[str, Any]) -> bytes:
    """Return the one form of a value as JSON: sorted keys, ASCII, a line for each field.

    Within a field there are no line breaks: only then Python's fast encoder is used.

    Raises
    ------
    ValueError, TypeError, RecursionError
        If JSON cannot hold the value.
    """
    fields = [f"{json.dumps(name)}: {_ENCODER.encode(part)}" for name, part in sorted(value.items())]
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode("ascii")


def digest_of(value: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical form of a value, which has no field "digest", in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def write_json(path: Path, value: dict[str, Any], lasting_name: bool = True) -> None:
    """Replace a file by the canonical form of a value with its digest; all or nothing, also in a power cut.

    Parameters
    ----------
    path, value
        The file and its content.
    lasting_name
        Whether to wait until the name is on the disk as well; if not, a power cut may bring the old file back.

    Raises
    ------
    InputError
        If JSON cannot hold the value exactly.
    OSError
        If the file cannot be written; the old one is still there.
    """
    data = _sealed(path.name, value)
    temporary = path.with_name(path.name + ".tmp")
    try:
        _write_new(temporary, data)
        disk.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if lasting_name:
        sync_directory(path.parent)


def read_json(path: Path, limit: int = 256 * MIB, root: Path | None = None) -> dict[str, Any]:
    """Return the value that `write_json` wrote, without its digest.

    Parameters
    ----------
    path
        The file.
    limit
        The largest size in bytes that is read.
    root
        The directory of the run, to which names in errors are relative; by default the file's own directory.

    Raises
    ------
    Damaged
        If the bytes are not exactly those that `write_json` writes.
    FileNotFoundError
        If there is no such file.
    """
    root = path.parent if root is None else root
    name = path.relative_to(root).as_posix()
    fd = open_regular(root, name)
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(fd).st_size
        if size > limit:
            raise Damaged(name, None, f"has {size} bytes; at most {limit} are read")
        data = file.read(limit + 1)
    try:
        return _unsealed(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise Damaged(name, None, _reason(error)) from None


def _sealed(name: str, value: dict[str, Any]) -> bytes:
    """Return the bytes of a file, after making sure that they will be read as the same value."""
    if "digest" in value:
        raise InputError(f'{name}: the field "digest" is added when it is written, got one')
    try:
        data = canonical({**value, "digest": digest_of(value)})
        _unsealed(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{name}: expected a value that JSON holds exactly, got one where {_reason(error)}") from None
    return data


def _unsealed(data: bytes) -> dict[str, Any]:
    value = json.loads(data.decode("ascii"), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    if type(value) is not dict:
        raise ValueError("it is no JSON object")
    if canonical(value) != data:
        raise ValueError("its bytes are not the canonical form of their content")
    if value.pop("digest", None) != digest_of(value):
        raise ValueError("its digest is not that of its content")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice")
    return value


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _write_new(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)  # left by a crash; or a link, which must not be followed
    fd = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o666)
    try:
        write_all(fd, data)
        synced(fd)
    finally:
        os.close(fd)


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=3)


class Lock:
    """One writer for each directory: a lock on its file `lock`, which the system releases when the process ends.

    Parameters
    ----------
    directory
        The directory of a run, which exists.
    """

    _fds: set[int] = set()  # noqa: RUF012 - of all locks held by this process

    def __init__(self, directory: Path) -> None:
        self._directory = Path(directory)
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises
        ------
        InputError
            If another process, or another `Lock` of this one, has it.
        """
        if fcntl is None:
            raise InputError("out: needs file locks (fcntl), which this platform does not have; leave out= away")
        if self._fd is not None:
            raise InputError(self._taken(os.getpid()))
        try:
            fd = open_regular(self._directory, "lock", os.O_RDWR | os.O_CREAT)
        except Damaged as error:
            raise InputError(f"out: {self._directory}: {error}") from None
        try:
            self._lock(fd)
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

    def _lock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(self._taken(_owner(fd))) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            _warn_once(
                "the file system of out= has no locks: nothing prevents a second process from writing to the same "
                "directory, which would damage the run"
            )

    def _taken(self, owner: int | None) -> str:
        process = "another process" if owner is None else f"process {owner}"
        return f"out: {self._directory} is being written by {process}; wait for its end, or give another directory"


def _owner(fd: int) -> int | None:
    """Return the process that wrote its number into a lock; None if it had no time to."""
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _forget_locks() -> None:
    """Close the locks in a forked child; otherwise a worker that outlives the owner would keep them."""
    for fd in Lock._fds:
        os.close(fd)
    Lock._fds.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)
