"""`jit`, the decorator of every kernel: compile on the first call, keep the machine code on disk.

numba keeps compiled functions on disk, each stamped with the source file that defines it. But the machine code of a
kernel contains that of the kernels it calls: after an edit of a called kernel in another file, numba would load the
caller with the old code in it. Here the stamp of every kernel is a digest of all kernel sources, so that an edit of any
of them recompiles all.

The stamp is a private attribute of numba's cache. If a version of numba does not have it, or if no file can be written
(neither beside the sources nor in the user's cache directory), every process compiles the kernels again, and one
RuntimeWarning says so.

The machine code contains the values of global numbers. The digest covers them only if a kernel file defines them.
"""

import hashlib
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba import njit

try:  # a private option of numba; without it, every kernel counts references
    from numba.core.options import DefaultOptions

    _CAN_BORROW = hasattr(DefaultOptions, "_nrt")
except ImportError:
    _CAN_BORROW = False
_failures: list[Exception] = []  # the errors that prevented storing machine code on disk


def jit(function: Callable[..., Any] | None = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function with numba when it is first called: `@jit`, `@jit(nogil=True)` or `jit(function)`.

    Parameters
    ----------
    function
        The function.
    allocates
        Whether it makes arrays, or calls what returns some. Such a function counts the references to all arrays that it
        touches, with an atomic operation each. Any other borrows the arrays of its caller: walks are several times as
        fast. It must not return arrays, which nobody would own.
    options
        Further options of `numba.njit`.
    """
    if function is None:
        return partial(jit, allocates=allocates, **options)
    kernel = _compiled(function, allocates, options)
    if kernel is function:  # with NUMBA_DISABLE_JIT=1
        return function
    if not _failures:
        try:
            kernel.enable_caching()
            _stamp(kernel._cache)
        except Exception as error:  # the type of the error depends on the version of numba
            _warn(error)
            kernel = _compiled(function, allocates, options)
    if hasattr(kernel, "_cache"):
        kernel._cache = _Cache(kernel._cache)
    return kernel


def _compiled(function: Callable[..., Any], allocates: bool, options: dict[str, Any]) -> Any:
    flags: dict[str, Any] = {"_nrt": allocates, **options} if _CAN_BORROW else options
    return njit(**flags)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into those that call it, for what is called at every step."""
    return jit(function, forceinline=True)


class _Cache:
    """Wraps numba's cache of a kernel (or its null cache): announces compilations, and turns errors into warnings."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the machine code for a signature; None makes numba compile it."""
        code = None
        try:
            code = self._inner.load_overload(signature, target)
        except Exception:  # a damaged file: delete the cache of this kernel
            self._write(self._inner.flush)
        if code is None:
            _announce()
        return code

    def save_overload(self, signature: Any, code: Any) -> None:
        self._write(self._inner.save_overload, signature, code)

    def _write(self, write: Callable[..., None], *arguments: Any) -> None:
        try:
            write(*arguments)
        except Exception as error:  # for example, the disk is full
            _warn(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _stamp(numba_cache: Any) -> None:
    """Replace the stamp of the kernel's own source file by the digest of all kernel sources."""
    file = numba_cache._cache_file
    if file._source_stamp != numba_cache._impl.locator.get_source_stamp():
        raise AttributeError("numba's cache is stamped in an unknown way")
    file._source_stamp = _digest()


@cache
def _digest() -> str:
    """SHA-256 of all kernel sources: this package, and the rules that `walk` compiles."""
    here = Path(__file__).parent
    sources = sorted(here.glob("*.py"))
    if not sources:
        raise FileNotFoundError(f"no sources in {here}")
    rules = here.parent / "collecting" / "rules.py"
    sha = hashlib.sha256()
    for path in [*sources, rules] if rules.exists() else sources:
        source = path.read_bytes()
        sha.update(f"{path.name} {len(source)}\n".encode() + source)
    return sha.hexdigest()


def _warn(error: Exception) -> None:
    """Warn once that compiled kernels cannot be stored on disk."""
    _failures.append(error)
    if len(_failures) == 1:
        warnings.warn(
            f"gosprl: every process compiles its kernels anew, since numba cannot keep them on disk: {error}. "
            "NUMBA_CACHE_DIR names a directory to keep them in",
            RuntimeWarning,
            stacklevel=2,
        )


class _Notice:
    """Says on stderr why the program waits: once before the first compilation; on a terminal, also how far it is."""

    PERIOD = 4.0  # seconds between two lines

    def __init__(self) -> None:
        self.kernels, self.begin, self.last = 0, 0.0, 0.0

    def __call__(self) -> None:
        """Print a line if one is due; called before each compilation."""
        now = time.monotonic()
        if self.kernels == 0:
            self.begin = self.last = now
            often = "" if _failures else "once per installation, "
            self._print(f", {often}about 20 s ...")
        elif now - self.last >= self.PERIOD and sys.stderr is not None and sys.stderr.isatty():
            self.last = now
            self._print(f": {self.kernels} compiled after {now - self.begin:.0f} s")
        self.kernels += 1

    def _print(self, text: str) -> None:
        if sys.stderr is not None:
            print(f"gosprl: compiling its kernels{text}", file=sys.stderr, flush=True)


_announce = _Notice()
