"""Outputs that appear by rename: complete, or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gosprl.errors import InputError


@contextmanager
def new_file(file: "str | os.PathLike[str]") -> Iterator[Path]:
    """Yield the path of a temporary file beside `file`, which replaces it at the end; nothing is left after an error.

    Parameters
    ----------
    file
        The file to write; its directory must exist.
    """
    target = Path(file)
    if not target.parent.is_dir() or target.is_dir():
        raise InputError(f"file: expected a file in a directory that exists, got {str(file)!r:.200}")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def new_directory(path: "str | os.PathLike[str]") -> Iterator[Path]:
    """Yield the path of a temporary directory beside `path`, which is renamed to it at the end.

    Parameters
    ----------
    path
        The directory to make. It must not exist, or be empty: what others put there is never deleted.
    """
    target = Path(path)
    if not target.parent.is_dir() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
        raise InputError(
            f"file: expected a new or empty directory, inside one that exists, to put several files in, got "
            f"{str(path)!r:.200}"
        )
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
