"""A system that forks in the middle of a step: there is one walk, that of the process which began the step."""

import contextlib
import os

SAID = (
    b"gosprl: the system forked in a step or a reset, and the child came back; it is ended. A child has to end itself\n"
)


def end_copy(owner: int) -> None:
    """End this process at once if it is a copy of the one that began the step, by its number.

    A copy has the files, the locks and the programs of the run, and the next line of the walk. Whatever it did on its
    way out (a certificate, an end of a program) would be done to the run of the owner.
    """
    if os.getpid() != owner:
        with contextlib.suppress(OSError):
            os.write(2, SAID)
        os._exit(1)
