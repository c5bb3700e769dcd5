"""The decorator of every kernel."""

from numba import njit


def jit(function=None, **options):
    """Compile a function when it is first called."""
    return njit(cache=True, **options)(function) if function is not None else lambda f: njit(cache=True, **options)(f)
