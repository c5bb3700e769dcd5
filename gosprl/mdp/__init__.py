"""Known MDPs: their pairs, their graph, and the distances between their states."""

from gosprl.mdp.rows import Rows
from gosprl.mdp.tabular import TabularMDP

__all__ = ["Rows", "TabularMDP"]
