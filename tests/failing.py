"""Calls of the operating system that fail."""

import os


def failing(code):
    """Return a call that raises the `OSError` with this number."""

    def fail(*_):
        raise OSError(code, os.strerror(code))

    return fail
