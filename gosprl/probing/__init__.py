"""Walk a system for a while, and say what it is and what collecting from it would take."""

from gosprl.probing.probe import Probe, probe

__all__ = ["Probe", "probe"]
