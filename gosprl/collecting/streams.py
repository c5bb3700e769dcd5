"""What the random numbers of a run follow from: its seed, and the samples that it begins with.

If they followed from the seed alone, a run that begins with the samples of another one with the same seed would draw
the numbers of that run again. Its samples would be copies of the data, and no confidence set would hold that counts
both. So a run that begins with samples draws from `SeedSequence([seed, digest of their counts])`. A run that begins
with nothing draws from `SeedSequence(seed)`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gosprl.model.counted import columns_of, digest_of

if TYPE_CHECKING:
    from gosprl.model.empirical import EmpiricalModel

Entropy = int | Sequence[int] | None  # as `numpy.random.SeedSequence` takes it


def entropy_of(seed: Entropy, begun: str) -> Entropy:
    """Return what the random numbers of a run follow from.

    Parameters
    ----------
    seed
        Of the run; None: it is drawn, and no other run has it.
    begun
        The digest of the counts that it begins with; empty if there are none.
    """
    if seed is None or not begun:
        return seed
    return [*(seed if isinstance(seed, Sequence) else [seed]), int(begun, 16)]


def begun_digest(model: "EmpiricalModel") -> str:
    """Return the digest of the counts of a model; empty if there are none."""
    return digest_of(columns_of(model)) if model.visits.any() else ""
