"""What is known beforehand: the dynamics, the possible successors, or only the family of the confidence sets."""

from typing import Any

from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.sets import Confidence, Known, as_family

KNOWN_PRECISION = 1e-7  # known dynamics are planned exactly: ties that a coarser plan hides cost 25 % of the steps


def family_of(
    dynamics: TabularMDP | None,
    successors: Any,
    confidence: str | Confidence,
    delta: float,
    scale: float,
    linear_scale: float | None = None,
) -> Confidence:
    """Check that the options are compatible, and return the confidence sets that they define."""
    if dynamics is None:
        return as_family(confidence, delta, scale, linear_scale)
    if linear_scale is not None:
        raise InputError("dynamics, linear_scale: known dynamics need no confidence sets; give one of the two")
    if confidence != "kl":
        raise InputError("dynamics, confidence: known dynamics need no confidence sets; give one of the two")
    if successors is not None:
        raise InputError("dynamics, successors: known dynamics say what is possible; give one of the two")
    if not isinstance(dynamics, TabularMDP):
        raise InputError(f"dynamics: expected a TabularMDP, got {type(dynamics).__name__}")
    return Known(dynamics)


def take_knowledge(model: EmpiricalModel, dynamics: TabularMDP | None, successors: Any) -> None:
    """Apply prior knowledge: check the dynamics, and restrict the model to the possible successors."""
    if dynamics is not None and not dynamics.rows.same(model.rows):
        raise InputError("dynamics: expected the same states and actions as the system's")
    if successors is not None and model.restricted_to != id(successors):
        model.restrict(successors)
