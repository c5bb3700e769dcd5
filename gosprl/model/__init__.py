"""Counts of observed transitions, and prior knowledge of the possible ones."""

from gosprl.model.empirical import EmpiricalModel

__all__ = ["EmpiricalModel"]
