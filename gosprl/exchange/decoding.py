"""How much memory decoding a file may take: bounds for every format, whatever the file claims.

Rows are read in batches and counted, so that memory need not grow with their number. What stays in memory are the
different observations; a few bytes of a compressed file can stand for many, so these are bounded by the bytes of the
file, with room enough for small ones.
"""

from gosprl.errors import InputError

BUDGET = 2**28  # bytes that a batch of rows may take once decoded
LONGEST_TEXT = 2**24  # characters of one observation as text
CHARACTERS, CHARACTERS_A_BYTE = 2**28, 64  # of all different observations: at least, and for each byte of the file
STATES = 10**6  # different observations that a file may hold at least; and one for each of its bytes


class Allowance:
    """The different observations that a source may hold.

    Parameters
    ----------
    place
        What errors begin with.
    size
        Its bytes; None: it is in memory already, and nothing has to be bounded.
    """

    def __init__(self, place: str, size: int | None) -> None:
        self._place, self._size = place, size
        self._states = self._characters = 0

    def text(self, characters: int) -> None:
        """Take in one more observation as text."""
        if self._size is None:
            return
        self._characters += characters
        check_text(self._place, characters)
        check_texts(self._place, self._characters, self._size)

    def state(self) -> None:
        """Take in one more observation that is different from all before."""
        self._states += 1
        if self._size is not None and self._states > max(STATES, self._size):
            raise InputError(
                f"{self._place}: expected at most {max(STATES, self._size):,} different observations in a file "
                f"of {self._size:,} bytes, got more; give them as arrays or as a data frame if that is what they are"
            )


def check_text(place: str, characters: int) -> None:
    """Raise `InputError` if a text is too long for an observation."""
    if characters > LONGEST_TEXT:
        raise InputError(
            f"{place}: expected observations of at most {LONGEST_TEXT:,} characters, got one of {characters:,}; give "
            "shorter names of states, such as their numbers"
        )


def check_texts(place: str, characters: int, size: int) -> None:
    """Raise `InputError` if the different texts of a file of so many bytes have too many characters."""
    most = max(CHARACTERS, CHARACTERS_A_BYTE * size)
    if characters > most:
        raise InputError(
            f"{place}: expected observations of at most {most:,} characters in all in a file of {size:,} bytes, got "
            "more; give shorter names of states, such as their numbers"
        )
