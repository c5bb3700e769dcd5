"""Confidence sets on the dynamics, and the error bounds that follow from them."""

from gosprl.sets.bernstein import Bernstein
from gosprl.sets.families import FAMILIES, as_family
from gosprl.sets.intervals import Confidence, Intervals
from gosprl.sets.kl import KL
from gosprl.sets.known import Known
from gosprl.sets.unseen import visits_for_unseen

__all__ = ["FAMILIES", "KL", "Bernstein", "Confidence", "Intervals", "Known", "as_family", "visits_for_unseen"]
