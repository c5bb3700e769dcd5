"""The named families of confidence sets."""

from collections.abc import Callable

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.sets.bernstein import Bernstein
from gosprl.sets.intervals import Confidence
from gosprl.sets.kl import KL

FAMILIES: dict[str, Callable[[float, float], Confidence]] = {"bernstein": Bernstein, "kl": KL}


def as_family(
    confidence: "str | Confidence | None", delta: float, scale: float, linear_scale: float | None = None
) -> Confidence:
    """Return the named family with these parameters (None: `kl`); an object is returned as it is.

    Parameters
    ----------
    confidence
        A name, an object, or None.
    delta, scale
        Of a named family.
    linear_scale
        Of `bernstein`; an `InputError` with anything else.
    """
    if linear_scale is not None:
        if confidence != "bernstein":
            raise InputError(
                'linear_scale: only with confidence="bernstein", whose linear term it multiplies; an object has its own'
            )
        return Bernstein(delta, scale, linear_scale)
    if confidence is None or isinstance(confidence, str):
        return _checks.choice("confidence", "kl" if confidence is None else confidence, FAMILIES)(delta, scale)
    if not isinstance(confidence, Confidence):
        raise InputError(
            f"confidence: expected {', '.join(sorted(FAMILIES))} or an object derived from gosprl.Confidence, got "
            f"{confidence!r:.80}"
        )
    return confidence
